"""Choose the loops of a fused computation with reductions, and where they keep accumulators.

    softmax of 1000 x 1000                  `emit/nest_stages.py`: a row at a time, accumulators in variables
    mean of columns of 1000 x 1000          the same file: 1,024 columns at a time, accumulators in the results
    gradient of a layer normalisation       the same file: rows and columns in one nest
    distances of 1000 x 3 to 1000 x 3       `emit/nest_across.py`: vectors of neighbouring results

The steps of a schedule are those of products: `emit/nest_schedule.py` says how. ``python -m benchmarks.schedules``
times kernels with other numbers than those here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ...hlo.element_type import ElementType
from ...hlo.errors import ScheduleError
from ..emit.accumulators import is_inexact_sum
from ..emit.alignment import reductions_of
from ..emit.collapse import FusedBody
from ..emit.nest import loop_variable
from ..emit.nest_across import AcrossNest, Plan, Tiles, plans_of
from ..emit.nest_schedule import (
    COLLECTED,
    Blocks,
    StageBlocks,
    blocks_of,
    outer_loop,
    rows_of,
    search_loop,
    stage_loops,
    suffix,
)
from ..emit.nest_stages import StagedNest
from ..emit.sizes import LITERAL_LIMIT
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Number
from ..machine import target_machine
from ..schedule.steps import Collect, Lanes, Part, Schedule, Split, size_of

COLUMNS = 1024
"""Columns of a block: their accumulators stay in the first-level cache while the loop goes over the rows, and the loop
over columns is long enough for vectors."""
TOGETHER, MOST_OPS = 4, 8
"""Rows that are combined element by element before they are added to the accumulators of columns, and the most
operations for each of their elements: with more, the code for several rows is long. Accumulators are read and written
so many times less often."""

BLOCK_OF_ROW, BLOCK_OF_COLUMN = 4096, 1024
"""Elements of a block of a long sum: of a row, which has some 32 accumulators, in the lanes of vectors; and for one
accumulator, of a column, which mostly gets four elements at a time, or of complex numbers. Blocks so long cost no time;
`tests/numba_backend/test_long_sums.py` has their errors."""
FEWEST_BLOCKS = 4
"""Sums of fewer blocks have one accumulator."""

SEARCHED = 512
"""Elements of a row among which the largest one is looked for at a time: few enough to be searched again, enough that
the last steps of a maximum do not count."""

LANES = 16
"""Neighbouring results in a vector: a register of f32 with AVX-512. LLVM unrolls shorter loops before it makes vectors
of them. No size up to `LITERAL_LIMIT` is an argument, so that fewer lanes are another kernel in any case."""
assert LANES <= LITERAL_LIMIT
TILE_BYTES = 24
"""Bytes of the accumulators of a tile, for one lane: six rows of f32. With two registers of AVX2 for each, and three
for the operands, all registers are used."""
DEPTH = 128
"""Elements of the reduced dimension in a panel. 32 or 512 are as fast, and sums of floats are made in parts of so
many."""
ROWS = 96
"""Rows of a block, a multiple of the rows of every tile: a panel is transposed once for each block. Sums of more rows
would not stay in a first-level cache beside panels."""
ITEMS = 32
"""Pieces to share between threads."""


def reduction_kernel(fused: FusedBody, sharing: Mapping[int, int], given: Schedule | None = None) -> EmittedKernel:
    """The kernel of a canonical fused computation with reductions. `sharing`: see `emit_fusion`. `given`: a schedule in
    the place of the one that is chosen here; ScheduleError if it does not fit."""
    plan = _plan(fused, given)
    if plan is not None:
        across = AcrossNest(fused, sharing, plan)
        tiles = _tiles(across) if given is None else across.tiles_of(given)
        kernel = across.emit_tiles(tiles, _parts(across, tiles))
    else:
        nest = StagedNest(fused, sharing)
        kernel = nest.emit(_blocks(nest) if given is None else blocks_of(nest, given))
    return replace(kernel, under=partial(reduction_kernel, fused, sharing))


def _blocks(nest: StagedNest) -> Blocks:
    """The blocks of a nest's loops."""
    sums = [_block_of_sum(nest, stage) for stage in range(nest.stages + 1)]
    stages = []
    for stage, size in enumerate(sums):
        loops, end = stage_loops(nest, stage), suffix(stage)
        rows = nest.has_main_loop(stage) and _takes_rows_together(nest, stage)
        searches = bool(nest.searched_at(stage))
        stages.append(
            StageBlocks(
                Split(loops[0], f"block{end}", size, "short") if size else None,
                Split(loops[-1], f"rows{end}", TOGETHER, "rest") if rows else None,
                Split(search_loop(nest, stage), f"searched{end}", SEARCHED, "short") if searches else None,
            )
        )
    columns = Split(loop_variable(nest.inner[0]), "start", COLUMNS, "short") if nest.shares_columns else None
    is_wide = any(sums[nest.level[r]] and r.operands[0].shape.element is ElementType.F32 for r in nest.reductions)
    together = _rows_together(nest)
    several = Split(rows_of(nest), "together", together, "rest") if together > 1 else None
    collect = Collect(outer_loop(nest, columns, several), "total", is_wide) if any(sums) else None
    return Blocks(tuple(stages), columns, collect, several)


