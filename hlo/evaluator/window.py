"""The semantics of reduce-window and select-and-scatter: for each position of the window, its elements in order.

The array is expanded with its holes: dilated, then padded or cropped. A second array holds the origin of each cell, -1
for a hole. Holes do not take part, so that an init value enters a window's result once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..opcode import Opcode
from ..ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from ..shape import Shape
from ..window import Window, WindowDimension
from .scalar_computations import Applied, as_ufunc, reduced_in
from .table import EVALUATE, NDArray, Value


def _origins(sizes: Sequence[int], window: Window) -> NDArray:
    """The area that the window slides over: in each cell the row-major position of its element, or -1."""
    area = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    for d, part in enumerate(window):
        count = area.shape[d]
        spread_sizes = list(area.shape)
        spread_sizes[d] = max((count - 1) * part.base_dilation + 1, 0)
        spread = np.full(spread_sizes, -1, np.int64)
        every = [slice(None)] * area.ndim
        every[d] = slice(None, None, part.base_dilation)
        spread[tuple(every)] = area
        low, high = part.padding_low, part.padding_high
        spread = np.pad(spread, [(max(low, 0), max(high, 0)) if e == d else (0, 0) for e in range(area.ndim)],
                        constant_values=-1)  # fmt: skip
        inside = [slice(None)] * area.ndim
        inside[d] = slice(max(-low, 0), max(spread.shape[d] - max(-high, 0), max(-low, 0)))
        area = spread[tuple(inside)]
    return area


def _elements(sizes: Sequence[int], window: Window, results: Sequence[int]) -> Iterator[NDArray]:
    """For each element of the window, in order: its position in the array (or -1), for all window positions at once."""
    area = _origins(sizes, window)
    if 0 in results:
        return
    for element in np.ndindex(*(part.size for part in window)):
        where = []
        for part, offset, count in zip(window, element, results, strict=True):
            first = offset * part.window_dilation
            where.append(slice(first, first + (count - 1) * part.stride + 1, part.stride))
        yield area[tuple(where)]


def _scanned(sizes: Sequence[int], window: Window) -> tuple[int, bool] | None:
    """The dimension along which each window reaches from one end to its own position, and whether from the far end.
    None if the window is another one."""
    found = None
    for d, (size, part) in enumerate(zip(sizes, window, strict=True)):
        if part == WindowDimension():
            continue
        forwards, backwards = (WindowDimension(size, 1, *p) for p in ((size - 1, 0), (0, size - 1)))
        if found is not None or part not in (forwards, backwards):
            return None
        found = d, part == backwards
    return found


def _prefixes(
    arrays: Sequence[NDArray], d: int, backwards: bool,
    combine: Callable[[Sequence[NDArray], Sequence[NDArray]], Sequence[NDArray]],
) -> list[NDArray]:  # fmt: skip
    """All prefixes (or suffixes) along a dimension: reducers are associative, so each has twice as many elements after
    each step."""
    found = [np.moveaxis(a, d, 0) for a in arrays]
    reach = 1
    while reach < len(found[0]):
        near, far = (slice(None, -reach), slice(reach, None))
        joined = combine([a[near] for a in found], [a[far] for a in found])
        ends = [a[-reach:] if backwards else a[:reach] for a in found]
        parts = [(j, e) if backwards else (e, j) for j, e in zip(joined, ends, strict=True)]
        found = [np.concatenate(pair) for pair in parts]
        reach *= 2
    return [np.moveaxis(a, 0, d) for a in found]


@EVALUATE.register(Opcode.REDUCE_WINDOW)
def _reduce_window(shape: Shape, attributes: ReduceWindowAttributes, *operands: NDArray) -> Value:
    """f16 and bf16 sums, products and extrema are computed in f32 and rounded once; XLA rounds some partial results."""
    count = len(operands) // 2
    arrays, inits = operands[:count], operands[count:]
    leaves = list(shape.leaves())
    results = leaves[0].dimensions
    ufunc = as_ufunc(attributes.to_apply) if count == 1 else None
    if ufunc is not None:
        wide = reduced_in(leaves[0].element)
        arrays, inits = tuple(x.astype(wide) for x in arrays), tuple(x.astype(wide) for x in inits)
    sums = [np.full(results, init) for init in inits]
    apply = Applied(attributes.to_apply)

    def combine(before: Sequence[NDArray], elements: Sequence[NDArray]) -> Sequence[NDArray]:
        return (ufunc(before[0], elements[0]),) if ufunc is not None else apply([*before, *elements])

    scanned = _scanned(arrays[0].shape, attributes.window)
    if scanned is not None and 0 not in results:
        prefixes = _prefixes(arrays, *scanned, combine)
        after = combine(sums, prefixes)
        rounded = tuple(total.astype(leaf.element.dtype, copy=False) for total, leaf in zip(after, leaves, strict=True))
        return rounded[0] if count == 1 else rounded
    flat = [array.reshape(-1) for array in arrays]
    for origins in _elements(arrays[0].shape, attributes.window, results):
        there = origins >= 0
        if not there.any():
            continue
        elements = [array[origins[there]] for array in flat]
        before = [total[there] for total in sums]
        after = combine(before, elements)
        for total, new in zip(sums, after, strict=True):
            total[there] = new
    rounded = tuple(total.astype(leaf.element.dtype, copy=False) for total, leaf in zip(sums, leaves, strict=True))
    return rounded[0] if count == 1 else rounded


@EVALUATE.register(Opcode.SELECT_AND_SCATTER)
def _select_and_scatter(
    shape: Shape, attributes: SelectAndScatterAttributes, array: NDArray, source: NDArray, init: NDArray
) -> NDArray:
    """Each window position selects an element: its first, until select(selected, next) is false for a next one. Then
    each element of the source, in row-major order, is combined with the result's element that its window selected."""
    flat = array.reshape(-1)
    selected = np.full(source.shape, -1, np.int64)
    select, scatter = Applied(attributes.select), Applied(attributes.scatter)
    for origins in _elements(array.shape, attributes.window, source.shape):
        there, first = origins >= 0, selected < 0
        selected[there & first] = origins[there & first]
        later = there & ~first
        if later.any():
            (keep,) = select([flat[selected[later]], flat[origins[later]]])
            selected[later] = np.where(keep, selected[later], origins[later])
    result = np.full(array.size, init, array.dtype)
    targets, values = selected[selected >= 0], source[selected >= 0]
    # In rounds in which each target occurs once: the k-th round has each target's k-th value.
    for places in _rounds(targets):
        (result[targets[places]],) = scatter([result[targets[places]], values[places]])
    return result.reshape(shape.dimensions)


def _rounds(targets: NDArray) -> Iterator[NDArray]:
    """Positions in `targets`: first the first occurrence of each value, then its second, and so on."""
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if ordered.size else order
    occurrence = np.arange(ordered.size) - np.repeat(starts, np.diff(np.r_[starts, ordered.size]))
    for k in range(int(occurrence.max(initial=-1)) + 1):
        yield order[occurrence == k]
