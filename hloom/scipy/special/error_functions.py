"""Error functions, the normal distribution function, and integrals like them. Source: jax.scipy.special."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ... import lax
from ...extend.primitive import Primitive
from ...lax.elementwise_functions import ElementwiseFunction, first_of
from ...lax.error_functions import erfc_meaning, exp_of_square, scaled_erfc_positive, split_high
from ...lax.series import chebyshev, clenshaw, horner, narrow, rounded_to
from ...lax.special_tables import DAWSON, DAWSON_ROOT, DAWSON_SLOPE, FRESNEL_F, FRESNEL_G, NDTRI_MIDDLE, NDTRI_TAIL
from ...numpy.promotion import promote_inexact, strong
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.ops import convert
from ...tracer.settings.config import enable_x64
from .promoting import real

_SQRT_HALF = math.sqrt(0.5)
_SQRT_PI = math.sqrt(math.pi)


@compound()
def erf(x: ArrayLike) -> Value:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.erf(jnp.array([0.0, 1.0])).round(3)
    Array([0.   , 0.843], dtype=float32)
    """
    return lax.erf(*real("erf", x))


@compound()
def erfc(x: ArrayLike) -> Value:
    """1 - erf(x), accurate where it is small.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.erfc(jnp.array([0.0, 1.0])).round(3)
    Array([1.   , 0.157], dtype=float32)
    """
    return lax.erfc(*real("erfc", x))


@compound()
def erfinv(x: ArrayLike) -> Value:
    """The inverse of erf; infinite at -1 and 1, NaN outside.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.erfinv(special.erf(jnp.array([0.0, 0.5]))).round(3)
    Array([0. , 0.5], dtype=float32)
    """
    return lax.erf_inv(*real("erfinv", x))


@compound()
def erfcinv(y: ArrayLike) -> Value:
    """The inverse of erfc, also where it is tiny; infinite at 0 and 2, NaN outside.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.erfcinv(jnp.array([1e-30, 0.5, 1.0, 2.0])).round(3)
    Array([8.149, 0.477, 0.   ,  -inf], dtype=float32)
    """
    (x,) = real("erfcinv", y)
    return 0.0 - ndtri(x * 0.5) * math.sqrt(0.5)  # +0 at 1


# ---- scaled functions


def _erfcx_meaning(x: Any) -> Any:
    positive = scaled_erfc_positive(lax.abs(x))
    limited = lax.max(x, lax.full_like(x, -30.0))
    below = 2.0 * exp_of_square(limited, 1.0) - positive
    return first_of(x != x, math.nan, x < -26.7, math.inf, x < 0.0, below, positive)


def _tail(x: Any, terms: list[float]) -> Any:
    """The sum of terms[k] / x**(2 k + 2)."""
    z = 1.0 / (x * x)
    return z * horner(terms, z)


_FAR = 30.0
"""From here on seven terms of the asymptotic series are right to the last place."""
_DOUBLE_FACTORIALS = [float(math.prod(range(1, 2 * k, 2))) / 2.0**k for k in range(1, 8)]
"""(2 k - 1)!! / 2**k for k = 1, 2, ..."""
_ERFCX_TAIL = [(-1.0) ** (k + 1) * c for k, c in enumerate(_DOUBLE_FACTORIALS)]


def _erfcx_slope_meaning(x: Any) -> Any:
    """2 (x y - 1 / sqrt(pi)), which cancels far out: there by the asymptotic series (DLMF 7.12.1)."""
    far = x > _FAR
    near = lax.select(far, lax.full_like(x, 1.0), x)
    direct = 2.0 * (near * _erfcx_meaning(near) - 1.0 / _SQRT_PI)
    series = (2.0 / _SQRT_PI) * _tail(lax.select(far, x, lax.full_like(x, _FAR)), _ERFCX_TAIL)
    return lax.select(far, series, direct)


_erfcx_slope: ElementwiseFunction = ElementwiseFunction("erfcx_slope", _erfcx_slope_meaning, [None])
_erfcx: ElementwiseFunction = ElementwiseFunction("erfcx", _erfcx_meaning, [lambda y, x: _erfcx_slope(x)], short=True)


