"""Rows of reduce-window and select-and-scatter: one kernel, or the kernels of a scan for cumulative windows.

Instructions that follow a window, such as the division of an average, are computed from a few rows of its results at a
time, while they are in the cache.
"""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.window_scan import Scan, emit_starts, emit_sums, held_types, scan_of
from ..emit.window_scatter import emit_select_and_scatter
from ..policy.windows import pieces_of, scan_kernel, scan_kernels, window_kernel
from .table import OUTPUT_ROWS, LoweringContext, OutputRows, Step, register


@register(Opcode.REDUCE_WINDOW, how="a kernel of its own; cumulative windows: a scan of several")
def _reduce_window(context: LoweringContext, instruction: HloInstruction) -> None:
    if all(leaf.num_elements == 0 for leaf in instruction.shape.leaves()):
        return
    scan = scan_kernels(instruction)
    if scan is not None:
        _scan(context, instruction, scan)
        return
    kernel = window_kernel(instruction)
    operands, results = context.operands(instruction), context.results(instruction)
    if context.has_pieces:
        context.by_pieces(1, [Step(instruction.name, kernel, operands, results)])
    else:
        context.kernel(instruction.name, kernel, operands, results)


def _output_rows(instruction: HloInstruction) -> OutputRows | None:
    if not instruction.shape.is_array or scan_of(instruction) is not None:
        return None
    pieces = pieces_of(instruction)
    return OutputRows(instruction.shape.dimensions[:-1], pieces) if pieces else None


OUTPUT_ROWS[Opcode.REDUCE_WINDOW] = _output_rows


def _scan(context: LoweringContext, instruction: HloInstruction, scan: Scan) -> None:
    operands, results = context.operands(instruction), context.results(instruction)
    starts = []
    if scan.pieces > 1:
        starts = [context.scratch(kind, scan.outer * scan.pieces) for kind in held_types(instruction, scan)]
        context.kernel(f"{instruction.name}.sums", emit_sums(instruction, scan), operands, starts)
        context.kernel(f"{instruction.name}.starts", emit_starts(instruction, scan), operands, starts)
    context.kernel(instruction.name, scan_kernel(instruction, scan), operands, [*results, *starts])


@register(Opcode.SELECT_AND_SCATTER, how="a kernel of its own")
def _select_and_scatter(context: LoweringContext, instruction: HloInstruction) -> None:
    if instruction.shape.num_elements:
        kernel = emit_select_and_scatter(instruction)
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
