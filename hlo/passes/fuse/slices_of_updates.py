"""slices-of-updates: an update's reads of the region that it replaces become a dynamic-slice with the update's indices.

`x.at[1:].set(x[1:] - y)` reads a slice and writes, with constant indices, the same region. Simplification makes static
slices where it can; but a comparison of the indices of reads and writes decides whether an update is computed in place,
and both must be written in the same way for it. This comes after the last simplification.
"""

from __future__ import annotations

from ...builder import make_instruction
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.movement import DynamicSliceAttributes
from ...support.records import dataclass
from ..patterns import splat_value
from ..rewrite import map_computations, rewrite_computation


@dataclass(frozen=True, slots=True)
class SlicesOfUpdates:
    """Rewrites the slices that updates with constant indices need element by element."""

    name: str = "slices-of-updates"

    def __call__(self, module: HloModule) -> HloModule:
        return map_computations(module, _rewritten)


def _rewritten(computation: HloComputation) -> HloComputation:
    indices: dict[HloInstruction, tuple[HloInstruction, ...]] = {}
    for update in computation.instructions:
        if update.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            for found in _slices_of_the_replaced(update):
                indices.setdefault(found, update.operands[2:])
    if not indices:
        return computation

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old not in indices:
            return moved
        return make_instruction(
            Opcode.DYNAMIC_SLICE, (moved.operands[0], *indices[old]), DynamicSliceAttributes(old.shape.dimensions)
        )

    return rewrite_computation(computation, visit)


def _slices_of_the_replaced(update: HloInstruction) -> list[HloInstruction]:
    """The slices of exactly the region that `update` replaces, among the values that its new elements are computed from
    one by one."""
    array, new, *indices = update.operands
    sizes = new.shape.dimensions
    starts = tuple([splat_value(index) for index in indices])
    if not sizes or None in starts:
        return []
    limits = tuple([int(start) + size for start, size in zip(starts, sizes)])
    if any(start < 0 or limit > size for start, limit, size in zip(starts, limits, array.shape.dimensions)):
        return []
    return [
        i
        for i in _cone(new, sizes)
        if i.opcode is Opcode.SLICE
        and i.operands[0] is array
        and i.attributes.start_indices == starts
        and i.attributes.limit_indices == limits
        and set(i.attributes.strides) == {1}
    ]


def _cone(top: HloInstruction, dimensions: tuple[int, ...]) -> list[HloInstruction]:
    """The values that element i of `top` is computed from: element i of these."""
    found: dict[HloInstruction, None] = {top: None}
    stack = [top]
    while stack:
        i = stack.pop()
        if has_trait(i.opcode, Trait.ELEMENTWISE):
            for operand in i.operands:
                if operand.shape.dimensions == dimensions and operand not in found:
                    found[operand] = None
                    stack.append(operand)
    return list(found)