@compound()
def erfcx(x: ArrayLike) -> Value:
    """exp(x**2) erfc(x), of real or complex numbers.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.erfcx(jnp.array([0.0, 1.0, 100.0])).round(3)
    Array([1.   , 0.428, 0.006], dtype=float32)
    """
    (value,) = promote_inexact("erfcx", x)
    if dtypes.is_complex(value.aval.dtype):
        return strong(_wofz.bind(lax.complex(-lax.imag(value), lax.real(value))))
    return strong(_erfcx(value))


_DAWSON_TERMS = [1.0]
for _k in range(1, 26):
    _DAWSON_TERMS.append(_DAWSON_TERMS[-1] * -2.0 / (2 * _k + 1))


def _dawsn_meaning(x: Any) -> Any:
    """x / (1 + 2 x**2) is right at 0 and far out; the quotient is smooth in x**2. The sum of so many terms is wrong by
    some bits of float64 near 0: there the power series."""
    z = x * x
    t = lax.select(z < 1e20, (z - 12.0) / (z + 12.0), lax.full_like(x, 1.0))
    limited = lax.clamp(-1e100, x, 1e100)
    value = limited / (1.0 + 2.0 * limited * limited) * chebyshev(DAWSON, t)
    if not narrow():
        near = lax.clamp(-1.0, x, 1.0)
        value = lax.select(lax.abs(x) < 1.0, near * horner(_DAWSON_TERMS, near * near), value)
    return lax.select(lax.abs(x) < 1e100, value, 0.5 / x)


def _dawsn_slope_meaning(x: Any) -> Any:
    """1 - 2 x y, which cancels far out: there by the asymptotic series. For narrow types a series beside its root."""
    if narrow():
        size = lax.min(lax.abs(x), lax.full_like(x, 1e60))
        z = size * size
        away = ((DAWSON_ROOT[0] - size) + DAWSON_ROOT[1]) * (DAWSON_ROOT[0] + size)
        below = 1.0 + 2.0 * z
        return away * chebyshev(DAWSON_SLOPE, (z - 12.0) / (z + 12.0)) / (below * below)
    far = lax.abs(x) > _FAR
    near = lax.select(far, lax.full_like(x, 1.0), x)
    direct = 1.0 - 2.0 * near * _dawsn_meaning(near)
    return lax.select(far, -_tail(lax.select(far, x, lax.full_like(x, _FAR)), _DOUBLE_FACTORIALS), direct)


_dawsn_slope: ElementwiseFunction = ElementwiseFunction("dawsn_slope", _dawsn_slope_meaning, [None], short=True)
_dawsn: ElementwiseFunction = ElementwiseFunction("dawsn", _dawsn_meaning, [lambda y, x: _dawsn_slope(x)], short=True)


@compound()
def dawsn(x: ArrayLike) -> Value:
    """Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.dawsn(jnp.array([0.0, 1.0, 10.0])).round(3)
    Array([0.   , 0.538, 0.05 ], dtype=float32)
    """
    return strong(_dawsn(*real("dawsn", x)))


# ---- Faddeeva's function


@functools.cache
def _weideman(count: int) -> tuple[float, tuple[float, ...]]:
    """The scale L and the coefficients of Weideman's series, constant term first.

    Source: Weideman, "Computation of the complex error function" (1994): the Fourier coefficients of
    exp(-t**2) (L**2 + t**2) at t = L tan(theta / 2).
    """
    scale = math.sqrt(count / math.sqrt(2.0))
    m = 2 * count
    t = scale * np.tan(np.arange(-m + 1, m) * np.pi / (2 * m))
    samples = np.concatenate([[0.0], np.exp(-(t**2)) * (scale**2 + t**2)])
    found = np.fft.fft(np.fft.fftshift(samples)).real / (2 * m)
    return scale, tuple(float(c) for c in found[1 : count + 1])


_NARROW_TERMS = 36
"""Of Weideman's series, for complex64."""


