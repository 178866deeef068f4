"""`hloom.experimental.xla_metadata`: attributes for compilers on the instructions of a program, with JAX's name.

hloom's passes do nothing about them; HLO text has them as `frontend_attributes`.
"""

import functools as _functools
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
from ..tracer.arrays.array import as_value as _as_value
from ..tracer.arrays.overlay import overlaid as _overlaid
from ..tracer.core import Call as _Call
from ..tracer.core import Primitive as _Primitive
from ..tracer.core import bind_call as _bind_call
from ..tracer.core import current_trace as _current_trace
from ..tracer.settings.context import Override as _Override
from ..tracer.settings.context import current_context as _current_context

__all__ = ["set_xla_metadata"]

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


_publish(__name__)
