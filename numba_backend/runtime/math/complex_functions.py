"""Complex functions for c64 and c128, from the real ones.

The special values are C99's (Annex G) except where XLA defines others: the product is the textbook formula, as in XLA;
the quotient and the rest recover infinities. Errors are small relative to |result|; a part that cancels may have a
larger relative error by itself. Magnitudes are scaled by powers of two where squares would overflow or underflow, so
that the whole range works.
"""

from __future__ import annotations

from .complex_value import Complex
from .double_double import two_product, two_sum
from .exponential import LN2_HIGH, sinh_cosh
from .exponential import exp as real_exp
from .exponential import expm1 as real_expm1
from .inverse_trigonometric import atan2
from .logarithm import log1p as real_log1p
from .logarithm import small_integer_to_float
from .trigonometric import sin_cos
from .trigonometric import tan as real_tan
from .value import (
    F32,
    F64,
    INFINITY,
    NAN,
    Boolean,
    Float,
    absolute,
    choose,
    copysign,
    fma,
    from_bits,
    select,
    square_root,
)

# Magnitudes above the first bound are scaled by 2**(first exponent) before they are squared, those below the second
# by the second; the exponents are even, so that a square root can be scaled back exactly.
_SQUARE_BANDS = {F32: ((2.0**60, -66), (2.0**-50, 100)), F64: ((2.0**500, -540), (2.0**-450, 700))}
# From here on exp is split into two factors, because a cosine may bring the product back into range.
_LARGE_EXPONENT = {F32: (64.0, 6.235149080811617e27), F64: (512.0, 2.284413586539756e222)}
# From here on tanh is 1 within less than half an ulp.
_TANH_ONE = {F32: 10.0, F64: 20.0}


def _is_infinite(x: Float) -> Boolean:
    return absolute(x).equals(INFINITY)


def _ordered(z: Complex) -> tuple[Float, Float]:
    """The larger and the smaller of the parts' magnitudes; if one is NaN, both values still appear."""
    x, y = absolute(z.real), absolute(z.imag)
    swap = y > x
    return select(swap, y, x), select(swap, x, y)


def _scaled_size(z: Complex) -> tuple[Float, Float, Float, Float]:
    """(|z| s, s, 1 / s, 1 / sqrt(s)) for the power of two s that scales before squaring."""
    larger, smaller = _ordered(z)
    (high, shrink), (low, grow) = _SQUARE_BANDS[larger.format]
    is_high, is_low = larger > high, larger < low

    def pick(exponent_of: float) -> Float:
        inner = choose(is_low, 2.0 ** (exponent_of * grow), 1.0, larger)
        return choose(is_high, 2.0 ** (exponent_of * shrink), inner, larger)

    scale, unscale, unroot = pick(1), pick(-1), pick(-0.5)
    larger, smaller = larger * scale, smaller * scale
    return square_root(fma(larger, larger, smaller * smaller)), scale, unscale, unroot


def absolute_value(z: Complex) -> Float:
    """sqrt(x**2 + y**2); NaN if a part is, even if the other is infinite."""
    size, _, unscale, _ = _scaled_size(z)
    return size * unscale


def sign(z: Complex) -> Complex:
    """z / |z|, both scaled, because a subnormal |z| has few digits; zeros are returned unchanged."""
    size, scale, _, _ = _scaled_size(z)
    divisor = choose(size.equals(0.0), 1.0, size, size)
    return Complex(z.real * scale / divisor, z.imag * scale / divisor)


