"""Kernels of reduce-window. Cumulative windows are in `window_scan.py`.

Along the last dimension, results are computed a block at a time, so that loops vectorise; the loop over all other
dimensions is the one that is sliced::

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
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ...hlo.ir import HloInstruction
from ...hlo.window import dilated, is_plain
from .applied import Buffer, KernelText, cost_of
from .source import EmittedKernel, Expr
from .window_places import MANY_ROWS, UNROLLED, Axis, Place, axes_of, offset_of

BLOCK = 1024
"""Results of a row that stay in the cache together. A few long rows are cut into blocks, which threads share."""
SHORT = 8
"""At an edge with fewer results than this, loops over the window do not pay."""

class _Rows:
    """The loops over all positions of the window except those along the last dimension."""

    def __init__(self, text: KernelText, axes: Sequence[Axis]) -> None:
        self.text = text
        self.places = [Place(text, number, axis) for number, axis in enumerate(axes)]
        self.outer, self.last = self.places[:-1], self.places[-1]
        self.count = math.prod(p.axis.count for p in self.outer)
        self.by_rows = self.count >= MANY_ROWS or self.last.axis.count < 2 * BLOCK

    def loop(self, body: Callable[[], None]) -> None:
        """Calls `body` inside loops that set row, the positions along the outer dimensions, first, start and stop."""
        text = self.text
        with ExitStack() as stack:

            def enter(header: str) -> None:
                stack.enter_context(text.block(header))

            if self.by_rows:
                enter("for row in range(lo, hi):")
                self._take_apart()
                if self.last.axis.count > BLOCK:
                    enter(f"for start in range(0, {self.last.count}, {BLOCK}):")
                    text.line(f"stop = minimum(start + {BLOCK}, {self.last.count})")
                else:
                    text.line("start = 0")
                    text.line(f"stop = {self.last.count}")
            else:
                enter(f"for start in range(lo, hi, {BLOCK}):")
                text.line(f"stop = minimum(start + {BLOCK}, hi)")
                if self.outer:
                    rows = text.size("rows", self.count)
                    enter(f"for row in range({rows}):")
                    self._take_apart()
            text.line(f"first = row * {self.last.count}" if self.outer or self.by_rows else "first = 0")
            body()

    def _take_apart(self) -> None:
        rest = "row"
        for place in reversed(self.outer[1:]):
            self.text.line(f"o{place.number} = {rest} % {place.count}")
            self.text.line(f"rest{place.number} = {rest} // {place.count}")
            rest = f"rest{place.number}"
        if self.outer:
            self.text.line(f"o{self.outer[0].number} = {rest}")
        for place in self.outer:
            if place.moves:
                self.text.line(f"at{place.number} = {place.origin(f'o{place.number}')}")

    def windows(self, stack: ExitStack) -> str:
        """Opens the loops over the window along the outer dimensions; gives the offset of the array's row."""
        terms = []
        for place in self.outer:
            if not place.moves:
                terms.append(f"o{place.number}")
                continue
            number = place.number
            stack.enter_context(self.text.block(f"for k{number} in {place.elements(f'at{number}')}:"))
            self.text.line(f"cell{number} = at{number} + {place.shift(f'k{number}')}")
            tests = place.tests(f"cell{number}")
            if tests:
                stack.enter_context(self.text.block(f"if {' and '.join(tests)}:"))
            terms.append(place.row(f"cell{number}"))
        return offset_of([*terms, "0"], [p.size for p in self.places])

    @property
    def extent(self) -> int:
        return self.count if self.by_rows else self.last.axis.count

    @property
    def others(self) -> int:
        """The positions in one iteration of the sliced loop."""
        return self.last.axis.count if self.by_rows else self.count


