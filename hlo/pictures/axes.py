"""Axes of a picture: which coordinates are shown of a dimension that is too long to show all of it."""

from __future__ import annotations

from ..support.records import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a picture.

    `size` counts elements, `extent` also the padding behind them.
    `shown` are coordinates in ascending order; None stands for those left out between its neighbours.
    """

    name: str
    size: int
    extent: int
    shown: tuple[int | None, ...]

    @property
    def is_whole(self) -> bool:
        return None not in self.shown


def shown_coordinates(size: int, extent: int, block: int, most: int, unit: int = 1) -> tuple[int | None, ...]:
    """The coordinates in an excerpt of at most `most`: the beginning and the end of the first tile, of the second and
    of the last, and where the elements end; of short tiles whole ones. Never fewer than the first and the last. `unit`
    coordinates in a row stay together, where that many fit three times."""
    most = max(most, 3)
    if extent <= most:
        return tuple(range(extent))
    if 1 < unit <= most // 3:
        coarse = shown_coordinates(-(-size // unit), -(-extent // unit), -(-block // unit), most // unit)
        shown: list[int | None] = []
        for at in coarse:
            shown += [None] if at is None else range(at * unit, min((at + 1) * unit, extent))
        return tuple(shown)
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
