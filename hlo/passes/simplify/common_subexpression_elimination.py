"""cse: equal instructions are computed once.

Two instructions are equal if opcode, shape, attributes and operands are; the order of operands of commutative ops does
not matter (maximum and minimum of complex numbers are not commutative: if the real parts are equal, they return the
second). Equal reducers are merged first: each reduce of a traced program has its own copy. Source: XLA's HloCSE and
HloComputationDeduplicator.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ...effects import has_side_effect
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import SPECS, Trait, has_trait
from ..rewrite import map_computations, rewrite_computation, with_called

_COMMUTATIVE = frozenset(o for o, spec in SPECS.items() if Trait.COMMUTATIVE in spec.traits)
_EXTREMA = frozenset({Opcode.MAXIMUM, Opcode.MINIMUM})
_KEPT = frozenset({Opcode.PARAMETER, Opcode.OPT_BARRIER})
"""Opt-barriers are not merged: their purpose is to keep values apart."""


@dataclass(frozen=True, slots=True)
class CommonSubexpressionElimination:
    """Merges equal instructions in each computation but the bodies of fusions, and equal reducers in the module."""

    name: str = "cse"

    def __call__(self, module: HloModule) -> HloModule:
        same = _equal_reducers(module)
        return map_computations(module, lambda computation: _merge(with_called(computation, same)))


def _merge(computation: HloComputation) -> HloComputation:
    seen: dict[Hashable, HloInstruction] = {}
    position: dict[HloInstruction, int] = {}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode in _KEPT or has_side_effect(moved):
            position[moved] = len(position)
            return moved
        first = seen.setdefault(_key(moved, position), moved)
        if first is moved:
            position[moved] = len(position)
        return first

    return rewrite_computation(computation, visit)


def _key(instruction: HloInstruction, position: dict[HloInstruction, int]) -> Hashable:
    operands = [position[o] for o in instruction.operands]
    opcode = instruction.opcode
    if opcode in _COMMUTATIVE and not (opcode in _EXTREMA and instruction.shape.element.is_complex):
        operands.sort()
    return (opcode, instruction.shape, instruction.attributes, *operands)


def _equal_reducers(module: HloModule) -> dict[HloComputation, HloComputation]:
    """For each reducer the first one that does the same."""
    reducers = dict.fromkeys(
        c for i in module.instructions() if has_trait(i.opcode, Trait.APPLIES) for c in i.called_computations()
    )
    first: dict[Hashable, HloComputation] = {}
    return {c: first.setdefault(_fingerprint(c), c) for c in reducers} if len(reducers) > 1 else {}


def _fingerprint(computation: HloComputation) -> Hashable:
    """Equal for computations that are the same up to names."""
    position: dict[HloInstruction, int] = {}
    parts: list[Hashable] = []
    for instruction in computation.instructions:
        parts.append(_key(instruction, position))
        position[instruction] = len(position)
    return (*parts, position[computation.root])
