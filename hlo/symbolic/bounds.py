"""Bounds of expressions of dimension variables, from the constraints of a scope.

The method eliminates terms. To bound ``e = k*t + rest`` with a constraint ``c = n*t + other >= 0``, take the
combination ``r = s*e + m*c`` with m > 0 in which t does not occur. As ``m*c >= 0``, ``s*e <= r``, so that an upper
bound of r, which has smaller terms only, bounds e: from above if s > 0, from below if s < 0. An equality ``c == 0``
gives both bounds.

The user gives constraints, and the operations in the expression imply others: a variable is at least 1, ``mod(x, n)``
is between 0 and n - 1, and so on. Each new constraint is combined with each known one, once: the method is not
complete, and the order of constraints matters. Source: JAX's documentation, "Shape polymorphism".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from ..errors import InconclusiveDimensionOperation
from .expressions import FLOORDIV, MAX, MIN, MOD, Dim, Precision, Scope, Size, combination, dim_of, operation
from .terms import Factor, Pairs, Term, merged

INFINITY = math.inf


class Combination(NamedTuple):
    """A constraint that eliminates the term t from k*t: ``by * k * t + factor * dim`` does not contain t."""

    is_equality: bool
    dim: Dim
    """It is 0, or at least 0."""
    factor: int
    """It is positive."""
    by: int


class Known:
    """The constraints known to hold: for terms, and for sums of terms."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._seen: set[Term] = set()
        """Terms with constraints that follow from their operations."""
        self._terms: dict[Term, tuple[float, float]] = {}
        """The bounds of terms."""
        self._sums: dict[Term, dict[tuple[bool, Dim], None]] = {}
        """For a leading term, expressions that are 0 (True), or at least 0."""

    def copy(self) -> Known:
        """The same constraints, to add others to."""
        other = Known(self.scope)
        other._seen, other._terms = set(self._seen), dict(self._terms)
        other._sums = {term: dict(found) for term, found in self._sums.items()}
        return other

    # ---- adding

    def add(self, is_equality: bool, x: Size | float, y: Size | float, text: str = "") -> None:
        """Add ``x == y`` or ``x >= y``, and what follows from it and one known constraint.

        ValueError if that cannot be; `text` is the constraint in the message.
        """
        if not is_equality and (x == INFINITY or y == -INFINITY):
            return
        difference = _whole(x) if isinstance(y, int) and not y else _whole(x) - _whole(y)  # of an equality: not 0
        text = text or f"{x} {'==' if is_equality else '>='} {y}"
        if not isinstance(difference, Dim):
            _check(is_equality, difference, text)
            return
        self._store(is_equality, difference, text)
        new = []
        for term, k in difference.terms:
            for c in self.combinations(term, k, only_leading=False) if term.factors else ():
                if c.by > 0 or is_equality:
                    both = is_equality and c.is_equality
                    found = combination(difference, c.by, c.dim, c.factor)
                    if isinstance(found, Dim):
                        new.append((both, found))
                    else:
                        _check(both, found, text)
        for both, found in dict.fromkeys(new):
            self._store(both, found, text)

    def _store(self, is_equality: bool, e: Dim, text: str) -> None:
        (term, k), *rest = e.terms
        if rest and (rest[0][0].factors or rest[1:]):
            self._sums.setdefault(term, {})[is_equality, e] = None
            return
        number = rest[0][1] if rest else 0  # k * term + number
        low, high = self._terms.get(term, (-INFINITY, INFINITY))
        if is_equality:
            if number % k:
                raise ValueError(f"Unsatisfiable constraint: {text}")
            low, high = max(low, -number // k), min(high, -number // k)
        elif k > 0:
            low = max(low, -(number // k))
        else:
            high = min(high, number // -k)
        if low > high:
            raise ValueError(f"Unsatisfiable constraint: {text}")
        self._terms[term] = low, high

    def add_implied(self, e: Dim) -> None:
        """Add the constraints that follow from the operations in `e`."""
        for term, _ in e.terms:
            if term.factors and term not in self._seen:
                self._seen.add(term)
                self._add_implied_of(term)

    def _add_implied_of(self, term: Term) -> None:
        size = dim_of(((term, 1),), self.scope)
        factor = term.factor
        if factor is None:
            powers = []
            for f, exponent in term.factors:
                one = dim_of(((Term(((f, 1),)), 1),), self.scope)
                low, high = self._bounds_with_implied(one)
                powers.append((low**exponent, high**exponent))
            ends = [0 if 0 in each else math.prod(each) for each in product(*powers)]
            self._between(min(ends), size, max(ends))
        elif factor.is_variable:
            self.add(False, size, 1)
        else:
            for operand in factor.operands:
                self.add_implied(operand)
            self._add_implied_of_operation(factor, size)

    def _bounds_with_implied(self, e: Size) -> tuple[float, float]:
        if isinstance(e, Dim):
            self.add_implied(e)
        return self.bounds(e, Precision.BEST)

    def _between(self, low: Size | float, size: Size, high: Size | float) -> None:
        self.add(False, size, low)
        self.add(False, high, size)

    def _add_implied_of_operation(self, factor: Factor, size: Size) -> None:
        x, y = factor.operands
        if factor.name == MOD:
            low, high = self.bounds(y, Precision.ORDER)
            if low > 0:
                self._between(0, size, y - 1)
                self.add(False, high - 1, size)
            elif high < 0:
                self._between(y + 1, size, 0)
                self.add(False, size, low + 1)
            return
        (x_low, x_high), (y_low, y_high) = self.bounds(x, Precision.BEST), self.bounds(y, Precision.BEST)
        if factor.name == FLOORDIV:
            if y_low <= 0 <= y_high:
                raise InconclusiveDimensionOperation(f"Possible division by 0 in division by {y}")
            ends = [_quotient(a, b) for a in (x_low, x_high) for b in (y_low, y_high)]
            self._between(min(ends), size, max(ends))
            if y_low > 0:
                if x_low >= 0:
                    self.add(False, size, 0)
                rest = operation(MOD, x, y, self.scope)
                if isinstance(rest, Dim):
                    self.add_implied(rest)
                self.add(True, x, y * size + rest)
        elif factor.name == MAX:
            self._between(max(x_low, y_low), size, max(x_high, y_high))
            self.add(False, size, x)
            self.add(False, size, y)
        else:
            assert factor.name == MIN, factor.name
            self._between(min(x_low, y_low), size, min(x_high, y_high))
            self.add(False, x, size)
            self.add(False, y, size)

    # ---- asking

    def combinations(self, term: Term, k: int, only_leading: bool = True) -> Iterator[Combination]:
        """The constraints that eliminate `term` from ``k * term``. `only_leading`: those with no larger terms."""
        low, high = self._terms.get(term, (-INFINITY, INFINITY))
        sign = 1 if k >= 0 else -1
        alone = Dim(((term, 1),), self.scope)
        if low > -INFINITY:
            yield Combination(low == high, alone - int(low), abs(k), -sign)
        if INFINITY > high != low:
            yield Combination(False, int(high) - alone, abs(k), sign)
        for sums in [self._sums.get(term, {})] if only_leading else list(self._sums.values()):
            for is_equality, e in list(sums):
                n = next((n for t, n in e.terms if t == term), 0)
                if n:
                    yield Combination(is_equality, e, abs(k), -n * sign)

    def bounds(self, e: Size, precision: Precision) -> tuple[float, float]:
        """The least and the largest value that `e` may have, or infinity. `precision`: which are good enough."""
        if not isinstance(e, Dim) or e.constant is not None:
            return int(e), int(e)
        cache = self.scope.bounds_cache
        found = cache.get(e)
        if found is not None and (precision.is_enough(*found[0]) or found[1] >= precision):
            return found[0]
        result = self._bounds(e.terms, precision)
        cache[e] = result, precision
        return result

    def _bounds(self, e: Pairs, precision: Precision) -> tuple[float, float]:
        """The bounds of a sum of terms."""
        if not e or not e[0][0].factors:
            return (e[0][1], e[0][1]) if e else (0, 0)
        term, k = e[0]
        low, high = -INFINITY, INFINITY
        for c in self.combinations(term, k):
            rest_low, rest_high = self._bounds(merged(e, c.by, c.dim.terms, c.factor), Precision.BEST)
            if not c.is_equality:
                rest_low = -INFINITY
            if c.by < 0:  # it bounds -|by| * e
                rest_low, rest_high = -rest_high, -rest_low
            by = abs(c.by)
            low, high = max(low, _ceil(rest_low, by)), min(high, _floor(rest_high, by))
            if precision.is_enough(low, high):
                return low, high
        factor = term.factor
        if factor is not None and factor.name in (MAX, MIN) and factor.operands:
            (a, b), (c_, d) = [self._bounds(merged(e[1:], 1, o.terms, k), Precision.BEST) for o in factor.operands]
            either = max if (k > 0) == (factor.name == MAX) else min
            low, high = max(low, either(a, c_)), min(high, either(b, d))
        return low, high


def _whole(x: Size | float) -> Size:
    return int(x) if isinstance(x, float) else x


def _check(is_equality: bool, number: int, text: str) -> None:
    if number < 0 or (is_equality and number):
        raise ValueError(f"Unsatisfiable constraint: {text}")


def _floor(x: float, by: int) -> float:
    return x if math.isinf(x) else int(x) // by


def _ceil(x: float, by: int) -> float:
    return x if math.isinf(x) else -(-int(x) // by)


def _quotient(a: float, b: float) -> float:
    """``floor(a / b)``, or its limit where a or b is infinite."""
    if not math.isinf(a) and not math.isinf(b):
        return int(a) // int(b)
    is_negative = (a >= 0) != (b >= 0)
    if math.isinf(a):
        return -INFINITY if is_negative else INFINITY
    return -1 if is_negative else 0
