"""Which layouts an array can have. `Shape.array` checks every layout that is not the default one.

* layout_c1: the order has one number for each dimension of the array
* layout_c2: the order names each dimension once
* layout_c3: a tile has a size, a positive number of 64 bits, for at least one dimension
* layout_c4: the last dimension of a tile has a size: `*` combines a dimension with the next, and the last has no next
* layout_c5: at most MAX_TILES tiles, and at most MAX_RANK dimensions before and after each of them
* layout_c6: the tail alignment is a positive number of elements, of 64 bits
* layout_c7: the size of elements in bits is a power of two, large enough for the element type and no larger than an
  element of a dense buffer
* layout_c8: the memory space is one of MEMORY_SPACES
* layout_c9: there is a padded size for each dimension of the array
* layout_c10: a padded size is not smaller than its dimension
* layout_c11: the element type can hold the padding value
* layout_c12: the buffer, with all padding, fits in 64-bit memory
* layout_c13: only arrays have a layout

Source: LayoutUtil::ValidateLayoutForShape, which has c1, c2, c3, c6 and c13. c9: the page "Shapes and layout" of the
seeds, the four pages of XLA's first documentation (2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from .element_type import ElementType
from .layout import MAX_RANK, MEMORY_SPACES, Layout, PaddingValue
from .physical_form import PhysicalForm, physical_form
from .support.records import dataclass

MAX_BYTES = 2**63 - 1
MAX_TILES = 8
"""The maximal number of levels of tiling. XLA's formats have three."""

Place: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class LayoutViolation:
    """A rule that a layout breaks, and the offending part: the name of a property of `Layout`, then indices into it."""

    message: str
    label: str
    place: Place = ()


def layout_violation(element_type: ElementType, dimensions: Sequence[int], layout: Layout) -> LayoutViolation | None:
    """The first rule that `layout` breaks as the layout of an array of this type; None if it breaks none."""
    order = _order(dimensions, layout)
    if order is not None or (
        layout.is_dense and not layout.memory_space and layout.padding_value is PaddingValue.UNKNOWN_PAD
    ):
        return order
    return (
        _tiles(dimensions, layout)
        or _numbers(element_type, layout)
        or _padding(element_type, dimensions, layout)
        or _size(element_type, tuple(dimensions), layout)
    )


def _order(dimensions: Sequence[int], layout: Layout) -> LayoutViolation | None:
    order, rank = layout.minor_to_major, len(dimensions)
    if sorted(order) == list(range(rank)):
        return None
    if len(order) != rank:
        return LayoutViolation(f"the layout orders {len(order)} dimensions, but the array has {rank}", "layout_c1")
    seen = set()
    for position, dimension in enumerate(order):
        if dimension in seen or not 0 <= dimension < rank:
            what = "twice" if dimension in seen else f"but the array has 0 to {rank - 1}"
            message = f"the layout names dimension {dimension}, {what}"
            return LayoutViolation(message, "layout_c2", ("minor_to_major", position))
        seen.add(dimension)
    raise AssertionError("what is no permutation has a number twice or one that is too large")


def _tiles(dimensions: Sequence[int], layout: Layout) -> LayoutViolation | None:
    if len(layout.tiles) > MAX_TILES:
        message = f"a layout has at most {MAX_TILES} tiles, not {len(layout.tiles)}"
        return LayoutViolation(message, "layout_c5", ("tiles", MAX_TILES))
    rank = len(dimensions)
    for number, tile in enumerate(layout.tiles):
        if not tile.dimensions:
            return LayoutViolation("a tile has no dimensions", "layout_c3", ("tiles", number))
        for position, size in enumerate(tile.dimensions):
            if size is not None and not 0 < size <= MAX_BYTES:
                message = f"a tile size must be positive and fit in 64 bits, not {size}"
                return LayoutViolation(message, "layout_c3", ("tiles", number, position))
        if tile.dimensions[-1] is None:
            message = f"the last dimension of tile {tile} is combined with a next one, which there is not"
            return LayoutViolation(message, "layout_c4", ("tiles", number, len(tile.dimensions) - 1))
        cut = sum(size is not None for size in tile.dimensions)
        before = max(rank, len(tile.dimensions))
        rank = before - len(tile.dimensions) + 2 * cut
        if max(rank, before) > MAX_RANK:
            message = f"the buffer would have {max(rank, before)} dimensions; at most {MAX_RANK} are supported"
            return LayoutViolation(message, "layout_c5", ("tiles", number))
    return None


