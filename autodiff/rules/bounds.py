"""Where the indices of an op must lie, for `checkify`: XLA clamps or ignores those that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...hlo.opcode import Opcode
from ...tracer.core import Value
from ...tracer.ops import reshape, slice_along


class Bound(NamedTuple):
    """A position, or an array of positions, that must be in [0, last]."""

    shape: tuple[int, ...]
    """Of the array."""
    axis: int
    position: Value
    last: int


def _block_bounds(
    array: Value, starts: Sequence[Value], sizes: Sequence[int]
) -> list[Bound]:
    shape = array.aval.shape
    every = enumerate(zip(starts, shape, sizes, strict=True))
    return [Bound(shape, axis, start, n - size) for axis, (start, n, size) in every if n != size]


def _dynamic_slice_bounds(operands: Sequence[Value], attributes: Any) -> list[Bound]:
    return _block_bounds(operands[0], operands[1:], attributes.dynamic_slice_sizes)


def _update_bounds(operands: Sequence[Value], attributes: Any) -> list[Bound]:
    return _block_bounds(operands[0], operands[2:], operands[1].aval.shape)


def _gather_bounds(operands: Sequence[Value], attributes: Any) -> list[Bound]:
    return _index_bounds(operands[0], operands[1], attributes, attributes.start_index_map, attributes.slice_sizes)


def _scatter_bounds(operands: Sequence[Value], attributes: Any) -> list[Bound]:
    """The windows have the sizes of the updates' window dimensions, and 1 in the others."""
    count = len(operands) // 2
    array, indices, updates = operands[0], operands[count], operands[count + 1]
    absent = {*attributes.inserted_window_dims, *attributes.input_batching_dims}
    window = iter([updates.aval.shape[d] for d in sorted(attributes.update_window_dims)])
    sizes = [1 if d in absent else next(window) for d in range(array.aval.ndim)]
    return _index_bounds(array, indices, attributes, attributes.scatter_dims_to_operand_dims, sizes)


def _index_bounds(
    array: Value, indices: Value, attributes: Any, dims: Sequence[int], sizes: Sequence[int]
) -> list[Bound]:
    place, shape = attributes.index_vector_dim, indices.aval.shape
    found = []
    for k, axis in enumerate(dims):
        index = indices
        if place < len(shape):
            index = reshape(slice_along(indices, place, k, k + 1), [n for d, n in enumerate(shape) if d != place])
        found.append(Bound(array.aval.shape, axis, index, array.aval.shape[axis] - sizes[axis]))
    return found


BOUNDS: dict[Opcode, Callable[[Sequence[Value], Any], list[Bound]]] = {
    Opcode.DYNAMIC_SLICE: _dynamic_slice_bounds,
    Opcode.DYNAMIC_UPDATE_SLICE: _update_bounds,
    Opcode.GATHER: _gather_bounds,
    Opcode.SCATTER: _scatter_bounds,
}
"""rule(operands, attributes) -> a bound for each dimension that is indexed; the positions have one shape."""
