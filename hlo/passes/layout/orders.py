"""Orders of dimensions in memory: layouts without their tiles.

An order lists an array's dimensions from the most major to the most minor one: {0,1} in HLO text is the order (1, 0).
`order_rules.py` says which orders an op can handle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...layout import Layout
from ...shape import Shape

Order = tuple[int, ...]


def order_of(shape: Shape) -> Order:
    """The order of an array's dimensions in memory."""
    return shape.array_layout.minor_to_major[::-1]


def in_order(shape: Shape, order: Sequence[int]) -> Shape:
    """The same array, dense in this order."""
    return shape.with_layout(Layout(tuple(reversed(order))))


def identity(rank: int) -> Order:
    """Row-major."""
    return tuple(range(rank))


def positions(order: Sequence[int]) -> dict[int, int]:
    """Dimension -> its position in the order."""
    return {d: place for place, d in enumerate(order)}


def meets(order: Order, wanted: Sequence[int], sizes: Sequence[int]) -> bool:
    """True when the dimensions `wanted` come in this sequence in `order`; dimensions of size 1 do not matter."""
    named = set(wanted)
    return [d for d in order if d in named and sizes[d] != 1] == [d for d in wanted if sizes[d] != 1]


def completed(wanted: Sequence[int], order: Order) -> Order:
    """A whole order with the dimensions `wanted` in this sequence: `order`, with these permuted among themselves."""
    named = set(wanted)
    source = iter(wanted)
    return tuple(next(source) if d in named else d for d in order)


def _groups(source: Sequence[int], target: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest groups of neighbouring dimensions of `source` that have as many elements as a group of `target`.

    Dimensions of size 1 are in no group. The array must have elements.
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
    """The order of an array of sizes `target` that has the same bytes as an array of sizes `source` in `order`, if the
    first is the row-major reshape of the second; None if there is none."""
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
