"""Complex inverse functions: asin, acos, asinh, acosh, atanh, atan2.

Kahan's formulas ("Branch cuts for complex elementary functions", 1987) multiply square roots of 1 +- z, and their terms
never cancel. The branch cuts are C99's; the sign of zero tells their two sides apart. For large |z|, where those
products would overflow, log(2 |z|) is used, also for infinities. XLA has no CPU code for these on complex numbers.
"""

from __future__ import annotations

from .complex_functions import divide, log, log_size, sqrt
from .complex_value import Complex
from .exponential import LN2_HIGH
from .inverse_trigonometric import PI_4_HIGH
from .inverse_trigonometric import atan2 as real_atan2
from .logarithm import asinh as real_asinh
from .logarithm import log1p as real_log1p
from .value import F32, F64, INFINITY, NAN, Boolean, Float, absolute, choose, copysign, fma, select

_HALF_PI = {f: 2.0 * quarter for f, quarter in PI_4_HIGH.items()}
# From here on sqrt(1 + z**2) equals z in all bits.
_FAR = {F32: 2.0**14, F64: 2.0**28}
# Below this a square is no normal number; then the power of two that scales such numbers up.
_NEAR = {F32: (2.0**-60, 100), F64: (2.0**-500, 700)}


def _is_far(z: Complex) -> Boolean:
    bound = _FAR[z.real.format]
    return (absolute(z.real) > bound) | (absolute(z.imag) > bound)


def _log_twice_size(z: Complex) -> Float:
    return log_size(z) + LN2_HIGH[F64]


def _roots(z: Complex) -> tuple[Complex, Complex]:
    """(sqrt(1 - z), sqrt(1 + z)); 1 where |z| is large, so that unused values do not overflow."""
    far = _is_far(z)
    x = choose(far, 0.0, z.real, z.real)
    y = choose(far, 0.0, z.imag, z.imag)
    return sqrt(Complex(1.0 - x, -y)), sqrt(Complex(x + 1.0, y))


def asin(z: Complex) -> Complex:
    """atan(x / Re(a b)) + i asinh(Im(conj(a) b)), a = sqrt(1 - z), b = sqrt(1 + z)."""
    far = _is_far(z)
    a, b = _roots(z)
    product = a.real * b.real - a.imag * b.imag
    real = real_atan2(z.real, select(far, absolute(z.imag), product))
    imag = real_asinh(a.real * b.imag - a.imag * b.real)
    imag = select(far, copysign(_log_twice_size(z), z.imag), copysign(imag, z.imag))
    return Complex(select(z.real.equals(0.0), z.real, real), imag)


def acos(z: Complex) -> Complex:
    """2 atan(Re a / Re b) + i asinh(Im(conj(b) a)), a = sqrt(1 - z), b = sqrt(1 + z)."""
    far = _is_far(z)
    a, b = _roots(z)
    angle = real_atan2(select(far, absolute(z.imag), a.real), select(far, z.real, b.real))
    real = angle * choose(far, 1.0, 2.0, angle)
    real = choose(z.real.equals(0.0), _HALF_PI[real.format], real, real)
    imag = real_asinh(b.real * a.imag - b.imag * a.real)
    imag = select(far, copysign(_log_twice_size(z), -z.imag), copysign(imag, -z.imag))
    return Complex(real, imag)


def asinh(z: Complex) -> Complex:
    """-i asin(i z)."""
    turned = asin(Complex(-z.imag, z.real))
    return Complex(turned.imag, -turned.real)


def acosh(z: Complex) -> Complex:
    """asinh(Re(conj(a) b)) + 2 i atan(Im a / Re b), a = sqrt(z - 1), b = sqrt(z + 1)."""
    far = _is_far(z)
    x = choose(far, 0.0, z.real, z.real)
    y = choose(far, 0.0, z.imag, z.imag)
    a, b = sqrt(Complex(x - 1.0, y)), sqrt(Complex(x + 1.0, y))
    real = select(far, _log_twice_size(z), real_asinh(a.real * b.real + a.imag * b.imag))
    angle = real_atan2(select(far, z.imag, a.imag), select(far, z.real, b.real))
    angle = angle * choose(far, 1.0, 2.0, angle)
    return Complex(real, choose(z.real.equals(0.0) & z.imag.is_nan(), _HALF_PI[angle.format], angle, angle))


def atanh(z: Complex) -> Complex:
    """log1p(4 x / ((1 - x)**2 + y**2)) / 4 + i atan2(2 y, (1 - x) (1 + x) - y**2) / 2, for |x|.

    Near 1 the quotient would overflow; there the real part is log(2 / |y|) / 2. For large |z| it is 1 / z +- i pi/2.
    """
    f = z.real.format
    far = _is_far(z)
    x, y = absolute(z.real), z.imag
    near_x, near_y = choose(far, 0.0, x, x), choose(far, 1.0, y, y)
    rest = 1.0 - near_x
    bound, lift = _NEAR[f]
    singular = rest.equals(0.0) & (absolute(near_y) < bound)
    lifted = absolute(near_y) * 2.0**lift  # log(2 / |y|) = (lift + 1) log 2 - log(lifted)
    argument = near_x * 4.0 / fma(rest, rest, near_y * near_y)
    logarithm = real_log1p(select(singular, 1.0 / lifted - 1.0, argument))
    offset = choose(singular, (lift + 1) * LN2_HIGH[F64], 0.0, x)
    real = (logarithm + offset) * choose(singular, 0.5, 0.25, x)
    imag = real_atan2(near_y + near_y, fma(rest, near_x + 1.0, -(near_y * near_y))) * 0.5
    reciprocal = divide(Complex(x.constant(1.0), x.constant(0.0)), Complex(x, y))
    real = select(far, reciprocal.real, real)
    imag = select(far, copysign(x.constant(_HALF_PI[f]), y) + reciprocal.imag, imag)
    imag = choose(y.is_nan(), NAN, imag, imag)
    # An imaginary argument gives an imaginary result, even if the other part is NaN.
    real = choose(x.equals(0.0) | x.equals(INFINITY), 0.0, real, real)
    return Complex(copysign(real, z.real), imag)


def atan2(y: Complex, x: Complex) -> Complex:
    """The continuation of the angle: -i log((x + i y) / sqrt(x**2 + y**2)), as XLA."""
    point = Complex(x.real - y.imag, x.imag + y.real)
    logarithm = log(divide(point, sqrt(x * x + y * y)))
    return Complex(logarithm.imag, -logarithm.real)
