"""`hloom.core`: the names of jax.core that libraries use. `hloom.extend.core` has more."""

import typing as _typing
from importlib import import_module as _import_module

from .namespaces import publish as _publish
from .tracer.aval import ShapedArray
from .tracer.scopes import ensure_compile_time_eval
from .tracer.tracer import Trace, Tracer

if _typing.TYPE_CHECKING:
    from .jaxpr.evaluate import eval_jaxpr

AbstractValue = ShapedArray
"""The type of a value; there is one class of them."""

__all__ = ["AbstractValue", "ShapedArray", "Trace", "Tracer", "ensure_compile_time_eval"]

_publish(__name__)
__all__ += ["eval_jaxpr"]

if not _typing.TYPE_CHECKING:
    _refuse = globals()["__getattr__"]

    def __getattr__(name: str) -> _typing.Any:
        if name != "eval_jaxpr":
            return _refuse(name)
        found = globals()[name] = _import_module(".jaxpr.evaluate", __package__).eval_jaxpr
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
