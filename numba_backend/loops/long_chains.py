"""A transform: compute chains of long functions in stages, each for a block of elements.

    for i in range(lo, hi):                 for start in range(lo, hi, 256):
        v0 = x0[i]                              count = minimum(256, hi - start)
        out[i] = v0 * erf(log(v0))    ->        for j in range(count):
                                                    v0 = x0[start + j]
                                                    stage0 = log(v0)
                                                    held0[j] = stage0
                                                for j in range(count):
                                                    stage0 = held0[j]
                                                    v0 = x0[start + j]
                                                    stage1 = erf(stage0)
                                                    out[start + j] = v0 * stage1

A long function is some fifty instructions that wait for each other. A processor looks a few hundred instructions ahead,
so where functions wait for functions it sees only a few elements at a time, and has nothing to do meanwhile. In stages
it sees as many elements as for one function. The results are the same bits; values that later stages read are in local
arrays, and those that are loaded are loaded again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .expressions import Call, Expr, Load, Name, Number, call
from .rewrite import with_names
from .statements import (
    Assign,
    Block,
    Comment,
    For,
    LocalArray,
    LoopProgram,
    Statement,
    Store,
    names_of,
    with_values,
)
from .straight_lines import loads_of
from .typing import pointer_to
from .vectorized_calls import LONG

BLOCK = 256
"""Elements of a block: of 128 to 1,024, none is faster."""
MOST_HELD = 16
"""Values that are kept for later stages: the block of all of them stays in a first-level cache."""
HELD = frozenset(("float32", "float64"))
"""Types of values that are kept."""


def in_stages(program: LoopProgram) -> LoopProgram:
    """The program, in stages if it is one loop over all elements in which a long function waits for another one."""
    found = loop_over_all(program)
    if found is None or any(isinstance(s, LocalArray) for s in found[0]):
        return program
    before, loop = found
    taken = {*program.parameters, *names_of(program.body), loop.variable.name}
    taken |= {t.name for s in (*before, *loop.body) if isinstance(s, Assign) for t in s.targets}
    stages = _Stages(loop, lambda name: fresh_name(name, taken)).written()
    return program if stages is None else replace(program, body=[*before, *stages])


def loop_over_all(program: LoopProgram) -> tuple[Block, For] | None:
    """The statements before the loop over all iterations of a kernel, and the loop, if nothing comes after it."""
    statements: Block = [s for s in program.body if not isinstance(s, Comment)]
    before, loop = statements[:-1], statements[-1] if statements else None
    if not isinstance(loop, For) or not all(isinstance(s, (Assign, LocalArray)) for s in before):
        return None
    ends = loop.start, loop.stop
    is_range = loop.kind in ("range", "independent") and loop.step == 1
    if not is_range or [e.name if isinstance(e, Name) else None for e in ends] != ["lo", "hi"]:
        return None
    return before, loop


def fresh_name(name: str, taken: set[str]) -> str:
    """The name with the first number that is not taken, which then is."""
    number = 0
    while (found := f"{name}{number}") in taken:
        number += 1
    taken.add(found)
    return found


class _Stages:
    """The statements of a loop by stages. A value's level is how many long functions wait for each other before it is
    known; a call is in the stage of its operands' level, and everything else as early as it can be."""

    def __init__(self, loop: For, fresh: Callable[[str], str]) -> None:
        self._loop, self._fresh = loop, fresh
        self._levels: dict[str, int] = {}
        self._made: dict[str, int] = {}
        """In which stage a name is assigned."""
        self._loads: set[str] = set()
        """Names that may be loaded again."""
        self._items: list[tuple[int, Statement]] = []

    def written(self) -> Block | None:
        """The loops; None if there is one stage, or a statement that must stay where it is."""
        statements = [s for s in self._loop.body if not isinstance(s, Comment)]
        assigned = [s.targets[0].name for s in statements if isinstance(s, Assign)]
        stored = {s.pointer.name for s in statements if isinstance(s, Store)}
        for statement in statements:
            if not self._takes(statement, assigned, stored):
                return None
        last = max(self._levels.values(), default=0) - 1
        if last < 1:
            return None
        self._items = [(last if isinstance(s, Store) else min(at, last), s) for at, s in self._items]
        self._made = {s.targets[0].name: at for at, s in self._items if isinstance(s, Assign)}
        return self._loops(last + 1)

    def _takes(self, statement: Statement, assigned: list[str], stored: set[str]) -> bool:
        """Put the statement, and the calls in it, in their order; False if they must stay where they are."""
        if any(load.pointer.name in stored for load in loads_of(statement)):
            return False
        if any(name in assigned and name not in self._levels for name in names_of([statement])):
            return False  # the value of an iteration before
        match statement:
            case Assign(targets=(target,), values=(value,)) if assigned.count(target.name) == 1:
                level, value = self._hoisted(value)
                self._levels[target.name] = level
                made = Assign((target,), (value,))
                if isinstance(value, Load):
                    index = value.index
                    if not index.loads and not any(name in assigned for name in index.names):
                        self._loads.add(target.name)
                self._items.append((level, made))
            case Store(pointer, index, value):
                (_, index), (level, value) = self._hoisted(index), self._hoisted(value)
                self._items.append((level, Store(pointer, index, value)))
            case _:
                return False
        return True

    def _hoisted(self, e: Expr) -> tuple[int, Expr]:
        """The level of an expression, and the expression with names for its long calls."""
        if isinstance(e, Name):
            return self._levels.get(e.name, 0), e
        parts = [self._hoisted(p) for p in e.parts]
        level = max((at for at, _ in parts), default=0)
        e = e.with_parts(tuple(p for _, p in parts)) if parts else e
        if not (isinstance(e, Call) and e.function in LONG and e.type in HELD):
            return level, e
        name = Name(self._fresh("stage"), e.type)
        self._items.append((level, Assign((name,), (e,))))
        self._levels[name.name] = level + 1
        return level + 1, name

    def _loops(self, count: int) -> Block | None:
        later: dict[str, set[int]] = {}
        for at, statement in self._items:
            for name in set(names_of([statement])):
                if self._made.get(name, at) < at:
                    later.setdefault(name, set()).add(at)
        start, some, j = Name(self._fresh("start")), Name(self._fresh("some")), Name(self._fresh("j"))
        held: dict[str, Name] = {}
        stages: list[Block] = [[] for _ in range(count)]
        for at, statement in self._items:
            stages[at].append(statement)
            if not isinstance(statement, Assign):
                continue
            (target,) = statement.targets
            users = later.get(target.name, ())
            if target.name in self._loads:
                for user in users:
                    stages[user].append(statement)
            elif users:
                if target.type not in HELD or len(held) == MOST_HELD:
                    return None
                array = held[target.name] = Name(self._fresh("held"), pointer_to(target.type))
                stages[at].append(Store(array, j, target))
                for user in users:
                    stages[user].append(Assign((target,), (array[j],)))
        place, variable = start + j, self._loop.variable.name

        def moved(e: Expr) -> Expr:
            return with_names(e, {variable: place})

        loops = [For(j, None, some, 1, [with_values(s, moved) for s in stage], self._loop.kind) for stage in stages]
        first = Assign((some,), (call("minimum", Number(BLOCK), self._loop.stop - start),))
        arrays: Block = [LocalArray(array, BLOCK, array.type[:-1]) for array in held.values()]
        return [*arrays, For(start, self._loop.start, self._loop.stop, BLOCK, [first, *loops])]
