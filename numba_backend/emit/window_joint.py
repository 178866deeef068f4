"""Kernels of windows over short rows: several rows of results at a time, along all other dimensions first.

A reducer of one operation may take the elements of a window in any order. So rows of the array are combined first, into
a local array, and then neighbours along the last dimension. Where rows of the array and of the results correspond (``n1
== m1 * s1``), all rows of a group are one loop along the last dimension. That loop computes wrong values for the few
results at the edges, and these are then computed again, one by one::

    for group in range(lo, hi):
        for row in range(top, bottom):
            for j in range(width):
                held[to + j] = reduce_add(reduce_add(x0[base + j], x0[base + n1 + j]), x0[base + 2 * n1 + j])
        for j in range((bottom - top) * m1):
            out0[first + j] = reduce_add(reduce_add(reduce_add(init, held[j + 63]), held[j + 64]), held[j + 65])
        for row in range(top, bottom):
            ...                                                         the edges

Rows of 28 numbers, as images have them at the end of a network, would otherwise be remainders of loops for the most
part. `width` is rounded up to whole vectors, as far as the array reaches.
"""

from __future__ import annotations

import itertools
import math
from contextlib import ExitStack

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ...hlo.window import dilated, is_plain
from ..loops.expressions import Expr, Name, Number, all_of, call, maximum, minimum, product
from ..loops.writer import cast
from .convolution_copy import carry
from .kernel import HI, LO, EmittedKernel, memory_type
from .scalar_computations import Buffer, KernelText
from .window_axes import UNROLLED, Axis, added, axes_of, kernel_axes, row_major, take_apart

HELD = 4096
"""Elements of the local array, at most; 16 KiB at most."""
EDGE = 64
"""Unused elements of it at both ends, which windows at an edge reach into."""
GROUPS = 16
"""So many groups of rows at least, for the threads."""
VECTOR = 16

_AGAIN = (Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR)
"""Operations that may take an element twice without changing the result."""


def joins_rows(instruction: HloInstruction) -> bool:
    """Whether `emit_joint` can write a reduce-window."""
    if len(instruction.operands) != 2:
        return False
    element = instruction.shape.element
    opcode = reducer_opcode(instruction.attributes.to_apply)
    if opcode not in (Opcode.ADD, Opcode.MULTIPLY, *_AGAIN):
        return False
    if not (element.is_floating or element.is_integral) or element.bit_width not in (16, 32, 64):
        return False
    axes = _axes(instruction)
    parts = [axis.part for axis in axes]
    last, taps = axes[-1], math.prod(part.size for part in parts)
    reach = dilated(last.part.size, last.part.window_dilation) - 1
    return (
        taps <= UNROLLED
        and last.part.size > 1
        and all(part.base_dilation == 1 for part in parts)
        and reach < EDGE
        and 0 <= last.part.padding_low <= reach
        and last.part.padding_high <= reach
        and last.size <= _capacity(instruction)
    )


def _axes(instruction: HloInstruction) -> list[Axis]:
    sizes, counts = instruction.operands[0].shape.dimensions, instruction.shape.dimensions
    return axes_of(sizes, counts, instruction.attributes.window)


