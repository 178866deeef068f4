"""Expansions for small element types: floats of a byte or less, integers of less than a byte.

Kernels move, select and convert them; all other ops are computed in a wider type and rounded after each op. Source
of the idea, and of the wider types: XLA's FloatNormalization as its CPU compiler uses it (f8 in f16, f8e8m0fnu in f32).
"""

from __future__ import annotations

import numpy as np

from ...builder import make_constant, make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.movement import ConcatenateAttributes, SliceAttributes
from ...shape import Shape
from ..patterns import broadcast, convert, reshape

_O = Opcode

HELD_AS_THEY_ARE = frozenset((_O.CONVERT, _O.SELECT, _O.COPY, _O.BITCAST_CONVERT, _O.MAP, _O.STOCHASTIC_CONVERT))
"""Elementwise ops that need no wider type for small types."""

COMPUTED_WIDER = tuple(o for o in Opcode if has_trait(o, Trait.ELEMENTWISE) and o not in HELD_AS_THEY_ARE)
"""The opcodes that the rule `computed_wider` applies to."""

_UNSIGNED_BITS = frozenset((_O.COUNT_LEADING_ZEROS, _O.POPULATION_COUNT, _O.SHIFT_RIGHT_LOGICAL))
"""Ops that treat the sign bit like any other bit."""


def wider_type(element_type: ElementType) -> ElementType:
    """The type in which a small type is computed."""
    if element_type.is_floating:
        return ElementType.F32 if element_type is ElementType.F8E8M0FNU else ElementType.F16
    return ElementType.S8 if element_type.is_signed else ElementType.U8


def unsigned_of(element_type: ElementType) -> ElementType:
    """The unsigned integer type of the same width."""
    return ElementType(f"u{element_type.bit_width}")


def _signed_of(element_type: ElementType) -> ElementType:
    return ElementType(f"s{element_type.bit_width}")


def computed_wider(instruction: HloInstruction) -> HloInstruction | None:
    """An elementwise op on a small type: its operands converted to the wider type, and the result back."""
    small = next((o.shape.element for o in instruction.operands if o.shape.element.is_small), None)
    result = instruction.shape.element
    if small is None and not result.is_small:
        return None
    assert small is not None
    view = small
    if instruction.opcode in _UNSIGNED_BITS:
        view = unsigned_of(small)
    elif instruction.opcode is _O.SHIFT_RIGHT_ARITHMETIC:
        view = _signed_of(small)
    wide = wider_type(view)
    operands = [
        convert(convert(o, view), wide) if o.shape.element is small else o for o in instruction.operands
    ]
    if instruction.opcode is _O.MULHI:
        first, second = operands
        return convert(_upper_half(first, second, small), small)
    computed_type = wide if result is small else result
    shape = Shape.array(computed_type, instruction.shape.dimensions)
    computed = make_instruction(instruction.opcode, operands, instruction.attributes, shape)
    if instruction.opcode is _O.COUNT_LEADING_ZEROS:
        surplus = make_constant(wide.dtype.type(wide.bit_width - small.bit_width))
        computed = make_instruction(_O.SUBTRACT, (computed, broadcast(surplus, computed.shape, ())))
    return convert(convert(computed, view), result) if result is small else computed


def _upper_half(a: HloInstruction, b: HloInstruction, small: ElementType) -> HloInstruction:
    """The upper half of the product of two small integers, as bytes: these hold the whole product."""
    opcode = _O.SHIFT_RIGHT_ARITHMETIC if small.is_signed else _O.SHIFT_RIGHT_LOGICAL
    distance = make_constant(a.shape.element.dtype.type(small.bit_width))
    return make_instruction(opcode, (make_instruction(_O.MULTIPLY, (a, b)), broadcast(distance, a.shape, ())))


