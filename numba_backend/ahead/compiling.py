"""Compile an HLO module to a standalone program: the passes of the backend, buffers, rows."""

from __future__ import annotations

from dataclasses import replace

from ...hlo.buffers.assignment import assign_buffers
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloModule
from ...hlo.layout import row_major
from ...hlo.targets import target_named
from ..choices import schedules_of
from ..fused_computations import FusedComputations
from ..machine import ANY_TARGET, compiling_for
from ..pipeline import pipeline
from .blas import Blas
from .standalone import StandaloneProgram, collect


def standalone(module: HloModule, *, blas: Blas | None = None, static_arena: bool = False) -> StandaloneProgram:
    """The program of a module for row-major arrays; results never share memory with arguments.

    `blas`: whose products it calls; None: it has its own. `static_arena`: as in `StandaloneProgram`.

    Raises UnsupportedError for several replicas, and for instructions that need Python or a library.
    """
    if module.replica_count * module.num_partitions > 1:
        raise UnsupportedError(
            f"module {module.name} is for {module.replica_count} replicas and {module.num_partitions} partitions; "
            "code for one of each is compiled ahead of time"
        )
    leaves = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    module = replace(
        module,
        input_output_aliases=(),
        entry_parameter_layouts=tuple(row_major(leaf.rank) for leaf in leaves),
        entry_result_layouts=tuple(row_major(leaf.rank) for leaf in module.entry.root.shape.leaves()),
    )
    target = target_named("cpu")
    bodies = FusedComputations()
    with compiling_for(ANY_TARGET):
        optimized, _ = pipeline(target, bodies, schedules_of(module), by_pieces=False).run(module)
        assignment = assign_buffers(optimized, bodies.can_share, fast_memory=target.fast_memory)
        return collect(assignment, bodies, blas, static_arena)
