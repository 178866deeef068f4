"""The row of scatter: a kernel that updates the arrays, after a copy if they may not be overwritten."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.scatter import emit_scatter
from .table import SHARE, RowContext, register


@register(Opcode.SCATTER, how="a kernel of its own, in place where it may be")
def _scatter(context: RowContext, instruction: HloInstruction) -> None:
    operands, results = context.operands(instruction), context.results(instruction)
    for leaf, source, target in zip(instruction.shape.leaves(), operands, results, strict=False):
        if source != target:
            context.builder.copy(target, source, leaf.byte_size)
    if instruction.operands[0].shape.num_elements and instruction.operands[-1].shape.num_elements:
        context.kernel(instruction.name, emit_scatter(instruction), operands, results)


def _in_place(instruction: HloInstruction, operand: int, output: int) -> bool:
    """An array may be updated in its buffer."""
    return operand == output


SHARE[Opcode.SCATTER] = _in_place
