"""A transform: restrict sums of masked elements to the elements that the mask lets through.

    acc0 = c0                                           acc0 = c0
    for i in range(n0):                                 for i in range(minimum(n0, int64(v0))):
        v1 = x[i]                                           v1 = x[i]
        acc0 = reduce_add(acc0, select(int32(i) < v0, v1 * v1, c0))     acc0 = reduce_add(acc0, v1 * v1)

Triangular algorithms are written so: a row of fixed size is masked to its part. Here c0 is known to be zero, so that
adding it changes nothing: a sum that begins as +0 is never -0. The limit is a number that the loop around computes, so
only the program of that loop shows that it does not change inside.
"""

from __future__ import annotations

from collections.abc import Collection

from .expressions import ZERO, Binary, Call, Expr, Name, Number, as_expr, call, minimum, plus
from .forward import assigned
from .split import MIRRORED, conditions
from .statements import Assign, Block, Comment, For, Statement, walk, with_blocks

_COUNTERS = ("int32", "int64")


def within_masks(block: Block, zeros: Collection[str]) -> Block:
    """The statements, with loops that only add up masked elements cut to where their masks hold. `zeros`: names that
    stand for +0. No loop may reach 2**31."""
    return _within(block, zeros) if zeros and any(map(_masked, walk(block))) else block


def _masked(statement: Statement) -> tuple[Name, Expr, tuple[Expr, ...]] | None:
    """Of ``acc = reduce_add(total, select(condition, term, otherwise))``: `acc`, `total`, and the choice."""
    match statement:
        case Assign(
            targets=(target,),
            values=(Call(function="reduce_add", arguments=(total, Call(function="select", arguments=choice))),),
        ):
            return target, total, choice
    return None


def _within(block: Block, zeros: Collection[str]) -> Block:
    result: Block = []
    starts: dict[str, Expr] = {}
    for statement in block:
        if isinstance(statement, Assign) and len(statement.targets) == 1:
            starts[statement.targets[0].name] = statement.values[0]
        elif isinstance(statement, For):
            statement = _cut(statement, zeros, starts)
        new = with_blocks(statement, lambda inner: _within(inner, zeros))
        for name in assigned([statement]):
            if not isinstance(statement, Assign):
                starts.pop(name, None)
        result.append(new)
    return result


def _cut(loop: For, zeros: Collection[str], starts: dict[str, Expr]) -> For:
    if loop.step != 1:
        return loop
    sums: dict[str, Expr] = {}
    changing = set(assigned(loop.body)) | {loop.variable.name}
    for statement in loop.body:
        if isinstance(statement, Comment):
            continue
        if mask := _mask(statement, zeros, starts):
            sums[mask[0]] = mask[1]
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
    """A sum without its mask."""
    found = _masked(statement)
    if found is None or found[0].name not in sums:
        return statement
    target, total, choice = found
    return Assign((target,), (call("reduce_add", total, choice[1]),))


def _mask(statement: Statement, zeros: Collection[str], starts: dict[str, Expr]) -> tuple[str, Expr] | None:
    """The name `acc`, and the condition under which ``acc = reduce_add(acc, select(condition, term, 0))`` adds
    anything, if `acc` begins as +0."""
    found = _masked(statement)
    if found is None:
        return None
    target, total, (condition, _, otherwise) = found
    if not (isinstance(total, Name) and total.name == target.name):
        return None
    known = [isinstance(e, Name) and e.name in zeros for e in (otherwise, starts.get(target.name))]
    return (target.name, condition) if all(known) else None


def _is_value(statement: Statement) -> bool:
    """True for a statement that only names a value that does not depend on other iterations."""
    if not isinstance(statement, Assign) or len(statement.targets) != 1:
        return False
    name = statement.targets[0].name
    return not any(isinstance(p, Name) and p.name == name for p in statement.values[0].walk())


def _are_read_once(body: Block, sums: Collection[str]) -> bool:
    """True if a sum is read where it is added to, and nowhere else."""
    read = [
        p.name
        for statement in body
        if isinstance(statement, Assign)
        for p in statement.values[0].walk()
        if isinstance(p, Name) and p.name in sums
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
