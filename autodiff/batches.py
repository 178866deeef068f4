"""Types of batching rules beside values: the axis of a batch, and values that become batches.

Nothing here knows of traces, so a library function can name these without loading the transformations. A batch has its
elements along dimension 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.opcode import Opcode
from ..hlo.ops.movement import IotaAttributes
from ..hlo.shape import Shape
from ..hlo.support.records import dataclass
from ..tracer import dtypes
from ..tracer.arrays.overlay import overlaid
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind
from ..tracer.ops import (
    array_shape,
    broadcast,
    full_like,
    read_block,
    reduce_sum,
    reduce_with,
    reshape,
    scalar,
    scalar_like,
    select,
    zeros,
)


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis along which a batch lies."""

    name: Any
    """None, or the name that collectives use."""
    size: int


def with_batch(axis: Axis, value: Value, is_batched: bool) -> Value:
    """`value` as a batch: repeated for each element if all elements share it."""
    if is_batched:
        return value
    rank = value.aval.ndim
    return broadcast(value, (axis.size, *value.aval.shape), range(1, rank + 1))


def all_with_batch(axis: Axis, values: Sequence[Value], batched: Sequence[bool]) -> list[Value]:
    return [with_batch(axis, v, b) for v, b in zip(values, batched, strict=True)]


def with_batch_shape(axis: Axis, shape: Shape) -> Shape:
    """The type of a batch of values of type `shape`."""
    if shape.tuple_shapes is not None:
        return Shape.tuple([with_batch_shape(axis, s) for s in shape.tuple_shapes])
    return Shape.array(shape.element, (axis.size, *shape.dimensions))


def batched_avals(axis: Axis, avals: Sequence[ShapedArray], batched: Sequence[bool]) -> list[ShapedArray]:
    """The types of values under the parent trace."""
    pairs = zip(avals, batched, strict=True)
    return [ShapedArray((axis.size, *a.shape), a.dtype) if b else a for a, b in pairs]


def to_operand(axis: Axis, ct: Value, is_batched: bool, was_batched: bool) -> Value:
    """The cotangent `ct` of an operand: summed over the batch if all elements shared the operand."""
    if was_batched:
        return with_batch(axis, ct, is_batched)
    if is_batched:
        return reduce_sum(ct, (0,))
    return ct  # the rule for one element was linear in nothing batched: one cotangent for all


def first_where(flags: Value, values: Sequence[Value]) -> list[Value]:
    """Of each value, the element (or, with further dimensions, the row) where `flags` is true for the first time."""
    count, rank = flags.aval.size, flags.aval.ndim
    if rank == 0:
        return list(values)
    flat = reshape(flags, (count,))
    position = bind(Opcode.IOTA, (), IotaAttributes(0), shape=array_shape(dtypes.int32, (count,)))
    far = full_like(position, count - 1)
    first = reduce_with(Opcode.MINIMUM, select(flat, position, far), scalar(max(count - 1, 0), dtypes.int32), (0,))
    found = []
    for value in values:
        rest = value.aval.shape[rank:]
        if not count:
            aval = ShapedArray(rest, value.aval.dtype)
            found.append(overlaid(zeros(aval.storage), aval))
            continue
        rows = reshape(value, (count, *rest))
        row = read_block(rows, [first, *[scalar_like(first, 0)] * len(rest)], (1, *rest))
        found.append(reshape(row, rest))
    return found
