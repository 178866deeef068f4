"""What is known of integers while the statements of a program are read in order.

A counter of a loop is between its start and its end, and these are often sums of the counters of the loops around it:

    for i in range(n):
        for j in range(i + 1, n):
            for k in range(i + 1, j):       j - k is at least 1, k - i too
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ...hlo.support.records import dataclass
from .affine import LIMITS, Affine, Indices, Range, difference
from .expressions import ZERO, Binary, Call, Expr, Name, Number, call, minus, plus, times
from .statements import Assign, Augment, Block, For, If, Statement, While, walk
from .typing import is_integer

LARGEST_LITERAL = 16
"""Larger numbers in a text are sizes."""
_LARGEST = 1 << 62
"""Ends beyond this are as good as unknown."""
RELATIONS: Mapping[str, Collection[int]] = {
    "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1),
}  # fmt: skip
"""The signs of a - b with which a relation of a to b holds."""


def decided(relation: str, difference: Range) -> bool | None:
    """Whether a relation of a to b holds, given the values of a - b; None: not known."""
    signs = [difference.both(part).count != 0 for part in (Range(None, -1), Range(0, 0), Range(1, None))]
    answers = {sign in RELATIONS[relation] for sign, possible in zip((-1, 0, 1), signs, strict=True) if possible}
    return answers.pop() if len(answers) == 1 else None


@dataclass(frozen=True, slots=True)
class CountedLoop:
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


def loop_of(statement: For | While) -> CountedLoop | None:
    match statement:
        case For(variable=variable, start=start, stop=stop, step=step, kind="range"):
            return CountedLoop(variable, start or ZERO, stop, None) if step > 0 else None
        case While(test=Binary(op="<", left=Name() as begin, right=stop), body=[*inner, Assign() as last]):
            end = last.values[0]
            if isinstance(end, Name) and _is_of_blocks(begin, end, stop, inner, last):
                return CountedLoop(begin, begin, stop, end)
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
class Ends:
    """The start and the end of a loop as sums, if they are some, and the largest value that the end may have."""

    start: Affine | None
    stop: Affine | None
    most: int | None


class Facts:
    """The values of integers while statements are read in order: sums of counters and of symbols. A symbol stands for a
    value that is no sum."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._ranges: dict[str, Range] = {}
        """Of counters and symbols."""
        self._indices = Indices(sizes, self._ranges, {})
        self._starts: dict[str, Affine | None] = {}
        """The starts of the counters of open loops, which are not below these."""
        self._lasts: dict[str, Affine | None] = {}
        """The last values of these counters, and the ends of loops for the symbols of the ends of their blocks, which
        are not above these; outer ones first."""
        self._symbols: dict[str, Name] = {}
        """The variables that got these values."""
        self._most_of: dict[str, Ends] = {}
        """The loops of whose blocks variables are the ends, whatever they are assigned."""

    def copy(self) -> Facts:
        other = Facts(self._indices.sizes)
        other._ranges.update(self._ranges)
        other._indices.known.update(self._indices.known)
        other._starts.update(self._starts)
        other._lasts.update(self._lasts)
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
        loop = self._most_of.get(variable.name)
        if loop is not None:
            self.limit(symbol, Range(None, loop.most))
            self._lasts[symbol] = loop.stop
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

    def ends(self, loop: CountedLoop) -> Ends:
        return Ends(self.of(loop.start), self.of(loop.stop), self._most(loop.stop))

    def _most(self, e: Expr) -> int | None:
        if isinstance(e, Call) and e.function == "minimum":
            return min((most for a in e.arguments if (most := self._most(a)) is not None), default=None)
        value = self.of(e)
        most = None if value is None else self.bounds(value).most
        return None if most is None or most >= _LARGEST else most

    def inside(self, loop: CountedLoop, ends: Ends) -> Facts:
        """What is known in the body of a loop."""
        facts, name = self.copy(), loop.variable.name
        facts._indices.known.pop(name, None)
        least = None if ends.start is None else self.bounds(ends.start).least
        facts._ranges[name] = Range(least, None if ends.most is None else ends.most - 1)
        facts._starts[name] = ends.start
        facts._lasts.pop(name, None)
        facts._lasts[name] = None if ends.stop is None else {**ends.stop, "": ends.stop.get("", 0) - 1}
        if loop.end is not None:
            facts._most_of[loop.end.name] = ends
        return facts

    def limit(self, symbol: str, limits: Range) -> None:
        """A symbol is known to be within these limits."""
        self._ranges[symbol] = self._ranges[symbol].both(limits)

    def bounds(self, value: Affine) -> Range:
        """The least and the largest value of a sum; a counter is between its start and its last value."""
        known = self._indices.bounds(value)
        below = above = value
        for name, last in reversed(self._lasts.items()):
            start = self._starts.get(name)
            below, above = _replaced(below, name, start, last), _replaced(above, name, last, start)
            known = known.both(Range(self._indices.bounds(below).least, self._indices.bounds(above).most))
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
        if any(abs(number) > LARGEST_LITERAL for number in value.values()):
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


def _replaced(value: Affine, name: str, low: Affine | None, high: Affine | None) -> Affine:
    """The sum with `low` in the place of a name, or with `high` if the name's factor is negative; None: not known."""
    factor = value.get(name, 0)
    other = low if factor > 0 else high if factor < 0 else None
    if other is None:
        return value
    result = {**value, name: 0}
    for part, of_other in other.items():
        result[part] = result.get(part, 0) + factor * of_other
    return result


class Reader:
    """Reads a program, and finds its loops with counters. A subclass changes them, in `_changed`."""

    def __init__(self, facts: Facts) -> None:
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
        loop = loop_of(statement)
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

    def _changed(self, statement: For | While, loop: CountedLoop, ends: Ends) -> Statement:
        """The loop changed. The facts are those of its iterations, but for its counter."""
        return self.within(statement, loop, ends)

    def within(self, statement: For | While, loop: CountedLoop, ends: Ends) -> For | While:
        """The loop with its body changed."""
        return replace(statement, body=self._inside(self._facts.inside(loop, ends), statement.body))

    def _inside(self, facts: Facts, block: Block) -> Block:
        outside, self._facts = self._facts, facts
        result = self.block(block)
        self._facts = outside
        return result
