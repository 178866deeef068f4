"""loop-invariant-code-motion: a loop's instructions that depend only on values that never change move before the loop.

The result becomes one more element of the loop's state that never changes; buffer assignment gives it the same memory
in every iteration, so it costs nothing. Everything except side effects and custom calls may be computed even if the
loop does not run: nothing else can fail.
Source: XLA's WhileLoopInvariantCodeMotion.
"""

from __future__ import annotations

from dataclasses import replace

from ...analyses.in_bounds import with_in_bounds
from ...analyses.trip_count import state_element
from ...effects import has_side_effect
from ...ir import HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import SPECS, Trait
from ...ops.collective import COLLECTIVES
from ...provenance import note_replacements
from ...support.records import dataclass
from ..patterns import is_progression
from .loops import initial_element, rewrite_loops, unchanged_elements, with_added

FREE = frozenset({Opcode.BROADCAST, Opcode.IOTA, Opcode.RESHAPE, Opcode.BITCAST, Opcode.CONSTANT, Opcode.COPY})
"""Not worth separate buffers: fusion computes them where they are needed. Ranges of numbers are neither:
`constant_state` brings them into loops."""

BOUND = frozenset(o for o, spec in SPECS.items() if spec.traits & (Trait.STRUCTURE | Trait.CONTROL_FLOW)) | {
    Opcode.CUSTOM_CALL,
    Opcode.OPT_BARRIER,
    *COLLECTIVES,  # before a loop that no device runs, none must wait for others
}


@dataclass(frozen=True, slots=True)
class LoopInvariantCodeMotion:
    """Hoists values that are no larger than the values they are computed from, or than `small` bytes."""

    name: str = "loop-invariant-code-motion"
    small: int = 1024

    def __call__(self, module: HloModule) -> HloModule:
        return rewrite_loops(module, self.hoisted)

    def hoisted(self, loop: HloInstruction) -> HloInstruction | None:
        """The loop's result with its invariant instructions computed before it, or None if there is nothing to
        hoist."""
        body = loop.attributes.body
        unchanged = unchanged_elements(loop)
        sources: dict[HloInstruction, int] = {}  # invariant instructions: bytes of the state that they come from
        moving: set[HloInstruction] = set()
        for instruction in body.instructions:
            index = state_element(instruction)
            if index is not None:
                if index in unchanged and instruction.shape.is_array:
                    sources[instruction] = instruction.shape.byte_size
                continue
            if instruction.opcode in BOUND or instruction.shape.is_tuple or has_side_effect(instruction):
                continue
            if all(o in sources for o in instruction.operands):
                sources[instruction] = sum(sources[o] for o in instruction.operands)
                limit = max(sources[instruction], self.small)
                if not is_computed_again(instruction) and instruction.shape.byte_size <= limit:
                    moving.add(instruction)
        users = body.users
        wanted = [i for i in body.instructions if i in moving and any(u not in moving for u in users[i])]
        if not wanted:
            return None
        outside: dict[HloInstruction, HloInstruction] = {}
        for instruction in body.instructions:
            if instruction in sources:
                index = state_element(instruction)
                outside[instruction] = (
                    initial_element(loop, index)
                    if index is not None
                    else outside_of_loop(instruction, tuple(outside[o] for o in instruction.operands))
                )
        note_replacements(outside)
        return with_added(loop, [outside[i] for i in wanted], {i: n for n, i in enumerate(wanted)})


def is_computed_again(instruction: HloInstruction) -> bool:
    """True for values that are as well computed again: numbers in order, a mask, other places of elements."""
    return instruction.opcode in FREE or is_progression(instruction) or _is_mask(instruction)


def _is_mask(instruction: HloInstruction) -> bool:
    """True for the comparison of a range of numbers with one number or another range: cheaper to compute than to read,
    and a sum of masked elements goes over the unmasked ones only."""
    return instruction.opcode is Opcode.COMPARE and all(
        is_progression(o) or (o.opcode is Opcode.BROADCAST and o.operands[0].shape.is_scalar)
        for o in instruction.operands
    )


def outside_of_loop(instruction: HloInstruction, operands: tuple[HloInstruction, ...]) -> HloInstruction:
    """The instruction before the loop: there it also runs if the loop does not, and then none of the proven facts
    hold."""
    return with_in_bounds(replace(instruction, operands=operands), ())
