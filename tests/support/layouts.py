"""Layouts for tests: random ones, and their meaning, computed in another way than the library computes it.

`physical_buffer` follows "Tiling as pad-reshape-transpose" of XLA's page step by step on a NumPy array. It shares
nothing with `hloom.hlo.physical_form`, and copies at every step.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from hloom.hlo import ElementType, Layout, PaddingValue, Shape, Tile
from hloom.hlo.layout_rules import has_padding_value
from hypothesis import strategies as st

NDArray = np.ndarray[Any, Any]


def physical_buffer(array: NDArray, layout: Layout, padding: Any) -> NDArray:
    """The places of the buffer of `array`, one after the other, packing aside."""
    if layout.padded_dimensions:
        widths = [(0, padded - size) for size, padded in zip(array.shape, layout.padded_dimensions, strict=True)]
        array = np.pad(array, widths, constant_values=padding)
    array = np.transpose(array, layout.minor_to_major[::-1]).copy()
    for tile in layout.tiles:
        array = _tiled(array, list(tile.dimensions), padding)
    vector = array.reshape(-1)
    tail = -vector.size % layout.tail_padding_alignment_in_elements
    return np.pad(vector, (0, tail), constant_values=padding)


def _tiled(array: NDArray, tile: list[int | None], padding: Any) -> NDArray:
    while array.ndim < len(tile):
        array = array[np.newaxis]
    while None in tile:  # an asterisk: remove the dimension, make the next one as much larger
        at = tile.index(None)
        axis = array.ndim - len(tile) + at
        sizes = list(array.shape)
        sizes[axis : axis + 2] = [sizes[axis] * sizes[axis + 1]]
        array = array.reshape(sizes)
        del tile[at]
    sizes = [size for size in tile if size is not None]
    first = array.ndim - len(sizes)
    for axis, size in enumerate(sizes, first):
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, -array.shape[axis] % size)
        array = np.pad(array, widths, constant_values=padding)
    split = list(array.shape[:first])
    for extent, size in zip(array.shape[first:], sizes, strict=True):
        split += [extent // size, size]
    numbers, places = range(first, first + 2 * len(sizes), 2), range(first + 1, first + 2 * len(sizes), 2)
    return array.reshape(split).transpose([*range(first), *numbers, *places]).copy()


def random_shape(rng: random.Random, element_type: ElementType = ElementType.S32) -> Shape:
    """An array of up to four small dimensions in any layout: any order, up to three tiles, padding of all kinds, and
    for types of less than a byte perhaps packed."""
    rank = rng.randint(0, 4)
    large = rng.random() < 0.1
    dimensions = tuple(rng.randint(0, 13) if large else rng.randint(1, 6) for _ in range(rank))
    tiles = []
    current = rank
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])):
        length = rng.randint(1, max(1, current + (rng.random() < 0.2)))
        sizes = [None if rng.random() < 0.25 else rng.randint(1, 5) for _ in range(length - 1)]
        tiles.append(Tile((*sizes, rng.randint(1, 5))))
        current = max(current, length) + length - 2 * sizes.count(None)
    order = rng.sample(range(rank), rank)
    padded = tuple(d + rng.randint(0, 2) for d in dimensions) if rng.random() < 0.25 else ()
    packed = element_type.bit_width if element_type.bit_width < 8 and rng.random() < 0.5 else 0
    value = rng.choice([PaddingValue.UNKNOWN_PAD, PaddingValue.ZERO_PAD])
    tail = rng.choice([1, 1, 1, 4, 7])
    return Shape.array(
        element_type,
        dimensions,
        Layout(tuple(order), tuple(tiles), packed, rng.choice([0, 0, 1, 5]), tail, padded, value),
    )


_EXTENTS = st.integers(0, 9)
_SIZES = st.integers(1, 9)


@st.composite
def shapes(draw: st.DrawFn, element_types: st.SearchStrategy[ElementType] | None = None) -> Shape:
    """Arrays in any valid layout, small enough to check their buffers place by place."""
    element_type = draw(st.just(ElementType.S32) if element_types is None else element_types)
    dimensions = tuple(draw(st.lists(_EXTENTS, max_size=4)))
    order = tuple(draw(st.permutations(range(len(dimensions)))))
    tiles = []
    for length in draw(st.lists(st.integers(1, 4), max_size=3)):
        sizes = draw(st.lists(st.none() | _SIZES, min_size=length - 1, max_size=length - 1))
        tiles.append(Tile((*sizes, draw(_SIZES))))
    bits = [2**n for n in range(8) if element_type.bit_width <= 2**n <= 8 * element_type.byte_width]
    padded = tuple(d + draw(st.integers(0, 3)) for d in dimensions) if draw(st.booleans()) else ()
    values = [v for v in PaddingValue if has_padding_value(element_type, v)]
    layout = Layout(
        order,
        tuple(tiles),
        draw(st.sampled_from([0, *bits])),
        draw(st.integers(0, 8)),
        draw(st.sampled_from([1, 1, 2, 5, 128])),
        padded,
        draw(st.sampled_from(values)),
    )
    return Shape.array(element_type, dimensions, layout)


def numbered(shape: Shape) -> NDArray:
    """An S32 array of the shape's dimensions that counts from 1, so that 0 is padding."""
    return np.arange(1, math.prod(shape.dimensions) + 1, dtype=np.int32).reshape(shape.dimensions)
