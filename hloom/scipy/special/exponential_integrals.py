"""Exponential, sine and cosine integrals, and the dilogarithm. Names and semantics follow jax.scipy.special."""

from __future__ import annotations

import math
from typing import Any

from ... import lax
from ...lax.elementwise_functions import ElementwiseFunction, first_of
from ...lax.gamma_functions import digamma_positive
from ...lax.series import chebyshev, clenshaw, horner, narrow, powers_between
from ...lax.special_tables import EI_FAR, EI_MIDDLE, EXP1, SICI_F, SICI_G
from ...numpy.promotion import strong
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .promoting import real

_EULER = 0.5772156649015329


# ---- the generalized exponential integral


def _expn_series(n: Any, x: Any) -> Any:
    """For 0 < x <= 1 and integers n >= 1 (DLMF 8.19.8)."""
    logarithmic = digamma_positive(n) - lax.log(x)
    power = lax.full_like(x, 1.0)
    total = lax.full_like(x, 0.0)
    for k in range(22):
        gap = n - 1.0 - k
        own = lax.abs(gap) < 0.5
        safe = lax.select(own, lax.full_like(x, 1.0), gap)
        total = total + power * lax.select(own, logarithmic, 1.0 / safe)
        power = power * (-x / (k + 1.0))
    return total


def _expn_fraction(n: Any, x: Any) -> Any:
    """The continued fraction (DLMF 8.19.17) for x > 1, from its end, with positive terms only:

        g(k - 1) = x + k g(k) / (n + k - 1 + g(k)),  E_n(x) = exp(-x) / (n - 1 + g(0))

    The number of terms is that for x = 1.
    """
    count = 30 if narrow() else 88
    g = lax.sqrt(count * x)
    for k in range(count, 0, -1):
        g = x + k * g / ((n + (k - 1.0)) + g)
    return 1.0 / ((n - 1.0) + g)


def _expn_meaning(n: Any, x: Any) -> Any:
    valid = (n >= 0.0) & (x >= 0.0) & (n == lax.floor(n))
    by_series = valid & (x > 0.0) & (x <= 1.0) & (n >= 1.0)
    one = lax.full_like(x, 1.0)
    series = _expn_series(lax.select(by_series, lax.min(n, lax.full_like(n, 1e15)), one), lax.select(by_series, x, one))
    by_fraction = valid & (x > 1.0) & (x < 800.0) & (n >= 1.0) & (n < 1e15)
    order, place = lax.select(by_fraction, n, one), lax.select(by_fraction, x, one + one)
    fraction = _expn_fraction(order, place) * lax.exp(-place)
    safe = lax.select(n > 1.0, n - 1.0, one)
    return first_of(
        ~valid, math.nan,
        (x == 0.0) & (n < 2.0), math.inf,
        x == 0.0, 1.0 / safe,
        x >= 800.0, 0.0,
        n == 0.0, lax.exp(-x) / x,
        by_series, series,
        n >= 1e15, lax.exp(-x) / n,
        fraction,
    )  # fmt: skip


def _expn_by_x(y: Any, n: Any, x: Any) -> Any:
    first = n == 0.0
    lower = _expn(lax.select(first, n, n - 1.0), x)
    return lax.select(first, -(y + lax.exp(-x) / (x * x)), -lower)


def _no_derivative_by_order(y: Any, n: Any, x: Any) -> Any:
    return lax.full_like(n, 0.0)


_expn: ElementwiseFunction = ElementwiseFunction(
    "expn", _expn_meaning, [_no_derivative_by_order, _expn_by_x], short=True
)


@compound()
def expn(n: ArrayLike, x: ArrayLike) -> Value:
    """The integral of exp(-x t) / t**n for t from 1 to infinity, n = 0, 1, 2, ...; NaN for x < 0 and for other n.

    Its derivative with respect to n, an integer, is 0.

    Element by element: the arguments broadcast, and are promoted to one floating-point dtype.

    >>> special.expn(2, jnp.array([0.0, 1.0])).round(3)
    Array([1.   , 0.148], dtype=float32)
    """
    return strong(_expn(*real("expn", n, x)))


