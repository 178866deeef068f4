"""The incomplete beta function. Source of names and arguments: jax.lax."""

from __future__ import annotations

import math
from typing import Any

from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.operators import ArrayLike
from .elementwise_functions import ElementwiseFunction, first_of, log1p_minus, repeat_while, scalar_value
from .gamma_functions import digamma, digamma_positive, log_gamma_one_plus, stirling_error
from .instructions import abs, exp, expm1, log, log1p, select, sqrt
from .movement import full_like

__all__ = ["betainc"]

_EPSILON = 2.0**-53
_LIMIT = 100_000


def _front(a: Any, b: Any, x: Any) -> Any:
    """x**a (1 - x)**b / B(a, b), without cancellation between large exponents.

    With p = a / (a + b), u = (x - p) / p and v = (p - x) / (1 - p), the terms a u and b v cancel in
    a log(1 + u) + b log(1 + v); what Stirling's formula lacks in B is added (Loader 2000).
    """
    y = 1.0 - x
    difference = x * b - y * a
    u, v = difference / a, -difference / b
    near = a * log1p_minus(u) + b * log1p_minus(v)
    far = a * log(x + x * (b / a)) + b * log(y + y * (a / b))
    exponent = select((abs(u) < 0.5) & (abs(v) < 0.5), near, far)
    errors = stirling_error(a + b) - stirling_error(a) - stirling_error(b)
    scale = sqrt((a / (a + b)) * b / (2.0 * math.pi))
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
    return -expm1(logarithm + log1p(select(active, b * total, zero)))


def _meaning(a: Any, b: Any, x: Any) -> Any:
    """I(a, b, x), or 1 - I(b, a, 1 - x) where that converges faster."""
    regular = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    p, q = (select(regular, v, full_like(v, 1.0)) for v in (a, b))
    u = select(regular, x, full_like(x, 0.5))
    # 1 - I would cancel for a small b, where the fraction of I itself converges well enough below 0.99.
    swapped = (u > (p + 1.0) / (p + q + 2.0)) & ((q > 0.7) | (u > 0.99))
    first, second, t = select(swapped, q, p), select(swapped, p, q), select(swapped, 1.0 - u, u)
    excess = first * (1.0 - t) - second * t
    small = swapped & (q <= 1.0) & (u > 0.9)
    part = _front(p, q, u) * _fraction(first, second, t, excess, regular & ~small)
    inner = first_of(small, _small_complement(p, q, t, small), swapped, 1.0 - part, part)
    wrong = (a != a) | (b != b) | (x != x) | (a < 0.0) | (b < 0.0) | (x < 0.0) | (x > 1.0)
    none = ((a == 0.0) & (b == 0.0)) | ((a == math.inf) & (b == math.inf))
    at_zero, at_one = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    return first_of(
        wrong | none,
        math.nan,
        x == 0.0,
        0.0,
        x == 1.0,
        1.0,
        at_zero,
        1.0,
        at_one,
        0.0,
        inner,
    )


def _density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / B(a, b)"""
    regular = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < math.inf) & (b < math.inf)
    p, q = (select(regular, v, full_like(v, 1.0)) for v in (a, b))
    u = select(regular, x, full_like(x, 0.5))
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

    >>> from hloom import lax, numpy as jnp
    >>> jnp.round(lax.betainc(2.0, 2.0, jnp.array([0.0, 0.25, 1.0])), 3)
    Array([0.   , 0.156, 1.   ], dtype=float32)
    """
    result: Value = _betainc(a, b, x)
    return result
