"""Find the variables of a loop program that are a value and not a place: assigned once, and read only after that.

    def k(lo, hi, x, out, n0):            lo, hi, x, out, n0: yes
        for i in range(lo, hi):           i: yes
            acc = float32(0)              acc: no, it has two assignments
            for j in range(n0):           j: yes
                v = x[i * n0 + j]         v: yes
                acc = reduce_add(acc, v)
            out[i] = acc

The value of such a variable is known wherever it is read, so it needs no memory: half of the instructions that LLVM
would be given, and would take away again first of all.
"""

from __future__ import annotations

from ..loops.statements import (
    Assign,
    Augment,
    Block,
    For,
    LocalArray,
    LoopProgram,
    Statement,
    expressions_of,
    inner_blocks,
)


def assigned_once(program: LoopProgram) -> frozenset[str]:
    """The names of these variables, parameters too."""
    walk = _Walk()
    for name in program.parameters:
        walk.assign(name)
    walk.block(program.body)
    return frozenset(walk.known - walk.places)


class _Walk:
    def __init__(self) -> None:
        self.known: set[str] = set()
        """All names so far."""
        self.places: set[str] = set()
        """The names that are assigned twice, or are read where they may not be assigned yet."""
        self._current: set[str] = set()
        """The names that have been assigned in this block or in one around it."""

    def assign(self, name: str) -> None:
        if name in self.known:
            self.places.add(name)
        self.known.add(name)
        self._current.add(name)

    def block(self, statements: Block) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        for whole in expressions_of(statement):
            self.places.update(name for name in whole.names if name not in self._current)
        if isinstance(statement, Assign):
            for target in statement.targets:
                self.assign(target.name)
        elif isinstance(statement, Augment):
            self.places.add(statement.target.name)
            self.assign(statement.target.name)
        elif isinstance(statement, LocalArray):
            self.assign(statement.name.name)
        for inner in inner_blocks(statement):
            outside = self._current
            self._current = set(outside)
            if isinstance(statement, For):
                self.assign(statement.variable.name)
            self.block(inner)
            self._current = outside
