"""Batching rules that follow from declarations: an attribute that declares its dimensions (`hlo/ops/declare.py`)
determines how to add one in front.

Numbers that name dimensions are raised by one; a tuple with an entry for each dimension gets one more entry in front.
An op along the last dimensions stays as it is. Ops that do more with dimensions have rules in their families.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...hlo.instruction import Attributes
from ...hlo.opcode import Opcode
from ...hlo.ops import SPECS, Trait, spec_of
from ...hlo.ops.declare import SIZE
from ...hlo.ops.dimensions import fields_with_dimensions, works_along_last
from ...hlo.shape import Shape
from ...tracer import dtypes
from ...tracer.core import Value, bind, bind_multi
from ...tracer.ops import broadcast, scalar, scalar_like
from ..batches import Axis, all_with_batch, with_batch, with_batch_shape
from ..batching import one_by_one
from .tables import BATCH

_O = Opcode


def with_dimension_in_front(axis: Axis, attributes: Attributes) -> Attributes:
    """The attributes of an op on operands and results with the batch as a new dimension 0."""
    changes: dict[str, Any] = {}
    for field in fields_with_dimensions(type(attributes)):
        dims, value = field.attr.dims, getattr(attributes, field.name)
        if value is None:
            continue
        if dims.names is not None:
            value = value + 1 if isinstance(value, int) else raised(value)
        if dims.per is not None:
            whole = 0 if dims.names is not None else dims.whole
            value = (axis.size if whole is SIZE else whole, *value)
        changes[field.name] = value
    return replaced(attributes, changes)


def raised(dimensions: Sequence[int], by: int = 1) -> tuple[int, ...]:
    """Numbers of dimensions where there are `by` more in front."""
    return tuple([d + by for d in dimensions])


def replaced(attributes: Attributes, changes: dict[str, Any]) -> Attributes:
    """Attributes with other values; the same object if there are none."""
    if not changes:
        return attributes
    fields = {name: getattr(attributes, name) for name in type(attributes).__dataclass_fields__}
    return type(attributes)(**{**fields, **changes})


def bind_batch(
    axis: Axis, opcode: Opcode, operands: Sequence[Value], attributes: Attributes, shape: Shape
) -> tuple[Any, Any]:
    """The op on operands that have the batch; all results have it. `shape`: the results' type without the batch."""
    declared = with_batch_shape(axis, shape)
    if shape.tuple_shapes is None:
        return bind(opcode, operands, attributes, shape=declared), True
    results = bind_multi(opcode, operands, attributes, shape=declared)
    return results, [True] * len(results)


def elementwise(
    opcode: Opcode, axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Any, shape: Shape
) -> tuple[Any, Any]:
    """Each operand as a batch. Scalars that the op takes beside arrays may stay scalars."""
    full = (axis.size, *shape.dimensions)
    given = []
    for k, (x, is_batched) in enumerate(zip(operands, batched, strict=True)):
        if k in _SCALARS.get(opcode, ()) and x.aval.ndim == is_batched:  # of one element it is a scalar
            given.append(broadcast(x, full, (0,)) if is_batched else x)
        else:
            given.append(with_batch(axis, x, is_batched))
    if opcode is _O.MAP:
        attributes = replaced(attributes, {"dimensions": tuple(range(shape.rank + 1))})
    return bind_batch(axis, opcode, given, attributes, shape)


_SCALARS = {_O.SELECT: (0,), _O.CLAMP: (0, 2)}
"""Operands that may be scalars where the result is an array."""
_ARRAYS = {_O.PAD: 1, _O.SELECT_AND_SCATTER: 2}
"""How many of the first operands are arrays, for ops with a scalar as their last operand."""


def aligned(
    opcode: Opcode, axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Any, shape: Shape
) -> tuple[Any, Any]:
    """Arrays as batches; scalars after them (initial values, paddings, start indices) that all elements share."""
    count = _arrays(opcode, operands, batched)
    if any(batched[count:]):
        return by_elements(opcode, axis, operands, batched, attributes, shape)
    given = all_with_batch(axis, operands[:count], batched[:count])
    scalars = list(operands[count:])
    starts = spec_of(opcode).starts
    if starts is not None:
        scalars.insert(0, scalar_like(scalars[0], 0) if scalars else scalar(0, dtypes.int32))
    return bind_batch(axis, opcode, [*given, *scalars], with_dimension_in_front(axis, attributes), shape)


def by_elements(
    opcode: Opcode, axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Any, shape: Shape
) -> tuple[Any, Any]:
    """The op in a loop over the elements."""
    is_tuple = shape.tuple_shapes is not None

    def run(values: list[Value]) -> Sequence[Value]:
        if is_tuple:
            return bind_multi(opcode, values, attributes, shape=shape)
        return [bind(opcode, values, attributes, shape=shape)]

    found = one_by_one(axis, operands, batched, run)
    return (found, [True] * len(found)) if is_tuple else (found[0], True)


def _arrays(opcode: Opcode, operands: Sequence[Value], batched: Sequence[bool]) -> int:
    """How many of the first operands are arrays that the op works on along dimensions; the others are scalars."""
    spec = spec_of(opcode)
    if spec.starts is not None:
        return spec.starts
    if spec.operands_per_array > 1:
        return len(operands) // spec.operands_per_array
    return _ARRAYS.get(opcode, len(operands))


def along_last(
    opcode: Opcode, axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Any, shape: Shape
) -> tuple[Any, Any]:
    """An op that does the same at each index of all but the last dimensions."""
    return bind_batch(axis, opcode, all_with_batch(axis, operands, batched), attributes, shape)


def register_declared() -> None:
    """Fill `BATCH` with the rules that follow from declarations, for ops without one or a reason."""
    for opcode, spec in SPECS.items():
        if opcode in BATCH or BATCH.reason(opcode) is not None:
            continue
        if spec.traits & Trait.ELEMENTWISE:
            BATCH[opcode] = partial(elementwise, opcode)
        elif works_along_last(spec):
            BATCH[opcode] = partial(along_last, opcode)
        elif spec.traits & Trait.ALIGNED or opcode in (_O.REDUCE, _O.BROADCAST, _O.TRANSPOSE, _O.RESHAPE):
            BATCH[opcode] = partial(aligned, opcode)
        elif opcode in (_O.BITCAST_CONVERT, _O.OPT_BARRIER):
            BATCH[opcode] = partial(along_last, opcode)
