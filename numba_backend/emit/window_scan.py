"""Kernels of cumulative windows (cumsum and the like): each window reaches from one end to its own position.

Each result combines the one before it with one more element: n steps instead of n * n. As in every reduction, the order
is open, and the init value enters each result once.

Across columns (the scanned dimension is not the last) all columns advance together::

    for r in range(1, n0):
        for j in range(start, stop):
            out[(r * n1) + j] = out[((r - 1) * n1) + j] + x[(r * n1) + j]

Along rows, each step must wait for the one before, so several rows advance side by side, as lanes. If there are few
long rows, they are cut into pieces: one kernel reduces each piece, one scans the sums, and the last one scans all
pieces as if they were rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...hlo.ir import HloInstruction
from ...hlo.window import is_trivial
from .applied import Buffer, KernelText, cost_of
from .source import EmittedKernel, Expr
from .window_places import grouped

BLOCK = 1024
"""Columns that advance together."""
PIECE = 1040
"""Elements of a piece of a long row; no power of two, so that the lanes use different sets of the cache."""
FEW_ROWS = 16
LANES = 8


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
    """What a reduce-window scans; None if it is not cumulative."""
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


class _Scans:
    """What the kernels of one scan share."""

    def __init__(self, instruction: HloInstruction, scan: Scan, name: str) -> None:
        self.instruction, self.scan = instruction, scan
        self.count = len(instruction.operands) // 2
        self.types = [o.shape.element for o in instruction.operands[: self.count]]
        self.text = KernelText(name, instruction.attributes.to_apply)
        self.cost = 0.2 * self.count + cost_of(instruction.attributes.to_apply)

    def sources(self) -> list[Buffer]:
        return [self.text.operand(f"x{k}", t, k) for k, t in enumerate(self.types)]

    def inits(self) -> list[Buffer]:
        return [self.text.operand(f"i{k}", t, self.count + k) for k, t in enumerate(self.types)]

    def outputs(self, name: str = "out", first: int = 0) -> list[Buffer]:
        return [self.text.output(f"{name}{k}", t, first + k) for k, t in enumerate(self.types)]

    def combined(self, names: Sequence[str], values: Sequence[Expr]) -> list[Expr]:
        """The values combined with one more element; in a suffix scan, the element is on the left."""
        sides = ([Expr(n) for n in names], values)
        before, after = sides[::-1] if self.scan.backwards else sides
        return self.text.combine(self.instruction, before, after)

    def join(self, names: Sequence[str], values: Sequence[Expr]) -> None:
        """Assigns to `names` the names combined with `values`."""
        held = [self._held(v) for v in values] if len(values) > 1 else values
        self.text.assign(names, self.combined(names, held))

    def _held(self, value: Expr) -> Expr:
        name = self.text.writer.fresh("v")
        self.text.line(f"{name} = {value.text}")
        return Expr(name)


def emit_columns(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The whole scan, where the scanned dimension is not the last one."""
    own = _Scans(instruction, scan, "scan_columns")
    text = own.text
    sources, inits, outputs = own.sources(), own.inits(), own.outputs()
    size, inner = text.size("n0", scan.size), text.size("n1", scan.inner)
    by_outer = scan.outer >= FEW_ROWS or scan.inner < 2 * BLOCK
    outer = text.size("outer", scan.outer)
    for k, init in enumerate(inits):
        text.line(f"init{k} = {init.load('0')}")
    names = [f"acc{k}" for k in range(own.count)]

    def block() -> None:
        text.line(f"top = o * {size} * {inner}")
        if scan.backwards:
            text.line(f"top += ({size} - 1) * {inner}")
        with text.block("for j in range(start, stop):"):
            text.assign(names, [Expr(f"init{k}") for k in range(own.count)])
            own.join(names, [s.load("top + j") for s in sources])
            for name, output in zip(names, outputs, strict=True):
                text.line(output.store("top + j", Expr(name)))
        with text.block(f"for r in range(1, {size}):"):
            sign = "-" if scan.backwards else "+"
            text.line(f"row = top {sign} r * {inner}")
            text.line(f"last = row {'+' if scan.backwards else '-'} {inner}")
            with text.block("for j in range(start, stop):"):
                for name, output in zip(names, outputs, strict=True):
                    text.line(f"{name} = {output.load('last + j')}")
                own.join(names, [s.load("row + j") for s in sources])
                for name, output in zip(names, outputs, strict=True):
                    text.line(output.store("row + j", Expr(name)))

    if by_outer:
        with text.block("for o in range(lo, hi):"), text.block(f"for start in range(0, {inner}, {BLOCK}):"):
            text.line(f"stop = minimum(start + {BLOCK}, {inner})")
            block()
        return text.finish(scan.outer, scan.size * scan.inner * own.cost)
    with text.block(f"for start in range(lo, hi, {BLOCK}):"):
        text.line(f"stop = minimum(start + {BLOCK}, hi)")
        with text.block(f"for o in range({outer}):"):
            block()
    return text.finish(scan.inner, scan.outer * scan.size * own.cost)


