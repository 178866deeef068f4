"""The order of dimensions in which an array takes the least memory.

Tiles pad the most minor dimensions, so the choice of these matters: s32[2048,1,128,128,4] in tiles of (8,128) takes
32 times the memory of its elements if the dimension of size 4 is most minor, and no more than they do in other orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from ..layout import Layout
from ..shape import Shape
from ..support.records import dataclass

MOST_ORDERS = 100_000
"""The most orders that are tried; equal sizes count as the same. More than any array of rank 8 has."""

ChooseLayout = Callable[[Shape], Layout]
"""choose(an array with dimensions in the order of memory) -> the layout that a target gives it."""


@dataclass(frozen=True, slots=True)
class BetterLayout:
    """A layout with the fewest bytes of all orders of an array's dimensions: `saved` bytes less than before."""

    layout: Layout
    byte_size: int
    saved: int


@lru_cache(maxsize=1024)
def better_layout(shape: Shape, choose: ChooseLayout | None = None) -> BetterLayout | None:
    """The order of dimensions with the fewest bytes, or None if no order is better than the array's.

    Either with the array's tiles, packing and alignment; or with those that `choose` gives to each order. That may
    depend on the two most minor dimensions, as the TPU's does, and on as many as the array's tiles touch. If several
    orders are best, it is the one that moves the fewest dimensions. None also for arrays with so many dimensions that
    more than MOST_ORDERS orders may differ.
    """
    layout = shape.array_layout
    if (choose is None and not layout.tiles) or shape.rank < 2:
        return None  # all orders need the same bytes
    best: tuple[int, int, tuple[int, ...]] | None = None
    own = layout.minor_to_major
    chosen = layout
    minor = max(_minor_dimensions(layout), 0 if choose is None else 2)
    for number, order in enumerate(_orders(shape, minor)):
        if number == MOST_ORDERS:
            return None
        candidate = _reordered(shape, order, choose)
        moved = sum(a != b for a, b in zip(order, own, strict=True))
        key = (shape.with_layout(candidate).byte_size, moved, order)
        if best is None or key < best:
            best, chosen = key, candidate
    assert best is not None
    saved = shape.byte_size - best[0]
    return BetterLayout(chosen, best[0], saved) if saved > 0 else None


def _reordered(shape: Shape, order: tuple[int, ...], choose: ChooseLayout | None) -> Layout:
    """The array's layout with another order of dimensions."""
    own = shape.array_layout
    if choose is None:
        return replace(own, minor_to_major=order)
    physical = [shape.dimensions[d] for d in reversed(order)]
    return replace(choose(Shape.array(shape.element, physical)), minor_to_major=order, memory_space=own.memory_space)


def _minor_dimensions(layout: Layout) -> int:
    """How many of the most minor dimensions the tiles touch: the order of the others does not matter."""
    touched = made = 0
    for tile in layout.tiles:
        rank, parts = len(tile.dimensions), sum(d is not None for d in tile.dimensions)
        touched += max(rank - made, 0)
        made = max(made - rank, 0) + 2 * parts
    return min(touched, len(layout.minor_to_major))


def _orders(shape: Shape, minor: int) -> Iterator[tuple[int, ...]]:
    """All orders that may differ in size: each choice of the `minor` most minor dimensions (of dimensions with equal
    sizes the first); the others keep their order as far as possible."""
    own = shape.array_layout.minor_to_major
    sizes = list(zip(shape.dimensions, shape.array_layout.padded_dimensions or shape.dimensions, strict=True))

    def extend(order: list[int], count: int) -> Iterator[tuple[int, ...]]:
        """Orders in which the first `count` dimensions are as in `order`."""
        if count >= minor:
            yield tuple(order)
            return
        seen = set()
        for k in range(count, len(order)):  # the present one first, so that it stays among equal sizes
            if sizes[order[k]] not in seen:
                seen.add(sizes[order[k]])
                swapped = list(order)
                swapped[count], swapped[k] = order[k], order[count]
                yield from extend(swapped, count + 1)

    yield from extend(list(own), 0)
