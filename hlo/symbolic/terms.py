"""Products and sums in expressions of dimension variables.

A `Term` is a product of factors with exponents. A `Factor` is a variable, or an operation on two expressions
(`expressions.py`). Both are immutable, and ordered by `key`. A sum is a sequence of terms with coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias


class Factor:
    """A variable, or one of `OPERATIONS` on two expressions."""

    __slots__ = ("_hash", "key", "name", "operands")

    def __init__(self, name: str, operands: tuple[Any, ...] = ()) -> None:
        self.name: str = name
        """Of the variable or of the operation."""
        self.operands: tuple[Any, ...] = operands
        """Of an operation: two of `expressions.Dim`."""
        self.key: tuple[Any, ...] = (1 + sum([o.key[0] for o in operands]), name, tuple([o.key for o in operands]))
        """Its complexity first; orders factors."""
        self._hash = hash(self.key)

    @property
    def is_variable(self) -> bool:
        return not self.operands

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        return {self.name} if self.is_variable else set().union(*[o.variables() for o in self.operands])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Factor) -> bool:
        return bool(self.key < other.key)

    def __str__(self) -> str:
        return self.name if self.is_variable else f"{self.name}({', '.join(map(str, self.operands))})"

    __repr__ = __str__


class Term:
    """A product of factors, each with an exponent of at least 1, the largest factor first. Without factors it is 1."""

    __slots__ = ("_hash", "factors", "key")

    def __init__(self, factors: tuple[tuple[Factor, int], ...]) -> None:
        self.factors: tuple[tuple[Factor, int], ...] = factors
        self.key: tuple[Any, ...] = (
            sum([1 + e * f.key[0] for f, e in factors]),
            tuple([(f.key, e) for f, e in factors]),
        )
        """Its complexity first; orders terms."""
        self._hash = hash(self.key)

    @property
    def factor(self) -> Factor | None:
        """The only factor, if the term is no more than that."""
        return self.factors[0][0] if len(self.factors) == 1 and self.factors[0][1] == 1 else None

    @property
    def variable(self) -> str | None:
        """The name of the variable, if the term is no more than that."""
        factor = self.factor
        return factor.name if factor is not None and factor.is_variable else None

    def variables(self) -> set[str]:
        """The names of the variables in it."""
        return set().union(*[f.variables() for f, _ in self.factors])

    def times(self, other: Term) -> Term:
        """The product."""
        return Term(_merged(self.factors, 1, other.factors, 1))

    def over(self, divisor: Term) -> Term | None:
        """The quotient, if it is a term: n^2*m over n is n*m, and n over m is none."""
        factors = _merged(self.factors, 1, divisor.factors, -1)
        return None if any(e < 0 for _, e in factors) else Term(factors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Term) -> bool:
        return bool(self.key < other.key)

    def __le__(self, other: Term) -> bool:
        return bool(self.key <= other.key)

    def __str__(self) -> str:
        return "*".join(f"{f}^{e}" if e != 1 else f"{f}" for f, e in reversed(self.factors))

    __repr__ = __str__


ONE = Term(())
Pairs: TypeAlias = "Sequence[tuple[Term, int]]"
"""Terms with their coefficients, the largest term first."""


def _merged(pairs: Any, k: int, others: Any, n: int) -> Any:
    """``k * pairs + n * others`` of sums or products: (term, coefficient) or (factor, exponent), the largest first."""
    found: list[Any] = []
    i = j = 0
    while i < len(pairs) and j < len(others):
        (x, a), (y, b) = pairs[i], others[j]
        if x.key == y.key:
            i, j, total = i + 1, j + 1, a * k + b * n
            if total:
                found.append((x, total))
        elif x.key > y.key:
            i += 1
            found.append((x, a * k))
        else:
            j += 1
            found.append((y, b * n))
    found += [(x, a * k) for x, a in pairs[i:]]
    found += [(y, b * n) for y, b in others[j:]]
    return tuple([p for p in found if p[1]])


def merged(pairs: Pairs, k: int, others: Pairs, n: int) -> Pairs:
    """The terms of ``k * pairs + n * others``, without the scope's equalities."""
    result: Pairs = _merged(pairs, k, others, n)
    return result


def sum_of(pairs: Iterable[tuple[Term, int]]) -> Pairs:
    """The terms in their order, each once."""
    found: dict[Term, int] = {}
    for term, k in pairs:
        found[term] = found.get(term, 0) + k
    return sorted([p for p in found.items() if p[1]], key=lambda p: p[0].key, reverse=True)
