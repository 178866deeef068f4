"""split-reductions: large reductions to few results run in two steps, so that workers (threads, cores) share the first.

reduce(f32[4194304]) to f32[] becomes a reduction of f32[64,65536] to f32[64] and one of that to f32[]. Sums and
products begin their first step with 0 and 1; for maxima and the like the init value may enter twice. Element-wise
instructions before the reduction get the new dimensions too, so that they can still be fused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...builder import make_constant, make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.movement import BroadcastAttributes
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ..rewrite import map_computations, rewrite_computation

MAX_DEPTH = 64
"""How far back element-wise operands are followed."""


@dataclass(frozen=True)
class SplitReductions:
    """The pass. A backend chooses all sizes, depending on how it shares work."""

    large: int
    """The smallest number of elements that is worth splitting."""
    large_columns: int
    """The same for a reduction along columns with many results, whose workers would read narrow strips of the rows."""
    wide: int
    """A row of this many results or more is not narrow."""
    few: int
    """With fewer results than this, workers cannot share the results."""
    parts: int
    """Wanted number of parts, if a divisor near it exists."""
    name: str = "split-reductions"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, partial(_split_in, self))


def _split_in(sizes: SplitReductions, computation: HloComputation) -> HloComputation:
    users = computation.users

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode is not Opcode.REDUCE or len(old.operands) != 2:
            return moved
        single = {o for o in old.operands[:1] if len(users[o]) == 1}
        return split(moved, bool(single), sizes) or moved

    return rewrite_computation(computation, visit)


def split(reduce: HloInstruction, operand_is_ours: bool, wanted: SplitReductions) -> HloInstruction | None:
    """Two reductions instead of one; None if it is small, has many results or its size has no good divisor."""
    operand, init = reduce.operands
    sizes = operand.shape.dimensions
    reduced = reduce.attributes.dimensions
    if not reduced or not _is_worth_it(operand.shape, reduced, reduce.shape.num_elements, wanted):
        return None
    first = min((d for d in reduced if sizes[d] > 1), default=None)
    if first is None:
        return None
    rest = [d for d in reduced if sizes[d] > 1 and d != first]
    to_apply = reduce.attributes.to_apply
    start = _start(to_apply, init)
    if start is None:
        return None
    if rest and 8 <= sizes[first] <= 16 * wanted.parts:
        inner = tuple(d for d in reduced if d != first)
        partial = make_instruction(Opcode.REDUCE, (operand, start), ReduceAttributes(inner, to_apply))
        place = first - sum(d < first for d in inner)
        return make_instruction(Opcode.REDUCE, (partial, init), ReduceAttributes((place,), to_apply))
    parts = _divisor(sizes[first], wanted.parts)
    if parts is None:
        return None
    new_sizes = (*sizes[:first], parts, sizes[first] // parts, *sizes[first + 1 :])
    viewed = _reshaped(operand, new_sizes, operand_is_ours, MAX_DEPTH)
    inner = tuple(d + 1 if d >= first else d for d in reduced)
    partial = make_instruction(Opcode.REDUCE, (viewed, start), ReduceAttributes(inner, to_apply))
    place = first - sum(d < first for d in inner)
    return make_instruction(Opcode.REDUCE, (partial, init), ReduceAttributes((place,), to_apply))


def _is_worth_it(shape: Shape, reduced: tuple[int, ...], results: int, wanted: SplitReductions) -> bool:
    """True for few results, or narrow strips of columns: after the split each worker reads whole consecutive rows."""
    if results < wanted.few:
        return shape.num_elements >= wanted.large
    along_columns = max(reduced) < shape.rank - 1 and math.prod(shape.dimensions[: min(reduced)]) == 1
    return along_columns and shape.num_elements >= wanted.large_columns and results < wanted.wide


_NEUTRAL = {Opcode.ADD: 0, Opcode.MULTIPLY: 1}
_IDEMPOTENT = frozenset((Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR))


def _start(reducer: HloComputation, init: HloInstruction) -> HloInstruction | None:
    """The init value of the first of two reductions; None if the reducer cannot be split."""
    root = reducer.root
    if set(root.operands) != set(reducer.parameters) or len(reducer.parameters) != 2:
        return None
    if root.opcode in _IDEMPOTENT:
        return init
    if root.opcode not in _NEUTRAL:
        return None
    return make_constant(np.asarray(_NEUTRAL[root.opcode], init.shape.element.dtype))


def _divisor(size: int, parts: int) -> int | None:
    """The divisor of `size` nearest to `parts` between 8 and 16 times `parts`, on the scale of ratios."""
    found = [p for p in range(8, min(16 * parts, size) + 1) if size % p == 0]
    return min(found, key=lambda p: abs(math.log(p / parts)), default=None)


def _reshaped(x: HloInstruction, sizes: tuple[int, ...], ours: bool, depth: int) -> HloInstruction:
    """`x` with other dimensions; element-wise instructions without other users get the new dimensions too."""
    shape = Shape.array(x.shape.element, sizes)
    if x.opcode is Opcode.BROADCAST and not x.operands[0].shape.rank:
        return make_instruction(Opcode.BROADCAST, x.operands, BroadcastAttributes(()), shape)
    if x.opcode is Opcode.RESHAPE:
        return make_instruction(Opcode.RESHAPE, x.operands, shape=shape)
    if ours and depth and has_trait(x.opcode, Trait.ELEMENTWISE) and x.opcode is not Opcode.COPY:
        # An operand further back may have other users: it is then computed twice, unless it is already a value in
        # memory. That is still correct, and only cheap operands are followed.
        operands = [
            o if not o.shape.rank else _reshaped(o, sizes, not has_trait(o.opcode, Trait.EXPENSIVE), depth - 1)
            for o in x.operands
        ]
        return make_instruction(x.opcode, operands, x.attributes, shape)
    return make_instruction(Opcode.RESHAPE, (x,), shape=shape)
