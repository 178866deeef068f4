"""Choose the loops of a fused computation with reductions, and where they keep accumulators.

    softmax of 1000 x 1000                  `emit/nest_stages.py`: a row at a time, accumulators in variables
    mean of columns of 1000 x 1000          the same file: 1,024 columns at a time, accumulators in the results
    gradient of a layer normalisation       the same file: rows and columns in one nest
    distances of 1000 x 3 to 1000 x 3       `emit/nest_across.py`: vectors of neighbouring results

Each stage of a nest has a schedule of its own, with the steps of products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...hlo.element_type import ElementType
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..emit.accumulators import is_inexact_sum
from ..emit.alignment import reductions_of, roots_of
from ..emit.collapse import FusedBody
from ..emit.element import CAST
from ..emit.nest import loop_variable
from ..emit.nest_across import AcrossNest, Plan, Reached
from ..emit.nest_arg import is_arg_reduction
from ..emit.nest_stages import StagedNest
from ..emit.physical_index import reached_parameters
from ..emit.sizes import LITERAL_LIMIT
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Number
from ..schedule.steps import Accumulate, Collect, Lanes, Pack, Schedule, Split, Step, Unroll

COLUMNS = 1024
"""Columns of a block: their accumulators stay in the first-level cache while the loop goes over the rows. Blocks of 256
take 1.24 times as long for 1000 x 1000; those of 4,096 0.7 to 1.0 of the time for 300 x 20000, which is larger than the
caches, and 1.1 times as long for 100 x 5000."""
TOGETHER, MOST_OPS = 4, 8
"""Rows that are combined element by element before they are added to the accumulators of columns, and the most
operations for each of their elements: with more, the code for several rows is long. Row by row, a sum of 300 x 20000
takes 1.55 times as long; with two rows, one of 1000 x 1000 1.08 times."""

BLOCK_OF_ROW, BLOCK_OF_COLUMN = 4096, 1024
"""Elements of a block of a long sum: of a row, which has some 32 accumulators, in the lanes of vectors; and for one
accumulator, of a column, which mostly gets four elements at a time, or of complex numbers. Blocks cost no time (0.98 to
1.02 of that without); `tests/numba_backend/test_long_sums.py` has their errors."""
FEWEST_BLOCKS = 4
"""Sums of fewer blocks have one accumulator."""

LANES = 16
"""Neighbouring results in a vector: a register of f32 with AVX-512. LLVM unrolls shorter loops before it makes vectors
of them. No size up to `LITERAL_LIMIT` is an argument, so that fewer lanes are another kernel in any case. A row at a
time takes 1.6 times as long for the distances of 200 x 500 to 200 x 500, 2.1 times for 300 x 64 to 300 x 64."""
assert LANES <= LITERAL_LIMIT
TILE_BYTES = 24
"""Bytes of the accumulators of a tile, for one lane: six rows of f32. With two registers of AVX2 for each, and three
for the operands, all registers are used. One row takes 1.35 to 2.5 times as long, three rows 1.0 to 1.3 times, and
eight 1.0 to 1.06 times."""
DEPTH = 128
"""Elements of the reduced dimension in a panel: as fast as 32 or 512 (0.97 to 1.02), and sums of floats are made in
parts of so many."""
ROWS = 96
"""Rows of a block, a multiple of the rows of every tile: a panel is transposed once for each block. Sums of more rows
would not stay in a first-level cache beside panels. Blocks of 24 rows take 0.9 of the time for points with three
coordinates, and 1.3 to 1.5 times as long for 64 and 500; of 384 1.16 times as long for three, and 0.9 for more."""
ITEMS = 32
"""Pieces to share between threads."""
MOST_PANELS = 4


def reduction_kernel(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """The kernel of a canonical fused computation with reductions. `sharing`: see `emit_fusion`."""
    plan = _plan(fused)
    if plan is not None:
        across = AcrossNest(fused, sharing, plan, _parts(fused, plan))
        return across.emit([_across(across)])
    nest = StagedNest(fused, sharing)
    return nest.emit([_of_stage(nest, stage) for stage in range(nest.stages + 1)])


def _of_stage(nest: StagedNest, stage: int) -> Schedule:
    """The schedule of one stage."""
    names = [loop_variable(d) for d in range(nest.domain.shape.rank)]
    at = names[nest.outer[-1]] if nest.outer else ""
    steps: list[Step] = []
    block = _block_of_sum(nest, stage)
    if nest.inner and (block or not nest.outer) and not nest.tiles_of_columns():  # one block, if there are outer loops
        at = "start"
        steps.append(Split(names[nest.inner[0]], at, COLUMNS, "short"))
    if block:
        steps += [Split(names[nest.reduced[0]], "block", block, "short"), Collect(at, "total")]
    if _takes_rows_together(nest, stage):
        last = names[nest.reduced[-1]]
        steps += [Split(last, "rows", TOGETHER, "rest"), Unroll(last)]
    return (*steps, Accumulate(at))


def _block_of_sum(nest: StagedNest, stage: int) -> int:
    """Into how many indices of the first reduced dimension a long sum is cut for blocks; 0: not at all. A power of two,
    so that there are few different kernels."""
    sums = [r for r in nest.reductions if nest.level[r] == stage and is_inexact_sum(r)]
    if not sums or nest.has_tiles:
        return 0
    sizes = [nest.domain.shape.dimensions[d] for d in nest.inner]
    if nest.inner and not nest.outer:
        sizes[0] = min(sizes[0], COLUMNS)
    if math.prod(sizes) > COLUMNS:
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


_FOLLOWED = frozenset(
    (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.IOTA, Opcode.REDUCE, Opcode.TUPLE,
     Opcode.GET_TUPLE_ELEMENT)
)  # fmt: skip
"""Besides element-wise ones, the ops with elements that are available for each lane."""


def _plan(fused: FusedBody) -> Plan | None:
    """The plan for vectors of neighbouring results; None if a row at a time is better, or a block of columns.

    A reduction along a row of a few elements does little for each result, and summing up the elements of one vector
    costs more than the vector saves."""
    body = fused.computation
    reductions = reductions_of(body)
    domain = reductions.main[0].operands[0].shape
    sizes, rank = domain.dimensions, domain.rank
    is_row = rank > 2 and reductions.main[0].attributes.dimensions == (rank - 1,) and not reductions.columns
    if not is_row or fused.root_places or fused.parameter_places:
        return None
    if any(r.shape.dimensions == sizes for r in roots_of(body)) or any(map(is_arg_reduction, reductions.main)):
        return None
    for i in body.instructions:
        is_held = not i.shape.is_array or _is_lane_type(i.shape.element)
        if not is_held or not (i.opcode in _FOLLOWED or has_trait(i.opcode, Trait.ELEMENTWISE)):
            return None
    everywhere = tuple(range(rank))
    arrays = [o for r in reductions.main for o in r.operands[: len(r.operands) // 2]]
    reached = [*reached_parameters([(array, everywhere) for array in arrays])]
    for lanes in range(rank - 2, -1, -1):
        if sizes[lanes] > LITERAL_LIMIT and (plan := _plan_along(lanes, rank, reached)):
            return plan
    return None


def _is_lane_type(element: ElementType) -> bool:
    return element is ElementType.PRED or (element in CAST and not element.is_small and not element.is_complex)


def _plan_along(lanes: int, rank: int, reached: Sequence[Reached]) -> Plan | None:
    last = rank - 1
    across = [(p, where) for p, where in reached if lanes in where and where[-1] != lanes]
    if any(last not in where for _, where in across) or len(across) > MOST_PANELS:
        return None
    if not any(lanes in where and last in where for _, where in reached):
        return None
    rows = [d for d in range(last) if d != lanes and not any(d in where for _, where in across)]
    if not rows:
        return None
    factors = [(p, where) for p, where in reached if lanes not in where and last in where]
    return Plan(lanes, rows[-1], tuple(across), tuple(factors))


def _across(nest: AcrossNest) -> Schedule:
    """The schedule of vectors of neighbouring results: the tiles and panels of a product of matrices."""
    plan, reductions = nest.plan, nest.reductions
    row, lane, term = (loop_variable(d) for d in (plan.rows, plan.lanes, nest.reduced[0]))
    widest = max(o.shape.element.byte_width for r in reductions for o in r.operands)
    values = [sum(len(r.operands) // 2 for r in reductions if nest.level[r] == stage) for stage in range(nest.stages)]
    return (
        Split(row, "block", ROWS, "short"),
        Split(lane, "column", LANES, "shift"), Lanes(lane),
        Split(term, "deep", DEPTH, "short"),
        *[Pack(p.name, f"panel{k}", "deep", ((term, DEPTH), (lane, LANES))) for k, (p, _) in enumerate(plan.panels)],
        Split(row, "row", max(1, TILE_BYTES // (max(4, widest) * max(values))), "rest"), Unroll(row),
        Collect("column", "sums"), Accumulate("row"),
    )  # fmt: skip


def _parts(fused: FusedBody, plan: Plan) -> dict[str, int]:
    """How rows and lanes are shared between threads: the length and the number of blocks, and of strips."""
    sizes = reductions_of(fused.computation).main[0].operands[0].shape.dimensions
    rows, lanes = sizes[plan.rows], sizes[plan.lanes]
    batch = math.prod(size for d, size in enumerate(sizes[:-1]) if d not in (plan.rows, plan.lanes))
    blocks = max(1, -(-rows // ROWS))
    tiles = lanes // LANES
    wide = -(-tiles // min(tiles, max(1, -(-ITEMS // max(1, blocks * batch))))) * LANES
    return {"block": -(-rows // blocks), "blocks": blocks, "strip": wide, "strips": max(1, lanes // wide)}
