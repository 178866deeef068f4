"""The passes of this backend, in order, between tracing and code generation.

Settings for the CPU, its threads and BLAS are in this folder and are passed to the passes here. Importing this module
imports neither Numba nor SciPy.
"""

from __future__ import annotations

from dataclasses import replace

from ..hlo.passes.expand.expand import Expand
from ..hlo.passes.fuse.align_reshapes import AlignReshapes
from ..hlo.passes.fuse.chosen_windows import ChosenWindows
from ..hlo.passes.fuse.clusters import FusionLimits
from ..hlo.passes.fuse.columns_of_loops import ColumnsOfLoops
from ..hlo.passes.fuse.excess_precision import ExcessPrecision
from ..hlo.passes.fuse.flatten_call_graph import FlattenCallGraph
from ..hlo.passes.fuse.fusion import Fusion
from ..hlo.passes.fuse.mark_in_bounds import MarkInBounds
from ..hlo.passes.fuse.memory_scheduler import MemoryScheduler
from ..hlo.passes.fuse.outline_loops import OutlineLoops
from ..hlo.passes.fuse.rematerialization import Rematerialization
from ..hlo.passes.fuse.slices_of_updates import SlicesOfUpdates
from ..hlo.passes.fuse.spare_state import SpareLoopState
from ..hlo.passes.fuse.split_concatenations import SplitConcatenations
from ..hlo.passes.fuse.split_progress import SplitProgress
from ..hlo.passes.fuse.split_reductions import SplitReductions
from ..hlo.passes.fuse.unroll_rotation import UnrollRotation
from ..hlo.passes.fuse.unshare_loop_state import UnshareLoopState
from ..hlo.passes.fuse.unwritten_state import UnwrittenState
from ..hlo.passes.fuse.vector_dots import VectorDots
from ..hlo.passes.layout.buffer_layouts import BufferLayouts
from ..hlo.passes.layout.dot_canonicalizer import DotCanonicalizer
from ..hlo.passes.layout.layout_assignment import LayoutAssignment
from ..hlo.passes.layout.layout_erasure import LayoutErasure
from ..hlo.passes.layout.layout_normalization import LayoutNormalization
from ..hlo.passes.layout.memory_space_assignment import MemorySpaceAssignment
from ..hlo.passes.manager import ByForm, FixedPoint, Pipeline
from ..hlo.passes.partitioning import Partition
from ..hlo.passes.rewrite import HloPass
from ..hlo.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from ..hlo.passes.simplify.call_inliner import CallInliner
from ..hlo.passes.simplify.carried_values import CarriedValues
from ..hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination
from ..hlo.passes.simplify.constant_folding import ConstantFolding
from ..hlo.passes.simplify.control_flow_simplifier import ControlFlowSimplifier
from ..hlo.passes.simplify.dead_code_elimination import DeadCodeElimination
from ..hlo.passes.simplify.known_composites import KnownComposites
from ..hlo.passes.simplify.loop_invariant_code_motion import LoopInvariantCodeMotion
from ..hlo.passes.simplify.range_simplifier import RangeSimplifier
from ..hlo.passes.simplify.slices_of_loops import SlicesOfLoops
from ..hlo.passes.simplify.whole_systems import WholeSystems
from ..hlo.target import Target
from ..hlo.targets import target_named
from .dot import is_matrix
from .emit.movement import MANY_PARTS
from .expansions import NUMBA_EXPANSIONS
from .fused_computations import FusedComputations
from .linalg.algorithms import has_small_kernel
from .machine import target_machine
from .native_loops.cost import is_native
from .output_fusion.fuse import OutputFusion
from .policy.products import takes_as_stored
from .schedule.steps import EVERY, Jumps, Schedules

KERNEL_LIMITS = FusionLimits(
    members=400,  # the compile time of a kernel grows faster than linearly with its length
    externals=48,  # each is an argument of the kernel
    outputs=48,  # the same; and the compiler compares each written pointer with all others
    stages=4,  # of a softmax there are two, of a layer normalisation with its gradient four
    parts=MANY_PARTS,
    serial_elements=1 << 15,  # less work is not worth a second thread
    small_elements=1 << 17,  # takes about as long as a few kernels' starts in threads
    workers=8,
    rows=4,  # blocks of 1,024 columns of a few such arrays fill the first-level cache
    recomputed_members=3,
    recomputed_positions=8,
    recomputed_work=6,
    recomputed_uncached=24,  # 20 for each f64 take half as long as to write it to memory and read it from there
)

VECTOR_DOTS = VectorDots(most=1 << 15, least=1 << 12, long=1 << 15, few=16)

CHOSEN_WINDOWS = ChosenWindows(
    wide=256,  # a choice between rows of 128 bytes takes as long as the copy, of 64 bytes longer
    large=1 << 17,
    part=3,  # 0.5 to 0.8 of the time if half of the rows are replaced, 0.8 to 1.15 for a quarter
)

SPLIT_REDUCTIONS = SplitReductions(
    large=1 << 16,
    large_columns=1 << 20,
    large_both=1 << 16,
    wide=1 << 16,  # accumulators of f64 take half of a second-level cache then
    few=16,
    few_columns=128,
    large_few_columns=1 << 16,
    most=1 << 25,  # some tens of milliseconds, after which a program looks for interrupts
    rows=16,
    parts=64,  # more than there are threads, so that all threads finish at about the same time
)