def divide(z: Complex, w: Complex) -> Complex:
    """C99's division (G.5.1): scaled so that |w|**2 and the products with z neither overflow nor underflow; infinities
    and zeros are recovered afterwards."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    f = c.format
    larger, smaller = _ordered(w)
    larger = select(larger.is_nan(), smaller, larger)
    # A denormal divisor is lifted first, then brought near 1 by its exponent.
    lift = choose(larger < f.smallest_normal, 2.0 ** (f.mantissa_bits + 2), 1.0, c)
    exponent = (larger * lift).to_bits().shift_right_logical(f.mantissa_bits)
    scale = from_bits((exponent.constant(2 * f.exponent_bias) - exponent) << f.mantissa_bits)
    # For the very largest numbers the factor would be 2**-bias, which is no normal number; half of that is enough for
    # the rest.
    scale = choose(exponent.equals(2 * f.exponent_bias), 2.0 ** (1 - f.exponent_bias), scale, c)
    near_c, near_d = c * lift * scale, d * lift * scale
    size = fma(near_c, near_c, near_d * near_d)
    larger_z, _ = _ordered(z)
    is_small, is_large = larger_z < f.smallest_normal * 2.0**4, larger_z > 2.0 ** (f.exponent_bias - 4)
    lift_z = choose(is_small, 2.0 ** (f.mantissa_bits + 2), choose(is_large, 2.0**-4, 1.0, c), c)
    lower_z = choose(is_small, 2.0 ** -(f.mantissa_bits + 2), choose(is_large, 2.0**4, 1.0, c), c)
    near_a, near_b = a * lift_z, b * lift_z
    real = fma(near_a, near_c, near_b * near_d) / size * scale * lift * lower_z
    imag = fma(near_b, near_c, -(near_a * near_d)) / size * scale * lift * lower_z

    lost = real.is_nan() & imag.is_nan()
    infinite_z = _is_infinite(a) | _is_infinite(b)
    infinite_w = _is_infinite(c) | _is_infinite(d)
    finite_z, finite_w = _is_finite(z), _is_finite(w)
    boxed_a, boxed_b, boxed_c, boxed_d = (_box(part) for part in (a, b, c, d))
    from_infinity = lost & infinite_z & finite_w
    real = select(from_infinity, (boxed_a * c + boxed_b * d) * INFINITY, real)
    imag = select(from_infinity, (boxed_b * c - boxed_a * d) * INFINITY, imag)
    to_zero = lost & finite_z & infinite_w
    real = select(to_zero, (a * boxed_c + b * boxed_d) * 0.0, real)
    imag = select(to_zero, (b * boxed_c - a * boxed_d) * 0.0, imag)
    by_zero = c.equals(0.0) & d.equals(0.0)
    infinity = copysign(c.constant(INFINITY), c)
    return Complex(select(by_zero, infinity * a, real), select(by_zero, infinity * b, imag))


def _is_finite(z: Complex) -> Boolean:
    return (absolute(z.real) < INFINITY) & (absolute(z.imag) < INFINITY)


def _box(x: Float) -> Float:
    """Infinities become 1, other values 0, with their signs."""
    return copysign(choose(_is_infinite(x), 1.0, 0.0, x), x)


def _exp_in_two_factors(x: Float) -> tuple[Float, Float]:
    """exp(x) == e * factor, where the factor is 1 or, for large x, a constant."""
    bound, constant = _LARGE_EXPONENT[x.format]
    large = x > bound
    return real_exp(x - choose(large, bound, 0.0, x)), choose(large, constant, 1.0, x)


def exp(z: Complex) -> Complex:
    """exp(x) (cos y + i sin y); a real argument gives a real result."""
    e, factor = _exp_in_two_factors(z.real)
    sine, cosine = sin_cos(z.imag)
    # With an infinite real part an infinite or NaN imaginary part gives no direction: +-inf + i NaN, or zero.
    cosine = choose(_is_infinite(z.real) & cosine.is_nan(), 1.0, cosine, cosine)
    sine = select(z.real.equals(-INFINITY) & sine.is_nan(), copysign(sine.constant(0.0), z.imag), sine)
    imag = select(z.imag.equals(0.0), z.imag, e * sine * factor)
    return Complex(e * cosine * factor, imag)


def expm1(z: Complex) -> Complex:
    """expm1(x) cos y + (cos y - 1) + i exp(x) sin y, all from the half angle: cos y - 1 = -2 sin(y/2)**2."""
    e, factor = _exp_in_two_factors(z.real)
    sine, cosine = sin_cos(z.imag * 0.5)
    twice_square = sine * sine * 2.0
    small = fma(real_expm1(z.real), 1.0 - twice_square, -twice_square)
    direct = exp(z)
    large = absolute(z.real) > 40.0
    real = select(large, direct.real - 1.0, small)
    imag = select(z.imag.equals(0.0), z.imag, e * (sine * cosine * 2.0) * factor)
    return Complex(real, select(large, direct.imag, imag))


def _log_size_parts(z: Complex) -> tuple[Float, Float]:
    """(t, k) with log|z| == log1p(t) / 2 + k ln 2. If |z| is near 1, z is not scaled, and t = x**2 + y**2 - 1 is summed
    with all its rounding errors; otherwise the larger part is scaled to [2, 4)."""
    larger, smaller = _ordered(z)
    f = larger.format
    lift_bits = f.mantissa_bits + 2
    denormal = larger < f.smallest_normal
    lift = choose(denormal, 2.0**lift_bits, 1.0, larger)
    exponent = (larger * lift).to_bits().shift_right_logical(f.mantissa_bits)
    near_one = (larger >= 0.5) & (larger < 2.0)
    scale = from_bits((exponent.constant(2 * f.exponent_bias + 1) - exponent) << f.mantissa_bits)
    scale = choose(near_one, 1.0, scale, scale)
    k = small_integer_to_float(exponent, f, f.exponent_bias + 1) - choose(denormal, lift_bits, 0.0, scale)
    larger, smaller = larger * lift * scale, smaller * lift * scale
    square, square_error = two_product(larger, larger)
    other, other_error = two_product(smaller, smaller)
    less_one, less_one_error = two_sum(square, -1.0)
    t, t_error = two_sum(less_one, other)
    t = t + ((less_one_error + t_error) + (square_error + other_error))
    return t, choose(near_one, 0.0, k, k)


def _finish_log(z: Complex, t: Float, k: Float) -> Float:
    size = fma(k, LN2_HIGH[t.format], real_log1p(t) * 0.5)
    size = choose(_is_infinite(z.real) | _is_infinite(z.imag), INFINITY, size, size)
    return choose(z.real.equals(0.0) & z.imag.equals(0.0), -INFINITY, size, size)


def log_size(z: Complex) -> Float:
    """log|z|."""
    return _finish_log(z, *_log_size_parts(z))


def log(z: Complex) -> Complex:
    return Complex(log_size(z), atan2(z.imag, z.real))


def log1p(z: Complex) -> Complex:
    """log(1 + z), where for small z t = |1 + z|**2 - 1 = 2 x + x**2 + y**2 is summed with all its rounding errors."""
    x, y = z.real, z.imag
    moved = Complex(x + 1.0, y)
    t, k = _log_size_parts(moved)
    square, square_error = two_product(x, x)
    other, other_error = two_product(y, y)
    first, first_error = two_sum(x + x, square)
    near, near_error = two_sum(first, other)
    near = near + ((first_error + near_error) + (square_error + other_error))
    is_near = (x > -0.5) & (x < 1.0) & (absolute(y) < 2.0)
    real = _finish_log(moved, select(is_near, near, t), choose(is_near, 0.0, k, k))
    return Complex(real, atan2(y, moved.real))


def sqrt(z: Complex) -> Complex:
    """t = sqrt((|x| + |z|) / 2) and y / (2 t), the parts exchanged for x < 0; the sign of the imaginary part is y's."""
    size, scale, _, unroot = _scaled_size(z)
    size = choose(_is_infinite(z.real) | _is_infinite(z.imag), INFINITY, size, size)
    t = square_root(fma(absolute(z.real), scale, size) * 0.5) * unroot
    u = absolute(z.imag) / choose(t.equals(0.0), 1.0, t + t, t)
    left = z.real < 0.0
    real, imag = select(left, u, t), select(left, t, u)
    upright = _is_infinite(z.imag)
    return Complex(choose(upright, INFINITY, real, real), copysign(choose(upright, INFINITY, imag, imag), z.imag))


