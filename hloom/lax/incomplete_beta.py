"""The incomplete beta function. Source of names and arguments: jax.lax."""

from __future__ import annotations

import math
from typing import Any

from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from .elementwise import reduce_precision
from .elementwise_functions import (
    ElementwiseFunction,
    complement_of_exp,
    first_of,
    log1p_minus,
    repeat_while,
    scalar_value,
)
from .error_functions import erfc_meaning
from .gamma_functions import digamma, digamma_positive, log_gamma_one_plus, stirling_error
from .incomplete_gamma import inside
from .instructions import abs, exp, log, log1p, select, sqrt
from .movement import full_like

_EPSILON = 2.0**-53
_LIMIT = 100_000


_HUGE = 1e10
"""If a and b are both larger, two terms of the uniform expansion are right to all digits."""


def _exact_product(x: Any, y: Any) -> tuple[Any, Any]:
    """x y, rounded, and the rounding error (Dekker): the products of halves are exact."""
    product = x * y
    x_high, y_high = reduce_precision(x, 11, 25), reduce_precision(y, 11, 25)
    x_low, y_low = x - x_high, y - y_high
    error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, select(abs(product) < 1e300, error, full_like(error, 0.0))


def _difference(a: Any, b: Any, x: Any) -> Any:
    """(a + b) x - a = x b - (1 - x) a, without the rounding errors that dominate where x is close to a / (a + b)."""
    y = 1.0 - x
    lost = (1.0 - y) - x
    first, first_error = _exact_product(x, b)
    second, second_error = _exact_product(y, a)
    return (first - second) + ((first_error - second_error) - lost * a)


def _log_of_share(x: Any, a: Any, b: Any) -> Any:
    """log(x (a + b) / a); where b / a overflows, twice the logarithm of the root."""
    ratio = b / a
    is_large = ratio > 1e300
    near = x + x * select(is_large, full_like(ratio, 1.0), ratio)
    root = sqrt(x) * sqrt(b) / sqrt(a)
    logarithm = log(select(is_large, root, near))
    return select(is_large, 2.0 * logarithm, logarithm)


def _exponent(a: Any, b: Any, x: Any, difference: Any) -> Any:
    """a log(x / p) + b log((1 - x) / (1 - p)) with p = a / (a + b), which is 0 or less.

    With u = (x - p) / p and v = (p - x) / (1 - p) it is a log(1 + u) + b log(1 + v), in which a u and b v cancel.
    """
    y = 1.0 - x
    u, v = difference / a, -difference / b
    small_u, small_v = abs(u) < 0.5, abs(v) < 0.5
    near = a * log1p_minus(u) + b * log1p_minus(v)
    log_u = select(small_u, log1p(u), _log_of_share(x, a, b))
    log_v = select(small_v, log1p(v), _log_of_share(y, b, a))
    return select(small_u & small_v, near, a * log_u + b * log_v)


def log_of_beta_ratio(a: Any, b: Any, x: Any) -> Any:
    """log of x**a (1 - x)**b over its maximum, the value at x = a / (a + b)."""
    return _exponent(a, b, x, _difference(a, b, x))


def _front(a: Any, b: Any, x: Any) -> Any:
    """x**a (1 - x)**b / B(a, b), without cancellation between large exponents: the remainder of Stirling's formula for
    B is added (Loader 2000)."""
    exponent = log_of_beta_ratio(a, b, x)
    errors = stirling_error(a + b) - stirling_error(a) - stirling_error(b)
    scale = sqrt(a * (b / (a + b)) / (2.0 * math.pi))
    return scale * exp(exponent + errors)


