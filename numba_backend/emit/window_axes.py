"""Windows over the dimensions of an array: their numbers, and the code that moves a window along one dimension.

Words: a *position* says where the window is along a dimension. A *cell* is an index of the array after base dilation; a
window begins at a cell, which padding may put outside of the array. An *element* is one of the window's. An *index* is
one of the array's own, an *offset* one into its buffer.

Dimensions that the window does not change are merged with their neighbours; the others are one `Axis` each. In a
kernel, axis 0 has these names: ``n0`` indices, ``m0`` positions; the window has ``w0`` elements, the stride ``s0``, the
padding ``p0`` and the dilation ``d0``; ``o0`` is a position, ``at0`` the window's first cell, ``k0`` an element of the
window and ``cell0`` its cell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ...hlo.support.records import dataclass
from ...hlo.window import Window, WindowDimension, dilated, is_plain, is_trivial
from ..loops.expressions import ZERO, Binary, Expr, Name, Number, all_of, is_number, maximum, minimum, product
from .scalar_computations import KernelText
from .sizes import LITERAL_LIMIT

UNROLLED = 32
"""A window is unrolled up to this many elements (times the number of operands)."""
MANY_ROWS = 16
"""With at least so many rows, threads share them."""


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
    """The axes. Neighbours that the window does not change are merged, and axes of size 1 are left out."""
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


class KernelAxis:
    """An axis in a kernel: its numbers as expressions, and values computed from them."""

    def __init__(self, text: KernelText, number: int, axis: Axis) -> None:
        part = axis.part
        self.text, self.number, self.axis, self.part = text, number, axis, part
        self.moves: bool = part is not NOTHING
        small = part.size <= UNROLLED
        self.size: Expr = text.size(f"n{number}", axis.size)
        self.count: Expr = text.size(f"m{number}", axis.count)
        if self.moves:
            self.window: Expr = text.size(f"w{number}", part.size, literal=small)
            self.stride: Expr = text.size(f"s{number}", part.stride, literal=True)
            self.low: Expr = text.size(f"p{number}", part.padding_low)
            self.dilation: Expr = text.size(f"d{number}", part.window_dilation, literal=True)
            self.holes: Expr = text.size(f"b{number}", part.base_dilation, literal=True)
            self.extent: Expr = self.size if part.base_dilation == 1 else text.size(f"e{number}", axis.extent)

    def origin(self, position: Expr) -> Expr:
        """The cell at which the window begins: ``o0 * s0 - p0``."""
        return position * self.stride - self.low

    def begin(self, position: Expr) -> Name:
        """``at0 = o0 * s0 - p0``"""
        return self.text.writer.assign(f"at{self.number}", self.origin(position))

    def distance(self, element: Expr) -> Expr:
        """How many cells an element of the window is behind the first one: ``k0 * d0``."""
        return element if is_number(self.dilation, 1) else product(element, self.dilation)

    def cell(self, at: Expr, element: Expr) -> Name:
        """``cell0 = at0 + k0 * d0``"""
        return self.text.writer.assign(f"cell{self.number}", at + self.distance(element))

    def shift(self, element: Expr) -> Name:
        """``shift = k0 * d0 - p0``: at position j, the element is in cell ``j * s0 + shift``."""
        return self.text.writer.assign("shift", self.distance(element) - self.low)

    def span(self, shift: Expr, low: Expr, high: Expr) -> tuple[Expr, Expr]:
        """The range, within `low` to `high`, of positions j at which cell ``j * s0 + shift`` is inside the array."""
        begin, end = -shift, self.extent - 1 - shift
        if not is_number(self.stride, 1):
            begin, end = (self.stride - 1 - shift) // self.stride, end // self.stride
        return maximum(low, begin), minimum(high, end + 1)

    def index(self, cell: Expr) -> Expr:
        """The index of the array that is in a cell: ``cell0 // b0``."""
        return cell if self.part.base_dilation == 1 else cell // self.holes

    def tests(self, cell: Expr) -> list[Expr]:
        """The conditions for a cell to have an index: ``cell0 >= 0``, ``cell0 < n0``, ``cell0 % b0 == 0``."""
        tests = []
        if self.part.padding_low > 0:
            tests.append(cell >= 0)
        if self.part.padding_high > 0:
            tests.append(cell < self.extent)
        if self.part.base_dilation != 1:
            tests.append((cell % self.holes).eq(0))
        return tests

    def whole_window_tests(self, at: Expr) -> list[Expr]:
        """The conditions for all elements of the window to be inside the array: ``at0 >= 0``, ``at0 + 2 < n0``."""
        reach = self.text.size(f"r{self.number}", dilated(self.part.size, self.part.window_dilation) - 1, literal=True)
        return [at >= 0, Binary("+", at, reach) < self.size]

    def elements(self, at: Expr) -> tuple[Expr, ...]:
        """The bounds of the loop over the window at cell `at`: the whole window if it is small, else the part inside
        the array.

        ``range(maximum(0, -at0), minimum(w0, n0 - at0))``
        """
        if self.part.size <= LITERAL_LIMIT or is_plain(self.part):
            return (self.window,)
        begin, end = -at, self.extent - at
        if not is_number(self.dilation, 1):
            begin = (self.dilation - 1 - at) // self.dilation
            end = (self.extent - 1 - at) // self.dilation + 1
        return maximum(0, begin), minimum(self.window, end)

    def elements_between(self, low: Expr, high: Expr) -> tuple[Expr, ...]:
        """The same for positions `low` to `high`: the part that is inside the array at one of them at least."""
        if self.part.size <= LITERAL_LIMIT or is_plain(self.part):
            return (self.window,)
        begin = (self.low - product(high - 1, self.stride) + self.dilation - 1) // self.dilation
        last = Binary("+", self.extent - 1, self.low)
        end = (last - product(low, self.stride)) // self.dilation + 1
        return maximum(0, begin), minimum(self.window, end)

    def over_window(self, stack: ExitStack, at: Expr, *bounds: Expr) -> tuple[Name, Expr]:
        """Open the loop over the window, and the test that an element is inside the array, on `stack`. Gives the
        element of the window and its index in the array. ::

            for k0 in range(3):
                cell0 = at0 + k0 * d0
                if cell0 >= 0 and cell0 < n0:
        """
        writer = self.text.writer
        element = stack.enter_context(writer.loop(f"k{self.number}", *bounds))
        cell = self.cell(at, element)
        tests = self.tests(cell)
        if tests:
            stack.enter_context(writer.if_(all_of(tests)))
        return element, self.index(cell)


