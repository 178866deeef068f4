"""Axes of a picture: which coordinates are shown of a dimension that is too long to show all of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a picture.

    `size` counts elements, `extent` also the padding behind them; `block` is how many coordinates lie in one tile.
    `shown` are coordinates in ascending order; None stands for those left out between its neighbours.
    """

    name: str
    size: int
    extent: int
    block: int
    shown: tuple[int | None, ...]

    @property
    def is_whole(self) -> bool:
        return None not in self.shown


def make_axis(name: str, size: int, extent: int, block: int, most: int) -> Axis:
    """An axis that shows at most about `most` coordinates: all, or those at the edges of tiles and of the array."""
    return Axis(name, size, extent, block, shown_coordinates(size, extent, block, most))


def shown_coordinates(size: int, extent: int, block: int, most: int) -> tuple[int | None, ...]:
    """What an excerpt shows: the beginning and the end of the first tile, of the second and of the last, and where the
    elements end; of short tiles whole ones. Never fewer than the first and the last coordinate."""
    most = max(most, 3)
    if extent <= most:
        return tuple(range(extent))
    block = min(max(block, 1), extent)
    last = (extent - 1) // block * block
    wanted: list[int] = [0, extent - 1]  # in the order of importance
    if block <= most // 2:  # whole tiles from the start, as many as leave room for the end
        wanted += range((most - 2) // block * block + 2)
    else:
        wanted += [block - 1, 1, block, 2, 2 * block - 1, last, block + 1, size - 1, size, 3, last + 1, extent - 2]
    chosen: set[int] = set()
    for coordinate in wanted:
        if len(_with_gaps({*chosen, coordinate})) <= most and 0 <= coordinate < extent:
            chosen.add(coordinate)
    return _with_gaps(chosen)


def _with_gaps(chosen: set[int]) -> tuple[int | None, ...]:
    """Coordinates in order, None where some are missing; one that is missing alone is shown instead."""
    shown: list[int | None] = []
    previous = -1
    for coordinate in sorted(chosen):
        if coordinate == previous + 2:
            shown.append(coordinate - 1)
        elif coordinate > previous + 1:
            shown.append(None)
        shown.append(coordinate)
        previous = coordinate
    return tuple(shown)
