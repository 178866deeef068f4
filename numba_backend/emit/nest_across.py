"""The loop nest over rows with a vector of neighbouring sums: distances between all pairs of points, and other
reductions along a dimension that all arrays share, while each array lacks some other one.

A vector has the results of neighbours. One kept dimension is the *lanes*. An array with lanes that is contiguous along
the reduced dimension is transposed into a local array, a panel, as elements of the type in which they are held. It
serves all *rows* of a block: another kept dimension, which the array lacks. The schedule is that of a product of
matrices (`policy/reductions.py`)::

    for item in range(lo, hi):                                    Parallel: batch, blocks (Part), strips (Part)
        for column in range(left, right, 16):                     Split("j", "column", 16), Lanes("j")
            first = minimum(column, right - 16)                   "shift"
            for row in range(top, below):                         Collect("column", "sums")
                for c in range(16):
                    sums0[(row - top) * 16 + c] = c0
            for p0 in range(0, n0, 128):                          Split("p", "deep", 128, "short")
                panel0[p * 16 + c] = x1[(first + c) * n0 + p0 + p]
                for row in range(top, whole, 6):                  Split("i", "row", 6, "rest"), Unroll("i")
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ...hlo.element_type import ElementType
from ...hlo.errors import ScheduleError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ...hlo.passes.patterns import reducer_opcode
from ...hlo.support.records import dataclass
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ONE, ZERO, Expr, Name, Number, minimum
from ..loops.writer import cast
from ..schedule.algorithm import Access, Dimension
from ..schedule.nest import MOST_SUMS, check_steps, loops_of, plain_algorithm
from ..schedule.steps import (
    Accumulate,
    Collect,
    Lanes,
    Order,
    Pack,
    Parallel,
    Part,
    Schedule,
    Split,
    Tail,
    Unroll,
    size_of,
)
from .accumulators import Accumulators, Cell, is_inexact_sum
from .alignment import reductions_of
from .collapse import FusedBody
from .element import CAST
from .nest import loop_variable
from .nest_arg import is_arg_reduction
from .nest_schedule import Blocks, equations
from .nest_stages import StagedNest
from .physical_index import reached_parameters
from .sizes import Index

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


MOST_PANELS = 4
_FOLLOWED = frozenset(
    (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.IOTA, Opcode.REDUCE, Opcode.TUPLE,
     Opcode.GET_TUPLE_ELEMENT)
)  # fmt: skip
"""Besides element-wise ones, the ops with elements that are available for each lane."""


def plans_of(fused: FusedBody) -> list[Plan]:
    """The plans for vectors of neighbouring results, one for each dimension that can have lanes, the last one first."""
    body = fused.computation
    reductions = reductions_of(body)
    domain = reductions.main[0].operands[0].shape
    sizes, rank = domain.dimensions, domain.rank
    is_row = rank > 2 and reductions.main[0].attributes.dimensions == (rank - 1,) and not reductions.columns
    if not is_row or fused.root_places or fused.parameter_places:
        return []
    if any(r.shape.dimensions == sizes for r in body.roots) or any(map(is_arg_reduction, reductions.main)):
        return []
    for i in body.instructions:
        is_held = not i.shape.is_array or _is_lane_type(i.shape.element)
        if not is_held or not (i.opcode in _FOLLOWED or has_trait(i.opcode, Trait.ELEMENTWISE)):
            return []
    everywhere = tuple(range(rank))
    arrays = [o for r in reductions.main for o in r.operands[: len(r.operands) // 2]]
    reached = [*reached_parameters([(array, everywhere) for array in arrays])]
    found = [_plan_along(lanes, rank, reached) for lanes in range(rank - 2, -1, -1)]
    return [plan for plan in found if plan is not None]


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


@dataclass(frozen=True, slots=True)
class Tiles:
    """The blocks of a nest with lanes."""

    block: Part
    """Of rows, which share a panel: threads share the blocks ..."""
    strip: Part
    """... and the strips of lanes."""
    column: Split
    deep: Split
    """Of the reduced dimension: the elements of a panel."""
    row: Split
    """Rows whose accumulators are in registers."""


class InLanes(Accumulators):
    """Accumulators in local arrays, one for each value of a reduction: of the lanes of one row, or of all rows of a
    block."""

    def __init__(self, nest: AcrossNest, stem: str, rows: int) -> None:
        super().__init__(nest)
        self.across, self.rows = nest, rows
        self.arrays: dict[HloInstruction, list[Name]] = {
            reduce: [
                self.writer.local_array(self.writer.fresh(stem), rows * nest.lanes, _kind(o.shape.element))
                for o in reduce.operands[: len(reduce.operands) // 2]
            ]
            for reduce in nest.reductions
        }

    def cells(self, reduce: HloInstruction, at: Index) -> list[Cell]:
        place: Expr = self.across.lane
        if self.rows > 1:
            place = (at[self.across.kept.index(self.across.plan.rows)] - self.across.top) * self.across.lanes + place
        return [
            Cell(_held(o.shape.element, array[place]), partial(self._store, o.shape.element, array, place))
            for o, array in zip(reduce.operands, self.arrays[reduce], strict=False)
        ]

    def _store(self, element: ElementType, array: Name, place: Expr, value: Expr) -> None:
        self.writer.store(array, place, _stored(element, value))

    def know(self, reduce: HloInstruction, at: Index) -> None:
        self.publish(reduce, [cell.value for cell in self.cells(reduce, at)], at)


class AcrossNest(StagedNest):
    """The nest over rows with a vector of neighbouring results."""

    accumulators: InLanes

    def __init__(self, fused: FusedBody, sharing: Mapping[int, int], plan: Plan) -> None:
        super().__init__(fused, sharing)
        self.plan, self.blocks = plan, Blocks(())
        self.inner: tuple[int, int] = (plan.rows, plan.lanes)
        self.batch: tuple[int, ...] = tuple(d for d in self.kept if d not in self.inner)
        self.sizes.mark_outer(self.domain, plan.rows)

    def loop_names(self) -> tuple[str, str, str]:
        """The names of the loops over rows, lanes, and the reduced dimension."""
        return loop_variable(self.plan.rows), loop_variable(self.plan.lanes), loop_variable(self.reduced[0])

    def steps(self, tiles: Tiles) -> Schedule:
        """The whole schedule with these blocks. All stages go through the same ones."""
        row, lane, term = self.loop_names()
        batch = [loop_variable(d) for d in self.batch]
        block, strip, column, deep, tile = (
            x.loop if isinstance(x, Part) else x.outer
            for x in (tiles.block, tiles.strip, tiles.column, tiles.deep, tiles.row)
        )
        layout = ((term, size_of(tiles.deep)), (lane, size_of(tiles.column)))
        return (
            tiles.strip, tiles.block, tiles.column, tiles.deep, tiles.row,
            Order(*batch, block, strip, column, deep, tile, term, row, lane), Unroll(row), Lanes(lane),
            *[Pack(f"x{p.attributes.number}", f"panel{k}", deep, layout) for k, (p, _) in enumerate(self.plan.panels)],
            Collect(column, "sums"), Accumulate(tile, adds=True), Parallel((*batch, block, strip)),
        )  # fmt: skip

    def tiles_of(self, given: Schedule) -> Tiles:
        """The blocks of a given schedule. ScheduleError if it does not fit, or would change results."""
        row, lane, term = self.loop_names()
        rank = self.domain.shape.rank
        dimensions = [Dimension(loop_variable(d), Name("size"), d in self.reduced) for d in range(rank)]
        strides = tuple((loop_variable(d), ONE) for d in range(rank))
        operands = [
            Access(f"x{p.attributes.number}", Name("x", "float32*"), tuple(strides[d] for d in where))
            for p, where in self.plan.panels
        ]
        loops_of(plain_algorithm(dimensions, operands), given)

        def split(loop: str, tail: Tail) -> Split:
            for step in given:
                if isinstance(step, Split) and step.loop == loop and size_of(step):
                    return replace(step, tail=tail)
            raise ScheduleError(f"with lanes along {lane} there is a Split of {loop}")

        def part(dimension: str) -> Part:
            for step in given:
                if isinstance(step, Part) and step.dimension == dimension:
                    return step
            raise ScheduleError(f"with lanes along {lane} there is a Part of {dimension}")

        tiles = Tiles(part(row), part(lane), split(lane, "shift"), split(term, "short"), split(row, "rest"))
        check_steps(given, self.steps(tiles))
        return tiles

    def emit_tiles(self, tiles: Tiles, parts: Mapping[str, int]) -> EmittedKernel:
        """The kernel. `parts`: how the sliced loop is cut, the values of the parameters block, blocks, strip and
        strips; and `room`, the most rows of a block. ScheduleError if an array is too small for the blocks."""
        local = self.writer.local_array
        self.lanes, self.depth, self.tile_rows = map(size_of, (tiles.column, tiles.deep, tiles.row))
        if parts["strip"] < self.lanes:
            raise ScheduleError(
                f"{tiles.column.outer} shifts blocks of {self.lanes}, and there are but {parts['strip']} elements"
            )
        if self.tile_rows > MOST_SUMS:
            raise ScheduleError(f"{self.tile_rows} sums are written out, {MOST_SUMS} at most")
        self.cut = parts
        self.accumulators = InLanes(self, "sums", parts["room"])
        self.panels: dict[Reached, Name] = {
            panel: local(f"panel{k}", self.depth * self.lanes, _kind(panel[0].shape.element))
            for k, panel in enumerate(self.plan.panels)
        }
        self.tile: list[InLanes] = [InLanes(self, "acc", 1) for _ in range(self.tile_rows)]
        """The accumulators, by row of the tile."""
        self.write()
        return self.finish(self.extent, notes=(equations(self), *self.steps(tiles)))

    @contextmanager
    def sliced(self) -> Iterator[Mapping[int, Expr]]:
        """The sliced loop over blocks of rows and strips of lanes, and the loop over the columns of a strip."""
        plan, writer, sizes = self.plan, self.writer, self.domain.shape.dimensions
        self.extent: int = math.prod(sizes[d] for d in self.batch) * self.cut["blocks"] * self.cut["strips"]
        block, blocks, strip, strips = (
            self.sizes.argument(name, self.cut[name]) for name in ("block", "blocks", "strip", "strips")
        )
        row_count, lane_count = (self.sizes.of(self.domain, d) for d in (plan.rows, plan.lanes))
        with writer.loop("item", LO, HI) as item:
            number = writer.assign("number", item % strips)
            rest = writer.assign("rest", item // strips)
            left = writer.assign("left", number * strip)
            right = writer.assign("right", left + strip)
            with writer.if_(number.eq(strips - 1)):
                writer.assign(right, lane_count)
            self.top: Name = writer.assign("top", rest % blocks * block)
            self.below: Name = writer.assign("below", minimum(self.top + block, row_count))
            index: dict[int, Expr] = {}
            above: Expr = rest // blocks
            for d in reversed(self.batch):
                size = self.sizes.of(self.domain, d)
                index[d] = writer.let("outer", above % size)
                above = above // size
            with writer.loop("column", left, right, step=self.lanes) as column:
                self.first: Name = writer.assign("first", minimum(column, right - self.lanes))
                yield index

    @contextmanager
    def inner_loops(self, level: int) -> Iterator[Mapping[int, Expr]]:
        with self.writer.loop("row", self.top, self.below) as row, self._lanes(row) as index:
            yield index

    @contextmanager
    def _lanes(self, row: Expr) -> Iterator[dict[int, Expr]]:
        """The loop over the lanes of one row."""
        with self.writer.neighbours("c", self.lanes) as self.lane:
            yield {self.plan.rows: row, self.plan.lanes: self.first + self.lane}

    def write_stage(self, stage: int, rows: Sequence[Mapping[int, Expr]], level: int) -> None:
        (outer,) = rows
        reductions = [r for r in self.reductions if self.level[r] == stage]
        (last,) = self.reduced
        size = self.sizes.of(self.domain, last)
        if not reductions:
            return
        if isinstance(size, Number) and size.value <= self.depth:
            self._part(reductions, outer, ZERO, size)
            return
        with self.writer.loop("p0", ZERO, size, step=self.depth) as p0:
            deep = self.writer.assign("deep", minimum(Number(self.depth), size - p0))
            self._part(reductions, outer, p0, deep)

    def _part(self, reductions: Sequence[HloInstruction], outer: Mapping[int, Expr], p0: Expr, deep: Expr) -> None:
        """Add the elements of a panel's depth to the sums of the block."""
        writer, (last,), count = self.writer, self.reduced, self.tile_rows
        for (parameter, where), panel in self.panels.items():
            with writer.loop("c", self.lanes) as c, writer.loop("p", deep) as p:
                here = {**outer, self.plan.lanes: self.first + c, last: p0 + p}
                value = self.elements.load(parameter, tuple(here[d] for d in where))
                writer.store(panel, p * self.lanes + c, _stored(parameter.shape.element, value))
        whole = self.top
        if count > 1:
            whole = writer.assign("whole", self.top + (self.below - self.top) // count * count)
            with writer.loop("row", self.top, whole, step=count) as row:
                rows = [row, *(writer.assign(writer.fresh("row"), row + r) for r in range(1, count))]
                self._tile(reductions, outer, rows, p0, deep)
        with writer.loop("row", whole, self.below) as row:
            self._tile(reductions, outer, [row], p0, deep)

    def _tile(
        self, reductions: Sequence[HloInstruction], outer: Mapping[int, Expr], rows: Sequence[Name], p0: Expr,
        deep: Expr,
    ) -> None:  # fmt: skip
        writer, (last,) = self.writer, self.reduced
        self._move(reductions, outer, rows, self._begin)
        with writer.loop("p", deep) as p:
            position = p if p0 is ZERO else writer.assign("position", p0 + p)
            for parameter, where in self.plan.factors:
                for i in rows if self.plan.rows in where else rows[:1]:
                    here = {**outer, self.plan.rows: i, last: position}
                    at = tuple(here[d] for d in where)
                    factor = writer.assign(writer.fresh("factor"), self.elements.load(parameter, at))
                    writer.know(parameter, factor, at)
            for i, accumulators in zip(rows, self.tile, strict=False):
                with self._lanes(i) as inner:
                    here = {**outer, **inner, last: position}
                    for (parameter, where), panel in self.panels.items():
                        value = _held(parameter.shape.element, panel[p * self.lanes + self.lane])
                        writer.know(parameter, value.at(writer.depth), tuple(here[d] for d in where))
                    kept_index = self._known(here, self.level[reductions[0]], all_columns=False)
                    accumulators.accumulate(reductions, [self._index(here)], kept_index)
        self._move(reductions, outer, rows, self._end)

    def _move(
        self, reductions: Sequence[HloInstruction], outer: Mapping[int, Expr], rows: Sequence[Name],
        move: Callable[[HloInstruction, Cell, Cell], None],
    ) -> None:  # fmt: skip
        """Move accumulators between the arrays of a block and of a tile."""
        for i, tile in zip(rows, self.tile, strict=False):
            for reduce in reductions:
                with self._lanes(i) as inner:
                    here = {**outer, **inner}
                    at = tuple(here[d] for d in self.kept)
                    for total, own in zip(self.accumulators.cells(reduce, at), tile.cells(reduce, at), strict=True):
                        move(reduce, total, own)

    def _begin(self, reduce: HloInstruction, total: Cell, own: Cell) -> None:
        own.write(cast(CAST[reduce.operands[0].shape.element], Number(-0.0)) if _is_sum(reduce) else total.value)

    def _end(self, reduce: HloInstruction, total: Cell, own: Cell) -> None:
        total.write(total.value + own.value if _is_sum(reduce) else own.value)


def _kind(element: ElementType) -> str:
    """The type of local arrays with elements of a type as they are held."""
    return "uint8" if element is ElementType.PRED else CAST[element]


def _held(element: ElementType, value: Expr) -> Expr:
    return value.ne(0) if element is ElementType.PRED else value


def _stored(element: ElementType, value: Expr) -> Expr:
    return cast("uint8", value) if element is ElementType.PRED else value


def _is_sum(reduce: HloInstruction) -> bool:
    """True for a sum of floats that may be made in parts."""
    return reducer_opcode(reduce.attributes.to_apply) is Opcode.ADD and is_inexact_sum(reduce) and (
        not reduce.shape.element.is_complex
    )
