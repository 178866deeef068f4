"""`hloom.experimental.scheduling_groups`: calls that carry attributes for compilers, with the names of
jax.experimental.scheduling_groups.

hloom's passes do nothing about them; HLO text has them as `frontend_attributes` of the call.
"""

from collections.abc import Callable as _Callable
from functools import partial as _partial
from typing import Any as _Any

from ..namespaces import publish as _publish
from ..tracer.arguments import check_function as _check_function
from ..tracer.jit import jit as _jit
from ..tracer.settings.context import Override as _Override
from ..tracer.settings.context import current_context as _current_context
from ..tracer.wrapping import wraps as _wraps
from .xla_metadata import set_xla_metadata as _set_xla_metadata

__all__ = ["scheduling_group", "xla_metadata_call"]


def xla_metadata_call(f: _Callable[..., _Any] | None = None, **meta: str) -> _Any:
    """The function, which is called as one computation of a program; the call carries attributes, and the operations
    inside do not. Without `f` a decorator. It can be differentiated and mapped as any jitted function.

    >>> @xla_metadata_call(inlineable="false")
    ... def double(x):
    ...     return 2 * x
    >>> 'frontend_attributes={inlineable="false"}' in hloom.jit(double).lower(1.0).as_text()
    True
    """
    if f is None:
        return _partial(_with_attributes, meta)
    return _with_attributes(meta, f)


def _with_attributes(meta: dict[str, str], f: _Callable[..., _Any]) -> _Any:
    _check_function(f, "xla_metadata_call")

    def inside(*args: _Any, **kwargs: _Any) -> _Any:
        kept = tuple([(k, v) for k, v in _current_context().frontend_attributes if k not in meta])
        with _Override(frontend_attributes=kept):
            return f(*args, **kwargs)

    called = _jit(_wraps(f)(inside))

    @_wraps(f)
    def call(*args: _Any, **kwargs: _Any) -> _Any:
        with _set_xla_metadata(**meta):
            return called(*args, **kwargs)

    return call


def scheduling_group(name: str) -> _Any:
    """A decorator for functions whose operations an accelerator's compiler should schedule together:
    ``xla_metadata_call(scheduling_group=name)``.

    >>> scheduling_group("first")(jnp.add)(1, 2)
    Array(3, dtype=int32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


_publish(__name__, examples=("from hloom.experimental import scheduling_groups",))