def _faddeeva(z: Any) -> Any:
    """Weideman's series in the upper half-plane; below, w(z) = 2 exp(-z**2) - w(-z) (DLMF 7.4.3).

    On the real axis the real part is exp(-x**2) and the imaginary part Dawson's integral.
    """
    scale, coefficients = _weideman(_NARROW_TERMS if narrow() else 64)
    x, y = lax.real(z), lax.imag(z)
    below = y < 0.0
    size = lax.max(lax.abs(x), lax.abs(y))
    far = ~(size < 1e100)  # also NaN
    zero, one = lax.full_like(x, 0.0), lax.full_like(x, 1.0)
    # in parts: vectors of complex numbers would be pairs
    u, v = lax.select(below, -x, x), lax.abs(y)
    a, b = lax.select(far, one, u), lax.select(far, one, v)
    over = 1.0 / ((scale + b) * (scale + b) + a * a)
    right, up = (scale + b) * over, a * over  # 1 / (scale - i z)
    share, turned = (scale - b) * right - a * up, (scale - b) * up + a * right
    total, rest = lax.full_like(x, coefficients[-1]), zero
    for c in reversed(coefficients[:-1]):
        total, rest = total * share - rest * turned + c, total * turned + rest * share
    total, rest = 2.0 * (total * right - rest * up) + 1.0 / _SQRT_PI, 2.0 * (total * up + rest * right)
    value = total * right - rest * up, total * up + rest * right
    on_axis = lax.exp(-x * x), _dawsn_meaning(x) * (2.0 / _SQRT_PI)
    safe = lax.select(far, size, one)
    scaled_u, scaled_v = u / safe, v / safe
    inverse = 1.0 / (_SQRT_PI * safe * (scaled_u * scaled_u + scaled_v * scaled_v))
    outside = [lax.select(size == math.inf, zero, part * inverse) for part in (scaled_v, scaled_u)]
    cases = zip(on_axis, outside, value)
    result = lax.complex(*[first_of(y == 0.0, real, far, end, part) for real, end, part in cases])
    return lax.select(below, 2.0 * lax.exp(lax.complex((y - x) * (y + x), -2.0 * x * y)) - result, result)


_wofz = Primitive("wofz")


@_wofz.def_meaning
def _wofz_meaning(z: Any) -> Any:
    dtype, weak = z.aval.dtype, z.aval.weak_type
    with enable_x64(True), rounded_to(dtype):
        result = _faddeeva(convert(z, dtypes.complex128, False))
    return convert(result, dtype, weak)


@_wofz.def_jvp
def _wofz_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (z,), (t,) = primals, tangents
    return _wofz.bind(z), t * _wofz_slope.bind(z)


_wofz_slope = Primitive("wofz_slope")


@_wofz_slope.def_meaning
def _wofz_slope_meaning(z: Any) -> Any:
    """2 i / sqrt(pi) - 2 z w(z), which cancels far out: there by the asymptotic series in the upper half-plane, and
    below it from w(z) = 2 exp(-z**2) - w(-z)."""
    dtype, weak = z.aval.dtype, z.aval.weak_type
    with enable_x64(True):
        wide = convert(z, dtypes.complex128, False)
        size = lax.max(lax.abs(lax.real(wide)), lax.abs(lax.imag(wide)))
        far = size > _FAR
        near = lax.select(far, lax.full_like(wide, 1.0), wide)
        direct = 2j / _SQRT_PI - 2.0 * near * _faddeeva(near)
        distant = lax.select(far, wide, lax.full_like(wide, _FAR))
        series = (-2j / _SQRT_PI) * _tail(distant, _DOUBLE_FACTORIALS)
        series = lax.select(size > 1e150, lax.full_like(series, 0.0), series)
        height = lax.imag(distant)
        share = first_of(height < 0.0, -4.0, height == 0.0, -2.0, lax.full_like(height, 0.0))
        inner = lax.select(share == 0.0, lax.full_like(wide, 1.0), distant)
        moved = lax.select(share == 0.0, series, series + share * inner * lax.exp(-inner * inner))
        result = lax.select(far, moved, direct)
    return convert(result, dtype, weak)


@compound()
def wofz(z: ArrayLike) -> Value:
    """Faddeeva's function exp(-z**2) erfc(-i z); the result is complex. Its error is about 1e-15 of |w| in
    complex128, 1e-13 of |w| in complex64 before the result is rounded.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.wofz(jnp.array([0.0, 1.0])).round(3)
    Array([1.   +0.j   , 0.368+0.607j], dtype=complex64)
    """
    (value,) = promote_inexact("wofz", z)
    if not dtypes.is_complex(value.aval.dtype):
        wide = value.aval.dtype == dtypes.float64
        value = convert(value, dtypes.complex128 if wide else dtypes.complex64, False)
    return strong(_wofz.bind(value))


