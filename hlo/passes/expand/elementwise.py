"""Expansions of elementwise ops into simpler ones."""

from __future__ import annotations

import numpy as np

from ...builder import make_constant, make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...shape import Shape
from ..patterns import broadcast, convert

_O = Opcode


def _splat(value: np.generic, like: HloInstruction) -> HloInstruction:
    constant = make_constant(value)
    return broadcast(constant, Shape.array(constant.shape.element, like.shape.dimensions), ())


def _compare(direction: ComparisonDirection, a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(_O.COMPARE, (a, b), CompareAttributes(direction))


def _select(*operands: HloInstruction) -> HloInstruction:
    return make_instruction(_O.SELECT, operands)


def stochastic_convert(instruction: HloInstruction) -> HloInstruction:
    """The magnitude is truncated to an integer, and raised by one if the random number is below the part cut off (as an
    integer of the same width). Out of range becomes the nearest limit, NaN becomes 0. Source: XLA's
    StochasticConvertDecomposer."""
    x, random = instruction.operands
    result = instruction.shape.element
    unsigned = random.shape.element
    computed = ElementType.F64 if x.shape.element is ElementType.F64 else ElementType.F32
    wide = convert(x, computed)
    magnitude = make_instruction(_O.ABS, (wide,))
    whole = make_instruction(_O.FLOOR, (magnitude,))
    part = make_instruction(_O.SUBTRACT, (magnitude, whole))
    scale = _splat(computed.dtype.type(2.0**unsigned.bit_width), wide)
    threshold = convert(make_instruction(_O.MULTIPLY, (part, scale)), unsigned)
    rounds_up = _compare(ComparisonDirection.LT, random, threshold)
    low, high = result.limits
    ends = [_splat(computed.dtype.type(limit), wide) for limit in (low, high)]
    # 64 bits: no magnitude that is in range overflows.
    cut = convert(whole, ElementType.S64)
    raised = make_instruction(_O.ADD, (cut, convert(rounds_up, ElementType.S64)))
    zero = _splat(computed.dtype.type(0), wide)
    is_negative = _compare(ComparisonDirection.LT, wide, zero)
    value = convert(_select(is_negative, make_instruction(_O.NEGATE, (raised,)), raised), result)
    lowest, highest = (convert(_splat(np.int64(limit), wide), result) for limit in (low, high))
    value = _select(_compare(ComparisonDirection.LE, wide, ends[0]), lowest, value)
    return _select(_compare(ComparisonDirection.GE, wide, ends[1]), highest, value)


def complex_extremum(instruction: HloInstruction) -> HloInstruction | None:
    """max and min of complex numbers: the one with the larger (smaller) real part, otherwise the second."""
    a, b = instruction.operands
    if not a.shape.element.is_complex:
        return None
    direction = ComparisonDirection.GE if instruction.opcode is _O.MAXIMUM else ComparisonDirection.LE
    real_a, real_b = (make_instruction(_O.REAL, (x,)) for x in (a, b))
    return _select(_compare(direction, real_a, real_b), a, b)
