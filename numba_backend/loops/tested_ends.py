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

from collections.abc import Collection, Mapping
from dataclasses import replace

from ...hlo.support.records import dataclass
from .affine import LIMITS, Affine, Indices, Range, difference
from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, Unary, all_of, call, minus, plus, times
from .rewrite import with_new_parts
from .statements import (
    Assign,
    Augment,
    Block,
    For,
    If,
    LocalArray,
    Statement,
    While,
    expressions_of,
    walk,
    with_values,
)
from .typing import is_integer

LEAST_GAIN = 4
"""Operations that the loop no longer needs, for which it is there twice."""
MOST_STATEMENTS = 60
"""Statements of a loop that is there twice."""
_LARGEST_LITERAL = 16
_LARGEST = 1 << 62
"""Ends beyond this are as good as unknown."""
_RELATIONS: Mapping[str, Collection[int]] = {
    "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1),
}  # fmt: skip
"""The signs of a - b with which a relation of a to b holds."""


def with_tested_ends(block: Block, sizes: Mapping[str, int]) -> Block:
    """The statements with such loops. `sizes`: the numbers that arguments stand for."""
    return _Reader(_Facts(sizes)).block(block)


def _decided(relation: str, difference: Range) -> bool | None:
    """Whether a relation of a to b holds, given the values of a - b; None: not known."""
    signs = [difference.both(part).count != 0 for part in (Range(None, -1), Range(0, 0), Range(1, None))]
    answers = {sign in _RELATIONS[relation] for sign, possible in zip((-1, 0, 1), signs, strict=True) if possible}
    return answers.pop() if len(answers) == 1 else None


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop with a counter: a `for`, or the `while` over blocks of iterations that a loop between values is written
    as, whose counter is the begin of a block.

        while begin < stop:
            end = begin + int64(minimum(uint64(subtract(stop, begin)), uint64(1024)))
            ...
            begin = end
    """

    variable: Name
    start: Expr
    stop: Expr
    end: Name | None
    """The end of a block, which is not beyond that of the loop."""


def _loop_of(statement: For | While) -> _Loop | None:
    match statement:
        case For(variable=variable, start=start, stop=stop, step=step, kind="range"):
            return _Loop(variable, start or ZERO, stop, None) if step > 0 else None
        case While(test=Binary(op="<", left=Name() as begin, right=stop), body=[*inner, Assign() as last]):
            end = last.values[0]
            if isinstance(end, Name) and _is_of_blocks(begin, end, stop, inner, last):
                return _Loop(begin, begin, stop, end)
    return None


def _is_of_blocks(begin: Name, end: Name, stop: Expr, inner: Block, last: Assign) -> bool:
    """True if the end of a block is behind its begin, and no further than the end of the loop."""
    if [target.name for target in last.targets] != [begin.name]:  # one value
        return False
    assignments = [s for s in walk(inner) if isinstance(s, Assign)]
    if not {begin.name, *stop.names}.isdisjoint(target.name for s in assignments for target in s.targets):
        return False
    left = call("uint64", call("subtract", stop, begin)).text
    values = [value for s in assignments if any(t.name == end.name for t in s.targets) for value in s.values]
    match values:
        case [Binary(op="+", left=of, right=Call(function="int64", arguments=(Call(function="minimum") as size,)))]:
            rest, most = size.arguments
            is_block = isinstance(most, Call) and most.function == "uint64" and isinstance(most.arguments[0], Number)
            return of.text == begin.name and rest.text == left and is_block
    return False


@dataclass(frozen=True, slots=True)
class _Ends:
    """The start and the end of a loop as sums, if they are some, and the largest value that the end may have."""

    start: Affine | None
    stop: Affine | None
    most: int | None


class _Facts:
    """The values of integers while statements are read in order: sums of counters and of symbols. A symbol stands for a
    value that is no sum."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._ranges: dict[str, Range] = {}
        """Of counters and symbols."""
        self._indices = Indices(sizes, self._ranges, {})
        self._starts: dict[str, Affine | None] = {}
        """The starts of the counters of open loops, which are not below these; outer ones first."""
        self._symbols: dict[str, Name] = {}
        """The variables that got these values."""
        self._most_of: dict[str, int | None] = {}
        """The largest values of variables, whatever they are assigned."""

    def copy(self) -> _Facts:
        other = _Facts(self._indices.sizes)
        other._ranges.update(self._ranges)
        other._indices.known.update(self._indices.known)
        other._starts.update(self._starts)
        other._symbols.update(self._symbols)
        other._most_of.update(self._most_of)
        return other

    def of(self, e: Expr) -> Affine | None:
        return self._indices.of(e) if is_integer(e.type) else None

    def constant(self, e: Expr) -> int | None:
        """The number that an expression of sizes stands for."""
        if e.loads or not all(name in self._indices.sizes for name in e.names):
            return None
        value = self.of(e)
        return None if value is None or any(value[name] for name in value if name) else value.get("", 0)

    def assign(self, target: Name, value: Expr | None) -> None:
        """A variable has a value; None: any."""
        known = self._indices.known
        if not is_integer(target.type):
            known[target.name] = None
            return
        found: Affine | None = None
        match value:
            case Call(function="uint8", arguments=(Number(value=bool() as answer),)):
                found = {"": int(answer)}
            case Expr() if value.type == target.type:
                found = self.of(value)
        known[target.name] = self._symbol(target) if found is None else found

    def _symbol(self, variable: Name) -> Affine:
        symbol = f"{variable.name} {len(self._symbols)}"
        self._symbols[symbol] = variable
        self._ranges[symbol] = LIMITS[variable.type]
        self.limit(symbol, Range(None, self._most_of.get(variable.name)))
        return {symbol: 1}

    def forget(self, statement: Statement) -> None:
        """The variables that a statement assigns to may have any value after it, and in the iterations of a loop."""
        for inner in walk([statement]):
            match inner:
                case Assign(targets=names):
                    for name in names:
                        self.assign(name, None)
                case Augment(target=name) | For(variable=name):
                    self.assign(name, None)

    def ends(self, loop: _Loop) -> _Ends:
        return _Ends(self.of(loop.start), self.of(loop.stop), self._most(loop.stop))

    def _most(self, e: Expr) -> int | None:
        if isinstance(e, Call) and e.function == "minimum":
            return min((most for a in e.arguments if (most := self._most(a)) is not None), default=None)
        value = self.of(e)
        most = None if value is None else self.bounds(value).most
        return None if most is None or most >= _LARGEST else most

    def inside(self, loop: _Loop, ends: _Ends) -> _Facts:
        """What is known in the body of a loop."""
        facts, name = self.copy(), loop.variable.name
        facts._indices.known.pop(name, None)
        least = None if ends.start is None else self.bounds(ends.start).least
        facts._ranges[name] = Range(least, None if ends.most is None else ends.most - 1)
        facts._starts.pop(name, None)
        facts._starts[name] = ends.start
        if loop.end is not None:
            facts._most_of[loop.end.name] = ends.most
        return facts

    def limit(self, symbol: str, limits: Range) -> None:
        """A symbol is known to be within these limits."""
        self._ranges[symbol] = self._ranges[symbol].both(limits)

    def bounds(self, value: Affine) -> Range:
        """The least and the largest value of a sum; a counter is not below its start."""
        known = self._indices.bounds(value)
        below = above = value
        for name, start in reversed(self._starts.items()):
            if start is None:
                continue
            if below.get(name, 0) > 0:
                below = _replaced(below, name, start)
                known = known.both(Range(self._indices.bounds(below).least, None))
            if above.get(name, 0) < 0:
                above = _replaced(above, name, start)
                known = known.both(Range(None, self._indices.bounds(above).most))
        return known

    def difference(self, a: Expr, b: Expr) -> Range:
        """The bounds of a - b."""
        one, other = self.of(a), self.of(b)
        return Range(None, None) if one is None or other is None else self.bounds(difference(one, other))

    def symbol_of(self, value: Affine | None) -> str | None:
        """The symbol of a sum of one symbol and a number."""
        names = [name for name, factor in (value or {}).items() if name and factor]
        return names[0] if value and len(names) == 1 and names[0] in self._symbols and value[names[0]] == 1 else None

    def counts_on(self, value: Affine, counter: str) -> bool:
        """True for a number and the counter of a loop, or that of a loop in it which runs through parts of the same
        range."""
        names = [name for name, factor in value.items() if name and factor]
        if len(names) != 1 or value[names[0]] != 1:
            return False
        return names[0] == counter or self._starts.get(names[0]) == {counter: 1}

    def is_end(self, statement: Statement) -> bool:
        """True for the statement with the end of a block of iterations."""
        return isinstance(statement, Assign) and statement.targets[0].name in self._most_of

    def written(self, value: Affine) -> Expr | None:
        """A sum as an int64; None if no variable has the value of a symbol now, and for large numbers: these are sizes,
        and another size has the same text."""
        if any(abs(number) > _LARGEST_LITERAL for number in value.values()):
            return None
        result: Expr = ZERO
        for name, factor in sorted(value.items(), key=lambda item: item[1] < 0):
            if not name or not factor:
                continue
            term: Expr = Name(name)
            if name in self._symbols:
                variable = self._symbols[name]
                if self._indices.known.get(variable.name) != {name: 1}:
                    return None
                term = variable if variable.type == "int64" else Call("int64", (variable,))
            elif name not in self._starts:
                return None
            term = times(term, Number(abs(int(factor))))
            result = plus(result, term) if factor > 0 else minus(result, term)
        return plus(result, Number(int(value.get("", 0))))


