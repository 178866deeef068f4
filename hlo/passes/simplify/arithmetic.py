"""Rules of the algebraic simplifier for element-wise operations.

A rule takes an instruction of the opcodes it is listed for and returns its replacement, or None. Its docstring states
the element types that it holds for; "floats" include f16 and bf16, NaN stays NaN but its payload may change.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...builder import make_instruction
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...shape import Shape
from ..patterns import (
    binary,
    broadcast,
    computed_splat,
    convert,
    degenerate_map,
    is_integer_or_pred,
    is_never_negative_zero,
    is_splat,
    is_true_of,
    make_splat,
    reducer_identity,
    reshape,
    splat_literal,
    splat_value,
    unary,
)
from ..rules import rule

Instruction = HloInstruction


def add_zero(i: Instruction) -> Instruction | None:
    """x + 0 = x for integers and pred. For floats and complex x + -0.0 = x, and x + 0.0 = x only if x is known never
    to be -0.0, as -0.0 + 0.0 is 0.0."""
    for x, zero in (i.operands, i.operands[::-1]):
        if is_splat(zero, 0.0 if is_integer_or_pred(i) else -0.0):
            return x
        if is_splat(zero, 0.0) and is_never_negative_zero(x):
            return x
    return None


def add_negated(i: Instruction) -> Instruction | None:
    """a + -b = a - b and -a + b = b - a, exactly for all numbers."""
    a, b = i.operands
    if b.opcode is Opcode.NEGATE:
        return binary(Opcode.SUBTRACT, a, b.operands[0])
    if a.opcode is Opcode.NEGATE:
        return binary(Opcode.SUBTRACT, b, a.operands[0])
    return None


def add_constants(i: Instruction) -> Instruction | None:
    """(x + c) + d = x + (c + d) and (c - x) + d = (c + d) - x for integers, which wrap around; floats round."""
    if not i.shape.element.is_integral:
        return None
    for inner, other in (i.operands, i.operands[::-1]):
        d = splat_value(other)
        if d is None or inner.opcode not in (Opcode.ADD, Opcode.SUBTRACT):
            continue
        first, second = inner.operands
        if inner.opcode is Opcode.SUBTRACT and splat_value(first) is not None:
            return binary(Opcode.SUBTRACT, make_splat(_wrapped_sum(splat_value(first), d), i.shape), second)
        for x, constant in ((first, second), (second, first)):
            if inner.opcode is Opcode.ADD and splat_value(constant) is not None:
                return binary(Opcode.ADD, x, make_splat(_wrapped_sum(splat_value(constant), d), i.shape))
    return None


def _wrapped_sum(a: Any, b: Any) -> Any:
    with np.errstate(over="ignore"):
        return a + b


def subtract_constant(i: Instruction) -> Instruction | None:
    """x - c = x + -c for integers and a constant c; sums then meet `add_constants`."""
    a, b = i.operands
    if not i.shape.element.is_integral or splat_value(a) is not None:
        return None
    value = splat_value(b)
    if value is None:
        return None
    with np.errstate(over="ignore"):
        return binary(Opcode.ADD, a, make_splat(np.negative(value), i.shape))


def subtract_zero(i: Instruction) -> Instruction | None:
    """x - 0 = x for all numbers, if the zero is 0.0 (not -0.0: -0.0 - -0.0 is 0.0)."""
    a, b = i.operands
    return a if is_splat(b, 0.0) else None


def subtract_from_zero(i: Instruction) -> Instruction | None:
    """0 - x = -x for integers; for floats and complex only -0.0 - x = -x, as 0.0 - 0.0 is 0.0."""
    a, b = i.operands
    return unary(Opcode.NEGATE, b) if is_splat(a, 0.0 if is_integer_or_pred(i) else -0.0) else None


def subtract_negated(i: Instruction) -> Instruction | None:
    """a - -b = a + b, exactly for all numbers."""
    a, b = i.operands
    return binary(Opcode.ADD, a, b.operands[0]) if b.opcode is Opcode.NEGATE else None


def subtract_itself(i: Instruction) -> Instruction | None:
    """x - x = 0 for integers; not for floats (NaN, infinity)."""
    a, b = i.operands
    return make_splat(0, i.shape) if a is b and is_integer_or_pred(i) else None


def multiply_one(i: Instruction) -> Instruction | None:
    """x * 1 = x for integers, pred and floats; not for complex (infinity times 1+0i has a NaN part)."""
    a, b = i.operands
    if i.shape.element.is_complex:
        return None
    return a if is_splat(b, 1.0) else b if is_splat(a, 1.0) else None


def multiply_zero(i: Instruction) -> Instruction | None:
    """x * 0 = 0 for integers and pred; not for floats (NaN, infinity, -0.0)."""
    a, b = i.operands
    return make_splat(0, i.shape) if is_integer_or_pred(i) and (is_splat(a, 0.0) or is_splat(b, 0.0)) else None


def multiply_minus_one(i: Instruction) -> Instruction | None:
    """x * -1 = -x for signed integers and floats."""
    if not i.shape.element.is_signed or i.shape.element.is_complex:
        return None
    a, b = i.operands
    other = a if is_splat(b, -1.0) else b if is_splat(a, -1.0) else None
    return None if other is None else unary(Opcode.NEGATE, other)


def multiply_negated(i: Instruction) -> Instruction | None:
    """-a * -b = a * b for integers (modulo 2^n) and floats."""
    a, b = i.operands
    if a.opcode is Opcode.NEGATE and b.opcode is Opcode.NEGATE and not i.shape.element.is_complex:
        return binary(Opcode.MULTIPLY, a.operands[0], b.operands[0])
    return None


def divide_one(i: Instruction) -> Instruction | None:
    """x / 1 = x for integers and floats."""
    a, b = i.operands
    return a if is_splat(b, 1.0) and not i.shape.element.is_complex else None


def divide_negated(i: Instruction) -> Instruction | None:
    """-a / -b = a / b for floats; not for integers (the smallest one is its own negative)."""
    a, b = i.operands
    if a.opcode is Opcode.NEGATE and b.opcode is Opcode.NEGATE and i.shape.element.is_floating:
        return binary(Opcode.DIVIDE, a.operands[0], b.operands[0])
    return None


def divide_by_power_of_two(i: Instruction) -> Instruction | None:
    """x / 2^k = x * 2^-k for floats: both round the same number, if 2^-k is a normal number of the type.

    Not for the sum of a mean, nor in its derivative: it would save little, and the mean of 128 elements would have
    another kernel than the mean of 96. Not for a number either, which constant folding divides.
    """
    a, b = i.operands
    literal = splat_literal(b)
    if literal is None or not i.shape.element.is_floating or _is_of_sums(a) or _is_number(a):
        return None
    if not is_true_of(literal, lambda divisor: _has_exact_reciprocal(float(divisor), i.shape.element)):
        return None
    return binary(Opcode.MULTIPLY, a, computed_splat(literal, lambda divisor: 1.0 / float(divisor), i.shape))


def _has_exact_reciprocal(divisor: float, element: ElementType) -> bool:
    """True for a power of two other than 1, and its negative, whose reciprocal is a normal number."""
    if not math.isfinite(divisor) or divisor in (0.0, 1.0) or abs(math.frexp(divisor)[0]) != 0.5:
        return False
    reciprocal = float(np.asarray(1.0 / divisor).astype(element.dtype))
    return float(_smallest_normal(element)) <= abs(reciprocal) < math.inf


_REPEATS = frozenset({Opcode.BROADCAST, Opcode.CONVERT, Opcode.RESHAPE})


def _is_of_sums(a: Instruction) -> bool:
    """True for results of a reduction and for products with them, of as many elements, perhaps repeated afterwards."""
    while a.opcode in _REPEATS:
        a = a.operands[0]
    candidates = a.operands if a.opcode is Opcode.MULTIPLY else (a,)
    for found in candidates:
        while found.opcode is Opcode.RESHAPE:
            found = found.operands[0]
        if found.opcode is Opcode.REDUCE:
            return True
    return False


def _is_number(a: Instruction) -> bool:
    """True for a constant and for the negative of one, perhaps repeated."""
    while a.opcode in (Opcode.BROADCAST, Opcode.NEGATE):
        a = a.operands[0]
    return a.opcode is Opcode.CONSTANT


_SMALLEST_NORMAL = {ElementType.F16: 2.0**-14, ElementType.BF16: 2.0**-126, ElementType.F32: 2.0**-126}


def _smallest_normal(element_type: ElementType) -> float:
    return _SMALLEST_NORMAL.get(element_type, 2.0**-1022)


def power_of_constant(i: Instruction) -> Instruction | None:
    """power(x, n) for n = 0, 1, 2, 3 is 1, x, x * x, x * x * x (also for NaN: power(NaN, 0) is 1); for floats
    power(x, -1) = 1 / x. Integers wrap alike. Not n = 0.5: power(-0.0, 0.5) is 0.0, sqrt(-0.0) is not."""
    x, exponent = i.operands
    n = splat_value(exponent)
    if n is None or i.shape.element.is_complex:
        return None
    if n == 0:
        return make_splat(1, i.shape)
    if n == 1:
        return x
    if n == 2:
        return binary(Opcode.MULTIPLY, x, x)
    if n == 3:
        return binary(Opcode.MULTIPLY, binary(Opcode.MULTIPLY, x, x), x)
    if n == -1 and i.shape.element.is_floating:
        return binary(Opcode.DIVIDE, make_splat(1, i.shape), x)
    return None


def undo_itself(i: Instruction) -> Instruction | None:
    """negate(negate(x)) = x, not(not(x)) = x, for all types."""
    (x,) = i.operands
    return x.operands[0] if x.opcode is i.opcode else None


def negate_scaled(i: Instruction) -> Instruction | None:
    """-(x * c) = x * -c and -(x / c) = x / -c for floats and a constant c."""
    (x,) = i.operands
    if x.opcode not in (Opcode.MULTIPLY, Opcode.DIVIDE) or not i.shape.element.is_floating:
        return None
    a, b = x.operands
    if splat_literal(b) is None and x.opcode is Opcode.MULTIPLY:
        a, b = b, a
    literal = splat_literal(b)
    return None if literal is None else binary(x.opcode, a, computed_splat(literal, operator.neg, i.shape))


def idempotent(i: Instruction) -> Instruction | None:
    """f(f(x)) = f(x) for abs of real numbers, floor, ceil and both roundings; sign too (a NaN stays one)."""
    (x,) = i.operands
    return x if x.opcode is i.opcode and not i.operands[0].operands[0].shape.element.is_complex else None


def abs_negated(i: Instruction) -> Instruction | None:
    """abs(-x) = abs(x) for all signed types."""
    (x,) = i.operands
    return unary(Opcode.ABS, x.operands[0]) if x.opcode is Opcode.NEGATE else None


def not_compare(i: Instruction) -> Instruction | None:
    """not(a < b) = a >= b and so on for integers and pred; for floats only not(a = b), not(a != b) (NaN)."""
    (x,) = i.operands
    if x.opcode is not Opcode.COMPARE:
        return None
    direction = x.attributes.direction
    if not is_integer_or_pred(x.operands[0]) and direction not in (ComparisonDirection.EQ, ComparisonDirection.NE):
        return None
    return make_instruction(Opcode.COMPARE, x.operands, CompareAttributes(_INVERSE[direction], x.attributes.type))


_D = ComparisonDirection
_INVERSE = {_D.EQ: _D.NE, _D.NE: _D.EQ, _D.LT: _D.GE, _D.GE: _D.LT, _D.GT: _D.LE, _D.LE: _D.GT}


def same_operands(i: Instruction) -> Instruction | None:
    """max(x, x) = min(x, x) = and(x, x) = or(x, x) = x for all types."""
    a, b = i.operands
    return a if a is b else None


def neutral_bound(i: Instruction) -> Instruction | None:
    """max(x, lowest) = min(x, highest) = or(x, 0) = and(x, ~0) = x: infinities for floats (NaN stays NaN)."""
    if i.shape.element.is_complex:
        return None
    neutral = reducer_identity(i.opcode, i.shape.element)
    a, b = i.operands
    return a if is_splat(b, neutral) else b if is_splat(a, neutral) else None


def absorbing_bits(i: Instruction) -> Instruction | None:
    """and(x, 0) = 0 and or(x, ~0) = ~0 for integers and pred."""
    a, b = i.operands
    other = Opcode.OR if i.opcode is Opcode.AND else Opcode.AND
    absorbing = reducer_identity(other, i.shape.element)
    return b if is_splat(b, absorbing) else a if is_splat(a, absorbing) else None


def xor_itself(i: Instruction) -> Instruction | None:
    """xor(x, x) = 0."""
    a, b = i.operands
    return make_splat(0, i.shape) if a is b else None


def xor_zero(i: Instruction) -> Instruction | None:
    """xor(x, 0) = x."""
    a, b = i.operands
    return a if is_splat(b, 0.0) else b if is_splat(a, 0.0) else None


def shift_zero(i: Instruction) -> Instruction | None:
    """x << 0 = x >> 0 = x."""
    a, b = i.operands
    return a if is_splat(b, 0.0) else None


def select_constant(i: Instruction) -> Instruction | None:
    """select(true, a, b) = a, select(false, a, b) = b."""
    pred, a, b = i.operands
    value = splat_value(pred)
    return None if value is None else a if value else b


def select_equal(i: Instruction) -> Instruction | None:
    """select(p, a, a) = a."""
    _, a, b = i.operands
    return a if a is b else None


def select_not(i: Instruction) -> Instruction | None:
    """select(not(p), a, b) = select(p, b, a)."""
    pred, a, b = i.operands
    return make_instruction(Opcode.SELECT, (pred.operands[0], b, a)) if pred.opcode is Opcode.NOT else None


def select_of_truth(i: Instruction) -> Instruction | None:
    """select(p, true, false) = p and select(p, false, true) = not(p), if p is not a scalar for an array."""
    pred, a, b = i.operands
    if i.shape.element is not ElementType.PRED or pred.shape.dimensions != i.shape.dimensions:
        return None
    if is_splat(a, True) and is_splat(b, False):
        return pred
    return unary(Opcode.NOT, pred) if is_splat(a, False) and is_splat(b, True) else None


def _is_compare(i: Instruction, direction: ComparisonDirection, value: int) -> bool:
    return (
        i.opcode is Opcode.COMPARE and i.attributes.direction is direction and is_splat(i.operands[1], value)
    )


def _floor_remainder(i: Instruction) -> tuple[Instruction, int] | None:
    """(r, c) if `i` is select(r < 0, r + c, r) for the remainder r of a signed integer by a constant c > 0."""
    if i.opcode is not Opcode.SELECT:
        return None
    is_negative, plus, r = i.operands
    if r.opcode is not Opcode.REMAINDER or not r.shape.element.is_integral or not r.shape.element.is_signed:
        return None
    divisor = splat_value(r.operands[1])
    if divisor is None or divisor <= 0 or not _is_compare(is_negative, _D.LT, 0) or is_negative.operands[0] is not r:
        return None
    if plus.opcode is not Opcode.ADD or plus.operands[0] is not r or not is_splat(plus.operands[1], divisor):
        return None
    return r, int(divisor)


def floor_remainder_by_power_of_two(i: Instruction) -> Instruction | None:
    """x mod 2^k, with the sign of 2^k, is the low bits of x, for signed integers; as JAX and NumPy write it,
    select(r < 0, r + 2^k, r) with r = remainder(x, 2^k)."""
    found = _floor_remainder(i)
    if found is None or found[1] & (found[1] - 1):
        return None
    return binary(Opcode.AND, found[0].operands[0], make_splat(found[1] - 1, i.shape))


def compare_floor_remainder(i: Instruction) -> Instruction | None:
    """x mod c = 0, and x mod c != 0, with either sign of the remainder, for signed integers and a constant c > 0."""
    if i.attributes.direction not in (_D.EQ, _D.NE) or not is_splat(i.operands[1], 0):
        return None
    found = _floor_remainder(i.operands[0])
    return None if found is None else make_instruction(i.opcode, (found[0], i.operands[1]), i.attributes)


def floor_divide_by_power_of_two(i: Instruction) -> Instruction | None:
    """floor(x / 2^k) is x shifted right, for signed integers; as JAX writes it, select(sign(x) != 1 and
    remainder(x, 2^k) != 0, q - 1, q) with q = divide(x, 2^k)."""
    differs, less, q = i.operands
    if q.opcode is not Opcode.DIVIDE or not q.shape.element.is_integral or not q.shape.element.is_signed:
        return None
    x, by = q.operands
    divisor = splat_value(by)
    if divisor is None or divisor <= 0 or int(divisor) & (int(divisor) - 1):
        return None
    if less.opcode is not Opcode.ADD or less.operands[0] is not q or not is_splat(less.operands[1], -1):
        return None
    if differs.opcode is not Opcode.AND:
        return None
    for sign, rest in (differs.operands, differs.operands[::-1]):
        if not _is_compare(sign, _D.NE, 1) or not _is_compare(rest, _D.NE, 0):
            continue
        sign, rest = sign.operands[0], rest.operands[0]
        if sign.opcode is not Opcode.SIGN or sign.operands[0] is not x or rest.opcode is not Opcode.REMAINDER:
            continue
        if rest.operands[0] is x and is_splat(rest.operands[1], divisor):
            shift = make_splat(int(divisor).bit_length() - 1, i.shape)
            return binary(Opcode.SHIFT_RIGHT_ARITHMETIC, x, shift)
    return None


def less_and_different(i: Instruction) -> Instruction | None:
    """x < y and x != y is x < y, and so for >, for all types."""
    a, b = i.operands
    if not a.opcode is b.opcode is Opcode.COMPARE or set(a.operands) != set(b.operands):
        return None
    for less, different in ((a, b), (b, a)):
        if less.attributes.direction in (_D.LT, _D.GT) and different.attributes.direction is _D.NE:
            return less
    return None


def compare_itself(i: Instruction) -> Instruction | None:
    """x = x, x <= x, x >= x are true, x != x, x < x, x > x false for integers and pred; for floats only x < x and
    x > x are known, as NaN is not equal to itself."""
    a, b = i.operands
    direction = i.attributes.direction
    if a is not b or (not is_integer_or_pred(a) and direction not in (_D.LT, _D.GT)):
        return None
    return make_splat(direction in (_D.EQ, _D.LE, _D.GE), i.shape)


def compare_unsigned_zero(i: Instruction) -> Instruction | None:
    """x < 0 is false, x >= 0 true for unsigned integers."""
    a, b = i.operands
    if not a.shape.element.is_integral or a.shape.element.is_signed or not is_splat(b, 0.0):
        return None
    if i.attributes.direction in (_D.LT, _D.GE):
        return make_splat(i.attributes.direction is _D.GE, i.shape)
    return None


def compare_pred(i: Instruction) -> Instruction | None:
    """p = true, p != false are p; p = false, p != true are not(p)."""
    p, constant = i.operands
    if p.shape.element is not ElementType.PRED or i.attributes.direction not in (_D.EQ, _D.NE):
        return None
    value = splat_value(constant)
    if value is None:
        return None
    return p if bool(value) == (i.attributes.direction is _D.EQ) else unary(Opcode.NOT, p)


def compare_converted_pred(i: Instruction) -> Instruction | None:
    """convert(p) != 0 is p and convert(p) = 0 is not(p), for a pred p converted to any number."""
    converted, constant = i.operands
    if converted.opcode is not Opcode.CONVERT or i.attributes.direction not in (_D.EQ, _D.NE):
        return None
    p = converted.operands[0]
    value = splat_value(constant)
    if p.shape.element is not ElementType.PRED or value is None or value != 0:
        return None
    return p if i.attributes.direction is _D.NE else unary(Opcode.NOT, p)


def convert_to_itself(i: Instruction) -> Instruction | None:
    """A conversion to the operand's own type is the operand."""
    (x,) = i.operands
    return x if x.shape.element is i.shape.element else None