class Windows:
    """The windows over an array, in a kernel. Their methods take the first cell of a window along each axis (`begins`),
    or the index along an axis that it does not move along. Axes that are left out at the end count as index 0."""

    def __init__(self, text: KernelText, axes: Sequence[Axis]) -> None:
        self.text, self.writer = text, text.writer
        self.axes: list[KernelAxis] = [KernelAxis(text, number, axis) for number, axis in enumerate(axes)]
        self.sizes, self.counts = [a.size for a in self.axes], [a.count for a in self.axes]
        self.elements: int = math.prod(a.part.size for a in axes)
        self.unrolls: bool = self.elements <= UNROLLED and all(a.part.base_dilation == 1 for a in axes)
        """Whether offsets of all elements can be written down."""

    def begins(self, positions: Sequence[Expr]) -> list[Expr]:
        """The first cells of the window at a position."""
        return [a.begin(p) if a.moves else p for a, p in zip(self.axes, positions, strict=False)]

    def whole_tests(self, begins: Sequence[Expr]) -> list[Expr]:
        """The conditions for the window to be inside the array, where that is not certain."""
        axes = zip(self.axes, begins, strict=False)
        return [t for a, at in axes if a.moves and not is_plain(a.part) for t in a.whole_window_tests(at)]

    def if_whole(self, begins: Sequence[Expr], inside: Callable[[], None], at_an_edge: Callable[[], None]) -> None:
        """Writes `inside` for windows that are inside the array, `at_an_edge` for others, if there may be any."""
        tests = self.whole_tests(begins)
        if not tests:
            inside()
            return
        with self.writer.if_(all_of(tests)):
            inside()
        with self.writer.else_():
            at_an_edge()

    def offsets(self, begins: Sequence[Expr]) -> list[Expr]:
        """The offset of each element of a window that is inside the array."""
        axes = self.axes[: len(begins)]
        indices = [
            [at, *[at + a.distance(Number(k)) for k in range(1, a.part.size)]]
            for a, at in zip(axes, begins, strict=True)
        ]
        return [self._offset(index) for index in itertools.product(*indices)]

    def over_elements(self, stack: ExitStack, begins: Sequence[Expr]) -> Expr:
        """Opens the loops over the elements of a window that are inside the array; gives the offset of one."""
        axes = zip(self.axes, begins, strict=False)
        return self._offset([a.over_window(stack, at, *a.elements(at))[1] if a.moves else at for a, at in axes])

    def _offset(self, indices: Sequence[Expr]) -> Expr:
        return row_major([*indices, *[ZERO] * (len(self.axes) - len(indices))], self.sizes)


def row_major(indices: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """The offset of an element: ``(a * n1 + b) * n2 + c``. The first size is not used."""
    offset = indices[0]
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        offset = added(product(offset, size), index)
    return offset


def added(a: Expr, b: Expr) -> Expr:
    """The sum with its terms in one row: ``a + x - y`` if b is ``x - y``. A zero is not left out."""
    if isinstance(b, Binary) and b.op in ("+", "-"):
        return Binary(b.op, added(a, b.left), b.right)
    return Binary("+", a, b)


def take_apart(text: KernelText, number: Expr, names: Sequence[str], sizes: Sequence[Expr]) -> list[Expr]:
    """The digits of a number in row-major order: variables, or 0 where a size is a literal 1. The first digit is the
    rest, and the first size is not used. ::

        rest1 = row // m1
        o1 = row - rest1 * m1
        o0 = rest1
    """
    if not names:
        return []
    digits: list[Expr] = []
    for position in range(len(names) - 1, 0, -1):
        if is_number(sizes[position], 1):
            digits.append(ZERO)
            continue
        rest = text.writer.assign(f"rest{position}", number // sizes[position])
        digits.append(text.writer.assign(names[position], number - rest * sizes[position]))
        number = rest
    digits.append(text.writer.assign(names[0], number))
    return digits[::-1]
