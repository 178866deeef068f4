"""pow, and the roots: sqrt, rsqrt, cbrt.

pow is exp(y log x), where y multiplies every error of the logarithm by up to 700. f32 therefore works in f64, and f64
carries the logarithm as an unevaluated sum of two f64 with about 66 correct bits.
"""

from __future__ import annotations

from .double_double import fast_two_sum, two_product, two_sum
from .exponential import LN2_HIGH, LN2_LOW, exp_of_sum
from .logarithm import small_integer_to_float, split_exponent
from .value import (
    F32,
    F64,
    INFINITY,
    NAN,
    Boolean,
    Float,
    absolute,
    at_least,
    at_most,
    choose,
    copysign,
    fma,
    from_bits,
    polynomial,
    polynomial_in_pairs,
    select,
    square_root,
    truncate,
)

# log2(1 + r) / r on sqrt(1/2) - 1 <= r <= sqrt(2) - 1; relative error 2**-38.4. No quotient: it would take as long as
# all of this.
_LOG2 = (
    1.4426950408865746,
    -0.7213475203275029,
    0.4808983488027108,
    -0.3606737931449825,
    0.2885387957442808,
    -0.24044643320344794,
    0.2061071223158708,
    -0.18043675825012112,
    0.16021668446114032,
    -0.1424985734868782,
    0.13027543254587678,
    -0.1346294313047502,
    0.13251274048565248,
    -0.06973967061022353,
)
# 2**t on |t| <= 1/2; relative error 2**-28.9
_EXP2 = (
    1.0,
    0.6931472028818705,
    0.24022647911251235,
    0.055503324089452605,
    0.009618437494855726,
    0.0013398900132459523,
    0.00015353369546944573,
)
# (atanh(s) / s - 1 - s**2 / 3) / s**4 over s**2, |s| <= 0.1716; error relative to atanh: 2**-77
_ATANH_TAIL = (
    0.2,
    0.14285714285713444,
    0.11111111111358236,
    0.0909090905301404,
    0.07692311092455077,
    0.06666479963762917,
    0.05888633885534268,
    0.05139471246695328,
    0.06014594320474069,
)
_THIRD_HIGH, _THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17


def _power_f32(x: Float, y: Float, factor: Float) -> Float:
    """x**y for 0 < x < inf (f32) times `factor`, computed in f64 and rounded once. The factor is 1, or of the special
    cases: they wait for the arguments alone, and so does its product with the power of two."""
    # Every f32 but 1 has a logarithm so large that a larger y makes no difference; this keeps inf * 0 out, and NaN.
    bounded_y = choose(y < 2.0**40, y, 2.0**40, y)
    wide_y = at_least(bounded_y, -(2.0**40)).to_format(F64)
    wide = x.to_format(F64)  # every f32, denormals included, is a normal f64
    exponent, mantissa = split_exponent(wide)
    k = small_integer_to_float(exponent, F64, F64.exponent_bias)
    logarithm = polynomial_in_pairs(mantissa - 1.0, (k, *_LOG2))
    shifted = fma(wide_y, logarithm, F64.round_to_integer)
    fraction = wide_y * logarithm - (shifted - F64.round_to_integer)
    bounded = at_least(at_most(shifted, F64.round_to_integer + 130.0), F64.round_to_integer - 152.0)
    scale = from_bits((bounded.to_bits() << F64.mantissa_bits) + (F64.exponent_bias << F64.mantissa_bits))
    return (polynomial_in_pairs(fraction, _EXP2) * (scale * factor.to_format(F64))).to_format(F32)


def _logarithm_in_two_parts(x: Float) -> tuple[Float, Float]:
    """log(x) for 0 < x < inf (f64), to about 2**-66 relative."""
    denormal = x < F64.smallest_normal
    exponent, mantissa = split_exponent(choose(denormal, x * 2.0**54, x, x))
    k = small_integer_to_float(exponent, F64, choose(denormal, 1023.0 + 54.0, 1023.0, x))
    # s = (m - 1) / (m + 1); the numerator is exact
    numerator = mantissa - 1.0
    denominator, denominator_error = two_sum(mantissa, 1.0)
    reciprocal = 1.0 / denominator
    s = numerator * reciprocal
    s_low = fma(-s, denominator_error, fma(-s, denominator, numerator)) * reciprocal
    # z = s**2, then t = z (1/3 + z tail), all in two parts
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    third, third_low = fast_two_sum(x.constant(_THIRD_HIGH), fma(z, polynomial(z, _ATANH_TAIL), _THIRD_LOW))
    t, t_low = two_product(z, third)
    t_low = t_low + fma(z, third_low, z_low * third)
    # atanh(s) = s + s t
    st, st_low = two_product(s, t)
    st_low = st_low + fma(s, t_low, s_low * t)
    atanh, atanh_low = fast_two_sum(s, st)
    atanh_low = atanh_low + (s_low + st_low)
    # k ln 2 + 2 atanh(s)
    base, base_low = two_product(k, LN2_HIGH[F64])
    base_low = fma(k, LN2_LOW[F64], base_low)
    total, total_low = two_sum(base, atanh + atanh)
    return fast_two_sum(total, total_low + (base_low + (atanh_low + atanh_low)))