def convert_of_convert(i: Instruction) -> Instruction | None:
    """convert(convert(x)) in one step if the first conversion keeps every value.

    Not from integer over float to an integer that cannot hold the first type: floats saturate, integers wrap.
    """
    (middle,) = i.operands
    if middle.opcode is not Opcode.CONVERT:
        return None
    x = middle.operands[0]
    source, through, target = x.shape.element, middle.shape.element, i.shape.element
    if not is_lossless(source, through):
        return None
    if source.is_integral and not through.is_integral and target.is_integral and not is_lossless(source, target):
        return None
    return convert(x, target)


def is_lossless(source: ElementType, target: ElementType) -> bool:
    """True when `target` can hold every value of `source`."""
    if source is target:
        return True
    if source is ElementType.PRED:
        return target is not ElementType.F8E8M0FNU  # which has no zero
    if target is ElementType.PRED or (source.is_complex and not target.is_complex):
        return False
    source, target = source.real, target.real
    if target.is_small and target.is_floating:
        return False  # some have no infinity, no NaN, or no -0
    if source.is_floating:
        if not target.is_floating:
            return False
        if source.is_small:
            return target is not ElementType.F16 or source is not ElementType.F8E8M0FNU
        return _significand(source) <= _significand(target) and _exponent(source) <= _exponent(target)
    value_bits = source.bit_width - source.is_signed
    if target.is_floating:
        return value_bits <= _significand(target) and value_bits < 2 ** (_exponent(target) - 1)
    return value_bits <= target.bit_width - target.is_signed and (target.is_signed or not source.is_signed)


