"""IndexUtil: from the index of an element to its position in the buffer and back, for every layout.

A position counts elements, not bytes: position 17 of an f32 buffer begins at byte 68. Positions that hold no element
are padding.

Source: XLA's IndexUtil and LayoutUtil::LinearIndexForNestedTiling; the formulas of the page "Tiled layout".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from .errors import ShapeError
from .layout import Tile
from .physical_form import PhysicalDimension, tile_groups
from .shape import Shape


def linear_index(shape: Shape, index: Sequence[SupportsIndex]) -> int:
    """The position in the buffer of the element at `index`, which has one number for each dimension of the array.

    IndexError for an index outside of the array. A number below 0 is outside too: it does not count from the end.
    ShapeError index_c1 for a tuple; index_c2 if `index` does not have as many numbers as the array has dimensions.

    >>> from hloom import hlo
    >>> shape = hlo.Shape.array(hlo.ElementType.F32, (2, 3))
    >>> hlo.linear_index(shape, (1, 2))
    5
    """
    check_array(shape)
    numbers = tuple(operator.index(i) for i in index)
    if len(numbers) != shape.rank:
        raise ShapeError(f"index {numbers} for {shape}, which has {shape.rank} dimensions", "index_c2")
    for d, (i, size) in enumerate(zip(numbers, shape.dimensions, strict=True)):
        if not 0 <= i < size:
            raise IndexError(f"index {i} is outside of dimension {d} of {shape}, which has size {size}")
    return int(shape.physical_form.linear_index(numbers))


def multi_index(shape: Shape, linear: SupportsIndex) -> tuple[int, ...] | None:
    """The index of the element at position `linear` of the buffer, or None if that position is padding.

    IndexError for a position outside of the buffer; ShapeError (index_c1) for a tuple.

    >>> from hloom import hlo
    >>> shape = hlo.Shape.array(hlo.ElementType.F32, (2, 3))
    >>> hlo.multi_index(shape, 5)
    (1, 2)
    """
    check_array(shape)
    form = shape.physical_form
    place = operator.index(linear)
    if not 0 <= place < form.num_elements:
        raise IndexError(f"place {place} is outside of the buffer of {shape.to_text()}, which has {form.num_elements}")
    if place >= math.prod(form.extents):
        return None
    values = _digits(place, form.extents)
    for tile, level in zip(reversed(shape.array_layout.tiles), reversed(form.levels[:-1]), strict=True):
        untiled = _untile(values, level, tile)
        if untiled is None:
            return None
        values = untiled
    index = [0] * shape.rank
    for dimension, value in zip(reversed(shape.array_layout.minor_to_major), values, strict=True):
        if value >= shape.dimensions[dimension]:
            return None
        index[dimension] = value
    return tuple(index)


def linear_indices(shape: Shape) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The position of each element: an int64 array with the shape's dimensions. ShapeError (index_c1) for a tuple."""
    check_array(shape)
    index = np.indices(shape.dimensions, np.int64, sparse=True)
    return np.ascontiguousarray(np.broadcast_to(shape.physical_form.linear_index(index), shape.dimensions), np.int64)


def elements_in_memory_order(shape: Shape) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For every position of the buffer the number of its element, counted in row-major order; -1 for padding.

    An int64 vector with one entry for each position. ShapeError (index_c1) for a tuple.
    """
    places = linear_indices(shape)
    elements = np.full(shape.physical_form.num_elements, -1, np.int64)
    elements[places.reshape(-1)] = np.arange(places.size)
    return elements


def bit_position(shape: Shape, index: Sequence[SupportsIndex]) -> tuple[int, int]:
    """The byte of the buffer in which the element at `index` begins, and the number of the element's lowest bit in it.

    Elements of less than a byte fill a byte from its low bits up, as XLA's PackIntN does. Errors as `linear_index`.
    """
    return divmod(linear_index(shape, index) * shape.bits_per_element, 8)


def check_array(shape: Shape) -> None:
    if not shape.is_array:
        raise ShapeError(f"{shape} is no array: only arrays have a layout, and places for elements", "index_c1")


def _digits(number: int, extents: Sequence[int]) -> list[int]:
    """The digits of a mixed-radix number, the most significant first."""
    digits = []
    for extent in reversed(extents):
        number, digit = divmod(number, extent)
        digits.append(digit)
    digits.reverse()
    return digits


def _untile(values: list[int], level: Sequence[PhysicalDimension], tile: Tile) -> list[int] | None:
    """The values of the dimensions before a tile, computed from those after it; None for a position in padding."""
    groups = tile_groups(len(level), tile)
    untouched = max(len(level) - len(tile.dimensions), 0)
    major, minor = values[untouched : untouched + len(groups)], values[untouched + len(groups) :]
    result = values[:untouched]
    for (first, last, size), quotient, remainder in zip(groups, major, minor, strict=True):
        whole = quotient * size + remainder
        extents = [level[d].extent for d in range(first, last) if d >= 0]
        if whole >= math.prod(extents):
            return None
        result += _digits(whole, extents)
    return result