def _rows_together(nest: StagedNest) -> int:
    """How many long rows are computed at a time. With several stages they stay in a second-level cache, where the next
    stage reads them again. Rows alone are worth it if the array is in no cache, and if they read another array, too: it
    is then read once for all of them."""
    if not rows_of(nest) or not all(nest.is_cheap(stage, MOST_OPS) for stage in range(nest.stages + 1)):
        return 1
    sizes = nest.domain.shape.dimensions
    if sizes[nest.reduced[-1]] <= LITERAL_LIMIT or any(sizes[d] < TOGETHER for d in nest.along[-1:]):
        return 1  # LLVM unrolls a short row
    machine = target_machine()
    row = math.prod(sizes[d] for d in nest.reduced)
    shapes = [p.shape for p in nest.body.parameters]
    arrays = [shape for shape in shapes if shape.num_elements >= nest.domain.shape.num_elements]
    total = sum(shape.num_elements * shape.element.byte_width for shape in arrays)
    is_once = not any(map(nest.has_main_loop, range(1, nest.stages + 1)))
    if not nest.columns:
        is_plain = is_once and not nest.writes_elements(0) and sizes[nest.parts[0]] % TOGETHER == 0
        shares = any(row <= shape.num_elements < nest.domain.shape.num_elements for shape in shapes)
        return TOGETHER if is_plain and shares and total > machine.last_cache // 4 else 1
    if is_once:
        return TOGETHER
    bytes_of_row = total * row // max(nest.domain.shape.num_elements, 1)
    return next((n for n in (TOGETHER, TOGETHER // 2) if n * bytes_of_row <= machine.second_cache // 2), 1)


def _block_of_sum(nest: StagedNest, stage: int) -> int:
    """Into how many indices of the first reduced dimension a long sum is cut for blocks; 0: not at all. A power of two,
    so that there are few different kernels."""
    sums = [r for r in nest.reductions if nest.level[r] == stage and is_inexact_sum(r)]
    if not sums or nest.has_tiles:
        return 0
    sizes = [nest.domain.shape.dimensions[d] for d in nest.inner]
    if nest.inner and not nest.outer:
        sizes[0] = min(sizes[0], COLUMNS)
    if math.prod(sizes) > COLLECTED:
        return 0
    in_variables = not nest.inner and not any(r.shape.element.is_complex for r in sums)
    most = BLOCK_OF_ROW if in_variables else BLOCK_OF_COLUMN
    first, *others = [nest.domain.shape.dimensions[d] for d in nest.reduced] or [1]
    inner = max(math.prod(others), 1)
    if inner * first <= FEWEST_BLOCKS * most:
        return 0
    block = 1 << (max(most // inner, 1).bit_length() - 1)
    return block if first > block and not nest.masks_at(stage) else 0


def _takes_rows_together(nest: StagedNest, stage: int) -> bool:
    """True if several rows are added to the accumulators of columns at a time. LLVM keeps those of a few columns in
    registers."""
    if not nest.inner or isinstance(nest.sizes.of(nest.domain, nest.inner[-1]), Number) or nest.has_tiles:
        return False
    return not nest.writes_elements(stage) and nest.is_cheap(stage, MOST_OPS)


def _plan(fused: FusedBody, given: Schedule | None) -> Plan | None:
    """The plan for vectors of neighbouring results; None if a row at a time is better, or a block of columns.

    A reduction along a row of a few elements does little for each result, and summing up the elements of one vector
    costs more than the vector saves."""
    if given is None:
        sizes = reductions_of(fused.computation).main[0].operands[0].shape.dimensions
        return next((plan for plan in plans_of(fused) if sizes[plan.lanes] > LITERAL_LIMIT), None)
    lanes = next((step.loop for step in given if isinstance(step, Lanes)), None)
    if lanes is None:
        return None
    plans = {loop_variable(plan.lanes): plan for plan in plans_of(fused)}
    if lanes not in plans:
        raise ScheduleError(f"results along {lanes} are no vectors here: {' or '.join(plans) or 'no loop'} has lanes")
    return plans[lanes]


def _tiles(nest: AcrossNest) -> Tiles:
    """The tiles and panels of a product of matrices."""
    row, lane, term = nest.loop_names()
    widest = max(o.shape.element.byte_width for r in nest.reductions for o in r.operands)
    values = [sum(len(r.operands) // 2 for r in nest.reductions_at(stage)) for stage in range(nest.stages)]
    return Tiles(
        Part(row, "block"), Part(lane, "strip"), Split(lane, "column", LANES, "shift"),
        Split(term, "deep", DEPTH, "short"),
        Split(row, "row", max(1, TILE_BYTES // (max(4, widest) * max(values))), "rest"),
    )  # fmt: skip


def _parts(nest: AcrossNest, tiles: Tiles) -> dict[str, int]:
    """How rows and lanes are shared between threads: the length and the number of blocks, and of strips."""
    sizes, plan = nest.domain.shape.dimensions, nest.plan
    rows, lanes = sizes[plan.rows], sizes[plan.lanes]
    batch = math.prod(sizes[d] for d in nest.batch)
    room = min(tiles.block.size, rows) or ROWS
    blocks = max(1, -(-rows // room))
    wide = min(tiles.strip.size, lanes)
    if not wide:
        count = max(1, lanes // size_of(tiles.column))
        wide = -(-count // min(count, max(1, -(-ITEMS // max(1, blocks * batch))))) * size_of(tiles.column)
        wide = min(wide, lanes)
    return {"block": -(-rows // blocks), "blocks": blocks, "strip": wide, "strips": max(1, lanes // wide), "room": room}