def _fraction(a: Any, b: Any, x: Any, excess: Any, active: Any) -> Any:
    """The continued fraction 1 / (b1 + a2 / (b2 + ...)) of I B(a, b) / (x**a (1 - x)**b), by Lentz's method.

    Its terms are positive up to n = b, so that nothing cancels. `excess` is a - (a + b) x. Source: DiDonato and Morris,
    TOMS algorithm 708 (1992), equation 9: the even part of DLMF 8.17.22.
    """

    def going(state: Any) -> Any:
        return active & (abs(state[4] - 1.0) > 2 * _EPSILON)

    def step(state: Any) -> Any:
        n, total, d, e, _ = state
        before, after = a + (2.0 * n - 1.0), a + (2.0 * n + 1.0)
        share = n * (b - n) * x / before
        up = (a + (n - 1.0)) * (a + b + (n - 1.0)) * share * (x / before)
        down = n + share + (a + n) / after * (excess + 1.0 + n * (2.0 - x))
        new_d, new_e = 1.0 / (down + up * d), 1.0 / (down + up * e)
        delta = new_d / new_e
        return n + 1.0, total * delta, new_d, new_e, delta

    first = (a + 1.0) / (a * (excess + 1.0))
    start = (scalar_value(1.0), first, first, full_like(a, 0.0), full_like(a, 2.0))
    return repeat_while(going, step, start, _LIMIT, 4)[1]


def _uniform(a: Any, b: Any, x: Any) -> Any:
    """I(a, b, x) for huge a and b: an error function of the distance of x from p = a / (a + b), and a correction.

    With N = a + b and N eta**2 / 2 = a log(p / x) + b log((1 - p) / (1 - x)) it is erfc(-eta sqrt(N / 2)) / 2
    + exp(-N eta**2 / 2) / sqrt(2 pi N) (1 / eta - sqrt(p (1 - p)) / (x - p)). Source: DLMF 8.18.9 to 8.18.11.
    """
    difference = _difference(a, b, x)
    size = a + b
    p, q = 1.0 / (1.0 + b / a), 1.0 / (1.0 + a / b)
    spread = sqrt(p) * sqrt(q)
    line = difference / size / spread  # eta, but for terms of its square
    is_close = abs(line) < 1e-8
    at_p = (q - p) / (3.0 * spread)
    exponent = -_exponent(a, b, x, difference)
    root = sqrt(select(is_close | (exponent <= 0.0), full_like(size, 1.0), exponent))
    half = sqrt(0.5 * size)
    scaled = select(is_close, line * (1.0 - line * at_p) * half, select(line < 0.0, -root, root))
    one = full_like(line, 1.0)
    apart, line_apart = select(is_close, one, scaled / half), select(is_close, one, line)
    shift = select(is_close, at_p, 1.0 / apart - 1.0 / line_apart)
    return 0.5 * erfc_meaning(-scaled) + exp(-scaled * scaled) / sqrt(2.0 * math.pi * size) * shift


_NODES = 0.5 - math.sqrt(3) / 6, 0.5 + math.sqrt(3) / 6
"""Of Gauss's quadrature on [0, 1], with equal weights."""


def _log_gamma_rise(a: Any, b: Any) -> Any:
    """log(Gamma(a + b) / Gamma(a)), with an error that is small beside b: by Stirling's formula, or, where the two
    values are near to each other, as the integral of digamma."""
    errors = stirling_error(a + b) - stirling_error(a)
    far = (a - 0.5) * log1p(b / a) + b * log(a + b) - b + errors
    first, second = (digamma_positive(a + node * b) for node in _NODES)
    return select(b < 0.002 * a, 0.5 * b * (first + second), far)


def _small_complement(a: Any, b: Any, y: Any, active: Any) -> Any:
    """I(a, b, 1 - y) for b <= 1 and y < 0.1, where 1 - I(b, a, y) would cancel.

    I(b, a, y) is y**b Gamma(a + b) / (Gamma(a) Gamma(b + 1)) (1 + b s), with s the sum over n > 0 of
    (1 - a)_n y**n / (n! (b + n)) (DLMF 8.17.8). The logarithm of each factor is small, and so is that of the product.
    """

    def factors(state: Any) -> Any:
        rise = _log_gamma_rise(select(active, a, full_like(a, 1.0)), b)
        return state[0] + 1.0, b * log(y) + rise - log_gamma_one_plus(b)

    def going(state: Any) -> Any:
        return active & (abs(state[1]) > 0.125 * _EPSILON * abs(state[2]))

    def step(state: Any) -> Any:
        n, term, total = state
        n = n + 1.0
        term = term * (n - a) * y / n
        return n, term, total + term / (b + n)

    zero = full_like(a, 0.0)
    logarithm = repeat_while(lambda state: active, factors, (scalar_value(0.0), zero), 1, 1)[1]
    total = repeat_while(going, step, (scalar_value(0.0), full_like(a, 1.0), zero), _LIMIT, 4)[2]
    return complement_of_exp(logarithm + log1p(select(active, b * total, zero)))


