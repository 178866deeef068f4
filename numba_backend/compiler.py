"""NumbaCompiler: HLO in, executable out. The stages are visible in `compile`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ..hlo.backend import Compiler
from ..hlo.buffers.assignment import assign_buffers
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule, InputOutputAlias
from ..hlo.passes.manager import Pipeline
from ..hlo.passes.record import PassRecord
from ..hlo.shape import Shape
from ..hlo.target import Target
from ..hlo.targets import target_named
from .bodies import Bodies
from .executable import NumbaExecutable
from .lowering import lower
from .pipeline import pipeline


class NumbaCompiler(Compiler):
    """Compiles for the CPU that it runs on; a target decides how arrays lie in its memory."""

    def pipeline(self, target: str | Target = "cpu") -> Pipeline:
        return pipeline(target)

    def compile(
        self, module: HloModule, *, target: str | Target = "cpu", donated: Sequence[int] = ()
    ) -> NumbaExecutable:
        target = target_named(target)
        if module.replica_count * module.num_partitions > 1:
            raise UnsupportedError(
                f"module {module.name} is for {module.replica_count} replicas and {module.num_partitions} partitions; "
                "the Numba backend runs one of each"
            )
        module = _with_donated(module, donated)
        bodies = Bodies()
        optimized, records = pipeline(target, bodies).run(module)
        return _assembled(optimized, target, bodies, records)

    def compile_optimized(self, module: HloModule, *, target: str | Target = "cpu") -> NumbaExecutable:
        """For a module after all passes: none runs. Who looks for a wrong kernel compiles parts of a program so."""
        return _assembled(replace(module, is_scheduled=True), target_named(target), Bodies(), ())


def _assembled(
    optimized: HloModule, target: Target, bodies: Bodies, records: Sequence[PassRecord]
) -> NumbaExecutable:
    """The executable of a module after all passes: buffers, then kernels."""
    started = time.perf_counter()
    assignment = assign_buffers(optimized, bodies.can_share, fast_memory=target.fast_memory)
    assigned = time.perf_counter()
    lowered = lower(assignment, bodies)
    finished = time.perf_counter()
    count = sum(1 for _ in optimized.instructions())
    stages = [
        PassRecord("buffer-assignment", (assigned - started) * 1e3, count, count, False),
        PassRecord("code-generation", (finished - assigned) * 1e3, count, count, False),
    ]
    return NumbaExecutable(optimized, lowered, assignment, [*records, *stages])


def _with_donated(module: HloModule, donated: Sequence[int]) -> HloModule:
    """The module with each donated parameter's memory offered to a result of its type and layout, unless it has
    aliases."""
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
