"""split-reductions: large reductions to few results run in two steps, so that workers (threads, cores) share the first.

reduce(f32[4194304]) to f32[] becomes a reduction of f32[64,65536] to f32[64] and one of that to f32[]. Sums and
products begin their first step with 0 and 1; for maxima and the like the init value may enter twice.

A dimension that is split is split wherever it comes from and goes to (`regions.py`): in the element-wise instructions
before the reduction and in their other users, in other reductions over the same array. So all of them have the same
dimensions, and fusion can put them into one nest.

Argmax and argmin, on pairs of a value and its index, are split in the same way (`split_arg_reductions.py`), but alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ...analyses.short_sums import in_loops, is_between
from ...builder import make_constant, make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.reduce import ReduceAttributes
from ...support.records import dataclass
from ..rewrite import map_each_computation
from .regions import Region, Regions, renumbered, with_splits
from .split_arg_reductions import split_arg_reductions

LEAST_PARTS = 8
"""Fewer parts are not worth a second step."""

_ROUNDS = 4
"""How often a computation is visited again: an array may have two dimensions that are split."""


@dataclass(frozen=True)
class SplitReductions:
    """The pass. A backend chooses all sizes, depending on how it shares work."""

    large: int
    """The smallest number of elements that is worth splitting."""
    large_columns: int
    """The same for a reduction along columns with many results, since its workers would read narrow strips of the
    rows."""
    large_both: int
    """The same for a reduction along columns if the rows of the array are reduced too: one nest can then do both."""
    wide: int
    """A row of this many results or more is not narrow."""
    few: int
    """With fewer results than this, workers cannot share the results."""
    few_columns: int
    """The same for columns: rows of so many results begin and end within a few vectors, and a worker reads a part of
    each row."""
    large_few_columns: int
    """The smallest number of elements of fewer columns than that."""
    parts: int
    """Wanted number of parts, if a divisor near it exists."""
    rows: int
    """The least wanted length of a part: the second step reads a result of each."""
    most: int
    """A part of many more elements takes so long that nothing can be done between two: there are more parts then, and
    rows that workers could share are split too."""
    name: str = "split-reductions"

    def parts_of(self, elements: int) -> int:
        """The wanted number of parts of so many elements."""
        return max(self.parts, elements // self.most)

    def __call__(self, module: HloModule) -> HloModule:
        inside = set(in_loops(module))
        return map_each_computation(module, lambda old, current: _split_in(self, current, old in inside))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to split a reduction. Its first step keeps the dimensions `kept` and `parts` parts of dimension `cut`."""

    kept: tuple[int, ...]
    cut: int | None = None
    parts: int = 1

    @property
    def last(self) -> int:
        return self.kept[-1] if self.cut is None else self.cut


def _split_in(wanted: SplitReductions, computation: HloComputation, in_loop: bool) -> HloComputation:
    computation = split_arg_reductions(computation, partial(_parts, wanted))
    halves: set[HloInstruction] = set()
    for _ in range(_ROUNDS):
        regions: list[Region] = []
        inside: set[HloInstruction] = set()
        plans: dict[HloInstruction, _Plan] = {}
        found = Regions(computation)
        waiting = False
        for reduce in computation.instructions:
            if reduce in halves or (plan := _plan(reduce, wanted)) is None:
                continue
            if in_loop and is_between(reduce.operands[0]):
                continue  # the loop goes over few of the elements
            if any(region.ends_in(reduce) for region in regions):
                plans[reduce] = plan
                continue
            if not _pays(reduce, plan, found, wanted):
                continue
            if plan.cut is None:
                plans[reduce] = plan
                continue
            region = found.of(reduce.operands[0], plan.cut, plan.parts)
            if not inside.isdisjoint(region.at):
                waiting = True  # for the next round
                continue
            plans[reduce] = plan
            regions.append(region)
            inside |= region.at.keys()
        if plans:
            computation = with_splits(computation, regions, partial(_finished, plans, halves))
        if not waiting:
            break
    return computation