# (exp(x) - 1) / x, integrated from 0 to x, over x
_ENTIRE = [1.0 / ((k + 1) * math.factorial(k + 1)) for k in range(36)]
_ENTIRE_LEFT = [c * (-1.0) ** k for k, c in enumerate(_ENTIRE[:20])]


def _exp1_of_positive(x: Any, logarithm: Any, power: Any) -> Any:
    """E1(x) for x > 0, of log(x) and exp(-x): up to 1 by the power series (DLMF 6.6.2)."""
    near = lax.min(x, lax.full_like(x, 1.0))
    low = near * powers_between(_ENTIRE_LEFT, near, 0.0, 1.0) - (logarithm + _EULER)
    far = lax.clamp(1.0, x, 1e300)
    high = power / far * chebyshev(EXP1, (far - 4.0) / (far + 2.0))
    return lax.select(x < 1.0, low, high)


def _exp1_meaning(x: Any) -> Any:
    positive = lax.select(x > 0.0, x, lax.full_like(x, 1.0))
    value = _exp1_of_positive(positive, lax.log(positive), lax.exp(-positive))
    return first_of((x != x) | (x < 0.0), math.nan, x == 0.0, math.inf, value)


_exp1: ElementwiseFunction = ElementwiseFunction("exp1", _exp1_meaning, [lambda y, x: -lax.exp(-x) / x], short=True)


@compound()
def exp1(x: ArrayLike) -> Value:
    """expn(1, x), the integral of exp(-t) / t from x to infinity.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.exp1(jnp.array([0.0, 1.0])).round(3)
    Array([  inf, 0.219], dtype=float32)
    """
    return strong(_exp1(*real("exp1", x)))


def _expi_meaning(x: Any) -> Any:
    """For x > 0 up to 6 the power series (DLMF 6.6.2), with positive terms, then x exp(-x) Ei(x), which is smooth; for
    x < 0 -exp1(-x). The root of the power overflows later than the result does."""
    size = lax.select(x == 0.0, lax.full_like(x, 1.0), lax.abs(x))
    logarithm, root = lax.log(size), lax.exp(0.5 * x)
    near = lax.min(size, lax.full_like(x, 6.0))
    low = (_EULER + logarithm) + near * horner(_ENTIRE, near)  # in full, beside the root
    far = lax.clamp(6.0, size, 1e300)
    inverse = 1.0 / far
    middle = (120.0 / 7.0) * lax.max(inverse, lax.full_like(x, 0.05)) - 13.0 / 7.0
    end = 40.0 * lax.min(inverse, lax.full_like(x, 0.05)) - 1.0
    smooth = lax.select(size < 20.0, chebyshev(EI_MIDDLE, middle), chebyshev(EI_FAR, end))
    high = root * inverse * smooth * root
    below = -_exp1_of_positive(size, logarithm, root * root)
    return first_of(x != x, math.nan, x == 0.0, -math.inf, x < 0.0, below, x == math.inf, math.inf, x < 6.0, low, high)


_expi: ElementwiseFunction = ElementwiseFunction("expi", _expi_meaning, [lambda y, x: lax.exp(x) / x], short=True)


@compound()
def expi(x: ArrayLike) -> Value:
    """The exponential integral: the principal value of the integral of exp(t) / t up to x; -inf at 0, as in SciPy.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.expi(jnp.array([0.0, 1.0])).round(3)
    Array([ -inf, 1.895], dtype=float32)
    """
    return strong(_expi(*real("expi", x)))


# ---- sine and cosine integrals


_SINE_INTEGRAL = [(-1.0) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(15)]
_COSINE_INTEGRAL = [(-1.0) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 16)]


