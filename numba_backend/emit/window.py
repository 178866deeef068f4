"""Kernels of reduce-window. Cumulative windows are in `window_scan.py`, most windows over short rows in
`window_joint.py`.

Along the last dimension, results are computed a block at a time, so that loops vectorise. Threads share the loop over
all other dimensions::

    for row in range(lo, hi):
        for k0 in range(3):                                  # the window, dimension by dimension
            at0 = ...
            if at0 >= 0 and at0 < n0:
                for k1 in range(3):
                    low = maximum(start, ...)                # where this element of the window is inside of the array
                    high = minimum(stop, ...)
                    for j in range(low, high):
                        out[first + j] = maximum(out[first + j], x[base + j * 2])

From one element of the window to the next, the results stay in the output, in the first-level cache. Where the whole
window is inside the array, a small window is unrolled: `acc = maximum(acc, x[...])`, once for each of its elements; the
few results at an edge are then computed one by one.

Windows have separate kernels and no element rule in fusions: loops over a padded window vectorise only if the edges
are handled separately, and overlapping windows would compute fused operands again and again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from ...hlo.ir import HloInstruction
from ...hlo.window import dilated, is_plain
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, is_number, maximum, minimum, product, unary
from .kernel import HI, LO, EmittedKernel
from .scalar_computations import Buffer, KernelText
from .window_axes import MANY_ROWS, UNROLLED, Axis, axes_of, kernel_axes, row_major, take_apart

BLOCK = 1024
"""Results of a row that stay in the cache together. A few long rows are cut into blocks, which threads share."""
SHORT = 8
"""At an edge with fewer results than this, loops over the window do not pay."""


class _Rows:
    """The rows of the result: the loops over all positions of the window except those along the last axis."""

    def __init__(self, text: KernelText, axes: Sequence[Axis]) -> None:
        self.text = text
        self.axes = kernel_axes(text, axes)
        self.outer, self.last = self.axes[:-1], self.axes[-1]
        self.count = math.prod(a.axis.count for a in self.outer)
        self.by_rows = _is_by_rows(axes)
        self.positions: list[Name] = []
        self.at: dict[int, Name] = {}
        """The first cell of the window along each outer axis that it moves along."""

    @contextmanager
    def loops(self) -> Iterator[tuple[Expr, Name, Name]]:
        """Opens the loops over rows and parts of rows. Gives the offset of the row, and the part: positions `start` to
        `stop` along the last axis."""
        writer, length = self.text.writer, self.last.count
        row: Expr = ZERO
        with ExitStack() as stack:
            if self.by_rows:
                row = stack.enter_context(writer.loop("row", LO, HI))
                self._begin(row)
                if self.last.axis.count > BLOCK:
                    start = stack.enter_context(writer.loop("start", 0, length, step=BLOCK))
                    stop = writer.assign("stop", minimum(start + BLOCK, length))
                else:
                    start = writer.assign("start", 0)
                    stop = writer.assign("stop", length)
            else:
                start = stack.enter_context(writer.loop("start", LO, HI, step=BLOCK))
                stop = writer.assign("stop", minimum(start + BLOCK, HI))
                if self.outer:
                    row = stack.enter_context(writer.loop("row", self.text.size("rows", self.count)))
                    self._begin(row)
            first = writer.assign("first", ZERO if is_number(row, 0) else product(row, length))
            yield first, start, stop

    def _begin(self, row: Expr) -> None:
        names = [f"o{a.number}" for a in self.outer]
        self.positions = take_apart(self.text, row, names, [a.count for a in self.outer])
        moving = [a for a in self.outer if a.moves]
        self.at = {a.number: a.begin(self.positions[a.number]) for a in moving}

    def over_window(self, stack: ExitStack) -> Expr:
        """Opens the loops over the window along the outer axes; gives the offset of the array's row."""
        indices: list[Expr] = []
        for axis in self.outer:
            if axis.moves:
                at = self.at[axis.number]
                indices.append(axis.over_window(stack, at, *axis.elements(at))[1])
            else:
                indices.append(self.positions[axis.number])
        return row_major([*indices, ZERO], [a.size for a in self.axes])

    @property
    def others(self) -> int:
        """The positions in one iteration of the sliced loop."""
        return self.last.axis.count if self.by_rows else self.count


