"""Derivatives of ops that move elements: all are linear in these elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.ir import Attributes
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ...hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    PadAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ...hlo.shape import Shape
from ...hlo.sizes import is_symbolic, larger, smaller
from ...tracer.arrays.indices import holding
from ...tracer.aval import ShapedArray
from ...tracer.core import Value, bind
from ...tracer.ops import (
    add,
    clamp,
    concatenate,
    last_of_two,
    pad,
    reduce_sum,
    reshape,
    scalar,
    scalar_like,
    slice_,
    slice_along,
    sub,
    sum_all,
    transpose,
    zeros,
)
from ..batches import Axis, all_with_batch, with_batch_shape
from ..tangents import Linear, Operand
from .declared import aligned
from .linear import EVERY, linear
from .tables import ADD_TO, BATCH, JVP, TRANSPOSE, zero_derivative

_O = Opcode

zero_derivative(_O.IOTA)
for _table in (JVP, TRANSPOSE, BATCH):
    _table.unsupported([_O.BITCAST], "passes make bitcasts, after all transformations; traced programs have reshapes")


linear(_O.BROADCAST, _O.COPY, _O.DYNAMIC_SLICE, _O.RESHAPE, _O.SLICE, _O.TRANSPOSE)
linear(_O.DYNAMIC_UPDATE_SLICE, _O.PAD, count=2)
linear(_O.CONCATENATE, count=EVERY)
linear(_O.REVERSE, symmetric=True)


@TRANSPOSE.register(_O.BROADCAST)
def _broadcast_transpose(ct: Value, operands: Sequence[Operand], attributes: BroadcastAttributes, shape: Shape) -> Any:
    """Sum over the dimensions that the broadcast added; put the others back into the operand's order."""
    kept = attributes.dimensions
    ct = reduce_sum(ct, tuple(d for d in range(shape.rank) if d not in kept))
    order = sorted(kept)
    return [transpose(ct, [order.index(d) for d in kept])]


@TRANSPOSE.register(_O.COPY)
def _copy_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent."""
    return [ct]


@TRANSPOSE.register(_O.RESHAPE)
def _reshape_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent in the operand's dimensions."""
    return [reshape(ct, operands[0].aval.shape)]


@TRANSPOSE.register(_O.TRANSPOSE)
def _transpose_transpose(ct: Value, operands: Sequence[Operand], attributes: TransposeAttributes, shape: Shape) -> Any:
    """The cotangent in the inverse order of dimensions."""
    inverse = [0] * len(attributes.dimensions)
    for position, d in enumerate(attributes.dimensions):
        inverse[d] = position
    return [transpose(ct, inverse)]


@TRANSPOSE.register(_O.SLICE)
def _slice_transpose(ct: Value, operands: Sequence[Operand], attributes: SliceAttributes, shape: Shape) -> Any:
    """The cotangent, padded with zeros at the elements that the slice left out."""
    return [_padded(ct, operands[0].aval.shape, attributes, shape)]


def _padded(ct: Value, sizes: Sequence[int], attributes: SliceAttributes, shape: Shape) -> Value:
    """Zeros before, after and, for strides, between."""
    low = attributes.start_indices
    interior = [stride - 1 for stride in attributes.strides]
    high = [
        size - start - (count + larger(count - 1, 0) * between)
        for size, start, count, between in zip(sizes, low, shape.dimensions, interior, strict=True)
    ]
    return pad(ct, scalar(0, ct.aval.dtype), low, high, interior)


def _add_to_static_slice(
    before: Value | None, ct: Value, operands: Sequence[Operand], attributes: SliceAttributes, shape: Shape
) -> Value:
    """The cotangent added to a small slice of a large array; else the sum of two arrays, which fuses with others."""
    size = operands[0].aval.size
    is_known = not is_symbolic(size) and not is_symbolic(ct.aval.size)
    is_small = is_known and max(1024, 16 * ct.aval.size) <= size < 1 << 31 and all(s == 1 for s in attributes.strides)
    if before is None or not is_small:
        padded = _padded(ct, operands[0].aval.shape, attributes, shape)
        return padded if before is None else add(before, padded)
    sum_there = add(slice_(before, attributes.start_indices, attributes.limit_indices), ct)
    starts = [scalar(n, np.dtype(np.int32)) for n in attributes.start_indices]
    return bind(_O.DYNAMIC_UPDATE_SLICE, (before, sum_there, *starts))


ADD_TO[_O.SLICE] = _add_to_static_slice


@TRANSPOSE.register(_O.PAD)
def _pad_transpose(ct: Value, operands: Sequence[Operand], attributes: PadAttributes, shape: Shape) -> Any:
    """For the array: the cotangent at the positions of its elements. For the padding value: the sum of all others."""
    array, value = operands
    zero = scalar(0, ct.aval.dtype)
    none = [0] * shape.rank
    unpadded = pad(ct, zero, [-n for n in attributes.low], [-n for n in attributes.high], none)
    strides = [n + 1 for n in attributes.interior]
    to_array = slice_(unpadded, none, unpadded.aval.shape, strides)
    return [
        to_array if isinstance(array, Linear) else None,
        sub(sum_all(ct), sum_all(to_array)) if isinstance(value, Linear) else None,
    ]


