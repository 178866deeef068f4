"""The plan of a loop nest with reductions. One fusion may hold several reductions, and work before, between and after
them. `nest_stages.py` writes the loops.

A reduction's *stage* is the number of reductions that must be complete before it. Each stage is one loop over the
reduced dimensions. A value that a nest writes for each element of the domain is a *sink*. The sink is in a loop where
its operands are available: the loop that computes most of them anyway. An expensive value that a later loop needs again
is kept in an output: its own, or one that is not written yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ...hlo.analyses.bands import Band, mask_of
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..loops.expressions import Expr, Number
from .collapse import FusedBody
from .nest import NestEmitter, loop_variable
from .nest_arg import is_arg_reduction
from .physical_index import LoopDigit, guide_of
from .sizes import Index
from .stage_plan import StagePlan


class ReductionNest(NestEmitter):
    """The reductions are over dimensions of one domain."""

    def __init__(self, fused: FusedBody, sharing: Mapping[int, int]) -> None:
        super().__init__(fused, sharing)
        plan = fused.stage_plan
        self.staging: StagePlan = plan
        self.reductions, self.columns = plan.reductions, plan.columns
        self.domain, self.reduced = plan.domain, plan.reduced
        self.along: tuple[int, ...] = self.columns[0].attributes.dimensions if self.columns else ()
        """The dimensions that the reductions along columns are over."""
        self.kept: tuple[int, ...] = tuple(d for d in range(self.domain.shape.rank) if d not in self.reduced)
        sizes = self.domain.shape.dimensions
        self.kept_sizes: tuple[int, ...] = tuple(sizes[d] for d in self.kept)
        last = max(self.reduced, default=self.domain.shape.rank)
        self.outer: tuple[int, ...] = tuple(d for d in self.kept if d < last)
        """The kept dimensions outside of the stages' loops."""
        self.inner: tuple[int, ...] = tuple(d for d in self.kept if d > last)
        """Those inside of them. Then accumulators are in the results."""
        self.parts: tuple[int, ...] = tuple(d for d in self.outer if d not in self.along)
        """The dimensions of the sliced loop."""
        self.level, self.stages, self.full_roots = plan.level, plan.stages, plan.full_roots
        self.digits: tuple[LoopDigit, ...] = self._guide()
        self._kept: dict[int, dict[int, HloInstruction]] = {}
        """By stage: the values that its loop writes for later ones, by output."""
        self._lost: dict[int, list[HloInstruction]] = {}
        """By stage: the values that its loop reads and overwrites."""
        self._plan_spills()

    def _guide(self) -> tuple[LoopDigit, ...]:
        """The order and the tiles for the loops over the domain, where arrays have tiles; () if no array has."""
        rank = self.domain.shape.rank
        everywhere = tuple(range(rank))
        starts = [(self.roots[k], everywhere, self.fused.root_places.get(k)) for k in self.full_roots]
        arrays = [o for reduce in self.reductions for o in reduce.operands[: len(reduce.operands) // 2]]
        starts += [(array, everywhere, None) for array in arrays]
        return guide_of(starts, self.fused.parameter_places, rank)

    @contextmanager
    def loops_over(
        self, dimensions: Sequence[int], first: int, bounds: tuple[Expr, Expr] | None = None
    ) -> Iterator[Mapping[int, Expr]]:
        """Loops over some dimensions of the domain, tile by tile where there are tiles; gives their indices. Variables
        are named from level `first` on. `bounds`: of the first dimension."""
        if not dimensions:
            yield {}
            return
        if bounds is not None:
            loop = self.writer.loop(loop_variable(first), *bounds)
            with loop as outermost, self.loops_over(dimensions[1:], first + 1) as rest:
                yield {dimensions[0]: outermost, **rest}
            return
        digits = [digit for digit in self.digits if digit.dimension in dimensions]
        if not digits:
            sizes = [self.sizes.of(self.domain, d) for d in dimensions]
            with self.loops(sizes, first) as variables:
                yield dict(zip(dimensions, variables, strict=True))
            return
        names = {d: loop_variable(first + k) for k, d in enumerate(dimensions)}
        loops = self.tile_loops(self.domain, digits, names)
        with loops.over(digits):
            yield {d: loops.index(d) for d in dimensions}

    @property
    def has_tiles(self) -> bool:
        """The loops go tile by tile through an array."""
        return bool(self.digits)

    def tiles_of_columns(self) -> list[LoopDigit]:
        """The loops over the columns, tile by tile, if the sliced loop is over tiles of them."""
        tiles = [digit for digit in self.digits if self.inner == (digit.dimension,)]
        return tiles if len(tiles) > 1 and not self.parts else []

    @property
    def shares_columns(self) -> bool:
        """The sliced loop is over blocks of columns."""
        return bool(self.inner) and not self.outer and not self.tiles_of_columns()

    def reductions_at(self, stage: int) -> list[HloInstruction]:
        """The reductions of a stage."""
        return [r for r in self.reductions if self.level[r] == stage]

    def searched_at(self, stage: int) -> list[HloInstruction]:
        """The reductions of a stage with loops of their own, which look for the largest or smallest element. A short
        row is unrolled, and LLVM makes vectors of many rows: so its elements are compared one after the other."""
        if self.inner or self.has_tiles:
            return []
        if self.reduced and isinstance(self.sizes.of(self.domain, self.reduced[-1]), Number):
            return []
        return [r for r in self.reductions_at(stage) if is_arg_reduction(r)]

    def has_main_loop(self, stage: int) -> bool:
        """The stage has work besides searches."""
        return self.writes_elements(stage) or len(self.reductions_at(stage)) > len(self.searched_at(stage))

    def sinks_at(self, stage: int) -> list[HloInstruction]:
        """The sinks in the loop of a stage."""
        return [sink for sink, where in self.staging.stage_of.items() if where == stage]

    def full_roots_at(self, stage: int) -> list[int]:
        """The full outputs that the loop of a stage writes."""
        return self.staging.full_roots_at(stage)

    def ends_at(self, stage: int) -> list[HloInstruction]:
        """The values that the loop of a stage needs for each element of the domain."""
        sinks = self.staging.sinks
        return [*self.staging.reduced_at(stage), *[o for sink in self.sinks_at(stage) for o in sinks[sink]]]

    def store_full(self, stage: int, index: Index) -> None:
        """Store the values that the loop of a stage writes for each element of the domain."""
        spilled = self._kept.get(stage, {})
        for output, instruction in spilled.items():
            self._spill(instruction, output, index)
        for instruction in self._lost.get(stage, ()):  # all its readers come after the value that overwrites it
            value = self.elements.value(instruction, index)
            if not value.is_simple:
                self.writer.remember(instruction, self.writer.let("kept", value), index)
        outputs = [output for output in self.full_roots_at(stage) if output not in spilled]
        values = [self.elements.value(self.roots[output], index) for output in outputs]
        if len(outputs) > 1 and self.sharing:  # one may overwrite an operand of another one
            values = [v if v.is_simple else self.writer.let("last", v) for v in values]
        for output, value in zip(outputs, values, strict=True):
            self.store(output, self.address(output, index), value)

    def _plan_spills(self) -> None:
        """Expensive values of the loop of one stage that the loop of a later one needs, each kept in an output.

        The output is the value itself, or one that is not written before all have read the value. It may overwrite an
        operand that nobody reads after the value is computed.
        """
        known_from: dict[HloInstruction, int] = {}
        free = list(self.full_roots)
        while free:
            needed: dict[HloInstruction, list[int]] = {}
            for stage in range(self.stages + 1):
                known = {instruction for instruction, first in known_from.items() if first < stage}
                read: set[HloInstruction] = set()
                for instruction in self.staging.full_needs(self.ends_at(stage), known, read):
                    needed.setdefault(instruction, []).append(stage)
                for instruction in read:
                    needed.setdefault(instruction, []).append(stage)
            for instruction in reversed(self.body.instructions):
                where = needed.get(instruction, ())
                if len(where) > 1 and instruction not in known_from:
                    output = self._output_for(instruction, where, [k for k in free if k not in self.sharing])
                    if output is None:
                        over = [k for k in free if k in self.sharing and self._ends(k, instruction, where, known_from)]
                        output = self._output_for(instruction, where, over)
                    if output is not None:
                        break
            else:
                return
            known_from[instruction] = where[0]
            self._kept.setdefault(where[0], {})[output] = instruction
            free.remove(output)
            last = self.staging.stage_of[self.roots[output]]
            if self.roots[output] is not instruction and last in where:
                self._lost.setdefault(last, []).append(instruction)

    def kept_before(self, stage: int) -> dict[HloInstruction, int]:
        """The values that the loops of earlier stages keep in outputs, and which outputs."""
        return {value: output for at, kept in self._kept.items() if at < stage for output, value in kept.items()}

    def _output_for(self, instruction: HloInstruction, where: Sequence[int], free: Sequence[int]) -> int | None:
        """The output that keeps a value which the loops `where` need, if that is better than computing it again."""
        own = [k for k in free if self.roots[k] is instruction]
        if own and any(has_trait(i.opcode, Trait.EXPENSIVE) for i in self.staging.full_needs([instruction])):
            return own[0]
        if own or not has_trait(instruction.opcode, Trait.EXPENSIVE):
            return None
        element = instruction.shape.element
        first, last, stage_of = where[0], where[-1], self.staging.stage_of
        alike = [k for k in free if self.roots[k].shape.element is element]
        return next((k for k in alike if first < stage_of[self.roots[k]] >= last), None)

    def _ends(
        self, output: int, value: HloInstruction, where: Sequence[int], known_from: Mapping[HloInstruction, int]
    ) -> bool:
        """True if the operand that an output overwrites is read for the last time when a value is computed, in the
        first of the loops `where`, and at the same index."""
        operand = self.body.parameters[self.sharing[output]]
        for i in self.staging.full_needs([value]):
            if not has_trait(i.opcode, Trait.ELEMENTWISE) and i is not operand and _reads([i], operand, ()):
                return False
        if _reads([root for k, root in enumerate(self.roots) if k not in self.full_roots], operand, ()):
            return False
        for stage in range(where[0], self.stages + 1):
            known = {i for i, first in known_from.items() if first < stage}
            if _reads(self.ends_at(stage), operand, {*known, value}):
                return False
        return True

    def _spill(self, instruction: HloInstruction, output: int, index: Index) -> None:
        value = self.elements.value(instruction, index)
        if not value.is_simple:
            value = self.writer.let("kept", value)
            self.writer.remember(instruction, value, index)
        self.store(output, self.address(output, index), value)
        self.read_back(instruction, output, index)

    def writes_elements(self, stage: int) -> bool:
        """True if the loop of a stage writes or keeps something for each element of the domain, or accumulates columns
        beside rows."""
        return bool(self.sinks_at(stage) or stage in self._kept or stage in self._lost)

    def is_cheap(self, stage: int, most: int) -> bool:
        """True if the elements that a stage needs are at most `most` operations, none of them an expensive one."""
        needs = self.staging.full_needs(self.ends_at(stage))
        return len(needs) <= most and not any(has_trait(i.opcode, Trait.EXPENSIVE) for i in needs)

    def masks_at(self, stage: int) -> dict[HloInstruction, tuple[Band, HloInstruction]]:
        """The selects by position that save the loop of a stage something expensive: by select, a band and one of its
        operands. Outside of the band, the select is that operand."""
        rank = self.domain.shape.rank
        if self.has_tiles or self.reduced != (rank - 1,) or rank - 2 not in self.kept:
            return {}
        needed = self.staging.full_needs(self.ends_at(stage), self.kept_before(stage))
        spared: set[HloInstruction] = set()
        for instruction in needed:
            if has_trait(instruction.opcode, Trait.EXPENSIVE):
                spared |= self.staging.full_needs([instruction])
        found = {i: mask_of(i) for i in self.body.instructions if i.opcode is Opcode.SELECT and i in spared & needed}
        return {select: mask for select, mask in found.items() if mask is not None}


def _reads(values: Sequence[HloInstruction], operand: HloInstruction, known: Collection[HloInstruction]) -> bool:
    """True if these values need the operand when all reductions and the values `known` are available."""
    stack, seen = list(values), set(known)
    while stack:
        i = stack.pop()
        if i is operand:
            return True
        if i in seen or i.opcode is Opcode.REDUCE:
            continue
        seen.add(i)
        stack.extend(i.operands)
    return False
