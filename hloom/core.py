"""`hloom.core`: the names of jax.core that libraries use. `hloom.extend.core` has more."""

import typing as _typing

from .namespaces import publish as _publish
from .tracer.aval import ShapedArray
from .tracer.scopes import ensure_compile_time_eval
from .tracer.tracer import Trace, Tracer

if _typing.TYPE_CHECKING:
    from .jaxpr.atoms import Atom
    from .jaxpr.evaluate import eval_jaxpr
    from .jaxpr.tools import eval_context, max_dim, min_dim

AbstractValue = ShapedArray
"""The type of a value; there is one class of them."""

ParamDict = dict[str, _typing.Any]
"""The parameters of an equation."""
Value = _typing.Any
"""A value of a variable of a jaxpr."""

__all__ = ["AbstractValue", "Atom", "ParamDict", "ShapedArray", "Trace", "Tracer", "Value"]
__all__ += ["ensure_compile_time_eval", "eval_context", "eval_jaxpr", "max_dim", "min_dim"]

_publish(
    __name__,
    later={
        "Atom": "jaxpr.atoms",
        "eval_jaxpr": "jaxpr.evaluate",
        **dict.fromkeys(("eval_context", "max_dim", "min_dim"), "jaxpr.tools"),
    },
)
