"""Emit loop nests with reductions along columns: the most minor dimension is kept.

Accumulators are in outputs, a block of columns at a time::

    for start in range(lo, hi, 1024):
        stop = minimum(start + 1024, hi)
        for j in range(start, stop):
            out[j] = c0
        for i in range(0, n1 - 3, 4):
            for j in range(start, stop):
                out[j] = reduce_add(out[j], ...)                    four rows, in pairs
        for i in range(n1 // 4 * 4, n1):
            for j in range(start, stop):
                out[j] = reduce_add(out[j], x0[i * n0 + j])

Values that are computed from complete columns, one element for each column, are outputs too, written between two
stages; the next stages read them there. So `(x - mean) / deviation` along columns is three passes over a block::

        for j in range(start, stop):
            mean[j] = total[j] * c1
            squares[j] = c0
        for i in range(n1):
            for j in range(start, stop):
                ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..loops.expressions import ZERO, Expr, Name, Number, call, minimum
from .kernel import HI, LO, EmittedKernel, memory_type
from .long_sums import BLOCK_OF_COLUMN, block_of, is_inexact_sum, narrowed, neutral, wide_type, widened
from .nest import loop_variable
from .nest_reduce import ReductionNest
from .physical_index import ElementAddress, LoopDigit
from .reduce import combined
from .sizes import Index

COLUMN_BLOCK = 1024
"""Columns of a block: their accumulators stay in the first-level cache while the loop goes over the rows."""

_TOGETHER = 4
"""Rows that are combined element by element before they are added to the accumulators."""
_MOST_OPS = 8
"""Most operations for each element: with more, the code for several rows is long."""


class ColumnNest(ReductionNest):
    """The nest over columns: the most minor dimension is kept."""

    def emit(self) -> EmittedKernel:
        """The kernel; threads share the first loop over columns, or the loops over dimensions that are major to the
        reduced ones."""
        last_reduced = max(self.reduced)
        outer = [d for d in self.kept if d < last_reduced]
        minor = [d for d in self.kept if d > last_reduced]
        sizes = self.domain.shape.dimensions
        self.sizes.mark_outer(self.domain, outer[0] if outer else minor[0])
        self.sizes.mark_loops(self.domain, range(self.domain.shape.rank))
        tiles = [digit for digit in self._digits if minor == [digit.dimension]]
        if not outer and len(tiles) > 1:
            return self._columns_by_tiles(minor[0], tiles)
        if outer:
            outer_sizes = [self.sizes.of(self.domain, d) for d in outer[1:]]
            with self.sliced_loop() as first, self.loops(outer_sizes, 1) as rest:
                self._column_block(dict(zip(outer, (first, *rest), strict=True)), minor, None)
            return self.finish(sizes[outer[0]])
        with self.writer.loop("start", LO, HI, step=COLUMN_BLOCK) as start:
            stop = self.writer.assign("stop", call("minimum", start + COLUMN_BLOCK, HI))
            self._column_block({}, minor, (start, stop))
        return self.finish(sizes[minor[0]])

    def _columns_by_tiles(self, minor: int, tiles: Sequence[LoopDigit]) -> EmittedKernel:
        """The accumulators of one tile's columns at a time::

            for j_0 in range(lo, hi):
                for j_1 in range(minimum(128, n0 - j_0 * 128)):
                    out[...] = c0
                for i in range(n1):
                    for j_1 in range(minimum(128, n0 - j_0 * 128)):
                        out[...] = reduce_add(out[...], x0[...])
        """
        name = loop_variable(0)
        loops = self.tile_loops(self.domain, tiles, {minor: name})

        @contextmanager
        def inside(_: int) -> Iterator[Mapping[int, Expr]]:
            with loops.over(tiles[1:]):
                yield {minor: loops.index(minor)}

        with self.writer.loop(f"{name}_0", LO, HI) as first:
            loops.set(tiles[0], first)
            self._accumulate({}, inside, 1)
        extent = loops.number(tiles[0])
        return self.finish(extent)

    def _column_block(self, outer: Mapping[int, Expr], minor: list[int], block: tuple[Expr, Expr] | None) -> None:
        """`block`: the bounds of the first minor dimension."""
        self._accumulate(
            outer, lambda level: self._minor_loops(minor, block, level), len(outer), self._place_in_block(minor, block)
        )

    def _place_in_block(
        self, minor: Sequence[int], block: tuple[Expr, Expr] | None
    ) -> Callable[[Mapping[int, Expr]], Expr] | None:
        """The number of a column in its block, as a function of its index; None if there may be more than
        COLUMN_BLOCK."""
        sizes = [self.domain.shape.dimensions[d] for d in minor]
        if block is not None:
            sizes[0] = min(sizes[0], COLUMN_BLOCK)
        if math.prod(sizes) > COLUMN_BLOCK:
            return None

        def place(index: Mapping[int, Expr]) -> Expr:
            found = index[minor[0]] if block is None else index[minor[0]] - block[0]
            for d in minor[1:]:
                found = found * self.sizes.of(self.domain, d) + index[d]
            return found

        return place

    @contextmanager
    def _minor_loops(
        self, minor: list[int], block: tuple[Expr, Expr] | None, level: int
    ) -> Iterator[Mapping[int, Expr]]:
        if block is None:
            with self.loops_over(minor, level) as variables:
                yield variables
            return
        sliced, rest = self.writer.loop(loop_variable(level), *block), self.loops_over(minor[1:], level + 1)
        with sliced as first, rest as variables:
            yield {minor[0]: first, **variables}

    def _accumulate(
        self,
        outer: Mapping[int, Expr],
        minor_loops: Callable[[int], AbstractContextManager[Mapping[int, Expr]]],
        level: int,
        place: Callable[[Mapping[int, Expr]], Expr] | None = None,
    ) -> None:
        """All stages: between them, a loop over the columns; in each, row by row. Loop variables are named from `level`
        on. `place`: of a column in the block."""
        inside = level + len(self.reduced)
        for stage in range(self.stages + 1):
            if stage < self.stages or self._columns_at(stage):
                with minor_loops(level) as minor:
                    self._between(stage, self._known({**outer, **minor}, stage, all_columns=False))
            if not self.ends_at(stage):
                continue
            with self._blocks(stage, outer, minor_loops, level, place) as bounds:
                for reduced in self._rows(stage, level, bounds):
                    with minor_loops(inside) as minor:
                        indices = [{**outer, **row, **minor} for row in reduced]
                        kept_index = self._known(indices[0], stage, all_columns=True)
                        elements = [tuple(index[d] for d in range(self.domain.shape.rank)) for index in indices]
                        if len(elements) == 1:
                            self.store_full(stage, elements[0])
                        reductions = [reduce for reduce in self.reductions if self.level[reduce] == stage]
                        self.accumulate(reductions, elements, kept_index)

    @contextmanager
    def _blocks(
        self, stage: int, outer: Mapping[int, Expr],
        minor_loops: Callable[[int], AbstractContextManager[Mapping[int, Expr]]], level: int,
        place: Callable[[Mapping[int, Expr]], Expr] | None,
    ) -> Iterator[tuple[Expr, Expr] | None]:  # fmt: skip
        """Around the loops over rows; gives the bounds of the first of them, if sums are long: see `long_sums.py`::

            for j in range(start, stop):
                total0[j - start] = float64(out[j])
                out[j] = c1
            for start0 in range(0, n1, 1024):
                ...
                for j in range(start, stop):
                    total0[j - start] = reduce_add(total0[j - start], float64(out[j]))
                    out[j] = c1
            for j in range(start, stop):
                out[j] = float32(total0[j - start])
        """
        block = block_of([self.domain.shape.dimensions[d] for d in self.reduced], BLOCK_OF_COLUMN)
        sums = [
            (reduce, self.accumulators_of(reduce)[0])
            for reduce in self.reductions
            if self.level[reduce] == stage and is_inexact_sum(reduce)
        ]
        if block is None or place is None or self._digits or not sums:
            yield None
            return
        writer = self.writer
        types = [wide_type(reduce) or memory_type(reduce.shape.element) for reduce, _ in sums]
        totals = [writer.local_array(writer.fresh("total"), COLUMN_BLOCK, type_) for type_ in types]

        def each_column(act: Callable[[HloInstruction, int, Name, Expr, ElementAddress], None]) -> None:
            with minor_loops(level) as minor:
                kept_index = tuple({**outer, **minor}[d] for d in self.kept)
                for (reduce, output), total in zip(sums, totals, strict=True):
                    act(reduce, output, total, place(minor), self.spot(output, kept_index))

        def begin(reduce: HloInstruction, output: int, total: Name, at: Expr, spot: ElementAddress) -> None:
            writer.store(total, at, widened(reduce, self.stored_value(output, spot)))
            self.store(output, spot, neutral(self.elements, reduce))

        def add(reduce: HloInstruction, output: int, total: Name, at: Expr, spot: ElementAddress) -> None:
            block_sum = widened(reduce, self.stored_value(output, spot))
            writer.store(total, at, combined(self.elements, reduce, [total[at]], [block_sum])[0])
            self.store(output, spot, neutral(self.elements, reduce))

        def end(reduce: HloInstruction, output: int, total: Name, at: Expr, spot: ElementAddress) -> None:
            self.store(output, spot, narrowed(reduce, total[at]))

        each_column(begin)
        size = self.sizes.of(self.domain, self.reduced[0])
        with writer.loop(writer.fresh("start"), ZERO, size, step=block) as first:
            yield first, minimum(first + block, size)
            each_column(add)
        each_column(end)

    @contextmanager
    def _row_loops(
        self, dimensions: Sequence[int], level: int, bounds: tuple[Expr, Expr] | None
    ) -> Iterator[Mapping[int, Expr]]:
        """Loops over reduced dimensions; `bounds`: of the first one."""
        if bounds is None or not dimensions:
            with self.loops_over(dimensions, level) as row:
                yield row
            return
        loop = self.writer.loop(loop_variable(level), *bounds)
        with loop as first, self.loops_over(dimensions[1:], level + 1) as rest:
            yield {dimensions[0]: first, **rest}

    def _rows(
        self, stage: int, level: int, bounds: tuple[Expr, Expr] | None
    ) -> Iterator[Sequence[Mapping[int, Expr]]]:
        """The loops over rows; gives the indices of the rows that one iteration takes. First some at a time, so that an
        accumulator is read and written once for all of them, then the rows that are left over. (LLVM unrolls the loop
        over a few columns, and keeps their accumulators in registers.) ::

            for i in range(0, n1 - 3, 4):
                ...
            for i in range(n1 // 4 * 4, n1):
                ...
        """
        *outer, last = self.reduced
        is_short = isinstance(self.sizes.of(self.domain, self.kept[-1]), Number)
        if is_short or self._digits or self.has_full(stage) or not self._is_cheap(stage):
            with self._row_loops(self.reduced, level, bounds) as row:
                yield [row]
            return
        size, name = self.sizes.of(self.domain, last), loop_variable(level + len(outer))
        with self._row_loops(outer, level, bounds) as row:
            start: Expr = ZERO
            if bounds is not None and not outer:  # blocks begin at multiples of four
                start, size = bounds[0], self.writer.let("end", bounds[1])
            if not isinstance(size, Number) or size.value >= _TOGETHER:
                with self.writer.loop(name, start, size - (_TOGETHER - 1), step=_TOGETHER) as first:
                    rest = [self.writer.let("row", first + k) for k in range(1, _TOGETHER)]
                    yield [{**row, last: each} for each in (first, *rest)]
            with self.writer.loop(name, size // _TOGETHER * _TOGETHER, size) as one:
                yield [{**row, last: one}]

    def _is_cheap(self, stage: int) -> bool:
        """True if the reduced values cost little beside the accumulators."""
        needs = self._full_needs(self.ends_at(stage))
        return len(needs) <= _MOST_OPS and not any(has_trait(i.opcode, Trait.EXPENSIVE) for i in needs)

    def _columns_at(self, stage: int) -> list[int]:
        """The outputs with an element for each column that are computed once the reductions before `stage` are
        complete, except for accumulators."""
        accumulators = {k for reduce in self.reductions for k in self.accumulators_of(reduce)}
        return [
            k
            for k, root in enumerate(self.roots)
            if k not in accumulators and k not in self.full_roots
            and self.level[root] + (root.opcode is Opcode.REDUCE) == stage
        ]

    def _known(self, index: Mapping[int, Expr], stage: int, *, all_columns: bool) -> Index:
        """The index of a column. Values that the stages before `stage` have computed for it are read from the outputs;
        with `all_columns`, also the values that follow from complete columns in `stage`."""
        kept_index = tuple(index[d] for d in self.kept)
        for before in range(stage + all_columns):
            for output in self._columns_at(before):
                self.read_back(self.roots[output], output, kept_index)
        for reduce in self.reductions:
            if self.level[reduce] < stage:
                for output in self.accumulators_of(reduce):
                    self.read_back(self.roots[output], output, kept_index)
        return kept_index

    def _between(self, stage: int, kept_index: Index) -> None:
        """For one column: assign the values that the stages before have computed, and the initial values of this
        stage's accumulators."""
        outputs = self._columns_at(stage)
        for output in outputs:
            value = self.elements.value(self.roots[output], kept_index)
            if not value.is_simple:
                value = self.writer.let("column", value)
                self.writer.remember(self.roots[output], value, kept_index)
            self.store(output, self.spot(output, kept_index), value)
        for reduce in self.reductions:
            if self.level[reduce] == stage:
                self.initialise(reduce, kept_index)
