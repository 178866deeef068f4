"""Rows of reduce-window and select-and-scatter: one kernel, or the kernels of a scan for cumulative windows."""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.window import emit_reduce_window
from ..emit.window_joint import emit_joint, joins_rows
from ..emit.window_scan import Scan, emit_columns, emit_rows, emit_starts, emit_sums, held_types, scan_of
from ..emit.window_scatter import emit_select_and_scatter
from .table import RowContext, register


@register(Opcode.REDUCE_WINDOW, how="a kernel of its own; cumulative windows: a scan of several")
def _reduce_window(context: RowContext, instruction: HloInstruction) -> None:
    if all(leaf.num_elements == 0 for leaf in instruction.shape.leaves()):
        return
    scan = scan_of(instruction)
    if scan is not None:
        _scan(context, instruction, scan)
        return
    kernel = emit_joint(instruction) if joins_rows(instruction) else emit_reduce_window(instruction)
    context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))


def _scan(context: RowContext, instruction: HloInstruction, scan: Scan) -> None:
    operands, results = context.operands(instruction), context.results(instruction)
    if scan.inner > 1:
        context.kernel(instruction.name, emit_columns(instruction, scan), operands, results)
        return
    starts = []
    if scan.pieces > 1:
        pieces = scan.outer * scan.pieces
        starts = [context.scratch(kind, pieces) for kind in held_types(instruction)]
        context.kernel(f"{instruction.name}.sums", emit_sums(instruction, scan), operands, starts)
        context.kernel(f"{instruction.name}.starts", emit_starts(instruction, scan), operands, starts)
    context.kernel(instruction.name, emit_rows(instruction, scan), operands, [*results, *starts])


@register(Opcode.SELECT_AND_SCATTER, how="a kernel of its own")
def _select_and_scatter(context: RowContext, instruction: HloInstruction) -> None:
    if instruction.shape.num_elements:
        kernel = emit_select_and_scatter(instruction)
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