def _held(instruction: HloInstruction) -> int:
    return min(HELD, (HELD * 32) // max(instruction.shape.element.bit_width, 32))


def _capacity(instruction: HloInstruction) -> int:
    """The longest row."""
    return _held(instruction) - 2 * EDGE - VECTOR


def emit_joint(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a reduce-window; its operands and outputs have the numbers of the instruction's leaves."""
    return _Joint(instruction).write()


def extent_of_joint(instruction: HloInstruction) -> int:
    """The extent of the kernel: its groups of rows."""
    rows, group = _groups(instruction)
    return -(-rows // group)


def _groups(instruction: HloInstruction) -> tuple[int, int]:
    """The rows of the result, and how many of them are a group."""
    axes = _axes(instruction)
    rows = math.prod(axis.count for axis in axes[:-1])
    fitting = _capacity(instruction) // axes[-1].size
    most = max(1, min(fitting, -(-rows // GROUPS)))
    return rows, _even(rows // math.gcd(rows, instruction.shape.dimensions[0]), most)


def _even(rows: int, most: int) -> int:
    """How many rows a group has: `most`, or somewhat fewer if all groups of an image's `rows` have as many then."""
    return next((group for group in range(most, most // 2, -1) if rows % group == 0), most)


class _Joint:
    def __init__(self, instruction: HloInstruction) -> None:
        self.instruction, element = instruction, instruction.shape.element
        self.reducer = instruction.attributes.to_apply
        axes = _axes(instruction)
        self.text = text = KernelText("reduce_window", self.reducer, guarded=True)
        self.writer = text.writer
        self.source, start = text.operand("x0", element, 0), text.operand("i0", element, 1)
        self.output = text.output("out0", element, 0)
        self.axes = kernel_axes(text, axes)
        self.outer, self.last = self.axes[:-1], self.axes[-1]
        self.moving = [axis for axis in self.outer if axis.moves]
        self.rows, self.group = _groups(instruction)
        self.whole = math.prod(axis.size for axis in axes)
        self.init = self.writer.assign("init", start.load(0))
        self.nothing = self.writer.assign("nothing", self._nothing())
        self.held = Buffer(self.writer.local_array("held", _held(instruction), memory_type(element)), element)

    def write(self) -> EmittedKernel:
        """The kernel."""
        text, writer, last = self.text, self.writer, self.last
        rows, size = text.size("rows", self.rows), text.size("group", self.group)
        with writer.loop("group_number", LO, HI) as number:
            top = writer.assign("top", number * size)
            bottom = writer.assign("bottom", minimum(top + size, rows))
            counts = [a.count for a in self.outer]
            positions = take_apart(text, top, [f"o{a.number}" for a in self.outer], counts)
            with writer.loop("row", top, bottom) as row:
                self._row(positions, writer.assign("to", (row - top) * last.size + EDGE))
                if positions:
                    carry(writer, positions, counts)
            first = writer.assign("first", top * last.count)
            fits = last.size.eq(product(last.count, last.stride))
            with writer.if_(fits), writer.loop("j", (bottom - top) * last.count) as j:
                self._store(first + j, j * last.stride + (EDGE - last.low))
            with writer.else_(), writer.loop("row", bottom - top) as row:
                start = writer.assign("start", row * last.size + (EDGE - last.low))
                with writer.loop("j", last.count) as j:
                    self._store(first + (row * last.count + j), start + j * last.stride)
            if not is_plain(last.part):
                self._edges(bottom - top, first)
        return text.finish(extent_of_joint(self.instruction))

    def _joined(self, accumulator: Expr, element: Expr) -> Expr:
        (value,) = self.text.combine(self.instruction, [accumulator], [element])
        return value

    def _store(self, offset: Expr, start: Expr) -> None:
        """One result, of the held elements from `start` on."""
        value: Expr = self.init
        for k in range(self.last.part.size):
            value = self._joined(value, self.held.load(added(start, self.last.distance(Number(k)))))
        self.text.store(self.output, offset, value)

    def _row(self, positions: list[Name], to: Name) -> None:
        """Combines the rows of the array that a row of windows covers."""
        writer, text, last = self.writer, self.text, self.last
        at: list[Expr] = [a.begin(p) if a.moves else p for a, p in zip(self.outer, positions, strict=True)]
        sizes = [a.size for a in self.axes]
        whole = text.size("whole", self.whole)
        tests = [t for a in self.moving if not is_plain(a.part) for t in a.whole_window_tests(at[a.number])]
        rounded = (last.size + (VECTOR - 1)) // VECTOR * VECTOR

        def inside() -> None:
            bases: list[Name] = []
            for elements in itertools.product(*(range(a.part.size) for a in self.moving)):
                indices = list(at)
                for axis, element in zip(self.moving, elements, strict=True):
                    indices[axis.number] += axis.distance(Number(element))
                bases.append(writer.assign(f"base{len(bases)}", row_major([*indices, Number(0)], sizes)))
            width = writer.assign("width", minimum(rounded, whole - bases[-1]))
            with writer.loop("j", width) as j:
                value = self.source.load(bases[0] + j)
                for base in bases[1:]:
                    value = self._joined(value, self.source.load(base + j))
                text.store(self.held, to + j, value)

        def at_an_edge() -> None:
            with writer.loop("j", last.size) as j:
                text.store(self.held, to + j, self.nothing)
            with ExitStack() as stack:
                indices = list(at)
                for axis in self.moving:
                    start = at[axis.number]
                    indices[axis.number] = axis.over_window(stack, start, *axis.elements(start))[1]
                base = writer.assign("base", row_major([*indices, Number(0)], sizes))
                j = stack.enter_context(writer.loop("j", last.size))
                text.store(self.held, to + j, self._joined(self.held.load(to + j), self.source.load(base + j)))

        if not tests:
            inside()
            return
        with writer.if_(all_of(tests)):
            inside()
        with writer.else_():
            at_an_edge()

    def _nothing(self) -> Expr:
        """A value that changes no result: the init value, if the operation may take it twice."""
        opcode = reducer_opcode(self.reducer)
        if opcode in _AGAIN:
            return self.init
        one = Number(1) if opcode is Opcode.MULTIPLY else Number(0)
        if self.init.type.startswith("float") and opcode is Opcode.ADD:
            one = Number(-0.0)
        return cast(self.init.type, one)

    def _edges(self, rows: Expr, first: Name) -> None:
        """The results with windows that reach out of a row, for all rows of the group."""
        writer, text, last = self.writer, self.text, self.last
        part = last.part
        reach = dilated(part.size, part.window_dilation) - 1
        begin = min(-(-part.padding_low // part.stride), last.axis.count)
        end = max((last.axis.size + part.padding_low - reach - 1) // part.stride + 1, begin)
        inside, beyond = text.size("inside", begin), text.size("beyond", min(end, last.axis.count))
        with writer.loop("side", inside + (last.count - beyond)) as side:
            at_right = writer.assign("at_right", minimum(1, maximum(0, side - inside + 1)))
            j = writer.assign("edge", side + at_right * (beyond - inside))
            at = last.begin(j)
            with writer.loop("row", rows) as row:
                value: Expr = self.init
                for k in range(part.size):
                    cell = writer.assign(f"cell{k}", added(at, last.distance(Number(k))))
                    element = self.held.load(row * last.size + EDGE + cell)
                    for test in last.tests(cell):
                        element = call("select", test, element, self.nothing)
                    value = writer.assign("acc", self._joined(value, element))
                text.store(self.output, first + (row * last.count + j), value)