def bitcast_of_other_width(instruction: HloInstruction) -> HloInstruction | None:
    """A bitcast-convert between types of different widths. Whole bytes: the same bytes as more or fewer elements. Less
    than a byte: shifted out of bytes, or into them, the least significant part first."""
    operand = instruction.operands[0]
    before, after = operand.shape.element, instruction.shape.element
    if before.bit_width == after.bit_width:
        return None
    if min(before.bit_width, after.bit_width) >= 8:
        return make_instruction(_O.BITCAST, (operand,), shape=instruction.shape)
    if before.bit_width > after.bit_width:
        return _taken_apart(operand, instruction.shape)
    return _put_together(operand, instruction.shape)


def bitcast_to_other_type(instruction: HloInstruction) -> HloInstruction | None:
    """A bitcast that changes the element type, XLA's CPU form of a bitcast-convert: that op, then a reshape."""
    operand = instruction.operands[0]
    before, after = operand.shape.element, instruction.shape.element
    plain = before is not ElementType.PRED and after is not ElementType.PRED and not before.is_complex
    if before is after or before.bit_width != after.bit_width or not plain or after.is_complex:
        return None
    return make_instruction(_O.BITCAST, (_bits_as(operand, after),), shape=instruction.shape)


def _bits_as(operand: HloInstruction, element_type: ElementType) -> HloInstruction:
    """bitcast-convert to a type of the same width."""
    if operand.shape.element is element_type:
        return operand
    shape = Shape.array(element_type, operand.shape.dimensions)
    return make_instruction(_O.BITCAST_CONVERT, (operand,), shape=shape)


def _shift(opcode: Opcode, operand: HloInstruction, distance: int) -> HloInstruction:
    if not distance:
        return operand
    distances = broadcast(make_constant(np.uint8(distance)), operand.shape, ())
    return make_instruction(opcode, (operand, distances))


def _taken_apart(operand: HloInstruction, result: Shape) -> HloInstruction:
    bits = result.element.bit_width
    source_bits = operand.shape.element.bit_width
    if source_bits > 8:
        shape = Shape.array(ElementType.U8, (*operand.shape.dimensions, source_bits // 8))
        whole = make_instruction(_O.BITCAST_CONVERT, (operand,), shape=shape)
    else:
        whole = convert(_bits_as(operand, unsigned_of(operand.shape.element)), ElementType.U8)
    whole = reshape(whole, (*whole.shape.dimensions, 1))
    count = min(source_bits, 8) // bits
    shifted = [_shift(_O.SHIFT_RIGHT_LOGICAL, whole, k * bits) for k in range(count)]
    parts = make_instruction(_O.CONCATENATE, shifted, ConcatenateAttributes(whole.shape.rank - 1))
    # The conversion drops the upper bits.
    narrow = convert(reshape(parts, result.dimensions), unsigned_of(result.element))
    return _bits_as(narrow, result.element)


def _put_together(operand: HloInstruction, result: Shape) -> HloInstruction:
    bits = operand.shape.element.bit_width
    result_bits = result.element.bit_width
    parts = convert(_bits_as(operand, unsigned_of(operand.shape.element)), ElementType.U8)
    count = min(result_bits, 8) // bits
    grouped = (*parts.shape.dimensions[:-1], parts.shape.dimensions[-1] // count, count)
    parts = reshape(parts, grouped)
    rank = len(grouped)
    whole: HloInstruction | None = None
    for k in range(count):
        attributes = SliceAttributes((0,) * (rank - 1) + (k,), (*grouped[:-1], k + 1), (1,) * rank)
        part = reshape(make_instruction(_O.SLICE, (parts,), attributes), grouped[:-1])
        shifted = _shift(_O.SHIFT_LEFT, part, k * bits)
        whole = shifted if whole is None else make_instruction(_O.OR, (whole, shifted))
    assert whole is not None
    if result_bits > 8:
        return make_instruction(_O.BITCAST_CONVERT, (whole,), shape=result)
    whole = reshape(whole, result.dimensions)
    return _bits_as(convert(whole, unsigned_of(result.element)), result.element)
