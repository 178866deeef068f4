"""Sums of products of several small numbers in a word of 32 bits, as processors multiply them.

    dot_bytes(total, a, b)         four products of an unsigned byte of `a` and a signed byte of `b`
    dot_shorts(total, a, b)        two products of signed numbers of 16 bits
    dot_bf16(total, a, b)          two products of bf16, in f32
    dot_bf16_normal(total, a, b)   as dot_bf16; it may take subnormal numbers for zeros, and so is only for where none
                                   can occur, neither in `a` and `b` nor in products and sums

Words are uint32. So are totals of integers; these sums wrap around. As functions of numbers they are plain arithmetic.
`in_vectors` is the same for vectors of words: `lane_loops.py` uses it for loops over lanes. It has the instructions
that there are for this (AVX-512 VNNI and BF16); what it writes for others LLVM makes into multiplications of pairs
(vpmaddwd, vpdpwssd, smlal).

Source: the Intel 64 and IA-32 architectures' instruction set reference, VPDPBUSD, VPDPWSSD and VDPBF16PS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..loops.lanes import LANES
from .dialect_define import DialectFunction, define_exact
from .math.value import Float, Integer, call_intrinsic

_I8, _I16, _I32, _F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()


def _byte(x: Integer, number: int, signed: bool) -> Integer:
    low = x.shift_right_logical(8 * number).truncate(8)
    return low.extend_signed(32) if signed else low.extend_unsigned(32)


def _bytes(total: Integer, a: Integer, b: Integer) -> Integer:
    for number in range(4):
        total = total + _byte(a, number, False) * _byte(b, number, True)
    return total


def _shorts(total: Integer, a: Integer, b: Integer) -> Integer:
    low = a.truncate(16).extend_signed(32) * b.truncate(16).extend_signed(32)
    return total + low + a.shift_right_arithmetic(16) * b.shift_right_arithmetic(16)


def _lower(x: Integer) -> Float:
    return Float(x.builder, x.builder.bitcast((x << 16).raw, _F32))


def _upper(x: Integer) -> Float:
    return Float(x.builder, x.builder.bitcast((x & -65536).raw, _F32))


def _bf16(total: Float, a: Integer, b: Integer) -> Float:
    builder: Any = a.builder
    raw = total.raw
    for part in (_lower, _upper):
        raw = builder.fadd(raw, builder.fmul(part(a).raw, part(b).raw, flags=("contract",)), flags=("contract",))
    return Float(builder, raw)


def word_functions() -> dict[str, DialectFunction]:
    """``dot_bytes``, ``dot_shorts``, ``dot_bf16``, ``dot_bf16_normal``"""
    word = "uint32"
    return {
        "dot_bytes": define_exact("dot_bytes", word, (word,) * 3, _bytes),
        "dot_shorts": define_exact("dot_shorts", word, (word,) * 3, _shorts),
        "dot_bf16": define_exact("dot_bf16", "float32", ("float32", word, word), _bf16),
        "dot_bf16_normal": define_exact("dot_bf16_normal", "float32", ("float32", word, word), _bf16),
    }


# ---- the same for vectors of LANES words


def vector_of(type_: Any) -> Any:
    """The type of a row of such elements."""
    return ir.VectorType(type_, LANES)


def _all(kind: Any, value: int) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def _pairs(builder: Any, a: Any, b: Any) -> Any:
    """Sums of two products of neighbouring signed numbers of 16 bits: the form that LLVM knows as one instruction."""
    wide = ir.VectorType(_I32, 2 * LANES)
    products = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
    halves = []
    for first in (0, 1):
        numbers = ir.Constant(ir.VectorType(_I32, LANES), list(range(first, 2 * LANES, 2)))
        halves.append(builder.shuffle_vector(products, ir.Constant(wide, ir.Undefined), numbers))
    return builder.add(*halves)


def _vector_of_bytes(builder: Any, total: Any, a: Any, b: Any, features: frozenset[str]) -> Any:
    if "avx512vnni" in features:
        return call_intrinsic(builder, "llvm.x86.avx512.vpdpbusd.512", total.type, total, a, b)
    kind = ir.VectorType(_I16, 2 * LANES)
    eight = _all(kind, 8)
    a, b = builder.bitcast(a, kind), builder.bitcast(b, kind)
    even = _pairs(builder, builder.and_(a, _all(kind, 255)), builder.ashr(builder.shl(b, eight), eight))
    return builder.add(total, builder.add(even, _pairs(builder, builder.lshr(a, eight), builder.ashr(b, eight))))


def _vector_of_shorts(builder: Any, total: Any, a: Any, b: Any, features: frozenset[str]) -> Any:
    kind = ir.VectorType(_I16, 2 * LANES)
    return builder.add(total, _pairs(builder, builder.bitcast(a, kind), builder.bitcast(b, kind)))


def _vector_of_bf16(builder: Any, total: Any, a: Any, b: Any, features: frozenset[str]) -> Any:
    floats = vector_of(_F32)
    lower = [builder.bitcast(builder.shl(x, _all(x.type, 16)), floats) for x in (a, b)]
    upper = [builder.bitcast(builder.and_(x, _all(x.type, -65536)), floats) for x in (a, b)]
    for pair in (lower, upper):
        total = builder.fadd(total, builder.fmul(*pair, flags=("contract",)), flags=("contract",))
    return total


def _vector_of_normal_bf16(builder: Any, total: Any, a: Any, b: Any, features: frozenset[str]) -> Any:
    if "avx512bf16" in features:
        return call_intrinsic(builder, "llvm.x86.avx512bf16.dpbf16ps.512", total.type, total, a, b)
    return _vector_of_bf16(builder, total, a, b, features)


in_vectors: dict[str, Callable[..., Any]] = {
    "dot_bytes": _vector_of_bytes,
    "dot_shorts": _vector_of_shorts,
    "dot_bf16": _vector_of_bf16,
    "dot_bf16_normal": _vector_of_normal_bf16,
}
"""Functions of a builder, the vectors of totals and words, and LLVM's names of the processor's features."""
