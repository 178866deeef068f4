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

Sums of f32 are held in f64 between steps, so that they are as exact as sums in a tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.patterns import reducer_opcode
from ...hlo.window import is_trivial
from ..loops.expressions import ZERO, Expr, Name, minimum, product
from ..loops.typing import pointer_to
from ..loops.writer import cast
from .kernel import HI, LO, EmittedKernel, memory_type
from .scalar_computations import Buffer, KernelText
from .window_axes import added

BLOCK = 128
"""Columns that advance together: a local array holds their values."""
PIECE = 1040
"""Elements of a piece of a long row; no power of two, so that the lanes use different sets of the cache."""
FEW_ROWS = 16
LANES = 8
"""Rows that advance together, where a step is one operation on four bytes. For longer ones LLVM would gather."""


@dataclass(frozen=True, slots=True)
class Scan:
    """An array seen as [outer, size, inner], with a scan along the middle dimension."""

    outer: int
    size: int
    inner: int
    backwards: bool

    @property
    def pieces(self) -> int:
        """The number of pieces of a row; 1 for columns and where there are enough rows."""
        if self.inner > 1 or self.outer >= FEW_ROWS or self.size < 4 * PIECE:
            return 1
        return -(-self.size // PIECE)


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


@dataclass(frozen=True, slots=True)
class Row:
    """A row, or a piece of one."""

    start: Expr
    """The offset from which its steps are counted."""
    steps: Expr


class Scans:
    """The base of the kernels of one scan."""

    def __init__(self, instruction: HloInstruction, scan: Scan, name: str) -> None:
        self.instruction, self.scan = instruction, scan
        self.count = len(instruction.operands) // 2
        self.types = [o.shape.element for o in instruction.operands[: self.count]]
        self.text = KernelText(name, instruction.attributes.to_apply, guarded=True)
        self.writer = self.text.writer
        self.held_types = held_types(instruction)
        self.is_wide = self.held_types != self.types

    def operands(self) -> list[Buffer]:
        return [self.text.operand(f"x{k}", t, k) for k, t in enumerate(self.types)]

    def inits(self) -> list[Buffer]:
        return [self.text.operand(f"i{k}", t, self.count + k) for k, t in enumerate(self.types)]

    def outputs(self, name: str = "out", first: int = 0) -> list[Buffer]:
        return [self.text.output(f"{name}{k}", t, first + k) for k, t in enumerate(self.types)]

    def held(self, name: str, first: int) -> list[Buffer]:
        """Outputs for the held values at the ends of pieces."""
        return [self.text.output(f"{name}{k}", t, first + k) for k, t in enumerate(self.held_types)]

    def wide(self, value: Expr) -> Expr:
        """An element as it is held: ``float64(x0[at])`` in a sum of f32."""
        return cast("float64", value) if self.is_wide and value.type != "float64" else value

    def init_values(self, inits: Sequence[Buffer]) -> list[Name]:
        """``init0 = i0[0]``"""
        return [self.writer.assign(f"init{k}", self.wide(init.load(ZERO))) for k, init in enumerate(inits)]

    def accumulators(self, stem: str = "acc") -> list[Name]:
        """Variables for the held values: ``acc0``, ``acc1``."""
        loads = [Buffer(Name("x", pointer_to(memory_type(t))), t).load(ZERO) for t in self.held_types]
        return [self.writer.variable(f"{stem}{k}", load.type) for k, load in enumerate(loads)]

    def join(self, accumulators: Sequence[Name], values: Sequence[Expr]) -> None:
        """Combines the accumulators with one more element; in a suffix scan, the element is on the left."""
        values = [self.wide(v) for v in values]
        held = [self.writer.assign(self.writer.fresh("v"), v) for v in values] if len(values) > 1 else values
        before, after = (held, accumulators) if self.scan.backwards else (accumulators, held)
        self.text.assign(accumulators, self.text.combine(self.instruction, before, after))

    def keep(self, outputs: Sequence[Buffer], offset: Expr, values: Sequence[Expr]) -> None:
        """``out0[offset] = acc0``"""
        for output, value in zip(outputs, values, strict=True):
            self.text.store(output, offset, cast("float32", value) if self.is_wide else value)

    def piece(self, lane: int, number: Expr, size: Expr, pieces: Expr) -> Row:
        """Where piece `number` is. ::

            first3 = (number + 3) % pieces * 1040
            steps3 = minimum(1040, n0 - first3)
            row3 = (number + 3) // pieces * n0 + first3
        """
        first = self.writer.assign(f"first{lane}", number % pieces * PIECE)
        steps = self.writer.assign(f"steps{lane}", minimum(PIECE, size - first))
        whole = number // pieces * size
        start = self.writer.assign(f"row{lane}", whole - first if self.scan.backwards else whole + first)
        return Row(start, steps)

    def offset(self, row: Expr, size: Expr, step: Expr) -> Expr:
        """The offset of a step of the scan along the row that begins at offset `row`."""
        return added(row, size - 1 - step if self.scan.backwards else step)


def held_types(instruction: HloInstruction) -> list[ElementType]:
    """The types in which a scan holds its numbers between steps."""
    types = [o.shape.element for o in instruction.operands[: len(instruction.operands) // 2]]
    is_sum = reducer_opcode(instruction.attributes.to_apply) is Opcode.ADD
    return [ElementType.F64] if types == [ElementType.F32] and is_sum else types


def emit_columns(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The whole scan, where the scanned dimension is not the last one."""
    own = Scans(instruction, scan, "scan_columns")
    text, writer = own.text, own.writer
    sources, inits, outputs = own.operands(), own.inits(), own.outputs()
    size, inner = text.size("n0", scan.size), text.size("n1", scan.inner)
    count = -(-scan.inner // BLOCK)
    blocks = text.size("blocks", count)
    values = own.init_values(inits)
    accumulators = own.accumulators()
    arrays = [
        Buffer(writer.local_array(f"held{k}", BLOCK, memory_type(t)), t) for k, t in enumerate(own.held_types)
    ]
    with writer.loop("number", LO, HI) as number:
        start = writer.assign("start", number % blocks * BLOCK)
        width = writer.assign("width", minimum(BLOCK, inner - start))
        top = writer.assign("top", number // blocks * size * inner + start)
        with writer.loop("j", width) as j:
            for array, value in zip(arrays, values, strict=True):
                text.store(array, j, value)
        with writer.loop("r", size) as r:
            row = writer.assign("row", top + (size - 1 - r if scan.backwards else r) * inner)
            with writer.loop("j", width) as j:
                for accumulator, array in zip(accumulators, arrays, strict=True):
                    writer.assign(accumulator, array.load(j))
                own.join(accumulators, [source.load(row + j) for source in sources])
                for accumulator, array in zip(accumulators, arrays, strict=True):
                    text.store(array, j, accumulator)
                own.keep(outputs, row + j, accumulators)
    return text.finish(scan.outer * count)


def emit_sums(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output k: the elements of each piece, combined. The operands are the instruction's."""
    own = Scans(instruction, scan, "scan_sums")
    text, writer = own.text, own.writer
    sources, outputs = own.operands(), own.held("sums", 0)
    size, pieces = text.size("n0", scan.size), text.size("pieces", scan.pieces)
    with writer.loop("piece", LO, HI) as piece:
        row = writer.assign("row", piece // pieces * size)
        first = writer.assign("first", piece % pieces * PIECE)
        steps = writer.assign("steps", minimum(PIECE, size - first))
        accumulators = own.accumulators()
        for accumulator, source in zip(accumulators, sources, strict=True):
            writer.assign(accumulator, own.wide(source.load(own.offset(row, size, first))))
        with writer.loop("s", 1, steps) as s:
            own.join(accumulators, [source.load(own.offset(row, size, first + s)) for source in sources])
        for output, accumulator in zip(outputs, accumulators, strict=True):
            text.store(output, piece, accumulator)
    return text.finish(scan.outer * scan.pieces)


def emit_starts(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output k: replaces each piece's sum with the piece's start value. The operands are the instruction's."""
    own = Scans(instruction, scan, "scan_starts")
    text, writer = own.text, own.writer
    inits, outputs = own.inits(), own.held("sums", 0)
    pieces = text.size("pieces", scan.pieces)
    with writer.loop("row", LO, HI) as row:
        accumulators = own.accumulators()
        text.assign(accumulators, own.init_values(inits))
        with writer.loop("piece", row * pieces, row * pieces + pieces) as piece:
            sums = own.accumulators("sum")
            for total, accumulator, output in zip(sums, accumulators, outputs, strict=True):
                writer.assign(total, output.load(piece))
                text.store(output, piece, accumulator)
            own.join(accumulators, sums)
    return text.finish(scan.outer)


def emit_rows(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The scan along rows, or along their pieces; then outputs count, count + 1, ... have the pieces' start values."""
    own = _Lanes(instruction, scan)
    text, writer = own.text, own.writer
    bytes_held = max(t.bit_width for t in own.held_types) // 8
    size = own.count * max(1, len(instruction.attributes.to_apply.instructions) // 4) * max(1, bytes_held // 4)
    cut, count = own.cut, max(1, LANES // size)
    with writer.loop("group", LO, HI) as group:
        number = writer.assign("number", product(group, count))
        with writer.if_(number + count <= own.total):
            lanes = [own.begin(lane, number + lane) for lane in range(count)]
            common = lanes[0].steps
            if cut:
                for lane in lanes[1:]:
                    common = minimum(common, lane.steps)
                common = writer.assign("common", common)
            with writer.loop("s", common) as s:
                for lane in lanes:
                    own.step(lane, s)
            for lane in lanes if cut and count > 1 else ():
                with writer.loop("s", common, lane.steps) as s:
                    own.step(lane, s)
        if count > 1:
            with writer.else_(), writer.loop("single", number, own.total) as single:
                lane = own.begin(0, single)
                with writer.loop("s", lane.steps) as s:
                    own.step(lane, s)
    extent = -(-scan.outer * scan.pieces // count)
    return text.finish(extent)


@dataclass(frozen=True, slots=True)
class _Lane:
    """One of the rows (or pieces) that advance together."""

    number: int
    row: Expr
    """The offset from which its steps are counted."""
    steps: Expr
    accumulators: list[Name]


class _Lanes(Scans):
    """A scan along rows, or along their pieces if they are cut."""

    def __init__(self, instruction: HloInstruction, scan: Scan) -> None:
        super().__init__(instruction, scan, "scan_rows")
        self.cut = scan.pieces > 1
        self.sources, inits, self.results = self.operands(), [] if self.cut else self.inits(), self.outputs()
        self.starts = self.held("starts", self.count) if self.cut else []
        self.size = self.text.size("n0", scan.size)
        self.pieces = self.text.size("pieces", scan.pieces)
        self.total = self.text.size("total", scan.outer * scan.pieces)
        self.values = self.init_values(inits)

    def begin(self, lane: int, number: Expr) -> _Lane:
        """Put a lane at the beginning of row (or piece) `number`, with its initial values."""
        writer, size = self.writer, self.size
        accumulators = self.accumulators(f"acc{lane}_")
        if not self.cut:
            row = writer.assign(f"row{lane}", product(number, size))
            self.text.assign(accumulators, self.values)
            return _Lane(lane, row, size, accumulators)
        piece = self.piece(lane, number, size, self.pieces)
        self.text.assign(accumulators, [start.load(number) for start in self.starts])
        return _Lane(lane, piece.start, piece.steps, accumulators)

    def step(self, lane: _Lane, s: Expr) -> None:
        """Step `s` of a lane. ::

            at3 = row3 + s
            acc3_0 = reduce_add(acc3_0, x0[at3])
            out0[at3] = acc3_0
        """
        at = self.writer.assign(f"at{lane.number}", self.offset(lane.row, self.size, s))
        self.join(lane.accumulators, [source.load(at) for source in self.sources])
        self.keep(self.results, at, lane.accumulators)
