"""call-inliner: every call becomes the instructions that it calls, composites and nested jits included.

What a composite stands for matters to autodiff and batching, which come before; all passes below see plain ops.
Source: XLA's CallInliner.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from .rewrite import clone_computation, map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class CallInliner:
    """Replaces CALL by a copy of the callee; the copies keep their metadata, and names where these are free."""

    name: str = "call-inliner"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _inline_calls)


def _inline_calls(computation: HloComputation) -> HloComputation:
    if all(i.opcode is not Opcode.CALL for i in computation.instructions):
        return computation

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode is not Opcode.CALL:
            return moved
        callee: HloComputation = moved.attributes.to_apply
        root, _ = clone_computation(callee, dict(zip(callee.parameters, moved.operands, strict=True)))
        return root

    return rewrite_computation(computation, visit)