def _replaced(value: Affine, name: str, start: Affine) -> Affine:
    """The sum with another one in the place of a name."""
    factor = value[name]
    result = {**value, name: 0}
    for other, of_start in start.items():
        result[other] = result.get(other, 0) + factor * of_start
    return result


class _Reader:
    """Reads a program, and finds its loops."""

    def __init__(self, facts: _Facts) -> None:
        self._facts = facts

    def block(self, block: Block) -> Block:
        """The statements, changed."""
        return [self._statement(statement) for statement in block]

    def _statement(self, statement: Statement) -> Statement:
        match statement:
            case Assign(targets=(target,), values=(value,)):
                self._facts.assign(target, value)
            case For() | While():
                return self._of_loop(statement)
            case If():
                return self._of_branches(statement)
            case _:
                self._facts.forget(statement)
        return statement

    def _of_loop(self, statement: For | While) -> Statement:
        loop = _loop_of(statement)
        ends = None if loop is None else self._facts.ends(loop)
        self._facts.forget(statement)
        if loop is not None and ends is not None:
            return self._changed(statement, loop, ends)
        return replace(statement, body=self._inside(self._facts.copy(), statement.body))

    def _of_branches(self, statement: If) -> Statement:
        blocks = [(test, self._inside(self._facts.copy(), block)) for test, block in statement.branches]
        otherwise = statement.otherwise
        if otherwise is not None:
            otherwise = self._inside(self._facts.copy(), otherwise)
        self._facts.forget(statement)
        return If(blocks, otherwise)

    def _changed(self, statement: For | While, loop: _Loop, ends: _Ends) -> Statement:
        """The loop changed. The facts are those of its iterations, but for its counter."""
        found = _twice(self._facts, statement, loop, ends)
        return self.within(statement, loop, ends) if found is None else found

    def within(self, statement: For | While, loop: _Loop, ends: _Ends) -> For | While:
        """The loop with its body changed."""
        return replace(statement, body=self._inside(self._facts.inside(loop, ends), statement.body))

    def _inside(self, facts: _Facts, block: Block) -> Block:
        outside, self._facts = self._facts, facts
        result = self.block(block)
        self._facts = outside
        return result


