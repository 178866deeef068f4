"""The loop nest over rows: the most minor dimension is reduced.

For each kept index the loops of the stages run one after the other, with the results in scalars; a softmax is three
loops over a row::

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
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...hlo.analyses.bands import NOTHING, Band, mask_of
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..loops.expressions import ZERO, Expr, Name, call, maximum, minimum
from .kernel import EmittedKernel
from .long_sums import BLOCK_OF_COLUMN, BLOCK_OF_ROW, block_of, is_inexact_sum, narrowed, neutral, widened
from .nest import loop_variable
from .nest_arg import ArgReduction, is_arg_reduction
from .nest_reduce import ReductionNest
from .reduce import combined, key_functions
from .sizes import Index

_MASKED_STEP = 64
"""Loops over what a mask lets through begin and end at multiples of this many columns: whole vectors."""


class RowNest(ReductionNest):
    """The nest over rows: the most minor dimension is reduced."""

    def emit(self) -> EmittedKernel:
        """The kernel; the loop over all kept indices is sliced."""
        if self.kept:
            self.sizes.mark_outer(self.domain, self.kept[0])
        self.sizes.mark_loops(self.domain, self.reduced)
        with self.sliced_loops(self.kept) as index:
            self.row(index, 1 if self.kept else 0)
        return self.finish(math.prod(self.kept_sizes))

    @contextmanager
    def sliced_loops(self, dimensions: Sequence[int]) -> Iterator[Mapping[int, Expr]]:
        """The sliced loop over all indices of some dimensions: one variable, or one that is split into several
        indices."""
        if not dimensions:
            yield {}
            return
        with self.sliced_loop() as first:
            index: dict[int, Expr] = {}
            rest: Expr = first
            for d in reversed(dimensions[1:]):
                size = self.sizes.of(self.domain, d)
                index[d] = self.writer.let("row", rest % size)
                rest = rest // size
            index[dimensions[0]] = self.writer.let("row", rest) if index else first
            yield index

    def row(self, kept: Mapping[int, Expr], level: int) -> None:
        """All stages for one kept index. Loop variables are named from `level` on."""
        kept_index = tuple(kept[d] for d in self.kept)
        for stage in range(self.stages):
            self._reduce_stage(stage, kept, kept_index, level)
        for output, root in enumerate(self.roots):
            if self.is_kept(output):
                value = self.elements.value(root, kept_index)
                self.store(output, self.spot(output, kept_index), value)
        if self.ends_at(self.stages):
            for index in self._reduced_parts(self.stages, kept, level):
                self.visit(self.stages, index)

    def is_kept(self, output: int) -> bool:
        """True for an output with one element per kept index."""
        return output not in self.full_roots

    def visit(self, stage: int, index: Index) -> None:
        """Write the work of a stage's loop for each element of the domain, besides its reductions."""
        self.store_full(stage, index)

    @contextmanager
    def _reduced_loops(self, kept: Mapping[int, Expr], level: int) -> Iterator[Index]:
        with self.loops_over(self.reduced, level) as variables:
            index = {**kept, **variables}
            yield tuple(index[d] for d in range(self.domain.shape.rank))

    def _reduced_parts(self, stage: int, kept: Mapping[int, Expr], level: int) -> Iterator[Index]:
        """The loops of a stage over the reduced dimensions: one, or one for what masks let through and one for each
        side of it. There the masked values do not depend on the column, and LLVM computes what becomes of them once::

            for j in range(minimum(n0, (i + 64) // 64 * 64)):
                exp0 = exp(select(i >= j, x0[i * n0 + j], c0) - found0)
            for masked in range(minimum(n0, (i + 64) // 64 * 64), n0):
                exp1 = exp(c0 - found0)
        """
        masks = self._masks_at(stage)
        if not masks:
            with self._reduced_loops(kept, level) as index:
                yield index
            return
        (column,) = self.reduced
        size, row = self.sizes.of(self.domain, column), kept[column - 1]
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
                index = tuple([j if d == column else kept[d] for d in range(self.domain.shape.rank)])
                if not inside:
                    for value, output in self._kept_before(stage).items():
                        self.read_back(value, output, index)
                    for select, (_, outside) in masks.items():
                        self.writer.know(select, self.elements.value(outside, index), index)
                yield index

    def _masks_at(self, stage: int) -> dict[HloInstruction, tuple[Band, HloInstruction]]:
        """The selects by position that save the loop of a stage something expensive: by select, a band and one of its
        operands. Outside of the band, the select is that operand."""
        rank = self.domain.shape.rank
        if self._digits or self.reduced != (rank - 1,) or rank - 2 not in self.kept:
            return {}
        needed = self._full_needs(self.ends_at(stage), self._kept_before(stage))
        spared: set[HloInstruction] = set()
        for instruction in needed:
            if has_trait(instruction.opcode, Trait.EXPENSIVE):
                spared |= self._full_needs([instruction])
        found = {i: mask_of(i) for i in self.body.instructions if i.opcode is Opcode.SELECT and i in spared & needed}
        return {select: mask for select, mask in found.items() if mask is not None}

    def _reduce_stage(self, stage: int, kept: Mapping[int, Expr], kept_index: Index, level: int) -> None:
        reductions = [r for r in self.reductions if self.level[r] == stage]
        accumulators: dict[HloInstruction, list[Name]] = {}
        for reduce in reductions:
            half = len(reduce.operands) // 2
            keys = key_functions(reduce)
            accumulators[reduce] = [
                self.writer.assign(self.writer.fresh("acc"), call(keys[0], value) if keys else value)
                for value in [self.elements.value(init, ()) for init in reduce.operands[half:]]
            ]
        rows = [] if self._digits else [r for r in reductions if is_arg_reduction(r)]
        together = [r for r in reductions if r not in rows]
        if together or not rows or self.has_visits(stage):
            self._reduce_together(stage, together, accumulators, kept, level)
        for reduce in rows:
            (d,) = self.reduced
            index = tuple([kept.get(k, ZERO) for k in range(self.domain.shape.rank)])
            row = ArgReduction(self.elements, reduce, self.sizes.of(self.domain, d), index)
            row.emit(loop_variable(level), accumulators[reduce])
        for reduce in reductions:
            results: Sequence[Expr] = accumulators[reduce]
            if key_functions(reduce):
                results = [self.writer.assign(self.writer.fresh("found"), call("from_key", results[0]))]
            self._publish(reduce, kept_index, results)

    def has_visits(self, stage: int) -> bool:
        """True if `visit` does something in the loop of a stage."""
        return self.has_full(stage)

    def _reduce_together(
        self, stage: int, reductions: Sequence[HloInstruction], accumulators: Mapping[HloInstruction, list[Name]],
        kept: Mapping[int, Expr], level: int,
    ) -> None:  # fmt: skip
        """One loop for all reductions that go element by element."""
        sums = {r: accumulators[r][0] for r in reductions if is_inexact_sum(r)}
        sizes = [self.domain.shape.dimensions[d] for d in self.reduced]
        block = block_of(sizes, BLOCK_OF_COLUMN if any(r.shape.element.is_complex for r in sums) else BLOCK_OF_ROW)
        if sums and block is not None and not self._digits and not self._masks_at(stage):
            with self._blocks(sums, block, kept, level) as index:
                self._reduce_at(stage, reductions, accumulators, index)
            return
        for index in self._reduced_parts(stage, kept, level):
            self._reduce_at(stage, reductions, accumulators, index)

    @contextmanager
    def _blocks(
        self, sums: Mapping[HloInstruction, Name], block: int, kept: Mapping[int, Expr], level: int
    ) -> Iterator[Index]:
        """The loops over the reduced dimensions, in blocks of the first one: see `long_sums.py`."""
        first, *rest = self.reduced
        size, writer = self.sizes.of(self.domain, first), self.writer
        totals = {r: writer.assign(writer.fresh("total"), widened(r, acc)) for r, acc in sums.items()}
        with writer.loop(writer.fresh("start"), ZERO, size, step=block) as start:
            for reduce, accumulator in sums.items():
                writer.assign(accumulator, neutral(self.elements, reduce))
            bounds = start, minimum(start + block, size)
            with writer.loop(loop_variable(level), *bounds) as i, self.loops_over(rest, level + 1) as inner:
                index = {**kept, first: i, **inner}
                yield tuple(index[d] for d in range(self.domain.shape.rank))
            for reduce, accumulator in sums.items():
                added = combined(self.elements, reduce, [totals[reduce]], [widened(reduce, accumulator)])
                writer.assign_all([totals[reduce]], added)
        for reduce, accumulator in sums.items():
            writer.assign(accumulator, narrowed(reduce, totals[reduce]))

    def _reduce_at(
        self, stage: int, reductions: Sequence[HloInstruction], accumulators: Mapping[HloInstruction, list[Name]],
        index: Index,
    ) -> None:  # fmt: skip
        """Write the work of a stage's loop for one element of the domain."""
        self.visit(stage, index)
        for reduce in reductions:
            half = len(reduce.operands) // 2
            values = [self.elements.value(o, index) for o in reduce.operands[:half]]
            keys = key_functions(reduce)
            if keys:
                results = [call(keys[1], accumulators[reduce][0], call(keys[0], values[0]))]
            else:
                results = combined(self.elements, reduce, accumulators[reduce], values)
            # All at once: the new values may depend on each other's old ones.
            self.writer.assign_all(accumulators[reduce], results)

    def _publish(self, reduce: HloInstruction, kept_index: Index, accumulators: Sequence[Expr]) -> None:
        """Make the results available to the rest of the nest."""
        remember = self.writer.remember
        if not reduce.shape.is_tuple:
            remember(reduce, accumulators[0], kept_index if reduce.shape.rank else ())
            return
        for user in self.body.users[reduce]:
            if user.opcode is Opcode.GET_TUPLE_ELEMENT:
                accumulator = accumulators[user.attributes.index]
                remember(user, accumulator, kept_index if user.shape.rank else ())
