"""sin, cos and tan for every argument.

x = n pi/2 + r, |r| <= pi/4. Up to 2**30 (f64) or 2**22 (f32), n = rint(2 x / pi), and n pi/2, with pi/2 in two or
three pieces, is subtracted with fma (Cody and Waite). Above, Payne and Hanek's method is used: of the 1,200 bits of
2/pi only the 192 that matter are multiplied by x's mantissa, in integers. Such arguments are rare; one test per vector
finds them (`slow_path_call`).

f32 is computed in f64 throughout and rounded once. Then cos needs no care for rounding errors, and a tiny r none for
its subnormal square, so that this takes no more instructions than half of it in f32. A loop over a scalar waits for one
operation after the other, so the chain is short: the square does not wait for the second piece of pi/2, both
polynomials are computed in pairs, all signs come with one operation, and an angle below pi/4 is its own remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .double_double import two_product, two_sum
from .slow_path import shortcut_call, slow_path_call
from .value import (
    F32,
    F64,
    INFINITY,
    Boolean,
    Float,
    FloatFormat,
    Integer,
    absolute,
    call_intrinsic,
    choose,
    fma,
    from_bits,
    polynomial,
    polynomial_in_pairs,
    select,
    square,
)

TWO_OVER_PI = 0.6366197723675814
_SMALL = 0.78125  # a little less than pi/4, where 2 x / pi may be rounded to 0 or to 1
# pi/2 in three f64
PI_2_HIGH, PI_2_MIDDLE, PI_2_LOW = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33

# (sin(r) / r - 1) / r**2 over r**2, |r| <= pi/4; errors relative to sin: 2**-32.5, 2**-57.9
_SIN_TAIL = {
    F32: (-0.1666666716337204, 0.008333379402756691, -0.00019853065896313637, 2.832545305864187e-06),
    F64: (
        -0.1666666666666663,
        0.008333333333321842,
        -0.00019841269829361049,
        2.755731353977485e-06,
        -2.5050734651688583e-08,
        1.5895452721540899e-10,
    ),
}
# (cos(r) - 1 + r**2 / 2) / r**4 over r**2; errors relative to cos: 2**-33.0, 2**-63.9
_COS_TAIL = {
    F32: (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05),
    F64: (
        0.041666666666666595,
        -0.001388888888887334,
        2.480158728899979e-05,
        -2.7557314216174093e-07,
        2.087570525652215e-09,
        -1.1358741074013254e-11,
    ),
}
# f32: up to here n times the second piece of pi/2 is below 2**-32, so that r**2 needs the first one only.
_CODY_WAITE_LIMIT = {F32: 2.0**22, F64: 2.0**30}

_I64, _I128 = ir.IntType(64), ir.IntType(128)
# 2/pi, most significant word first, after one word of zeros (the bits before the point).
_TWO_OVER_PI_WORDS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip


def _is_large(f: FloatFormat) -> Callable[[Float], Boolean]:
    """A test of the f64 |x|, which comes from the format `f`: too large for Cody and Waite."""
    limit = _CODY_WAITE_LIMIT[f]
    return lambda magnitude: (magnitude >= limit) & (magnitude < INFINITY)


def _nearest_quarter(x: Float) -> tuple[Integer, Float, Float]:
    """(bits of n, n, x - n pi/2 with the first piece of pi/2) for an f64; the two lowest bits are those of n."""
    shifted = fma(x, TWO_OVER_PI, F64.round_to_integer)
    n = shifted - F64.round_to_integer
    return shifted.to_bits(), n, shortcut_call(_is_small, _without_quarters, x, n)


def _is_small(x: Float, n: Float) -> Boolean:
    """True only if n is 0."""
    return absolute(x) <= _SMALL


def _without_quarters(x: Float, n: Float) -> Float:
    """Exact: both operands are multiples of 2**-53 and the result is below 1."""
    return fma(n, -PI_2_HIGH, x)


def _sin_cos_of_remainder(magnitude: Float, f: FloatFormat) -> tuple[Integer, Float, Float]:
    """(n, sin r, cos r) with |x| == n pi/2 + r, |r| <= pi/4, all of 64 bits, to the accuracy of the format `f`, from
    which |x| comes. At least the two lowest bits of n are right."""
    return _of_narrow(magnitude) if f is F32 else _of_wide(magnitude)


def _of_narrow(magnitude: Float) -> tuple[Integer, Float, Float]:
    angle = slow_path_call(_is_large(F32), _small_angle, magnitude)
    n_bits, n, first = _nearest_quarter(angle)
    z = first * first
    cosine = fma(z * z, polynomial_in_pairs(z, _COS_TAIL[F32]), fma(z, -0.5, 1.0))
    return n_bits, fma(first * z, polynomial_in_pairs(z, _SIN_TAIL[F32]), fma(n, -PI_2_MIDDLE, first)), cosine


def _of_wide(magnitude: Float) -> tuple[Integer, Float, Float]:
    is_large = _is_large(F64)
    n_bits, n, first = _nearest_quarter(magnitude)
    coded = slow_path_call(is_large, _coded_quarters, magnitude)
    large = is_large(magnitude)
    # The code is r * 2**(128 n), 2**-80 < |r| < 1.
    bits = coded.to_bits()
    coded_n = ((bits.shift_right_logical(52) & 0x7FF) - (1023 - 127)).shift_right_logical(7)
    coded_r = from_bits(bits - (coded_n << (52 + 7)))
    product, product_error = two_product(n, PI_2_MIDDLE)
    reduced, error = two_sum(first, -product)
    below = error - fma(n, PI_2_LOW, product_error)
    r, low = select(large, coded_r, reduced), choose(large, 0.0, below, below)
    z = square(r)
    tail = polynomial(z, _SIN_TAIL[F64])
    half = z * 0.5
    rounded = 1.0 - half
    cosine_tail = fma(z * z, polynomial(z, _COS_TAIL[F64]), (1.0 - rounded) - half)
    # sin(r + l) = sin r + l cos r,  cos(r + l) = cos r - l sin r
    sine = r + fma(r * z, tail, low * rounded)
    return select(large, coded_n, n_bits), sine, rounded + fma(-r, low, cosine_tail)


def _coded_quarters(x: Float) -> Float:
    """r * 2**(128 n) for a large positive f64 x == n pi/2 + r (mod 2 pi)."""
    n, r = _payne_hanek(x)
    return from_bits(r.to_bits() + (n << (52 + 7)))


def _small_angle(x: Float) -> Float:
    """n pi/2 + r, -2 < n <= 2, rounded, for a large positive f64 x. A second reduction finds r with an error of 2**-53:
    half an ulp of an f32 where an f32 is closest to a multiple of pi/2, and negligible for all other x."""
    n, r = _payne_hanek(x)
    centred = n - ((n & n.shift_right_logical(1) & 1) << 2)  # 3 is -1
    turns = Float(x.builder, x.builder.sitofp(centred.raw, x.raw.type))
    return fma(turns, PI_2_HIGH, fma(turns, PI_2_MIDDLE, r))


def _payne_hanek(x: Float) -> tuple[Integer, Float]:
    """(n, r), 0 <= n < 4, for a large positive f64 x == n pi/2 + r (mod 2 pi).

    x = M 2**e, M < 2**53. In x * 2/pi / 4 = M * (2/pi * 2**(e - 2)) whole turns do not matter, so neither do the bits
    of 2/pi whose weight times 2**(e - 2) is an integer. The next 192 bits P give fraction = M P mod 2**192.
    """
    builder = x.builder
    bits = x.to_bits()
    exponent = bits.shift_right_logical(52) & 0x7FF
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    # e = exponent - 1075, and bit j of 2/pi after the point weighs 2**-(j + 1): drop those with e - 2 - (j + 1) >= 0.
    first_bit = exponent - (1075 + 2 - 64)
    word, shift = first_bit.shift_right_logical(6), first_bit & 63
    table = _table(builder.module)
    loaded = [_load_word(builder, table, word + k) for k in range(4)]
    p = [_funnel_shift_left(loaded[k], loaded[k + 1], shift) for k in range(3)]
    low = p[2].extend_unsigned(128) * mantissa.extend_unsigned(128)
    middle = p[1].extend_unsigned(128) * mantissa.extend_unsigned(128) + low.shift_right_logical(64)
    high = p[0] * mantissa + middle.shift_right_logical(64).truncate(64)
    fraction = (high.extend_unsigned(128) << 64) | middle.truncate(64).extend_unsigned(128)  # of a turn, * 2**128
    # The nearest quarter turn, and the rest as a signed fraction of a quarter turn, * 2**128 / 2**2
    n = (fraction.shift_right_logical(125) + 1).shift_right_logical(1).truncate(64) & 3
    rest = fraction << 2
    negative = rest < 0
    size = select(negative, -rest, rest)
    leading = Integer(
        builder, call_intrinsic(builder, "llvm.ctlz.i128", _I128, size.raw, ir.Constant(ir.IntType(1), 0))
    )
    normal = size << leading
    top = normal.shift_right_logical(75)  # 53 bits
    next_ = normal.shift_right_logical(22) & ((1 << 53) - 1)
    scale_exponent = x.constant(1.0).to_bits() - ((leading.truncate(64) + 53) << 52)
    scale = from_bits(scale_exponent)
    top_float = Float(builder, builder.uitofp(top.truncate(64).raw, x.raw.type)) * scale
    next_float = Float(builder, builder.uitofp(next_.truncate(64).raw, x.raw.type)) * (scale * 2.0**-53)
    product, error = two_product(top_float, PI_2_HIGH)
    r = product + (error + fma(top_float, PI_2_MIDDLE, next_float * PI_2_HIGH))
    return n, select(negative, -r, r)


def _table(module: Any) -> Any:
    name = "hloom.two_over_pi"
    table = module.globals.get(name)
    if table is None:
        table = ir.GlobalVariable(module, ir.ArrayType(_I64, len(_TWO_OVER_PI_WORDS)), name)
        table.linkage = "internal"
        table.global_constant = True
        table.initializer = ir.Constant(table.value_type, list(_TWO_OVER_PI_WORDS))
    return table


def _load_word(builder: Any, table: Any, index: Integer) -> Integer:
    return Integer(builder, builder.load(builder.gep(table, [ir.Constant(_I64, 0), index.raw], inbounds=True)))


def _funnel_shift_left(high: Integer, low: Integer, count: Integer) -> Integer:
    raw = call_intrinsic(high.builder, "llvm.fshl.i64", _I64, high.raw, low.raw, count.raw)
    return Integer(high.builder, raw)


def sin_cos(x: Float) -> tuple[Float, Float]:
    """Both with one reduction. NaN for infinities."""
    wide = x.to_format(F64)
    n, sine, cosine = _sin_cos_of_remainder(absolute(wide), x.format)
    following = n + 1
    return (
        _of_quarter(n, sine, cosine, _sign(n) ^ wide.to_bits()).to_format(x.format),
        _of_quarter(following, sine, cosine, _sign(following)).to_format(x.format),
    )


def _of_quarter(n: Integer, sine: Float, cosine: Float, signed: Integer) -> Float:
    """The size of sin(r + n pi/2) for the sine and cosine of r, with the highest bit of `signed` as sign."""
    value = select((n & 1).equals(0), sine, cosine)
    return _with_sign(value, signed)


def _sign(n: Integer) -> Integer:
    """A word with the sign of sin(r + n pi/2), 0 <= r <= pi/2, as its highest bit."""
    return n << (n.bits - 2)


def _with_sign(value: Float, signed: Integer) -> Float:
    """The value, negated if the highest bit of `signed` is set."""
    return from_bits(value.to_bits() ^ (signed & signed.constant(-1 << (signed.bits - 1))))


def sin(x: Float) -> Float:
    return sin_cos(x)[0]


def cos(x: Float) -> Float:
    return sin_cos(x)[1]


def tan(x: Float) -> Float:
    """sin / cos, or -cos / sin in odd quarters."""
    wide = x.to_format(F64)
    n, sine, cosine = _sin_cos_of_remainder(absolute(wide), x.format)
    even = (n & 1).equals(0)
    quotient = select(even, sine, -cosine) / select(even, cosine, sine)
    return _with_sign(quotient, wide.to_bits()).to_format(x.format)
