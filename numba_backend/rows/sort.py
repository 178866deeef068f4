"""The rows of sort and topk."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.sort import emit_sort, scratch_bytes
from .table import RowContext, register


@register(Opcode.SORT)
def _sort(context: RowContext, instruction: HloInstruction) -> None:
    if not instruction.operands[0].shape.num_elements:
        return
    scratch = [context.scratch(nbytes) for nbytes in scratch_bytes(instruction)]
    operands = [*context.operands(instruction), *scratch]
    context.kernel(instruction.name, emit_sort(instruction), operands, context.results(instruction))
