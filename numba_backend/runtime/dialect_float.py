"""Plain floating-point operations of the dialect, which need no approximation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .math.value import (
    INFINITY,
    Boolean,
    Float,
    Integer,
    absolute,
    call_intrinsic,
    choose,
    copysign,
    float_intrinsic,
    from_bits,
    select,
    type_suffix,
)

# The fast-math flag of a kernel's own arithmetic (a * b + c may fuse), as Numba takes it.
_CONTRACT = ("contract",)
_REASSOCIATE = ("contract", "reassoc")


def _arithmetic(instruction: str, flags: tuple[str, ...]) -> Callable[[Float, Float], Float]:
    def operate(a: Float, b: Float) -> Float:
        return Float(a.builder, getattr(a.builder, instruction)(a.raw, b.raw, flags=flags))

    operate.__name__ = instruction
    return operate


add, subtract, multiply, divide = (_arithmetic(name, _CONTRACT) for name in ("fadd", "fsub", "fmul", "fdiv"))
reduce_add, reduce_multiply = (_arithmetic(name, _REASSOCIATE) for name in ("fadd", "fmul"))


def maximum(a: Float, b: Float) -> Float:
    """NaN if either is; -0 < +0 (IEEE 754-2019 maximum, as XLA)."""
    return float_intrinsic("maximum", a, b)


def minimum(a: Float, b: Float) -> Float:
    return float_intrinsic("minimum", a, b)


def largest(a: Float, b: Float) -> Float:
    """NaN if either is; of two zeros, either one: three instructions where `maximum` is five."""
    return _extremum("maximum", a, b)


def smallest(a: Float, b: Float) -> Float:
    """The same for the minimum."""
    return _extremum("minimum", a, b)


def _extremum(name: str, a: Float, b: Float) -> Float:
    kind = a.raw.type
    name = f"llvm.{name}.{type_suffix(kind)}"
    return Float(a.builder, call_intrinsic(a.builder, name, kind, a.raw, b.raw, flags=("nsz",)))


def sign(x: Float) -> Float:
    """-1 or 1; zeros and NaN are returned unchanged."""
    unit = copysign(x.constant(1.0), x)
    return choose(x.equals(0.0) | x.is_nan(), x, unit, x)


def is_finite(x: Float) -> Boolean:
    return absolute(x) < INFINITY


def compare(relation: str) -> Callable[[Float, Float], Boolean]:
    """IEEE: with a NaN only != is true."""

    def holds(a: Float, b: Float) -> Boolean:
        builder: Any = a.builder
        emit = builder.fcmp_unordered if relation == "!=" else builder.fcmp_ordered
        return Boolean(builder, emit(relation, a.raw, b.raw))

    return holds


def total_order_key(x: Float) -> Integer:
    """A signed integer of the same width, in IEEE's total order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    bits = x.to_bits()
    return bits ^ (bits.shift_right_arithmetic(bits.bits - 1).shift_right_logical(1))


def maximum_key(x: Float) -> Integer:
    """A signed integer of the same width: the maximum of keys is the key of the maximum. Every NaN has the largest."""
    key = total_order_key(x)
    return select(x.is_nan(), key.constant((1 << (key.bits - 1)) - 1), key)


def minimum_key(x: Float) -> Integer:
    """The same for minima: every NaN has the smallest key."""
    key = total_order_key(x)
    return select(x.is_nan(), key.constant(-(1 << (key.bits - 1))), key)


def from_key(key: Integer) -> Float:
    """The number with this key."""
    return from_bits(key ^ (key.shift_right_arithmetic(key.bits - 1).shift_right_logical(1)))


def reduce_precision(x: Float, exponent_bits: int, mantissa_bits: int) -> Float:
    """x rounded (to nearest even) to a format with this many exponent and mantissa bits, in x's own format: overflow
    gives infinity, values below the narrow format's smallest normal give zero, NaN stays NaN."""
    bits = reduce_precision_bits(x.to_bits(), x.format.mantissa_bits, exponent_bits, mantissa_bits)
    rounded = Float(x.builder, x.builder.bitcast(bits.raw, x.raw.type))
    return select(x.is_nan(), x, rounded)


def reduce_precision_f16(code: Integer, exponent_bits: int, mantissa_bits: int) -> Integer:
    """The same for the bits of an f16."""
    is_nan = (code & 0x7FFF) > 0x7C00
    return select(is_nan, code, reduce_precision_bits(code, 10, exponent_bits, mantissa_bits))


def reduce_precision_bits(bits: Integer, own_mantissa: int, exponent_bits: int, mantissa_bits: int) -> Integer:
    """The same for the bits of an IEEE float with `own_mantissa` bits of mantissa, except NaN."""
    sign_mask = 1 << (bits.bits - 1)
    own_exponent = bits.bits - 1 - own_mantissa
    exponent_mask = ((1 << own_exponent) - 1) << own_mantissa
    if mantissa_bits < own_mantissa:
        dropped = own_mantissa - mantissa_bits
        last_kept = bits.shift_right_logical(dropped) & 1
        bits = (bits + (last_kept + ((1 << (dropped - 1)) - 1))) & -(1 << dropped)
    if exponent_bits < own_exponent:
        own_bias, narrow_bias = (1 << (own_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = (bits & exponent_mask).shift_right_logical(own_mantissa)
        sign = bits & sign_mask
        too_large, too_small = exponent > own_bias + narrow_bias, exponent < own_bias - narrow_bias + 1
        bits = select(too_large, sign | exponent_mask, bits)
        bits = select(too_small, sign, bits)
    return bits
