"""The stages of a fused computation with reductions: what is computed in which loop, before any loop is written.

It depends on the computation alone, so a nest, and the rule of the outputs that overwrite operands, share one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from .alignment import reductions_of


class StagePlan:
    """The reductions are over dimensions of one domain."""

    def __init__(self, body: HloComputation) -> None:
        self.body = body
        self.roots: tuple[HloInstruction, ...] = body.roots
        groups = reductions_of(body)
        self.reductions: tuple[HloInstruction, ...] = groups.main
        """The reductions that are complete inside of the nest, all over the same dimensions. The last loop of the nest
        is the stage after them."""
        self.columns: tuple[HloInstruction, ...] = groups.columns
        """Beside reductions of rows: those along columns. Their elements are sinks."""
        first = self.reductions[0]
        self.domain: HloInstruction = first.operands[0]
        self.reduced: tuple[int, ...] = first.attributes.dimensions
        sizes = self.domain.shape.dimensions
        assert all(
            r.operands[0].shape.dimensions == sizes and r.attributes.dimensions == self.reduced for r in self.reductions
        ), "reductions over different dimensions in one group"
        self.level: dict[HloInstruction, int] = _levels(body)
        """By value: how many reductions, in a chain, must be complete before it can be computed."""
        self.stages: int = 1 + max(self.level[r] for r in self.reductions)
        self.full_roots: tuple[int, ...] = tuple([k for k, r in enumerate(self.roots) if self.is_full(r)])
        self.sinks: Mapping[HloInstruction, Sequence[HloInstruction]] = self._sinks()
        """The work that the nest does for each element of the domain, if no result of it is needed inside: by
        instruction, the values that it needs there."""
        self.stage_of: Mapping[HloInstruction, int] = self._plan_stages()
        """The stage of each sink."""

    def is_full(self, instruction: HloInstruction) -> bool:
        """True for a value with one element per element of the domain, not per kept index."""
        return bool(self.reduced) and instruction.shape.dimensions == self.domain.shape.dimensions

    def _sinks(self) -> Mapping[HloInstruction, Sequence[HloInstruction]]:
        arrays = {r: r.operands[: len(r.operands) // 2] for r in self.columns}
        return {**{self.roots[k]: (self.roots[k],) for k in self.full_roots}, **arrays}

    def full_roots_at(self, stage: int) -> list[int]:
        """The full outputs that the loop of a stage writes."""
        return [output for output in self.full_roots if self.stage_of[self.roots[output]] == stage]

    def reduced_at(self, stage: int) -> list[HloInstruction]:
        """The arrays of the reductions of a stage."""
        return [o for r in self.reductions if self.level[r] == stage for o in r.operands[: len(r.operands) // 2]]

    def _plan_stages(self) -> dict[HloInstruction, int]:
        """Among the loops in which a sink's operands are available, the loop that computes most of them."""
        found: dict[HloInstruction, int] = {}
        if not self.sinks:
            return found
        needed = [self.full_needs(self.reduced_at(stage)) for stage in range(self.stages + 1)]
        for sink in sorted(self.sinks, key=lambda s: -self.level[s]):
            own = self.full_needs(self.sinks[sink])
            loops = [s for s in range(self.level[sink], self.stages + 1) if s < self.stages or needed[s]]
            loops.reverse()  # the last one of equals: it may overwrite operands
            where = min(loops or [self.stages], key=lambda s: sum(map(_weight, own - needed[s])))
            found[sink] = where
            needed[where] |= own
        return found

    def full_needs(
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
                stack.extend([o for o in instruction.operands if self.is_full(o)])
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
