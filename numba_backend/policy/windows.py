"""Choose the kernels of windows: rows together or one after the other, scans in pieces or not, and into how many pieces
the results may be cut for the instructions that follow. ``python -m benchmarks.schedules`` times other numbers.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from ...hlo.errors import ScheduleError
from ...hlo.ir import HloInstruction
from ..emit.window import axes_of_reduction, emit_reduce_window, rows_of
from ..emit.window_axes import MANY_ROWS
from ..emit.window_extrema import emit_extrema
from ..emit.window_joint import can_join_rows, emit_joint, longest_row
from ..emit.window_scan import Scan, emit_columns, emit_rows, held_types, is_held_wider, keys_of, scan_of
from ..emit.window_schedule import COLUMN, PIECES, ROW, STEP, WindowBlocks, scan_blocks, window_blocks
from ..emitted_kernel import EmittedKernel
from ..machine import target_machine
from ..schedule.steps import Part, Schedule, Split, size_of
from . import FEW_IMAGES

GROUPS = 16
"""Rows of results that are computed together: there are so many groups of them at least, for the threads."""
BLOCK = 1024
"""Results of a row that stay in the cache together. A few long rows are cut into blocks, which threads share."""

FEW_ROWS = 16
"""With fewer rows in a scan, long ones are cut into pieces, so that there is work for each thread."""
PIECE = 1040
"""Elements of a piece of a long row; no power of two, so that the lanes use different sets of the cache."""
LANES = 8
"""Rows that advance together, where a step is one operation on four bytes. With eight rows of f64 LLVM would gather."""
SCANNED_COLUMNS = (512, 256, 128)
"""Columns that advance together: a local array holds their values. The most of these that leave a block for each core:
processors load ahead in longer runs of memory, so that a sum along 1,024 rows of 1,024 takes 0.7 of the time."""
TOGETHER = 2
"""Steps along columns that are added in f32 before they join sums in f64."""
LEAST_IN_KEYS = 64
"""Maxima and minima of rows of so many elements are scanned vector by vector."""
IN_KEYS = 128
"""Elements of a block of these. Many blocks of so few have no new extremum, and are filled with the one so far."""


def least_bytes() -> int:
    """Smaller results are in the cache when the next kernel reads them."""
    return 2 * target_machine().first_cache


def piece_bytes() -> int:
    """Most bytes of a piece's results: they should stay in a first-level cache, or close to it."""
    return target_machine().first_cache


def window_kernel(instruction: HloInstruction, given: Schedule | None = None) -> EmittedKernel:
    """The kernel of a reduce-window that is no scan. `given`: a schedule in the place of the one that is chosen here;
    ScheduleError if it does not fit."""
    blocks = _blocks(instruction) if given is None else window_blocks(given)
    if blocks.group is None:
        kernel = emit_reduce_window(instruction, blocks)
    else:
        group = size_of(blocks.group) or _group(instruction)
        if not 0 < group <= _most_rows(instruction):
            raise ScheduleError(f"rows of this window are not computed together, {group} at a time")
        kernel = emit_joint(instruction, group, blocks)
    return replace(kernel, under=partial(window_kernel, instruction))


def _blocks(instruction: HloInstruction) -> WindowBlocks:
    if _group(instruction):
        return WindowBlocks(Part(ROW, "group"))
    count = axes_of_reduction(instruction)[-1].count
    by_rows = rows_of(instruction) >= MANY_ROWS or count < 2 * BLOCK
    columns = Split(COLUMN, "start", BLOCK, "short") if count > BLOCK or not by_rows else None
    return WindowBlocks(None, columns, by_rows)


def _extent(instruction: HloInstruction) -> int:
    """The extent of the kernel under its own schedule."""
    rows, group = rows_of(instruction), _group(instruction)
    if group:
        return -(-rows // group)
    return rows if _blocks(instruction).by_rows else axes_of_reduction(instruction)[-1].count


def pieces_of(instruction: HloInstruction) -> list[int]:
    """Into how many pieces the kernel's range may be cut, the best number first. The instructions that follow may also
    go through whole images. Empty: they are better computed from the whole result."""
    shape, extent = instruction.shape, _extent(instruction)
    rows, images = math.prod(shape.dimensions[:-1]), shape.dimensions[0]
    if shape.byte_size < least_bytes() or not extent or rows % extent:
        return []
    least = min(-(-shape.byte_size // piece_bytes()), extent)
    found = [pieces for pieces in range(least, min(extent, 4 * least) + 1) if extent % pieces == 0][:1]
    most = target_machine().second_cache // 2  # larger images are not pieces
    if images >= FEW_IMAGES and extent % images == 0 and shape.byte_size // images <= most:
        found.append(images)
    return found


def _group(instruction: HloInstruction) -> int:
    """How many rows of results are computed together, if all groups of an image have as many then; 0: each by itself.
    Rows of 1000 gain nothing."""
    fitting, rows = _most_rows(instruction), rows_of(instruction)
    if not fitting:
        return 0
    most = max(1, min(fitting, -(-rows // GROUPS)))
    of_image = rows // math.gcd(rows, instruction.shape.dimensions[0])
    return next((group for group in range(most, most // 2, -1) if of_image % group == 0), most)


def _most_rows(instruction: HloInstruction) -> int:
    """How many rows of results can be computed together; 0: they cannot."""
    if not can_join_rows(instruction):
        return 0
    return longest_row(instruction.shape.element) // axes_of_reduction(instruction)[-1].size


def scan_kernels(instruction: HloInstruction) -> Scan | None:
    """How to scan a cumulative reduce-window; None if it is another one."""
    scan = scan_of(instruction)
    if scan is None:
        return None
    if scan.inner > 1:
        together = Split(STEP, "steps", TOGETHER, "rest") if is_held_wider(instruction) else None
        return replace(scan, block=Part(COLUMN, "block", size=_columns(scan)), together=together)
    scan = replace(scan, in_keys=scan.size >= LEAST_IN_KEYS and keys_of(instruction) is not None)
    if scan.outer < FEW_ROWS and scan.size >= 4 * PIECE:
        scan = replace(scan, piece=Part(STEP, PIECES, size=PIECE))
    if scan.in_keys:
        return replace(scan, block=Split(STEP, "block", IN_KEYS, "short"))
    types, steps = held_types(instruction, scan), len(instruction.attributes.to_apply.instructions)
    work = len(types) * max(1, steps // 4) * max(1, max(t.bit_width for t in types) // 32)
    return replace(scan, block=Part(ROW, "group", size=max(1, LANES // work)))


def _columns(scan: Scan) -> int:
    """How many columns advance together."""
    cores = target_machine().cores
    fitting = (size for size in SCANNED_COLUMNS if scan.outer * -(-scan.inner // size) >= cores)
    return next(fitting, SCANNED_COLUMNS[-1])


def scan_kernel(instruction: HloInstruction, scan: Scan, given: Schedule | None = None) -> EmittedKernel:
    """The last kernel of a scan, or its only one. `given`: see `window_kernel`."""
    if given is not None:
        block, together = scan_blocks(scan.block, given, scan.piece, scan.together)
        scan = replace(scan, block=block, together=together)
    emit = emit_columns if scan.inner > 1 else emit_extrema if scan.in_keys else emit_rows
    return replace(emit(instruction, scan), under=partial(scan_kernel, instruction, scan))
