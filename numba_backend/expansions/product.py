"""Which products of integers and of halves are kernels of their own, and the expansions of all others.

A small product of integers, or one with a vector, is best as a sum that fuses with what makes its operands; one of
halves is a product of f32. A large one has a kernel that keeps sums in registers (`emit/packed.py`, `emit/blocked.py`),
and takes its operands as they are.
"""

from __future__ import annotations

import math

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.dot import dot_in_one_type, dot_of_integers

LEAST_SIDE = 9
"""Rows and columns of a result that is worth cutting into tiles."""
LEAST_WORK = 1 << 18
"""Multiplications from which on a product has a kernel of its own."""


def is_blocked(dot: HloInstruction) -> bool:
    """True for a large product of two matrices of integers or of halves."""
    elements = [i.shape.element for i in (*dot.operands, dot)]
    if not all(map(_is_integer, elements)) and not _are_halves(*elements):
        return False
    lhs = dot.operands[0].shape
    batches, contracting = len(dot.attributes.lhs_batch_dims), dot.attributes.lhs_contracting_dims
    depth = math.prod(lhs.dimensions[d] for d in contracting)
    first = lhs.rank - len(contracting)
    sides = [math.prod(dot.shape.dimensions[batches:first]), math.prod(dot.shape.dimensions[first:])]
    return min(sides) >= LEAST_SIDE and depth > 1 and dot.shape.num_elements * depth >= LEAST_WORK


def _is_integer(element: ElementType) -> bool:
    return element.is_integral and not element.is_small and element is not ElementType.PRED


def _are_halves(lhs: ElementType, rhs: ElementType, result: ElementType) -> bool:
    """True for floats of 16 bits, which are multiplied in f32."""
    halves = (ElementType.BF16, ElementType.F16)
    return lhs in halves and rhs in halves and (result in halves or result is ElementType.F32)


def dot_in_type_of_blas(dot: HloInstruction) -> HloInstruction | None:
    """`dot_in_one_type`, unless the product is large and of integers or halves."""
    return None if is_blocked(dot) else dot_in_one_type(dot)


def small_dot_of_integers(dot: HloInstruction) -> HloInstruction | None:
    """`dot_of_integers`, unless the product is large."""
    return None if is_blocked(dot) else dot_of_integers(dot)
