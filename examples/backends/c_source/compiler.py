"""The compiler: HLO through the CPU's passes to loop programs, these to one C file, and that to a function."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hloom.hlo import HloModule, Target, UnsupportedError
from hloom.hlo.backend import Compiler
from hloom.hlo.buffers.assignment import BufferAssignment, assign_buffers
from hloom.hlo.entry_layouts import with_row_major_entry
from hloom.hlo.passes.manager import Pipeline
from hloom.hlo.passes.record import PassRecord
from hloom.numba_backend.ahead.c_program import program_in_c
from hloom.numba_backend.ahead.standalone import collect
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline

from .build import Builder
from .executable import CExecutable


@dataclass(frozen=True, slots=True)
class Source:
    """A module as C, and what its executable must know."""

    module: HloModule
    text: str
    assignment: BufferAssignment
    temporary_bytes: int
    records: tuple[PassRecord, ...]


class CCompiler(Compiler):
    """`hloom.config.update("hloom_backend", "c")` selects it."""

    def __init__(self) -> None:
        self._builder = Builder("hloom_run")

    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        return pipeline(target, by_pieces=False)

    def compile(
        self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()
    ) -> CExecutable:
        return self._built([self.source(module, target)])[0]

    def compile_all(
        self, modules: Sequence[HloModule], *, target: str | Target = "cpu"
    ) -> list[CExecutable | UnsupportedError]:
        """The C compiler takes most of the time, and works on several files at once."""
        found: list[Source | UnsupportedError] = []
        for module in modules:
            try:
                found.append(self.source(module, target))
            except UnsupportedError as error:
                found.append(error)
        built = iter(self._built([source for source in found if isinstance(source, Source)]))
        return [next(built) if isinstance(source, Source) else source for source in found]

    def source(self, module: HloModule, target: str | Target = "cpu") -> Source:
        """The module in C. UnsupportedError for what needs Python or a library of this process."""
        if module.replica_count * module.num_partitions > 1:
            raise UnsupportedError(f"module {module.name} is for several devices; the backend 'c' has one")
        bodies = FusedComputations()
        optimized, records = pipeline(target, bodies, by_pieces=False).run(with_row_major_entry(module))
        started = time.perf_counter()
        assignment = assign_buffers(optimized, bodies.can_share)
        program = collect(assignment, bodies)
        text = program_in_c(program, "hloom")
        count = sum(1 for _ in optimized.instructions())
        written = PassRecord("c-source", (time.perf_counter() - started) * 1e3, count, count, False)
        return Source(optimized, text, assignment, program.temporary_bytes, (*records, written))

    def _built(self, sources: Sequence[Source]) -> list[CExecutable]:
        started = time.perf_counter()
        libraries = self._builder.build([source.text for source in sources])
        spent = (time.perf_counter() - started) * 1e3 / max(1, len(sources))
        return [
            CExecutable(s.module, s.text, library, s.assignment, s.temporary_bytes,
                        (*s.records, PassRecord("c-compiler", spent, s.records[-1].instructions_after,
                                                s.records[-1].instructions_after, False)))
            for s, library in zip(sources, libraries, strict=True)
        ]  # fmt: skip
