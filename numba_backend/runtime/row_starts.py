"""Where the rows begin that an inner loop goes along: sums that LLVM must not take for arithmetic on outer counters.

    row0 = at + 2 * (s * j)
    row1 = at + 2 * (s * j + d1)                     eight rows that are read, eight that are written
    ...
    for q in independent(s):
        ar0 = work[row0 + 2 * q]

LLVM's loop strength reduction looks for the cheapest way to step all these addresses, in each loop around them too. It
takes as long as the rest of the code generator, and finds what the text says: one start for each row. `start ^ zero`,
where LLVM does not know that `zero` is 0, is a start and nothing else; it costs an instruction for each row. Iterations
of such a loop are independent, so that LLVM need not know either how far rows are from each other.
"""

from __future__ import annotations

from ..loops.expressions import Load, Name
from ..loops.statements import Assign, Block, For, LoopProgram, Store, expressions_of, inner_blocks, walk

LEAST = 6
"""Rows of a loop; with fewer there is little to look for."""


def starts_of_rows(program: LoopProgram) -> frozenset[int]:
    """The identities of the values that are assigned, before an independent loop and in the same block, to the names of
    `LEAST` or more starts of its rows."""
    found: set[int] = set()
    _visit(program.body, found)
    return frozenset(found)


def _visit(block: Block, found: set[int]) -> None:
    values: dict[str, int] = {}
    for statement in block:
        if isinstance(statement, Assign):
            values |= {target.name: id(v) for target, v in zip(statement.targets, statement.values, strict=True)}
        elif isinstance(statement, For) and statement.kind == "independent" and _is_innermost(statement):
            starts = {values[name] for name in _names_in_indices(statement) if name in values}
            if len(starts) >= LEAST:
                found |= starts
        for inner in inner_blocks(statement):
            _visit(inner, found)


def _is_innermost(loop: For) -> bool:
    return not any(isinstance(statement, For) for statement in walk(loop.body))


def _names_in_indices(loop: For) -> set[str]:
    """The names that indices of the loop's body read, but for its counter."""
    names: set[str] = set()
    for statement in walk(loop.body):
        indices = [part.index for whole in expressions_of(statement) for part in whole.walk() if isinstance(part, Load)]
        if isinstance(statement, Store):
            indices.append(statement.index)
        names |= {part.name for index in indices for part in index.walk() if isinstance(part, Name)}
    return names - {loop.variable.name}
