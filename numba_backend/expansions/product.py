"""The expansions of those products of integers and of halves that have no kernel of their own.

A small product of integers, or one with a vector, is best as a sum that fuses with what makes its operands; one of
halves is a product of f32. A large one has a kernel that takes its operands as they are (`policy/products.py`).
"""

from __future__ import annotations

from ...hlo.builder import make_instruction
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.passes.expand.dot import dot_in_one_type, dot_of_integers
from ...hlo.passes.patterns import convert
from ..policy.products import is_deep, is_small, is_tiled


def dot_in_type_of_blas(dot: HloInstruction) -> HloInstruction | None:
    """`dot_in_one_type`, unless the product is large and of integers or halves. If sums of halves are made in parts,
    these are added in f32."""
    if not is_tiled(dot):
        return dot_in_one_type(dot)
    if dot.shape.element.byte_width > 2 or not dot.shape.element.is_floating or not is_deep(dot):
        return None
    wide = make_instruction(Opcode.DOT, dot.operands, dot.attributes, dot.shape.with_element_type(ElementType.F32))
    return convert(wide, dot.shape.element)


def small_dot_of_integers(dot: HloInstruction) -> HloInstruction | None:
    """`dot_of_integers`, unless the product is large, or one of many."""
    return None if is_tiled(dot) or is_small(dot) else dot_of_integers(dot)
