"""The loop nest over rows with a vector of neighbouring sums: distances between all pairs of points, and other
reductions along a dimension that all arrays share, while each array lacks some other one.

A reduction along a row of a few elements does little for each result, and summing up the elements of one vector costs
more than the vector saves. Here a vector has the results of neighbours. One kept dimension is the *lanes*. An array
with lanes that is contiguous along the reduced dimension is transposed into a local array, a panel, as elements of the
type in which they are held. It serves all *rows* of a block: another kept dimension, which the array lacks::

    for item in range(lo, hi):                                    batch x blocks of rows x strips of lanes
        for column in range(left, right, 16):
            first = minimum(column, right - 16)                   the last tile may have lanes of the one before
            for t in range((below - top) * 16):
                sums0[t] = c0
            for p0 in range(0, n0, 128):
                panel0[p * 16 + c] = x1[(first + c) * n0 + p0 + p]
                for row in range(top, whole, 6):
                    for p in range(minimum(128, n0 - p0)):
                        factor0 = x0[row * n0 + p0 + p]
                        for c in range(16):
                            sub0 = factor0 - panel0[p * 16 + c]
                            acc0[c] = reduce_add(acc0[c], sub0 * sub0)
                        ...                                       and five other rows
                    sums0[(row - top) * 16 + c] = ...
            for row in range(top, below):
                for c in range(16):
                    out[row * n1 + first + c] = sums0[(row - top) * 16 + c]

LLVM keeps the accumulators of a tile of rows in registers. Sums of floats are made in parts of the panel's depth, since
rounding errors grow with the length of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.passes.patterns import reducer_opcode
from ..loops.expressions import ZERO, Expr, Name, Number, minimum
from ..loops.typing import pointee
from ..loops.writer import cast
from .alignment import roots_of
from .collapse import FusedBody
from .element import CAST
from .kernel import HI, LO, EmittedKernel
from .nest_arg import is_arg_reduction
from .nest_rows import RowNest
from .physical_index import reached_parameters
from .reduce import combined
from .sizes import LITERAL_LIMIT, Index

LANES = 16
"""Neighbouring results in a vector: a register of f32 with AVX-512. LLVM unrolls shorter loops before it makes vectors
of them. No size up to `LITERAL_LIMIT` is an argument, so that fewer lanes are another kernel in any case."""
assert LANES <= LITERAL_LIMIT

_TILE_BYTES = 24
"""Bytes of the accumulators of a tile, for one lane: six rows of f32. With two registers of AVX2 for each, and three
for the operands, all registers are used."""
_DEPTH = 128
"""Elements of the reduced dimension in a panel."""
_BLOCK = 96
"""Rows of a block, a multiple of the rows of every tile: a panel is transposed once for each block. Sums of more rows
would not stay in a first-level cache beside panels."""
_ITEMS = 32
"""Pieces to share between threads."""
_MOST_PANELS = 4

_FOLLOWED = frozenset(
    (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.IOTA, Opcode.REDUCE, Opcode.TUPLE,
     Opcode.GET_TUPLE_ELEMENT)
)  # fmt: skip
"""Besides element-wise ones, the ops with elements that are available for each lane."""

Reached = tuple[HloInstruction, tuple[int, ...]]
"""A parameter, and which dimensions of the domain its own dimensions are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The roles of the domain's dimensions."""

    lanes: int
    rows: int
    panels: tuple[Reached, ...]
    """The operands that are transposed into panels."""
    factors: tuple[Reached, ...]
    """The operands with an element for each row and position, and without lanes."""


