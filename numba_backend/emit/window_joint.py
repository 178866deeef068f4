"""Kernels of windows over short rows: several rows of results at a time, along all other dimensions first.

A reducer of one operation may take the elements of a window in any order. So rows of the array are combined first, into
a local array, and then neighbours along the last dimension. Where rows of the array and of the results correspond (``n1
== m1 * s1``), all rows of a group are one loop along the last dimension. That loop computes wrong values for the few
results at the edges, and these are then computed again, one by one::

    for group in range(lo, hi):
        for row in range(top, bottom):
            for j in range(width):
                held[to + j] = reduce_add(reduce_add(x0[base0 + j], x0[base1 + j]), x0[base2 + j])
        for j in range((bottom - top) * m1):
            out0[first + j] = reduce_add(reduce_add(reduce_add(init0, held[j + 63]), held[j + 64]), held[j + 65])
        for row in range(top, bottom):
            ...                                                         the edges

Rows of 28 numbers, as images have them at the end of a network, would otherwise be remainders of loops for the most
part. `width` is rounded up to whole vectors, as far as the array reaches.
"""

from __future__ import annotations

import math

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ...hlo.window import dilated, is_plain
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import ZERO, Expr, Name, Number, call, maximum, minimum, product
from ..loops.writer import cast
from .convolution_copy import carry
from .scalar_computations import Buffer
from .window import ReduceWindow, axes_of_reduction
from .window_axes import UNROLLED, added, take_apart
from .window_schedule import WindowBlocks, window_notes

HELD = 4096
"""Elements of the local array, at most; 16 KiB at most."""
EDGE = 64
"""Unused elements of it at both ends, which windows at an edge reach into."""
VECTOR = 16

_AGAIN = (Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR)
"""Operations that may take an element twice without changing the result."""


def can_join_rows(instruction: HloInstruction) -> bool:
    """Whether `emit_joint` can write a reduce-window."""
    if len(instruction.operands) != 2:
        return False
    element = instruction.shape.element
    opcode = reducer_opcode(instruction.attributes.to_apply)
    if opcode not in (Opcode.ADD, Opcode.MULTIPLY, *_AGAIN):
        return False
    if not (element.is_floating or element.is_integral) or element.bit_width not in (16, 32, 64):
        return False
    axes = axes_of_reduction(instruction)
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
        and 0 < last.size <= longest_row(element)
    )


def _held(element: ElementType) -> int:
    return min(HELD, (HELD * 32) // max(element.bit_width, 32))


def longest_row(element: ElementType) -> int:
    """The most elements of the rows of a group together."""
    return _held(element) - 2 * EDGE - VECTOR


def emit_joint(instruction: HloInstruction, group: int, blocks: WindowBlocks) -> EmittedKernel:
    """The kernel of a reduce-window; its operands and outputs have the numbers of the instruction's leaves. `group`:
    rows of results that are computed together; the array's rows for them are no longer than `longest_row`."""
    return _Joint(instruction).write(group, blocks)


class _Joint(ReduceWindow):
    def write(self, group: int, blocks: WindowBlocks) -> EmittedKernel:
        """The kernel."""
        text, writer, last = self.text, self.writer, self.last
        element = self.instruction.shape.element
        self.nothing = writer.assign("nothing", self._nothing())
        self.held = Buffer(writer.local_array("held", _held(element), memory_type(element)), element)
        count = math.prod(axis.axis.count for axis in self.outer)
        rows, size = text.size("rows", count), text.size("together", group)
        with writer.loop("group", LO, HI) as number:
            top = writer.assign("top", number * size)
            bottom = writer.assign("bottom", minimum(top + size, rows))
            positions = take_apart(text, top, [f"o{a.number}" for a in self.outer], self.counts[:-1])
            with writer.loop("row", top, bottom) as row:
                self._row(self.begins(positions), writer.assign("to", (row - top) * last.size + EDGE))
                if positions:
                    carry(writer, positions, self.counts[:-1])
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
        return text.finish(-(-count // group), notes=window_notes(self.instruction, blocks.steps()))

    def _store(self, offset: Expr, start: Expr) -> None:
        """One result, of the held elements from `start` on."""
        last = self.last
        elements = [self.held.load(added(start, last.distance(Number(k)))) for k in range(last.part.size)]
        self.text.store(self.outputs[0], offset, *self.total(self.starts, [[element] for element in elements]))

    def _row(self, begins: list[Expr], to: Name) -> None:
        """Combines the rows of the array that a row of windows covers."""
        writer, last = self.writer, self.last

        def inside() -> None:
            bases = self.bases(begins)
            rounded = (last.size + (VECTOR - 1)) // VECTOR * VECTOR
            whole = self.text.size("whole", math.prod(axis.axis.size for axis in self.axes))
            width = writer.assign("width", minimum(rounded, whole - bases[-1]))
            self.at_once(bases, (ZERO, width), [self.held], to)

        def at_an_edge() -> None:
            self.one_by_one(begins, (ZERO, last.size), [self.held], to, [self.nothing])

        self.if_whole(begins, inside, at_an_edge)

    def _nothing(self) -> Expr:
        """A value that changes no result: the init value, if the operation may take it twice."""
        opcode, (init,) = reducer_opcode(self.instruction.attributes.to_apply), self.inits
        if opcode in _AGAIN:
            return init
        one = Number(1) if opcode is Opcode.MULTIPLY else Number(0)
        if init.type.startswith("float") and opcode is Opcode.ADD:
            one = Number(-0.0)
        return cast(init.type, one)

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
                values: list[Expr] = [*self.inits]
                for k in range(part.size):
                    cell = writer.assign(f"cell{k}", added(at, last.distance(Number(k))))
                    element = self.held.load(row * last.size + EDGE + cell)
                    for test in last.tests(cell):
                        element = call("select", test, element, self.nothing)
                    values = [writer.assign("acc", value) for value in self.combined(values, [element])]
                text.store(self.outputs[0], first + (row * last.count + j), values[0])
