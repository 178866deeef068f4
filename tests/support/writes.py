"""How many bytes each instruction in the loops of a compiled module writes, by its buffers.

An update that has its operand's buffer writes its slice; one that has another buffer writes the whole array (it copies
what it does not change). A copy between buffers writes the copied elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloom.hlo.buffers.assignment import BufferAssignment, assign_buffers, is_alias
from hloom.hlo.buffers.checker import verify_buffers
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import PassOptions
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline

ROWS = PassOptions(disabled=frozenset({"outline-loops"}))
"""No loop becomes one kernel."""


@dataclass(frozen=True)
class Write:
    loops: int
    """How many loops are around it."""
    what: str
    size: int


def writes_of(module: HloModule) -> list[Write]:
    """Everything that a module writes after all passes but the pass that joins loops. VerificationError if its buffers
    are wrong."""
    bodies = FusedComputations()
    optimised, _ = pipeline("cpu", bodies).run(module, ROWS)
    assignment = assign_buffers(optimised, bodies.can_share)
    verify_buffers(assignment, bodies.can_share)
    return list(_written(optimised.entry, 0, assignment))


def largest_write(module: HloModule) -> int:
    """The bytes of the largest write in a loop."""
    return max(w.size for w in writes_of(module) if w.loops)


def _written(computation: HloComputation, loops: int, assignment: BufferAssignment) -> Iterator[Write]:
    for i in computation.instructions:
        if i.opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or is_alias(i):
            continue
        yield from (Write(loops, f"copy before {i.name}", c.target.size) for c in assignment.copies_before(i))
        if i.opcode in (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL):
            deeper = loops + (i.opcode is Opcode.WHILE)
            for called in i.called_computations():
                yield from _written(called, deeper, assignment)
        else:
            yield from _by(i, loops, assignment)
    for c in assignment.copies_at_end(computation):
        yield Write(loops, f"copy at the end of {computation.name}", c.target.size)


def _by(i: HloInstruction, loops: int, assignment: BufferAssignment) -> Iterator[Write]:
    places, operands = assignment.leaves(i), assignment.operand_leaves(i)
    root = i.attributes.calls.root if i.opcode is Opcode.FUSION else i
    for place in places:
        size = place.size
        if place in operands:
            if root.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
                size = root.operands[1].shape.byte_size
            elif root.opcode is Opcode.SCATTER:
                size = root.operands[-1].shape.byte_size
        yield Write(loops, i.name, size)