# ---- Fresnel's integrals


_FRESNEL_SINE, _FRESNEL_COSINE = (
    [(-1.0) ** k / (math.factorial(2 * k + j) * (4 * k + 2 * j + 1)) for k in range(14)] for j in (1, 0)
)


def _turns(x: Any) -> tuple[Any, Any]:
    """sin(u) and cos(u) of u = pi x**2 / 2, with x**2 reduced before it is rounded."""
    limited = lax.min(x, lax.full_like(x, 1e100))
    h = split_high(limited)
    whole = h * h
    whole = whole - 4.0 * lax.floor(whole * 0.25)
    rest = (limited - h) * (limited + h)
    rest = rest - 4.0 * lax.floor(rest * 0.25)
    angle = whole + rest
    angle = angle - 4.0 * lax.floor(angle * 0.25 + 0.5)
    return _sine_of_quarters(angle), _sine_of_quarters(1.0 - lax.abs(angle))


def _sine_of_quarters(t: Any) -> Any:
    """sin(pi t / 2) for |t| <= 2; exactly 0 at integers where it is."""
    size = lax.abs(t)
    return lax.sin(0.5 * math.pi * lax.select(size > 1.0, lax.sign(t) * (2.0 - size), t))


def _fresnel_parts(x: Any) -> tuple[Any, Any]:
    """Power series for pi x**2 / 2 < 4, else auxiliary functions (DLMF 7.5.3 and 7.5.4)."""
    size = lax.abs(x)
    u = 0.5 * math.pi * size * size
    small = u < 4.0
    near = lax.select(small, size, lax.full_like(x, 1.0))
    angle = 0.5 * math.pi * near * near
    z = angle * angle
    far = lax.select(small, lax.full_like(x, 2.0), size)
    t = 8.0 / (0.5 * math.pi * far * far) - 1.0
    f = clenshaw(FRESNEL_F, t) / (math.pi * far)
    g = clenshaw(FRESNEL_G, t) / (math.pi * math.pi * far * far * far)
    sine, cosine = _turns(far)
    infinite = size > 1e16
    s = first_of(infinite, 0.5, small, near * angle * horner(_FRESNEL_SINE, z), 0.5 - f * cosine - g * sine)
    c = first_of(infinite, 0.5, small, near * horner(_FRESNEL_COSINE, z), 0.5 + f * sine - g * cosine)
    negative = x < 0.0
    nan = lax.full_like(x, math.nan)
    return (
        lax.select(x != x, nan, lax.select(negative, -s, s)),
        lax.select(x != x, nan, lax.select(negative, -c, c)),
    )


_sine_of_square: ElementwiseFunction = ElementwiseFunction(
    "sine_of_square", lambda x: _turns(lax.abs(x))[0], [lambda y, x: math.pi * x * _cosine_of_square(x)]
)
_cosine_of_square: ElementwiseFunction = ElementwiseFunction(
    "cosine_of_square", lambda x: _turns(lax.abs(x))[1], [lambda y, x: -math.pi * x * _sine_of_square(x)]
)
_fresnel_s: ElementwiseFunction = ElementwiseFunction(
    "fresnel_s", lambda x: _fresnel_parts(x)[0], [lambda y, x: _sine_of_square(x)], shown="fresnel"
)
_fresnel_c: ElementwiseFunction = ElementwiseFunction(
    "fresnel_c", lambda x: _fresnel_parts(x)[1], [lambda y, x: _cosine_of_square(x)], shown="fresnel"
)


@compound()
def fresnel(x: ArrayLike) -> tuple[Value, Value]:
    """(S, C): the integrals of sin(pi t**2 / 2) and cos(pi t**2 / 2) from 0 to x.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> s, c = special.fresnel(jnp.array([0.0, 1.0]))
    >>> s.round(3), c.round(3)
    (Array([0.   , 0.438], dtype=float32), Array([0.  , 0.78], dtype=float32))
    """
    (value,) = real("fresnel", x)
    return strong(_fresnel_s(value)), strong(_fresnel_c(value))


# ---- the normal distribution


@compound()
def ndtr(x: ArrayLike) -> Value:
    """The normal distribution function. All real dtypes, where JAX takes float32 and float64.

    >>> special.ndtr(jnp.array([-1.0, 0.0, 1.96])).round(3)
    Array([0.159, 0.5  , 0.975], dtype=float32)
    """
    (value,) = real("ndtr", x)
    return strong(_ndtr(value))