@TRANSPOSE.register(_O.CONCATENATE)
def _concatenate_transpose(
    ct: Value, operands: Sequence[Operand], attributes: ConcatenateAttributes, shape: Shape
) -> Any:
    """The operands' parts of the cotangent."""
    start, found = 0, list[Value | None]()
    d = attributes.dimension
    for operand in operands:
        stop = start + operand.aval.shape[d]
        found.append(slice_along(ct, d, start, stop) if isinstance(operand, Linear) else None)
        start = stop
    return found


@TRANSPOSE.register(_O.DYNAMIC_SLICE)
def _dynamic_slice_transpose(
    ct: Value, operands: Sequence[Operand], attributes: DynamicSliceAttributes, shape: Shape
) -> Any:
    """Zeros, with the cotangent written at the same indices."""
    into = _add_to_slice(None, ct, operands, attributes, shape)
    return [into, *(None for _ in operands[1:])]


def _add_to_slice(
    before: Value | None, ct: Value, operands: Sequence[Operand], attributes: DynamicSliceAttributes, shape: Shape
) -> Value:
    """The cotangent added to the slice at the same indices (clamped in the same way)."""
    array, *rest = operands
    starts = _values(rest)
    if before is None:
        before = zeros(array.aval)
    else:
        ct = add(bind(_O.DYNAMIC_SLICE, (before, *starts), attributes), ct)
    return bind(_O.DYNAMIC_UPDATE_SLICE, (before, ct, *starts))


ADD_TO[_O.DYNAMIC_SLICE] = _add_to_slice


def _values(operands: Sequence[Operand]) -> tuple[Value, ...]:
    values = tuple(o for o in operands if not isinstance(o, Linear))
    assert len(values) == len(operands), "start indices are integers: they have no tangents"
    return values


@TRANSPOSE.register(_O.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice_transpose(
    ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape
) -> Any:
    """For the array: the cotangent with zeros at the positions of the update. For the update: the cotangent there."""
    array, update, *rest = operands
    starts = _values(rest)
    to_array = to_update = None
    if isinstance(array, Linear):
        to_array = bind(_O.DYNAMIC_UPDATE_SLICE, (ct, zeros(update.aval), *starts))
    if isinstance(update, Linear):
        to_update = bind(_O.DYNAMIC_SLICE, (ct, *starts), DynamicSliceAttributes(update.aval.shape))
    return [to_array, to_update, *(None for _ in starts)]


# --- batches: a start index for each element makes a gather of a slice, a scatter of an update


@BATCH.register(_O.DYNAMIC_SLICE)
def _dynamic_slice_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: DynamicSliceAttributes, shape: Shape
) -> Any:
    if not any(batched[1:]):
        return aligned(_O.DYNAMIC_SLICE, axis, operands, batched, attributes, shape)
    x, *starts = operands
    on_x = int(batched[0])
    sizes = attributes.dynamic_slice_sizes
    moving = _moving(x.aval.shape[on_x:], sizes)
    indices = _indices(axis, [starts[d] for d in moving], [batched[1 + d] for d in moving])
    gather = GatherAttributes(
        offset_dims=tuple(range(1, len(sizes) + 1)),
        collapsed_slice_dims=(),
        start_index_map=tuple([d + on_x for d in moving]),
        index_vector_dim=1,
        slice_sizes=(smaller(axis.size, 1), *sizes) if on_x else sizes,
        operand_batching_dims=(0,) if on_x else (),
        start_indices_batching_dims=(0,) if on_x else (),
    )
    return bind(_O.GATHER, (x, indices), gather, shape=with_batch_shape(axis, shape)), True


@BATCH.register(_O.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: Attributes, shape: Shape
) -> Any:
    if not any(batched[2:]):
        return aligned(_O.DYNAMIC_UPDATE_SLICE, axis, operands, batched, attributes, shape)
    x, update = all_with_batch(axis, operands[:2], batched[:2])
    starts = operands[2:]
    sizes = update.aval.shape[1:]
    moving = _moving(shape.dimensions, sizes)
    inside = []
    for d in moving:  # a scatter leaves out windows that do not fit; dynamic-update-slice moves it inside
        start = holding(starts[d], shape.dimensions[d])
        last = scalar_like(start, shape.dimensions[d] - sizes[d])
        inside.append(clamp(scalar_like(start, 0), start, last))
    indices = _indices(axis, inside, [batched[2 + d] for d in moving])
    scatter = ScatterAttributes(
        update_window_dims=tuple(range(1, len(sizes) + 1)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=tuple([d + 1 for d in moving]),
        index_vector_dim=1,
        to_apply=last_of_two(shape.element),
        input_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
        unique_indices=True,
    )
    return bind(_O.SCATTER, (x, indices, update), scatter, shape=with_batch_shape(axis, shape)), True


def _moving(array: Sequence[int], block: Sequence[int]) -> list[int]:
    """The dimensions in which a block can be at several places of an array."""
    return [d for d, (size, part) in enumerate(zip(array, block, strict=True)) if part < size]


def _indices(axis: Axis, starts: Sequence[Value], batched: Sequence[bool]) -> Value:
    """An array with a row of start indices for each element."""
    if not starts:
        return zeros(ShapedArray((axis.size, 0), np.dtype(np.int32)))
    columns = all_with_batch(axis, starts, batched)
    return concatenate([reshape(c, (axis.size, 1)) for c in columns], 1)
