"""Compile sections of a long program that are equal up to names once, as a function of the module.

    # fused_sin                          A section is a comment and what follows it, up to the next one: one kernel of
    for i in range(n0):                  a native loop. The stages of an integrator, or the layers of a network, are
        w1[i] = sin(w0[i])               the same kernels again, with other arrays. LLVM would take its time for each;
    # fused_sin                          a call costs some nanoseconds, which a loop over an array does not notice.
    for i in range(n1):
        w3[i] = sin(w2[i])

A section may become a function under two conditions. No name that it assigns is read outside of it, or before it is
assigned; and its arrays are parameters of the kernel, so that no two of them share memory. The text of the kernel stays
as it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from ...hlo.support.records import dataclass
from ..loops.expressions import Name, Number
from ..loops.forward import assigned
from ..loops.printer import lines_of
from ..loops.statements import (
    Assign,
    Augment,
    Block,
    Break,
    Comment,
    Continue,
    Evaluate,
    For,
    LocalArray,
    LoopProgram,
    Return,
    Statement,
    expressions_of,
    inner_blocks,
    walk,
)

LEAST_SPARED = 24
"""Statements that functions must save: if they save fewer, the program is compiled as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A section of a program that occurs more than once."""

    block: Block
    key: str
    """The section's text, with numbers for its names."""
    free: tuple[Name, ...]
    """The names of the surrounding program that it reads, in the order of the text. Sections with one key differ only
    in these names."""


def repeated_sections(program: LoopProgram) -> dict[int, Section]:
    """The sections that may be functions and occur more than once, by the `id` of their comment. Nothing if that would
    spare too little."""
    sections: dict[int, Block] = {}
    _collect(program.body, sections)
    if len(sections) < 2:
        return {}
    reads: dict[int, dict[str, Name]] = {at: _exposed(block, set()) for at, block in sections.items()}
    readers: dict[str, int] = defaultdict(int)
    for name in (*_read_between(program.body, frozenset()), *(name for found in reads.values() for name in found)):
        readers[name] += 1
    by_key: dict[tuple[str, tuple[str, ...]], list[tuple[int, Section]]] = defaultdict(list)
    variables = {*program.parameters, *assigned(program.body)}
    for at, block in sections.items():
        own = set(assigned(block))
        if any(name in readers for name in own) or not _can_move(block):
            continue
        key, names = _numbered(block, variables)
        free = tuple([reads[at][name] for name in names if name in reads[at]])
        if all(not name.type.endswith("*") or name.name in program.parameters for name in free):
            by_key[key, tuple([name.type for name in free])].append((at, Section(block, key, free)))
    repeated = {key: found for key, found in by_key.items() if len(found) > 1}
    spared = sum((len(found) - 1) * sum(1 for _ in walk(found[0][1].block)) for found in repeated.values())
    return dict(pair for found in repeated.values() for pair in found) if spared >= LEAST_SPARED else {}


def _collect(block: Block, sections: dict[int, Block]) -> None:
    """The sections of a block and of the blocks in it; not those in sections."""
    starts = [number for number, statement in enumerate(block) if isinstance(statement, Comment)]
    for start, end in zip(starts, [*starts[1:], len(block)]):
        if end > start + 1:
            sections[id(block[start])] = block[start:end]
    for statement in block[: starts[0]] if starts else block:
        for inner in inner_blocks(statement):
            _collect(inner, sections)


def _can_move(block: Block) -> bool:
    """True for a block that may become the body of a function, and that has a loop without a literal end. Short loops
    become straight code, and LLVM keeps their values in registers from one section to the next."""
    return any(isinstance(s, For) and not isinstance(s.stop, Number) for s in walk(block)) and not any(
        isinstance(s, Return | Break | Continue | LocalArray | Evaluate) for s in walk(block)
    )


def _names(statement: Statement) -> Iterable[Name]:
    for whole in expressions_of(statement):
        for part in whole.walk():
            if isinstance(part, Name):
                yield part


def _exposed(block: Block, known: set[str]) -> dict[str, Name]:
    """The names that a block reads where it may not have assigned them. `known`: the names that are assigned before;
    the block's own assignments are added to them."""
    found: dict[str, Name] = {}
    for statement in block:
        for name in _names(statement):
            if name.name not in known:
                found[name.name] = name
        for inner in inner_blocks(statement):
            variable = {statement.variable.name} if isinstance(statement, For) else set()
            found |= _exposed(inner, known | variable)
        if isinstance(statement, Assign):
            known.update(target.name for target in statement.targets)
        elif isinstance(statement, Augment):
            known.add(statement.target.name)
    return found


def _read_between(block: Block, counters: frozenset[str]) -> Iterable[str]:
    """The names that statements outside of sections read, but for the counters of loops around them."""
    for statement in block:
        if isinstance(statement, Comment):
            return
        yield from (name.name for name in _names(statement) if name.name not in counters)
        for inner in inner_blocks(statement):
            variable = {statement.variable.name} if isinstance(statement, For) else set()
            yield from _read_between(inner, counters | variable)


_WORD = re.compile(r"\b[A-Za-z_]\w*")


def _numbered(block: Block, variables: set[str]) -> tuple[str, list[str]]:
    """The text of a section with numbers for its variables, in the order in which they occur; and their names."""
    numbers: dict[str, int] = {}

    def number(word: re.Match[str]) -> str:
        name = word[0]
        return f"${numbers.setdefault(name, len(numbers))}" if name in variables else name

    text = _WORD.sub(number, "\n".join(lines_of(block[1:])))
    return text, list(numbers)