def plan_of(fused: FusedBody, reductions: Sequence[HloInstruction]) -> Plan | None:
    """The plan for a fused computation with these reductions of rows; None if it has no such nest."""
    domain, dimensions = reductions[0].operands[0], reductions[0].attributes.dimensions
    rank = domain.shape.rank
    if rank < 3 or dimensions != (rank - 1,) or fused.root_places or fused.parameter_places:
        return None
    sizes, body = domain.shape.dimensions, fused.computation
    if any(r.shape.dimensions == sizes for r in roots_of(body)) or any(map(is_arg_reduction, reductions)):
        return None
    for i in body.instructions:
        is_held = not i.shape.is_array or _is_lane_type(i.shape.element)
        if not is_held or not (i.opcode in _FOLLOWED or has_trait(i.opcode, Trait.ELEMENTWISE)):
            return None
    everywhere = tuple(range(rank))
    arrays = [o for r in reductions for o in r.operands[: len(r.operands) // 2]]
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
    if any(last not in where for _, where in across) or len(across) > _MOST_PANELS:
        return None
    if not any(lanes in where and last in where for _, where in reached):
        return None
    rows = [d for d in range(last) if d != lanes and not any(d in where for _, where in across)]
    if not rows:
        return None
    factors = [(p, where) for p, where in reached if lanes not in where and last in where]
    return Plan(lanes, rows[-1], tuple(across), tuple(factors))


class AcrossNest(RowNest):
    """The nest over rows with a vector of neighbouring results."""

    def __init__(
        self, fused: FusedBody, sharing: Mapping[int, int], reductions: Sequence[HloInstruction], plan: Plan
    ) -> None:
        super().__init__(fused, sharing, reductions)
        self.plan = plan
        self.batch = tuple(d for d in self.kept if d not in (plan.lanes, plan.rows))
        self.sums = {
            reduce: [
                self.writer.local_array(self.writer.fresh("sums"), _BLOCK * LANES, _kind(o.shape.element))
                for o in reduce.operands[: len(reduce.operands) // 2]
            ]
            for reduce in reductions
        }
        self.panels = {
            panel: self.writer.local_array(f"panel{k}", _DEPTH * LANES, _kind(panel[0].shape.element))
            for k, panel in enumerate(plan.panels)
        }
        widest = max(o.shape.element.byte_width for r in reductions for o in r.operands)
        most = max(sum(map(len, (self.sums[r] for r in reductions if self.level[r] == s))) for s in range(self.stages))
        self.tile_rows = max(1, _TILE_BYTES // (max(4, widest) * most))
        self.accumulators = [
            {
                reduce: [self.writer.local_array(self.writer.fresh("acc"), LANES, pointee(s.type)) for s in sums]
                for reduce, sums in self.sums.items()
            }
            for _ in range(self.tile_rows)
        ]
        """The accumulators, by row of the tile, and reduction."""

    def emit(self) -> EmittedKernel:
        """The kernel; the loop over blocks of rows and strips of lanes is sliced."""
        plan, writer, sizes = self.plan, self.writer, self.domain.shape.dimensions
        self.sizes.mark_outer(self.domain, self.kept[0])
        self.sizes.mark_outer(self.domain, plan.rows)
        rows, lanes = sizes[plan.rows], sizes[plan.lanes]
        batch = math.prod(sizes[d] for d in self.batch)
        blocks = max(1, -(-rows // _BLOCK))
        block = -(-rows // blocks)
        tiles = lanes // LANES
        wide = -(-tiles // min(tiles, max(1, -(-_ITEMS // max(1, blocks * batch))))) * LANES
        strips = max(1, lanes // wide)
        arguments = (("block", block), ("blocks", blocks), ("strip", wide), ("strips", strips))
        of_block, of_blocks, of_strip, of_strips = (self.sizes.argument(*each) for each in arguments)
        row_count, lane_count = (self.sizes.of(self.domain, d) for d in (plan.rows, plan.lanes))
        with writer.loop("item", LO, HI) as item:
            number = writer.assign("number", item % of_strips)
            rest = writer.assign("rest", item // of_strips)
            left = writer.assign("left", number * of_strip)
            right = writer.assign("right", left + of_strip)
            with writer.if_(number.eq(of_strips - 1)):
                writer.assign(right, lane_count)
            self.top = writer.assign("top", rest % of_blocks * of_block)
            self.below = writer.assign("below", minimum(self.top + of_block, row_count))
            index: dict[int, Expr] = {}
            above: Expr = rest // of_blocks
            for d in reversed(self.batch):
                size = self.sizes.of(self.domain, d)
                index[d] = writer.let("outer", above % size)
                above = above // size
            with writer.loop("column", left, right, step=LANES) as column:
                self.first = writer.assign("first", minimum(column, right - LANES))
                for stage in range(self.stages):
                    self._stage(stage, index)
                with writer.loop("row", self.top, self.below) as row, self._lanes(index, row) as here:
                    self._know_sums(self.stages, row, here)
                    kept_index = tuple(here[d] for d in self.kept)
                    for output, root in enumerate(self.roots):
                        self.store(output, self.spot(output, kept_index), self.elements.value(root, kept_index))
        return self.finish(batch * blocks * strips)

    @contextmanager
    def _lanes(self, index: Mapping[int, Expr], row: Expr) -> Iterator[dict[int, Expr]]:
        """The loop over the lanes of one row; gives the index there."""
        with self.writer.neighbours("c", LANES) as self.lane:
            yield {**index, self.plan.rows: row, self.plan.lanes: self.first + self.lane}

    def _know_sums(self, stage: int, row: Expr, here: Mapping[int, Expr]) -> None:
        """Look up the results of the reductions before a stage for one row, in all lanes."""
        kept_index = tuple(here[d] for d in self.kept)
        for reduce in self.reductions:
            if self.level[reduce] < stage:
                values = [
                    _held(o.shape.element, sums[self._at(row)])
                    for o, sums in zip(reduce.operands, self.sums[reduce], strict=False)
                ]
                self._publish(reduce, kept_index, values)

    def _at(self, row: Expr) -> Expr:
        """Where the sum of a row is, in the loop over lanes."""
        return (row - self.top) * LANES + self.lane

    def _stage(self, stage: int, index: Mapping[int, Expr]) -> None:
        writer = self.writer
        reductions = [r for r in self.reductions if self.level[r] == stage]
        for reduce in reductions:
            half = len(reduce.operands) // 2
            for init, sums in zip(reduce.operands[half:], self.sums[reduce], strict=True):
                value = _stored(init.shape.element, self.elements.value(init, ()))
                with writer.loop("t", (self.below - self.top) * LANES) as t:
                    writer.store(sums, t, value)
        last = self.domain.shape.rank - 1
        size = self.sizes.of(self.domain, last)
        if isinstance(size, Number):
            self._part(reductions, index, ZERO, size)
            return
        with writer.loop("p0", ZERO, size, step=_DEPTH) as p0:
            self._part(reductions, index, p0, writer.assign("deep", minimum(Number(_DEPTH), size - p0)))

    def _part(self, reductions: Sequence[HloInstruction], index: Mapping[int, Expr], p0: Expr, deep: Expr) -> None:
        """Add the elements of a panel's depth to the sums of the block."""
        writer, last = self.writer, self.domain.shape.rank - 1
        for (parameter, where), panel in self.panels.items():
            with writer.loop("c", LANES) as c, writer.loop("p", deep) as p:
                here = {**index, self.plan.lanes: self.first + c, last: p0 + p}
                value = self.elements.load(parameter, tuple(here[d] for d in where))
                writer.store(panel, p * LANES + c, _stored(parameter.shape.element, value))
        whole = self.top
        if self.tile_rows > 1:
            whole = writer.assign("whole", self.top + (self.below - self.top) // self.tile_rows * self.tile_rows)
            with writer.loop("row", self.top, whole, step=self.tile_rows) as row:
                self._tile(reductions, index, row, self.tile_rows, p0, deep)
        with writer.loop("row", whole, self.below) as row:
            self._tile(reductions, index, row, 1, p0, deep)

    def _tile(
        self, reductions: Sequence[HloInstruction], index: Mapping[int, Expr], row: Name, count: int, p0: Expr,
        deep: Expr,
    ) -> None:  # fmt: skip
        writer, last = self.writer, self.domain.shape.rank - 1
        rows = [row, *(writer.assign(writer.fresh("row"), row + r) for r in range(1, count))]
        accumulators = [{r: mine[r] for r in reductions} for mine in self.accumulators[:count]]
        for i, mine in zip(rows, accumulators, strict=True):
            for reduce, arrays in mine.items():
                for sums, acc in zip(self.sums[reduce], arrays, strict=True):
                    with self._lanes(index, i):
                        start = cast(pointee(sums.type), Number(-0.0)) if _is_sum(reduce) else sums[self._at(i)]
                        writer.store(acc, self.lane, start)
        with writer.loop("p", deep) as p:
            position = p if p0 is ZERO else writer.assign("position", p0 + p)
            for parameter, where in self.plan.factors:
                for i in rows if self.plan.rows in where else rows[:1]:
                    here = {**index, self.plan.rows: i, last: position}
                    at = tuple(here[d] for d in where)
                    factor = writer.assign(writer.fresh("factor"), self.elements.load(parameter, at))
                    writer.know(parameter, factor, at)
            for i, mine in zip(rows, accumulators, strict=True):
                with self._lanes(index, i) as here:
                    here[last] = position
                    for (parameter, where), panel in self.panels.items():
                        value = _held(parameter.shape.element, panel[p * LANES + self.lane])
                        writer.know(parameter, value.at(writer.depth), tuple(here[d] for d in where))
                    self._know_sums(self.level[reductions[0]], i, here)
                    self._combine(mine, tuple(here[d] for d in range(last + 1)))
        for i, mine in zip(rows, accumulators, strict=True):
            for reduce, arrays in mine.items():
                for sums, acc in zip(self.sums[reduce], arrays, strict=True):
                    with self._lanes(index, i):
                        value = acc[self.lane]
                        whole = sums[self._at(i)] + value if _is_sum(reduce) else value
                        writer.store(sums, self._at(i), whole)

    def _combine(self, accumulators: Mapping[HloInstruction, Sequence[Name]], index: Index) -> None:
        """One more element for one row, in all lanes. All are computed before one is written."""
        new: list[tuple[Name, Expr]] = []
        for reduce, arrays in accumulators.items():
            old = [_held(o.shape.element, acc[self.lane]) for o, acc in zip(reduce.operands, arrays, strict=False)]
            values = [self.elements.value(o, index) for o in reduce.operands[: len(arrays)]]
            results = combined(self.elements, reduce, old, values)
            for o, acc, value in zip(reduce.operands, arrays, results, strict=False):
                new.append((acc, _stored(o.shape.element, value)))
        if len(new) > 1:
            new = [(acc, self.writer.let("next", value)) for acc, value in new]
        for acc, value in new:
            self.writer.store(acc, self.lane, value)


def _kind(element: ElementType) -> str:
    """The type of local arrays with elements of a type as they are held."""
    return "uint8" if element is ElementType.PRED else CAST[element]


def _held(element: ElementType, value: Expr) -> Expr:
    return value.ne(0) if element is ElementType.PRED else value


def _stored(element: ElementType, value: Expr) -> Expr:
    return cast("uint8", value) if element is ElementType.PRED else value


def _is_sum(reduce: HloInstruction) -> bool:
    """True for a sum of floats that may be made in parts."""
    return reducer_opcode(reduce.attributes.to_apply) is Opcode.ADD and reduce.operands[0].shape.element in (
        ElementType.F32,
        ElementType.F64,
    )
