"""The contents of a picture of a layout: cells with their position in memory, tile by tile, and memory with its
elements.

Everything comes from the shape's physical form and from `multi_index`, cell by cell for those that are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..index_util import multi_index
from ..physical_form import PhysicalDimension
from ..shape import Shape
from ..support.lazy import lazy_property
from ..support.records import dataclass
from .axes import Axis, shown_coordinates
from .facts import dimension_names

COLOURS = 8
_STEP = 3
"""The step through the colours, along a dimension with neighbours that would have the same one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place in memory, as it is drawn. `tile` and `box` say which first-level tile and which second-level tile it
    is in; `colour` is a number below COLOURS, without tiles one for each run along the most minor dimension. `index` is
    None for padding."""

    place: int
    index: tuple[int, ...] | None
    tile: tuple[int, ...]
    box: tuple[int, ...]
    colour: int

    @property
    def is_padding(self) -> bool:
        return self.index is None


@dataclass(frozen=True, slots=True)
class Slice:
    """A two-dimensional part of an array: `cells` by row and column, None where a row or column stands for those that
    are left out, or where no place in memory belongs to the coordinates."""

    outer: tuple[tuple[int, int], ...]
    """The other dimensions: their number, and where the slice lies along it."""
    cells: tuple[tuple[Cell | None, ...], ...]


@dataclass(frozen=True)
class LayoutView:
    """An array shape, seen by its layout."""

    shape: Shape

    @lazy_property
    def names(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return dimension_names(self.shape)

    @lazy_property
    def drawn(self) -> tuple[int, int] | tuple[int] | tuple[()]:
        """The dimensions that a slice shows, lower number first: the two most minor ones."""
        minor = self.shape.array_layout.minor_to_major[:2]
        return tuple(sorted(minor))  # type: ignore[return-value]

    @lazy_property
    def is_tiled(self) -> bool:
        return bool(self.shape.array_layout.tiles)

    @lazy_property
    def tile_dimensions(self) -> tuple[PhysicalDimension, ...]:
        """The physical dimensions after the first tile that count tiles. Without tiles, all but the most minor
        dimension that has more than one coordinate: each run of it is drawn in one colour."""
        form = self.shape.physical_form
        tiles = self.shape.array_layout.tiles
        if tiles:
            return form.levels[1][: -sum(d is not None for d in tiles[0].dimensions)]
        level = form.levels[0]
        minor = next((k for k in reversed(range(len(level))) if level[k].extent > 1), 0)
        return level[:minor]

    @lazy_property
    def box_dimensions(self) -> tuple[PhysicalDimension, ...]:
        """The physical dimensions after the second tile that count its tiles; none without a second tile."""
        tiles = self.shape.array_layout.tiles
        if len(tiles) < 2:
            return ()
        return self.shape.physical_form.levels[2][: -sum(d is not None for d in tiles[1].dimensions)]

    @lazy_property
    def places_in_tile(self) -> int:
        """Places of a first-level tile; without tiles, of one run."""
        tiles = self.shape.array_layout.tiles
        if tiles:
            return math.prod(d for d in tiles[0].dimensions if d is not None)
        counted = len(self.tile_dimensions)
        return math.prod(d.extent for d in self.shape.physical_form.levels[0][counted:])

    @lazy_property
    def places_in_box(self) -> int:
        """Places of a second-level tile, or 0."""
        tiles = self.shape.array_layout.tiles
        return math.prod(d for d in tiles[1].dimensions if d is not None) if len(tiles) > 1 else 0

    def extent(self, dimension: int) -> int:
        """A dimension's size with the padding that belongs to it alone.

        Padding of dimensions that tiles combine lies behind all of them together: no coordinate leads there.
        """
        for physical in self.shape.physical_form.dimensions:
            if physical.source == dimension and physical.modulus is None:
                return physical.extent * physical.divisor
        return (self.shape.array_layout.padded_dimensions or self.shape.dimensions)[dimension]

    def block(self, dimension: int) -> int:
        """How many coordinates of a dimension are in one tile, as far as this is one number."""
        tiles = self.shape.array_layout.tiles
        if not tiles:
            return self.extent(dimension)
        for physical in self.tile_dimensions:
            if physical.source == dimension:
                return physical.divisor
            if isinstance(physical.source, tuple):
                block = physical.divisor
                for source in reversed(physical.source):
                    if source.source == dimension:
                        return max(block, 1)
                    block //= max(source.extent, 1)
        return self.extent(dimension)

    def unit(self, dimension: int) -> int:
        """How many neighbours along a dimension are in one second-level tile."""
        found = [d.divisor for d in self.box_dimensions if d.source == dimension]
        return min(found, default=1)

    def axis(self, dimension: int, most: int) -> Axis:
        """The axis for a dimension, with about `most` coordinates."""
        size, extent = self.shape.dimensions[dimension], self.extent(dimension)
        shown = shown_coordinates(size, extent, self.block(dimension), most, self.unit(dimension))
        return Axis(self.names[dimension], size, extent, shown)

    def cell(self, index: Sequence[int]) -> Cell:
        """The cell of a logical index, which may be in a dimension's padding."""
        dimensions = self.shape.dimensions
        inside = all(i < n for i, n in zip(index, dimensions, strict=True))
        form = self.shape.physical_form
        return self._cell(form.linear_index(index), tuple(index) if inside else None, index)

    def at(self, place: int) -> Cell:
        """The cell of a position in memory."""
        index = multi_index(self.shape, place)
        if index is None:
            return Cell(place, None, (), (), 0)
        return self._cell(place, index, index)

    def _cell(self, place: int, index: tuple[int, ...] | None, source: Sequence[int]) -> Cell:
        tile = tuple(d.at(source) for d in self.tile_dimensions)
        box = tuple(d.at(source) for d in self.box_dimensions)
        colour, step = 0, 1
        for number, dimension in zip(reversed(tile), reversed(self.tile_dimensions), strict=True):
            if dimension.extent > 1:
                colour = (colour + number * step) % COLOURS
                step = step * dimension.extent % COLOURS or _STEP  # neighbours differ, also from row to row in memory
        return Cell(place, index, tile if self.is_tiled else (), box, colour)

    def slices(self, rows: Axis | None, columns: Axis | None, most: int) -> Iterator[Slice | None]:
        """Slices over the dimensions that are not drawn, about `most` of them: the first ones and the last. None stands
        for those left out."""
        outer = [d for d in range(self.shape.rank) if d not in self.drawn]
        sizes = [self.shape.dimensions[d] for d in outer]
        for number in shown_coordinates(math.prod(sizes), math.prod(sizes), 1, most):
            if number is None:
                yield None
            else:
                yield self._slice(tuple(zip(outer, _digits(number, sizes), strict=True)), rows, columns)

    def _slice(self, outer: tuple[tuple[int, int], ...], rows: Axis | None, columns: Axis | None) -> Slice:
        index = [0] * self.shape.rank
        for dimension, at in outer:
            index[dimension] = at
        lines = []
        for row in rows.shown if rows else (0,):
            line: list[Cell | None] = []
            for column in columns.shown if columns else (0,):
                if row is None or column is None:
                    line.append(None)
                    continue
                for dimension, at in zip(self.drawn, (row, column) if rows else (column,), strict=False):
                    index[dimension] = at
                line.append(self.cell(index))
            lines.append(tuple(line))
        return Slice(outer, tuple(lines))


def _digits(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The mixed-radix digits of a number, major to minor."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return tuple(reversed(digits))
