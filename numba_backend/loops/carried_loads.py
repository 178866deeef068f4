"""Keep elements in variables that a loop stores and loads again, in the same iteration or in the next one.

    for j in range(m):                       carried0 = y[0]
        y[j + 1] = f(y[j], x[j])             for j in range(m):
                                   ->            kept0 = f(carried0, x[j])
                                                 y[j + 1] = kept0
                                                 carried0 = kept0

A processor takes longer to load what it has just stored than to compute it. LLVM does this for one store and one load
at indices whose factors it knows. Here sizes are known as well (affine.py), so that two rows of an array are known not
to overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...hlo.support.records import dataclass
from .affine import Affine, Indices, constant_difference
from .expressions import ZERO, Call, Expr, Load, Name
from .last_stored import with_last_stored
from .rewrite import rewritten
from .statements import Assign, Block, For, Statement, Store, with_values
from .straight_lines import (
    FromOutside,
    Ranges,
    assigned,
    has_fixed_ends,
    is_straight,
    loads_of,
    with_changed_loops,
)
from .typing import pointee


@dataclass(frozen=True, slots=True)
class _Stored:
    position: int
    array: str
    index: Affine | None


@dataclass(frozen=True, slots=True)
class _Loaded:
    position: int
    load: Load
    index: Affine | None
    first: Expr | None
    """The index in the first iteration, in names from outside."""


def carried(block: Block, sizes: Mapping[str, int], fresh: Callable[[str], str]) -> Block:
    """The statements with all loops changed that load what the iteration before has stored. `sizes`: the numbers that
    arguments stand for; `fresh`: a new name like a given one."""

    def change(loop: For, ranges: Ranges, inner: Callable[[], Block]) -> Block:
        if not is_straight(loop.body):
            return [replace(loop, body=inner())]
        if loop.kind != "range" or abs(loop.step) != 1 or not _loads_what_it_stores(loop.body):
            return [loop]
        if has_fixed_ends(loop, sizes) and ranges[loop.variable.name].count:
            indices = Indices(sizes, ranges, dict.fromkeys(assigned(loop.body)))
            before, changed = with_carried_loads(loop, indices, fresh)
            if before:
                return [*before, changed]
        return [with_last_stored(loop, fresh) or loop] if loop.step == 1 else [loop]

    return with_changed_loops(block, sizes, change)


def _loads_what_it_stores(block: Block) -> bool:
    stored = _stored(block)
    return any(load.pointer.name in stored for s in block for load in loads_of(s))


def _stored(block: Block) -> set[str]:
    return {s.pointer.name for s in block if isinstance(s, Store)}


def with_carried_loads(loop: For, indices: Indices, fresh: Callable[[str], str]) -> tuple[Block, For]:
    """Statements before a loop of straight-line code that runs at least once, and the loop. `indices`: of the names
    that are assigned before the loop; those that it assigns itself are None."""
    return _Carried(loop, indices, fresh).written()


class _Carried:
    def __init__(self, loop: For, indices: Indices, fresh: Callable[[str], str]) -> None:
        self._loop, self._indices, self._fresh = loop, indices, fresh
        self._stores: list[_Stored] = []
        self._loads: list[_Loaded] = []
        self._kept: dict[int, Name] = {}
        self._carried: dict[int, Name] = {}
        self._before: Block = []
        self._read()

    def _read(self) -> None:
        loop, stored = self._loop, _stored(self._loop.body)
        first = FromOutside(loop.body, {loop.variable.name: loop.start or ZERO})
        for position, statement in enumerate(loop.body):
            for load in loads_of(statement):
                if load.pointer.name in stored:
                    self._loads.append(_Loaded(position, load, self._indices.of(load.index), first.of(load.index)))
            if isinstance(statement, Store):
                index = self._indices.of(statement.index)
                self._stores.append(_Stored(position, statement.pointer.name, index))
            elif isinstance(statement, Assign):
                values = [self._indices.of(v) for v in statement.values]
                for target, value in zip(statement.targets, values, strict=True):
                    self._indices.known[target.name] = value
                first.assign(statement)

    def written(self) -> tuple[Block, For]:
        replaced: dict[tuple[int, str], Name] = {}
        for loaded in self._loads:
            found = self._variable(loaded)
            if found is not None:
                replaced[loaded.position, loaded.load.text] = found
        if not replaced:
            return [], self._loop
        body: Block = []
        for position, statement in enumerate(self._loop.body):
            body += self._statement(position, _with_loads(statement, position, replaced))
        body += [Assign((name,), (self._kept[position],)) for position, name in self._carried.items()]
        loop = self._loop
        return self._before, For(loop.variable, loop.start, loop.stop, loop.step, body, loop.kind)

    def _statement(self, position: int, statement: Statement) -> Block:
        kept = self._kept.get(position)
        if kept is None:
            return [statement]
        assert isinstance(statement, Store)
        value = statement.value if statement.value.type == kept.type else Call(kept.type, (statement.value,))
        return [Assign((kept,), (value,)), Store(statement.pointer, statement.index, kept)]

    def _variable(self, loaded: _Loaded) -> Name | None:
        """The variable that holds what a load gives."""
        load, index = loaded.load, loaded.index
        if index is None:
            return None
        ours = [store for store in self._stores if store.array == load.pointer.name]
        for store in reversed([store for store in ours if store.position < loaded.position]):
            gap = None if store.index is None else constant_difference(store.index, index)
            if gap is None:
                return None
            if gap == 0:
                return self._keep(store, load)
        for store in reversed(ours):
            gap = None if store.index is None else constant_difference(store.index, index)
            if gap is None:
                return None
            assert store.index is not None
            if gap == store.index.get(self._loop.variable.name, 0) * self._loop.step:
                return self._carry(store, loaded)
        return None

    def _keep(self, store: _Stored, load: Load) -> Name:
        found = self._kept.get(store.position)
        if found is None:
            found = self._kept[store.position] = Name(self._fresh("kept"), pointee(load.pointer.type))
        return found

    def _carry(self, store: _Stored, loaded: _Loaded) -> Name | None:
        found, pointer = self._carried.get(store.position), loaded.load.pointer
        if found is None:
            if loaded.first is None:
                return None
            found = self._carried[store.position] = Name(self._fresh("carried"), pointee(pointer.type))
            self._keep(store, loaded.load)
            self._before.append(Assign((found,), (Load(pointer, loaded.first),)))
        return found


def _with_loads(statement: Statement, position: int, replaced: Mapping[tuple[int, str], Name]) -> Statement:
    def change(e: Expr) -> Expr | None:
        return replaced.get((position, e.text)) if isinstance(e, Load) else None

    return with_values(statement, lambda value: rewritten(value, change))
