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
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..loops.expressions import Expr
from .alignment import reductions_of
from .collapse import FusedBody
from .nest import NestEmitter, loop_variable
from .nest_arg import is_arg_reduction
from .physical_index import LoopDigit, guide_of
from .sizes import Index


class ReductionNest(NestEmitter):
    """The reductions are over dimensions of one domain."""

    def __init__(self, fused: FusedBody, sharing: Mapping[int, int]) -> None:
        super().__init__(fused, sharing)
        body = self.body
        groups = reductions_of(body)
        self.reductions: tuple[HloInstruction, ...] = groups.main
        """The reductions that are complete inside of the nest, all over the same dimensions. The last loop of the nest
        is the stage after them."""
        self.columns: tuple[HloInstruction, ...] = groups.columns
        """Beside reductions of rows: those along columns, over the dimensions `along`. Their elements are sinks."""
        self.along: tuple[int, ...] = self.columns[0].attributes.dimensions if self.columns else ()
        first = self.reductions[0]
        self.domain: HloInstruction = first.operands[0]
        self.reduced = first.attributes.dimensions
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
        assert all(
            r.operands[0].shape.dimensions == sizes and r.attributes.dimensions == self.reduced for r in self.reductions
        ), "reductions over different dimensions in one group"
        self.level: dict[HloInstruction, int] = _levels(body)
        """By value: how many reductions, in a chain, must be complete before it can be computed."""
        self.stages: int = 1 + max(self.level[r] for r in self.reductions)
        self.full_roots: list[int] = [k for k, r in enumerate(self.roots) if self.is_full(r)]
        self.digits: tuple[LoopDigit, ...] = self._guide()
        self._stage_of = self._plan_stages()
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
        """The reductions of a stage with loops of their own, which look for the largest or smallest element."""
        if self.inner or self.has_tiles:
            return []
        return [r for r in self.reductions_at(stage) if is_arg_reduction(r)]

    def has_main_loop(self, stage: int) -> bool:
        """The stage has work besides searches."""
        return self.writes_elements(stage) or len(self.reductions_at(stage)) > len(self.searched_at(stage))

    def is_full(self, instruction: HloInstruction) -> bool:
        """True for a value with one element per element of the domain, not per kept index."""
        return bool(self.reduced) and instruction.shape.dimensions == self.domain.shape.dimensions

    def sinks(self) -> Mapping[HloInstruction, Sequence[HloInstruction]]:
        """The work that the nest does for each element of the domain, if no result of it is needed inside: by
        instruction, the values that it needs there."""
        arrays = {r: r.operands[: len(r.operands) // 2] for r in self.columns}
        return {**{self.roots[k]: (self.roots[k],) for k in self.full_roots}, **arrays}

    def sinks_at(self, stage: int) -> list[HloInstruction]:
        """The sinks in the loop of a stage."""
        return [sink for sink, where in self._stage_of.items() if where == stage]

    def full_roots_at(self, stage: int) -> list[int]:
        """The full outputs that the loop of a stage writes."""
        return [output for output in self.full_roots if self._stage_of[self.roots[output]] == stage]

    def ends_at(self, stage: int) -> list[HloInstruction]:
        """The values that the loop of a stage needs for each element of the domain."""
        sinks = self.sinks()
        return [*self._reduced_at(stage), *(o for sink in self.sinks_at(stage) for o in sinks[sink])]

    def _reduced_at(self, stage: int) -> list[HloInstruction]:
        return [o for r in self.reductions if self.level[r] == stage for o in r.operands[: len(r.operands) // 2]]

    def _plan_stages(self) -> dict[HloInstruction, int]:
        """The stage of each sink: among the loops in which its operands are available, the loop that computes most of
        them."""
        needed = [self._full_needs(self._reduced_at(stage)) for stage in range(self.stages + 1)]
        found: dict[HloInstruction, int] = {}
        sinks = self.sinks()
        for sink in sorted(sinks, key=lambda s: -self.level[s]):
            own = self._full_needs(sinks[sink])
            loops = [s for s in range(self.level[sink], self.stages + 1) if s < self.stages or needed[s]]
            loops.reverse()  # the last one of equals: it may overwrite operands
            where = min(loops or [self.stages], key=lambda s: sum(map(_weight, own - needed[s])))
            found[sink] = where
            needed[where] |= own
        return found

    def may_overwrite(self, parameter: HloInstruction, output: int) -> bool:
        """True if the nest may write an output over a parameter: in its last loop, and if all loops read of the
        parameter only the element at their own index."""
        if output not in self.full_roots_at(self.stages):
            return False
        straight: set[HloInstruction] = set()
        stack = [parameter]
        while stack:
            value = stack.pop()
            for user in self.body.users[value]:
                if user.opcode in (Opcode.REDUCE, Opcode.TUPLE) or user in straight:
                    continue
                if not has_trait(user.opcode, Trait.ELEMENTWISE) or not self.is_full(user):
                    return False
                straight.add(user)
                stack.append(user)
        return True

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
        while True:
            needed: dict[HloInstruction, list[int]] = {}
            for stage in range(self.stages + 1):
                known = {instruction for instruction, first in known_from.items() if first < stage}
                read: set[HloInstruction] = set()
                for instruction in self._full_needs(self.ends_at(stage), known, read):
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
            last = self._stage_of[self.roots[output]]
            if self.roots[output] is not instruction and last in where:
                self._lost.setdefault(last, []).append(instruction)

    def kept_before(self, stage: int) -> dict[HloInstruction, int]:
        """The values that the loops of earlier stages keep in outputs, and which outputs."""
        return {value: output for at, kept in self._kept.items() if at < stage for output, value in kept.items()}

    def _output_for(self, instruction: HloInstruction, where: Sequence[int], free: Sequence[int]) -> int | None:
        """The output that keeps a value which the loops `where` need, if that is better than computing it again."""
        own = [k for k in free if self.roots[k] is instruction]
        if own and any(has_trait(i.opcode, Trait.EXPENSIVE) for i in self._full_needs([instruction])):
            return own[0]
        if own or not has_trait(instruction.opcode, Trait.EXPENSIVE):
            return None
        element = instruction.shape.element
        return next(
            (
                k
                for k in free
                if self.roots[k].shape.element is element and where[0] < self._stage_of[self.roots[k]] >= where[-1]
            ),
            None,
        )

    def _ends(
        self, output: int, value: HloInstruction, where: Sequence[int], known_from: Mapping[HloInstruction, int]
    ) -> bool:
        """True if the operand that an output overwrites is read for the last time when a value is computed, in the
        first of the loops `where`, and at the same index."""
        operand = self.body.parameters[self.sharing[output]]
        for i in self._full_needs([value]):
            if not has_trait(i.opcode, Trait.ELEMENTWISE) and i is not operand and _reads([i], operand, ()):
                return False
        if _reads([root for k, root in enumerate(self.roots) if k not in self.full_roots], operand, ()):
            return False
        for stage in range(where[0], self.stages + 1):
            known = {i for i, first in known_from.items() if first < stage}
            if _reads(self.ends_at(stage), operand, {*known, value}):
                return False
        return True

    def _full_needs(
        self,
        ends: Sequence[HloInstruction],
        known: Collection[HloInstruction] = (),
        read: set[HloInstruction] | None = None,
    ) -> set[HloInstruction]:
        """The values with an element for each element of the domain that must be computed for `ends`, if those that are
        `known` are read; these are added to `read`."""
        found: set[HloInstruction] = set()
        stack = [i for i in ends if self.is_full(i)]
        while stack:
            instruction = stack.pop()
            if instruction in known:
                if read is not None:
                    read.add(instruction)
                continue
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
        self.store(output, self.address(output, index), value)
        self.read_back(instruction, output, index)

    def writes_elements(self, stage: int) -> bool:
        """True if the loop of a stage writes or keeps something for each element of the domain, or accumulates columns
        beside rows."""
        return bool(self.sinks_at(stage) or stage in self._kept or stage in self._lost)

    def is_cheap(self, stage: int, most: int) -> bool:
        """True if the elements that a stage needs are at most `most` operations, none of them an expensive one."""
        needs = self._full_needs(self.ends_at(stage))
        return len(needs) <= most and not any(has_trait(i.opcode, Trait.EXPENSIVE) for i in needs)

    def masks_at(self, stage: int) -> dict[HloInstruction, tuple[Band, HloInstruction]]:
        """The selects by position that save the loop of a stage something expensive: by select, a band and one of its
        operands. Outside of the band, the select is that operand."""
        rank = self.domain.shape.rank
        if self.has_tiles or self.reduced != (rank - 1,) or rank - 2 not in self.kept:
            return {}
        needed = self._full_needs(self.ends_at(stage), self.kept_before(stage))
        spared: set[HloInstruction] = set()
        for instruction in needed:
            if has_trait(instruction.opcode, Trait.EXPENSIVE):
                spared |= self._full_needs([instruction])
        found = {i: mask_of(i) for i in self.body.instructions if i.opcode is Opcode.SELECT and i in spared & needed}
        return {select: mask for select, mask in found.items() if mask is not None}


def _weight(instruction: HloInstruction) -> int:
    """The cost of having a value in one more loop."""
    if instruction.opcode is Opcode.PARAMETER:
        return 4
    return 16 if has_trait(instruction.opcode, Trait.EXPENSIVE) else 1


def _levels(body: HloComputation) -> dict[HloInstruction, int]:
    """For a reduction: how many others its operands depend on, in a chain. The same for other values."""
    levels: dict[HloInstruction, int] = {}
    for instruction in body.instructions:
        level = 0
        for operand in instruction.operands:
            level = max(level, levels[operand] + (operand.opcode is Opcode.REDUCE))
        levels[instruction] = level
    return levels


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
