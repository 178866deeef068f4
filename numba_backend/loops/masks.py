"""A transform: restrict sums and extrema of masked elements to the elements that the mask lets through.

    acc0 = c0                                           acc0 = c0
    for i in range(n0):                                 for i in range(minimum(n0, int64(v0))):
        v1 = x[i]                                           v1 = x[i]
        acc0 = reduce_add(acc0, select(int32(i) < v0, v1 * v1, c0))     acc0 = reduce_add(acc0, v1 * v1)

Triangular algorithms are written so: a row of fixed size is masked to its part. Here c0 is known to be zero, so that
adding it changes nothing: a sum that begins as +0 is never -0. A minimum or a maximum takes any number for the hidden
elements with which it begins. The limit is a number that the loop around computes, so only the program of that loop
shows that it does not change inside.
"""

from __future__ import annotations

from collections.abc import Collection

from ...hlo.support.records import dataclass
from .expressions import ZERO, Binary, Call, Expr, Name, Number, as_expr, call, minimum, plus
from .forward import assigned
from .split import MIRRORED, conditions
from .statements import Assign, Block, Comment, For, Statement, walk, with_blocks

_COUNTERS = ("int32", "int64")


_EXTREMA = ("minimum", "maximum")
_KEYS = ("minimum_key", "maximum_key")


@dataclass(frozen=True)
class _Masked:
    """``target = function(total, select(condition, term, otherwise))``, perhaps with a key of the choice."""

    target: Name
    function: str
    total: Expr
    key: str | None
    condition: Expr
    term: Expr
    otherwise: Expr

    def of(self, value: Expr) -> Expr:
        return value if self.key is None else call(self.key, value)

    def unmasked(self) -> Statement:
        return Assign((self.target,), (call(self.function, self.total, self.of(self.term)),))


@dataclass(frozen=True)
class _Known:
    """Names that do not change: `zeros`, which stand for +0, and all `constants`."""

    zeros: Collection[str]
    constants: Collection[str]

    def is_nothing(self, masked: _Masked, start: Expr | None) -> bool:
        """True if the hidden elements change nothing in an accumulator that begins as `start`."""
        if not isinstance(masked.otherwise, Name) or start is None:
            return False
        if masked.function == "reduce_add":
            return all(isinstance(e, Name) and e.name in self.zeros for e in (masked.otherwise, start))
        return masked.otherwise.name in self.constants and start.text == masked.of(masked.otherwise).text


def within_masks(block: Block, zeros: Collection[str], constants: Collection[str]) -> Block:
    """The statements, with loops that only accumulate masked elements cut to where their masks hold. `zeros`: names
    that stand for +0; `constants`: names that never change. No loop may reach 2**31."""
    if not constants or not any(map(_masked, walk(block))):
        return block
    return _within(block, _Known(zeros, constants))


def _masked(statement: Statement) -> _Masked | None:
    match statement:
        case Assign(targets=(target,), values=(Call(function=function, arguments=(total, added)),)):
            key = None
            if function in _EXTREMA and isinstance(added, Call) and added.function in _KEYS:
                key, (added,) = added.function, added.arguments
            elif function not in _EXTREMA and function != "reduce_add":
                return None
            if isinstance(added, Call) and added.function == "select":
                return _Masked(target, function, total, key, *added.arguments)
    return None


def _within(block: Block, known: _Known) -> Block:
    result: Block = []
    starts: dict[str, Expr] = {}
    for statement in block:
        if isinstance(statement, For):
            statement = _cut(statement, known, starts)
        result.append(with_blocks(statement, lambda inner: _within(inner, known)))
        for name in assigned([statement]):
            starts.pop(name, None)
        if isinstance(statement, Assign) and len(statement.targets) == 1:
            starts[statement.targets[0].name] = statement.values[0]
    return result