_FORMATS = {
    ElementType.F16: (11, 5), ElementType.BF16: (8, 8), ElementType.F32: (24, 8), ElementType.F64: (53, 11),
}  # fmt: skip
"""Bits of the significand, and of the exponent."""


def _significand(element_type: ElementType) -> int:
    return _FORMATS[element_type][0]


def _exponent(element_type: ElementType) -> int:
    return _FORMATS[element_type][1]


def bitcast_convert_back(i: Instruction) -> Instruction | None:
    """bitcast-convert to the operand's type is the operand; there and back again is the operand of the first."""
    (x,) = i.operands
    if x.shape.compatible(i.shape):
        return x
    if x.opcode is Opcode.BITCAST_CONVERT and x.operands[0].shape.compatible(i.shape):
        return x.operands[0]
    return None


def part_of_complex(i: Instruction) -> Instruction | None:
    """real(complex(a, b)) = a and imag(complex(a, b)) = b; real(x) = x and imag(x) = 0 for floats."""
    (x,) = i.operands
    if x.opcode is Opcode.COMPLEX:
        return x.operands[0 if i.opcode is Opcode.REAL else 1]
    if x.shape.element.is_complex:
        return None
    return x if i.opcode is Opcode.REAL else make_splat(0, i.shape)


def complex_of_parts(i: Instruction) -> Instruction | None:
    """complex(real(z), imag(z)) = z."""
    a, b = i.operands
    if a.opcode is Opcode.REAL and b.opcode is Opcode.IMAG and a.operands[0] is b.operands[0]:
        return a.operands[0] if a.operands[0].shape.element is i.shape.element else None
    return None