def rsqrt(z: Complex) -> Complex:
    one = z.real.constant(1.0)
    return divide(Complex(one, z.real.constant(0.0)), sqrt(z))


def tanh(z: Complex) -> Complex:
    """Kahan's form: with t = tan y, s = sinh x, b = 1 + t**2, r = cosh x it is (b r s + i t) / (1 + b s**2); far out
    +-1 + 4 i t / b exp(-2 |x|)."""
    x, y = z.real, z.imag
    bound = _TANH_ONE[x.format]
    far = absolute(x) > bound
    t = real_tan(y)
    b = fma(t, t, 1.0)
    s, r = sinh_cosh(choose(far, 0.0, x, x))
    divisor = fma(b, s * s, 1.0)
    real = choose(far, 1.0, absolute(b * r * s / divisor), x)
    real = choose(t.is_nan() & ~_is_infinite(x), NAN, real, real)
    real = choose(x.equals(0.0), 0.0, real, real)
    imag = select(far, t / b * real_exp(absolute(x) * -2.0) * 4.0, t / divisor)
    nothing = copysign(x.constant(0.0), select(y.equals(0.0) | t.is_nan(), y, t))
    imag = select(_is_infinite(x) | y.equals(0.0), nothing, imag)
    return Complex(copysign(real, x), imag)


