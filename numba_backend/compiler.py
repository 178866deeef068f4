"""NumbaCompiler: HLO in, executable out. The stages are visible in `compile`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..hlo.backend import Compiler
from ..hlo.buffers.assignment import assign_buffers
from ..hlo.ir import HloModule, InputOutputAlias
from ..hlo.passes.manager import Pipeline
from ..hlo.passes.record import PassRecord
from ..hlo.shape import Shape
from ..hlo.target import Target
from ..hlo.targets import target_named
from ..hlo.timeline.spans import Track, spanning
from . import timeline  # noqa: F401  # programs take part in timelines
from .bodies import Bodies
from .executable import NumbaExecutable
from .lowering import lower
from .pipeline import pipeline


class NumbaCompiler(Compiler):
    """Compiles for the CPU that it runs on. The target decides the layout of arrays in its memory."""

    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        return pipeline(target)

    def compile(
        self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()
    ) -> NumbaExecutable:
        target = target_named(target)
        module = _with_donated(module, donated)
        bodies = Bodies()
        optimized, records = pipeline(target, bodies).run(module)
        return _assembled(optimized, target, bodies, records)

    def compile_optimized(self, module: HloModule, *, target: str | Target = "cpu") -> NumbaExecutable:
        """Compiles a module that has been through all passes; runs no pass. The search for a wrong kernel uses this."""
        return _assembled(replace(module, is_scheduled=True), target_named(target), Bodies(), ())


def _assembled(
    optimized: HloModule, target: Target, bodies: Bodies, records: Sequence[PassRecord]
) -> NumbaExecutable:
    """The executable of a module that has been through all passes: assigns buffers, then makes kernels."""
    started = time.perf_counter()
    with spanning(Track.COMPILING, f"assign buffers of {optimized.name}"):
        assignment = assign_buffers(optimized, bodies.can_share, fast_memory=target.fast_memory)
    assigned = time.perf_counter()
    with spanning(Track.COMPILING, f"generate code of {optimized.name}"):
        lowered = lower(assignment, bodies)
    finished = time.perf_counter()
    count = sum(1 for _ in optimized.instructions())
    stages = [
        PassRecord("buffer-assignment", (assigned - started) * 1e3, count, count, False),
        PassRecord("code-generation", (finished - assigned) * 1e3, count, count, False),
    ]
    return NumbaExecutable(optimized, lowered, assignment, [*records, *stages])


def _with_donated(module: HloModule, donated: Sequence[int]) -> HloModule:
    """The module, where a result with the same type and layout may use the memory of each donated parameter. A module
    that has aliases already is not changed."""
    if not donated or module.input_output_aliases:
        return module
    root = module.entry_result_shape
    leaves: list[tuple[tuple[int, ...], Shape]] = [((), root)]
    if root.is_tuple:
        leaves = [((k,), s) for k, s in enumerate(root.elements)]
    aliases = []
    for number in donated:
        shape = module.entry_parameter_shapes[number]
        found = next((leaf for leaf in leaves if leaf[1] == shape), None)
        if found is not None:
            leaves.remove(found)
            aliases.append(InputOutputAlias(found[0], number))
    return replace(module, input_output_aliases=tuple(aliases))
