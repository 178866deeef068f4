"""Convolutions of one input each, channels first, as a depthwise one: rows of results, with the window in registers.

A product of matrices reads an element of the input once for several outputs; here there are few products for each, and
what a window has in common with the next one is read once instead. A thread copies a part of one input plane with its
padding into a local array, which stays in a first-level cache. Then it computes a few neighbouring rows of results at a
time: their sums, and all weights, are in registers, and each row of the copy is read once for all of them.

    out[n, g, o, i, j] = sum over a, b of cells[i + a, j + b] * w[g, o, a, b]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

from ...hlo.support.records import dataclass
from ...hlo.window import WindowDimension
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, minimum, plus, product_of, sum_of, times
from ..loops.overlapping import each_of
from ..loops.writer import cast
from ..remembered import remembered_by_form
from .convolution import Sizes
from .convolution_copy import Cells, cells_first, inside_of
from .product import type_of_sums
from .scalar_computations import KernelText
from .window_axes import NOTHING, Axis, take_apart


@dataclass(frozen=True, slots=True)
class Rows:
    """How a plane of results is computed."""

    rows: int
    """How many rows of results have their sums in registers at a time."""
    columns: int
    """How many columns of them."""
    room: int
    """Elements of the local array."""
    high: int
    """Rows of results that one copy is for."""
    wide: int
    """Columns of results that one copy is for."""


def planes_of(sizes: Sizes) -> tuple[Axis, ...]:
    """The axes, of which there are at least two."""
    return sizes.axes if len(sizes.axes) > 1 else (Axis(1, 1, NOTHING), *sizes.axes)


def copied_rows(axis: Axis, high: int) -> int:
    """How many rows of the input `high` rows of results are computed from."""
    part = axis.part
    return (high - 1) * part.stride + (part.size - 1) * part.window_dilation + 1


def copied_columns(axis: Axis, wide: int) -> Cells:
    """The cells of one such row for `wide` columns of results: a phase after the other."""
    return cells_first(Axis(axis.size, wide, axis.part))


def copied(sizes: Sizes, high: int, wide: int) -> int:
    """How many elements a copy for so many rows and columns of results has."""
    *outer, first, last = planes_of(sizes)
    cells = copied_columns(last, wide)
    return math.prod(axis.part.size for axis in outer) * copied_rows(first, high) * cells.phases * cells.size


@remembered_by_form
def emit_rows(sizes: Sizes, how: Rows, *, transposed: bool = False) -> EmittedKernel:
    """Operand 0: the input; operand 1: the kernel; output 0: the result. `transposed`: the kernel is that of the
    derivative by the input, [input, output, taps], read from its last tap on. ::

        for item in range(lo, hi):              # plane, columns, rows
            for row in range(copied):
                for j in range(right - left):
                    cells[at + left + j] = x[base + left + j]
            f0 = w[0]
            ...
            for above in range(0, high, 4):
                for before in range(0, wide, 16):
                    for j in lanes(16):
                        sums0[j] = sums0[j] + f0 * cells[line0 + j]
                    ...
                    for j in lanes(16):
                        out[place + j] = sums0[j]

    The last rows and columns of a part are computed together with some of those before, again."""
    return _Emitter(sizes, how).emit(transposed)


class _Emitter:
    """The kernel while it is written."""

    def __init__(self, sizes: Sizes, how: Rows) -> None:
        self.sizes, self.how = sizes, how
        self.kind, self.total = memory_type(sizes.element_type), type_of_sums(sizes.element_type)
        self.text = text = KernelText("convolution_rows", guarded=True)
        self.writer = text.writer
        self.axes = planes_of(sizes)
        self.x = text.operand("x", sizes.element_type, 0).pointer
        self.w = text.operand("w", sizes.element_type, 1).pointer
        self.out = text.output("out", sizes.element_type, 0).pointer
        self.n: list[Expr] = [text.size(f"n{d}", axis.size) for d, axis in enumerate(self.axes)]
        self.m: list[Expr] = [text.size(f"m{d}", axis.count) for d, axis in enumerate(self.axes)]
        self.low: list[Expr] = [text.argument(f"p{d}", axis.part.padding_low) for d, axis in enumerate(self.axes)]
        self.columns = copied_columns(self.axes[-1], how.wide)
        self.of_phase = text.argument("of_phase", self.columns.size)
        self.pitch = text.argument("pitch", self.columns.phases * self.columns.size)
        self.lines = text.argument("lines", copied_rows(self.axes[-2], how.high))
        self.high, self.wide = text.size("high", how.high), text.size("wide", how.wide)
        self.zero = cast(self.total, 0)

    def emit(self, transposed: bool) -> EmittedKernel:
        text, writer, how, sizes, axes = self.text, self.writer, self.how, self.sizes, self.axes
        outputs, groups = text.size("outputs", sizes.outputs), text.size("groups", sizes.groups)
        blocks, tiles = -(-axes[-2].count // how.high), -(-axes[-1].count // how.wide)
        used = text.argument("used", copied(sizes, how.high, how.wide) + how.columns)
        self.cells = writer.local_array("cells", how.room + how.columns, self.total)
        self.sums = [writer.local_array(f"sums{r}", how.columns, self.total) for r in range(how.rows)]
        was = writer.assign("was", -1)
        with writer.loop("item", LO, HI) as item:
            names = ["plane", *(f"o{d}" for d in range(len(axes) - 2)), "tile", "block"]
            bounds = [ZERO, *self.m[:-2], text.size("tiles", tiles), text.size("blocks", blocks)]
            plane, *outer, tile, block = take_apart(text, item, names, bounds)
            row = ZERO if blocks == 1 else writer.assign("row", minimum(block * self.high, self.m[-2] - self.high))
            column = ZERO if tiles == 1 else writer.assign("column", minimum(tile * self.wide, self.m[-1] - self.wide))
            with writer.if_(was.ne(tile)):
                with writer.loop("j", used) as j:
                    writer.store(self.cells, j, self.zero)
                writer.assign(was, tile)
            self._copy([plane, *outer], row, column)
            first = writer.assign("first", times(plane % groups, outputs))
            with nullcontext(ZERO) if sizes.outputs == 1 else writer.loop("o", outputs) as o:
                at = writer.assign("at_w", times(plus(first, o), Number(sizes.taps)))
                taps = range(sizes.taps - 1, -1, -1) if transposed else range(sizes.taps)
                factors = [writer.assign(f"factor{k}", self._held(self.w[at + tap])) for k, tap in enumerate(taps)]
                indices = [plus(times(plane, outputs), o), *outer, row, column]
                self._compute(factors, writer.assign("result", _offset(indices, self.m)))
        return text.finish(sizes.batch * sizes.groups * math.prod(a.count for a in axes[:-2]) * blocks * tiles)

    def _held(self, value: Expr) -> Expr:
        return value if self.kind == self.total else cast(self.total, value)

    def _copy(self, outer: list[Expr], row: Expr, column: Expr) -> None:
        """The rows of the input, for each element of the window along the outer axes. Cells to the left and to the
        right of the array are zeros already: they are the same ones for each plane."""
        writer, (*parts, part, last) = self.writer, [axis.part for axis in self.axes]
        to = writer.assign("to", 0)
        for numbers in itertools.product(*(range(p.size) for p in parts)):
            cells: list[Expr] = [outer[0]]
            for d, (p, k) in enumerate(zip(parts, numbers, strict=True)):
                cells.append(writer.assign(f"cell{d}", _cell(outer[d + 1], p, k * p.window_dilation) - self.low[d]))
            with writer.loop("line", self.lines) as line:
                cell = writer.assign(f"cell{len(parts)}", plus(times(row, Number(part.stride)), line) - self.low[-2])
                start = writer.assign("start", _offset([*cells, cell, ZERO], self.n))
                tests = [test for c, n in zip([*cells[1:], cell], self.n, strict=False) for test in (c >= 0, c < n)]
                is_inside = writer.assign("is_inside", all_of(tests))
                for phase in range(self.columns.phases):
                    shift = writer.assign("shift", _cell(column, last, phase) - self.low[-1])
                    left, right = inside_of(writer, [], shift, Number(last.stride), self.n[-1], self.of_phase)
                    at = writer.assign("at", plus(to, times(Number(phase), self.of_phase)) + left)
                    base = writer.assign("base", start + shift + times(left, Number(last.stride)))
                    with writer.if_(is_inside):
                        self._put_each(right - left, at, base)
                    with writer.else_():
                        self._put_each(right - left, at, None)
                writer.augment(to, "+", self.pitch)

    def _put_each(self, count: Expr, at: Expr, base: Expr | None) -> None:
        """Elements of the input from `base` on, or zeros."""
        stride = self.axes[-1].part.stride

        def put(j: Expr) -> None:
            value = self.zero if base is None else self._held(self.x[base + times(j, Number(stride))])
            self.writer.store(self.cells, at + j, value)

        each_of(self.writer, self.writer.assign("count", count), put)

    def _compute(self, factors: Sequence[Expr], result: Expr) -> None:
        """The results for the copy, beginning at an offset."""
        writer, how = self.writer, self.how
        with self._parts("above", self.high, how.high, how.rows) as above:
            line = writer.assign("line_at", times(times(above, Number(self.axes[-2].part.stride)), self.pitch))
            place = writer.assign("line_to", result + times(above, self.m[-1]))
            with self._parts("before", self.wide, how.wide, how.columns) as before:
                self._sums(factors, writer.assign("from_cell", line + before))
                to = writer.assign("to_result", place + before)
                for r, total in enumerate(self.sums):
                    self._write(total, plus(to, times(Number(r), self.m[-1])))

    @contextmanager
    def _parts(self, name: str, whole: Expr, count: int, step: int) -> Iterator[Expr]:
        """The loop over parts; the last one begins so early that it is whole."""
        if count <= step:
            yield ZERO
            return
        with self.writer.loop(f"{name}_first", ZERO, whole, step=step) as first:
            yield self.writer.assign(name, minimum(first, whole - step))

    def _sums(self, factors: Sequence[Expr], start: Expr) -> None:
        """The sums of some neighbouring rows of results. The rows of the copy come one after the other, so that LLVM
        reads each vector of them once."""
        writer, (*parts, part, last) = self.writer, [axis.part for axis in self.axes]
        for total in self.sums:
            with writer.neighbours("j", self.how.columns, always=True) as j:
                writer.store(total, j, self.zero)
        slices = range(math.prod(p.size for p in parts))
        for number, line in itertools.product(slices, range(copied_rows(self.axes[-2], self.how.rows))):
            taps = {r: divmod(line - r * part.stride, part.window_dilation) for r in range(self.how.rows)}
            used = [(r, a) for r, (a, rest) in taps.items() if not rest and 0 <= a < part.size]
            if not used:
                continue
            from_first = times(plus(times(Number(number), self.lines), Number(line)), self.pitch)
            at = writer.assign("at_line", plus(start, from_first))
            for b in range(last.size):
                phase, distance = self.columns.tap(b)
                cell = plus(plus(at, times(Number(phase), self.of_phase)), Number(distance))
                for r, a in used:
                    factor = factors[(number * part.size + a) * last.size + b]
                    with writer.neighbours("j", self.how.columns, always=True) as j:
                        value = sum_of(self.sums[r][j], product_of(factor, self.cells[cell + j]))
                        writer.store(self.sums[r], j, value)

    def _write(self, total: Name, to: Expr) -> None:
        def put(j: Expr) -> None:
            value = total[j]
            self.writer.store(self.out, to + j, value if self.kind == self.total else cast(self.kind, value))

        if self.how.wide >= self.how.columns:
            with self.writer.neighbours("j", self.how.columns, always=True) as j:
                put(j)
        else:
            each_of(self.writer, self.wide, put, (8, 4), most=self.how.columns)


def _cell(position: Expr, part: WindowDimension, distance: int) -> Expr:
    """The cell at a distance from the window's first one."""
    return plus(times(position, Number(part.stride)), Number(distance))


def _offset(indices: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """The row-major offset of an element; the first index needs no size."""
    offset = indices[0]
    for index, size in zip(indices[1:], sizes, strict=True):
        offset = plus(times(offset, size), index)
    return offset
