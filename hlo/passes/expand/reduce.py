"""Expansion of reductions in small and half types: they accumulate in a wider one."""

from __future__ import annotations

from dataclasses import replace

from ...builder import make_instruction
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ..patterns import convert
from ..simplify.arithmetic import is_lossless
from ..simplify.reducers import binary_reducer
from .small_types import wider_type

_HALF = (ElementType.F16, ElementType.BF16)
_MONOIDS = (Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM)


def reduce_in_wider_type(reduce: HloInstruction) -> HloInstruction | None:
    """Sums, products and extrema (in windows too) of f16, bf16 and smaller floats accumulate in f32 and round once.
    XLA's CPU compiler does the same, except that it rounds sums of f8 at every step. Integers of less than a byte
    accumulate in a byte."""
    element = reduce.operands[0].shape.element
    if len(reduce.operands) != 2 or not (element in _HALF or element.is_small):
        return None
    opcode = _monoid(reduce.attributes.to_apply)
    if opcode is None:
        return None
    wide = ElementType.F32 if element.is_floating else wider_type(element)
    operands = [convert(o, wide) for o in reduce.operands]
    attributes = replace(reduce.attributes, to_apply=binary_reducer(opcode, wide))
    return convert(make_instruction(reduce.opcode, operands, attributes), element)


def _monoid(reducer: HloComputation) -> Opcode | None:
    """The single op of a reducer of two parameters, or None. Conversions around the op are allowed if the intermediate
    type holds all values of the small type and overflows in the same way: s4 through u8 or f32 is another function, and
    so is f8 through s32."""
    root = reducer.root
    element = root.shape.element
    inner = root.operands[0] if root.opcode is Opcode.CONVERT and element.is_small else root
    if inner.opcode not in _MONOIDS:
        return None
    between = inner.shape.element
    if not is_lossless(element, between) or between.is_floating != element.is_floating:
        return None
    sources = {o.operands[0] if inner is not root and o.opcode is Opcode.CONVERT else o for o in inner.operands}
    return inner.opcode if sources == set(reducer.parameters) else None
