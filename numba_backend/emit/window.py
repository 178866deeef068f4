"""Kernels of reduce-window. Cumulative windows are in `window_scan.py`, most windows over short rows in
`window_joint.py`.

Along the last dimension, results are computed a block at a time, so that loops vectorise. Threads share the loop over
all other dimensions::

    for row in range(lo, hi):
        for k0 in range(3):                                  # the window, dimension by dimension
            cell0 = at0 + k0
            if cell0 >= 0 and cell0 < n0:
                for k in range(3):
                    left = maximum(start, ...)               # where this element of the window is inside of the array
                    right = minimum(stop, ...)
                    for j in range(left, right):
                        out[first + j] = maximum(out[first + j], x[base + j * 2 + k])

From one element of the window to the next, the results stay in the output, in the first-level cache. Where the whole
window is inside the array, a small window is unrolled: `acc = maximum(acc, x[...])`, once for each of its elements.

Windows have separate kernels and no element rule in fusions: loops over a padded window vectorise only if the edges
are handled separately, and overlapping windows would compute fused operands again and again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import is_splat, reducer_identity, reducer_opcode
from ...hlo.window import dilated, is_plain
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ZERO, Expr, Name, Number, Unary, all_of, is_number, maximum, minimum, product
from ..schedule.steps import size_of
from .scalar_computations import Buffer, KernelText
from .window_axes import UNROLLED, Axis, Windows, added, axes_of, take_apart
from .window_schedule import WindowBlocks, window_notes

SHORT = 8
"""At an edge with fewer results than this, loops over the window do not pay."""


def axes_of_reduction(instruction: HloInstruction) -> list[Axis]:
    """The axes of a reduce-window."""
    array, result = instruction.operands[0].shape, next(instruction.shape.leaves())
    return axes_of(array.dimensions, result.dimensions, instruction.attributes.window)


def rows_of(instruction: HloInstruction) -> int:
    """How many rows of results there are."""
    return math.prod(axis.count for axis in axes_of_reduction(instruction)[:-1])


def emit_reduce_window(instruction: HloInstruction, blocks: WindowBlocks) -> EmittedKernel:
    """The kernel of a reduce-window; its operands and outputs have the numbers of the instruction's leaves."""
    return _Rows(instruction).write(blocks)


def starts_with_neutral(instruction: HloInstruction) -> bool:
    """Whether the init value of a reduce-window changes no element: -inf of a maximum, as pools have it. Of a sum of
    floats, 0 changes -0."""
    opcode, init = reducer_opcode(instruction.attributes.to_apply), instruction.operands[-1]
    element = init.shape.element
    if opcode is None or element.is_complex or (opcode is Opcode.ADD and element.is_floating):
        return False
    return is_splat(init, reducer_identity(opcode, element))


