"""The expansions of those products of integers and of halves that have no kernel of their own.

A small product of integers, or one with a vector, is best as a sum that fuses with what makes its operands; one of
halves is a product of f32. A large one has a kernel that takes its operands as they are (`policy/products.py`).
"""

from __future__ import annotations

from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.dot import dot_in_one_type, dot_of_integers
from ..policy.products import is_tiled


def dot_in_type_of_blas(dot: HloInstruction) -> HloInstruction | None:
    """`dot_in_one_type`, unless the product is large and of integers or halves."""
    return None if is_tiled(dot) else dot_in_one_type(dot)


def small_dot_of_integers(dot: HloInstruction) -> HloInstruction | None:
    """`dot_of_integers`, unless the product is large."""
    return None if is_tiled(dot) else dot_of_integers(dot)
