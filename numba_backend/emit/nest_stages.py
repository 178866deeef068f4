"""Write the loops of a nest with reductions, as the schedules of its stages say.

Dimensions of the domain that are kept are outside of the loops of all stages, or inside of them. If none is inside, as
where rows are reduced, accumulators are variables; a softmax is three loops over a row::

    for i in range(lo, hi):
        acc0 = maximum_key(c0)
        for j in range(n0):
            acc0 = maximum(acc0, maximum_key(x0[i * n0 + j]))
        found0 = from_key(acc0)
        acc1 = c1
        for j in range(n0):
            exp0 = exp(x0[i * n0 + j] - found0)
            out[i * n0 + j] = exp0
            acc1 = reduce_add(acc1, exp0)
        for j in range(n0):
            out[i * n0 + j] = out[i * n0 + j] / acc1

Where columns are reduced, accumulators are in the results, for a block of columns::

    for start in range(lo, hi, 1024):                               Split("j", "start", 1024, "short")
        stop = minimum(start + 1024, hi)
        for i in range(start, stop):
            out[i] = c0
        for i in range(0, n1 - 3, 4):                               Split("i", "rows", 4, "rest"), Unroll("i")
            for j in range(start, stop):
                out[j] = reduce_add(out[j], ...)                    in pairs
        for i in range(n1 // 4 * 4, n1):
            for j in range(start, stop):
                out[j] = reduce_add(out[j], x0[i * n0 + j])

Between two stages, values are computed that follow from complete reductions. Inside loops read them from the results.

A long sum is made in blocks, whose sums are added up in f64 (`accumulators.py`)::

    total0 = float64(acc0)                                          Split("j", "block", 4096, "short")
    acc0 = c1
    for start0 in range(0, n0, 4096):                               Collect("i", "total")
        for j in range(start0, minimum(start0 + 4096, n0)):
            acc0 = reduce_add(acc0, x0[i * n0 + j])
        total0 = reduce_add(total0, float64(acc0))
        acc0 = c1
    acc0 = float32(total0)

Rows may be reduced beside columns, as for the gradient of a layer normalisation. Then rows come in parts. Each part has
accumulators of its own for the columns, in an output, so that threads share the parts. Columns are accumulated in the
first loop of a row that computes their elements::

    for i in range(lo, hi):
        for j in range(n1):
            out1[i * n1 + j] = c0
        for j in range(n0):
            acc0 = c0
            for k in range(n1):
                out1[i * n1 + k] = reduce_add(out1[i * n1 + k], x0[(i * n0 + j) * n1 + k])
                acc0 = reduce_add(acc0, x0[(i * n0 + j) * n1 + k])
            out0[i * n0 + j] = acc0

Results do not depend on the number of threads: the program says which rows are a part.

Several rows may be computed at a time. The accumulators of columns are then read and written once for all of them, and
a processor reads several rows of a large array faster than one::

    for i in range(lo * 4, hi * 4, 4):                              Split("i", "together", 4, "rest"), Unroll("i")
        row0 = i + 1; ...
        acc0 = c0; ...
        for j in range(n0):
            acc0 = reduce_add(acc0, x0[i * n0 + j])
            acc1 = reduce_add(acc1, x0[row0 * n0 + j]); ...
        out[i] = acc0; ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...hlo.analyses.bands import NOTHING, Band
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import ZERO, Expr, Number, maximum, minimum
from ..loops.writer import cast
from ..schedule.steps import size_of
from .accumulators import Accumulators, Cell, InResults, InVariables, is_inexact_sum, neutral
from .collapse import FusedBody
from .nest import loop_variable
from .nest_arg import ArgReduction
from .nest_reduce import ReductionNest
from .nest_schedule import Blocks, equations, room_of, steps_of
from .physical_index import LoopDigit, TileLoops
from .reduce import combined
from .sizes import Index

_MASKED_STEP = 64
"""Loops over what a mask lets through begin and end at multiples of this many columns: whole vectors."""


class StagedNest(ReductionNest):
    """The nest over the stages of reductions."""

    def __init__(self, fused: FusedBody, sharing: Mapping[int, int]) -> None:
        super().__init__(fused, sharing)
        if sliced := (*self.parts, *self.inner):
            self.sizes.mark_outer(self.domain, sliced[0])
        self.sizes.mark_loops(self.domain, (*self.along, *self.reduced, *self.inner))
        self.accumulators: Accumulators = InResults(self) if self.inner else InVariables(self)
        self.of_columns: InResults = InResults(self)
        """The accumulators of reductions of columns beside rows."""
        self._accumulated = {k for reduce in self.columns for k in self.of_columns.outputs(reduce)}
        """The outputs that are accumulators."""
        if isinstance(self.accumulators, InResults):
            self._accumulated |= {k for reduce in self.reductions for k in self.accumulators.outputs(reduce)}
        self._block: tuple[Expr, Expr] | None = None
        """The bounds of the first inner dimension, in the loop over blocks of it."""
        self._tiles: tuple[TileLoops, Sequence[LoopDigit]] | None = None
        """The loops over the columns of one tile, in the sliced loop over tiles of columns."""

    def emit(self, blocks: Blocks) -> EmittedKernel:
        """The kernel whose loops have these blocks."""
        self.blocks = blocks
        self.write()
        return self.finish(self.extent, notes=(equations(self), *steps_of(self, blocks)))

    def write(self) -> None:
        """Write all loops."""
        for parts in self._parts():
            level = 1 if self.parts or self._tiles else 0
            for part in parts if self.columns else ():
                with self.loops_over(self.reduced, level) as column:
                    for reduce in self.columns:
                        self.of_columns.begin(reduce, self._column({**part, **column}))
            for rows in self._rows(level):
                with self._blocks_of_columns():
                    every = [{**part, **row} for part in parts for row in rows]
                    self.write_stages(every, level + len(self.along))

    def _parts(self) -> Iterator[Sequence[Mapping[int, Expr]]]:
        """The sliced loop; gives what one iteration takes: one index, or several rows that have no columns beside
        them. There are whole groups of these: a row that is left over might be added up in another order."""
        together = 0 if self.columns else size_of(self.blocks.together)
        if not together:
            with self.sliced() as index:
                yield [index]
            return
        ((d,), name, writer) = self.parts, loop_variable(0), self.writer
        self.extent = self.domain.shape.dimensions[d] // together
        with writer.loop(name, LO * together, HI * together, step=together) as first:
            rest = [writer.let("row", first + k) for k in range(1, together)]
            yield [{d: each} for each in (first, *rest)]

    def _rows(self, level: int) -> Iterator[Sequence[Mapping[int, Expr]]]:
        """The loops over the rows that have columns beside them; gives the rows that all stages take at once."""
        if self.columns and size_of(self.blocks.together):
            yield from self._several(self.along, level, None, size_of(self.blocks.together))
        else:
            with self.loops_over(self.along, level) as row:
                yield [row]

    @contextmanager
    def sliced(self) -> Iterator[Mapping[int, Expr]]:
        """The sliced loop, over all indices of the parts; if all kept dimensions are inside of the stages' loops, over
        blocks of columns, or over tiles of them::

            for i_0 in range(lo, hi):
                for i_1 in range(minimum(128, n0 - i_0 * 128)):
                    out[...] = c0
                for i in range(n1):
                    ...
        """
        sizes = self.domain.shape.dimensions
        tiles = self.tiles_of_columns()
        self.extent = math.prod(sizes[d] for d in self.parts)
        if self.parts or not self.inner:
            with self.sliced_loops(self.parts) as index:
                yield index
        elif tiles:
            loops = self.tile_loops(self.domain, tiles, {self.inner[0]: loop_variable(0)})
            self.extent, self._tiles = loops.number(tiles[0]), (loops, tiles[1:])
            with self.writer.loop(f"{loop_variable(0)}_0", LO, HI) as first:
                loops.set(tiles[0], first)
                yield {}
        else:
            self.extent = sizes[self.inner[0]]
            with self._block_of_columns(LO, HI):
                yield {}

    @contextmanager
    def _blocks_of_columns(self) -> Iterator[None]:
        """The loop over blocks of columns, inside of others, if there are such blocks."""
        if self.blocks.columns is None or self._block is not None:
            yield
            return
        with self._block_of_columns(ZERO, self.sizes.of(self.domain, self.inner[0])):
            yield

    @contextmanager
    def _block_of_columns(self, first: Expr, end: Expr) -> Iterator[None]:
        size = size_of(self.blocks.columns)
        with self.writer.loop("start", first, end, step=size) as start:
            self._block = start, self.writer.assign("stop", minimum(start + size, end))
            yield

    @contextmanager
    def sliced_loops(self, dimensions: Sequence[int]) -> Iterator[Mapping[int, Expr]]:
        """The sliced loop over all indices of some dimensions: one variable, or one that is split into several
        indices."""
        if not dimensions:
            yield {}
            return
        with self.writer.loop(loop_variable(0), LO, HI) as first:
            index: dict[int, Expr] = {}
            rest: Expr = first
            for d in reversed(dimensions[1:]):
                size = self.sizes.of(self.domain, d)
                index[d] = self.writer.let("row", rest % size)
                rest = rest // size
            index[dimensions[0]] = self.writer.let("row", rest) if index else first
            yield index

    @contextmanager
    def inner_loops(self, level: int) -> Iterator[Mapping[int, Expr]]:
        """The loops over the kept dimensions inside of the stages' loops."""
        if self._tiles:
            loops, tiles = self._tiles
            with loops.over(tiles):
                yield {self.inner[0]: loops.index(self.inner[0])}
        else:
            with self.loops_over(self.inner, level, self._block) as index:
                yield index

    def write_stages(self, rows: Sequence[Mapping[int, Expr]], level: int) -> None:
        """All stages, and what follows from each, for one row or several. Loop variables are named from `level` on."""
        for stage in range(self.stages + 1):
            if stage < self.stages or self._complete_at(stage):
                with self.inner_loops(level) as inner:
                    for outer in rows:
                        self._between(stage, self._known({**outer, **inner}, stage, all_columns=False))
            self.write_stage(stage, rows, level)

    def _complete_at(self, stage: int) -> list[int]:
        """The outputs with one element per kept index, except for accumulators, that are written before the loops of a
        stage: as soon as they are complete, if the next stages read them there, and after all reductions otherwise."""
        kept = [k for k in range(len(self.roots)) if k not in self._accumulated and k not in self.full_roots]
        if not isinstance(self.accumulators, InResults):
            return kept if stage == self.stages else []
        return [k for k in kept if self.level[self.roots[k]] + (self.roots[k].opcode is Opcode.REDUCE) == stage]

    def _known(self, index: Mapping[int, Expr], stage: int, *, all_columns: bool) -> Index:
        """The kept index. Values that the stages before `stage` have computed for it are read where they are; with
        `all_columns`, also the values that follow from complete columns in `stage`."""
        kept_index = tuple(index[d] for d in self.kept)
        if isinstance(self.accumulators, InResults):
            for before in range(stage + all_columns):
                for output in self._complete_at(before):
                    self.read_back(self.roots[output], output, kept_index)
        for reduce in self.reductions:
            if self.level[reduce] < stage:
                self.accumulators.know(reduce, kept_index)
        return kept_index

    def _between(self, stage: int, kept_index: Index) -> None:
        """For one kept index: write the values that follow from the stages before, and the initial values of this
        stage's accumulators."""
        for output in self._complete_at(stage):
            value = self.elements.value(self.roots[output], kept_index)
            if isinstance(self.accumulators, InResults) and not value.is_simple:
                value = self.writer.let("column", value)
                self.writer.remember(self.roots[output], value, kept_index)
            self.store(output, self.address(output, kept_index), value)
        for reduce in self.reductions:
            if self.level[reduce] == stage:
                self.accumulators.begin(reduce, kept_index)

    def write_stage(self, stage: int, rows: Sequence[Mapping[int, Expr]], level: int) -> None:
        """The loops of one stage."""
        reductions, searched = self.reductions_at(stage), self.searched_at(stage)
        in_variables = self.accumulators if isinstance(self.accumulators, InVariables) else None
        together = [r for r in reductions if r not in searched]
        if self.has_main_loop(stage):
            with self._blocks(stage, together, rows, level) as bounds:
                for elements in self._reduced_loops(stage, rows[0], level, bounds):
                    with self.inner_loops(level + len(self.reduced)) as inner:
                        found = [[{**outer, **element, **inner} for element in elements] for outer in rows]
                        at = [self._known(indices[0], stage, all_columns=True) for indices in found]
                        if len(elements) == 1:
                            self._visit(stage, [self._index(indices[0]) for indices in found])
                        for indices, kept_index in zip(found, at, strict=True):
                            self.accumulators.accumulate(together, list(map(self._index, indices)), kept_index)
        if in_variables is None:
            return
        for outer in rows:
            kept_index = tuple(outer[d] for d in self.kept)
            for reduce in searched:
                (d,) = self.reduced
                first, block = self._index({**outer, d: ZERO}), size_of(self.blocks.stages[stage].searched)
                row = ArgReduction(self.elements, reduce, self.sizes.of(self.domain, d), first, block)
                row.emit(loop_variable(level), in_variables.names[reduce, kept_index])
            for reduce in reductions:
                in_variables.end(reduce, kept_index)

    def _visit(self, stage: int, indices: Sequence[Index]) -> None:
        """Write the work of a stage's loop for elements of one column, besides its reductions of rows."""
        columns = [sink for sink in self.sinks_at(stage) if sink in self.columns]
        self.of_columns.accumulate(columns, indices, self._column(dict(enumerate(indices[0]))))
        for index in indices:
            self.store_full(stage, index)  # which may overwrite operands of the columns

    def _index(self, index: Mapping[int, Expr]) -> Index:
        return tuple(index[d] for d in range(self.domain.shape.rank))

    def _column(self, index: Mapping[int, Expr]) -> Index:
        """The index of a column in its part."""
        return tuple(index[d] for d in range(self.domain.shape.rank) if d not in self.along)

    @contextmanager
    def _blocks(
        self, stage: int, reductions: Sequence[HloInstruction], rows: Sequence[Mapping[int, Expr]], level: int
    ) -> Iterator[tuple[Expr, Expr] | None]:
        """Around the reduced loops of a stage; gives the bounds of the first of them, if sums are made in blocks."""
        block, collect = size_of(self.blocks.stages[stage].sums), self.blocks.collect
        if not block:
            yield None
            return
        writer = self.writer
        sums = [reduce for reduce in reductions if collect and is_inexact_sum(reduce)]
        totals = [(reduce, outer, self._total(reduce)) for outer in rows for reduce in sums]

        def each(act: Callable[[HloInstruction, Cell, Cell], object]) -> None:
            if not totals:
                return
            with self.inner_loops(level) as inner:
                for reduce, outer, total in totals:
                    index = {**outer, **inner}
                    (cell,) = self.accumulators.cells(reduce, tuple(index[d] for d in self.kept))
                    act(reduce, cell, total(inner))

        def begin(reduce: HloInstruction, cell: Cell, total: Cell) -> None:
            total.write(self._widened(reduce, cell.value))
            cell.write(neutral(self.elements, reduce))

        def add(reduce: HloInstruction, cell: Cell, total: Cell) -> None:
            total.write(combined(self.elements, reduce, [total.value], [self._widened(reduce, cell.value)])[0])
            cell.write(neutral(self.elements, reduce))

        each(begin)
        size = self.sizes.of(self.domain, self.reduced[0])
        with writer.loop(writer.fresh("start"), ZERO, size, step=block) as first:
            yield first, minimum(first + block, size)
            each(add)
        each(lambda reduce, cell, total: cell.write(self._narrowed(reduce, total.value)))

    def _is_wide(self, reduce: HloInstruction) -> bool:
        """True if the sums of blocks are added up in f64, and no accumulator of a block is f64."""
        collect = self.blocks.collect
        return collect is not None and collect.wide and reduce.operands[0].shape.element is ElementType.F32

    def _widened(self, reduce: HloInstruction, value: Expr) -> Expr:
        """An accumulator's value in the type in which the sums of blocks are added up."""
        return cast("float64", value) if self._is_wide(reduce) else value

    def _narrowed(self, reduce: HloInstruction, value: Expr) -> Expr:
        """The sum of all blocks in the type of the result."""
        return cast("float32", value) if self._is_wide(reduce) else value

    def _total(self, reduce: HloInstruction) -> Callable[[Mapping[int, Expr]], Cell]:
        """The sum of all blocks, as a function of the inner index."""
        writer = self.writer
        name = writer.fresh("total")
        kind = "float64" if self._is_wide(reduce) else memory_type(reduce.operands[0].shape.element)
        if not self.inner:
            variable = writer.variable(name, kind)
            return lambda inner: Cell(variable, lambda value: writer.assign(variable, value))
        array = writer.local_array(name, room_of(self, self.blocks.columns), kind)

        def cell(inner: Mapping[int, Expr]) -> Cell:
            first, *rest = self.inner
            at = inner[first] - self._block[0] if self._block else inner[first]
            for d in rest:
                at = at * self.sizes.of(self.domain, d) + inner[d]
            return Cell(array[at], lambda value: writer.store(array, at, value))

        return cell

    def _reduced_loops(
        self, stage: int, outer: Mapping[int, Expr], level: int, bounds: tuple[Expr, Expr] | None
    ) -> Iterator[Sequence[Mapping[int, Expr]]]:
        """The loops of a stage over the reduced dimensions; gives the indices that one iteration takes: one, or some
        rows at a time, so that an accumulator is read and written once for all of them, and then the rows that are left
        over one by one. (LLVM unrolls the loop over a few columns, and keeps their accumulators in registers.)"""
        together = size_of(self.blocks.stages[stage].rows)
        if masks := self.masks_at(stage):
            for column in self._masked_loops(stage, masks, outer, level):
                yield [column]
        elif not together:
            with self.loops_over(self.reduced, level, bounds) as row:
                yield [row]
        else:
            yield from self._several(self.reduced, level, bounds, together)

    def _several(
        self, dimensions: Sequence[int], level: int, bounds: tuple[Expr, Expr] | None, together: int
    ) -> Iterator[Sequence[Mapping[int, Expr]]]:
        """Loops over some dimensions that take so many indices of the last one at a time, and those that are left over
        one by one. `bounds`: of the first dimension."""
        *around, last = dimensions
        size, name = self.sizes.of(self.domain, last), loop_variable(level + len(around))
        with self.loops_over(around, level, bounds) as row:
            start: Expr = ZERO
            if bounds is not None and not around:  # blocks begin at multiples of these rows
                start, size = bounds[0], self.writer.let("end", bounds[1])
            if not isinstance(size, Number) or size.value >= together:
                with self.writer.loop(name, start, size - (together - 1), step=together) as first:
                    rest = [self.writer.let("row", first + k) for k in range(1, together)]
                    yield [{**row, last: each} for each in (first, *rest)]
            with self.writer.loop(name, size // together * together, size) as one:
                yield [{**row, last: one}]

    def _masked_loops(
        self, stage: int, masks: Mapping[HloInstruction, tuple[Band, HloInstruction]], outer: Mapping[int, Expr],
        level: int,
    ) -> Iterator[Mapping[int, Expr]]:  # fmt: skip
        """A loop over what masks let through, and one for each side of it. There the masked values do not depend on the
        column, and LLVM computes what becomes of them once::

            for j in range(minimum(n0, (i + 64) // 64 * 64)):
                exp0 = exp(select(i >= j, x0[i * n0 + j], c0) - found0)
            for masked in range(minimum(n0, (i + 64) // 64 * 64), n0):
                exp1 = exp(c0 - found0)
        """
        (column,) = self.reduced
        size, row = self.sizes.of(self.domain, column), outer[column - 1]
        band = NOTHING
        for each, _ in masks.values():
            band = band.hull(each)
        begin: Expr = ZERO
        end: Expr = size
        if band.low > -math.inf:
            before = maximum(ZERO, minimum(size, row + self.sizes.constant(int(band.low))))
            begin = self.writer.let("begin", before // _MASKED_STEP * _MASKED_STEP)
        if band.high < math.inf:
            after = row + self.sizes.constant(int(band.high) + _MASKED_STEP)
            end = self.writer.let("end", maximum(begin, minimum(size, after // _MASKED_STEP * _MASKED_STEP)))
        for start, stop in ((ZERO, begin), (begin, end), (end, size)):
            if start is stop:
                continue
            inside = start is begin
            name = loop_variable(level) if inside else self.writer.fresh("masked")  # each has facts of its own
            with self.writer.loop(name, start, stop) as j:
                index = self._index({**outer, column: j})
                if not inside:
                    for value, output in self.kept_before(stage).items():
                        self.read_back(value, output, index)
                    for select, (_, outside) in masks.items():
                        self.writer.know(select, self.elements.value(outside, index), index)
                yield {column: j}
