"""exp and the functions based on it: expm1, tanh, logistic, sinh, cosh.

All use x = n ln 2 + r, |r| <= ln(2) / 2, so that exp(x) = 2**n exp(r). Adding 1.5 * 2**mantissa_bits to x / ln 2
leaves n in the low bits of the sum (`shifted`). From there n is moved into an exponent without a float-to-integer
conversion, which AVX2 lacks for f64.
"""

from __future__ import annotations

from .value import (
    F32,
    F64,
    Boolean,
    Float,
    Integer,
    absolute,
    at_least,
    at_most,
    choose,
    copysign,
    fma,
    from_bits,
    polynomial,
    select,
)

LOG2_E = 1.4426950408889634
# ln 2 in two pieces, each rounded to the format. With fma, n * LN2_HIGH needs no spare low bits for x - n * LN2_HIGH
# to be exact.
LN2_HIGH = {F32: 0.693147182464599609375, F64: 0.6931471805599453}
LN2_LOW = {F32: -1.904654299957768e-09, F64: 2.3190468138462996e-17}

# (exp(r) - 1 - r) / r**2 on |r| <= ln(2) / 2; errors relative to exp: 2**-28.0, 2**-57.4
_EXP_TAIL = {
    F32: (0.5, 0.16666534543037415, 0.04166724160313606, 0.008367433212697506, 0.0013863418716937304),
    F64: (
        0.5,
        0.16666666666666433,
        0.04166666666660397,
        0.008333333333500413,
        0.0013888888926792472,
        0.0001984126946554801,
        2.480150868555578e-05,
        2.7557641376136853e-06,
        2.7625186213662497e-07,
        2.4978239758147524e-08,
    ),
}
# (sinh(x) / x - 1) / x**2 over x**2, |x| <= 1; errors relative to sinh: 2**-31.6, 2**-61.8
_SINH_TAIL = {
    F32: (0.1666666716337204, 0.00833331048488617, 0.00019842895562760532, 2.7822131869469468e-06),
    F64: (
        0.16666666666666669,
        0.008333333333332912,
        0.00019841269841593402,
        2.7557319106762496e-06,
        2.505213099719721e-08,
        1.6056659337991592e-10,
        7.776593318674354e-13,
    ),
}

# Beyond these exp is certainly infinite, or rounds to zero, and n still fits in two exponents.
_EXP_HIGHEST = {F32: 90.0, F64: 711.0}
_EXP_LOWEST = {F32: -104.0, F64: -746.0}
# Below these the result is subnormal.
_EXP_SUBNORMAL = {F32: -87.33654475, F64: -708.3964185322641}
# Above, 2**(n - 1) is still finite where expm1 overflows; below, expm1 rounds to -1.
_EXPM1_HIGHEST = {F32: 89.0, F64: 710.0}
_EXPM1_LOWEST = {F32: -18.0, F64: -38.0}
# Below this tanh(y / 2) is -1.
_TANH_LOWEST = -44.0


def _reduce(x: Float) -> tuple[Integer, Float, Float]:
    """(bits of n + 1.5 * 2**mantissa_bits, n, r) with x == n ln 2 + r."""
    f = x.format
    shifted = fma(x, LOG2_E, f.round_to_integer)
    n = shifted - f.round_to_integer
    return shifted.to_bits(), n, fma(n, -LN2_LOW[f], fma(n, -LN2_HIGH[f], x))


def _expm1_of_remainder(r: Float) -> Float:
    """r + r (r tail), not r + (r r) tail: the square of a tiny r is subnormal, which costs the CPU a hundred cycles."""
    return fma(r, r * polynomial(r, _EXP_TAIL[r.format]), r)


def _exp_of_remainder(r: Float) -> Float:
    """exp(r) to 0.75 ulp, where expm1(r) + 1 would have 1 ulp: the rounding error of 1 + r is added to the rest."""
    leading = r + 1.0
    error = r - (leading - 1.0)
    return leading + fma(r, r * polynomial(r, _EXP_TAIL[r.format]), error)


def _exponent(n: Integer, like: Float, less: int = 0) -> Float:
    """2**(n - less); the bits of n above the exponent's width may have any value."""
    f = like.format
    return from_bits((n << f.mantissa_bits) + ((f.exponent_bias - less) << f.mantissa_bits))