def _density(x: Any) -> Any:
    return lax.exp(-0.5 * x * x) * (1.0 / math.sqrt(2 * math.pi))


_ndtr: ElementwiseFunction = ElementwiseFunction(
    "ndtr", lambda x: 0.5 * erfc_meaning(-_SQRT_HALF * x), [lambda y, x: _density(x)], short=True
)


def _log_ndtr_meaning(x: Any) -> Any:
    """log(1 - t) or log(t) of the tail t beyond |x|; far below 0, where t underflows, the log of a scaled tail."""
    far = x < -1.0
    size = _SQRT_HALF * lax.abs(x)
    tail = 0.5 * erfc_meaning(lax.select(far, lax.full_like(x, _SQRT_HALF), size))
    scaled = 0.5 * scaled_erfc_positive(lax.select(far, size, lax.full_like(x, _SQRT_HALF)))
    logarithm = lax.log(lax.select(far, scaled, tail))
    lower = lax.min(x, lax.full_like(x, 0.0))
    return first_of(
        x != x, math.nan, x == -math.inf, -math.inf, far, logarithm - 0.5 * lower * lower,
        x > 0.0, lax.log1p(-tail), logarithm,
    )  # fmt: skip


def _density_over_ndtr(x: Any) -> Any:
    """The density over ndtr: below 0 that is the inverse of a scaled erfc."""
    upper = x > 0.0
    lower = lax.select(upper, lax.full_like(x, 0.0), x)
    below = math.sqrt(2.0 / math.pi) / scaled_erfc_positive(-_SQRT_HALF * lower)
    return lax.select(upper, _density(x) / (0.5 * erfc_meaning(-_SQRT_HALF * lax.max(x, lax.full_like(x, 0.0)))), below)


_log_ndtr_slope: ElementwiseFunction = ElementwiseFunction("log_ndtr_slope", _density_over_ndtr, [None], short=True)
_log_ndtr: ElementwiseFunction = ElementwiseFunction(
    "log_ndtr", _log_ndtr_meaning, [lambda y, x: _log_ndtr_slope(x)], short=True
)


