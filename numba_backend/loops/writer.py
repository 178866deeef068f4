"""Write a loop program: its open scopes, and the names that it has used."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import Any

from ...hlo.support.records import dataclass
from .expressions import Call, Expr, Name, Number, as_expr
from .lanes import check_kind, in_lanes
from .statements import Assign, Augment, Block, For, If, LocalArray, LoopKind, Statement, Store, While
from .typing import pointer_to

Values = dict[Any, Expr]
"""Values that the open scopes have computed, by their keys."""


@dataclass(slots=True, eq=False)
class Scope:
    """An open block. Statements that are added to an outer scope while an inner one is open come before the inner
    one."""

    depth: int
    guarded: bool = False
    """True for a branch: a value that is computed inside may not be moved out of it."""
    block: Block = field(default_factory=list)
    undo: list[tuple[Values, Any, Expr | None]] = field(default_factory=list)
    """The values that end with the scope, with the previous values of the same names."""


class Writer:
    """The open scopes of a program and the names used so far."""

    def __init__(self, guarded: bool = False) -> None:
        """`guarded`: every value is computed where it is written."""
        self.scopes: list[Scope] = [Scope(0, guarded)]
        self._numbers: dict[str, int] = {}
        self._values: dict[Hashable, Values] = {}

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

    def values(self, index: Hashable = ()) -> Values:
        """The values that open scopes have computed for an index (of an array; they have no index otherwise)."""
        found = self._values.get(index)
        if found is None:
            found = self._values[index] = {}
        return found

    def recall(self, key: Any) -> Expr | None:
        """A value without an index that an open scope has already computed."""
        return self.values().get(key)

    def remember(self, key: Any, value: Expr, index: Hashable = ()) -> None:
        """Keeps `value` while the scope that defines it (the current one, if the value has no name) is open."""
        self._keep(self.placement(value.depth), self.values(index), key, value)

    def know(self, key: Any, value: Expr, index: Hashable = ()) -> None:
        """Keeps `value` while the current scope is open."""
        self._keep(self.scope, self.values(index), key, value)

    @staticmethod
    def _keep(scope: Scope, values: Values, key: Any, value: Expr) -> None:
        scope.undo.append((values, key, values.get(key)))
        values[key] = value

    @contextmanager
    def forgetting(self) -> Iterator[None]:
        """Forget at the end all values that the current scope has remembered inside."""
        scope = self.scope
        count = len(scope.undo)
        try:
            yield
        finally:
            self.forget(scope, count)

    @staticmethod
    def forget(scope: Scope, count: int) -> None:
        """Forgets all but the first `count` values of a scope."""
        for values, key, before in reversed(scope.undo[count:]):
            if before is not None:
                values[key] = before
            else:
                values.pop(key, None)
        del scope.undo[count:]

    def _push(self, guarded: bool) -> Scope:
        """Opens a scope inside of the open one."""
        self.scopes.append(Scope(self.depth + 1, guarded or self.scope.guarded))
        return self.scope

    def _pop(self) -> Block:
        """Closes the open scope; gives its statements."""
        scope = self.scopes.pop()
        self.forget(scope, 0)
        return scope.block

    @contextmanager
    def loop(
        self, name: str, *bounds: Expr | int, step: int = 1, guarded: bool = False, kind: LoopKind = "range"
    ) -> Iterator[Name]:
        """``for name in range(stop)``, ``range(start, stop)``, ``range(start, stop, step)``; gives the variable.
        `kind`: see `For`, ``for name in streamed(stop)``. Raises `NotLanes` at its end if the body has no such form."""
        variable = Name(name, "int64", self._push(guarded).depth)
        yield variable
        start = as_expr(bounds[0]) if len(bounds) > 1 else None
        loop = For(variable, start, as_expr(bounds[-1]), step, self._pop(), kind)
        check_kind(loop)
        self.add(loop)

    def lanes(self, name: str, count: Expr | int) -> AbstractContextManager[Name]:
        """``for name in lanes(count)``: the elements of vectors."""
        return self.loop(name, count, kind="lanes")

    @contextmanager
    def neighbours(
        self, name: str, count: Expr | int, registers: Collection[str] | None = None, *, always: bool = False
    ) -> Iterator[Name]:
        """``for name in lanes(count)`` if its body is one for vectors, otherwise ``range(count)``: see `in_lanes`."""
        with self.loop(name, count) as variable:
            yield variable
        loop = self.scope.block[-1]
        assert isinstance(loop, For)
        own = {t.name for s in loop.body if isinstance(s, Assign) for t in s.targets if t.depth == variable.depth}
        self.scope.block[-1] = in_lanes(loop, registers, own, always=always)

    @contextmanager
    def while_(self, test: Expr, guarded: bool = False) -> Iterator[None]:
        """``while test:``"""
        self._push(guarded)
        yield
        self.add(While(test, self._pop()))

    @contextmanager
    def if_(self, test: Expr, guarded: bool = False) -> Iterator[None]:
        """``if test:``"""
        self._push(guarded)
        yield
        self.add(If([(test, self._pop())]))

    @contextmanager
    def elif_(self, test: Expr, guarded: bool = False) -> Iterator[None]:
        """``elif test:`` after the last ``if`` of the open scope."""
        branch = self._last_if()
        self._push(guarded)
        yield
        branch.branches.append((test, self._pop()))

    @contextmanager
    def else_(self, guarded: bool = False) -> Iterator[None]:
        """``else:`` after the last ``if`` of the open scope."""
        branch = self._last_if()
        self._push(guarded)
        yield
        branch.otherwise = self._pop()

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
