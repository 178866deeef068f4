"""gather and scatter: the positions of elements are computed as an array, which the machine then follows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hloom.hlo import ElementType, HloInstruction, Opcode, Shape, make_constant, make_instruction
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.ops.movement import IotaAttributes, SliceAttributes
from hloom.hlo.passes.patterns import broadcast, convert, make_splat, reshape, transpose

from .isa import View
from .lowering import LOWER, Lowering

_O = Opcode
_S64, _PRED = ElementType.S64, ElementType.PRED
_LARGEST = np.iinfo(np.int64).max


def _op(opcode: Opcode, *operands: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, operands)


def _compare(direction: ComparisonDirection, a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(_O.COMPARE, (a, b), CompareAttributes(direction))


def _component(indices: HloInstruction, vector: int, number: int) -> HloInstruction:
    """One component of all index vectors, as s64: an array of the other dimensions."""
    sizes = list(indices.shape.dimensions)
    if vector == len(sizes):
        one = indices
    else:
        starts, limits = [0] * len(sizes), list(sizes)
        starts[vector], limits[vector] = number, number + 1
        part = SliceAttributes(tuple(starts), tuple(limits), (1,) * len(sizes))
        one = reshape(make_instruction(_O.SLICE, (indices,), part), [s for d, s in enumerate(sizes) if d != vector])
    if one.shape.element is ElementType.U64:
        one = _op(_O.MINIMUM, one, make_splat(np.uint64(_LARGEST), one.shape))
    return convert(one, _S64)


def _along(values: HloInstruction, dimensions: Sequence[int], sizes: Sequence[int]) -> HloInstruction:
    return broadcast(values, Shape.array(_S64, tuple(sizes)), tuple(dimensions))


def _counted(dimension: int, sizes: Sequence[int]) -> HloInstruction:
    return make_instruction(_O.IOTA, (), IotaAttributes(dimension), Shape.array(_S64, tuple(sizes)))


def _splat(value: int, sizes: Sequence[int]) -> HloInstruction:
    return make_splat(np.int64(value), Shape.array(_S64, tuple(sizes)))


class _Positions:
    """Where elements are in a flat array: the sum, over its dimensions, of index times stride."""

    def __init__(self, array: Sequence[int], sizes: Sequence[int]) -> None:
        self._array = array
        self._sizes = sizes
        self.total = _splat(0, sizes)

    def add(self, dimension: int, index: HloInstruction) -> None:
        """Add indices along a dimension of the array."""
        stride = math.prod(self._array[dimension + 1 :])
        self.total = _op(_O.ADD, self.total, _op(_O.MULTIPLY, index, _splat(stride, self._sizes)))


@LOWER.register(_O.GATHER)
def gather(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """Element by element, from clamped start indices."""
    a, (array, _) = instruction.attributes, operands
    (result,) = results
    if not result.count:
        return
    indices = lowering.parameter(instruction.operands[1].shape.element, operands[1])
    batch = [d for d in range(len(result.sizes)) if d not in a.offset_dims]
    found = _Positions(array.sizes, result.sizes)
    offsets = iter(a.offset_dims)
    for d, size in enumerate(array.sizes):
        if d in a.operand_batching_dims:
            where = a.start_indices_batching_dims[a.operand_batching_dims.index(d)]
            found.add(d, _counted(batch[where - (where > a.index_vector_dim)], result.sizes))
            continue
        if d not in a.collapsed_slice_dims:
            found.add(d, _counted(next(offsets), result.sizes))
        if d in a.start_index_map:
            start = _component(indices, a.index_vector_dim, a.start_index_map.index(d))
            limits = [make_constant(np.int64(limit)) for limit in (0, size - a.slice_sizes[d])]
            found.add(d, _along(_op(_O.CLAMP, limits[0], start, limits[1]), batch, result.sizes))
    positions = lowering.value(found.total)
    lowering.assembler.gather(
        result.reshape(result.count), array.reshape(array.count), positions.reshape(result.count)
    )


@LOWER.register(_O.SCATTER)
def scatter(lowering: Lowering, instruction: HloInstruction, operands: Sequence[View], results: Sequence[View]) -> None:
    """One index after the other, since two may be equal; the elements of its window at once. Windows that are partly
    outside get the position -1."""
    a, count = instruction.attributes, len(results)
    arrays, updates = operands[:count], operands[count + 1 :]
    for array, result in zip(arrays, results, strict=True):
        lowering.assembler.copy(result, array)
    sizes = updates[0].sizes
    if not updates[0].count or not arrays[0].count:
        return
    indices = lowering.parameter(instruction.operands[count].shape.element, operands[count])
    batch = [d for d in range(len(sizes)) if d not in a.update_window_dims]
    found = _Positions(arrays[0].sizes, sizes)
    inside = make_splat(True, Shape.array(_PRED, tuple(sizes)))
    windows = iter(a.update_window_dims)
    for d, size in enumerate(arrays[0].sizes):
        if d in a.input_batching_dims:
            where = a.scatter_indices_batching_dims[a.input_batching_dims.index(d)]
            found.add(d, _counted(batch[where - (where > a.index_vector_dim)], sizes))
            continue
        window = 1
        if d not in a.inserted_window_dims:
            dimension = next(windows)
            window = sizes[dimension]
            found.add(d, _counted(dimension, sizes))
        if d in a.scatter_dims_to_operand_dims:
            start = _component(indices, a.index_vector_dim, a.scatter_dims_to_operand_dims.index(d))
            start = _along(start, batch, sizes)
            for direction, bound in ((ComparisonDirection.GE, 0), (ComparisonDirection.LE, size - window)):
                inside = _op(_O.AND, inside, _compare(direction, start, _splat(bound, sizes)))
            found.add(d, start)
    positions = _op(_O.SELECT, inside, found.total, _splat(-1, sizes))
    order = [*batch, *a.update_window_dims]
    rows = math.prod(sizes[d] for d in batch)
    columns = updates[0].count // rows

    def matrix(value: HloInstruction) -> View:
        transposed = value if order == list(range(len(sizes))) else transpose(value, order)
        return lowering.value(transposed).reshape(rows, columns)

    types = [o.shape.element for o in instruction.operands[count + 1 :]]
    given = [matrix(lowering.parameter(t, u)) for t, u in zip(types, updates, strict=True)]
    places = matrix(positions)
    flat = [result.reshape(result.count) for result in results]
    for row in range(rows):
        parts = [m.part(0, row, 1).reshape(columns) for m in (places, *given)]
        lowering.assembler.combine(a.to_apply, flat, parts[0], parts[1:])
