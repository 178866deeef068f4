"""The positions of a window along the dimensions of an array, as numbers and as kernel text.

A cell is an index of the array after base dilation. Dimensions that the window does not change are merged with their
neighbours; each other dimension has a `Place`. It knows the cell at which the window begins, which elements of the
window are inside the array, and which element is in a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...hlo.window import Window, WindowDimension, dilated, is_plain, is_trivial
from .applied import LITERAL_LIMIT, KernelText

UNROLLED = 32
"""A window is unrolled up to this many elements (times the number of operands)."""
MANY_ROWS = 16
"""From this number of rows on, threads share them."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the array after merging: its size, the number of positions of the window, and the window."""

    size: int
    count: int
    part: WindowDimension

    @property
    def extent(self) -> int:
        """The number of cells: the size after base dilation."""
        return dilated(self.size, self.part.base_dilation)


NOTHING = WindowDimension()


def axes_of(sizes: Sequence[int], counts: Sequence[int], window: Window) -> list[Axis]:
    """The dimensions; neighbours that the window does not change are merged, and those of size 1 are left out."""
    axes: list[Axis] = []
    for size, count, part in zip(sizes, counts, window, strict=True):
        if not is_trivial(part):
            axes.append(Axis(size, count, part))
        elif axes and axes[-1].part is NOTHING:
            merged = axes[-1].size * size
            axes[-1] = Axis(merged, merged, NOTHING)
        elif size != 1:
            axes.append(Axis(size, size, NOTHING))
    return axes or [Axis(1, 1, NOTHING)]


class Place:
    """The text of one dimension: its numbers, and the positions of the window along it."""

    def __init__(self, text: KernelText, number: int, axis: Axis, *, moves: bool = False) -> None:
        """`moves`: write the loop over the window even if it does nothing."""
        part = axis.part
        self.axis, self.number = axis, number
        self.moves = moves or part is not NOTHING
        small = part.size <= UNROLLED
        self.size = text.size(f"n{number}", axis.size)
        self.count = text.size(f"m{number}", axis.count)
        if self.moves:
            self.window = text.size(f"w{number}", part.size, literal=small)
            self.stride = text.size(f"s{number}", part.stride, literal=True)
            self.low = text.size(f"p{number}", part.padding_low)
            self.dilation = text.size(f"d{number}", part.window_dilation, literal=True)
            self.holes = text.size(f"b{number}", part.base_dilation, literal=True)
            self.extent = self.size if part.base_dilation == 1 else text.size(f"e{number}", axis.extent)

    def origin(self, place: str) -> str:
        """The cell at which the window begins."""
        scaled = place if self.stride == "1" else f"{place} * {self.stride}"
        return scaled if self.low == "0" else f"{scaled} - {self.low}"

    def shift(self, element: str) -> str:
        """The distance of an element of the window from the first one."""
        return element if self.dilation == "1" else f"{element} * {self.dilation}"

    def row(self, cell: str) -> str:
        """The index of the element in a cell."""
        return cell if self.axis.part.base_dilation == 1 else f"{cell} // {self.holes}"

    def elements(self, at: str) -> str:
        """The loop over the window at cell `at`: all of it if it is small, else the part inside the array."""
        part = self.axis.part
        if part.size <= LITERAL_LIMIT or is_plain(part):
            return f"range({self.window})"
        begin, end = f"-{at}", f"{self.extent} - {at}"
        if self.dilation != "1":
            begin = f"({self.dilation} - 1 - {at}) // {self.dilation}"
            end = f"({self.extent} - 1 - {at}) // {self.dilation} + 1"
        return f"range(maximum(0, {begin}), minimum({self.window}, {end}))"

    def elements_between(self, low: str, high: str) -> str:
        """The same for positions `low` to `high`: the part that is inside the array at one of them at least."""
        part = self.axis.part
        if part.size <= LITERAL_LIMIT or is_plain(part):
            return f"range({self.window})"
        begin = f"({self.low} - ({high} - 1) * {self.stride} + {self.dilation} - 1) // {self.dilation}"
        end = f"({self.extent} - 1 + {self.low} - {low} * {self.stride}) // {self.dilation} + 1"
        return f"range(maximum(0, {begin}), minimum({self.window}, {end}))"

    def tests(self, cell: str) -> list[str]:
        """The conditions for a cell to have an element."""
        part, tests = self.axis.part, []
        if part.padding_low > 0:
            tests.append(f"{cell} >= 0")
        if part.padding_high > 0:
            tests.append(f"{cell} < {self.extent}")
        if part.base_dilation != 1:
            tests.append(f"{cell} % {self.holes} == 0")
        return tests


def offset_of(terms: Sequence[str], sizes: Sequence[str]) -> str:
    """Row-major: ``(a * n1 + b) * n2 + c``."""
    result = ""
    for term, size in zip(terms, sizes, strict=True):
        result = f"{grouped(result)} * {size} + {term}" if result else term
    return result or "0"


def grouped(text: str) -> str:
    """`text` as a factor: in parentheses unless it is a name or a number."""
    return text if text.isidentifier() or text.isdecimal() else f"({text})"
