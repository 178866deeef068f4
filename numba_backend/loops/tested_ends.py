"""Test the ends of a loop once, in place of each index in it.

    for t in range(int64(s), n):                       if int64(s) >= 0:
        v = int32(t)                                       for t in range(int64(s), n):
        d = subtract(v, s)                    ->               x[t] = x[t] + x[t - int64(s)]
        i = minimum(maximum(v, 0), n - 1)              else:
        j = minimum(maximum(d, 0), n - 1)                  for t in range(int64(s), n):
        x[i] = x[i] + x[j]                                     ...

Indices of programs count from the end if they are negative, and are clamped to the array: half a dozen operations for
each. Where a loop begins or ends at a value, as the rows of a sparse matrix do, only that value tells whether the
counter needs them. Where it does not, an index is a sum of counters, which LLVM need not compute at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .affine import Range
from .expressions import ZERO, Binary, Call, Expr, Load, Number, Unary, all_of, plus
from .facts import LARGEST_LITERAL, RELATIONS, CountedLoop, Ends, Facts, Reader, decided
from .rewrite import with_new_parts
from .statements import Block, For, If, LocalArray, Statement, While, expressions_of, walk, with_values
from .typing import is_integer

LEAST_GAIN = 4
"""Operations that the loop no longer needs, for which it is there twice."""
MOST_STATEMENTS = 60
"""Statements of a loop that is there twice."""


def with_tested_ends(block: Block, sizes: Mapping[str, int]) -> Block:
    """The statements with such loops. `sizes`: the numbers that arguments stand for."""
    return _Twice(Facts(sizes)).block(block)


class _Twice(Reader):
    """Writes loops twice."""

    def _changed(self, statement: For | While, loop: CountedLoop, ends: Ends) -> Statement:
        found = _twice(self._facts, statement, loop, ends)
        return self.within(statement, loop, ends) if found is None else found


class _Simplified(Reader):
    """Rewrites a loop's body with what is known of its counter."""

    def __init__(self, facts: Facts, counter: str) -> None:
        super().__init__(facts)
        self._counter = counter
        self.limits: list[tuple[int, Expr]] = []
        """The ends of the loop with which indices are not clamped to the ends of arrays: as numbers, and written."""

    def _statement(self, statement: Statement) -> Statement:
        if isinstance(statement, If):
            statement = If([(self._test(test), block) for test, block in statement.branches], statement.otherwise)
        elif not self._facts.is_end(statement):
            statement = with_values(statement, self._value)
        return super()._statement(statement)

    def _changed(self, statement: For | While, loop: CountedLoop, ends: Ends) -> Statement:
        return self.within(statement, loop, ends)

    def _test(self, test: Expr) -> Expr:
        """A test stays one where its answer is known."""
        new = self._value(test)
        return test if isinstance(new, Number) else new

    def _value(self, e: Expr) -> Expr:
        if not e.parts:
            return e
        new = with_new_parts(e, tuple([self._value(part) for part in e.parts]))
        match new:
            case Call(function="select", arguments=(Number(value=bool() as answer), a, b)):
                return a if answer else b
            case Call(function="minimum" | "maximum" as function, arguments=(a, b)) if is_integer(new.type):
                return self._extremum(new, function, a, b)
            case Binary(op=op, left=a, right=b) if op in RELATIONS:
                known = decided(op, self._facts.difference(a, b))
                return new if known is None else Number(known)
            case Call(function="int64", arguments=(a,)) if is_integer(a.type):
                value = self._facts.of(new)
                return (None if value is None else self._facts.written(value)) or new
        return new

    def _extremum(self, whole: Expr, function: str, a: Expr, b: Expr) -> Expr:
        known = self._facts.difference(a, b)
        if decided("<=", known):
            return a if function == "minimum" else b
        if decided(">=", known):
            return b if function == "minimum" else a
        value, limit = self._facts.of(a), self._facts.constant(b)
        if function == "minimum" and value and limit is not None and self._facts.counts_on(value, self._counter):
            more = 1 - value.get("", 0)
            if abs(more) <= LARGEST_LITERAL:
                end = plus(b if b.type == "int64" else Call("int64", (b,)), Number(int(more)))
                self.limits.append((limit + more, end))
        return whole


def _twice(facts: Facts, statement: For | While, loop: CountedLoop, ends: Ends) -> If | None:
    """The loop in two versions: in the first one, the start is not negative, and the end not beyond what indices are
    clamped to."""
    first, last = facts.symbol_of(ends.start), facts.symbol_of(ends.stop)
    is_never_negative = ends.start is not None and decided(">=", facts.bounds(ends.start)) is True
    if first is None and not is_never_negative:
        return None
    if last is None and (is_never_negative or ends.most is None):
        return None
    statements = list(walk(statement.body))
    if len(statements) > MOST_STATEMENTS or any(isinstance(s, LocalArray) for s in statements):
        return None
    tests: list[Expr] = []
    known, counter, most = facts.copy(), loop.variable.name, ends.most
    if not is_never_negative:
        assert first is not None and ends.start is not None
        known.limit(first, Range(-ends.start.get("", 0), None))
        tests.append(Binary(">=", loop.start, ZERO))
    if last is not None:
        tried = _Simplified(known, counter)
        tried.within(statement, loop, ends)
        if tried.limits:
            limit, written = min(tried.limits, key=lambda pair: pair[0])
            most = limit if most is None else min(most, limit)
            tests.append(Binary("<=", loop.stop, written))
            assert ends.stop is not None
            known.limit(last, Range(None, limit - ends.stop.get("", 0)))
    if not tests or most is None or most <= 0:
        return None
    if first is not None and ends.start is not None:
        known.limit(first, Range(None, most - 1 - ends.start.get("", 0)))
    changed = _Simplified(known, counter).within(statement, loop, replace(ends, most=most))
    if _operations([statement]) - _operations([changed]) < LEAST_GAIN:
        return None
    return If([(all_of(tests), [changed])], [statement])


def _operations(block: Block) -> int:
    parts = (part for s in walk(block) for e in expressions_of(s) for part in e.walk())
    return sum(isinstance(part, (Binary, Unary, Call, Load)) for part in parts)