def _regular(a: Any, b: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Where all three are inside of their ranges; and all three, harmless in other places."""
    regular = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    return regular, inside(a), inside(b), select((x > 0.0) & (x < 1.0), x, full_like(x, 0.5))


def _meaning(a: Any, b: Any, x: Any) -> Any:
    """I(a, b, x), or 1 - I(b, a, 1 - x) where that converges faster."""
    regular, p, q, u = _regular(a, b, x)
    # 1 - I would cancel for a small b, where the fraction of I itself converges well enough below 0.99.
    swapped = (u > (p + 1.0) / (p + q + 2.0)) & ((q > 0.7) | (u > 0.99))
    first, second, t = select(swapped, q, p), select(swapped, p, q), select(swapped, 1.0 - u, u)
    difference = _difference(p, q, u)
    excess = select(swapped, difference, -difference)
    small = swapped & (q <= 1.0) & (u > 0.9)
    huge = (p > _HUGE) & (q > _HUGE)
    front = _front(p, q, u)
    active = regular & ~small & ~huge & (front > 0.0)
    part = select(active, front * _fraction(first, second, t, excess, active), full_like(front, 0.0))
    part = select(part > 1.0, full_like(part, 1.0), part)
    inner = first_of(huge, _uniform(p, q, u), small, _small_complement(p, q, t, small), swapped, 1.0 - part, part)
    wrong = (a != a) | (b != b) | (x != x) | (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0)
    none = ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    at_zero, at_one = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    nowhere = wrong | none
    return first_of(nowhere, math.nan, x == 0.0, 0.0, x == 1.0, 1.0, at_zero, 1.0, at_one, 0.0, inner)


def _density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / B(a, b)"""
    regular, p, q, u = _regular(a, b, x)
    inner = _front(p, q, u) / (u * (1.0 - u))
    wrong = (a != a) | (b != b) | (x != x) | (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0)
    at_zero = first_of(a < 1.0, math.inf, a == 1.0, b, full_like(a, 0.0))
    at_one = first_of(b < 1.0, math.inf, b == 1.0, a, full_like(a, 0.0))
    return first_of(wrong, math.nan, x == 0.0, at_zero, x == 1.0, at_one, regular, inner, full_like(a, 0.0))


_density_function: ElementwiseFunction = ElementwiseFunction(
    "beta_density",
    _density,
    [
        lambda y, a, b, x: y * (log(x) - digamma(a) + digamma(a + b)),
        lambda y, a, b, x: y * (log1p(-x) - digamma(b) + digamma(a + b)),
        lambda y, a, b, x: y * ((a - 1.0) / x - (b - 1.0) / (1.0 - x)),
    ],
)
_betainc: ElementwiseFunction = ElementwiseFunction(
    "regularized_incomplete_beta",
    _meaning,
    [None, None, lambda y, a, b, x: _density_function(a, b, x)],
    shown="betainc",
)


@compound()
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """The regularised incomplete beta function I(x; a, b); NaN for x outside of [0, 1] and for negative a or b.

    It has derivatives with respect to all operands; JAX has that with respect to x only.

    Element by element, of floating-point arrays of one dtype; a scalar, or a size of 1, meets any size.

    >>> jnp.round(lax.betainc(2.0, 2.0, jnp.array([0.0, 0.25, 1.0])), 3)
    Array([0.   , 0.156, 1.   ], dtype=float32)
    """
    return _betainc(a, b, x)
