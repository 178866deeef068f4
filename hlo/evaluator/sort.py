"""Sorting by a comparator, and the k largest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..element_type import element_type_of
from ..opcode import Opcode
from ..ops.sort import SortAttributes, TopKAttributes
from ..shape import Shape
from .scalar_computations import Applied
from .table import EVALUATE, NDArray, Value

Before = Callable[[NDArray, NDArray], NDArray]
"""before(i, j): does element i go before element j of the same row?"""


@EVALUATE.register(Opcode.SORT)
def _sort(shape: Shape, attributes: SortAttributes, *operands: NDArray) -> Value:
    """Always stable. A comparator that is not a strict weak order gives some permutation."""
    first, axis = operands[0], attributes.dimension
    results: tuple[NDArray, ...] = operands
    if first.size:
        moved = np.moveaxis(first, axis, -1).shape
        rows = [np.moveaxis(o, axis, -1).reshape(-1, first.shape[axis]) for o in operands]
        order = _sorted_order(Applied(attributes.to_apply), rows)
        taken = [np.take_along_axis(r, order, 1).reshape(moved) for r in rows]
        results = tuple(np.ascontiguousarray(np.moveaxis(t, -1, axis)) for t in taken)
    return results[0] if len(operands) == 1 else results


def _sorted_order(comparator: Applied, rows: Sequence[NDArray]) -> NDArray:
    """For each row, the indices of its elements in sorted order."""
    for guess in _guesses(rows[0]):
        if _is_sorted(comparator, rows, guess):
            return guess
    return _merged_order(comparator, rows)


def _guesses(keys: NDArray) -> Iterator[NDArray]:
    """The orders of most sorts, which NumPy computes much faster: by the first operand, ascending or descending."""
    yield np.argsort(keys, axis=1, kind="stable")
    yield keys.shape[1] - 1 - np.argsort(keys[:, ::-1], axis=1, kind="stable")[:, ::-1]


def _is_sorted(comparator: Applied, rows: Sequence[NDArray], order: NDArray) -> bool:
    """Is this the stable order? If the comparator is a strict weak order, looking at neighbours is enough."""
    taken = [np.take_along_axis(r, order, 1) for r in rows]
    earlier, later = [t[:, :-1] for t in taken], [t[:, 1:] for t in taken]
    forward, backward = (
        comparator([side for pair in zip(x, y) for side in pair])[0] for x, y in ((earlier, later), (later, earlier))
    )
    return bool(np.all(~backward & (forward | (order[:, :-1] < order[:, 1:]))))


def _merged_order(comparator: Applied, rows: Sequence[NDArray]) -> NDArray:
    """A merge sort of all rows at once: each element finds by bisection how many elements of the neighbouring run go
    before it."""
    count, size = rows[0].shape
    order = np.tile(np.arange(size), (count, 1))
    places = order
    width = 1
    while width < size:
        current = [np.take_along_axis(r, order, 1) for r in rows]

        def before(i: NDArray, j: NDArray, current: Sequence[NDArray] = current) -> NDArray:
            return comparator([np.take_along_axis(c, k, 1) for c in current for k in (i, j)])[0]

        merged = _merged_places(before, places, width, size)
        order = np.take_along_axis(order, np.argsort(merged, axis=1, kind="stable"), 1)
        width *= 2
    return order


def _merged_places(before: Before, places: NDArray, width: int, size: int) -> NDArray:
    """The new index of each element when runs of `width` are merged in pairs."""
    run = places // width
    is_left = run % 2 == 0
    low = np.minimum((run ^ 1) * width, size)
    start, high = low, np.minimum(low + width, size)
    while np.any(low < high):
        middle = np.minimum((low + high) // 2, size - 1)
        # Among equal elements, the left run's go first.
        earlier = before(np.where(is_left, middle, places), np.where(is_left, places, middle)) == is_left
        searching = low < high
        low, high = np.where(searching & earlier, middle + 1, low), np.where(searching & ~earlier, middle, high)
    merged: NDArray = run // 2 * 2 * width + (places - run * width) + (low - start)
    return merged


@EVALUATE.register(Opcode.TOPK)
def _topk(shape: Shape, attributes: TopKAttributes, operand: NDArray) -> Value:
    """In descending order (ascending for the smallest); of equal elements the first comes first. Floats in their total
    order: NaN above all others, -NaN below."""
    element = element_type_of(operand.dtype)
    keys = operand
    if element.is_small:
        keys = operand.astype(np.float32 if element.is_floating else np.int32)
    if element.is_floating:
        bits = keys.view(f"i{keys.dtype.itemsize}")
        keys = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    order = np.argsort(~keys if attributes.largest else keys, axis=-1, kind="stable")[..., : attributes.k]
    return np.take_along_axis(operand, order, -1), order.astype(np.int32)
