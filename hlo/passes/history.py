"""The stages of a compilation: the module before and after each pass, and where each new instruction comes from.

    with recording() as history:
        pipeline.run(module)
    for stage in history.stages:
        print(stage.name, len(stage.origins))

The pass manager fills the history of its thread; backends look at `is_recording` and run their passes, also for a
program that is stored. An origin is a fact about objects (`provenance.py`), never a guess by names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from ..ir import HloComputation, HloInstruction, HloModule
from ..provenance import NOTES, RECORDING, Provenance
from ..support.records import dataclass
from .record import PassRecord
from .rewriter import Application

Origins = Mapping[HloInstruction, Sequence[HloInstruction]]


@dataclass(frozen=True, slots=True, eq=False)
class AppliedRule:
    """One application of a rule, in terms of the modules before and after the pass."""

    application: Application
    before: tuple[HloInstruction, ...]
    """The instructions of the module before the pass that the replaced instruction comes from."""
    added: tuple[HloInstruction, ...]
    """The instructions that the rule made, as it made them: without names."""
    after: tuple[HloInstruction | None, ...]
    """The same, as they are in the module after the pass; None for one that is gone."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One run of a pass that changed the module."""

    name: str
    milliseconds: float
    before: HloModule
    after: HloModule
    origins: Origins
    """Of each instruction of `after` that is not in `before`: the instructions of `before` that it was made for. Empty
    for one that is made for none, such as memory that a pass adds."""
    merged: Mapping[HloInstruction, HloInstruction]
    """Of an instruction of `before` that is gone: the one in both modules that has its value, if there is one."""
    rules: Sequence[AppliedRule] = ()
    """The applications of rules, in order."""

    def all_origins(self) -> Origins:
        """`origins`, and those of the instructions that took the place of others: these and themselves."""
        found: dict[HloInstruction, tuple[HloInstruction, ...]] = {i: tuple(o) for i, o in self.origins.items() if o}
        for gone, kept in self.merged.items():
            found[kept] = (*found.get(kept, (kept,)), gone)
        return found


class History:
    """The passes that ran, and a stage for each that changed the module."""

    def __init__(self) -> None:
        self.module: HloModule | None = None
        """The module before the first pass."""
        self.stages: list[Stage] = []
        self.records: list[PassRecord] = []

    def begin(self, module: HloModule) -> Provenance:
        """Before a pass: the notes for it."""
        if self.module is None:
            self.module = module
        return Provenance(module.instructions())

    def end(self, record: PassRecord, before: HloModule, after: HloModule, notes: Provenance) -> None:
        """After a pass."""
        self.records.append(record)
        if after is not before:
            instructions = frozenset(after.instructions())
            self.stages.append(
                Stage(
                    record.name, record.milliseconds, before, after, _origins(after, notes),
                    notes.merged(instructions), _applied(record.applications, after, notes),
                )
            )  # fmt: skip


@contextmanager
def recording() -> Iterator[History]:
    """A history of the passes that run in this thread meanwhile."""
    history = History()
    token = RECORDING.set(history)
    try:
        yield history
    finally:
        RECORDING.reset(token)


def current_history() -> History | None:
    """The history that is recorded in this thread; None if none is."""
    return cast("History | None", RECORDING.get())


@contextmanager
def noting(notes: Provenance) -> Iterator[None]:
    """Passes that run meanwhile make these notes."""
    token = NOTES.set(notes)
    try:
        yield
    finally:
        NOTES.reset(token)


T = TypeVar("T")


def recorded(name: str, module: HloModule, run: Callable[[], T], module_of: Callable[[T], HloModule]) -> T:
    """The result of `run`, which rewrites a module, recorded as a stage where no pass manager does that."""
    history = current_history()
    if history is None or NOTES.get() is not None:  # within a pass, which is recorded as a whole
        return run()
    notes = history.begin(module)
    started = time.perf_counter()
    with noting(notes):
        made = run()
    after = module_of(made)
    milliseconds = (time.perf_counter() - started) * 1e3
    old, new = (sum(len(c.instructions) for c in each.computations) for each in (module, after))
    history.end(PassRecord(name, milliseconds, old, new, after is not module), module, after, notes)
    return made


def _origins(module: HloModule, notes: Provenance) -> Origins:
    """The origins of all new instructions. One without a note in a new computation, such as the body of a loop that is
    written anew, is made for the instruction that calls it."""
    callers = _callers(module)
    found: dict[HloInstruction, Sequence[HloInstruction]] = {}
    for computation in reversed(module.computations):  # callers first
        calling = callers.get(computation, ())
        for instruction in computation.instructions:
            if instruction in notes.before:
                continue
            origins = notes.origins(instruction)
            if not origins:
                origins = tuple(dict.fromkeys([o for c in calling for o in found.get(c, (c,))]))
            found[instruction] = origins
    return found


def _callers(module: HloModule) -> dict[HloComputation, list[HloInstruction]]:
    found: dict[HloComputation, list[HloInstruction]] = {}
    for computation in module.computations:
        for instruction in computation.callers:
            for called in instruction.called_computations():
                found.setdefault(called, []).append(instruction)
    return found


def _applied(applications: Sequence[Application], module: HloModule, notes: Provenance) -> Sequence[AppliedRule]:
    """The applications with the instructions that each made. These have no names; copies on new operands have some."""
    if not applications:
        return ()
    final = {made: new for new in module.instructions() for made in notes.stages_of(new)}
    seen: set[HloInstruction] = set()
    found = []
    for application in applications:
        after = application.after
        added: dict[HloInstruction, None] = {}
        stack = [] if after in seen or after in notes.before or after is application.before else [after]
        while stack:
            node = stack.pop()
            added[node] = None
            stack += [o for o in node.operands if not (o.name or o in notes.before or o in seen or o in added)]
        seen.update(added)
        made = tuple(reversed(added))
        left = tuple([final.get(node) for node in made])
        found.append(AppliedRule(application, notes.origins(application.before), made, left))
    return found
