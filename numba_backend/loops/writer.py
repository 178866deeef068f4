"""Writing a loop program: its open scopes, and the names that it has used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .expressions import Call, Expr, Name, Number, as_expr
from .statements import Assign, Augment, Block, For, If, LocalArray, Statement, Store, While
from .typing import pointer_to


@dataclass(slots=True, eq=False)
class Scope:
    """An open block. What an outer scope gets while an inner one is open comes before the inner one."""

    depth: int
    guarded: bool = False
    """True for a branch: a value that is computed inside may not be moved out of it."""
    block: Block = field(default_factory=list)
    values: dict[Any, Expr] = field(default_factory=dict)


class Writer:
    """The open scopes of a program and the names used so far."""

    def __init__(self, guarded: bool = False) -> None:
        """`guarded`: every value is computed where it is written."""
        self.scopes: list[Scope] = [Scope(0, guarded)]
        self._numbers: dict[str, int] = {}

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    @property
    def depth(self) -> int:
        return self.scope.depth

    def fresh(self, stem: str) -> str:
        """A new name: the stem with the next number for this stem."""
        number = self._numbers.get(stem, 0)
        self._numbers[stem] = number + 1
        return f"{stem}{number}"

    def add(self, statement: Statement) -> None:
        """Adds a statement to the open scope."""
        self.scope.block.append(statement)

    def assign(self, name: str | Name, value: Expr | int) -> Name:
        """``name = value``; gives the variable. A Name is a variable that has a type already."""
        value = as_expr(value)
        target = name if isinstance(name, Name) else Name(name, value.type, self.depth)
        self.add(Assign((target,), (value,)))
        return target

    def variable(self, name: str, type_: str = "int64") -> Name:
        """A variable of the open scope that inner scopes may assign to."""
        return Name(name, type_, self.depth)

    def assign_all(self, names: Sequence[Name], values: Sequence[Expr]) -> None:
        """``a, b = x, y``"""
        self.add(Assign(tuple(names), tuple(values)))

    def augment(self, name: Name, op: str, value: Expr | int) -> None:
        """``name += value``"""
        self.add(Augment(name, op, as_expr(value)))

    def store(self, pointer: Name, index: Expr | int, value: Expr | int) -> None:
        """``pointer[index] = value``"""
        self.add(Store(pointer, as_expr(index), as_expr(value)))

    def local_array(self, name: str, count: int, dtype: str) -> Name:
        """``name = local_array(count, dtype)``"""
        array = Name(name, pointer_to(dtype), self.depth)
        self.add(LocalArray(array, count, dtype))
        return array

    def placement(self, depth: int) -> Scope:
        """The scope where a value of `depth` is computed: the outermost possible one."""
        scope = self.scope
        return scope if scope.guarded else self.scopes[depth]

    def let(self, stem: str, value: Expr) -> Name:
        """Names a value: ``stem3 = ...`` in the outermost scope that has all the values it needs."""
        scope = self.placement(value.depth)
        target = Name(self.fresh(stem), value.type, scope.depth)
        scope.block.append(Assign((target,), (value,)))
        return target

    def recall(self, key: Any) -> Expr | None:
        """A value that an open scope has already computed."""
        for scope in reversed(self.scopes):
            found = scope.values.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: Any, value: Expr) -> Expr:
        """Keeps `value` while the scope that defines it (the current one, if the value has no name) is open."""
        self.placement(value.depth).values[key] = value
        return value

    @contextmanager
    def _open(self, guarded: bool) -> Iterator[Scope]:
        parent = self.scope
        scope = Scope(parent.depth + 1, guarded or parent.guarded)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            popped = self.scopes.pop()
            assert popped is scope

    @contextmanager
    def loop(
        self, name: str, *bounds: Expr | int, step: int = 1, guarded: bool = False
    ) -> Iterator[Name]:
        """``for name in range(stop)``, ``range(start, stop)``, ``range(start, stop, step)``; gives the variable."""
        start = as_expr(bounds[0]) if len(bounds) > 1 else None
        parent = self.scope
        variable = Name(name, "int64", parent.depth + 1)
        with self._open(guarded) as scope:
            yield variable
        parent.block.append(For(variable, start, as_expr(bounds[-1]), step, scope.block))

    @contextmanager
    def while_(self, test: Expr, guarded: bool = False) -> Iterator[Scope]:
        """``while test:``"""
        parent = self.scope
        with self._open(guarded) as scope:
            yield scope
        parent.block.append(While(test, scope.block))

    @contextmanager
    def if_(self, test: Expr, guarded: bool = False) -> Iterator[Scope]:
        """``if test:``"""
        parent = self.scope
        with self._open(guarded) as scope:
            yield scope
        parent.block.append(If([(test, scope.block)]))

    @contextmanager
    def elif_(self, test: Expr, guarded: bool = False) -> Iterator[Scope]:
        """``elif test:`` after the last ``if`` of the open scope."""
        branch = self._last_if()
        with self._open(guarded) as scope:
            yield scope
        branch.branches.append((test, scope.block))

    @contextmanager
    def else_(self, guarded: bool = False) -> Iterator[Scope]:
        """``else:`` after the last ``if`` of the open scope."""
        branch = self._last_if()
        with self._open(guarded) as scope:
            yield scope
        branch.otherwise = scope.block

    def _last_if(self) -> If:
        last = self.scope.block[-1]
        assert isinstance(last, If), "no if before else"
        assert last.otherwise is None, "two else"
        return last

    def body(self) -> Block:
        """All that was written."""
        assert len(self.scopes) == 1, "a scope is still open"
        return self.scope.block


def cast(type_: str, value: Expr | int) -> Call:
    """``float32(value)``"""
    return Call(type_, (as_expr(value),))


def boolean(value: bool) -> Number:
    """``True`` or ``False``"""
    return Number(value)
