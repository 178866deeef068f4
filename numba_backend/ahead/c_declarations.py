"""Where C declares the variables of a loop program, and which assignments it leaves out as unused.

A person declares a variable where it gets its first value, and `const` if it gets no other::

    const float factor = a[i];
    float total = 0.0f;
"""

from __future__ import annotations

from collections.abc import Iterator

from ..loops.expressions import Call
from ..loops.statements import (
    Assign,
    Augment,
    Block,
    For,
    If,
    LoopProgram,
    Statement,
    Store,
    expressions_of,
    inner_blocks,
    walk,
    with_blocks,
)


def used_parameters(program: LoopProgram) -> frozenset[str]:
    """The parameters after lo and hi that a kernel reads or stores to."""
    body = without_dead(program.body)
    stored = {s.pointer.name for s in walk(body) if isinstance(s, Store)}
    return frozenset(program.parameters[2:]) & (names_read(body) | stored)


def names_read(block: Block) -> set[str]:
    """The names of the variables and pointers that a block reads."""
    return {name for statement in walk(block) for name in _read_by(statement)}


def without_dead(block: Block) -> Block:
    """The block without assignments to variables that are never read, and without the looks for interrupts."""
    block = _dropped(block, {id(s) for s in walk(block) if _is_watch(s)})
    while True:
        read = set()
        for statement in walk(block):
            if isinstance(statement, Augment):  # that it reads its own target does not count
                read |= set(statement.value.names)
            else:
                read |= set(_read_by(statement))
        dead = {
            id(s) for s in walk(block) if isinstance(s, (Assign, Augment)) and not read.intersection(assigned_by(s))
        }
        if not dead:
            return block
        block = _dropped(block, dead)


def _is_watch(statement: Statement) -> bool:
    """True for ``if interrupted(watch):``, which outside of this process never happens."""
    if not isinstance(statement, If) or len(statement.branches) != 1 or statement.otherwise is not None:
        return False
    test = statement.branches[0][0]
    return isinstance(test, Call) and test.function == "interrupted"


def _dropped(block: Block, dead: set[int]) -> Block:
    return [with_blocks(s, lambda inner: _dropped(inner, dead)) for s in block if id(s) not in dead]


def assigned_by(statement: Statement) -> tuple[str, ...]:
    """The variables that a statement itself assigns."""
    match statement:
        case Assign(targets=targets):
            return tuple(t.name for t in targets)
        case Augment(target=target):
            return (target.name,)
        case For(variable=variable):
            return (variable.name,)
    return ()


def _read_by(statement: Statement) -> Iterator[str]:
    for whole in expressions_of(statement):
        yield from whole.names


class Declarations:
    """`at`: by the identity of an assignment, the name that it declares. `constant`: the names that get one value."""

    def __init__(self, block: Block, variables: frozenset[str]) -> None:
        self.at: dict[int, str] = {}
        counts: dict[str, int] = {}
        for statement in walk(block):
            for name in assigned_by(statement):
                counts[name] = counts.get(name, 0) + 1
        self._visit(block, variables)
        self.declared: frozenset[str] = frozenset(self.at.values())
        self.constant: frozenset[str] = frozenset(name for name in self.declared if counts[name] == 1)

    def _visit(self, block: Block, variables: frozenset[str]) -> None:
        """`variables`: those that only this block knows."""
        known = [_known(statement) & variables for statement in block]
        inside: list[set[str]] = [set() for _ in block]
        for name in variables:
            places = [number for number, names in enumerate(known) if name in names]
            if not places:
                continue
            first = block[places[0]]
            if len(places) == 1 and name not in _own(first):
                inside[places[0]].add(name)
            elif isinstance(first, Assign) and assigned_by(first) == (name,) and name not in _read_by(first):
                self.at[id(first)] = name
        for statement, names in zip(block, inside, strict=True):
            blocks = list(inner_blocks(statement))
            for number, inner in enumerate(blocks):
                others = {n for k, other in enumerate(blocks) if k != number for s in other for n in _known(s)}
                self._visit(inner, frozenset(names) - others)


def _own(statement: Statement) -> set[str]:
    return {*_read_by(statement), *assigned_by(statement)}


def _known(statement: Statement) -> set[str]:
    """The names that a statement reads or assigns, with the blocks inside of it."""
    return {name for inner in walk([statement]) for name in _own(inner)}
