"""The list of passes: what happens to a module between tracing and code generation, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..backend import PassRecord
from ..buffers.coalescing import CanShare, never_share
from ..buffers.memory_space_assignment import MemorySpaceAssignment
from ..ir import HloModule
from ..target import CpuTarget, Target
from ..targets import target_named
from .expand.expand import Expand
from .fuse.dot_canonicalizer import DotCanonicalizer, IsGemm, blas_takes
from .fuse.flatten_call_graph import FlattenCallGraph
from .fuse.fusion import Fusion
from .fuse.memory_scheduler import MemoryScheduler
from .fuse.split_reductions import SplitReductions
from .fuse.unshare_loop_state import UnshareLoopState
from .layout.buffer_layouts import BufferLayouts
from .layout.flow import Preferences
from .layout.layout_assignment import LayoutAssignment
from .layout.layout_erasure import LayoutErasure
from .layout.layout_normalization import LayoutNormalization
from .manager import FixedPoint, PassOptions, Pipeline
from .simplify.algebraic_simplifier import AlgebraicSimplifier
from .simplify.call_inliner import CallInliner
from .simplify.common_subexpression_elimination import CommonSubexpressionElimination
from .simplify.constant_folding import ConstantFolding
from .simplify.control_flow_simplifier import ControlFlowSimplifier
from .simplify.dead_code_elimination import DeadCodeElimination
from .simplify.loop_invariant_code_motion import LoopInvariantCodeMotion


def pipeline(
    target: str | Target,
    is_gemm: IsGemm = blas_takes,
    can_share: CanShare = never_share,
    preferences: Preferences | None = None,
) -> Pipeline:
    """Every pass for a target, in order. `is_gemm`: can the backend multiply a dot's operands as they lie? `can_share`:
    which results does it write over which operands? `preferences`: the orders of dimensions that are wanted for single
    instructions.

    UnsupportedError for a target that there is not.
    """
    target = target_named(target)
    fast = target.fast_memory
    simplify = FixedPoint(
        (
            AlgebraicSimplifier(),  # makes constants, and operations that are equal to others
            ConstantFolding(),  # after it, as broadcasts have moved out of the way
            CommonSubexpressionElimination(),  # after both; what it merges lets more rules apply
            ControlFlowSimplifier(),  # needs constant counters and conditions
            LoopInvariantCodeMotion(),  # after constants have left the state of loops
            DeadCodeElimination(),  # what nobody uses would hide that others have one user only
        )
    )
    return Pipeline(
        target.name,
        (
            CallInliner(),  # first: everything below sees plain operations
            LayoutErasure(),  # so that all passes may take row-major for granted
            DeadCodeElimination(),  # tracers leave much behind; the less there is to simplify the better
            Expand(),  # what no kernel does as it stands; before simplification, which cleans up after it
            simplify,
            LayoutAssignment(preferences=preferences),  # of a simple program: little to choose for, nothing to mislead
            LayoutNormalization(),  # what comes after needs row-major again
            replace(simplify, only_after="layout-normalization"),  # transposes that now meet others
            DotCanonicalizer(is_gemm=is_gemm),  # after simplification, which would fold its transposes back
            LoopInvariantCodeMotion(),  # transposes that were put before dots in loops
            SplitReductions(),  # after simplification too: it would merge what this splits
            CommonSubexpressionElimination(),  # the transposes of an operand of several dots, converted parameters
            DeadCodeElimination(),
            UnshareLoopState(),  # after the last merging of equal values
            Fusion(),  # the last to change what is computed where
            BufferLayouts(target),  # what is a buffer stands now
            FlattenCallGraph(),  # one caller a loop body: buffers are laid out once
            MemoryScheduler(),  # of kernels, not of the operations in them
            *(() if fast is None else (MemorySpaceAssignment(fast, can_share),)),  # last: it looks at lifetimes
        ),
    )


def cpu_pipeline(is_gemm: IsGemm = blas_takes, preferences: Preferences | None = None) -> Pipeline:
    """Every pass for the CPU."""
    return pipeline(CpuTarget(), is_gemm, preferences=preferences)


def optimize(
    module: HloModule,
    target: str | Target = "cpu",
    *,
    is_gemm: IsGemm = blas_takes,
    can_share: CanShare = never_share,
    preferences: Preferences | None = None,
    options: PassOptions | None = None,
) -> tuple[HloModule, Sequence[PassRecord]]:
    """The module after all passes for `target` (a name, or a target of one's own), and what each pass did.

    `options` default to the environment's (HLOOM_VERIFY_PASSES, HLOOM_DUMP_TO, HLOOM_DISABLE_PASSES).
    UnsupportedError for a target that there is not.
    """
    return pipeline(target, is_gemm, can_share, preferences).run(module, options)