def compute_before_broadcast(i: Instruction) -> Instruction | None:
    """f(broadcast(a), broadcast(b)) = broadcast(f(a, b)): repeated values are computed once.

    For every element-wise op but copy and map, where the operands are all broadcast the same way, or broadcast scalars.
    """
    if not i.shape.rank or i.opcode in (Opcode.COPY, Opcode.MAP):
        return None
    dimensions: tuple[int, ...] | None = None
    sizes: tuple[int, ...] = ()
    for operand in i.operands:
        if not operand.shape.rank:
            continue  # select and clamp take scalars as they are
        if operand.opcode is not Opcode.BROADCAST:
            return None
        if operand.operands[0].shape.rank:
            if dimensions is not None and operand.attributes.dimensions != dimensions:
                return None
            dimensions = operand.attributes.dimensions
            sizes = operand.operands[0].shape.dimensions
    if len(sizes) == i.shape.rank and sizes == i.shape.dimensions:
        return None
    if math.prod(sizes) * 2 > i.shape.num_elements:
        return None
    dimensions = dimensions or ()

    def small(operand: Instruction) -> Instruction:
        if not operand.shape.rank:
            return operand
        source = operand.operands[0]
        if source.shape.rank == len(sizes):
            return source
        return broadcast(source, _like(source, sizes), ())

    shape = Shape.array(i.shape.element, sizes)
    result = make_instruction(i.opcode, [small(o) for o in i.operands], i.attributes, shape, metadata=i.metadata)
    return broadcast(result, i.shape, dimensions)


