"""The row of scatter: a kernel that updates the arrays, after a copy if they may not be overwritten."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.collapse import FusedBody
from ..emit.inlined import inlined
from ..emit.scatter import emit_scatter
from ..emit.scatter_parts import emit_joins, emit_parts, scatter_parts, type_of_parts
from ..runtime.threads import get_num_threads
from .table import SHARE, LoweringContext, register


@register(Opcode.SCATTER, how="a kernel of its own, in place where it may be")
def _scatter(context: LoweringContext, instruction: HloInstruction) -> None:
    operands, results = context.operands(instruction), context.results(instruction)
    for leaf, source, target in zip(instruction.shape.leaves(), operands, results, strict=False):
        if source == target:
            continue
        context.copy(target, source, leaf.byte_size, instruction.name)
    if not instruction.operands[0].shape.num_elements or not instruction.operands[-1].shape.num_elements:
        return
    bodies: dict[int, tuple[FusedBody, int]] = {}
    for number, (body, arguments) in context.inlined(instruction).items():
        bodies[number] = body, len(operands)
        operands = [*operands, *arguments]
    given = inlined(bodies) if bodies else None
    parts = scatter_parts(instruction)
    if parts is None:
        context.kernel(instruction.name, emit_scatter(instruction, get_num_threads(), given), operands, results)
        return
    copies = context.scratch(type_of_parts(instruction), parts.count * parts.room)
    context.kernel(f"{instruction.name} in parts", emit_parts(instruction, parts, given), operands, [copies])
    context.kernel(f"{instruction.name} joins parts", emit_joins(instruction, parts), [copies], results)


def _in_place(instruction: HloInstruction, operand: int, output: int) -> bool:
    """An array may be updated in its buffer."""
    return operand == output


SHARE[Opcode.SCATTER] = _in_place
