"""The borders of `shard_map` where the partitioner sees them: calls that hold one become the instructions they call."""

from __future__ import annotations

from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.passes.rewrite import Effects, clone_computation, cloned_effects, map_computations, rewrite_computation

_BORDERS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})


def with_open_borders(module: HloModule) -> HloModule:
    """The same module without calls of computations that name shardings. The instructions at the borders of a
    `shard_map` separate its inside from its outside, in one computation."""
    return map_computations(module, _opened)


def _opened(computation: HloComputation) -> HloComputation:
    if not any(_is_border(i) for i in computation.instructions):
        return computation
    effects: Effects = {}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if not _is_border(moved):
            return moved
        callee = moved.attributes.to_apply
        operands = dict(zip(callee.parameters, moved.operands, strict=True))
        root, copies = clone_computation(callee, operands, moved.metadata)
        effects[old] = cloned_effects(callee, copies)
        return root

    return rewrite_computation(computation, visit, effects)


def _is_border(instruction: HloInstruction) -> bool:
    """Whether it is a call of a computation with a border in it, itself or in its calls."""
    return instruction.opcode is Opcode.CALL and _has_border(instruction.attributes.to_apply)


def _has_border(computation: HloComputation) -> bool:
    return any(
        (i.opcode is Opcode.CUSTOM_CALL and i.attributes.custom_call_target in _BORDERS) or _is_border(i)
        for i in computation.instructions
    )
