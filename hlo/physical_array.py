"""Whole arrays to and from the buffers that hold them in their layouts.

A tile splits each dimension that it covers into two and moves the second parts inside. On a view of a NumPy array that
costs nothing if the tile divides the size. So the array is cut into boxes in which all tiles are full and boxes in
which they are not; each box is split and transposed as a view, then copied by one assignment. Padding has separate
boxes. Python loops only over boxes and over parts of at least some kilobytes.

Source: the page "Tiled layout", section "Tiling as pad-reshape-transpose"; PackIntN in XLA's util.h for elements of
less than a byte.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from .element_type import ElementType
from .errors import ShapeError
from .layout import PaddingValue, Tile
from .physical_form import tile_groups
from .shape import Shape
from .support.records import dataclass

NDArray: TypeAlias = np.ndarray[Any, Any]

MAX_BOXES = 64
"""If cutting along ragged dimensions makes more boxes than this, the array is padded first, which costs one more
copy."""
_LARGE = 2**16
"""From this number of bytes on the way of copying matters."""
_SHORT = 32
"""An innermost dimension up to this long is copied index by index: starting NumPy's loop for it costs more."""
_CHUNK = 2**18
"""Bytes that are copied index by index before the next part begins, so that they stay in a core's cache."""
_LINE = 64
"""Bytes of a cache line."""
_MANY = 256
"""One assignment copies at least this many lines if the inner dimension is cut into lines."""


def to_physical(array: ArrayLike, shape: Shape) -> NDArray:
    """The buffer that holds `array` in the layout of `shape`: a new vector of all positions, padding included.

    `array` has the shape's dimensions and element type, any strides and either byte order. The vector has the element
    type's dtype and one element for each position of the buffer; if elements are packed (`E(4)`) it is a vector of
    `shape.byte_size` bytes. Padding holds the layout's `padding_value`, or zero bits if that is unknown.

    ShapeError, to_physical_c1: `shape` is a tuple; c2: the array has other dimensions; c3: it has another element type.

    >>> import numpy as np
    >>> from hloom import hlo
    >>> columns = hlo.Shape.array(hlo.ElementType.S32, (2, 3), hlo.Layout((0, 1)))
    >>> hlo.to_physical(np.array([[1, 2, 3], [4, 5, 6]], np.int32), columns)
    array([1, 4, 2, 5, 3, 6], dtype=int32)
    """
    values = np.asarray(array)
    if not shape.is_array:
        raise ShapeError(f"{shape} is no array: it has no one buffer", "to_physical_c1")
    if values.shape != shape.dimensions:
        raise ShapeError(f"an array of dimensions {list(values.shape)} for a buffer of {shape}", "to_physical_c2")
    if values.dtype.newbyteorder("=") != shape.element.dtype:
        raise ShapeError(f"an array of dtype {values.dtype} for a buffer of {shape}", "to_physical_c3")
    count = shape.physical_form.num_elements
    buffer = np.empty(count, shape.element.dtype)
    if count:
        fill = padding_element(shape.element, shape.array_layout.padding_value)
        native = values.astype(shape.element.dtype, copy=False)
        _Transfer(shape, _as_words(buffer), _as_words(fill)).run(_as_words(native))
    return _pack(buffer, shape.bits_per_element) if is_packed(shape) else buffer


