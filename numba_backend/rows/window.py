"""Rows of reduce-window and select-and-scatter: one kernel, or for cumulative windows the kernels of a scan."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.window import emit_reduce_window, emit_select_and_scatter
from .table import RowContext, register


@register(Opcode.REDUCE_WINDOW)
def _reduce_window(context: RowContext, instruction: HloInstruction) -> None:
    if all(leaf.num_elements == 0 for leaf in instruction.shape.leaves()):
        return
    kernel = emit_reduce_window(instruction)
    context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))


@register(Opcode.SELECT_AND_SCATTER)
def _select_and_scatter(context: RowContext, instruction: HloInstruction) -> None:
    if instruction.shape.num_elements:
        kernel = emit_select_and_scatter(instruction)
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
