"""Write a loop program: its open scopes, and the names that it has used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, TypeVar

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

    def loop(
        self, name: str, *bounds: Expr | int, step: int = 1, guarded: bool = False, kind: LoopKind = "range"
    ) -> Opening[Name]:
        """``for name in range(stop)``, ``range(start, stop)``, ``range(start, stop, step)``; gives the variable.
        `kind`: see `For`, ``for name in streamed(stop)``."""
        start = as_expr(bounds[0]) if len(bounds) > 1 else None
        return _Loop(self, guarded, name, start, as_expr(bounds[-1]), step, kind)

    def lanes(self, name: str, count: Expr | int) -> Opening[Name]:
        """``for name in lanes(count)``: the elements of vectors. Raises `NotLanes` at its end if the body has no form
        in vectors."""
        return self.loop(name, count, kind="lanes")

    def neighbours(
        self, name: str, count: Expr | int, registers: Collection[str] | None = None
    ) -> Opening[Name]:
        """``for name in lanes(count)`` if its body is one for vectors, otherwise ``range(count)``: see `in_lanes`."""
        return _Neighbours(self, name, as_expr(count), registers)

    def while_(self, test: Expr, guarded: bool = False) -> Opening[Scope]:
        """``while test:``"""
        return _While(self, guarded, test)

    def if_(self, test: Expr, guarded: bool = False) -> Opening[Scope]:
        """``if test:``"""
        return _If(self, guarded, test)

    def elif_(self, test: Expr, guarded: bool = False) -> Opening[Scope]:
        """``elif test:`` after the last ``if`` of the open scope."""
        return _Otherwise(self, guarded, self._last_if(), test)

    def else_(self, guarded: bool = False) -> Opening[Scope]:
        """``else:`` after the last ``if`` of the open scope."""
        return _Otherwise(self, guarded, self._last_if(), None)

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


Given = TypeVar("Given")


class Opening(ABC, Generic[Given]):
    """A scope that is open inside of a ``with``; its statement joins the scope around it when it closes."""

    def __init__(self, writer: Writer, guarded: bool) -> None:
        self._writer, self._guarded = writer, guarded

    def __enter__(self) -> Given:
        scopes = self._writer.scopes
        parent = scopes[-1]
        scope = Scope(parent.depth + 1, self._guarded or parent.guarded)
        scopes.append(scope)
        return self._open(scope)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        scope = self._writer.scopes.pop()
        self._writer.forget(scope, 0)
        self._close(scope, self._writer.scope.block)

    @abstractmethod
    def _open(self, scope: Scope) -> Given: ...

    @abstractmethod
    def _close(self, scope: Scope, around: Block) -> None: ...


class _Loop(Opening[Name]):
    def __init__(
        self, writer: Writer, guarded: bool, name: str, start: Expr | None, stop: Expr, step: int, kind: LoopKind
    ) -> None:
        super().__init__(writer, guarded)
        self._name, self._start, self._stop, self._step, self._kind = name, start, stop, step, kind

    def _open(self, scope: Scope) -> Name:
        self._variable = Name(self._name, "int64", scope.depth)
        return self._variable

    def _close(self, scope: Scope, around: Block) -> None:
        loop = For(self._variable, self._start, self._stop, self._step, scope.block, self._kind)
        check_kind(loop)
        around.append(loop)


class _Neighbours(_Loop):
    def __init__(self, writer: Writer, name: str, count: Expr, registers: Collection[str] | None) -> None:
        super().__init__(writer, False, name, None, count, 1, "range")
        self._registers = registers

    def _close(self, scope: Scope, around: Block) -> None:
        super()._close(scope, around)
        loop = around[-1]
        assert isinstance(loop, For)
        own = {t.name for s in scope.block if isinstance(s, Assign) for t in s.targets if t.depth == scope.depth}
        around[-1] = in_lanes(loop, self._registers, own)


class _While(Opening[Scope]):
    def __init__(self, writer: Writer, guarded: bool, test: Expr) -> None:
        super().__init__(writer, guarded)
        self._test = test

    def _open(self, scope: Scope) -> Scope:
        return scope

    def _close(self, scope: Scope, around: Block) -> None:
        around.append(While(self._test, scope.block))


class _If(_While):
    def _close(self, scope: Scope, around: Block) -> None:
        around.append(If([(self._test, scope.block)]))


class _Otherwise(Opening[Scope]):
    def __init__(self, writer: Writer, guarded: bool, branch: If, test: Expr | None) -> None:
        super().__init__(writer, guarded)
        self._branch, self._test = branch, test

    def _open(self, scope: Scope) -> Scope:
        return scope

    def _close(self, scope: Scope, around: Block) -> None:
        if self._test is None:
            self._branch.otherwise = scope.block
        else:
            self._branch.branches.append((self._test, scope.block))
