"""call-inliner: every call becomes the instructions that it calls, composites and nested jits included.

What a composite stands for matters to autodiff and batching, which come before; all passes below see plain ops.
Fusions that a module brings along (text that XLA printed after its own passes) are taken apart too: they were made
for another code generator. Source: XLA's CallInliner.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import HloComputation, HloInstruction, HloModule
from ..opcode import Opcode
from .rewrite import clone_computation, map_computations, rewrite_computation

_INLINED = frozenset({Opcode.CALL, Opcode.FUSION})


@dataclass(frozen=True, slots=True)
class CallInliner:
    """Replaces CALL and FUSION by a copy of the callee; copies keep their metadata, and names where these are free."""

    name: str = "call-inliner"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _inline_calls, inside_fusions=True)


def _inline_calls(computation: HloComputation) -> HloComputation:
    if all(i.opcode not in _INLINED for i in computation.instructions):
        return computation

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode not in _INLINED:
            return moved
        (callee,) = moved.called_computations()
        root, _ = clone_computation(callee, dict(zip(callee.parameters, moved.operands, strict=True)))
        return root

    return rewrite_computation(computation, visit)
