"""algebraic-simplifier: every rule of the rule files, wherever it applies.

The rules are in arithmetic.py, movement.py, indexing.py, updates.py and reduce_dot.py; `../rewriter.py` applies them.
"""

from __future__ import annotations

from ...ir import HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...support.records import dataclass
from ..rewriter import RewriteLog, apply_rules
from ..rules import RuleSet, rule
from .arithmetic import ARITHMETIC_RULES, compute_before_broadcast, compute_before_reshape
from .indexing import INDEXING_RULES
from .movement import MOVEMENT_RULES, empty_result
from .reduce_dot import REDUCE_DOT_RULES
from .updates import UPDATE_RULES

_KEEP_EMPTY = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT})
_ELEMENTWISE = tuple(opcode for opcode in Opcode if has_trait(opcode, Trait.ELEMENTWISE))

RULES = RuleSet(
    (
        rule(empty_result, *(opcode for opcode in Opcode if opcode not in _KEEP_EMPTY)),
        *ARITHMETIC_RULES,
        *MOVEMENT_RULES,
        *INDEXING_RULES,
        *UPDATE_RULES,
        *REDUCE_DOT_RULES,
        rule(compute_before_broadcast, *_ELEMENTWISE, operands={Opcode.BROADCAST}),
        rule(compute_before_reshape, *_ELEMENTWISE, operands={Opcode.RESHAPE}),
    )
)

MAX_REWRITES = 8
"""The most rules applied in a row to one instruction; the next run of the pass continues."""


@dataclass(frozen=True, slots=True)
class AlgebraicSimplifier:
    """One walk over all computations except the bodies of fusions; it must run until nothing changes."""

    name: str = "algebraic-simplifier"
    rules: RuleSet = RULES

    def __call__(self, module: HloModule) -> HloModule:
        return self.rewrite(module, RewriteLog())

    def rewrite(self, module: HloModule, log: RewriteLog) -> HloModule:
        return apply_rules(module, self.rules, log, in_a_row=MAX_REWRITES)
