"""The physical form of an array: the dimensions of its buffer in memory, computed from the logical ones.

A tiling is a change of dimensions. f32[3,5]{1,0:T(2,2)} is in memory the row-major array [2,3,2,2] with dimensions y //
2, x // 2, y % 2 and x % 2. Every layout is of this kind: each physical dimension is ``(source // divisor) % modulus``;
the source is a logical dimension, or several combined into one. Index arithmetic, conversion of whole arrays, generated
loops and pictures use this list.

Source: XLA's page "Tiled layout" (linear index formulas, repeated tiling, combining dimensions); Layout in
xla_data.proto for padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from .layout import Layout, Tile
from .support.records import dataclass


@dataclass(frozen=True, slots=True)
class PhysicalDimension:
    """``(source // divisor) % modulus``, a number below `extent`.

    `source` is the number of a logical dimension, or a list of physical dimensions of the level before, major to minor,
    that are combined into one: their mixed-radix number. An empty list is 0: the tile has more dimensions than the
    array. A `modulus` of None cuts nothing off.
    """

    source: int | tuple[PhysicalDimension, ...]
    divisor: int
    modulus: int | None
    extent: int

    def at(self, index: Sequence[Any]) -> Any:
        """Its value for a logical index of ints or integer arrays."""
        value: Any
        if isinstance(self.source, int):
            value = index[self.source]
        else:
            value = 0
            for dimension in self.source:
                value = value * dimension.extent + dimension.at(index)
        value = value // self.divisor
        return value if self.modulus is None else value % self.modulus


@dataclass(frozen=True, slots=True)
class PhysicalForm:
    """How an array of some dimensions is stored in memory.

    `dimensions` are major to minor. `levels` are the lists of dimensions before the first tile and after each tile. The
    buffer has `num_elements` positions for elements: the product of the extents, rounded up to the tail alignment.
    """

    levels: tuple[tuple[PhysicalDimension, ...], ...]
    num_elements: int

    @property
    def dimensions(self) -> tuple[PhysicalDimension, ...]:
        return self.levels[-1]

    @property
    def extents(self) -> tuple[int, ...]:
        """The dimensions of the buffer as a dense row-major array, without the padding at its tail."""
        return tuple(d.extent for d in self.dimensions)

    @property
    def strides(self) -> tuple[int, ...]:
        """The number of elements between neighbours along each physical dimension."""
        strides, step = [], 1
        for dimension in reversed(self.dimensions):
            strides.append(step)
            step *= dimension.extent
        return tuple(reversed(strides))

    def linear_index(self, index: Sequence[Any]) -> Any:
        """The position of the element at a logical index: an int, or an array if the index has integer arrays, which
        broadcast. Indices are not checked."""
        linear: Any = 0
        for dimension in self.dimensions:
            linear = linear * dimension.extent + dimension.at(index)
        return linear


@lru_cache(maxsize=1024)
def physical_form(dimensions: tuple[int, ...], layout: Layout) -> PhysicalForm:
    """The physical form of an array with these logical dimensions."""
    sizes = layout.padded_dimensions or dimensions
    level = tuple(PhysicalDimension(d, 1, None, sizes[d]) for d in reversed(layout.minor_to_major))
    levels = [level]
    for tile in layout.tiles:
        level = _tiled(level, tile)
        levels.append(level)
    count = math.prod(d.extent for d in level)
    alignment = layout.tail_padding_alignment_in_elements
    return PhysicalForm(tuple(levels), -(-count // alignment) * alignment)


def tile_groups(rank: int, tile: Tile) -> tuple[tuple[int, int, int], ...]:
    """The effect of a tile on the dimensions that it covers, for an array of `rank`: (first, last, size). Dimensions
    first to last - 1 are combined into one, which is cut into tiles of `size`. Dimensions below 0 have extent 1: the
    tile has more dimensions than the array."""
    groups = []
    first = rank - len(tile.dimensions)
    for d, size in enumerate(tile.dimensions, first):
        if size is not None:
            groups.append((first, d + 1, size))
            first = d + 1
    assert first == rank, "the last dimension of a tile combines with nothing"
    return tuple(groups)


def _tiled(level: tuple[PhysicalDimension, ...], tile: Tile) -> tuple[PhysicalDimension, ...]:
    """The level after one more tile, which covers the most minor dimensions: first the dimensions that it does not
    cover, then the numbers of the tiles, then the indices within a tile."""
    untouched = level[: max(len(level) - len(tile.dimensions), 0)]
    major, minor = [], []
    for first, last, size in tile_groups(len(level), tile):
        covered = level[max(first, 0) : max(last, 0)]
        quotient, remainder = _divided(covered[0] if len(covered) == 1 else _combined(covered), size)
        major.append(quotient)
        minor.append(remainder)
    return (*untouched, *major, *minor)


def _combined(dimensions: tuple[PhysicalDimension, ...]) -> PhysicalDimension:
    return PhysicalDimension(dimensions, 1, None, math.prod(d.extent for d in dimensions))


def _divided(dimension: PhysicalDimension, size: int) -> tuple[PhysicalDimension, PhysicalDimension]:
    """The number of the tile, and the index within it."""
    count = -(-dimension.extent // size)
    modulus = dimension.modulus
    if modulus is not None and modulus % size:
        dimension = PhysicalDimension((dimension,), 1, None, dimension.extent)
        modulus = None
    quotient = PhysicalDimension(
        dimension.source, dimension.divisor * size, None if modulus is None else modulus // size, count
    )
    return quotient, PhysicalDimension(dimension.source, dimension.divisor, size, size)
