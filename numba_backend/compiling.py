"""Compile HLO to an executable, through all stages: passes, buffers, code.

`compiler.py` imports this when a program is not stored, or when a user asks for the kernels or the buffers of a stored
one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ..hlo.backend import MemoryAnalysis
from ..hlo.buffers.assignment import AllocationKind, BufferAssignment, assign_buffers
from ..hlo.errors import MemoryBudgetError
from ..hlo.ir import HloModule
from ..hlo.kernel_texts import KernelText, KernelTexts
from ..hlo.passes.manager import Pipeline
from ..hlo.passes.record import PassRecord, PassRecords
from ..hlo.provenance import is_recording
from ..hlo.support.loading import load
from ..hlo.support.progress import current, working
from ..hlo.target import Target
from ..hlo.text.escape import escape
from ..hlo.timeline.spans import RECORDERS, Track, spanning
from ..hlo.timeline.work import Work
from . import stored_programs
from .choices import budget_of, schedules_of
from .executable import Details, Frame, NumbaExecutable, ready
from .fused_computations import FusedComputations
from .lowering import LoweredModule, lower
from .machine import target_machine, this_machine
from .pipeline import pipeline
from .runtime.portable import PortableProgram
from .settings import is_watched

if TYPE_CHECKING:
    from ..hlo.passes.stages import Stages


def compiled(module: HloModule, target: Target, key: str | None = None) -> NumbaExecutable:
    """The executable of a module. It is stored under `key`, if there is one and if it can be stored."""
    with working(f"compile {module.name}"):
        details, data = _within_budget(module, target, to_keep=key is not None)
        return _executable(details, data, key, partial(details_of, module, target))


def details_of(module: HloModule, target: Target) -> Details:
    """Run the stages for a module with a program that came from the store, and return their results."""
    return _within_budget(module, target, to_keep=False)[0]


def assembled(optimized: HloModule, target: Target) -> NumbaExecutable:
    """The executable of a module that has been through all passes: assigns buffers, then makes kernels."""
    return _executable(*_staged(optimized, target, FusedComputations(), Pipeline("none", ()), (), None, to_keep=False))


LARGE = 1000
"""Instructions after all passes, of a program whose details are not kept: they are most of what a compilation makes.
The collector would look through them again and again, in the midst of the next one, too."""


def _executable(
    details: _Details, data: PortableProgram | None, key: str | None = None,
    find_again: Callable[[], Details] | None = None,
) -> NumbaExecutable:  # fmt: skip
    """`find_again`: makes the details of a large program when a user asks for them, as of one from the store."""
    frame, program = details.frame(), details.program
    if key is not None and data is not None:
        stored_programs.keep(key, frame, data)
    is_large = sum([len(c.instructions) for c in details.module.computations]) > LARGE
    is_usual = not is_watched() and not is_recording() and not RECORDERS and target_machine() is this_machine()
    if find_again is not None and is_large and is_usual:
        program.forget_rows()
        return ready(frame, program, find_again)
    return NumbaExecutable(frame, program, lambda: details)


_CORRECTIONS = 4


def _within_budget(module: HloModule, target: Target, *, to_keep: bool) -> tuple[_Details, PortableProgram | None]:
    """All stages. Rows need scratch memory besides the buffers that passes know, so that a budget may be exceeded by a
    little; then the passes get a smaller one."""
    budget = budget_of(module)
    if budget is None:
        return _all_stages(module, target, None, to_keep=to_keep)
    scratch = 0
    for _ in range(_CORRECTIONS):
        try:
            made = _all_stages(module, target, budget - scratch, to_keep=to_keep)
        except MemoryBudgetError as error:
            raise MemoryBudgetError(module.name, budget, error.reached + scratch) from None
        needed = made[0].memory_analysis().peak_memory_in_bytes
        if needed <= budget:
            return made
        scratch += needed - budget
    raise MemoryBudgetError(module.name, budget, needed)


def _all_stages(
    module: HloModule, target: Target, budget: int | None, *, to_keep: bool
) -> tuple[_Details, PortableProgram | None]:
    bodies = FusedComputations()
    passes = pipeline(target, bodies, schedules_of(module), budget=budget)
    optimized, records = passes.run(module)
    return _staged(optimized, target, bodies, passes, records, module, to_keep=to_keep)


def _staged(
    optimized: HloModule, target: Target, bodies: FusedComputations, passes: Pipeline, records: Sequence[PassRecord],
    given: HloModule | None, *, to_keep: bool,
) -> tuple[_Details, PortableProgram | None]:  # fmt: skip
    work = current()  # which stage takes how long: see hlo/support/progress.py
    work.stage("buffers")
    started = time.perf_counter()
    with spanning(Track.COMPILING, f"assign buffers of {optimized.name}"):
        assignment = assign_buffers(optimized, bodies.can_share, fast_memory=target.fast_memory)
    assigned = time.perf_counter()
    work.stage("code", sum(len(c.instructions) for c in optimized.computations), "instructions")
    with spanning(Track.COMPILING, f"generate code of {optimized.name}"):
        lowered = lower(assignment, bodies, to_keep=to_keep)
    finished = time.perf_counter()
    count = sum(1 for _ in optimized.instructions())
    stages = [
        PassRecord("buffer-assignment", (assigned - started) * 1e3, count, count, False),
        PassRecord("code-generation", (finished - assigned) * 1e3, count, count, False),
    ]
    data = lowered.data
    ran = given or optimized, passes
    return _Details(optimized, replace(lowered, data=None), assignment, [*records, *stages], ran), data


class _Details:
    """The results of the stages that people ask for, and that calls do not need."""

    def __init__(
        self, module: HloModule, lowered: LoweredModule, assignment: BufferAssignment, records: Sequence[PassRecord],
        ran: tuple[HloModule, Pipeline],
    ) -> None:  # fmt: skip
        self.module = module
        self.program = lowered.program
        self._lowered = lowered
        self._assignment = assignment
        self._records = tuple(records)
        self._ran = ran
        """The module before the passes, and the passes."""

    def frame(self) -> Frame:
        """The data that calls need besides the program."""
        module, assignment = self.module, self._assignment
        donated = [
            (k, place.allocation.index)
            for k, place in enumerate(assignment.outputs)
            if place.allocation.kind is AllocationKind.PARAMETER
        ]
        return Frame(
            module.name,
            tuple(leaf for p in module.entry.parameters for leaf in p.shape.leaves()),
            tuple(module.entry.root.shape.leaves()),
            tuple(donated),
            self._lowered.arena_size,
            module.replica_count,
            module.num_partitions,
        )

    def kernels(self) -> KernelTexts:
        """See `Executable`."""
        uses: dict[str, list[tuple[str, str]]] = {}
        notes: dict[str, tuple[object, ...]] = {}
        for use in self._lowered.kernels:
            notes[use.source] = use.notes
            values = ", ".join(f"{name} = {value}" for name, value in use.values)
            uses.setdefault(use.source, []).append((use.instruction, values))
        found = KernelTexts()
        for source, users in uses.items():
            comments = [f"# {escape(name)}" + (f": {values}" if values else "") for name, values in users]
            names = tuple(dict.fromkeys([name for name, _ in users]))
            found[users[0][0]] = KernelText("\n".join([*comments, source]), notes[source], names)
        return found

    def rows(self) -> Sequence[Work]:
        """See `Executable`."""
        found: Sequence[Work] = load(".timeline", __package__).works_of(self.program)
        return found

    def memory_analysis(self) -> MemoryAnalysis:
        """See `Executable`."""
        frame, report = self.frame(), self._assignment.report()
        return MemoryAnalysis(
            argument_size_in_bytes=sum(s.byte_size for s in frame.parameters),
            output_size_in_bytes=sum(s.byte_size for s in frame.results),
            alias_size_in_bytes=sum(frame.results[k].byte_size for k, _ in frame.donated),
            temp_size_in_bytes=frame.arena_size,
            constant_size_in_bytes=self._assignment.total_size(AllocationKind.CONSTANT),
            generated_code_size_in_bytes=self._lowered.code_bytes,
            text=report.to_text(),
            report=report,
        )

    def passes(self) -> PassRecords:
        """See `Executable`."""
        return PassRecords(self._records)

    def stages(self) -> Stages:
        """See `Executable`."""
        module, passes = self._ran
        found: Stages = load("..hlo.passes.stages", __package__).stages_of(passes, module)
        return found