def _numbers(element_type: ElementType, layout: Layout) -> LayoutViolation | None:
    alignment = layout.tail_padding_alignment_in_elements
    if not 0 < alignment <= MAX_BYTES:
        message = f"the tail is aligned to a positive number of elements of 64 bits, not {alignment}"
        return LayoutViolation(message, "layout_c6", ("tail_padding_alignment_in_elements",))
    bits = layout.element_size_in_bits
    if bits and not fits_element_size(element_type, bits):
        low, high = element_type.bit_width, 8 * element_type.byte_width
        allowed = [str(2**n) for n in range(8) if low <= 2**n <= high]
        message = f"elements of {element_type.value} take {' or '.join(allowed)} bits, not {bits}"
        return LayoutViolation(message, "layout_c7", ("element_size_in_bits",))
    if layout.memory_space not in MEMORY_SPACES:
        message = f"memory space {layout.memory_space} is unknown; there are 0 to {max(MEMORY_SPACES)}"
        return LayoutViolation(message, "layout_c8", ("memory_space",))
    return None


def fits_element_size(element_type: ElementType, bits: int) -> bool:
    """True if an element can be stored in `bits`: layout_c7."""
    return bits & (bits - 1) == 0 and element_type.bit_width <= bits <= 8 * element_type.byte_width


def _padding(element_type: ElementType, dimensions: Sequence[int], layout: Layout) -> LayoutViolation | None:
    padded = layout.padded_dimensions
    if padded and len(padded) != len(dimensions):
        message = f"{len(padded)} padded sizes for an array of {len(dimensions)} dimensions"
        return LayoutViolation(message, "layout_c9", ("padded_dimensions",))
    for d, (size, width) in enumerate(zip(dimensions, padded)):
        if width < size:
            message = f"dimension {d} of size {size} is padded to {width}, which is less"
            return LayoutViolation(message, "layout_c10", ("padded_dimensions", d))
    value = layout.padding_value
    if not has_padding_value(element_type, value):
        message = f"{element_type.value} has no {value.value} value to pad with"
        return LayoutViolation(message, "layout_c11", ("padding_value",))
    return None


def has_padding_value(element_type: ElementType, value: PaddingValue) -> bool:
    """True if an element can hold the value: complex numbers have no order, and f8e8m0fnu has no zero: layout_c11.

    S1 holds 0 and -1, not 1.
    """
    if value is PaddingValue.ZERO_PAD:
        return element_type is not ElementType.F8E8M0FNU
    if value is PaddingValue.ONE_PAD:
        return element_type is not ElementType.S1
    return value is PaddingValue.UNKNOWN_PAD or not element_type.is_complex


def _size(element_type: ElementType, dimensions: tuple[int, ...], layout: Layout) -> LayoutViolation | None:
    if layout.is_dense:
        return None
    form = physical_form(dimensions, layout)
    bits = layout.element_size_in_bits or 8 * element_type.byte_width
    if _fits(form.extents, bits) and -(-form.num_elements * bits // 8) <= MAX_BYTES:
        return None
    message = f"the buffer of {element_type.value}{list(dimensions)} in layout {layout} does not fit in 64-bit memory"
    return LayoutViolation(message, "layout_c12", _cause(form, bits, layout))


def _fits(extents: Sequence[int], bits: int) -> bool:
    """True if 64 bits are enough for sizes and strides, even where a dimension of size 0 leaves no elements."""
    return -(-math.prod(max(e, 1) for e in extents) * bits // 8) <= MAX_BYTES


def _cause(form: PhysicalForm, bits: int, layout: Layout) -> Place:
    """The property that makes the buffer too large: the first of padding and tiles after which it is too large; else
    the tail."""
    for number, level in enumerate(form.levels):
        if not _fits([d.extent for d in level], bits):
            if number:
                return ("tiles", number - 1)
            return ("padded_dimensions",) if layout.padded_dimensions else ()
    return ("tail_padding_alignment_in_elements",)
