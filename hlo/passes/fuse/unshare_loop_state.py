"""unshare-loop-state: cheap initial values of loops get a separate copy for each loop that needs one.

A loop overwrites its state, so two elements that start as the same array of zeros would need copies of it. After this
pass each is written directly into its buffer. It must run after the last cse, which would share them again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...support.records import dataclass
from ..rewrite import map_computations, rewrite_computation
from ..simplify.loops import unchanged_elements


@dataclass(frozen=True, slots=True)
class UnshareLoopState:
    """Copies broadcast scalars and iotas that several users, one of them a loop's initial state, would share."""

    name: str = "unshare-loop-state"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _unshare)


def _unshare(computation: HloComputation) -> HloComputation:
    loops = [i for i in computation.instructions if i.opcode is Opcode.WHILE]
    if not loops:
        return computation
    uses = Counter(o for i in computation.instructions for o in i.operands)
    changing: dict[HloInstruction, set[int]] = {}
    for loop in loops:
        state = loop.operands[0]
        if state.opcode is Opcode.TUPLE and uses[state] == 1:
            changing[state] = set(range(len(state.operands))) - unchanged_elements(loop)

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old not in changing:
            return moved
        operands = list(moved.operands)
        for k in changing[old]:
            if uses[old.operands[k]] > 1 and _is_cheap(operands[k]):
                operands[k] = replace(operands[k], name="")
        return moved.with_operands(tuple(operands))

    return rewrite_computation(computation, visit)


def _is_cheap(value: HloInstruction) -> bool:
    """Not a constant array: that is read-only memory, which a loop must copy anyway."""
    return value.opcode is Opcode.IOTA or (value.opcode is Opcode.BROADCAST and value.operands[0].shape.is_scalar)
