"""Choose the kernels of windows: rows together or one after the other, scans in pieces or not, and into how many pieces
the results may be cut for the instructions that follow.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...hlo.ir import HloInstruction
from ..emit.window import axes_of_reduction, emit_reduce_window, extent_of
from ..emit.window_joint import can_join_rows, emit_joint, longest_row
from ..emit.window_scan import PIECE, Scan, held_types, keys_of, scan_of
from ..emitted_kernel import EmittedKernel
from ..machine import target_machine

GROUPS = 16
"""Rows of results that are computed together: there are so many groups of them at least, for the threads."""

FEW_ROWS = 16
"""With fewer rows in a scan, long ones are cut into pieces, so that there is work for each thread."""
LANES = 8
"""Rows that advance together, where a step is one operation on four bytes. 1024 sums along 1024 f32, held in f64, take
1.95 times as long one after the other as four at a time, and 2.1 times as long eight at a time: LLVM would gather."""
LEAST_IN_KEYS = 64
"""Maxima and minima of longer rows are scanned vector by vector. Several rows at a time take 1.8 times as long with 64
elements, 2.4 times with 128, and as long with 32."""

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


def window_kernel(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a reduce-window that is no scan."""
    group = _group(instruction)
    return emit_joint(instruction, group) if group else emit_reduce_window(instruction)


def pieces_of(instruction: HloInstruction) -> list[int]:
    """Into how many pieces the kernel's range may be cut, the best number first. The instructions that follow may also
    go through whole images. Empty: they are better computed from the whole result."""
    shape, group = instruction.shape, _group(instruction)
    rows, images = math.prod(shape.dimensions[:-1]), shape.dimensions[0]
    extent = -(-_rows(instruction) // group) if group else extent_of(instruction)
    if shape.byte_size < least_bytes() or not extent or rows % extent:
        return []
    least = min(-(-shape.byte_size // piece_bytes()), extent)
    found = [pieces for pieces in range(least, min(extent, 4 * least) + 1) if extent % pieces == 0][:1]
    if images >= FEW_IMAGES and extent % images == 0 and shape.byte_size // images <= image_bytes():
        found.append(images)
    return found


def _rows(instruction: HloInstruction) -> int:
    return math.prod(axis.count for axis in axes_of_reduction(instruction)[:-1])


def _group(instruction: HloInstruction) -> int:
    """How many rows of results are computed together, if all groups of an image have as many then; 0: each by itself.

    Row by row, means of 3 x 3 take 1.8 times as long over images of 28 x 28, and 3.5 times over 7 x 7; maxima of 2 x 2
    over 28 x 28 3.7 times. Rows of 1000 gain nothing.
    """
    if not can_join_rows(instruction):
        return 0
    rows = _rows(instruction)
    fitting = longest_row(instruction.shape.element) // axes_of_reduction(instruction)[-1].size
    most = max(1, min(fitting, -(-rows // GROUPS)))
    of_image = rows // math.gcd(rows, instruction.shape.dimensions[0])
    return next((group for group in range(most, most // 2, -1) if of_image % group == 0), most)


def scan_kernels(instruction: HloInstruction) -> Scan | None:
    """How to scan a cumulative reduce-window; None if it is another one."""
    scan = scan_of(instruction)
    if scan is None or scan.inner > 1:
        return scan
    scan = replace(scan, in_keys=scan.size >= LEAST_IN_KEYS and keys_of(instruction) is not None)
    if scan.outer < FEW_ROWS and scan.size >= 4 * PIECE:
        scan = replace(scan, pieces=-(-scan.size // PIECE))
    types, steps = held_types(instruction, scan), len(instruction.attributes.to_apply.instructions)
    work = len(types) * max(1, steps // 4) * max(1, max(t.bit_width for t in types) // 32)
    return replace(scan, lanes=max(1, LANES // work))