def _cut(loop: For, known: _Known, starts: dict[str, Expr]) -> For:
    if loop.step != 1:
        return loop
    sums: dict[str, Expr] = {}
    changing = set(assigned(loop.body)) | {loop.variable.name}
    for statement in loop.body:
        if isinstance(statement, Comment):
            continue
        if mask := _mask(statement, known, starts):
            sums[mask.target.name] = mask.condition
        elif not _is_value(statement):
            return loop
    if not sums or not _are_read_once(loop.body, sums):
        return loop
    (first, *others) = sums.values()
    if any(other.text != first.text for other in others):
        return loop
    counters = {loop.variable.name}
    for statement in loop.body:
        if isinstance(statement, Assign) and _is_counter(statement.values[0], counters):
            counters.add(statement.targets[0].name)
    start, stop, is_whole = loop.start or ZERO, loop.stop, True
    for test in conditions(first, ("and", "&")):
        bound = _bound(test, counters, changing)
        if bound is None:
            is_whole = False
            continue
        relation, limit = bound
        if relation in ("<=", ">"):
            limit = _after(limit, loop.stop)
        if relation in ("<", "<="):
            stop = minimum(stop, limit)
        else:
            start = call("maximum", start, limit)
    if start is (loop.start or ZERO) and stop is loop.stop:
        return loop
    body = [_unmasked(s, sums) for s in loop.body] if is_whole else loop.body
    return For(loop.variable, None if start is ZERO else start, stop, 1, body)


def _after(limit: Expr, stop: Expr) -> Expr:
    """The number after a limit, as a bound of a loop that ends at `stop`. A limit may be any number: the largest one
    means that there is no limit, and has none after it."""
    narrow = isinstance(limit, Call) and limit.function == "int64" and limit.arguments[0].type == "int32"
    return plus(limit if narrow else minimum(limit, stop), Number(1))


def _unmasked(statement: Statement, sums: Collection[str]) -> Statement:
    """A sum or an extremum without its mask."""
    found = _masked(statement)
    return statement if found is None or found.target.name not in sums else found.unmasked()


def _mask(statement: Statement, known: _Known, starts: dict[str, Expr]) -> _Masked | None:
    """``acc = reduce_add(acc, select(condition, term, 0))`` and the like, if it does nothing where its condition does
    not hold."""
    found = _masked(statement)
    if found is None or not (isinstance(found.total, Name) and found.total.name == found.target.name):
        return None
    return found if known.is_nothing(found, starts.get(found.target.name)) else None


def _is_value(statement: Statement) -> bool:
    """True for a statement that only names a value that does not depend on other iterations."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return False
    name = statement.targets[0].name
    return not statement.values[0].reads(name)


def _are_read_once(body: Block, sums: Collection[str]) -> bool:
    """True if a sum is read where it is added to, and nowhere else."""
    read = [
        name
        for statement in body
        if isinstance(statement, Assign)
        for name in statement.values[0].names
        if name in sums
    ]
    return len(read) == len(set(read)) == len(sums)


def _bound(test: Expr, counters: Collection[str], changing: Collection[str]) -> tuple[str, Expr] | None:
    """The relation of the counter to a number that does not change in the loop, as an int64."""
    if not isinstance(test, Binary) or test.op not in MIRRORED:
        return None
    for op, left, right in ((test.op, test.left, test.right), (MIRRORED[test.op], test.right, test.left)):
        if _is_counter(left, counters) and right.type in _COUNTERS and _is_fixed(right, changing):
            return op, as_expr(right) if right.type == "int64" else call("int64", right)
    return None


def _is_counter(e: Expr, counters: Collection[str]) -> bool:
    """True for the counter, perhaps as a narrower integer."""
    if isinstance(e, Call) and e.function in _COUNTERS:
        (e,) = e.arguments
    return isinstance(e, Name) and e.name in counters


def _is_fixed(e: Expr, changing: Collection[str]) -> bool:
    return isinstance(e, Number) or (isinstance(e, Name) and e.name not in changing)