@compound(static=("series_order",))
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Value:
    """log(ndtr(x)), accurate for all x. All real dtypes, where JAX takes float32 and float64.

    series_order: the terms of an asymptotic series in JAX; here the result is right to the last places without it.

    >>> special.log_ndtr(jnp.array([-10.0, 0.0])).round(2)
    Array([-53.23,  -0.69], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order must be a Python integer, not {type(series_order).__name__}")
    if not 0 <= series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be between 0 and 30, not {series_order}")
    (value,) = real("log_ndtr", x)
    return strong(_log_ndtr(value))


_TAIL_LOGS = (math.log(2.1459), math.log(14.6))
"""Of sqrt(-2 log p), between 0.1 and the least number of a narrow type."""


def _ndtri_narrow(p: Any, q: Any, inner: Any) -> Any:
    """Between 0.1 and 0.9 a series in (p - 1/2)**2; outside one in log(-log(q)), where q is the smaller of p, 1 - p."""
    away = lax.select(inner, p - 0.5, lax.full_like(p, 0.25))
    central = away * chebyshev(NDTRI_MIDDLE, away * away * 12.5 - 1.0)
    tail = lax.select(inner | ~(q > 0.0), lax.full_like(p, 0.05), q)
    low, high = _TAIL_LOGS
    place = 0.5 * lax.log(-2.0 * lax.log(tail))
    outer = chebyshev(NDTRI_TAIL, (place - low) * (2.0 / (high - low)) - 1.0)
    return lax.select(inner, central, lax.select(p > 0.5, outer, -outer))


def _ndtri_wide(p: Any, q: Any, inner: Any) -> Any:
    """Between 0.1 and 0.9 by erf_inv; outside by Halley's method from a rational guess (AMS 26.2.23, 4.5e-4).

    The step is (Phi(y) - p) / phi(y), in which Phi / phi is a scaled erfc and p / phi one exponential.
    """
    central = math.sqrt(2.0) * lax.erf_inv(lax.select(inner, 2.0 * p - 1.0, lax.full_like(p, 0.0)))
    tail = lax.select(inner | ~(q > 0.0), lax.full_like(p, 0.05), q)
    log_tail = lax.log(tail)
    t = lax.sqrt(-2.0 * log_tail)
    y = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(2):
        scaled = math.sqrt(0.5 * math.pi) * scaled_erfc_positive(-_SQRT_HALF * y)
        r = scaled - math.sqrt(2 * math.pi) * lax.exp(0.5 * y * y + log_tail)
        y = y - r / (1.0 + 0.5 * r * y)
    return lax.select(inner, central, lax.select(p > 0.5, -y, y))


def _ndtri_meaning(p: Any) -> Any:
    q = lax.select(p > 0.5, 1.0 - p, p)
    value = (_ndtri_narrow if narrow() else _ndtri_wide)(p, q, q > 0.1)
    return first_of(
        (p != p) | (p < 0.0) | (p > 1.0), math.nan, p == 0.0, -math.inf, p == 1.0, math.inf, value
    )


_ndtri: ElementwiseFunction = ElementwiseFunction(
    "ndtri", _ndtri_meaning, [lambda y, p: math.sqrt(2 * math.pi) * lax.exp(0.5 * y * y)], short=True
)


@compound()
def ndtri(p: ArrayLike) -> Value:
    """The inverse of ndtr; infinite at 0 and 1, NaN outside. All real dtypes, where JAX takes float32 and float64.

    >>> special.ndtri(jnp.array([0.025, 0.5, 0.975])).round(2)
    Array([-1.96,  0.  ,  1.96], dtype=float32)
    """
    (value,) = real("ndtri", p)
    return strong(_ndtri(value))


# ---- Owen's T function


_POINTS, _WEIGHTS = (tuple(float(v) for v in c) for c in np.polynomial.legendre.leggauss(32))


def _owens_t_meaning(h: Any, a: Any) -> Any:
    """Gauss's quadrature for |a| <= 1, over no more than the range in which exp(-h**2 x**2 / 2) counts.

    Otherwise T(h, a) = (Q(h) + Q(a h)) / 2 - Q(h) Q(a h) - T(a h, 1 / a) for h, a > 0, where Q(x) = 1 - ndtr(x)
    (Owen 1956).
    """
    height, slope = lax.abs(h), lax.abs(a)
    steep = slope > 1.0
    product = lax.select((height == 0.0) | (slope == 0.0), lax.full_like(h, 0.0), height * slope)
    x = lax.min(lax.select(steep, product, height), lax.full_like(h, 1e150))
    limit = lax.select(steep, 1.0 / slope, slope)
    width = lax.min(limit, 9.0 / lax.max(x, lax.full_like(x, 1e-30)))
    total = lax.full_like(x, 0.0)
    for point, weight in zip(_POINTS, _WEIGHTS):
        place = width * (0.5 + 0.5 * point)
        scaled = x * place
        total = total + weight * lax.exp(-0.5 * scaled * scaled) / (1.0 + place * place)
    inner = lax.exp(-0.5 * x * x) * total * width * (0.25 / math.pi)
    first, second = 0.5 * erfc_meaning(_SQRT_HALF * height), 0.5 * erfc_meaning(_SQRT_HALF * product)
    outer = 0.5 * (first + second) - first * second - inner
    value = lax.select(steep, outer, inner)
    return first_of((h != h) | (a != a), math.nan, a < 0.0, -value, a == 0.0, a, value)


def _owens_t_by_h(y: Any, h: Any, a: Any) -> Any:
    return -0.5 * _density(h) * lax.erf(_SQRT_HALF * a * h)


def _owens_t_by_a(y: Any, h: Any, a: Any) -> Any:
    square = 1.0 + a * a
    return lax.exp(-0.5 * h * h * square) / (2 * math.pi * square)


_owens_t: ElementwiseFunction = ElementwiseFunction("owens_t", _owens_t_meaning, [_owens_t_by_h, _owens_t_by_a])


@compound()
def owens_t(h: ArrayLike, a: ArrayLike) -> Value:
    """Owen's T function: the probability that X > h and 0 < Y < a X, for independent normal X and Y.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.owens_t(0.0, jnp.array([0.0, 1.0]))
    Array([0.   , 0.125], dtype=float32)
    """
    return strong(_owens_t(*real("owens_t", h, a)))
