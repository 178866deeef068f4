"""Loop nests with reductions. One fusion may hold several, and work before, between and after them.

Rows: the most minor dimension is reduced. For each kept index there is one loop over the reduced dimensions for each
level of dependency, one after the other, with the results in scalars; a softmax is three loops over a row::

    for i in range(lo, hi):
        acc0 = c0
        for j in range(n0):
            acc0 = reduce_max(acc0, x0[i * n0 + j])
        acc1 = c1
        for j in range(n0):
            exp0 = exp(x0[i * n0 + j] - acc0)
            out[i * n0 + j] = exp0
            acc1 = reduce_add(acc1, exp0)
        for j in range(n0):
            out[i * n0 + j] = out[i * n0 + j] / acc1

An expensive value that a later loop needs again is kept in an output that is not written yet.

Columns: the most minor dimension is kept. The accumulators are in the output itself, a block of columns at a time::

    for start in range(lo, hi, 1024):
        stop = minimum(start + 1024, hi)
        for j in range(start, stop):
            out[j] = c0
        for i in range(n1):
            for j in range(start, stop):
                out[j] = reduce_add(out[j], x0[i * n0 + j])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..loops.expressions import Expr, Name, call
from .collapse import FusedBody
from .kernel import HI, LO, EmittedKernel
from .nest import NestEmitter, loop_variable
from .place_index import LoopDigit, guide_of
from .reduce import combined
from .sizes import Index

COLUMN_BLOCK = 1024
"""Columns whose accumulators stay in the first-level cache while the loop goes over the rows."""


def emit_reduction(fused: FusedBody, sharing: Mapping[int, int]) -> EmittedKernel:
    """The kernel of a canonical fused computation with reductions, all over the same dimensions of one domain."""
    nest = _ReductionNest(fused, sharing)
    reduced, rank = nest.reduced, nest.domain.shape.rank
    if reduced and rank - 1 not in reduced:
        return nest.columns()
    return nest.rows()


class _ReductionNest(NestEmitter):
    def __init__(self, fused: FusedBody, sharing: Mapping[int, int]) -> None:
        super().__init__(fused, sharing)
        body = self.body
        self.reductions = [i for i in body.instructions if i.opcode is Opcode.REDUCE]
        first = self.reductions[0]
        self.domain = first.operands[0]
        self.reduced = first.attributes.dimensions
        self.kept = tuple(d for d in range(self.domain.shape.rank) if d not in self.reduced)
        self.level = _levels(body)
        sizes = self.domain.shape.dimensions
        self.kept_sizes = tuple(sizes[d] for d in self.kept)
        assert all(
            r.operands[0].shape.dimensions == sizes and r.attributes.dimensions == self.reduced
            for r in self.reductions
        ), "reductions over different dimensions in one fusion"
        self.full_roots = [k for k, r in enumerate(self.roots) if self.is_full(r)]
        self._digits = self._guide()

    def _guide(self) -> tuple[LoopDigit, ...]:
        """The order and the tiles for the loops over the domain, where arrays have tiles; () if no array has."""
        rank = self.domain.shape.rank
        everywhere = tuple(range(rank))
        starts = [(self.roots[k], everywhere, self.fused.root_places.get(k)) for k in self.full_roots]
        arrays = [o for reduce in self.reductions for o in reduce.operands[: len(reduce.operands) // 2]]
        starts += [(array, everywhere, None) for array in arrays]
        return guide_of(starts, self.fused.parameter_places, rank)

    @contextmanager
    def _loops_over(self, dimensions: Sequence[int], first: int) -> Iterator[Mapping[int, Expr]]:
        """Loops over some dimensions of the domain, tile by tile where there are tiles; gives their indices. Variables
        are named from level `first` on."""
        digits = [digit for digit in self._digits if digit.dimension in dimensions]
        if not digits:
            sizes = [self.sizes.of(self.domain, d) for d in dimensions]
            with self.loops(sizes, first) as variables:
                yield dict(zip(dimensions, variables, strict=True))
            return
        names = {d: loop_variable(first + k) for k, d in enumerate(dimensions)}
        loops = self.tile_loops(self.domain, digits, names)
        with loops.over(digits):
            yield {d: loops.index(d) for d in dimensions}

    def is_full(self, instruction: HloInstruction) -> bool:
        """True for a value with one element per element of the domain, not per kept index."""
        return bool(self.reduced) and instruction.shape.dimensions == self.domain.shape.dimensions

    def rows(self) -> EmittedKernel:
        if self.kept:
            self.sizes.mark_outer(self.domain, self.kept[0])
        stages = 1 + max(self.level[r] for r in self.reductions)
        spill = self._plan_spill(stages)
        with self._kept_loops() as kept_index:
            kept = dict(zip(self.kept, kept_index, strict=True))
            for stage in range(stages):
                self._reduce_stage(stage, kept, kept_index, spill if spill and spill[1] == stage else None)
            for output, root in enumerate(self.roots):
                if output not in self.full_roots:
                    value = self.elements.value(root, kept_index)
                    self.store(output, self.spot(output, kept_index), value)
            if self.full_roots:
                with self._reduced_loops(kept) as index:
                    values = [self.elements.value(self.roots[output], index) for output in self.full_roots]
                    for output, value in zip(self.full_roots, values, strict=True):
                        self.store(output, self.spot(output, index), value)
        inner = math.prod(self.domain.shape.dimensions[d] for d in self.reduced)
        return self.finish(math.prod(self.kept_sizes), inner)

    @contextmanager
    def _kept_loops(self) -> Iterator[Index]:
        """The sliced loop over all kept indices: one variable, or one that is split into several indices."""
        if not self.kept:
            yield ()
            return
        with self.sliced_loop() as first:
            if len(self.kept) == 1:
                yield (first,)
                return
            rest: Expr = first
            components: list[Expr] = []
            for d in reversed(self.kept[1:]):
                size = self.sizes.of(self.domain, d)
                components.append(self.writer.let("row", rest % size))
                rest = rest // size
            components.append(self.writer.let("row", rest))
            yield tuple(reversed(components))

    @contextmanager
    def _reduced_loops(self, kept: Mapping[int, Expr]) -> Iterator[Index]:
        with self._loops_over(self.reduced, 1 if self.kept else 0) as variables:
            index = {**kept, **variables}
            yield tuple(index[d] for d in range(self.domain.shape.rank))

    def _reduce_stage(
        self, stage: int, kept: Mapping[int, Expr], kept_index: Index, spill: tuple[HloInstruction, int, int] | None
    ) -> None:
        reductions = [r for r in self.reductions if self.level[r] == stage]
        accumulators: dict[HloInstruction, list[Name]] = {}
        for reduce in reductions:
            half = len(reduce.operands) // 2
            accumulators[reduce] = [
                self.writer.assign(self.writer.fresh("acc"), self.elements.value(init, ()))
                for init in reduce.operands[half:]
            ]
        with self._reduced_loops(kept) as index:
            if spill is not None:
                self._spill(spill[0], spill[2], index)
            for reduce in reductions:
                half = len(reduce.operands) // 2
                values = [self.elements.value(o, index) for o in reduce.operands[:half]]
                results = combined(self.elements, reduce, accumulators[reduce], values)
                # All at once: the new values may depend on each other's old ones.
                self.writer.assign_all(accumulators[reduce], results)
        for reduce in reductions:
            self._publish(reduce, kept_index, accumulators[reduce])

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

    def _plan_spill(self, stages: int) -> tuple[HloInstruction, int, int] | None:
        """(value, stage, output): an expensive value of one loop that a later one needs; the output keeps it."""
        free = [k for k in self.full_roots if k not in self.sharing]
        if not free:
            return None
        needed: dict[HloInstruction, set[int]] = {}
        for stage in range(stages):
            ends = [o for r in self.reductions if self.level[r] == stage for o in r.operands]
            for instruction in self._full_level_needs(ends):
                needed.setdefault(instruction, set()).add(stage)
        for instruction in self._full_level_needs([self.roots[k] for k in self.full_roots]):
            needed.setdefault(instruction, set()).add(stages)
        for instruction in reversed(self.body.instructions):
            where = needed.get(instruction, set())
            if len(where) < 2 or not has_trait(instruction.opcode, Trait.EXPENSIVE):
                continue
            for output in free:
                if self.roots[output].shape.element is instruction.shape.element:
                    return instruction, min(where), output
        return None

    def _full_level_needs(self, ends: list[HloInstruction]) -> set[HloInstruction]:
        found: set[HloInstruction] = set()
        stack = [i for i in ends if self.is_full(i)]
        while stack:
            instruction = stack.pop()
            if instruction in found:
                continue
            found.add(instruction)
            if has_trait(instruction.opcode, Trait.ELEMENTWISE):
                stack.extend(o for o in instruction.operands if self.is_full(o))
        return found

    def _spill(self, instruction: HloInstruction, output: int, index: Index) -> None:
        value = self.elements.value(instruction, index)
        if not value.is_simple:
            value = self.writer.let("kept", value)
            self.writer.remember(instruction, value, index)
        self.store(output, self.spot(output, index), value)
        self.elements.spilled[instruction, index] = lambda: self.stored_value(output, self.spot(output, index))

    def columns(self) -> EmittedKernel:
        last_reduced = max(self.reduced)
        outer = [d for d in self.kept if d < last_reduced]
        minor = [d for d in self.kept if d > last_reduced]
        sizes = self.domain.shape.dimensions
        self.sizes.mark_outer(self.domain, outer[0] if outer else minor[0])
        tiles = [digit for digit in self._digits if minor == [digit.dimension]]
        if not outer and len(tiles) > 1:
            return self._columns_by_tiles(minor[0], tiles)
        if outer:
            outer_sizes = [self.sizes.of(self.domain, d) for d in outer[1:]]
            with self.sliced_loop() as first, self.loops(outer_sizes, 1) as rest:
                self._column_block(dict(zip(outer, (first, *rest), strict=True)), minor, None)
            inner = math.prod(sizes) // max(sizes[outer[0]], 1)
            return self.finish(sizes[outer[0]], inner)
        with self.writer.loop("start", LO, HI, step=COLUMN_BLOCK) as start:
            stop = self.writer.assign("stop", call("minimum", start + COLUMN_BLOCK, HI))
            self._column_block({}, minor, (start, stop))
        return self.finish(sizes[minor[0]], math.prod(sizes) // max(sizes[minor[0]], 1))

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
        return self.finish(extent, math.prod(self.domain.shape.dimensions) // max(extent, 1) + 1)

    def _column_block(
        self, outer: Mapping[int, Expr], minor: list[int], block: tuple[Expr, Expr] | None
    ) -> None:
        """`block`: the bounds of the first minor dimension."""
        self._accumulate(outer, lambda level: self._minor_loops(minor, block, level), len(outer))

    def _accumulate(
        self,
        outer: Mapping[int, Expr],
        minor_loops: Callable[[int], AbstractContextManager[Mapping[int, Expr]]],
        level: int,
    ) -> None:
        """Initialise the accumulators, then accumulate row by row. Loop variables are named from `level` on."""
        with minor_loops(level) as minor:
            kept_index = self._kept_index({**outer, **minor})
            for reduce in self.reductions:
                half = len(reduce.operands) // 2
                for output, init in zip(self._outputs_of(reduce), reduce.operands[half:], strict=True):
                    if output is not None:
                        value = self.elements.value(init, ())
                        self.store(output, self.spot(output, kept_index), value)
        inside = level + len(self.reduced)
        with self._loops_over(self.reduced, level) as reduced, minor_loops(inside) as minor:
            self._column_step({**outer, **reduced, **minor})
        primary = {k for reduce in self.reductions for k in self._outputs_of(reduce)} | {*self.full_roots}
        again = [k for k in range(len(self.roots)) if k not in primary]
        if again:
            with minor_loops(level) as minor:
                kept_index = self._kept_index({**outer, **minor})
                for output in again:
                    first = self.roots.index(self.roots[output])
                    assert first != output, "a column reduction's result that is no accumulator"
                    value = self.stored_value(first, self.spot(first, kept_index))
                    self.store(output, self.spot(output, kept_index), value)

    def _kept_index(self, index: Mapping[int, Expr]) -> Index:
        return tuple(index[d] for d in self.kept)

    @contextmanager
    def _minor_loops(
        self, minor: list[int], block: tuple[Expr, Expr] | None, level: int
    ) -> Iterator[Mapping[int, Expr]]:
        if block is None:
            with self._loops_over(minor, level) as variables:
                yield variables
            return
        sliced, rest = self.writer.loop(loop_variable(level), *block), self._loops_over(minor[1:], level + 1)
        with sliced as first, rest as variables:
            yield {minor[0]: first, **variables}

    def _column_step(self, components: Mapping[int, Expr]) -> None:
        index = tuple(components[d] for d in range(self.domain.shape.rank))
        kept_index = self._kept_index(components)
        for output in self.full_roots:
            value = self.elements.value(self.roots[output], index)
            self.store(output, self.spot(output, index), value)
        for reduce in self.reductions:
            half = len(reduce.operands) // 2
            outputs = [output for output in self._outputs_of(reduce) if output is not None]
            assert len(outputs) == half, "a result of a column reduction that nobody reads"
            accumulators = [self.stored_value(output, self.spot(output, kept_index)) for output in outputs]
            values = [self.elements.value(o, index) for o in reduce.operands[:half]]
            if half > 1:
                accumulators = [self.writer.let("acc", a) for a in accumulators]
            results = combined(self.elements, reduce, accumulators, values)
            if half > 1:
                results = [self.writer.let("next", r) for r in results]
            for output, result in zip(outputs, results, strict=True):
                self.store(output, self.spot(output, kept_index), result)

    def _outputs_of(self, reduce: HloInstruction) -> list[int | None]:
        """For each result of a reduction, its output."""
        if not reduce.shape.is_tuple:
            return [self.roots.index(reduce)]
        found: list[int | None] = [None] * len(reduce.shape.elements)
        for output, root in enumerate(self.roots):
            if root.opcode is Opcode.GET_TUPLE_ELEMENT and root.operands[0] is reduce:
                found[root.attributes.index] = output
        return found


def _levels(body: HloComputation) -> dict[HloInstruction, int]:
    """For a reduction: how many others its operands depend on, in a chain. The same for other values."""
    levels: dict[HloInstruction, int] = {}
    for instruction in body.instructions:
        level = 0
        for operand in instruction.operands:
            level = max(level, levels[operand] + (operand.opcode is Opcode.REDUCE))
        levels[instruction] = level
    return levels