class ReduceWindow(Windows):
    """The base of the kernels of a reduce-window."""

    def __init__(self, instruction: HloInstruction) -> None:
        self.instruction, count = instruction, len(instruction.operands) // 2
        text = KernelText("reduce_window", instruction.attributes.to_apply, guarded=True)
        operands = [o.shape.element for o in instruction.operands]
        self.sources: list[Buffer] = [text.operand(f"x{k}", t, k) for k, t in enumerate(operands[:count])]
        starts = [text.operand(f"i{k}", t, count + k) for k, t in enumerate(operands[count:])]
        self.outputs = [text.output(f"out{k}", s.element, k) for k, s in enumerate(instruction.shape.leaves())]
        super().__init__(text, axes_of_reduction(instruction))
        self.outer, self.last = self.axes[:-1], self.axes[-1]
        self.inits: list[Name] = [text.writer.assign(f"init{k}", start.load(ZERO)) for k, start in enumerate(starts)]
        self.starts: Sequence[Name] = () if starts_with_neutral(instruction) else self.inits
        """For windows inside the array: where they start from; empty if they may start from their first element."""

    def combined(self, accumulators: Sequence[Expr], elements: Sequence[Expr]) -> list[Expr]:
        """The accumulators combined with more elements."""
        return self.text.combine(self.instruction, accumulators, elements)

    def accumulators(self, values: Sequence[Expr]) -> list[Name]:
        """Variables that begin with these values: ``acc0 = init0``."""
        names = [self.writer.variable(f"acc{k}", value.type) for k, value in enumerate(values)]
        self.text.assign(names, values)
        return names

    def total(self, starts: Sequence[Expr], elements: Sequence[Sequence[Expr]]) -> Sequence[Expr]:
        """The elements combined with the starts, or with the first of them if there are no starts: an expression, if
        the reducer is one operation."""
        if not starts:
            starts, *elements = elements
        if len(starts) > 1 or reducer_opcode(self.instruction.attributes.to_apply) is None:
            names = self.accumulators(starts)
            for values in elements:
                self.text.assign(names, self.combined(names, values))
            return names
        for values in elements:
            starts = self.combined(starts, values)
        return starts

    def bases(self, begins: Sequence[Expr]) -> list[Name]:
        """The offsets of the rows that a window covers: ``base0 = ...``"""
        return [self.writer.assign(f"base{n}", offset) for n, offset in enumerate(self.offsets(begins))]

    def at_once(
        self, bases: Sequence[Expr], bounds: tuple[Expr, Expr], to: Sequence[Buffer], first: Expr,
        starts: Sequence[Expr] = (), along: bool = False,
    ) -> None:  # fmt: skip
        """Write ``to[first + j]`` for each j in the bounds, which combines `starts` with element j of each row of the
        array, or (`along`) with the elements that the window at position j covers."""
        last = self.last
        with self.writer.loop("j", *bounds) as j:
            cells: list[Expr] = [j]
            if along and last.moves:
                origin = last.origin(j)
                cells = [origin + last.distance(Number(k)) for k in range(last.part.size)]
            elements = [[source.load(added(base, cell)) for source in self.sources] for base in bases for cell in cells]
            self._keep(to, first + j, self.total(starts, elements))

    def one_by_one(
        self, begins: Sequence[Expr], bounds: tuple[Expr, Expr], to: Sequence[Buffer], first: Expr,
        starts: Sequence[Expr], along: bool = False,
    ) -> None:  # fmt: skip
        """The same for a window that may reach out of the array: with one of its elements after the other."""
        writer, last = self.writer, self.last
        with writer.loop("j", *bounds) as j:
            self._keep(to, first + j, starts)
        with ExitStack() as stack:
            base = writer.assign("base", self.over_elements(stack, begins))
            if not along or not last.moves:
                j = stack.enter_context(writer.loop("j", *bounds))
                self._join(to, first + j, base + j)
                return
            shift = last.shift(stack.enter_context(writer.loop("k", *last.elements_between(*bounds))))
            begin, end = last.span(shift, *bounds)
            left, right = writer.assign("left", begin), writer.assign("right", end)
            j = stack.enter_context(writer.loop("j", left, right))
            if last.part.base_dilation == 1:
                self._join(to, first + j, base + j * last.stride + shift)
                return
            cell = writer.assign("cell", j * last.stride + shift)
            with writer.if_((cell % last.holes).eq(0)):
                self._join(to, first + j, base + cell // last.holes)

    def _join(self, to: Sequence[Buffer], result: Expr, offset: Expr) -> None:
        """Combines the results at offset `result` with the elements at `offset`."""
        before = self._named("acc", [buffer.load(result) for buffer in to])
        after = self.combined(before, [source.load(offset) for source in self.sources])
        self._keep(to, result, self._named("next", after))

    def _keep(self, to: Sequence[Buffer], offset: Expr, values: Sequence[Expr]) -> None:
        for buffer, value in zip(to, values, strict=True):
            self.text.store(buffer, offset, value)

    def _named(self, stem: str, values: Sequence[Expr]) -> Sequence[Expr]:
        """The values; if there are several, each has a name."""
        if len(values) == 1:
            return values
        return [self.writer.assign(f"{stem}{k}", value) for k, value in enumerate(values)]


class _Rows(ReduceWindow):
    """Windows row by row, or part by part of a row."""

    def write(self, blocks: WindowBlocks) -> EmittedKernel:
        """The kernel."""
        with self._parts(blocks) as (begins, first, start, stop):
            if not self.unrolls or self.elements * len(self.sources) > UNROLLED:
                self.one_by_one(begins, (start, stop), self.outputs, first, self.inits, along=True)
            else:
                low, high = self._interior(begins, start, stop)
                self.at_once(self.bases(begins), (low, high), self.outputs, first, self.starts, along=True)
                if not all(is_plain(a.part) for a in self.axes):
                    self._sides(begins, first, (start, low, high, stop))
        extent = rows_of(self.instruction) if blocks.by_rows else self.last.axis.count
        return self.text.finish(extent, notes=window_notes(self.instruction, blocks.steps()))

    def _sides(self, begins: Sequence[Expr], first: Expr, ends: tuple[Expr, Expr, Expr, Expr]) -> None:
        """Computes the results before and after the interior of a row."""
        writer, (start, low, high, stop) = self.writer, ends
        with writer.loop("side", 2) as side:
            begin, end = writer.variable("begin"), writer.variable("end")
            with writer.if_(side.eq(0)):
                writer.assign(begin, start)
                writer.assign(end, low)
            with writer.else_():
                writer.assign(begin, high)
                writer.assign(end, stop)
            if self.last.moves:
                with writer.if_(end - begin < SHORT):
                    self._at_an_edge(begins, first, begin, end)
                    writer.assign(begin, end)
            with writer.if_(begin < end):
                self.one_by_one(begins, (begin, end), self.outputs, first, self.inits, along=True)

    def _at_an_edge(self, begins: Sequence[Expr], first: Expr, low: Expr, high: Expr) -> None:
        """Computes a few results, each from the part of its window that is inside the array."""
        with self.writer.loop("j", low, high) as j:
            names = self.accumulators(self.inits)
            with ExitStack() as stack:
                offset = self.over_elements(stack, [*begins, self.last.begin(j)])
                self.text.assign(names, self.combined(names, [source.load(offset) for source in self.sources]))
            self._keep(self.outputs, first + j, names)

    @contextmanager
    def _parts(self, blocks: WindowBlocks) -> Iterator[tuple[list[Expr], Expr, Name, Name]]:
        """Opens the loops over rows and parts of rows. Gives the first cells of the window along the outer axes, the
        offset of the row, and the part: positions `start` to `stop` along the last axis."""
        writer, length = self.writer, self.last.count
        row: Expr = ZERO
        begins: list[Expr] = []
        size = size_of(blocks.columns)
        with ExitStack() as stack:
            if blocks.by_rows:
                row = stack.enter_context(writer.loop("row", LO, HI))
                begins = self._begins(row)
                if size:
                    start = stack.enter_context(writer.loop("start", 0, length, step=size))
                    stop = writer.assign("stop", minimum(start + size, length))
                else:
                    start = writer.assign("start", 0)
                    stop = writer.assign("stop", length)
            else:
                start = stack.enter_context(writer.loop("start", LO, HI, step=size))
                stop = writer.assign("stop", minimum(start + size, HI))
                if self.outer:
                    rows = self.text.size("rows", math.prod(a.axis.count for a in self.outer))
                    row = stack.enter_context(writer.loop("row", rows))
                    begins = self._begins(row)
            first = writer.assign("first", ZERO if is_number(row, 0) else product(row, length))
            yield begins, first, start, stop

    def _begins(self, row: Expr) -> list[Expr]:
        return self.begins(take_apart(self.text, row, [f"o{a.number}" for a in self.outer], self.counts[:-1]))

    def _interior(self, begins: Sequence[Expr], start: Expr, stop: Expr) -> tuple[Expr, Expr]:
        """The positions along the last axis at which the whole window is inside the array: `low` to `high`."""
        writer, last = self.writer, self.last
        if all(is_plain(a.part) for a in self.axes):
            return start, stop
        begin, end = start, stop
        if last.moves:
            part = last.part
            inside = max(-(-part.padding_low // part.stride), 0)
            reach = dilated(part.size, part.window_dilation)
            beyond = max((last.axis.size + part.padding_low - reach) // part.stride + 1, 0)
            begin = minimum(maximum(start, self.text.size("inside", inside)), stop)
            end = minimum(stop, self.text.size("beyond", beyond))
        low = writer.assign("low", begin)
        high = writer.assign("high", maximum(end, low))
        if tests := self.whole_tests(begins):
            with writer.if_(Unary("not", all_of(tests))):
                writer.assign(low, start)
                writer.assign(high, start)
        return low, high
