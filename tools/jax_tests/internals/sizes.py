"""Private functions of JAX on symbolic sizes."""

from __future__ import annotations

import enum
from typing import Any

from hloom.hlo.symbolic.bounds import Known
from hloom.hlo.symbolic.evaluate import evaluate
from hloom.hlo.symbolic.expressions import Dim, Factor, Precision, Term, dim_of
from hloom.hlo.symbolic.scope import SymbolicScope


class Comparator(enum.Enum):
    EQ = 1
    GEQ = 2


class _DecisionByElimination:
    """What is known of the sizes of a scope, with JAX's form of a constraint."""

    def __init__(self, scope: SymbolicScope) -> None:
        self._known: Known = scope.known()

    def initialize(self) -> _DecisionByElimination:
        return self

    def combine_term_with_existing(
        self, t: Term, t_k: int, *, scope: Any, only_smaller_than_t: bool = True
    ) -> list[tuple[Any, ...]]:
        found = self._known.combinations(t, t_k, only_smaller_than_t)
        return [(Comparator.EQ if c.is_equality else Comparator.GEQ, c.dim, c.factor, c.by) for c in found]


def _single_term(self: Dim) -> tuple[int, int, Term] | None:
    constant = sum([k for t, k in self.terms if not t.factors])
    others = [(k, t) for t, k in self.terms if t.factors]
    return (constant, *others[0]) if len(others) == 1 else None


def _orders(kind: type) -> list[tuple[type, str, Any]]:
    """The comparisons of parts of expressions that are tested, by the order of their keys."""
    return [
        (kind, "__le__", lambda self, other: self.key <= other.key),
        (kind, "__gt__", lambda self, other: self.key > other.key),
        (kind, "__ge__", lambda self, other: self.key >= other.key),
    ]


def _of_term(t: Term, t_k: int, scope: SymbolicScope) -> Any:
    return dim_of(((t, t_k),), scope)


PRIVATE: dict[tuple[str, str], Any] = {
    ("export.shape_poly", "BoundsPrecision"): Precision,
    ("export.shape_poly", "Comparator"): Comparator,
    ("export.shape_poly_decision", "_DecisionByElimination"): _DecisionByElimination,
}

METHODS: list[tuple[type, str, Any]] = [
    *_orders(Factor),
    *_orders(Term),
    (Dim, "_eq", Dim.__eq__),
    (Dim, "_evaluate", evaluate),
    (Dim, "_from_term", staticmethod(_of_term)),
    (Dim, "_get_vars", Dim.variables),
    (Dim, "_size", property(lambda self: self.key[0])),
    (Dim, "_sorted_terms", property(lambda self: self.terms)),
    (Dim, "_to_factor", lambda self: self.term and self.term.factor),
    (Dim, "_to_single_term", _single_term),
    (Dim, "_to_term", lambda self: self.term),
    (Dim, "_to_var", lambda self: self.variable),
    (SymbolicScope, "_explicit_constraints", property(lambda self: tuple(self.constraints))),
]
"""Under JAX's names."""