def compute_before_reshape(i: Instruction) -> Instruction | None:
    """f(reshape(a), reshape(b)) = reshape(f(a, b)) where the reshapes only add or remove dimensions of size 1 and a and
    b have the same dimensions, or are broadcast scalars. The reshapes meet others further down and fall away. Not where
    f is a copy: there the result's layout counts. Not where it is a map, which lists its dimensions."""
    if i.opcode in (Opcode.COPY, Opcode.MAP):
        return None
    sizes: tuple[int, ...] | None = None
    for operand in i.operands:
        if operand.opcode is Opcode.RESHAPE and operand.shape.rank:
            source = operand.operands[0].shape.dimensions
            if sizes is None and degenerate_map(source, operand.shape.dimensions) is None:
                return None
            if sizes is not None and source != sizes:
                return None
            sizes = source
        elif operand.shape.rank and (operand.opcode is not Opcode.BROADCAST or operand.operands[0].shape.rank):
            return None
    if sizes is None:
        return None

    def before(operand: Instruction) -> Instruction:
        if operand.opcode is Opcode.RESHAPE and operand.shape.rank:
            return operand.operands[0]
        return operand if not operand.shape.rank else broadcast(operand.operands[0], _like(operand, sizes), ())

    shape = Shape.array(i.shape.element, sizes)
    result = make_instruction(i.opcode, [before(o) for o in i.operands], i.attributes, shape, metadata=i.metadata)
    return reshape(result, i.shape.dimensions)


