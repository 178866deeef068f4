"""The semantics of gather and scatter: for every dimension of the array, an array of indices into it.

The index along dimension d is the start index's component for d, if it has one, plus the index in the slice or window.
Index arrays have size 1 in the dimensions that they do not depend on, and NumPy broadcasts them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir import HloComputation
from ..opcode import Opcode
from ..ops.indexing import GatherAttributes, ScatterAttributes
from ..shape import Shape
from .scalar_computations import Applied, as_ufunc
from .table import EVALUATE, NDArray, Value


def _components(indices: NDArray, index_vector_dim: int) -> NDArray:
    """The index components as the first dimension, as s64; larger unsigned ones become the largest s64."""
    if index_vector_dim == indices.ndim:
        indices = indices[..., None]
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return np.moveaxis(indices.astype(np.int64), index_vector_dim, 0)


def _along(values: NDArray, dimensions: Sequence[int], rank: int) -> NDArray:
    """`values` with its dimensions at `dimensions` (ascending) of `rank` ones, and size 1 in the others."""
    sizes = [1] * rank
    for d, size in zip(dimensions, values.shape):
        sizes[d] = size
    return values.reshape(sizes)


def _batching_positions(
    array_dims: Sequence[int], index_dims: Sequence[int], vector: int, sizes: Sequence[int], batch: Sequence[int],
    rank: int,
) -> dict[int, NDArray]:  # fmt: skip
    """Along a batching dimension of the array, the index is that along the indices' corresponding dimension."""
    found = {}
    for d, b in zip(array_dims, index_dims):
        where = batch[b - (b > vector)]
        found[d] = _along(np.arange(sizes[d]), [where], rank)
    return found


@EVALUATE.register(Opcode.GATHER)
def _gather(shape: Shape, attributes: GatherAttributes, operand: NDArray, indices: NDArray) -> NDArray:
    """Start indices are clamped so that the slice fits; elements of a result that slices have none for are zero."""
    rank, sizes = shape.rank, attributes.slice_sizes
    if 0 in sizes:
        return np.zeros(shape.dimensions, operand.dtype)
    batch = [d for d in range(rank) if d not in attributes.offset_dims]
    starts = _components(indices, attributes.index_vector_dim)
    positions = _batching_positions(
        attributes.operand_batching_dims, attributes.start_indices_batching_dims, attributes.index_vector_dim,
        operand.shape, batch, rank,
    )  # fmt: skip
    offset_dims = iter(attributes.offset_dims)
    for d in range(operand.ndim):
        if d in positions:
            continue
        positions[d] = np.zeros([1] * rank, np.int64)
        if d not in attributes.collapsed_slice_dims:
            positions[d] = _along(np.arange(sizes[d]), [next(offset_dims)], rank)
        if d in attributes.start_index_map:
            start = starts[attributes.start_index_map.index(d)].clip(0, operand.shape[d] - sizes[d])
            positions[d] = positions[d] + _along(start, batch, rank)
    result = operand[tuple(positions[d] for d in range(operand.ndim))]
    return np.ascontiguousarray(np.broadcast_to(result, shape.dimensions)).reshape(shape.dimensions)


@EVALUATE.register(Opcode.SCATTER)
def _scatter(shape: Shape, attributes: ScatterAttributes, *operands: NDArray) -> Value:
    """Updates are combined in the order of their indices; updates with a window that is partly outside of the array are
    skipped."""
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    array, rank = arrays[0], updates[0].ndim
    if not array.size:
        return arrays[0] if count == 1 else arrays
    batch = [d for d in range(rank) if d not in attributes.update_window_dims]
    starts = _components(indices, attributes.index_vector_dim)
    positions = _batching_positions(
        attributes.input_batching_dims, attributes.scatter_indices_batching_dims, attributes.index_vector_dim,
        array.shape, batch, rank,
    )  # fmt: skip
    inside = np.ones(starts.shape[1:], bool)
    window_dims = iter(attributes.update_window_dims)
    for d in range(array.ndim):
        if d in positions:
            continue
        window = 1
        positions[d] = np.zeros([1] * rank, np.int64)
        if d not in attributes.inserted_window_dims:
            dimension = next(window_dims)
            window = updates[0].shape[dimension]
            positions[d] = _along(np.arange(window), [dimension], rank)
        if d in attributes.scatter_dims_to_operand_dims:
            start = starts[attributes.scatter_dims_to_operand_dims.index(d)]
            inside &= (start >= 0) & (start <= array.shape[d] - window)
            positions[d] = positions[d] + _along(start, batch, rank)
    # One row for each index, one column for each element of the window.
    order = [*batch, *attributes.update_window_dims]
    kept = inside.reshape(-1)

    def rows(values: NDArray) -> NDArray:
        full = np.broadcast_to(values, updates[0].shape).transpose(order)
        return full.reshape(kept.size, -1 if kept.size else 0)[kept].reshape(-1)

    places = rows(np.zeros([1] * rank, np.int64))
    for d in range(array.ndim):
        places = places * array.shape[d] + rows(positions[d])
    results = tuple(a.reshape(-1).copy() for a in arrays)
    _combine(attributes.to_apply, results, places, [rows(u) for u in updates])
    shaped = tuple(r.reshape(array.shape) for r in results)
    return shaped[0] if count == 1 else shaped


def _combine(
    combiner: HloComputation, results: tuple[NDArray, ...], places: NDArray, updates: Sequence[NDArray]
) -> None:
    """Combine update i into element `places[i]` of the results, in order: round r has each element's r-th update."""
    ufunc = as_ufunc(combiner)
    if ufunc is not None and len(results) == 1:
        ufunc.at(results[0], places, updates[0])
        return
    apply = Applied(combiner)
    order = np.argsort(places, kind="stable")
    places, updates = places[order], [u[order] for u in updates]
    first = np.ones(places.size, bool)
    first[1:] = places[1:] != places[:-1]
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=places.size)
    turn = 0
    while starts.size:
        where = places[starts]
        new = apply([*(r[where] for r in results), *(u[starts + turn] for u in updates)])
        for result, values in zip(results, new):
            result[where] = values
        turn += 1
        starts, counts = starts[counts > turn], counts[counts > turn]