def _scale_down(y: Float, n: Integer, subnormal: Boolean) -> Float:
    """y * 2**n, with a mask, `subnormal`, of the results below the smallest normal number. There are two factors,
    because 2**n alone may not be representable. All bits of the constant in `n` that remain are even, so half of it
    drops out like the whole.

    A product that is subnormal, or rounds to zero, costs the CPU a hundred cycles, and a mask of -inf makes a zero of
    every second element. So these are made 2**spare times as large, and added to the power of two beside which the last
    bit counts 2**spare times the smallest subnormal number: the sum rounds them, once, and the low bits of it are the
    result's."""
    f = y.format
    spare = 1 << (f.bits - f.mantissa_bits - 3)
    one = 2.0 ** (1 - f.exponent_bias + spare)  # 2**mantissa_bits times the smallest subnormal number, times 2**spare
    half = n.shift_right_logical(1)
    larger = select(subnormal, n.constant(spare << f.mantissa_bits), n.constant(0))
    beside = choose(subnormal, one, 0.0, y)
    scaled = fma(y * _exponent(half, y), from_bits(_exponent(n - half, y).to_bits() + larger), beside)
    return from_bits(scaled.to_bits() - beside.to_bits())


def exp(x: Float) -> Float:
    bounded = at_least(at_most(x, _EXP_HIGHEST[x.format]), _EXP_LOWEST[x.format])
    n, _, r = _reduce(bounded)
    return _scale_down(_expm1_of_remainder(r) + 1.0, n, x < _EXP_SUBNORMAL[x.format])


def exp_moderate(x: Float) -> Float:
    """exp where the caller knows that x is within +-80 (f32), +-700 (f64) or NaN."""
    n, _, r = _reduce(x)
    return (_expm1_of_remainder(r) + 1.0) * _exponent(n, x)


def exp_of_sum(high: Float, low: Float) -> Float:
    """exp(high + low) where low is a correction below an ulp or so of high."""
    f = high.format
    bounded = at_least(at_most(high, _EXP_HIGHEST[f]), _EXP_LOWEST[f])
    n, _, r = _reduce(bounded)
    low = choose(bounded.equals(high), low, 0.0, high)
    return _scale_down(_expm1_of_remainder(r + low) + 1.0, n, high < _EXP_SUBNORMAL[f])


def expm1(x: Float) -> Float:
    """2**n expm1(r) + (2**n - 1), in halves, because 2**n overflows before the result does."""
    bounded = at_least(at_most(x, _EXPM1_HIGHEST[x.format]), _EXPM1_LOWEST[x.format])
    shifted, n, r = _reduce(bounded)
    tail = _expm1_of_remainder(r)
    half_scale = _exponent(shifted, x, 1)
    result = fma(half_scale, tail, half_scale - 0.5) * 2.0
    # Halving a denormal loses a bit, and the sum above loses the sign of -0.
    return copysign(select(n.equals(0.0), tail, result), x)


def tanh(x: Float) -> Float:
    """-expm1(y) / (expm1(y) + 2) with y = -2 |x|: numerator and denominator are 2**n expm1(r) + (2**n -+ 1), each
    rounded once."""
    y = at_least(absolute(x) * -2.0, _TANH_LOWEST)
    n, _, r = _reduce(y)
    tail = _expm1_of_remainder(r)
    scale = _exponent(n, x)
    return copysign(fma(scale, tail, scale - 1.0) / fma(scale, tail, scale + 1.0), x)


def logistic(x: Float) -> Float:
    """1 / (1 + e) or e / (1 + e), where e = exp(-|x|), so that results for very negative x can be denormal. Computed as
    a - a q with q = e / (1 + e): the smaller q is, the less its rounding errors matter."""
    negative = -absolute(x)
    n, _, r = _reduce(at_least(negative, _EXP_LOWEST[x.format]))
    e = _scale_down(_exp_of_remainder(r), n, negative < _EXP_SUBNORMAL[x.format])
    a = choose(x < 0.0, e, 1.0, x)
    return fma(-a, e / (e + 1.0), a)


def cosh(x: Float) -> Float:
    return sinh_cosh(x)[1]


def sinh(x: Float) -> Float:
    return sinh_cosh(x)[0]


def sinh_cosh(x: Float) -> tuple[Float, Float]:
    """Both with one exponential: h - 1 / (4 h) and h + 1 / (4 h) with h = exp(|x|) / 2, and for sinh a polynomial
    below 1."""
    magnitude = absolute(x)
    z = magnitude * magnitude
    small = fma(magnitude * z, polynomial(z, _SINH_TAIL[x.format]), magnitude)
    n, _, r = _reduce(at_most(magnitude, _EXP_HIGHEST[x.format]))
    reduced = _expm1_of_remainder(r) + 1.0
    half = n.shift_right_logical(1)  # two factors, as in `_scale_down`
    half_exponential = reduced * _exponent(half, x) * _exponent(n - half, x, 1)
    inverse = 0.25 / half_exponential
    return copysign(select(magnitude < 1.0, small, half_exponential - inverse), x), half_exponential + inverse
