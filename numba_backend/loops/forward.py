"""Replace narrow loop counters by 64-bit values where they are widened.

    s0 = int32(step0 + 2)               s0 = int32(step0 + 2)
    v0 = s0                             v0 = s0
    start0 = int64(v0)          ->      start0 = step0 + 2
    out[start0] = x[start0]             out[start0] = x[start0]

LLVM cannot see that the 32 bits of a counter do not overflow, and so not that a loop goes through an array in order.
The writer of a loop knows the values of its variables, and passes them here.
"""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import Binary, Call, Expr, Name, Number, plus
from .rewrite import rewritten, with_new_parts
from .statements import Assign, Augment, Block, For, If, LocalArray, Statement, While, walk, with_values


def forwarded(block: Block, counter: Name, value: Expr, step: int) -> Block:
    """The statements of a loop's body, with int64 values for narrow ones where these are widened.

    When the body begins, the variable `counter` has this value, of names that do not change in the body. It and the
    value plus `step`, the next one, fit the variable's type.
    """
    following = Call("add", (counter, Call(counter.type, (Number(step),))))
    return _Forward({counter.name: value}, (counter.name, value, following.text, value + step)).block(block)


class _Forward:
    def __init__(self, known: dict[str, Expr], counter: tuple[str, Expr, str, Expr]) -> None:
        """`counter`: its name and value, the text of its next value, and that value."""
        self._known = known
        self._counter = counter

    def block(self, block: Block) -> Block:
        return [self._statement(statement) for statement in block]

    def _inner(self, block: Block) -> Block:
        """A block that may run or not, perhaps several times."""
        return self._without(block).block(block)

    def _without(self, block: Block) -> _Forward:
        """The facts that still hold after a block that may have run."""
        changed = set(assigned(block))
        known = {name: value for name, value in self._known.items() if name not in changed}
        return _Forward(known, self._counter)

    def _forget(self, *blocks: Block) -> None:
        for inner in blocks:
            for name in assigned(inner):
                self._known.pop(name, None)

    def _statement(self, statement: Statement) -> Statement:
        wide = self._wide
        match statement:
            case Assign(targets=targets, values=values):
                new = with_values(statement, wide)
                sources = [self._value(v) for v in values]
                for target, source in zip(targets, sources, strict=True):
                    self._known.pop(target.name, None)
                    if source is not None and not any(source.reads(t.name) for t in targets):
                        self._known[target.name] = source
                return new
            case Augment(target=target):
                new = with_values(statement, wide)
                self._known.pop(target.name, None)
                return new
            case For(variable, start, stop, step, body, kind):
                first = None if start is None else wide(start)
                self._known.pop(variable.name, None)
                result: Statement = For(variable, first, wide(stop), step, self._inner(body), kind)
                self._forget(body)
                return result
            case While(test=test, body=body):
                result = While(self._without(body)._wide(test), self._inner(body))
                self._forget(body)
                return result
            case If(branches=branches, otherwise=otherwise):
                new_branches = [(wide(test), self._inner(body)) for test, body in branches]
                last = None if otherwise is None else self._inner(otherwise)
                self._forget(*(body for _, body in branches), otherwise or [])
                return If(new_branches, last)
            case _:
                return with_values(statement, wide)

    def _value(self, e: Expr) -> Expr | None:
        """The value of a narrow expression in 64 bits, if it is known."""
        if isinstance(e, Name):
            return self._known.get(e.name)
        if isinstance(e, Call) and e.function.startswith("int") and isinstance(e.arguments[0], Number):
            return e.arguments[0]
        name, value, following, result = self._counter
        if isinstance(e, Call) and e.function == "add" and self._known.get(name) is value and e.text == following:
            return result
        return None

    def _wide(self, e: Expr) -> Expr:
        if "int64(" not in e.text:
            return e
        return rewritten(e, self._widened, _index_sum)

    def _widened(self, e: Expr) -> Expr | None:
        return self._value(e.arguments[0]) if isinstance(e, Call) and e.function == "int64" else None


def _index_sum(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The operation on other operands, a sum without zeros."""
    if isinstance(e, Binary) and e.op == "+" and e.type == "int64":
        return plus(*parts)
    return with_new_parts(e, parts)


def assigned(block: Block) -> Iterator[str]:
    """The names that a block assigns to."""
    for statement in walk(block):
        match statement:
            case Assign(targets=targets):
                yield from (target.name for target in targets)
            case Augment(target=target) | For(variable=target) | LocalArray(name=target):
                yield target.name