def _place(scan: Scan, size: str, step: str) -> str:
    """The offset of step `step` from the start of the row."""
    return f"{size} - 1 - ({step})" if scan.backwards else step


def emit_sums(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output k: the elements of each piece, combined. The operands are the instruction's."""
    own = _Scans(instruction, scan, "scan_sums")
    text = own.text
    sources, outputs = own.sources(), own.outputs("sums")
    size, pieces = text.size("n0", scan.size), text.size("pieces", scan.pieces)
    names = [f"acc{k}" for k in range(own.count)]
    with text.block("for piece in range(lo, hi):"):
        text.line(f"row = piece // {pieces} * {size}")
        text.line(f"first = piece % {pieces} * {PIECE}")
        text.line(f"steps = minimum({PIECE}, {size} - first)")
        for name, source in zip(names, sources, strict=True):
            text.line(f"{name} = {source.load('row + ' + _place(scan, size, 'first'))}")
        with text.block("for s in range(1, steps):"):
            own.join(names, [s.load("row + " + _place(scan, size, "first + s")) for s in sources])
        for name, output in zip(names, outputs, strict=True):
            text.line(output.store("piece", Expr(name)))
    return text.finish(scan.outer * scan.pieces, PIECE * own.cost)


def emit_starts(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """Output k: replaces each piece's sum with the piece's start value. The operands are the instruction's."""
    own = _Scans(instruction, scan, "scan_starts")
    text = own.text
    inits, outputs = own.inits(), own.outputs("sums")
    pieces = text.size("pieces", scan.pieces)
    names = [f"acc{k}" for k in range(own.count)]
    with text.block("for row in range(lo, hi):"):
        text.assign(names, [init.load("0") for init in inits])
        with text.block(f"for piece in range(row * {pieces}, row * {pieces} + {pieces}):"):
            for k, output in enumerate(outputs):
                text.line(f"sum{k} = {output.load('piece')}")
                text.line(output.store("piece", Expr(names[k])))
            own.join(names, [Expr(f"sum{k}") for k in range(own.count)])
    return text.finish(scan.outer, scan.pieces * own.cost)


def emit_rows(instruction: HloInstruction, scan: Scan) -> EmittedKernel:
    """The scan along rows, or along their pieces, whose start values are then in outputs count, count + 1, ..."""
    own = _Scans(instruction, scan, "scan_rows")
    text = own.text
    cut = scan.pieces > 1
    sources, inits, outputs = own.sources(), [] if cut else own.inits(), own.outputs()
    starts = own.outputs("starts", own.count) if cut else []
    size = text.size("n0", scan.size)
    pieces = text.size("pieces", scan.pieces)
    total = text.size("total", scan.outer * scan.pieces)
    lanes = max(1, LANES // (own.count * max(1, len(instruction.attributes.to_apply.instructions) // 4)))
    ids = range(lanes)
    for k, init in enumerate(inits):
        text.line(f"init{k} = {init.load('0')}")

    def names(lane: int) -> list[str]:
        return [f"acc{lane}_{k}" for k in range(own.count)]

    def step(lane: int) -> None:
        text.line(f"at{lane} = row{lane} + {_place(scan, size, 's')}")
        own.join(names(lane), [source.load(f"at{lane}") for source in sources])
        for name, output in zip(names(lane), outputs, strict=True):
            text.line(output.store(f"at{lane}", Expr(name)))

    def place(lane: int, number: str) -> None:
        if cut:
            text.line(f"first{lane} = {grouped(number)} % {pieces} * {PIECE}")
            text.line(f"steps{lane} = minimum({PIECE}, {size} - first{lane})")
            shift = f" {'-' if scan.backwards else '+'} first{lane}"
            text.line(f"row{lane} = {grouped(number)} // {pieces} * {size}{shift}")
            begin = [start.load(number) for start in starts]
        else:
            text.line(f"row{lane} = {grouped(number)} * {size}")
            begin = [Expr(f"init{k}") for k in range(own.count)]
        text.assign(names(lane), begin)

    with text.block("for group in range(lo, hi):"):
        text.line(f"number = group * {lanes}")
        with text.block(f"if number + {lanes} <= {total}:"):
            for lane in ids:
                place(lane, "number" if not lane else f"number + {lane}")
            common = size
            if cut:
                common = "steps0"
                for lane in ids[1:]:
                    common = f"minimum({common}, steps{lane})"
                text.line(f"common = {common}")
                common = "common"
            with text.block(f"for s in range({common}):"):
                for lane in ids:
                    step(lane)
            for lane in ids if cut and lanes > 1 else ():
                with text.block(f"for s in range(common, steps{lane}):"):
                    step(lane)
        if lanes > 1:
            with text.block("else:"), text.block(f"for single in range(number, {total}):"):
                place(0, "single")
                with text.block(f"for s in range({'steps0' if cut else size}):"):
                    step(0)
    extent = -(-scan.outer * scan.pieces // lanes)
    return text.finish(extent, lanes * min(scan.size, PIECE if cut else scan.size) * own.cost)
