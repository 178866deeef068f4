"""Layouts: where the elements of an array are in memory.

A `Layout` is only data. `layout_rules.py` says which ones an array can have, `text/layouts.py` reads them,
`physical_form.py` defines them.

Source: XLA's Layout and LayoutUtil (layout.h, layout_util.h, xla_data.proto); the pages "Shapes and layout" and "Tiled
layout".
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

from .notebooks import in_notebooks
from .support.records import dataclass

MAX_RANK = 64
"""The maximal number of dimensions of an array: NumPy's limit, and more than any program needs."""

MEMORY_SPACES = {
    0: "HBM",
    1: "VMEM",
    2: "device memory 2",
    3: "device memory 3",
    4: "device memory 4",
    5: "host",
    6: "unpinned host",
    7: "device memory 7",
    8: "device memory 8",
}
"""The memory spaces by number, `S(n)` in text: those that XLA names (layout.h, the page "Shapes and layout"), and those
that appear only in programs compiled for a device."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One level of tiling: the tile's extent in the most minor dimensions, major to minor.

    None combines the dimension with the next more minor one (`*` in text).
    """

    dimensions: tuple[int | None, ...]

    def __str__(self) -> str:
        return "(" + ",".join("*" if d is None else str(d) for d in self.dimensions) + ")"


class PaddingValue(Enum):
    """The contents of a buffer's padding elements (PaddingValue of the first xla_data.proto)."""

    UNKNOWN_PAD = "unknown"
    ZERO_PAD = "zero"
    ONE_PAD = "one"
    LOWEST_PAD = "lowest"
    HIGHEST_PAD = "highest"


@dataclass(frozen=True, slots=True)
class Layout:
    """The physical order of an array's dimensions; the most minor dimension varies fastest.

    `tiles`, `element_size_in_bits`, `tail_padding_alignment_in_elements` and the `padded_dimensions` of XLA's first
    layouts describe formats that pack or pad elements; a layout with any of them set is not dense.

    Two layouts are equal (`==`) when all properties are equal; `equal` can ignore some, as XLA's Layout::Equal.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[Tile, ...] = ()
    element_size_in_bits: int = 0
    """Bits from one element to the next; 0: whole bytes, as many as the element type needs."""
    memory_space: int = 0
    """A key of MEMORY_SPACES."""
    tail_padding_alignment_in_elements: int = 1
    """The number of elements in the buffer, padding included, is a multiple of this."""
    padded_dimensions: tuple[int, ...] = ()
    """The padded size of each logical dimension; empty: no padding."""
    padding_value: PaddingValue = PaddingValue.UNKNOWN_PAD
    """The contents of padding elements."""

    @staticmethod
    def from_major_to_minor(major_to_minor: Sequence[int]) -> Layout:
        """The dense layout with this order of dimensions (LayoutUtil::MakeLayoutFromMajorToMinor)."""
        return Layout(tuple(reversed(major_to_minor)))

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """The dimensions in the order of memory: the last varies fastest."""
        return self.minor_to_major[::-1]

    @property
    def logical_to_physical(self) -> tuple[int, ...]:
        """For each logical dimension, its position in `major_to_minor` (LayoutUtil::MakeLogicalToPhysical)."""
        positions = [0] * len(self.minor_to_major)
        for position, dimension in enumerate(self.major_to_minor):
            positions[dimension] = position
        return tuple(positions)

    @property
    def is_dense(self) -> bool:
        """True when the elements follow each other in memory without tiles, packing or padding."""
        return (
            not self.tiles
            and self.element_size_in_bits == 0
            and self.tail_padding_alignment_in_elements == 1
            and not self.padded_dimensions
        )

    @property
    def is_row_major(self) -> bool:
        """True for the default layout: dense, with the last dimension most minor."""
        return self.is_dense and self.memory_space == 0 and self.minor_to_major == _descending(len(self.minor_to_major))

    @property
    def is_monotonic_with_dim0_major(self) -> bool:
        """True if the dimensions are in the order of the default layout; other properties do not matter."""
        return self.minor_to_major == _descending(len(self.minor_to_major))

    @property
    def is_monotonic_with_dim0_minor(self) -> bool:
        """True for column-major order: the first dimension is the most minor, the last the most major."""
        return self.minor_to_major == tuple(range(len(self.minor_to_major)))

    def equal(
        self,
        other: Layout,
        *,
        ignore_tiles: bool = False,
        ignore_tail_padding_alignment_in_elements: bool = False,
        ignore_element_size: bool = False,
        ignore_memory_space: bool = False,
        ignore_padding: bool = False,
        minor_to_major_only: bool = False,
    ) -> bool:
        """True when both have the same properties except those that are ignored (XLA's Layout::Equal).

        `ignore_padding`: the padded dimensions and the padding value. `minor_to_major_only`: all except the order.
        """
        return self.minor_to_major == other.minor_to_major and (
            minor_to_major_only
            or (
                (ignore_tiles or self.tiles == other.tiles)
                and (
                    ignore_tail_padding_alignment_in_elements
                    or self.tail_padding_alignment_in_elements == other.tail_padding_alignment_in_elements
                )
                and (ignore_element_size or self.element_size_in_bits == other.element_size_in_bits)
                and (ignore_memory_space or self.memory_space == other.memory_space)
                and (
                    ignore_padding
                    or (self.padded_dimensions == other.padded_dimensions and self.padding_value is other.padding_value)
                )
            )
        )

    def __str__(self) -> str:
        """XLA's text, with the properties in XLA's order. XLA has no text for the padded dimensions and the padding
        value; here they are `PD(3,5)` and `PV(zero)`."""
        suffix = ""
        if self.padded_dimensions:
            suffix += f"PD({','.join(map(str, self.padded_dimensions))})"
        if self.padding_value is not PaddingValue.UNKNOWN_PAD:
            suffix += f"PV({self.padding_value.value})"
        if self.tiles:
            suffix += "T" + "".join(map(str, self.tiles))
        if self.tail_padding_alignment_in_elements != 1:
            suffix += f"L({self.tail_padding_alignment_in_elements})"
        if self.element_size_in_bits:
            suffix += f"E({self.element_size_in_bits})"
        if self.memory_space:
            suffix += f"S({self.memory_space})"
        return "{" + ",".join(map(str, self.minor_to_major)) + (":" + suffix if suffix else "") + "}"

    _repr_html_ = in_notebooks


@lru_cache(maxsize=64)
def _descending(rank: int) -> tuple[int, ...]:
    return tuple(range(rank - 1, -1, -1))


@lru_cache(maxsize=128)
def row_major(rank: int) -> Layout:
    """The default layout of an array with `rank` dimensions: the last dimension is the most minor
    (LayoutUtil::GetDefaultLayoutForRank)."""
    return Layout(_descending(rank))
