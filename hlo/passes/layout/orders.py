"""Orders of dimensions in memory: what layouts say without their tiles.

An order lists an array's dimensions from the most major to the most minor one: {0,1} in HLO text is the order (1, 0).
Which orders an op can deal with stands in `order_rules.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...layout import Layout
from ...shape import Shape

Order = tuple[int, ...]


def order_of(shape: Shape) -> Order:
    """The order in which an array's dimensions lie."""
    return shape.array_layout.minor_to_major[::-1]


def in_order(shape: Shape, order: Sequence[int]) -> Shape:
    """The same array, dense in this order."""
    return shape.with_layout(Layout(tuple(reversed(order))))


def identity(rank: int) -> Order:
    """Row-major."""
    return tuple(range(rank))


def positions(order: Sequence[int]) -> dict[int, int]:
    """Dimension -> its place in memory."""
    return {d: place for place, d in enumerate(order)}


def meets(order: Order, wanted: Sequence[int], sizes: Sequence[int]) -> bool:
    """True when the dimensions `wanted` come in this sequence in `order`; those of size 1 have no place in memory."""
    named = set(wanted)
    return [d for d in order if d in named and sizes[d] != 1] == [d for d in wanted if sizes[d] != 1]


def completed(wanted: Sequence[int], order: Order) -> Order:
    """A whole order with the dimensions `wanted` in this sequence: `order`, in which they take one another's places."""
    named = set(wanted)
    source = iter(wanted)
    return tuple(next(source) if d in named else d for d in order)


def _groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of neighbouring dimensions of the one that are as many elements as a group of the other.

    Dimensions of size 1 are in none. There must be elements.
    """
    groups: list[tuple[list[int], list[int]]] = []
    left = [d for d, size in enumerate(source) if size != 1]
    right = [d for d, size in enumerate(target) if size != 1]
    while left:
        group: tuple[list[int], list[int]] = ([left.pop(0)], [right.pop(0)])
        while (a := math.prod(source[d] for d in group[0])) != (b := math.prod(target[d] for d in group[1])):
            if a < b:
                group[0].append(left.pop(0))
            else:
                group[1].append(right.pop(0))
        groups.append(group)
    return groups


def reshaped_order(source: Sequence[int], target: Sequence[int], order: Order) -> Order | None:
    """The order in which an array of sizes `source`, lying in `order`, is a row-major reshape of itself to `target`,
    with the same bytes; None if there is none."""
    if 0 in source:
        return identity(len(target))
    groups = _groups(source, target)
    group_of = {group[0][0]: group for group in groups}
    rest = [d for d in order if source[d] != 1]
    found: list[int] = []
    while rest:
        group = group_of.get(rest[0])
        if group is None or rest[: len(group[0])] != group[0]:
            return None
        found += group[1]
        del rest[: len(group[0])]
    return completed(found, identity(len(target)))