def _sici_parts(x: Any) -> tuple[Any, Any]:
    """Power series for |x| < 4, else auxiliary functions (DLMF 6.5.2, 6.2.20)."""
    size = lax.abs(x)
    small = size < 4.0
    near = lax.select(small & (size > 0.0), size, lax.full_like(x, 1.0))
    z = near * near
    far = lax.clamp(4.0, size, 1e300)
    t = 8.0 / far - 1.0
    f, g = clenshaw(SICI_F, t) / far, clenshaw(SICI_G, t) / far / far
    sine, cosine = lax.sin(far), lax.cos(far)
    infinite = size == math.inf
    si = first_of(
        size == 0.0, x, infinite, 0.5 * math.pi, small, near * horner(_SINE_INTEGRAL, z),
        0.5 * math.pi - f * cosine - g * sine,
    )  # fmt: skip
    ci = first_of(
        size == 0.0, -math.inf, x == -math.inf, math.nan, infinite, 0.0,
        small, _EULER + lax.log(near) + z * horner(_COSINE_INTEGRAL, z), f * sine - g * cosine,
    )  # fmt: skip
    nan = lax.full_like(x, math.nan)
    return lax.select(x != x, nan, lax.select(x < 0.0, -si, si)), lax.select(x != x, nan, ci)


_si: ElementwiseFunction = ElementwiseFunction(
    "sici_s",
    lambda x: _sici_parts(x)[0],
    [lambda y, x: lax.select(x == 0.0, lax.full_like(x, 1.0), lax.sin(x) / x)],
    shown="sici",
)
_ci: ElementwiseFunction = ElementwiseFunction(
    "sici_c", lambda x: _sici_parts(x)[1], [lambda y, x: lax.cos(x) / x], shown="sici"
)


@compound()
def sici(x: ArrayLike) -> tuple[Value, Value]:
    """(Si, Ci): the sine and the cosine integral. For x < 0, Ci is Ci(|x|).

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> si, ci = special.sici(jnp.array([1.0, 1000.0]))
    >>> si.round(3), ci.round(3)
    (Array([0.946, 1.57 ], dtype=float32), Array([0.337, 0.001], dtype=float32))
    """
    (value,) = real("sici", x)
    return strong(_si(value)), strong(_ci(value))


# ---- the dilogarithm


# Li2(1 - exp(-u)) = u - u**2 / 4 + sum of B(2 k) / (2 k + 1)! u**(2 k + 1)
_DEBYE = [1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 5.0 / 66 / 39916800, -691.0 / 2730 / 6227020800,
          7.0 / 6 / 1307674368000, -3617.0 / 510 / 355687428096000, 43867.0 / 798 / 121645100408832000]  # fmt: skip


def _spence_near(u: Any) -> Any:
    z = u * u
    return u - 0.25 * z + u * z * horner(_DEBYE, z)


def _spence_meaning(x: Any) -> Any:
    """By a series in log(x) for x between 1/2 and 2; reflection and inversion lead there (DLMF 25.12.4 and 6)."""
    large = x > 2.0
    place = lax.select(large, 1.0 / x, x)
    small = (place < 0.5) & (place > 0.0)
    logarithm = lax.log(lax.select(place > 0.0, place, lax.full_like(x, 1.0)))
    nearby = lax.select(small, lax.log1p(-lax.select(small, place, lax.full_like(x, 0.25))), logarithm)
    value = _spence_near(-nearby)
    value = lax.select(small, math.pi**2 / 6 - logarithm * nearby - value, value)
    value = lax.select(large, -0.5 * logarithm * logarithm - value, value)
    return first_of((x != x) | (x < 0.0), math.nan, x == 0.0, math.pi**2 / 6, x == math.inf, -math.inf, value)


def _spence_slope(y: Any, x: Any) -> Any:
    one = x == 1.0
    return lax.select(one, lax.full_like(x, -1.0), _log_quotient(lax.select(one, lax.full_like(x, 2.0), x)))


def _log_quotient(x: Any) -> Any:
    return lax.log(x) / (1.0 - x)


_spence: ElementwiseFunction = ElementwiseFunction("spence", _spence_meaning, [_spence_slope])


@compound()
def spence(x: ArrayLike) -> Value:
    """The integral of log(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x. NaN for x < 0; all real dtypes, where JAX
    takes float32 and float64.

    >>> special.spence(jnp.array([0.0, 2.0])).round(3)
    Array([ 1.645, -0.822], dtype=float32)
    """
    return strong(_spence(*real("spence", x)))
