"""Kernels of cumulative windows (cumsum and the like): each window reaches from one end to its own position.

Each result combines the one before it with one more element: n steps instead of n * n. As in every reduction, the order
is open, and the init value enters each result once.

Across columns (the scanned dimension is not the last) all columns advance together::

    for r in range(1, n0):
        for j in range(start, stop):
            out[row + j] = out[last + j] + x[row + j]          # row = top + r * n1, last = row - n1

Along rows, each step must wait for the one before, so several rows advance together, one in each lane. If there are few
long rows, they are cut into pieces: one kernel reduces each piece, one scans the sums, and the last one scans all
pieces as if they were rows. Rows of maxima and minima are in `window_extrema.py`.

Sums of f32 are held in f64 between steps, so that they are as exact as sums in a tree. Converting each element to f64
and each result back takes longer than all else across columns, so two steps are made together there: the elements of
both are added in f32, as a tree does first::

    for r in range(0, n0 - 1, 2):
        for j in range(width):
            acc0 = held0[j]
            before = float32(acc0)
            part = x0[row0 + j]
            out0[row0 + j] = before + part
            part = part + x0[row1 + j]
            out0[row1 + j] = before + part
            held0[j] = acc0 + float64(part)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ...hlo.support.records import dataclass
from ...hlo.window import is_trivial
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import ZERO, Expr, Name, call, minimum, product
from ..loops.typing import pointer_to
from ..loops.writer import cast
from ..schedule.steps import Part, Split, size_of
from .reduce import key_functions
from .scalar_computations import Buffer, KernelText
from .window_axes import added
from .window_schedule import COLUMN, ROW, STEP, piece_notes, scan_steps, window_notes

ONE_BY_ONE = Part(ROW, "group", size=1)


@dataclass(frozen=True, slots=True)
class Scan:
    """An array seen as [outer, size, inner], with a scan along the middle dimension."""

    outer: int
    size: int
    inner: int
    backwards: bool
    piece: Part | None = None
    """The pieces that a row is cut into."""
    block: Part | Split = ONE_BY_ONE
    """Rows that advance together, or columns, whose values a local array holds; or elements of a row that are combined
    at a time."""
    together: Split | None = None
    """Steps along columns whose elements are added before the held values join."""
    in_keys: bool = False
    """Maxima and minima are held as integers: see `keys_of`."""

    @property
    def pieces(self) -> int:
        """The number of pieces of a row."""
        return -(-self.size // size_of(self.piece)) if self.piece else 1


def scan_of(instruction: HloInstruction) -> Scan | None:
    """How a reduce-window scans its operand; None if it is not cumulative."""
    window, sizes = instruction.attributes.window, instruction.operands[0].shape.dimensions
    moving = [d for d, part in enumerate(window) if not is_trivial(part)]
    if len(moving) != 1:
        return None
    (d,) = moving
    part, size = window[d], sizes[d]
    if part.stride != 1 or part.base_dilation != 1 or part.window_dilation != 1 or part.size < size:
        return None
    padding = (part.padding_low, part.padding_high)
    if padding not in ((part.size - 1, 0), (0, part.size - 1)):
        return None
    return Scan(math.prod(sizes[:d]), size, math.prod(sizes[d + 1 :]), padding[0] == 0)


def keys_of(instruction: HloInstruction) -> tuple[str, str] | None:
    """For maxima and minima: the function that makes an integer of a number ("": it is one), and the one that combines
    two of these."""
    opcode = reducer_opcode(instruction.attributes.to_apply)
    if opcode not in (Opcode.MAXIMUM, Opcode.MINIMUM) or len(instruction.operands) != 2:
        return None
    element = instruction.operands[0].shape.element
    plain = ("", opcode.name.lower()) if element.is_integral and element.bit_width >= 8 else None
    return key_functions(instruction) or plain


_KEY_TYPES = {ElementType.F32: ElementType.S32, ElementType.F64: ElementType.S64}


def held_types(instruction: HloInstruction, scan: Scan) -> list[ElementType]:
    """The types in which a scan holds its numbers between steps."""
    types = [o.shape.element for o in instruction.operands[: len(instruction.operands) // 2]]
    if scan.in_keys:
        return [_KEY_TYPES.get(t, t) for t in types]
    return [ElementType.F64] if is_held_wider(instruction) else types


def is_held_wider(instruction: HloInstruction) -> bool:
    """Whether a scan is of sums of f32, which it holds in f64."""
    types = [o.shape.element for o in instruction.operands[: len(instruction.operands) // 2]]
    return types == [ElementType.F32] and reducer_opcode(instruction.attributes.to_apply) is Opcode.ADD


class Scans:
    """The base of the kernels of one scan."""

    def __init__(self, instruction: HloInstruction, scan: Scan, name: str) -> None:
        self.instruction, self.scan = instruction, scan
        self.count: int = len(instruction.operands) // 2
        self.types: list[ElementType] = [o.shape.element for o in instruction.operands[: self.count]]
        self.text: KernelText = KernelText(name, instruction.attributes.to_apply, guarded=True)
        self.writer = self.text.writer
        self.held_types: list[ElementType] = held_types(instruction, scan)
        self.keys: tuple[str, str] | None = keys_of(instruction) if scan.in_keys else None

    def operands(self) -> list[Buffer]:
        return [self.text.operand(f"x{k}", t, k) for k, t in enumerate(self.types)]

    def outputs(self) -> list[Buffer]:
        return [self.text.output(f"out{k}", t, k) for k, t in enumerate(self.types)]

    def held(self, name: str, first: int) -> list[Buffer]:
        """Outputs for the held values at the ends of pieces."""
        return [self.text.output(f"{name}{k}", t, first + k) for k, t in enumerate(self.held_types)]

    def hold(self, value: Expr) -> Expr:
        """An element as it is held: ``float64(x0[at])`` in a sum of f32."""
        if self.keys:
            return call(self.keys[0], value) if self.keys[0] else value
        return cast("float64", value) if self.held_types != self.types else value

    def load(self, sources: Sequence[Buffer], offset: Expr) -> list[Expr]:
        """The elements at an offset, as they are held."""
        return [self.hold(source.load(offset)) for source in sources]

    def keep(self, outputs: Sequence[Buffer], offset: Expr, values: Sequence[Expr]) -> None:
        """``out0[offset] = acc0``"""
        for output, value in zip(outputs, values, strict=True):
            if self.held_types != self.types:
                value = call("from_key", value) if self.keys else cast("float32", value)
            self.text.store(output, offset, value)

    def init_values(self) -> list[Expr]:
        """``init0 = i0[0]``"""
        inits = [self.text.operand(f"i{k}", t, self.count + k) for k, t in enumerate(self.types)]
        return [self.writer.assign(f"init{k}", value) for k, value in enumerate(self.load(inits, ZERO))]

    def accumulators(self, stem: str = "acc") -> list[Name]:
        """Variables for the held values: ``acc0``, ``acc1``."""
        loads = [Buffer(Name("x", pointer_to(memory_type(t))), t).load(ZERO) for t in self.held_types]
        return [self.writer.variable(f"{stem}{k}", load.type) for k, load in enumerate(loads)]

    def join(self, accumulators: Sequence[Name], values: Sequence[Expr]) -> None:
        """Combines the accumulators with one more element; in a suffix scan, the element is on the left."""
        if self.keys:
            self.writer.assign(accumulators[0], call(self.keys[1], accumulators[0], values[0]))
            return
        held = [self.writer.assign(self.writer.fresh("v"), v) for v in values] if len(values) > 1 else values
        before, after = (held, accumulators) if self.scan.backwards else (accumulators, held)
        self.text.assign(accumulators, self.text.combine(self.instruction, before, after))

    def advance_together(self, source: Buffer, output: Buffer, held: Buffer, rows: Sequence[Expr], j: Expr) -> None:
        """Several steps of column j, for sums of f32 that are held in f64."""
        writer = self.writer
        total = writer.assign("total", held.load(j))
        before = writer.assign("before", cast("float32", total))
        part = writer.assign("part", source.load(rows[0] + j))
        self.text.store(output, rows[0] + j, before + part)
        for row in rows[1:]:
            writer.assign(part, part + source.load(row + j))
            self.text.store(output, row + j, before + part)
        self.text.store(held, j, total + cast("float64", part))


@dataclass(frozen=True, slots=True)
class Row:
    """A row, or a piece of one."""

    start: Expr
    """The offset from which its steps are counted."""
    steps: Expr


class Rows(Scans):
    """A scan along rows, or along their pieces if they are cut."""

    def __init__(self, instruction: HloInstruction, scan: Scan, name: str) -> None:
        super().__init__(instruction, scan, name)
        self.sources, self.cut, self.total = self.operands(), scan.pieces > 1, scan.outer * scan.pieces
        self.size: Expr = self.text.size("n0", scan.size)
        self.pieces: Expr = self.text.size("pieces", scan.pieces)

    def results(self) -> tuple[list[Buffer], Callable[[Expr], list[Expr]]]:
        """The outputs, and what gives the values with which a row begins. If rows are cut, outputs count, count + 1,
        ... have them."""
        outputs = self.outputs()
        if self.cut:
            starts = self.held("starts", self.count)
            return outputs, lambda number: [start.load(number) for start in starts]
        values = self.init_values()
        return outputs, lambda number: values

    def row(self, lane: int, number: Expr) -> Row:
        """Where row (or piece) `number` is. ::

            first3 = (number + 3) % pieces * 1040
            steps3 = minimum(1040, n0 - first3)
            row3 = (number + 3) // pieces * n0 + first3
        """
        if not self.cut:
            return Row(self.writer.assign(f"row{lane}", product(number, self.size)), self.size)
        length = size_of(self.scan.piece)
        first = self.writer.assign(f"first{lane}", number % self.pieces * length)
        steps = self.writer.assign(f"steps{lane}", minimum(length, self.size - first))
        whole = number // self.pieces * self.size
        start = self.writer.assign(f"row{lane}", whole - first if self.scan.backwards else whole + first)
        return Row(start, steps)

    def offset(self, row: Row, step: Expr) -> Expr:
        """The offset of a step of the scan along a row."""
        return added(row.start, self.size - 1 - step if self.scan.backwards else step)


def emit_columns(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The whole scan, where the scanned dimension is not the last one."""
    own = Scans(instruction, scan, "scan_columns")
    text, writer = own.text, own.writer
    sources, values, outputs = own.operands(), own.init_values(), own.outputs()
    size, inner = text.size("n0", scan.size), text.size("n1", scan.inner)
    length = size_of(scan.block)
    count = -(-scan.inner // length)
    blocks = text.size("blocks", count)
    accumulators = own.accumulators()

    def step(r: Expr) -> Expr:
        return size - 1 - r if scan.backwards else r

    arrays = [
        Buffer(writer.local_array(f"held{k}", length, memory_type(t)), t) for k, t in enumerate(own.held_types)
    ]
    with writer.loop("number", LO, HI) as number:
        start = writer.assign("start", number % blocks * length)
        width = writer.assign("width", minimum(length, inner - start))
        top = writer.assign("top", number // blocks * size * inner + start)
        with writer.loop("j", width) as j:
            for array, value in zip(arrays, values, strict=True):
                text.store(array, j, value)
        count_together = size_of(scan.together)
        first: Expr = ZERO
        if count_together:
            with writer.loop("r", ZERO, size - (count_together - 1), step=count_together) as r:
                rows = [writer.assign(f"row{k}", top + step(r + k) * inner) for k in range(count_together)]
                with writer.loop("j", width) as j:
                    own.advance_together(sources[0], outputs[0], arrays[0], rows, j)
            first = size // count_together * count_together
        with writer.loop("r", first, size) as r:
            row = writer.assign("row", top + step(r) * inner)
            with writer.loop("j", width) as j:
                for accumulator, array in zip(accumulators, arrays, strict=True):
                    writer.assign(accumulator, array.load(j))
                own.join(accumulators, own.load(sources, row + j))
                for accumulator, array in zip(accumulators, arrays, strict=True):
                    text.store(array, j, accumulator)
                own.keep(outputs, row + j, accumulators)
    steps = scan_steps(scan.block, together=scan.together)
    notes = window_notes(instruction, steps, f"{ROW}, {STEP}, {COLUMN}")
    return text.finish(scan.outer * count, notes=notes)


def emit_sums(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output k: the elements of each piece, combined. The operands are the instruction's."""
    own = Rows(instruction, scan, "scan_sums")
    text, writer, sums = own.text, own.writer, own.held("sums", 0)
    with writer.loop("piece", LO, HI) as piece:
        row, accumulators = own.row(0, piece), own.accumulators()
        for accumulator, value in zip(accumulators, own.load(own.sources, own.offset(row, ZERO)), strict=True):
            writer.assign(accumulator, value)
        with writer.loop("s", 1, row.steps) as s:
            own.join(accumulators, own.load(own.sources, own.offset(row, s)))
        for output, accumulator in zip(sums, accumulators, strict=True):
            text.store(output, piece, accumulator)
    return text.finish(own.total, notes=piece_notes(instruction, scan.piece, "piece", "over s"))


def emit_starts(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output k: replaces each piece's sum with the piece's start value. The operands are the instruction's."""
    own = Scans(instruction, scan, "scan_starts")
    text, writer, outputs = own.text, own.writer, own.held("sums", 0)
    pieces = text.size("pieces", scan.pieces)
    values = own.init_values()
    with writer.loop("row", LO, HI) as row:
        accumulators, sums = own.accumulators(), own.accumulators("sum")
        text.assign(accumulators, values)
        with writer.loop("piece", row * pieces, row * pieces + pieces) as piece:
            for total, accumulator, output in zip(sums, accumulators, outputs, strict=True):
                writer.assign(total, output.load(piece))
                text.store(output, piece, accumulator)
            own.join(accumulators, sums)
    return text.finish(scan.outer, notes=piece_notes(instruction, scan.piece, ROW, "along piece"))


def emit_rows(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The scan along rows, or along their pieces. A step of row 3 of those that advance together::

        at3 = row3 + s
        acc3_0 = reduce_add(acc3_0, x0[at3])
        out0[at3] = acc3_0
    """
    own = Rows(instruction, scan, "scan_rows")
    text, writer = own.text, own.writer
    outputs, first_values = own.results()

    def advance(numbers: Sequence[Expr]) -> None:
        rows = [own.row(lane, number) for lane, number in enumerate(numbers)]
        accumulators = [own.accumulators(f"acc{lane}_") for lane in range(len(rows))]
        for number, values in zip(numbers, accumulators, strict=True):
            text.assign(values, first_values(number))

        def step(lane: int, s: Expr) -> None:
            at = writer.assign(f"at{lane}", own.offset(rows[lane], s))
            own.join(accumulators[lane], own.load(own.sources, at))
            own.keep(outputs, at, accumulators[lane])

        common, is_cut = rows[0].steps, own.cut and len(rows) > 1
        for row in rows[1:] if is_cut else ():
            common = minimum(common, row.steps)
        if is_cut:
            common = writer.assign("common", common)
        with writer.loop("s", common) as s:
            for lane in range(len(rows)):
                step(lane, s)
        for lane, row in enumerate(rows if is_cut else ()):
            with writer.loop("s", common, row.steps) as s:
                step(lane, s)

    total, lanes = text.size("total", own.total), size_of(scan.block)
    with writer.loop("group", LO, HI) as group:
        number = writer.assign("number", product(group, lanes))
        with writer.if_(number + lanes <= total):
            advance([number + lane for lane in range(lanes)])
        if lanes > 1:
            with writer.else_(), writer.loop("single", number, total) as single:
                advance([single])
    notes = window_notes(instruction, scan_steps(scan.block, scan.piece), f"{ROW}, {STEP}")
    return text.finish(-(-own.total // lanes), notes=notes)
