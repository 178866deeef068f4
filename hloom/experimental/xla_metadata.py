"""`hloom.experimental.xla_metadata`: attributes for compilers on the instructions of a program, with JAX's name.

hloom's passes do nothing about them; HLO text has them as `frontend_attributes`.
"""

import functools as _functools
from collections.abc import Callable as _Callable
from typing import Any as _Any

from .. import tree as _tree
from ..hlo.builder import make_computation as _make_computation
from ..hlo.builder import make_parameter as _make_parameter
from ..hlo.builder import make_tuple as _make_tuple
from ..hlo.ir import HloComputation as _HloComputation
from ..hlo.ir import HloInstruction as _HloInstruction
from ..hlo.opcode import Opcode as _Opcode
from ..hlo.shape import Shape as _Shape
from ..namespaces import publish as _publish
from ..tracer.arguments import check_function as _check_function
from ..tracer.arrays.array import as_value as _as_value
from ..tracer.arrays.overlay import overlaid as _overlaid
from ..tracer.core import Call as _Call
from ..tracer.core import Primitive as _Primitive
from ..tracer.core import bind_call as _bind_call
from ..tracer.core import current_trace as _current_trace
from ..tracer.jit import jit as _jit
from ..tracer.settings.context import Override as _Override
from ..tracer.settings.context import current_context as _current_context
from ..tracer.wrapping import wraps as _wraps

__all__ = ["fuse_limit", "must_fuse_call", "set_xla_metadata", "xla_metadata_call"]

_Attributes = tuple[tuple[str, str], ...]
_TAGGED = _Primitive("xla_metadata_value", evaluate=lambda call, arrays: list(arrays))


def _text(value: _Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Metadata(_Override):
    """Within the block, or the decorated function, instructions carry these attributes and the attributes of enclosing
    blocks."""

    def __init__(self, updates: dict[str, _Any]) -> None:
        self._updates = updates
        around = dict(_current_context().frontend_attributes)
        new = {**around, **{k: _text(v) for k, v in updates.items() if v is not None}}
        for name, value in updates.items():
            if value is None:
                new.pop(name, None)
        super().__init__(frontend_attributes=tuple(sorted(new.items())))

    def _recreate_cm(self) -> "_Metadata":
        return _Metadata(self._updates)


def set_xla_metadata(x: _Any = None, **kwargs: _Any) -> _Any:
    """Attributes for instructions: within a ``with`` block or a decorated function all that are recorded; None as a
    value takes one away. With a tree of arrays `x`: the same arrays, which come from instructions that carry them.

    >>> @hloom.jit
    ... def f(x):
    ...     with set_xla_metadata(group="first"):
    ...         return 2 * x
    >>> 'frontend_attributes={group="first"}' in f.lower(1.0).as_text()
    True
    """
    if x is None:
        return _Metadata(kwargs)
    attributes = tuple(sorted([(name, _text(value)) for name, value in kwargs.items()]))
    return _tree.map(lambda leaf: _tagged(leaf, attributes), x)


def _tagged(leaf: _Any, attributes: _Attributes) -> _Any:
    value = _as_value(leaf)
    meaning = _meaning(value.aval.storage.hlo, attributes)
    (found,) = _bind_call(_Call(_TAGGED, meaning, attributes, _TAGGED.name, attributes), [value])
    return _current_trace().with_weak_type(_overlaid(found, value.aval), value.aval.weak_type)


@_functools.lru_cache(maxsize=256)
def _meaning(shape: _Shape, attributes: _Attributes) -> _HloComputation:
    x = _make_parameter(0, shape)
    y = _HloInstruction(_Opcode.COPY, shape, (x,), frontend_attributes=attributes)
    return _make_computation(_TAGGED.name, _make_tuple([y]), [x])


def xla_metadata_call(f: _Callable[..., _Any] | None = None, **meta: str) -> _Any:
    """The function, which is called as one computation of a program; the call carries attributes, and the operations
    inside do not. Without `f` a decorator. It can be differentiated and mapped as any jitted function.

    >>> @xla_metadata_call(inlineable="false")
    ... def double(x):
    ...     return 2 * x
    >>> 'inlineable="false"' in hloom.jit(double).lower(1.0).as_text()
    True
    """
    if f is None:
        return _functools.partial(_with_attributes, meta)
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
        with set_xla_metadata(**meta):
            return called(*args, **kwargs)

    return call


def fuse_limit() -> _Any:
    """Within the block, or the decorated function, instructions carry ``FUSE_LIMIT="true"``, for XLA.

    >>> @hloom.jit
    ... def f(x):
    ...     with fuse_limit():
    ...         return 2 * x
    >>> 'frontend_attributes={FUSE_LIMIT="true"}' in f.lower(1.0).as_text()
    True
    """
    return set_xla_metadata(FUSE_LIMIT=True)


def must_fuse_call(identifier: str) -> _Any:
    """A decorator: calls of the function carry ``MUST_FUSE="identifier"``, for XLA. See `xla_metadata_call`.

    >>> f = must_fuse_call("1")(lambda x: 2 * x)
    >>> 'MUST_FUSE="1"' in hloom.jit(f).lower(1.0).as_text()
    True
    """
    return xla_metadata_call(MUST_FUSE=identifier)


_publish(__name__)