def pipeline(
    target: str | Target = "cpu", bodies: FusedComputations | None = None, schedules: Schedules | None = None,
    by_pieces: bool = True, budget: int | None = None,
) -> Pipeline:  # fmt: skip
    """Every pass for a target, in order.

    `bodies`: the fused computations with which buffers are assigned and code is generated afterwards. The passes and
    they must agree on which results may be written over which operands. `schedules`: those that a program has in place
    of the policy's. `by_pieces`: the program can run the kernels of an output fusion piece by piece.
    `budget`: the most bytes that the program may need.

    UnsupportedError for a target that does not exist.
    """
    target = target_named(target)
    fast = target.fast_memory
    bodies = bodies or FusedComputations()
    jumps = Jumps() in (schedules or {}).get(EVERY, ())
    last: tuple[HloPass, ...] = (
        *(() if jumps else (OutlineLoops(is_native),)),  # after scheduling: kernels of a loop are joined in its order
        OutputFusion(bodies, by_pieces),  # no loop that is a kernel has pieces; memory depends on them
    )
    machine = target_machine()
    uncached = machine.last_cache // 4
    columns_of_loops = ColumnsOfLoops(
        near_rows=machine.first_cache // 2 // machine.cache_line,
        near=machine.second_cache // 2,
    )
    limits = replace(KERNEL_LIMITS, uncached=uncached)
    keep = () if budget is None else (Rematerialization(budget, bodies.can_share, last),)
    simplify = FixedPoint(
        (
            AlgebraicSimplifier(),  # makes constants, and operations that are equal to others
            ConstantFolding(),  # after simplification, which moves broadcasts out of the way
            CommonSubexpressionElimination(),  # after both; merging instructions lets more rules apply
            ControlFlowSimplifier(),  # needs constant counters and conditions
            LoopInvariantCodeMotion(),  # after constants have been removed from the state of loops
            DeadCodeElimination(),  # unused instructions would hide that a value has one user only
        )
    )
    return Pipeline(
        target.name,
        (
            Partition(),  # a program of whole arrays for several devices becomes a program of one device
            KnownComposites(has_small_kernel),  # before calls are inlined, and composites are no longer known
            CallInliner(),  # all passes below see plain operations
            ByForm((  # once for all modules that differ in sizes and constants: these passes look at few of them
                LayoutErasure(),  # so that all passes may assume row-major
                DeadCodeElimination(),  # tracers leave unused instructions, which would slow down simplification
                Expand(NUMBA_EXPANSIONS),  # ops without a kernel; before simplification, which cleans up after it
                SlicesOfLoops(),  # before the passes that know ranges of indices: they remove clamps that this adds
                RangeSimplifier(),  # goes through whole programs, once; simplification then sees the known tests
                simplify,
                WholeSystems(has_small_kernel),  # after simplification, which drops unused values
                LayoutAssignment(is_matrix),  # of a simple program, which has few choices and nothing that misleads
                LayoutNormalization(),  # the passes after it need row-major again
                replace(simplify, only_after="layout-normalization"),  # transposes that now meet other transposes
                DotCanonicalizer(takes_as_stored),  # after simplification, which would fold its transposes back
                CarriedValues(),  # after simplification, which merges equal values
                columns_of_loops,  # after simplification too: its matrices are elements of the state
                LoopInvariantCodeMotion(),  # moves transposes out of loops: those before dots, and of matrices
                SpareLoopState(),  # after simplification, which would find the second copy of an array to be the first
                UnrollRotation(),  # after simplification, which finds out what moves through the state of loops
            ), machine),
            replace(VECTOR_DOTS, uncached=uncached),  # after simplification, which makes dots of sums
            AlignReshapes(),  # after simplification, which would merge its reshapes with others
            SPLIT_REDUCTIONS,  # after simplification too, which would merge the split reductions
            CommonSubexpressionElimination(),  # the transposes of an operand of several dots, converted parameters
            DeadCodeElimination(),
            SplitConcatenations(most=4 * MANY_PARTS),  # after the last simplification, which would merge them again
            CHOSEN_WINDOWS,  # after the last simplification, as its tests and indices are as simple as they get
            SlicesOfUpdates(),  # after the last simplification, which would make static slices of these
            UnwrittenState(),  # after all that merges or moves equal values: each loop gets memory of its own
            MarkInBounds(),  # facts about an index may not hold outside of its loop: nothing moves from here on
            SplitProgress(),  # after all that knows loops: the analyses above see the loop that the user wrote
            UnshareLoopState(),  # after the last pass that merges equal values
            Fusion(limits),  # the last pass that changes where values are computed
            ExcessPrecision(),  # values that are not stored keep their excess precision
            BufferLayouts(target),  # buffers are known now
            FlattenCallGraph(),  # each loop body gets one caller: buffers are assigned once for each computation
            MemoryScheduler(),  # schedules kernels, not the operations in them
            *keep,  # after scheduling: the order says what is alive
            *last,
            *(() if fast is None else (MemorySpaceAssignment(fast, bodies.can_share),)),  # last: it looks at lifetimes
        ),
    )