class _Simplified(_Reader):
    """Rewrites a loop's body with what is known of its counter."""

    def __init__(self, facts: _Facts, counter: str) -> None:
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

    def _changed(self, statement: For | While, loop: _Loop, ends: _Ends) -> Statement:
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
            case Binary(op=op, left=a, right=b) if op in _RELATIONS:
                known = _decided(op, self._facts.difference(a, b))
                return new if known is None else Number(known)
            case Call(function="int64", arguments=(a,)) if is_integer(a.type):
                value = self._facts.of(new)
                return (None if value is None else self._facts.written(value)) or new
        return new

    def _extremum(self, whole: Expr, function: str, a: Expr, b: Expr) -> Expr:
        known = self._facts.difference(a, b)
        if _decided("<=", known):
            return a if function == "minimum" else b
        if _decided(">=", known):
            return b if function == "minimum" else a
        value, limit = self._facts.of(a), self._facts.constant(b)
        if function == "minimum" and value and limit is not None and self._facts.counts_on(value, self._counter):
            more = 1 - value.get("", 0)
            if abs(more) <= _LARGEST_LITERAL:
                end = plus(b if b.type == "int64" else Call("int64", (b,)), Number(int(more)))
                self.limits.append((limit + more, end))
        return whole


def _twice(facts: _Facts, statement: For | While, loop: _Loop, ends: _Ends) -> If | None:
    """The loop in two versions: in the first one, the start is not negative, and the end not beyond what indices are
    clamped to."""
    first, last = facts.symbol_of(ends.start), facts.symbol_of(ends.stop)
    is_never_negative = ends.start is not None and _decided(">=", facts.bounds(ends.start)) is True
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