def emit_reduce_window(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a reduce-window; its operands and outputs have the numbers of the instruction's leaves."""
    count = len(instruction.operands) // 2
    arrays = [o.shape for o in instruction.operands[:count]]
    results = list(instruction.shape.leaves())
    axes = axes_of(arrays[0].dimensions, results[0].dimensions, instruction.attributes.window)
    text = KernelText("reduce_window", instruction.attributes.to_apply)
    sources = [text.operand(f"x{k}", s.element, k) for k, s in enumerate(arrays)]
    starts = [text.operand(f"i{k}", s.element, count + k) for k, s in enumerate(arrays)]
    outputs = [text.output(f"out{k}", s.element, k) for k, s in enumerate(results)]
    rows = _Rows(text, axes)
    _ReduceWindow(instruction, text, rows, sources, starts, outputs).write()
    taps = math.prod(axis.part.size for axis in axes)
    cost = rows.others * taps * (0.2 * count + cost_of(instruction.attributes.to_apply))
    return text.finish(rows.extent, cost)


class _ReduceWindow:
    def __init__(
        self, instruction: HloInstruction, text: KernelText, rows: _Rows, sources: list[Buffer], starts: list[Buffer],
        outputs: list[Buffer],
    ) -> None:  # fmt: skip
        self.instruction, self.text, self.rows = instruction, text, rows
        self.sources, self.starts, self.outputs = sources, starts, outputs
        axes = [p.axis for p in rows.places]
        taps = math.prod(axis.part.size for axis in axes) * len(sources)
        self.unrolls = taps <= UNROLLED and all(axis.part.base_dilation == 1 for axis in axes)
        self.always_inside = all(is_plain(axis.part) for axis in axes)

    def write(self) -> None:
        for k, start in enumerate(self.starts):
            self.text.line(f"init{k} = {start.load('0')}")
        self.rows.loop(self._body)

    def _body(self) -> None:
        text = self.text
        if not self.unrolls:
            self._by_element("start", "stop")
            return
        if self.always_inside:
            self._unrolled("start", "stop")
            return
        low, high = self._interior()
        tests = []
        for place in self.rows.outer:
            if place.moves and not is_plain(place.axis.part):
                span = dilated(place.axis.part.size, place.axis.part.window_dilation) - 1
                reach = text.size(f"r{place.number}", span)
                tests.append(f"at{place.number} >= 0 and at{place.number} + {reach} < {place.size}")
        text.line(f"low = {low}")
        text.line(f"high = maximum({high}, low)")
        if tests:
            with text.block(f"if not ({' and '.join(tests)}):"):
                text.line("low = start")
                text.line("high = start")
        self._unrolled("low", "high")
        with text.block("for side in range(2):"):
            with text.block("if side == 0:"):
                text.line("begin = start")
                text.line("end = low")
            with text.block("else:"):
                text.line("begin = high")
                text.line("end = stop")
            if self.rows.last.moves:
                with text.block(f"if end - begin < {SHORT}:"):
                    self._one_by_one("begin", "end")
                    text.line("begin = end")
            with text.block("if begin < end:"):
                self._by_element("begin", "end")

    def _interior(self) -> tuple[str, str]:
        """The positions along the last dimension at which the whole window is inside the array."""
        last = self.rows.last
        if not last.moves:
            return "start", "stop"
        part = last.axis.part
        span = dilated(part.size, part.window_dilation)
        first = max(-(-part.padding_low // part.stride), 0)
        end = (last.axis.size + part.padding_low - span) // part.stride + 1
        return (
            f"minimum(maximum(start, {self.text.size('inside', first)}), stop)",
            f"minimum(stop, {self.text.size('beyond', max(end, 0))})",
        )

    def _unrolled(self, low: str, high: str) -> None:
        """Computes the results one after the other, each from the whole window."""
        text, rows = self.text, self.rows
        with text.block(f"for j in range({low}, {high}):"):
            names = [f"acc{k}" for k in range(len(self.sources))]
            text.assign(names, [Expr(f"init{k}") for k in range(len(names))])
            moving = [p for p in rows.places if p.moves]
            for element in itertools.product(*(range(p.axis.part.size) for p in moving)):
                cells = dict(zip((p.number for p in moving), element, strict=True))
                offset = self._cell(cells)
                values = [source.load(offset) for source in self.sources]
                text.assign(names, text.combine(self.instruction, [Expr(n) for n in names], values))
            for name, output in zip(names, self.outputs, strict=True):
                text.line(output.store("first + j", Expr(name)))

    def _cell(self, cells: dict[int, int]) -> str:
        terms = []
        for place in self.rows.outer:
            if place.moves:
                shift = cells[place.number]
                terms.append(f"at{place.number} + {place.shift(str(shift))}" if shift else f"at{place.number}")
            else:
                terms.append(f"o{place.number}")
        last = self.rows.last
        if last.moves:
            shift = cells[last.number]
            origin = last.origin("j")
            terms.append(f"{origin} + {last.shift(str(shift))}" if shift else origin)
        else:
            terms.append("j")
        return offset_of(terms, [p.size for p in self.rows.places])

    def _by_element(self, low: str, high: str) -> None:
        """Computes all results together, with one element of the window after the other."""
        text, last = self.text, self.rows.last
        with text.block(f"for j in range({low}, {high}):"):
            for k, output in enumerate(self.outputs):
                text.line(output.store("first + j", Expr(f"init{k}")))
        with ExitStack() as stack:
            base = self.rows.windows(stack)
            text.line(f"base = {base}")
            if not last.moves:
                stack.enter_context(text.block(f"for j in range({low}, {high}):"))
                self._join("base + j")
                return
            stack.enter_context(text.block(f"for k in {last.elements_between(low, high)}:"))
            shift = last.shift("k") if last.low == "0" else f"{last.shift('k')} - {last.low}"
            text.line(f"shift = {shift}")
            begin, end = "-shift", f"{last.extent} - 1 - shift"
            if last.stride != "1":
                begin, end = f"({last.stride} - 1 - shift) // {last.stride}", f"({end}) // {last.stride}"
            text.line(f"left = maximum({low}, {begin})")
            text.line(f"right = minimum({high}, {end} + 1)")
            stack.enter_context(text.block("for j in range(left, right):"))
            cell = ("j" if last.stride == "1" else f"j * {last.stride}") + " + shift"
            if last.axis.part.base_dilation == 1:
                self._join(f"base + {cell}")
                return
            text.line(f"cell = {cell}")
            with text.block(f"if cell % {last.holes} == 0:"):
                self._join(f"base + cell // {last.holes}")

    def _one_by_one(self, low: str, high: str) -> None:
        """Computes the few results at an edge, each from the part of its window that is inside the array."""
        text, last = self.text, self.rows.last
        names = [f"acc{k}" for k in range(len(self.sources))]
        with text.block(f"for j in range({low}, {high}):"):
            text.assign(names, [Expr(f"init{k}") for k in range(len(names))])
            text.line(f"at{last.number} = {last.origin('j')}")
            with ExitStack() as stack:
                base = self.rows.windows(stack)
                text.line(f"base = {base}")
                stack.enter_context(text.block(f"for k in range({last.window}):"))
                text.line(f"cell = at{last.number} + {last.shift('k')}")
                tests = last.tests("cell")
                if tests:
                    stack.enter_context(text.block(f"if {' and '.join(tests)}:"))
                values = [source.load("base + cell") for source in self.sources]
                text.assign(names, text.combine(self.instruction, [Expr(n) for n in names], values))
            for name, output in zip(names, self.outputs, strict=True):
                text.line(output.store("first + j", Expr(name)))

    def _join(self, offset: str) -> None:
        text = self.text
        before = [output.load("first + j") for output in self.outputs]
        if len(before) > 1:
            names = [f"acc{k}" for k in range(len(before))]
            for name, value in zip(names, before, strict=True):
                text.line(f"{name} = {value}")
            before = [Expr(name) for name in names]
        after = text.combine(self.instruction, before, [source.load(offset) for source in self.sources])
        if len(after) > 1:
            names = [f"next{k}" for k in range(len(after))]
            for name, value in zip(names, after, strict=True):
                text.line(f"{name} = {value}")
            after = [Expr(name) for name in names]
        for output, value in zip(self.outputs, after, strict=True):
            text.line(output.store("first + j", value))
