"""Elements of less than a byte, and floats of a byte: how the dialect reads them from memory and writes them.

Each is stored in one byte (uint8), with the value in the low bits. The floats are read as f32, exactly, and written
with one rounding to nearest even; the integers are read as int8 or uint8 and written without their upper bits. All code
is integer arithmetic and selects, so that loops around it vectorise; it neither makes nor reads a subnormal f32, which
would be slow.

Source: the formats of the OCP 8-bit and microscaling specifications and of ml_dtypes; overflow and NaN as in XLA's CPU
compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from ...hlo.support.records import dataclass
from .dialect_define import define_exact
from .math.value import F32, F64, Float, Integer, absolute, choose, from_bits, select

_F32_MANTISSA, _F32_BIAS, _F32_SIGN, _F32_NAN = 23, 127, 1 << 31, 0x7FC00000


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A sign bit, then exponent and mantissa. Codes do not include the sign."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    """The code of the largest finite number."""
    overflow: int
    """The code for larger numbers and infinity."""
    nan: int | None
    """The code for NaN; it and all larger codes are NaN. None: there is no NaN, and NaN becomes -0."""
    negative_zero: bool = True
    """False: the code of -0 is the only NaN; numbers that are too large become NaN too."""

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits


SMALL_FLOATS: dict[str, SmallFloat] = {
    "f4e2m1fn": SmallFloat(2, 1, 1, largest=0x7, overflow=0x7, nan=None),
    "f8e3m4": SmallFloat(3, 4, 3, largest=0x6F, overflow=0x70, nan=0x78),
    "f8e4m3": SmallFloat(4, 3, 7, largest=0x77, overflow=0x78, nan=0x7C),
    "f8e4m3fn": SmallFloat(4, 3, 7, largest=0x7E, overflow=0x7F, nan=0x7F),
    "f8e5m2": SmallFloat(5, 2, 15, largest=0x7B, overflow=0x7C, nan=0x7E),
    "f8e4m3b11fnuz": SmallFloat(4, 3, 11, largest=0x7F, overflow=0x80, nan=0x80, negative_zero=False),
    "f8e4m3fnuz": SmallFloat(4, 3, 8, largest=0x7F, overflow=0x80, nan=0x80, negative_zero=False),
    "f8e5m2fnuz": SmallFloat(5, 2, 16, largest=0x7F, overflow=0x80, nan=0x80, negative_zero=False),
}
SMALL_INTEGERS: dict[str, tuple[int, bool]] = {
    f"{sign}{bits}": (bits, sign == "s") for sign in ("s", "u") for bits in (1, 2, 4)
}
"""Number of bits, and whether there is a sign."""


def decode(f: SmallFloat, code: Integer) -> Float:
    """The f32 with the value of the stored `code`."""
    wide = code.extend_unsigned(32)
    magnitude = wide & ((1 << (f.bits - 1)) - 1)
    sign = (wide & (1 << (f.bits - 1))) << (32 - f.bits)
    shift = _F32_MANTISSA - f.mantissa_bits
    normal = from_bits((magnitude << shift) + ((_F32_BIAS - f.bias) << _F32_MANTISSA))
    steps = Float(code.builder, code.builder.uitofp(magnitude.raw, ir.FloatType()))
    below = steps * 2.0 ** (1 - f.bias - f.mantissa_bits)
    bits = select(magnitude < 1 << f.mantissa_bits, below, normal).to_bits()
    if f.negative_zero:
        if f.overflow > f.largest:
            special = wide.constant(0x7F800000 if f.overflow != f.nan else _F32_NAN)
            bits = select(magnitude.equals(f.overflow), special, bits)
            bits = select(magnitude > f.overflow, wide.constant(_F32_NAN), bits)
        return from_bits(bits | sign)
    is_nan = (wide & 0xFF).equals(0x80)
    return from_bits(select(is_nan, wide.constant(_F32_NAN), bits | sign))


def encode(f: SmallFloat, x: Float) -> Integer:
    """The code of `x` rounded to nearest even."""
    all_bits = x.to_bits()
    bits = all_bits & (_F32_SIGN - 1)
    sign = all_bits.shift_right_logical(31) << (f.bits - 1)
    shift = _F32_MANTISSA - f.mantissa_bits
    last_kept = bits.shift_right_logical(shift) & 1
    rebiased = bits - ((_F32_BIAS - f.bias) << _F32_MANTISSA)
    normal = (rebiased + (last_kept + ((1 << (shift - 1)) - 1))).shift_right_arithmetic(shift)
    # Below the smallest normal number: adding this constant rounds to multiples of the smallest number, and leaves the
    # multiple in the low bits.
    rounder = x.constant(2.0 ** (1 - f.bias - f.mantissa_bits + _F32_MANTISSA))
    smallest = 2.0 ** (1 - f.bias)
    is_below = from_bits(bits) < smallest
    below = (choose(is_below, from_bits(bits), 0.0, x) + rounder).to_bits() - rounder.to_bits()
    code = select(is_below, below, normal)
    code = select(code > f.largest, code.constant(f.overflow), code)
    if f.negative_zero:
        if f.nan is None:
            code = select(x.is_nan(), code.constant(1 << (f.bits - 1)), code | sign)
        else:
            code = select(x.is_nan(), code.constant(f.nan), code) | sign
    else:
        is_nan = x.is_nan() | code.equals(f.overflow)
        code = select(is_nan, code.constant(f.nan or 0), select(code.equals(0), code, code | sign))
    return code.truncate(8)


def decode_power_of_two(code: Integer) -> Float:
    """f8e8m0fnu: an exponent without sign and mantissa, 2**(code - 127); 255 is NaN. (Only code 0 makes a subnormal
    f32.)"""
    wide = code.extend_unsigned(32)
    bits = select(wide.equals(0), wide.constant(1 << (_F32_MANTISSA - 1)), wide << _F32_MANTISSA)
    return from_bits(select(wide.equals(255), wide.constant(_F32_NAN), bits))


def encode_power_of_two(x: Float) -> Integer:
    """Halfway between two powers (in value, not in exponent) the larger one; numbers that are not positive and finite
    become NaN. Positive numbers below the smallest power become that power."""
    bits = x.to_bits()
    half = 1 << (_F32_MANTISSA - 1)
    is_subnormal = bits < 1 << _F32_MANTISSA
    code = (bits + select(is_subnormal, bits.constant(half - 1), bits.constant(half))).shift_right_logical(
        _F32_MANTISSA
    )
    good = (bits > 0) & (code < 255)
    return select(good, code, code.constant(255)).truncate(8)


def round_to_odd(x: Float) -> Float:
    """f64 to f32: towards zero, with an odd last bit if anything was lost. Rounding the result to a small float gives
    the same as rounding the f64."""
    single = x.to_format(F32)
    back = single.to_format(F64)
    bits = single.to_bits()
    toward_zero = select(absolute(back) > absolute(x), bits - 1, bits)
    is_inexact = (back < x) | (back > x)
    return from_bits(select(is_inexact, toward_zero | 1, bits))


def _from_storage(bits: int, signed: bool) -> Callable[[Integer], Integer]:
    def read(x: Integer) -> Integer:
        if signed:
            return (x << (8 - bits)).shift_right_arithmetic(8 - bits)
        return x & ((1 << bits) - 1)

    return read


def _to_storage(bits: int) -> Callable[[Integer], Integer]:
    return lambda x: x & ((1 << bits) - 1)


def conversions() -> dict[str, Any]:
    """``f8e5m2_to_f32(code)``, ``f32_to_f8e5m2(x)``; ``s4_to_s8(code)``, ``s8_to_s4(x)``: from and to stored bytes;
    ``f64_to_odd_f32(x)``: the step before these for an f64."""
    functions = {}

    def add(name: str, result: Any, argument: Any, implementation: Callable[[Any], Any]) -> None:
        functions[name] = define_exact(name, result, (argument,), implementation)

    byte = "uint8"
    add("f64_to_odd_f32", "float32", "float64", round_to_odd)
    for name, f in SMALL_FLOATS.items():
        add(f"{name}_to_f32", "float32", byte, partial(decode, f))
        add(f"f32_to_{name}", byte, "float32", partial(encode, f))
    add("f8e8m0fnu_to_f32", "float32", byte, decode_power_of_two)
    add("f32_to_f8e8m0fnu", byte, "float32", encode_power_of_two)
    for name, (bits, signed) in SMALL_INTEGERS.items():
        held = "int8" if signed else "uint8"
        held_name = "s8" if signed else "u8"
        add(f"{name}_to_{held_name}", held, byte, _from_storage(bits, signed))
        add(f"{held_name}_to_{name}", byte, held, _to_storage(bits))
    return functions