def _parts(wanted: SplitReductions, elements: int, size: int, are_columns: bool) -> int | None:
    """Into how many parts rows of a size are split; None if workers share the rows, or there is no good divisor."""
    few = wanted.few_columns if are_columns else wanted.few
    if elements < wanted.large or (elements // max(size, 1) >= few and size <= wanted.most):
        return None
    return _divisor(size, wanted.parts_of(size), LEAST_PARTS)


def _plan(reduce: HloInstruction, wanted: SplitReductions) -> _Plan | None:
    """How to split a reduction; None if its size has no good divisor, or it cannot be split."""
    if reduce.opcode is not Opcode.REDUCE or len(reduce.operands) != 2:
        return None
    sizes = reduce.operands[0].shape.dimensions
    if math.prod(sizes) < min(wanted.large, wanted.large_columns, wanted.large_both):
        return None
    if _start(reduce) is None:
        return None
    reduced = [d for d in sorted(reduce.attributes.dimensions) if sizes[d] > 1]
    kept: list[int] = []
    count, wanted_parts = 1, wanted.parts_of(math.prod([sizes[d] for d in reduced]))
    for d in reduced:
        if count * sizes[d] < LEAST_PARTS:
            kept.append(d)
            count *= sizes[d]
        elif d != reduced[-1] and count * sizes[d] <= 16 * wanted_parts:
            return _Plan((*kept, d))
        else:
            best = min(wanted_parts / count, sizes[d] / wanted.rows)
            parts = _divisor(sizes[d], best, math.ceil(LEAST_PARTS / count))
            return None if parts is None else _Plan(tuple(kept), d, parts)
    return None


def _pays(reduce: HloInstruction, plan: _Plan, regions: Regions, wanted: SplitReductions) -> bool:
    """True for few results, or narrow strips of columns: after the split each worker reads whole consecutive rows."""
    operand, reduced, results = reduce.operands[0], reduce.attributes.dimensions, reduce.shape.num_elements
    shape, elements = operand.shape, operand.shape.num_elements
    if results < wanted.few or elements > wanted.most * results:
        return elements >= wanted.large
    along_columns = max(reduced) < shape.rank - 1 and math.prod(shape.dimensions[: min(reduced)]) == 1
    if not along_columns or results >= wanted.wide:
        return False
    if elements >= (wanted.large_few_columns if results < wanted.few_columns else wanted.large_columns):
        return True
    return elements >= wanted.large_both and elements in regions.rows(regions.of(operand, plan.last, plan.parts))


def _finished(
    plans: Mapping[HloInstruction, _Plan], halves: set[HloInstruction],
    reduce: HloInstruction, operands: Sequence[HloInstruction], split: int | None,
) -> HloInstruction | None:  # fmt: skip
    """A reduction on new operands, in two steps if it has a plan. `split`: the reduced dimension that is two now."""
    attributes = reduce.attributes
    plan, start = plans.get(reduce), _start(reduce)
    dimensions = attributes.dimensions if split is None else renumbered(attributes.dimensions, split)
    if plan is None or start is None or (split is None and plan.cut is not None):
        return None if split is None else make_instruction(
            Opcode.REDUCE, operands, ReduceAttributes(dimensions, attributes.to_apply)
        )
    kept = {*plan.kept} if split is None else {*renumbered(plan.kept, split), split}
    first = tuple(d for d in dimensions if d not in kept)
    second = tuple(d - sum(e < d for e in first) for d in dimensions if d in kept)
    half = make_instruction(Opcode.REDUCE, (operands[0], start), ReduceAttributes(first, attributes.to_apply))
    whole = make_instruction(Opcode.REDUCE, (half, operands[1]), ReduceAttributes(second, attributes.to_apply))
    halves |= {half, whole}
    return whole


_NEUTRAL = {Opcode.ADD: 0, Opcode.MULTIPLY: 1}
_IDEMPOTENT = frozenset((Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR))


def _start(reduce: HloInstruction) -> HloInstruction | None:
    """The init value of the first of two reductions; None if the reducer cannot be split."""
    reducer, init = reduce.attributes.to_apply, reduce.operands[1]
    root = reducer.root
    if set(root.operands) != set(reducer.parameters) or len(reducer.parameters) != 2:
        return None
    if root.opcode in _IDEMPOTENT:
        return init
    if root.opcode not in _NEUTRAL:
        return None
    return make_constant(np.asarray(_NEUTRAL[root.opcode], init.shape.element.dtype))


def _divisor(size: int, parts: float, least: int) -> int | None:
    """The divisor of `size` nearest to `parts` between `least` and 16 times `parts`, on the scale of ratios."""
    found = [p for p in range(max(least, 2), min(int(16 * parts), size) + 1) if size % p == 0]
    return min(found, key=lambda p: abs(math.log(p / parts)), default=None)
