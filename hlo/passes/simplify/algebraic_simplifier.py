"""algebraic-simplifier: every rule of the rule files, wherever it applies.

The rules stand in simplify_arithmetic.py, simplify_movement.py, simplify_indexing.py and simplify_reduce_dot.py; this
file only walks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ..rewrite import map_computations, rewrite_computation
from .arithmetic import ARITHMETIC_RULES, compute_before_broadcast, compute_before_reshape
from .indexing import INDEXING_RULES
from .movement import MOVEMENT_RULES, empty_result
from .reduce_dot import REDUCE_DOT_RULES

Rule = Callable[[HloInstruction], HloInstruction | None]


def _all_rules() -> dict[Opcode, tuple[Rule, ...]]:
    table: dict[Opcode, tuple[Rule, ...]] = {}
    for opcode in Opcode:
        rules: list[Rule] = [empty_result] if opcode not in _KEEP_EMPTY else []
        for each in (ARITHMETIC_RULES, MOVEMENT_RULES, INDEXING_RULES, REDUCE_DOT_RULES):
            rules += each.get(opcode, ())
        if has_trait(opcode, Trait.ELEMENTWISE):
            rules += (compute_before_broadcast, compute_before_reshape)
        table[opcode] = tuple(rules)
    return table


_KEEP_EMPTY = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT})

RULES = _all_rules()

MAX_REWRITES = 8
"""Rules applied in a row to one instruction; the next run of the pass goes on."""


def simplified(instruction: HloInstruction) -> HloInstruction:
    """The instruction after the rules that apply to it, one after the other; itself if none does."""
    for _ in range(MAX_REWRITES):
        for rule in RULES[instruction.opcode]:
            new = rule(instruction)
            if new is not None:
                break
        else:
            break
        if new.name:  # one that was there before: it has been looked at
            return new
        instruction = new
    return instruction


@dataclass(frozen=True, slots=True)
class AlgebraicSimplifier:
    """One walk over all computations but the bodies of fusions; to be run until nothing changes."""

    name: str = "algebraic-simplifier"

    def __call__(self, module: HloModule) -> HloModule:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            return simplified(moved)

        def rewrite(computation: HloComputation) -> HloComputation:
            return rewrite_computation(computation, visit)

        return map_computations(module, rewrite)