def _power_of_positive_f64(x: Float, y: Float) -> Float:
    """x**y for 0 < x < inf (f64)."""
    # Any |y| beyond 2**64 over- or underflows for x != 1; bounding it keeps infinities out of the error terms.
    y = at_least(at_most(y, 2.0**65), -(2.0**65))
    high, low = _logarithm_in_two_parts(x)
    product, product_error = two_product(y, high)
    return exp_of_sum(product, fma(y, low, product_error))


def _whole_and_odd(y: Float) -> tuple[Boolean, Boolean]:
    """(y is a whole number, y is an odd one)."""
    half = y * 0.5
    whole = truncate(y).equals(y)
    return whole, whole & truncate(half).differs(half)


def power(x: Float, y: Float) -> Float:
    """x**y with C99's special cases (F.9.4.4): x**0 and 1**y are 1 for every value of the other, even NaN; a negative x
    needs a whole y; zero and infinity become zero or infinity by the sign of y."""
    magnitude = absolute(x)
    if x.format is F32:
        return _power_f32(magnitude, y, _with_special_cases(x, y, x.constant(1.0)))
    return _with_special_cases(x, y, _power_of_positive_f64(magnitude, y))


def _with_special_cases(x: Float, y: Float, result: Float) -> Float:
    """`result` for abs(x)**y, with the sign of x**y; its value if x or y is special."""
    # Operations that do not wait for the result come first.
    magnitude = absolute(x)
    whole, odd = _whole_and_odd(y)
    zero = magnitude.equals(0.0)
    extreme = choose((y < 0.0) ^ zero, 0.0, INFINITY, x)
    bits = x.to_bits()
    sign = select(odd, bits & bits.constant(-1 << (bits.bits - 1)), bits.constant(0))
    is_one = x.equals(1.0) | y.equals(0.0)
    is_nan = x.is_nan() | y.is_nan() | ((x < 0.0) & (x > -INFINITY) & ~whole)
    exception = choose(is_one, 1.0, NAN, x)
    result = select(zero | magnitude.equals(INFINITY), extreme, result)
    result = from_bits(result.to_bits() | sign)
    return select(is_one | is_nan, exception, result)


def rsqrt(x: Float) -> Float:
    return 1.0 / square_root(x)


def cbrt(x: Float) -> Float:
    """A guess with 5 correct bits from a third of the exponent, Halley's steps (each triples the bits), then one Newton
    step with a residual that is exact to twice the precision."""
    f = x.format
    magnitude = absolute(x)
    tiny = magnitude < f.smallest_normal * 2.0**16
    scaled = choose(tiny, magnitude * 2.0**54, magnitude, x)
    guess = _cbrt_guess(scaled)
    for _ in range(1 if f is F32 else 2):
        eighth = guess * guess * (guess * 0.125)  # (2 x + cube) / (x + 2 cube), over 8 so that it cannot overflow
        guess = guess * (fma(scaled, 0.25, eighth) / fma(scaled, 0.125, eighth + eighth))
    square, square_low = two_product(guess, guess)
    residual = fma(square_low, guess, fma(square, guess, -scaled))
    root = guess - residual / (square * 3.0)
    root = choose(tiny, root * 2.0**-18, root, x)
    unchanged = magnitude.equals(0.0) | ~(magnitude < INFINITY)
    return select(unchanged, x, copysign(root, x))


def _cbrt_guess(x: Float) -> Float:
    """The bits of x as an integer grow like log2(x). So a third of them plus two thirds of the bits of 1 are the bits
    of a cube root within 4 %. Division by 3 multiplies the top 32 bits, which fits a 64-bit product."""
    f = x.format
    top = x.to_bits().extend_unsigned(64) if f is F32 else x.to_bits().shift_right_logical(32)
    third = (top * 0x55555556).shift_right_logical(32)
    if f is F32:
        return from_bits((third + 0x2A5119F2).truncate(32))
    return from_bits((third + 0x2A9F7893) << 32)
