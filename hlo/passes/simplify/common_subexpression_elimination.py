"""cse: equal instructions are computed once.

Two instructions are equal if opcode, shape, attributes and operands are; the order of operands of commutative ops does
not matter (maximum and minimum of complex numbers are not commutative: if the real parts are equal, they return the
second). Loops and branches are equal if their computations are, up to names. Equal reducers are merged first: each
reduce of a traced program has its own copy. Source: XLA's HloCSE and HloComputationDeduplicator.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from ...analyses.equal_keys import Firsts
from ...custom_calls import is_unwritten
from ...effects import effects_of
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import SPECS, Trait, has_trait
from ...support.records import dataclass
from ..rewrite import calling, fused_computations, map_each_computation, rewrite_computation

_COMMUTATIVE = frozenset(o for o, spec in SPECS.items() if Trait.COMMUTATIVE in spec.traits)
_EXTREMA = frozenset({Opcode.MAXIMUM, Opcode.MINIMUM})
_CONTROL_FLOW = frozenset({Opcode.CONDITIONAL, Opcode.WHILE})
_KEPT = frozenset({Opcode.PARAMETER, Opcode.OPT_BARRIER})
"""Opt-barriers are not merged: their purpose is to keep values apart."""


@dataclass(frozen=True, slots=True)
class CommonSubexpressionElimination:
    """Merges equal instructions in each computation but the bodies of fusions, and equal reducers in the module."""

    name: str = "cse"
    is_idempotent: ClassVar[bool] = True

    def __call__(self, module: HloModule) -> HloModule:
        reducers = _merged_reducers(module)
        new = {old: merged for old, merged in reducers.items() if merged is not old}

        def merged(old: HloComputation, _: HloComputation) -> HloComputation:
            return reducers[old] if old in reducers else _merge(old, new)

        return map_each_computation(module, merged, new=new)


def _merge(computation: HloComputation, new: Mapping[HloComputation, HloComputation]) -> HloComputation:
    """`new`: the computations that instructions are to call."""
    callers = frozenset(computation.callers) if new else frozenset()
    alike: dict[Hashable, HloInstruction | None] = {}
    """The only instruction of an opcode on these operands, which most are; None if there are several."""
    seen: Firsts[HloInstruction] = Firsts()
    """Where there are several: by the types and attributes too; their hash takes longer than all the rest."""
    position: dict[HloInstruction, int] = {}
    acting = frozenset(effects_of(computation))

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old in callers:
            moved = calling(moved, new)
        if moved.opcode in _KEPT or old in acting or _is_own_memory(moved):
            position[moved] = len(position)
            return moved
        roughly = _operands_key(moved, position)
        other = alike.setdefault(roughly, moved)
        if other is moved:
            position[moved] = len(position)
            return moved
        if other is not None:
            seen.of((roughly, other.shape, _attributes_key(other)), other)
            alike[roughly] = None
        first = seen.of((roughly, moved.shape, _attributes_key(moved)), moved)
        if first is moved:
            position[moved] = len(position)
        return first

    merged = rewrite_computation(computation, visit)
    seen.note_others()
    return merged


def _is_own_memory(instruction: HloInstruction) -> bool:
    """True for uninitialised memory: each loop that writes some needs its own."""
    return instruction.opcode is Opcode.CUSTOM_CALL and is_unwritten(instruction.attributes.custom_call_target)


def _operands_key(instruction: HloInstruction, position: dict[HloInstruction, int]) -> tuple[object, ...]:
    operands = [position[o] for o in instruction.operands]
    opcode = instruction.opcode
    if opcode in _COMMUTATIVE and not (opcode in _EXTREMA and instruction.shape.element.is_complex):
        operands.sort()
    return (opcode, *operands)


def _attributes_key(instruction: HloInstruction) -> Any:
    """The attributes. Control flow has no others than its computations, each of which was traced on its own."""
    if instruction.opcode not in _CONTROL_FLOW:
        return instruction.attributes
    return tuple(map(_fingerprint, instruction.called_computations()))


def _merged_reducers(module: HloModule) -> dict[HloComputation, HloComputation]:
    """For each reducer what it becomes, which is the same for all that do the same."""
    reducers = {c for i in module.instructions() if has_trait(i.opcode, Trait.APPLIES) for c in i.called_computations()}
    reducers -= fused_computations(module)
    firsts: Firsts[HloComputation] = Firsts()
    found: dict[HloComputation, HloComputation] = {}
    for computation in module.computations:  # callees first
        if computation in reducers:
            merged = _merge(computation, found)
            found[computation] = firsts.of(_fingerprint(merged), merged)
    firsts.note_others()
    return found


def _fingerprint(computation: HloComputation) -> tuple[Any, ...]:
    """Equal for computations that are the same up to names."""
    position: dict[HloInstruction, int] = {}
    parts: list[Any] = []
    for instruction in computation.instructions:
        parts.append((instruction.shape, _attributes_key(instruction), *_operands_key(instruction, position)))
        position[instruction] = len(position)
    return (*parts, position[computation.root])