def from_physical(buffer: ArrayLike, shape: Shape) -> NDArray:
    """The array of the shape's dimensions that `buffer` holds in its layout: the inverse of `to_physical`.

    `buffer` is a vector as `to_physical` returns it, or its bytes (uint8). The result is new and C-contiguous. The
    content of the padding does not matter.

    ShapeError, from_physical_c1: `shape` is a tuple; c2: the buffer is not a vector of the right length; c3: it has
    another dtype.

    >>> import numpy as np
    >>> from hloom import hlo
    >>> columns = hlo.Shape.array(hlo.ElementType.S32, (2, 3), hlo.Layout((0, 1)))
    >>> hlo.from_physical(np.array([1, 4, 2, 5, 3, 6], np.int32), columns)
    array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    values = np.asarray(buffer)
    if not shape.is_array:
        raise ShapeError(f"{shape} is no array: it has no one buffer", "from_physical_c1")
    packed = is_packed(shape)
    count = shape.physical_form.num_elements
    raw = values.dtype == np.uint8
    expected = shape.byte_size if raw else count
    if not raw and (packed or values.dtype.newbyteorder("=") != shape.element.dtype):
        dtype = "uint8" if packed else f"{shape.element.dtype}, or uint8,"
        raise ShapeError(f"a buffer of {shape.to_text()} has dtype {dtype} and not {values.dtype}", "from_physical_c3")
    if values.shape != (expected,):
        raise ShapeError(
            f"a buffer of {shape.to_text()} is a vector of {expected} {values.dtype}, not {list(values.shape)}",
            "from_physical_c2",
        )
    if packed:
        values = _unpack(values, count, shape.bits_per_element)
    if raw:
        values = np.ascontiguousarray(values).view(shape.element.dtype)
    result = np.empty(shape.dimensions, shape.element.dtype)
    if result.size:
        native = values.astype(shape.element.dtype, copy=False)
        _Transfer(shape, _as_words(native), None).run(_as_words(result))
    return result


def is_packed(shape: Shape) -> bool:
    """True when an element of the array is stored in less than a byte: its buffer is made of bytes, not of elements."""
    return shape.bits_per_element < 8 * shape.element.byte_width


def padding_element(element_type: ElementType, value: PaddingValue) -> NDArray:
    """The content of padding, as an array without dimensions. Lowest and highest are -inf and inf if the type has
    these."""
    dtype = element_type.dtype
    if value is PaddingValue.UNKNOWN_PAD:
        return np.zeros((), dtype)
    if value in (PaddingValue.ZERO_PAD, PaddingValue.ONE_PAD):
        return np.array(0 if value is PaddingValue.ZERO_PAD else 1).astype(dtype)
    sign = -1 if value is PaddingValue.LOWEST_PAD else 1
    if element_type.is_integral:
        return np.array(element_type.limits[sign > 0]).astype(dtype)
    if element_type is ElementType.PRED:
        return np.array(sign > 0)
    infinity = np.array(sign * np.inf).astype(dtype)
    if np.isinf(infinity):
        return infinity
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return np.array(limits.max if sign > 0 else limits.min).astype(dtype)


def _as_words(array: NDArray) -> NDArray:
    """A view as unsigned integers of the same size: NumPy copies elements of other libraries' dtypes one by one."""
    return array.view(f"u{array.itemsize}") if array.itemsize <= 8 else array


@dataclass(frozen=True, slots=True)
class _Box:
    """A part of an array: its start in each dimension, and a view of its elements."""

    origin: tuple[int, ...]
    view: NDArray

    @property
    def slices(self) -> tuple[Any, ...]:
        """Indexing with it gives a view, even for an array without dimensions."""
        return (*(slice(o, o + n) for o, n in zip(self.origin, self.view.shape, strict=True)), ...)


