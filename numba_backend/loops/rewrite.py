"""Write one loop program into another, with new names for everything."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from .expressions import ZERO, Binary, Call, Expr, Load, Name, Number, is_number, minus, plus, times
from .statements import (
    Assign,
    Augment,
    Block,
    Evaluate,
    For,
    If,
    LocalArray,
    Return,
    Statement,
    Store,
    While,
)

_INDEX: dict[str, Callable[[Expr, Expr], Expr]] = {"+": plus, "-": minus, "*": times}
"""Arithmetic on indices, which drops neutral terms and factors."""

_OF_NUMBERS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "minimum": min, "maximum": max, "==": operator.eq,
    "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

Reader = Callable[[Expr], Expr]
"""Gives the expression that replaces a load from a memory, for the new index."""
Storer = Callable[[Expr, Expr], Statement]
"""Gives the statement that replaces a store, for the new index and the new value."""


def with_new_parts(e: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The operation on other operands; itself if they are the same objects."""
    return e if all(map(operator.is_, parts, e.parts)) else e.with_parts(parts)


def rewritten(
    e: Expr, change: Callable[[Expr], Expr | None], made: Callable[[Expr, tuple[Expr, ...]], Expr] = with_new_parts
) -> Expr:
    """The expression with others in the places of those for which `change` gives one, from the whole to its parts.
    `made` gives the operation on changed operands."""
    found = change(e)
    if found is not None:
        return found
    return made(e, tuple([rewritten(part, change, made) for part in e.parts])) if e.parts else e


def with_names(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression with values in the places of names; itself if it has none of the names."""
    if not values or not any(name in values for name in e.names):
        return e
    return rewritten(e, lambda part: values.get(part.name) if isinstance(part, Name) else None)


class Substitution:
    """How the names of one program appear in another.

    `values`: expressions for parameters. `memories`: what loads and stores through a pointer become. Any other name
    that the program assigns gets a new name from `fresh`.
    """

    def __init__(
        self, values: Mapping[str, Expr], memories: Mapping[str, tuple[Reader, Storer]], fresh: Callable[[str], str]
    ) -> None:
        self._values = dict(values)
        self._memories = memories
        self._fresh = fresh

    def block(self, block: Block) -> Block:
        """The statements with the names of the other program."""
        return [new for statement in block for new in self.statements(statement)]

    def statements(self, statement: Statement) -> Block:
        """The statement with the other names; of branches that literals decide on, only the one that runs."""
        if not isinstance(statement, If):
            return [self._statement(statement)]
        branches: list[tuple[Expr, Block]] = []
        otherwise = statement.otherwise
        for test, block in statement.branches:
            new = self.expression(test)
            if type(new) is Number and new.value is True:
                otherwise = block
                break
            if not (type(new) is Number and new.value is False):
                branches.append((new, self.block(block)))
        rest = None if otherwise is None else self.block(otherwise)
        return [If(branches, rest)] if branches else rest or []

    def expression(self, e: Expr) -> Expr:
        """The expression with the names of the other program."""
        return rewritten(e, self._replacement, self._made)

    def _replacement(self, e: Expr) -> Expr | None:
        if isinstance(e, Name):
            return self._values.get(e.name) or self._name(e)
        if isinstance(e, Load) and (memory := self._memories.get(e.pointer.name)) is not None:
            return memory[0](self.expression(e.index))
        return None

    def _made(self, e: Expr, parts: tuple[Expr, ...]) -> Expr:
        """The operation on other operands, without neutral terms and factors; a literal if they are literals."""
        known = _known(e, parts)
        if known is not None:
            return known
        new = with_new_parts(e, parts)
        if new is e or type(e) is not Binary or e.type != "int64":
            return new
        if is_number(parts[1], 1) and e.op in ("//", "%"):
            return parts[0] if e.op == "//" else ZERO
        return _INDEX[e.op](*parts) if e.op in _INDEX else new

    def _name(self, name: Name) -> Name:
        """The new name of a variable."""
        found = self._values.get(name.name)
        if found is None:
            found = self._values[name.name] = Name(self._fresh(name.name), name.type)
        assert isinstance(found, Name), f"{name} is a parameter"
        return found

    def _statement(self, statement: Statement) -> Statement:
        expression = self.expression
        match statement:
            case Assign(targets=targets, values=values):
                new = tuple([expression(v) for v in values])
                return Assign(tuple([self._name(t) for t in targets]), new)
            case Store(pointer=pointer, index=index, value=value):
                memory = self._memories.get(pointer.name)
                at, what = expression(index), expression(value)
                return Store(self._name(pointer), at, what) if memory is None else memory[1](at, what)
            case For(variable=variable, start=start, stop=stop, step=step, body=body):
                first = None if start is None else expression(start)
                if first is not None and step == 1 and is_number(first, 0):
                    first = None
                counter, last = self._name(variable), expression(stop)
                return For(counter, first, last, step, self.block(body), statement.kind)
            case While(test=test, body=body):
                return While(expression(test), self.block(body))
            case Augment(target=target, op=op, value=value):
                return Augment(self._name(target), op, expression(value))
            case LocalArray(name=name, count=count, dtype=dtype):
                return LocalArray(self._name(name), count, dtype)
            case Return(value=value):
                assert value is None, "a kernel returns nothing"
                raise AssertionError("a kernel that ends early cannot be a part of another")
            case Evaluate(value=value):
                return Evaluate(expression(value))
            case _:
                return statement


def _known(e: Expr, parts: tuple[Expr, ...]) -> Number | None:
    """The result of integer arithmetic on literals, for bounds of loops, indices and tests once sizes are literals."""
    name = e.op if type(e) is Binary else e.function if type(e) is Call else ""
    known = _OF_NUMBERS.get(name)
    if known is None or len(parts) != 2:
        return None
    a, b = parts
    if type(a) is not Number or type(b) is not Number or type(a.value) is not int or type(b.value) is not int:
        return None
    return Number(known(a.value, b.value), e.depth)
