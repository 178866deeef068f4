"""log and the functions based on it: log1p, asinh, acosh, atanh.

x = 2**k m with m in [sqrt(1/2), sqrt(2)); with f = m - 1 and s = f / (2 + f), log m = 2 atanh(s) = f - f**2 / 2 + s
(f**2 / 2 + R(s**2)).
"""

from __future__ import annotations

from .double_double import two_sum
from .exponential import LN2_HIGH, LN2_LOW
from .value import (
    F32,
    F64,
    INFINITY,
    NAN,
    Float,
    FloatFormat,
    Integer,
    absolute,
    choose,
    copysign,
    fma,
    from_bits,
    polynomial,
    select,
    square,
    square_root,
)

# (2 atanh(s) - 2 s) / s**3 over s**2, |s| <= 0.1716; errors relative to log: 2**-35.2, 2**-59.5
_LOG_TAIL = {
    F32: (0.6666666269302368, 0.40000972151756287, 0.2849879264831543, 0.24278855323791504),
    F64: (
        0.6666666666666735,
        0.3999999999940935,
        0.28571428743686533,
        0.2222219842898658,
        0.18183572353024322,
        0.1531383226818819,
        0.147982570142551,
    ),
}
_SQRT_HALF_BITS = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}
# sqrt(x**2 + 1) is x from here on, and x**2 does not overflow before it.
_HYPERBOLIC_LARGE = {F32: 2.0**60, F64: 2.0**500}


def split_exponent(x: Float) -> tuple[Integer, Float]:
    """(k + bias, m) with x == 2**k m, m in [sqrt(1/2), sqrt(2)), for positive normal x."""
    f = x.format
    one = f.exponent_bias << f.mantissa_bits
    offset = x.to_bits() + (one - _SQRT_HALF_BITS[f])
    mantissa = (offset & ((1 << f.mantissa_bits) - 1)) + _SQRT_HALF_BITS[f]
    return offset.shift_right_logical(f.mantissa_bits), from_bits(mantissa)


def small_integer_to_float(n: Integer, f: FloatFormat, minus: Float | float = 0.0) -> Float:
    """float(n) - minus for 0 <= n < 2**mantissa_bits, through a float with n in its low bits (AVX2 has no conversion
    from 64-bit integers); `minus` is a small whole number."""
    carrier = from_bits(n | ((f.exponent_bias + f.mantissa_bits) << f.mantissa_bits))
    if isinstance(minus, Float):
        return carrier - (minus + 2.0**f.mantissa_bits)
    return carrier - (2.0**f.mantissa_bits + minus)


def _log_of_mantissa(f: Float, k: Float) -> Float:
    """log(1 + f) + k ln 2."""
    s = f / (f + 2.0)
    z = square(s)
    half_square = square(f) * 0.5
    correction = fma(s, fma(z, polynomial(z, _LOG_TAIL[f.format]), half_square), k * LN2_LOW[f.format])
    return fma(k, LN2_HIGH[f.format], f - (half_square - correction))


def _outside_domain(x: Float, result: Float) -> Float:
    """`result` for 0 < x < inf; else the value of log: log(0) = -inf, log(inf) = inf, NaN for the rest."""
    result = choose(x < INFINITY, result, x, x)
    result = choose(x.equals(0.0), -INFINITY, result, x)
    return choose(x < 0.0, NAN, result, x)


def log(x: Float) -> Float:
    f = x.format
    lift = f.mantissa_bits + 2.0
    denormal = x < f.smallest_normal
    exponent, mantissa = split_exponent(choose(denormal, x * 2.0**lift, x, x))
    bias = choose(denormal, f.exponent_bias + lift, f.exponent_bias, x)
    k = small_integer_to_float(exponent, f, bias)
    return _outside_domain(x, _log_of_mantissa(mantissa - 1.0, k))


def log1p(x: Float) -> Float:
    """log of the rounded 1 + x; the rounding error of that sum is added to f, scaled like the mantissa."""
    f = x.format
    argument, error = two_sum(x, 1.0)
    exponent, mantissa = split_exponent(argument)
    k = small_integer_to_float(exponent, f, f.exponent_bias)
    # Where 2**-k would leave the normal range the error is far below an ulp.
    ceiling = f.exponent_bias + f.mantissa_bits + 3
    bounded = select(exponent < ceiling, exponent, exponent.constant(ceiling))
    shrink = from_bits((bounded.constant(2 * f.exponent_bias) - bounded) << f.mantissa_bits)
    result = _log_of_mantissa(fma(error, shrink, mantissa - 1.0), k)
    return copysign(_outside_domain(argument, result), x)


def asinh(x: Float) -> Float:
    """log1p(a + a**2 / (1 + sqrt(a**2 + 1))), a = |x|; log(2 a) where a is large."""
    magnitude = absolute(x)
    large = magnitude > _HYPERBOLIC_LARGE[x.format]
    squared = square(magnitude)
    argument = magnitude + squared / (square_root(squared + 1.0) + 1.0)
    result = log1p(select(large, magnitude, argument)) + choose(large, LN2_HIGH[F64], 0.0, x)
    return copysign(result, x)


def acosh(x: Float) -> Float:
    """log1p(t + sqrt(t (x + 1))), t = x - 1; log(2 x) where x is large; NaN below 1."""
    large = x > _HYPERBOLIC_LARGE[x.format]
    t = x - 1.0
    argument = t + square_root(t * (x + 1.0))
    result = log1p(select(large, x, argument)) + choose(large, LN2_HIGH[F64], 0.0, x)
    return choose(x < 1.0, NAN, result, x)


def atanh(x: Float) -> Float:
    """log1p(2 a / (1 - a)) / 2, a = |x|; infinite at 1, NaN beyond."""
    magnitude = absolute(x)
    return copysign(log1p((magnitude + magnitude) / (1.0 - magnitude)) * 0.5, x)