def _like(operand: Instruction, sizes: tuple[int, ...]) -> Shape:
    return Shape.array(operand.shape.element, sizes)


_O = Opcode
SPLATS = frozenset({Opcode.CONSTANT, Opcode.BROADCAST})
"""The opcodes that `splat_value` handles."""

ARITHMETIC_RULES = (
    rule(add_zero, _O.ADD, operands=SPLATS),
    rule(add_negated, _O.ADD, operands={_O.NEGATE}),
    rule(add_constants, _O.ADD, operands=SPLATS),
    rule(subtract_zero, _O.SUBTRACT, operands=SPLATS),
    rule(subtract_from_zero, _O.SUBTRACT, operands=SPLATS),
    rule(subtract_negated, _O.SUBTRACT, operands={_O.NEGATE}),
    rule(subtract_itself, _O.SUBTRACT),
    rule(subtract_constant, _O.SUBTRACT, operands=SPLATS),
    rule(multiply_one, _O.MULTIPLY, operands=SPLATS),
    rule(multiply_zero, _O.MULTIPLY, operands=SPLATS),
    rule(multiply_minus_one, _O.MULTIPLY, operands=SPLATS),
    rule(multiply_negated, _O.MULTIPLY, operands={_O.NEGATE}),
    rule(divide_one, _O.DIVIDE, operands=SPLATS),
    rule(divide_negated, _O.DIVIDE, operands={_O.NEGATE}),
    rule(divide_by_power_of_two, _O.DIVIDE, operands=SPLATS),
    rule(power_of_constant, _O.POWER, operands=SPLATS),
    rule(undo_itself, _O.NEGATE, _O.NOT, operands={_O.NEGATE, _O.NOT}),
    rule(negate_scaled, _O.NEGATE, operands={_O.MULTIPLY, _O.DIVIDE}),
    rule(not_compare, _O.NOT, operands={_O.COMPARE}),
    rule(idempotent, _O.ABS, _O.SIGN, _O.FLOOR, _O.CEIL, _O.ROUND_NEAREST_AFZ, _O.ROUND_NEAREST_EVEN),
    rule(abs_negated, _O.ABS, operands={_O.NEGATE}),
    rule(same_operands, _O.MAXIMUM, _O.MINIMUM, _O.AND, _O.OR),
    rule(neutral_bound, _O.MAXIMUM, _O.MINIMUM, _O.AND, _O.OR, operands=SPLATS),
    rule(absorbing_bits, _O.AND, _O.OR, operands=SPLATS),
    rule(less_and_different, _O.AND, operands={_O.COMPARE}),
    rule(xor_itself, _O.XOR),
    rule(xor_zero, _O.XOR, operands=SPLATS),
    rule(shift_zero, _O.SHIFT_LEFT, _O.SHIFT_RIGHT_ARITHMETIC, _O.SHIFT_RIGHT_LOGICAL, operands=SPLATS),
    rule(select_constant, _O.SELECT, operands=SPLATS),
    rule(select_equal, _O.SELECT),
    rule(select_not, _O.SELECT, operands={_O.NOT}),
    rule(select_of_truth, _O.SELECT, operands=SPLATS),
    rule(floor_remainder_by_power_of_two, _O.SELECT, operands={_O.REMAINDER}),
    rule(floor_divide_by_power_of_two, _O.SELECT, operands={_O.DIVIDE}),
    rule(compare_itself, _O.COMPARE),
    rule(compare_floor_remainder, _O.COMPARE, operands={_O.SELECT}),
    rule(compare_unsigned_zero, _O.COMPARE, operands=SPLATS),
    rule(compare_pred, _O.COMPARE, operands=SPLATS),
    rule(compare_converted_pred, _O.COMPARE, operands=SPLATS),
    rule(convert_to_itself, _O.CONVERT),
    rule(convert_of_convert, _O.CONVERT, operands={_O.CONVERT}),
    rule(bitcast_convert_back, _O.BITCAST_CONVERT),
    rule(part_of_complex, _O.REAL, _O.IMAG),
    rule(complex_of_parts, _O.COMPLEX, operands={_O.REAL}),
)
"""In the order in which they are tried. `compute_before_broadcast` and `compute_before_reshape` come after these for
all element-wise opcodes."""