def tan(z: Complex) -> Complex:
    """-i tanh(i z)."""
    turned = tanh(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


def sinh(z: Complex) -> Complex:
    """-i sin(i z)."""
    turned = sin(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


def cosh(z: Complex) -> Complex:
    """cos(-i z)."""
    return cos(Complex(z.imag, -z.real))


def _sinh_cosh_in_two_factors(y: Float) -> tuple[Float, Float, Float]:
    """(sinh, cosh, factor) to be multiplied by the factor: 1, or a constant for large y."""
    bound, constant = _LARGE_EXPONENT[y.format]
    large = absolute(y) > bound
    reduced = copysign(absolute(y) - choose(large, bound, 0.0, y), y)
    sinh, cosh = sinh_cosh(reduced)
    # for large y, sinh and cosh are equal, but no longer after the reduction
    cosh = select(large, _exp_half(reduced), cosh)
    sinh = select(large, copysign(cosh, y), sinh)
    return sinh, cosh, choose(large, constant, 1.0, y)


def _exp_half(y: Float) -> Float:
    return real_exp(absolute(y)) * 0.5


def sin(z: Complex) -> Complex:
    """sin x cosh y + i cos x sinh y. If x is no number, sinh y is 0 or infinite all the same."""
    sine, cosine = sin_cos(z.real)
    sinh, cosh, factor = _sinh_cosh_in_two_factors(z.imag)
    real = select(sine.equals(0.0), sine, sine * cosh * factor)
    imag = cosine * sinh * factor
    imag = select(cosine.is_nan() & z.imag.equals(0.0), z.imag, imag)
    imag = choose(cosine.is_nan() & _is_infinite(z.imag), INFINITY, imag, imag)
    return Complex(real, imag)


def cos(z: Complex) -> Complex:
    """cos x cosh y - i sin x sinh y. If x is no number, cosh y may be infinite and sinh y 0 all the same."""
    sine, cosine = sin_cos(z.real)
    sinh, cosh, factor = _sinh_cosh_in_two_factors(z.imag)
    imag = select(sine.equals(0.0), copysign(sine, -sine) * copysign(sinh.constant(1.0), sinh), -(sine * sinh * factor))
    imag = select(sine.equals(0.0) & z.imag.is_nan(), sine, imag)
    imag = choose(sine.is_nan() & z.imag.equals(0.0), 0.0, imag, imag)
    real = cosine * cosh * factor
    return Complex(choose(cosine.is_nan() & _is_infinite(z.imag), INFINITY, real, real), imag)


def logistic(z: Complex) -> Complex:
    """1 / (1 + exp(-z)), or exp(z) / (1 + exp(z)) on the left, so that the exponential is at most 1."""
    left = z.real < 0.0
    small = exp(Complex(-absolute(z.real), select(left, z.imag, -z.imag)))
    one, zero = z.real.constant(1.0), z.real.constant(0.0)
    numerator = Complex(select(left, small.real, one), select(left, small.imag, zero))
    return divide(numerator, Complex(small.real + 1.0, small.imag))


def power(z: Complex, w: Complex) -> Complex:
    """exp(w log z), c64 by way of c128. z**0 == 1**w == 1. Powers of 0 are 0 if the exponent's real part is positive;
    real powers of positive infinity are 0 or infinite; all else with a zero base or a part that is not finite is NaN.
    So it is in XLA, which has NaN for all powers of 0 that are not real."""
    if z.real.format is F32:
        wide = power(_to_format64(z), _to_format64(w))
        return Complex(wide.real.to_format(F32), wide.imag.to_format(F32))
    result = exp(w * log(z))
    zero_base = z.real.equals(0.0) & z.imag.equals(0.0)
    infinite_base = z.real.equals(INFINITY) & z.imag.equals(0.0)
    is_real = w.imag.equals(0.0)
    of_zero = zero_base & (w.real > 0.0) & (is_real | _is_finite(w))
    gives_zero = of_zero | (is_real & infinite_base & (w.real < 0.0))
    gives_infinity = is_real & infinite_base & (w.real > 0.0)
    gives_one = (w.real.equals(0.0) & is_real) | (z.real.equals(1.0) & z.imag.equals(0.0))
    undefined = zero_base | ~(_is_finite(z) & _is_finite(w))
    real, imag = (choose(undefined, NAN, part, part) for part in (result.real, result.imag))
    real = choose(gives_infinity, INFINITY, choose(gives_zero, 0.0, real, real), real)
    imag = choose(gives_one | gives_zero | gives_infinity, 0.0, imag, imag)
    return Complex(choose(gives_one, 1.0, real, real), imag)


def _to_format64(z: Complex) -> Complex:
    return Complex(z.real.to_format(F64), z.imag.to_format(F64))
