"""Conversions and bit casts of the dialect, with XLA's rules.

* float to integer truncates and saturates, NaN gives 0; anything to pred is "!= 0" (so NaN is true);
* to bf16 and f16 goes through f32, each step rounding to nearest even (as XLA, also from f64 and integers);
* integers to integers wrap.

Types are named as in HLO. Storage: pred is uint8 (0 or 1), bf16 and f16 are uint16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..loops.typing import SHORT
from .dialect_define import define_exact
from .math.complex_value import Complex
from .math.value import (
    F32,
    F64,
    Boolean,
    Float,
    FloatFormat,
    Integer,
    choose,
    kept_apart,
    select,
    uncontracted,
)

_INTEGERS = ("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_COMPLEX = {"c64": F32, "c128": F64}


def f16_to_f32(x: Integer) -> Float:
    half = x.builder.bitcast(x.raw, ir.HalfType())
    return Float(x.builder, x.builder.fpext(half, ir.FloatType()))


def f32_to_f16(x: Float) -> Integer:
    """Round to f16, without contraction of the operand. LLVM makes one operation on halves from an operation on f32 and
    the rounding of its result to f16. On processors with multiply-add for halves (AVX512_FP16, Arm's fullfp16), it
    would make one multiply-add from a product and a sum that may be contracted, and lose a rounding."""
    half = x.builder.fptrunc(uncontracted(x).raw, ir.HalfType())
    return Integer(x.builder, x.builder.bitcast(half, ir.IntType(16)))


def bf16_to_f32(x: Integer) -> Float:
    wide = x.extend_unsigned(32) << 16
    return Float(x.builder, x.builder.bitcast(wide.raw, ir.FloatType()))


def held_to_bf16(x: Float) -> Integer:
    """The bf16 that `x` is exactly, with all bits of a NaN."""
    return x.to_bits().shift_right_logical(16).truncate(16)


def f32_to_bf16(x: Float) -> Integer:
    """Adds half of the dropped part, less one if the kept part is even; makes NaN quiet, so that it cannot become
    infinity."""
    bits = x.to_bits()
    upper = bits.shift_right_logical(16)
    rounded = (bits + ((upper & 1) + 0x7FFF)).shift_right_logical(16)
    return select(x.is_nan(), upper | 0x40, rounded).truncate(16)


def float_to_integer(x: Float, bits: int, signed: bool) -> Integer:
    """Truncated and saturated, NaN to 0. (LLVM's own saturating conversion takes four times as long in vectors.)"""
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    # Values between low - 1 and low truncate to low, if the format has such values.
    above = x > low - 1.0 if x.format.mantissa_bits >= bits else x >= low
    type_ = ir.IntType(bits)
    convert = x.builder.fptosi if signed else x.builder.fptoui
    inside = Integer(x.builder, convert(choose(above & (x < high), x, 0.0, x).raw, type_))
    largest = inside.constant((1 << (bits - 1)) - 1 if signed else -1)
    result = select(x >= high, largest, inside)
    return select(x < low, inside.constant(-1 << (bits - 1)), result) if signed else result


def integer_to_float(x: Integer, signed: bool, target: FloatFormat) -> Float:
    convert = x.builder.sitofp if signed else x.builder.uitofp
    return Float(x.builder, convert(x.raw, target.llvm))


def _resize(x: Integer, bits: int, signed: bool) -> Integer:
    if bits <= x.bits:
        return x.truncate(bits) if bits < x.bits else x
    return x.extend_signed(bits) if signed else x.extend_unsigned(bits)


def _to_pred(x: Any) -> Boolean:
    return x.differs(0.0) if isinstance(x, Float) else ~x.equals(0)


def _decode_float(name: str, x: Any) -> Float:
    if name == "f16":
        return f16_to_f32(x)
    decoded: Float = bf16_to_f32(x) if name == "bf16" else x
    return decoded


def _encode_float(name: str, x: Float) -> Float | Integer:
    if name == "f64":
        return x.to_format(F64)
    single = x.to_format(F32)
    if name == "f32":
        return single
    if name == "f16":
        return f32_to_f16(single if x.format is F32 else kept_apart(single))
    return f32_to_bf16(single)


def converter(source: str, target: str) -> Callable[[Any], Any]:
    """The conversion as a function on the values of `math`."""
    signed = source.startswith("s")

    def convert(x: Any) -> Any:
        if source in _COMPLEX:
            part = _COMPLEX[target]
            return Complex(x.real.to_format(part), x.imag.to_format(part))
        if target in _COMPLEX:
            real = converter(source, _COMPLEX[target].name)(x) if source != _COMPLEX[target].name else x
            return Complex(real, real.constant(0.0))
        if source in _FLOATS:
            x = _decode_float(source, x)
            if target == "pred":
                return _to_pred(x)
            if target in _INTEGERS:
                return float_to_integer(x, int(target[1:]), target.startswith("s"))
            return _encode_float(target, x)
        if target == "pred":
            return _to_pred(x)
        if target in _INTEGERS:
            return _resize(x, int(target[1:]), signed)
        return _encode_float(target, integer_to_float(x, signed, F64 if target == "f64" else F32))

    return convert


def conversions() -> dict[str, Any]:
    """``convert_<from>_<to>`` for every pair of different types that HLO's convert allows (complex only to complex)."""
    functions = {}
    for source in SHORT:
        for target in SHORT:
            if source == target or (source in _COMPLEX and target not in _COMPLEX):
                continue
            name = f"convert_{source}_{target}"
            functions[name] = define_exact(name, SHORT[target], (SHORT[source],), converter(source, target))
    return functions


def bit_casts() -> dict[str, Any]:
    """``bitcast_<from>_<to>`` for every pair of different real types of one width; not for pred."""
    widths = {name: 16 if name == "bf16" else int(name[1:]) for name in (*_INTEGERS, *_FLOATS)}
    functions = {}
    for source, width in widths.items():
        for target, other in widths.items():
            if source != target and width == other:
                name = f"bitcast_{source}_{target}"
                functions[name] = define_exact(name, SHORT[target], (SHORT[source],), _bit_caster(target))
    return functions


def _bit_caster(target: str) -> Callable[[Any], Any]:
    def cast(x: Any) -> Any:
        if target in ("f32", "f64"):
            return Float(x.builder, x.builder.bitcast(x.raw, (F32 if target == "f32" else F64).llvm))
        return x.to_bits() if isinstance(x, Float) else x

    return cast