def _is_by_rows(axes: Sequence[Axis]) -> bool:
    """True if rows are shared between threads, and not parts of them."""
    return math.prod(a.count for a in axes[:-1]) >= MANY_ROWS or axes[-1].count < 2 * BLOCK


def extent_of(instruction: HloInstruction) -> int:
    """The extent of the kernel of `emit_reduce_window`."""
    array, result = instruction.operands[0].shape, next(instruction.shape.leaves())
    axes = axes_of(array.dimensions, result.dimensions, instruction.attributes.window)
    return math.prod(a.count for a in axes[:-1]) if _is_by_rows(axes) else axes[-1].count


def emit_reduce_window(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a reduce-window; its operands and outputs have the numbers of the instruction's leaves."""
    count = len(instruction.operands) // 2
    arrays = [o.shape for o in instruction.operands[:count]]
    results = list(instruction.shape.leaves())
    axes = axes_of(arrays[0].dimensions, results[0].dimensions, instruction.attributes.window)
    text = KernelText("reduce_window", instruction.attributes.to_apply, guarded=True)
    sources = [text.operand(f"x{k}", s.element, k) for k, s in enumerate(arrays)]
    starts = [text.operand(f"i{k}", s.element, count + k) for k, s in enumerate(arrays)]
    outputs = [text.output(f"out{k}", s.element, k) for k, s in enumerate(results)]
    rows = _Rows(text, axes)
    _ReduceWindow(instruction, text, rows, sources, starts, outputs).write()
    return text.finish(extent_of(instruction))


class _ReduceWindow:
    def __init__(
        self, instruction: HloInstruction, text: KernelText, rows: _Rows, sources: list[Buffer], starts: list[Buffer],
        outputs: list[Buffer],
    ) -> None:  # fmt: skip
        self.instruction, self.text, self.rows = instruction, text, rows
        self.sources, self.outputs = sources, outputs
        parts = [a.part for a in rows.axes]
        taps = math.prod(part.size for part in parts) * len(sources)
        self.unrolls = taps <= UNROLLED and all(part.base_dilation == 1 for part in parts)
        self.always_inside = all(is_plain(part) for part in parts)
        self.inits = [text.writer.assign(f"init{k}", start.load(ZERO)) for k, start in enumerate(starts)]

    def write(self) -> None:
        with self.rows.loops() as (first, start, stop):
            if not self.unrolls:
                self._by_element(first, start, stop)
            elif self.always_inside:
                self._unrolled(first, start, stop)
            else:
                low, high = self._interior(start, stop)
                self._unrolled(first, low, high)
                self._sides(first, (start, low), (high, stop))

    def _interior(self, start: Expr, stop: Expr) -> tuple[Name, Name]:
        """The positions along the last axis at which the whole window is inside the array: `low` to `high`."""
        writer = self.text.writer
        begin, end = self._inside(start, stop)
        tests: list[Expr] = []
        for axis in self.rows.outer:
            if axis.moves and not is_plain(axis.part):
                tests += axis.whole_window_tests(self.rows.at[axis.number])
        low = writer.assign("low", begin)
        high = writer.assign("high", maximum(end, low))
        if tests:
            with writer.if_(unary("not", all_of(tests))):
                writer.assign(low, start)
                writer.assign(high, start)
        return low, high

    def _inside(self, start: Expr, stop: Expr) -> tuple[Expr, Expr]:
        """The same, as far as the last axis is concerned."""
        last = self.rows.last
        if not last.moves:
            return start, stop
        part = last.part
        span = dilated(part.size, part.window_dilation)
        first = max(-(-part.padding_low // part.stride), 0)
        end = (last.axis.size + part.padding_low - span) // part.stride + 1
        inside, beyond = self.text.size("inside", first), self.text.size("beyond", max(end, 0))
        return minimum(maximum(start, inside), stop), minimum(stop, beyond)

    def _sides(self, first: Expr, left: tuple[Expr, Expr], right: tuple[Expr, Expr]) -> None:
        """Computes the results at the two edges of a row."""
        writer = self.text.writer
        with writer.loop("side", 2) as side:
            begin, end = writer.variable("begin"), writer.variable("end")
            with writer.if_(side.eq(0)):
                writer.assign(begin, left[0])
                writer.assign(end, left[1])
            with writer.else_():
                writer.assign(begin, right[0])
                writer.assign(end, right[1])
            if self.rows.last.moves:
                with writer.if_(end - begin < SHORT):
                    self._one_by_one(first, begin, end)
                    writer.assign(begin, end)
            with writer.if_(begin < end):
                self._by_element(first, begin, end)

    def _accumulators(self) -> list[Name]:
        """Variables that hold the init values: ``acc0 = init0``."""
        names = [self.text.writer.variable(f"acc{k}", init.type) for k, init in enumerate(self.inits)]
        self.text.assign(names, self.inits)
        return names

    def _unrolled(self, first: Expr, low: Expr, high: Expr) -> None:
        """Computes the results one after the other, each from the whole window."""
        text = self.text
        with text.writer.loop("j", low, high) as j:
            accumulators = self._accumulators()
            moving = [a for a in self.rows.axes if a.moves]
            for elements in itertools.product(*(range(a.part.size) for a in moving)):
                offset = self._offset(j, dict(zip((a.number for a in moving), elements, strict=True)))
                values = [source.load(offset) for source in self.sources]
                text.assign(accumulators, text.combine(self.instruction, accumulators, values))
            for accumulator, output in zip(accumulators, self.outputs, strict=True):
                text.store(output, first + j, accumulator)

    def _offset(self, j: Expr, elements: Mapping[int, int]) -> Expr:
        """The offset of one element of the window at position j of the row. `elements`: by the number of the axis."""
        last = self.rows.last
        indices: list[Expr] = [self.rows.at.get(a.number, self.rows.positions[a.number]) for a in self.rows.outer]
        indices.append(last.origin(j) if last.moves else j)
        for number, element in elements.items():
            if element:
                indices[number] += self.rows.axes[number].distance(Number(element))
        return row_major(indices, [a.size for a in self.rows.axes])

    def _by_element(self, first: Expr, low: Expr, high: Expr) -> None:
        """Computes all results together, with one element of the window after the other."""
        text, writer, last = self.text, self.text.writer, self.rows.last
        with writer.loop("j", low, high) as j:
            for init, output in zip(self.inits, self.outputs, strict=True):
                text.store(output, first + j, init)
        with ExitStack() as stack:
            base = writer.assign("base", self.rows.over_window(stack))
            if not last.moves:
                j = stack.enter_context(writer.loop("j", low, high))
                self._join(first + j, base + j)
                return
            shift = last.shift(stack.enter_context(writer.loop("k", *last.elements_between(low, high))))
            begin, end = last.span(shift, low, high)
            left, right = writer.assign("left", begin), writer.assign("right", end)
            j = stack.enter_context(writer.loop("j", left, right))
            if last.part.base_dilation == 1:
                self._join(first + j, base + j * last.stride + shift)
                return
            cell = writer.assign("cell", j * last.stride + shift)
            with writer.if_((cell % last.holes).eq(0)):
                self._join(first + j, base + cell // last.holes)

    def _one_by_one(self, first: Expr, low: Expr, high: Expr) -> None:
        """Computes the few results at an edge, each from the part of its window that is inside the array."""
        text, writer, last = self.text, self.text.writer, self.rows.last
        with writer.loop("j", low, high) as j:
            accumulators = self._accumulators()
            at = last.begin(j)
            with ExitStack() as stack:
                base = writer.assign("base", self.rows.over_window(stack))
                k = stack.enter_context(writer.loop("k", last.window))
                cell = writer.assign("cell", at + last.distance(k))
                tests = last.tests(cell)
                if tests:
                    stack.enter_context(writer.if_(all_of(tests)))
                values = [source.load(base + cell) for source in self.sources]
                text.assign(accumulators, text.combine(self.instruction, accumulators, values))
            for accumulator, output in zip(accumulators, self.outputs, strict=True):
                text.store(output, first + j, accumulator)

    def _join(self, result: Expr, offset: Expr) -> None:
        """Combines the results at offset `result` with the elements at `offset`."""
        text = self.text
        before = self._named("acc", [output.load(result) for output in self.outputs])
        after = text.combine(self.instruction, before, [source.load(offset) for source in self.sources])
        for output, value in zip(self.outputs, self._named("next", after), strict=True):
            text.store(output, result, value)

    def _named(self, stem: str, values: Sequence[Expr]) -> Sequence[Expr]:
        """The values; if there are several, each has a name."""
        if len(values) == 1:
            return values
        return [self.text.writer.assign(f"{stem}{k}", value) for k, value in enumerate(values)]
