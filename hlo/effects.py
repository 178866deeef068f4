"""Side effects: which instructions do more than compute a result, so that they must run, once and in program order.

They are: infeed and outfeed, send and recv, drawing from the process's random state, custom calls that say so, and
every instruction that calls a computation with one of these. Tokens order effects; here effects happen in the order of
the program, which agrees with every order that tokens impose. An opt-barrier is not an effect: it is dead if its result
has no use. Source: XLA's HloInstruction::HasSideEffect.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir import NO_ATTRIBUTES, HloComputation, HloInstruction
from .opcode import Opcode
from .ops import SPECS, Trait
from .ops.custom_call import CustomCallAttributes

ACTING = frozenset(o for o, spec in SPECS.items() if Trait.SIDE_EFFECT in spec.traits)
"""The opcodes that always act, for all attributes."""
_MAY_ACT = ACTING | {Opcode.CUSTOM_CALL}
_KEPT = "_effects"
"""The attribute in which a computation keeps the result of `effects_of`: every pass needs it."""


def has_side_effect(instruction: HloInstruction) -> bool:
    """True if the instruction must run even if its result has no use."""
    if instruction.attributes is NO_ATTRIBUTES:
        return instruction.opcode in ACTING
    if instruction.opcode in ACTING:
        return True
    if instruction.opcode is Opcode.CUSTOM_CALL:
        attributes: CustomCallAttributes = instruction.attributes
        if attributes.has_side_effect:
            return True
    return any(effects_of(called) for called in instruction.called_computations())


def effects_of(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """The instructions of a computation that have side effects, in program order; calls are followed to any depth."""
    kept = computation.__dict__
    found: tuple[HloInstruction, ...] | None = kept.get(_KEPT)
    if found is None:
        acting: set[HloInstruction] = set()
        if not _MAY_ACT.isdisjoint(computation.opcodes):
            acting.update([i for i in computation.instructions if i.opcode in _MAY_ACT and has_side_effect(i)])
        if any(map(effects_of, computation.callees)):
            acting.update([i for i in computation.callers if any(map(effects_of, i.called_computations()))])
        found = kept[_KEPT] = tuple([i for i in computation.instructions if i in acting]) if acting else ()
    return found


def needed_by(roots: Sequence[HloInstruction]) -> set[HloInstruction]:
    """`roots` and all instructions that they are computed from."""
    found = set(roots)
    stack = list(found)
    while stack:
        for operand in stack.pop().operands:
            if operand not in found:
                found.add(operand)
                stack.append(operand)
    return found


def live_instructions(computation: HloComputation) -> set[HloInstruction]:
    """The instructions that the root and the side effects of a computation need, these included."""
    return needed_by((computation.root, *effects_of(computation)))