class _Transfer:
    """Moves elements between an array and the buffer: with a `fill` from the array into the buffer, padding included;
    without, from the buffer into the array."""

    def __init__(self, shape: Shape, buffer: NDArray, fill: NDArray | None) -> None:
        self.form = shape.physical_form
        self.layout = shape.array_layout
        self.buffer = buffer
        self.fill = fill

    def run(self, array: NDArray) -> None:
        order = tuple(reversed(self.layout.minor_to_major))
        view = array.transpose(order)
        extents = tuple(d.extent for d in self.form.levels[0])
        places = math.prod(extents)
        boxes = [_Box((0,) * view.ndim, view), *self._padding(view.shape, extents)] if view.size else []
        if not boxes and self.fill is not None and places:
            boxes = [self._padding_box((0,) * view.ndim, extents)]
        count = math.prod(self.form.extents)
        if boxes:
            self._tile(boxes, extents, self.layout.tiles, count)
        if self.fill is not None:
            self.buffer[count:] = self.fill

    def _padding(self, sizes: Sequence[int], extents: Sequence[int]) -> list[_Box]:
        """Boxes for the part of an array of `extents` that is outside of an array of `sizes`; they do not overlap."""
        boxes = []
        if self.fill is not None:
            for d, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
                if size < extent:
                    origin = (*(0,) * d, size, *(0,) * (len(sizes) - d - 1))
                    boxes.append(self._padding_box(origin, (*sizes[:d], extent - size, *extents[d + 1 :])))
        return boxes

    def _padding_box(self, origin: tuple[int, ...], sizes: Sequence[int]) -> _Box:
        assert self.fill is not None
        return _Box(origin, np.broadcast_to(self.fill, tuple(sizes)))

    def _tile(
        self, boxes: list[_Box], extents: tuple[int, ...], tiles: Sequence[Tile], count: int, is_whole: bool = False
    ) -> None:
        """Apply the tiles to all boxes, then copy them. They hold every element of an array of `extents`. `is_whole`:
        there is one box, its memory is contiguous, and the first tile must not make another copy."""
        for n, tile in enumerate(tiles):
            split = self._split(boxes, extents, tile, math.inf if is_whole and n == 0 else MAX_BOXES)
            if split is None:
                self._through_copy(boxes, extents, tiles[n:], count)
                return
            boxes, extents = split
        whole = self.buffer[:count].reshape(extents)
        for box in boxes:
            if self.fill is not None:
                _copy(whole[box.slices], box.view)
            else:
                _copy(box.view, whole[box.slices])

    def _through_copy(self, boxes: list[_Box], extents: tuple[int, ...], tiles: Sequence[Tile], count: int) -> None:
        """Combine the boxes into one array with sizes that the tiles divide, and continue with it."""
        rank = len(extents)
        padded = list(extents)
        for first, last, size in tile_groups(rank, tiles[0]):
            if last - first == 1 and first >= 0:
                padded[first] = -(-extents[first] // size) * size
        whole = np.empty(padded, self.buffer.dtype)
        if self.fill is not None:
            for box in boxes:
                _copy(whole[box.slices], box.view)
            for box in self._padding(extents, padded):
                _copy(whole[box.slices], box.view)
        self._tile([_Box((0,) * rank, whole)], tuple(padded), tiles, count, is_whole=True)
        if self.fill is None:
            for box in boxes:
                _copy(box.view, whole[box.slices])

    def _split(
        self, boxes: list[_Box], extents: tuple[int, ...], tile: Tile, limit: float
    ) -> tuple[list[_Box], tuple[int, ...]] | None:
        """The boxes after a tile, and the dimensions of the array that they are in. None if there would be more than
        `limit` boxes, or if the dimensions of a box cannot be combined as a view."""
        missing = max(len(tile.dimensions) - len(extents), 0)
        groups = [(f + missing, t + missing, size) for f, t, size in tile_groups(len(extents), tile)]
        extents = (1,) * missing + extents
        untouched = len(extents) - len(tile.dimensions)
        combined = extents[:untouched] + tuple(math.prod(extents[first:last]) for first, last, _ in groups)
        sizes = [size for _, _, size in groups]
        covered = combined[untouched:]
        after = (*combined[:untouched], *(-(-e // t) for e, t in zip(covered, sizes, strict=True)), *sizes)
        parts = []
        for box in boxes:
            whole = self._combined(box, extents, groups, missing)
            if whole is None:
                return None
            stretches = zip(whole.origin[untouched:], whole.view.shape[untouched:], sizes, strict=True)
            parts.append((whole, [_cuts(o, n, t) for o, n, t in stretches]))
        if sum(math.prod(map(len, cuts)) for _, cuts in parts) > limit:
            return None
        result = [_tiled_box(whole, untouched, cut) for whole, cuts in parts for cut in itertools.product(*cuts)]
        return result + self._tails(covered, after, sizes), after

    def _tails(self, covered: Sequence[int], after: tuple[int, ...], sizes: Sequence[int]) -> list[_Box]:
        """Boxes for the padding in the last tiles of each dimension. They overlap where two dimensions end."""
        boxes = []
        if self.fill is not None and 0 not in after:
            groups = len(sizes)
            for g, (extent, size) in enumerate(zip(covered, sizes, strict=True)):
                if extent % size:
                    major, minor = len(after) - 2 * groups + g, len(after) - groups + g
                    origin, shape = [0] * len(after), list(after)
                    origin[major], shape[major] = after[major] - 1, 1
                    origin[minor], shape[minor] = extent % size, size - extent % size
                    boxes.append(self._padding_box(tuple(origin), shape))
        return boxes

    def _combined(
        self, box: _Box, extents: Sequence[int], groups: Sequence[tuple[int, int, int]], missing: int
    ) -> _Box | None:
        """The box with each group of dimensions combined into one; None if that is not a view of the box."""
        view = box.view.reshape((1,) * missing + box.view.shape) if missing else box.view
        origin = (0,) * missing + box.origin
        if all(last - first == 1 for first, last, _ in groups):
            return _Box(origin, view)
        untouched = groups[0][0]
        shape, begin = list(view.shape[:untouched]), list(origin[:untouched])
        for first, last, _ in groups:
            partial = [d for d in range(first, last) if view.shape[d] != extents[d]]
            if partial and any(view.shape[d] != 1 for d in range(first, partial[-1])):
                return None
            shape.append(math.prod(view.shape[first:last]))
            place = 0
            for d in range(first, last):
                place = place * extents[d] + origin[d]
            begin.append(place)
        combined = view.reshape(shape)
        if self.fill is None and not np.may_share_memory(combined, view):
            return None
        return _Box(tuple(begin), combined)


def _cuts(origin: int, size: int, tile: int) -> list[tuple[int, int, int, int, int]]:
    """Where to cut an interval so that each part consists of full tiles or is within one tile: (first index in the
    interval, number of the first tile, number of tiles, first index in the tile, number of indices in each tile)."""
    cuts = []
    place = 0
    while place < size:
        number, inside = divmod(origin + place, tile)
        count = (size - place) // tile if not inside else 0
        places = tile if count else min(tile - inside, size - place)
        count = max(count, 1)
        cuts.append((place, number, count, inside, places))
        place += count * places
    return cuts


def _tiled_box(box: _Box, untouched: int, cuts: Sequence[tuple[int, int, int, int, int]]) -> _Box:
    """The part of a box that `cuts` describe, one for each covered dimension, with these dimensions split and moved."""
    groups = len(cuts)
    part = box.view[(slice(None),) * untouched + tuple(slice(c[0], c[0] + c[2] * c[4]) for c in cuts)]
    split = part.reshape(part.shape[:untouched] + tuple(n for c in cuts for n in (c[2], c[4])))
    axes = (
        *range(untouched),
        *(untouched + 2 * g for g in range(groups)),
        *(untouched + 2 * g + 1 for g in range(groups)),
    )
    origin = (*box.origin[:untouched], *(c[1] for c in cuts), *(c[3] for c in cuts))
    return _Box(origin, split.transpose(axes))


def _copy(to: NDArray, source: NDArray) -> None:
    """Assign `source` to `to`, in parts where NumPy's own loops are slow.

    NumPy's inner loop runs along the dimension in which `to` is densest. If that is short, as in (8,128)(2,1), its
    indices are copied one after the other. If `source` is dense in another dimension, as in a transposition, NumPy
    reads a cache line for one element and evicts it before it needs the next: here the inner dimension is copied one
    line at a time.
    """
    if to.nbytes < _LARGE:
        to[...] = source
        return
    to, source = _coalesced(to, source)
    inner = to.shape[-1]
    strides = [abs(stride) for stride in source.strides]
    densest = min((stride for stride in strides if stride), default=0)
    if to.ndim > 1 and inner <= _SHORT and strides[-2] <= densest:
        rows = max(1, _CHUNK * to.shape[0] // to.nbytes)
        for row in range(0, to.shape[0], rows):
            for i in range(inner):
                to[row : row + rows, ..., i] = source[row : row + rows, ..., i]
    elif strides[-1] >= _LINE > densest and to.size >= _MANY * inner:
        line = max(1, _LINE // to.itemsize)
        for i in range(0, inner, line):
            to[..., i : i + line] = source[..., i : i + line]
    else:
        to[...] = source


def _coalesced(to: NDArray, source: NDArray) -> tuple[NDArray, NDArray]:
    """Views of both with the dimensions in the memory order of `to`; dimensions that can be one in both are merged, and
    dimensions of size 1 are dropped."""
    axes = sorted((d for d in range(to.ndim) if to.shape[d] > 1), key=lambda d: -to.strides[d])
    merged: list[int] = []
    for before, d in zip([-1, *axes], axes):
        if before >= 0 and all(a.strides[before] == a.shape[d] * a.strides[d] for a in (to, source)):
            merged[-1] *= to.shape[d]
        else:
            merged.append(to.shape[d])
    ones = [d for d in range(to.ndim) if to.shape[d] == 1]
    return tuple(a.transpose(ones + axes).reshape(merged or [1]) for a in (to, source))  # type: ignore[return-value]


def _pack(buffer: NDArray, bits: int) -> NDArray:
    """Elements of a byte each as fields of `bits`, the first one in the low bits of the first byte. Returns bytes."""
    codes = buffer.view(np.uint8)
    if bits == 1:
        return np.packbits(codes & 1, bitorder="little")
    per_byte, mask = 8 // bits, 2**bits - 1
    if codes.size % per_byte:
        codes = np.append(codes, np.zeros(-codes.size % per_byte, np.uint8))
    words = codes.view(f"<u{per_byte}")
    packed = np.empty(words.size, np.uint8)
    for begin in range(0, words.size, _CHUNK):
        part = words[begin : begin + _CHUNK]
        fields = part & mask
        for i in range(1, per_byte):
            fields |= part >> ((8 - bits) * i) & (mask << (bits * i))
        packed[begin : begin + _CHUNK] = fields
    return packed


def _unpack(packed: NDArray, count: int, bits: int) -> NDArray:
    """The inverse of `_pack`: `count` elements as bytes."""
    if bits == 1:
        return np.unpackbits(packed, count=count, bitorder="little")
    per_byte = 8 // bits
    mask = sum((2**bits - 1) << (8 * i) for i in range(per_byte))
    words = np.empty(packed.size, f"<u{per_byte}")
    for begin in range(0, packed.size, _CHUNK):
        part = packed[begin : begin + _CHUNK].astype(words.dtype)
        fields = part.copy()
        for i in range(1, per_byte):
            fields |= part << ((8 - bits) * i)
        fields &= mask
        words[begin : begin + _CHUNK] = fields
    return words.view(np.uint8)[:count]
