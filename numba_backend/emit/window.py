"""Kernels of reduce-window (except cumulative ones, see `window_scan.py`) and of select-and-scatter.

Dimensions along which the window does nothing are merged with their neighbours. Along the last dimension results are
computed a block at a time, so that loops vectorise; the loop over all others is the one that is sliced::

    for row in range(lo, hi):
        for k0 in range(3):                                  # the window, dimension by dimension
            at0 = ...
            if at0 >= 0 and at0 < n0:
                for k1 in range(3):
                    low = maximum(start, ...)                # where this element of the window is inside of the array
                    high = minimum(stop, ...)
                    for j in range(low, high):
                        out[first + j] = maximum(out[first + j], x[base + j * 2])

A small window is unrolled where it lies inside the array altogether: `acc = maximum(acc, x[...])` once an element.

Results of a reduce-window wait in the output between two elements of the window; they are in the first-level cache.
This is a kernel of its own, not an element rule of fusions: with a padded window nothing in a fused loop would
vectorise, and overlapping windows would compute producers again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ...hlo.attributes import Window, WindowDimension
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.window import dilated, is_plain, is_trivial
from .applied import LITERAL_LIMIT, Buffer, KernelText, cost_of
from .element import ELEMENT
from .source import EmittedKernel, Expr

BLOCK = 1024
"""Results of a row that wait in the cache together."""
UNROLLED = 32
"""Elements of a window, times operands, up to which it is unrolled."""
SHORT = 8
"""Results at an edge of the array up to which loops over the window do not pay."""
MANY_ROWS = 16
"""Rows from which on threads share them; fewer rows are cut into blocks, which threads share."""

ELEMENT.unsupported(
    [Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER], "it has rows of its own in the program, see rows/window.py"
)


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of the array after merging: its size, how many places the window has, and the window."""

    size: int
    count: int
    part: WindowDimension

    @property
    def extent(self) -> int:
        """Cells once it is dilated."""
        return dilated(self.size, self.part.base_dilation)


NOTHING = WindowDimension()


def axes_of(sizes: Sequence[int], counts: Sequence[int], window: Window) -> list[Axis]:
    """The dimensions, neighbours merged along which the window does nothing; those of size 1 left out."""
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
    """The text of one dimension: its numbers, and the places of the window along it."""

    def __init__(self, text: KernelText, number: int, axis: Axis, *, moves: bool = False) -> None:
        """`moves`: write the window even where it does nothing."""
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
        """How far an element of the window is from its first one."""
        return element if self.dilation == "1" else f"{element} * {self.dilation}"

    def row(self, cell: str) -> str:
        """Which element lies in a cell."""
        return cell if self.axis.part.base_dilation == 1 else f"{cell} // {self.holes}"

    def elements(self, at: str) -> str:
        """The loop over the window at cell `at`: all of it if it is small, else what is inside of the array."""
        part = self.axis.part
        if part.size <= LITERAL_LIMIT or is_plain(part):
            return f"range({self.window})"
        begin, end = f"-{at}", f"{self.extent} - {at}"
        if self.dilation != "1":
            begin = f"({self.dilation} - 1 - {at}) // {self.dilation}"
            end = f"({self.extent} - 1 - {at}) // {self.dilation} + 1"
        return f"range(maximum(0, {begin}), minimum({self.window}, {end}))"

    def elements_between(self, low: str, high: str) -> str:
        """The same for the places from `low` to `high`: what is inside of the array at one of them."""
        part = self.axis.part
        if part.size <= LITERAL_LIMIT or is_plain(part):
            return f"range({self.window})"
        begin = f"({self.low} - ({high} - 1) * {self.stride} + {self.dilation} - 1) // {self.dilation}"
        end = f"({self.extent} - 1 + {self.low} - {low} * {self.stride}) // {self.dilation} + 1"
        return f"range(maximum(0, {begin}), minimum({self.window}, {end}))"

    def tests(self, cell: str) -> list[str]:
        """What must hold for a cell to have an element."""
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
        result = f"({result}) * {size} + {term}" if result else term
    return result or "0"


class _Rows:
    """The loops over all places but those along the last dimension."""

    def __init__(self, text: KernelText, axes: Sequence[Axis]) -> None:
        self.text = text
        self.places = [Place(text, number, axis) for number, axis in enumerate(axes)]
        self.outer, self.last = self.places[:-1], self.places[-1]
        self.count = math.prod(p.axis.count for p in self.outer)
        self.by_rows = self.count >= MANY_ROWS or self.last.axis.count < 2 * BLOCK

    def loop(self, body: Callable[[], None]) -> None:
        """`body` inside of loops that set row, its places along the outer dimensions, first, start and stop."""
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
        """Enter the loops over the window along the outer dimensions; where the row of the array begins."""
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
        """Places in one iteration of the sliced loop."""
        return self.last.axis.count if self.by_rows else self.count


