"""Rows of reduce-window and select-and-scatter: one kernel, or the kernels of a scan for cumulative windows.

Instructions that follow a window, such as the division of an average, are computed from a few rows of its results at a
time, while they are in the cache.
"""

from __future__ import annotations

import math

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emit.window import emit_reduce_window, extent_of
from ..emit.window_extrema import emit_extrema, emit_extremum_sums, is_extremum
from ..emit.window_joint import emit_joint, extent_of_joint, joins_rows
from ..emit.window_scan import Scan, emit_columns, emit_rows, emit_starts, emit_sums, held_types, scan_of
from ..emit.window_scatter import emit_select_and_scatter
from ..machine import target_machine
from .table import OUTPUT_ROWS, LoweringContext, OutputRows, Step, register

FEW_IMAGES = 8
"""Fewer images are not pieces."""


def image_bytes() -> int:
    """Larger images are not pieces."""
    return target_machine().second_cache // 2


def least_bytes() -> int:
    """Smaller results are in the cache when the next kernel reads them."""
    return 2 * target_machine().first_cache


def piece_bytes() -> int:
    """Most bytes of a piece's results: they should stay in a first-level cache, or close to it."""
    return target_machine().first_cache


@register(Opcode.REDUCE_WINDOW, how="a kernel of its own; cumulative windows: a scan of several")
def _reduce_window(context: LoweringContext, instruction: HloInstruction) -> None:
    if all(leaf.num_elements == 0 for leaf in instruction.shape.leaves()):
        return
    scan = scan_of(instruction)
    if scan is not None:
        _scan(context, instruction, scan)
        return
    kernel = emit_joint(instruction) if joins_rows(instruction) else emit_reduce_window(instruction)
    operands, results = context.operands(instruction), context.results(instruction)
    if context.has_pieces:
        context.by_pieces(1, [Step(instruction.name, kernel, operands, results)])
    else:
        context.kernel(instruction.name, kernel, operands, results)


def _output_rows(instruction: HloInstruction) -> OutputRows | None:
    """The instructions that follow may also go through whole images."""
    shape = instruction.shape
    if not shape.is_array or shape.byte_size < least_bytes() or scan_of(instruction) is not None:
        return None
    extent = extent_of_joint(instruction) if joins_rows(instruction) else extent_of(instruction)
    rows, images = math.prod(shape.dimensions[:-1]), shape.dimensions[0]
    if not extent or rows % extent:
        return None
    least = min(-(-shape.byte_size // piece_bytes()), extent)
    found = [pieces for pieces in range(least, min(extent, 4 * least) + 1) if extent % pieces == 0][:1]
    if images >= FEW_IMAGES and extent % images == 0 and shape.byte_size // images <= image_bytes():
        found.append(images)
    return OutputRows(shape.dimensions[:-1], found) if found else None


OUTPUT_ROWS[Opcode.REDUCE_WINDOW] = _output_rows


def _scan(context: LoweringContext, instruction: HloInstruction, scan: Scan) -> None:
    operands, results = context.operands(instruction), context.results(instruction)
    if scan.inner > 1:
        context.kernel(instruction.name, emit_columns(instruction, scan), operands, results)
        return
    is_plain = not is_extremum(instruction, scan)
    starts = []
    if scan.pieces > 1:
        pieces = scan.outer * scan.pieces
        starts = [context.scratch(kind, pieces) for kind in held_types(instruction)]
        sums = emit_sums(instruction, scan) if is_plain else emit_extremum_sums(instruction, scan)
        context.kernel(f"{instruction.name}.sums", sums, operands, starts)
        context.kernel(f"{instruction.name}.starts", emit_starts(instruction, scan), operands, starts)
    rows = emit_rows(instruction, scan) if is_plain else emit_extrema(instruction, scan)
    context.kernel(instruction.name, rows, operands, [*results, *starts])


@register(Opcode.SELECT_AND_SCATTER, how="a kernel of its own")
def _select_and_scatter(context: LoweringContext, instruction: HloInstruction) -> None:
    if instruction.shape.num_elements:
        kernel = emit_select_and_scatter(instruction)
        context.kernel(instruction.name, kernel, context.operands(instruction), context.results(instruction))
