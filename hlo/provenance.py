"""Where the instructions of a rewritten module come from, noted by the code that makes them.

A pass builds a new module and keeps no link to the old one. While somebody records (`passes/history.py`), the few
functions through which passes make instructions note each replacement here: `rebuild` and `clone_computation`,
`with_unique_names`, and the passes that write computations themselves. Otherwise a note costs one look at a context
variable. `builder.py` is above this file, so that it imports nothing but the IR.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from .instruction import HloInstruction

Replacements = Mapping[HloInstruction, HloInstruction]
"""By old instruction: the new one that has its value."""


class Provenance:
    """The notes of one pass. Notes are about objects; the instructions between the two modules are followed."""

    def __init__(self, before: Iterable[HloInstruction]) -> None:
        """`before`: the instructions of the module that the pass gets."""
        self.before: frozenset[HloInstruction] = frozenset(before)
        self._made_for: dict[HloInstruction, dict[HloInstruction, None]] = {}

    def note(self, new: HloInstruction, old: HloInstruction) -> None:
        """`new` is made for `old`, or stands for it."""
        if new is not old:
            self._made_for.setdefault(new, {})[old] = None

    def note_tree(self, new: HloInstruction, old: HloInstruction) -> None:
        """The same, for the operands that were made with `new`, too: those that are neither of the old module nor noted
        before."""
        self.note(new, old)
        stack = [] if new in self.before else [new]
        while stack:
            for operand in stack.pop().operands:
                if operand not in self.before and operand not in self._made_for:
                    self._made_for[operand] = {old: None}
                    stack.append(operand)

    def origins(self, new: HloInstruction) -> tuple[HloInstruction, ...]:
        """The instructions of the old module that `new` was made for. An old instruction is its own origin."""
        if new in self.before:
            return (new,)
        found: dict[HloInstruction, None] = {}
        seen, stack = {new}, [new]
        while stack:
            for old in reversed(self._made_for.get(stack.pop(), ())):
                if old in self.before:
                    found[old] = None
                elif old not in seen:
                    seen.add(old)
                    stack.append(old)
        return tuple(found)

    def stages_of(self, new: HloInstruction) -> list[HloInstruction]:
        """`new`, and the instructions of no module that it is a copy of, with another name or on other operands."""
        found = [] if new in self.before else [new]
        for node in found:
            found += [
                old for old in self._made_for.get(node, ())
                if old not in self.before and old not in found and old.opcode is new.opcode
            ]  # fmt: skip
        return found

    def merged(self, after: frozenset[HloInstruction]) -> dict[HloInstruction, HloInstruction]:
        """Old instruction -> another old one that took its place, and that is in the new module, too."""
        found: dict[HloInstruction, HloInstruction] = {}
        for new, olds in self._made_for.items():
            if new in self.before and new in after:
                for old in olds:
                    found.update(dict.fromkeys([o for o in self.origins(old) if o not in after], new))
        return found


NOTES: ContextVar[Provenance | None] = ContextVar("hloom_provenance", default=None)
"""The notes of the pass that runs in this thread, while somebody records."""


RECORDING: ContextVar[object | None] = ContextVar("hloom_recording", default=None)
"""The history that is recorded in this thread, which `passes/history.py` knows; None if none is."""


def is_recording() -> bool:
    """True while the passes of this thread are recorded: then they run, even if the program is stored."""
    return RECORDING.get() is not None


@contextmanager
def not_recording() -> Iterator[None]:
    """Do not record the passes of a program that is compiled only for a comparison."""
    token = RECORDING.set(None)
    try:
        yield
    finally:
        RECORDING.reset(token)


def note_replacements(
    replacements: Replacements, *, trees: bool = False, besides: Container[HloInstruction] = ()
) -> None:
    """Note that each value of `replacements` stands for its key, if that is not in `besides`. `trees`: so do new
    instructions that it is computed from; the order is that of the making."""
    notes = NOTES.get()
    if notes is not None:
        note = notes.note_tree if trees else notes.note
        for old, new in replacements.items():
            if old not in besides:
                note(new, old)


def note_made(new: HloInstruction, olds: Iterable[HloInstruction]) -> None:
    """Note that `new` was made for each of `olds`."""
    notes = NOTES.get()
    if notes is not None:
        for old in olds:
            notes.note(new, old)