def emit_reduce_window(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a reduce-window; operands and outputs are numbered as the instruction's leaves."""
    count = len(instruction.operands) // 2
    arrays = [o.shape for o in instruction.operands[:count]]
    results = list(instruction.shape.leaves())
    axes = axes_of(arrays[0].dimensions, results[0].dimensions, instruction.attributes.window)
    text = KernelText("reduce_window", instruction.attributes.to_apply)
    sources = [text.operand(f"x{k}", s.element, k) for k, s in enumerate(arrays)]
    starts = [text.operand(f"i{k}", s.element, count + k) for k, s in enumerate(arrays)]
    outputs = [text.output(f"out{k}", s.element, k) for k, s in enumerate(results)]
    _ReduceWindow(instruction, text, _Rows(text, axes), sources, starts, outputs).write()
    rows = _Rows(KernelText("unused", instruction.attributes.to_apply), axes)
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
        """The places along the last dimension at which the whole window is inside of the array."""
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
        """Each result from the whole window, one after the other."""
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
        """All results, one element of the window after the other."""
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
        """A few results at the edge, each from what its window has of the array."""
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


def emit_select_and_scatter(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a select-and-scatter.

    Threads share the places along which the window does nothing: the leading ones, or the trailing ones if the window
    moves along the first dimension; what one thread scatters, no other touches. For each of them, in order::

        found = -1
        for k0 in range(2):
            ...
            if found < 0 or not (best >= x[cell]):
                best = x[cell]
                found = cell
        if found >= 0:
            out[found] = out[found] + source[first]
    """
    array, source = (o.shape for o in instruction.operands[:2])
    attributes = instruction.attributes
    axes = axes_of(array.dimensions, source.dimensions, attributes.window)
    text = KernelText("select_and_scatter", attributes.scatter)
    values = text.operand("x", array.element, 0)
    updates = text.operand("y", source.element, 1)
    start = text.operand("i", array.element, 2)
    output = text.output("out", array.element, 0)
    places = [Place(text, number, axis) for number, axis in enumerate(axes)]
    sliced = _shared_dimension(places)
    text.line(f"init = {start.load('0')}")
    with ExitStack() as whole:
        if sliced == 0:
            whole.enter_context(text.block("for o0 in range(lo, hi):"))
        _select_and_scatter(text, instruction, values, updates, output, places, sliced, int(sliced == 0))
    extent = 1 if sliced is None else axes[sliced].size
    taps = math.prod(axis.part.size for axis in axes)
    total = source.num_elements * (2.0 + taps * (1.0 + cost_of(attributes.select))) + array.num_elements
    return text.finish(extent, total / max(extent, 1))


def _select_and_scatter(
    text: KernelText, instruction: HloInstruction, values: Buffer, updates: Buffer, output: Buffer,
    places: Sequence[Place], sliced: int | None, shared: int,
) -> None:  # fmt: skip
    """Fill, then scatter, inside of `shared` loops: what is filled is then still in the cache. Windows that neither
    overlap nor leave the array are written whole, which vectorises."""
    moving = [place for place in places if place.moves]
    disjoint = all(
        is_plain(p.axis.part) and p.axis.part.stride >= dilated(p.axis.part.size, p.axis.part.window_dilation)
        for p in moving
    )
    disjoint = disjoint and math.prod(p.axis.part.size for p in moving) <= UNROLLED
    with ExitStack() as stack:
        terms = _loops(text, stack, places, sliced, shared, [p.size for p in places])
        text.line(output.store(offset_of(terms, [p.size for p in places]), Expr("init")))
    with ExitStack() as stack:
        terms = _loops(text, stack, places, sliced, shared, [p.count for p in places])
        if disjoint:
            _write_window(text, instruction, values, updates, output, places, terms)
            return
        _select(text, instruction, values, places, terms)
        with text.block("if found >= 0:"):
            text.line(f"old = {output.load('found')}")
            text.line(f"update = {updates.load(offset_of(terms, [p.count for p in places]))}")
            (new,) = text.apply(instruction.attributes.scatter, [Expr("old"), Expr("update")])
            text.line(output.store("found", new))


def _select(
    text: KernelText, instruction: HloInstruction, values: Buffer, places: Sequence[Place], terms: Sequence[str]
) -> None:
    """Set `found` to where the selected element of one place lies, or to -1."""
    moving = [place for place in places if place.moves]
    taps = math.prod(place.axis.part.size for place in moving)
    if taps > UNROLLED or any(place.axis.part.base_dilation != 1 for place in moving):
        _select_in_loops(text, instruction, values, places, terms)
        return
    tests = []
    for place in moving:
        text.line(f"at{place.number} = {place.origin(terms[place.number])}")
        if not is_plain(place.axis.part):
            span = dilated(place.axis.part.size, place.axis.part.window_dilation) - 1
            reach = text.size(f"r{place.number}", span, literal=True)
            tests.append(f"at{place.number} >= 0 and at{place.number} + {reach} < {place.size}")
    if not tests:
        _select_unrolled(text, instruction, values, places, terms)
        return
    with text.block(f"if {' and '.join(tests)}:"):
        _select_unrolled(text, instruction, values, places, terms)
    with text.block("else:"):
        _select_in_loops(text, instruction, values, places, terms)


def _select_unrolled(
    text: KernelText, instruction: HloInstruction, values: Buffer, places: Sequence[Place], terms: Sequence[str]
) -> None:
    """Without branches, which would be taken at random."""
    for number, cell in enumerate(_cells(places, terms)):
        text.line(f"cell = {cell}")
        text.line(f"value = {values.load('cell')}")
        if not number:
            text.line("best = value")
            text.line("found = cell")
            continue
        (keep,) = text.apply(instruction.attributes.select, [Expr("best"), Expr("value")])
        text.line(f"keep = {keep.text}")
        text.line("best = select(keep, best, value)")
        text.line("found = select(keep, found, cell)")


def _cells(places: Sequence[Place], terms: Sequence[str]) -> list[str]:
    """The positions of a window's elements, in order."""
    moving = [place for place in places if place.moves]
    found = []
    for element in itertools.product(*(range(p.axis.part.size) for p in moving)):
        shifts = dict(zip((p.number for p in moving), element, strict=True))
        cells = [
            f"at{p.number} + {p.shift(str(shifts[p.number]))}" if p.moves else term
            for p, term in zip(places, terms, strict=True)
        ]
        found.append(offset_of(cells, [p.size for p in places]))
    return found


def _write_window(
    text: KernelText, instruction: HloInstruction, values: Buffer, updates: Buffer, output: Buffer,
    places: Sequence[Place], terms: Sequence[str],
) -> None:  # fmt: skip
    """All elements of one window: the selected one is combined, the others keep the init value."""
    for place in places:
        if place.moves:
            text.line(f"at{place.number} = {place.origin(terms[place.number])}")
    cells = _cells(places, terms)
    text.line(f"best = {values.load(cells[0])}")
    text.line("which = int32(0)")
    for number, cell in enumerate(cells[1:], start=1):
        text.line(f"value = {values.load(cell)}")
        (keep,) = text.apply(instruction.attributes.select, [Expr("best"), Expr("value")])
        text.line(f"keep = {keep.text}")
        text.line("best = select(keep, best, value)")
        text.line(f"which = select(keep, which, int32({number}))")
    text.line(f"update = {updates.load(offset_of(terms, [p.count for p in places]))}")
    (new,) = text.apply(instruction.attributes.scatter, [Expr("init"), Expr("update")])
    text.line(f"new = {new.text}")
    for number, cell in enumerate(cells):
        text.line(output.store(cell, Expr(f"select(which == int32({number}), new, init)")))


def _select_in_loops(
    text: KernelText, instruction: HloInstruction, values: Buffer, places: Sequence[Place], terms: Sequence[str]
) -> None:
    text.line("found = -1")
    text.line("best = init")
    with ExitStack() as stack:
        text.line(f"cell = {_window_cell(text, stack, places, terms)}")
        text.line(f"value = {values.load('cell')}")
        text.line("again = found < 0")
        with text.block("if not again:"):
            (keep,) = text.apply(instruction.attributes.select, [Expr("best"), Expr("value")])
            text.line(f"again = not ({keep.text})")
        with text.block("if again:"):
            text.line("best = value")
            text.line("found = cell")


def _shared_dimension(places: Sequence[Place]) -> int | None:
    """The dimension whose places are sliced: the largest of those along which the window does nothing."""
    still = [p.number for p in places if not p.moves]
    if not still:
        return None
    return still[0] if places[still[0]].axis.size >= MANY_ROWS else max(still, key=lambda d: places[d].axis.size)


def _loops(
    text: KernelText, stack: ExitStack, places: Sequence[Place], sliced: int | None, shared: int, bounds: Sequence[str]
) -> list[str]:
    """Enter a loop for each dimension from `shared` on; the variables of all."""
    for place, bound in list(zip(places, bounds, strict=True))[shared:]:
        limits = "lo, hi" if place.number == sliced else bound
        stack.enter_context(text.block(f"for o{place.number} in range({limits}):"))
    return [f"o{place.number}" for place in places]


def _window_cell(text: KernelText, stack: ExitStack, places: Sequence[Place], terms: Sequence[str]) -> str:
    """Enter the loops over the window, where it is inside of the array; the position of the element."""
    cells = []
    for place, term in zip(places, terms, strict=True):
        if not place.moves:
            cells.append(term)
            continue
        number = place.number
        text.line(f"at{number} = {place.origin(term)}")
        stack.enter_context(text.block(f"for k{number} in {place.elements(f'at{number}')}:"))
        text.line(f"cell{number} = at{number} + {place.shift(f'k{number}')}")
        tests = place.tests(f"cell{number}")
        if tests:
            stack.enter_context(text.block(f"if {' and '.join(tests)}:"))
        cells.append(place.row(f"cell{number}"))
    return offset_of(cells, [p.size for p in places])

