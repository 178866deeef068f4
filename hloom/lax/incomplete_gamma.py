"""The incomplete gamma functions, and how a gamma variate depends on its shape. Source of names and arguments: jax.lax.

With F = x**a exp(-x) / Gamma(a), the density times x, each function is computed as F times something without large
exponents, in one of three ways:

* a >= 20 and |x - a| < 0.4 a: Temme's uniform expansion (DLMF 8.12), in powers of 1 / a and of eta, where
  eta**2 / 2 = x / a - 1 - log(x / a);
* else x <= 1.1 or x <= a: the power series of P (DLMF 8.7.1);
* else: the continued fraction of Q (DLMF 8.9.2), by Lentz's method.

Series and fraction carry their derivatives with respect to a along; the expansion's derivatives are written out.
"""

from __future__ import annotations

import math
from typing import Any

from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import reinterpret_weak
from .elementwise_functions import (
    ElementwiseFunction,
    complement_of_exp,
    first_of,
    horner_with_derivative,
    log1p_minus,
    repeat_while,
    scalar_value,
)
from .error_functions import erfc_meaning
from .gamma_functions import digamma, digamma_positive, log_gamma_one_plus, stirling_error
from .instructions import abs, exp, log, log1p, select, sqrt
from .movement import full_like
from .series import horner
from .special_tables import TEMME

_EPSILON = 2.0**-54
_LIMIT = 100_000
_LARGE = 20.0
_WIDTH = 0.4


def inside(x: Any) -> Any:
    """x where it is between 0 and infinity, else 1.

    Each operand by itself: the many terms that depend on a parameter alone are computed once where it is one number."""
    return select((x > 0.0) & (x < math.inf), x, full_like(x, 1.0))


class _Regions:
    """The method for each element, and operands for each method that are harmless for other elements."""

    def __init__(self, a: Any, x: Any) -> None:
        self.a, self.x = inside(a), inside(x)
        self.expanded = (self.a >= _LARGE) & (abs(self.x - self.a) < _WIDTH * self.a)
        self.in_series = ~self.expanded & ((self.x <= 1.1) | (self.x <= self.a))
        self.in_fraction = ~(self.expanded | self.in_series)

    def result(self, expanded: Any, series: Any, fraction: Any) -> Any:
        return first_of(self.expanded, expanded, self.in_series, series, fraction)


# ---- the three ways


def _series(r: _Regions, derivative: bool) -> tuple[Any, Any]:
    """s = a P / F = 1 + x / (a + 1) + x**2 / ((a + 1) (a + 2)) + ..., and its derivative with respect to a."""
    a = r.a
    x = select(r.in_series, r.x, full_like(r.x, 0.0))
    one, zero = full_like(a, 1.0), full_like(a, 0.0)

    def active(state: Any) -> Any:
        _, term, total, *rest = state
        going = term > _EPSILON * total
        return going | (abs(rest[0]) > _EPSILON * abs(rest[1])) if derivative else going

    def step(state: Any) -> Any:
        n, term, total, *rest = state
        factor = 1.0 / (a + n)
        if derivative:
            moved = (rest[0] * x - term * (x * factor)) * factor
            rest = [moved, rest[1] + moved]
        term = term * (x * factor)
        return (n + 1.0, term, total + term, *rest)

    start = (scalar_value(1.0), select(x > 0.0, one, zero), one, *([zero, zero] if derivative else []))
    _, _, total, *rest = repeat_while(active, step, start, _LIMIT, 4)
    return total, rest[1] if derivative else None


def _fraction(r: _Regions, derivative: bool) -> tuple[Any, Any]:
    """c = Q / F = 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), and the derivative of log c with respect to a."""
    a = select(r.in_fraction, r.a, full_like(r.a, 1.0))
    x = select(r.in_fraction, r.x, full_like(r.x, 2.0))
    zero = full_like(a, 0.0)
    first = x + 1.0 - a
    # the step; the fraction; 1 / the ratio of successive denominators, and of numerators; the last factor
    start: tuple[Any, ...] = (scalar_value(1.0), 1.0 / first, 1.0 / first, zero, full_like(a, 2.0))
    if derivative:
        start = (*start, 1.0 / first, 1.0 / first, zero, full_like(a, 1.0))

    def active(state: Any) -> Any:
        going = r.in_fraction & (abs(state[4] - 1.0) > 2 * _EPSILON)
        return going | (r.in_fraction & (abs(state[8]) > 2 * _EPSILON * abs(state[5]))) if derivative else going

    def step(state: Any) -> Any:
        n, total, d, e, _, *rest = state
        up = n * (a - n)
        b = first + 2.0 * n
        new_d = 1.0 / (b + up * d)
        new_e = 1.0 / (b + up * e)
        delta = new_d / new_e
        if derivative:  # of log fraction, log d, log e
            log_total, log_d, log_e, _ = rest
            slope_d = -new_d * (n * d + up * d * log_d - 1.0)
            slope_e = -new_e * (n * e + up * e * log_e - 1.0)
            moved = slope_d - slope_e
            rest = [log_total + moved, slope_d, slope_e, moved]
        return (n + 1.0, total * delta, new_d, new_e, delta, *rest)

    state = repeat_while(active, step, start, _LIMIT, 4)
    return state[1], state[5] if derivative else None


class _Expansion:
    """Temme's expansion: P = erfc(-z) / 2 - E S and Q = erfc(z) / 2 + E S, where z = eta sqrt(a / 2),
    E = exp(-z**2) / sqrt(2 pi a), and S = sum(c_k(eta) a**-k)."""

    def __init__(self, r: _Regions, derivative: bool) -> None:
        self.a = a = select(r.expanded, r.a, full_like(r.a, _LARGE))
        x = select(r.expanded, r.x, full_like(r.x, _LARGE))
        mu = (x - a) / a
        deviance = -log1p_minus(mu)
        ratio = select(mu == 0.0, full_like(mu, 1.0), mu)
        self.slope = sqrt(select(mu == 0.0, full_like(mu, 1.0), 2.0 * deviance / (ratio * ratio)))  # eta / mu
        eta = mu * self.slope
        self.exponent = a * deviance
        self.z = eta * sqrt(0.5 * a)
        rows = [horner_with_derivative(row, eta) if derivative else (horner(row, eta), None) for row in TEMME]
        self.sum = _in_powers([row[0] for row in rows], 1.0 / a)
        if derivative:
            log_ratio = log1p(mu)
            over_eta = select(mu == 0.0, full_like(mu, 1.0), log_ratio / ratio) / self.slope
            by_eta = _in_powers([row[1] for row in rows], 1.0 / a)
            by_inverse = _in_powers([k * row[0] for k, row in enumerate(rows)], 1.0 / a)
            total = by_eta / self.slope + by_inverse  # eta moves by -(mu / eta) / a, 1 / a by -1 / a**2
            self.moved = over_eta + (log_ratio - 0.5 / a) * self.sum - total / a
            """-(dP / da) sqrt(2 pi a) exp(z**2)"""

    def value(self, upper: bool) -> Any:
        rest = exp(-self.exponent) / sqrt(2.0 * math.pi * self.a) * self.sum
        return 0.5 * erfc_meaning(self.z) + rest if upper else 0.5 * erfc_meaning(-self.z) - rest


def _in_powers(coefficients: list[Any], t: Any) -> Any:
    p = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        p = p * t + c
    return p


def density_times_x_over_a(a: Any, x: Any) -> Any:
    """F / a = x**a exp(-x) / Gamma(a + 1), without cancellation.

    For a > 8 as exp(a (1 - x / a + log(x / a)) - e(a)) / sqrt(2 pi a), where e is the error of Stirling's formula
    (Loader 2000); the exponent comes from (x - a) / a, which is exact where it matters, except that x / a is not lost
    where it is small.
    """
    near = select(a < 8.0, a, full_like(a, 1.0))
    half = exp(-0.5 * x)
    low = half * exp(near * log(x) - log_gamma_one_plus(near)) * half
    low = select(half == 0.0, half, low)  # where the power overflows
    far = select(a < 8.0, full_like(a, 8.0), a)
    u = (x - far) / far
    exponent = select(u < -0.5, log(x / far) - u, log1p_minus(u))
    high = exp(far * exponent - stirling_error(far)) / sqrt(2.0 * math.pi * far)
    return select(a < 8.0, low, high)


# ---- P and Q


def _lower(a: Any, x: Any) -> Any:
    r = _Regions(a, x)
    factor = density_times_x_over_a(r.a, r.x)
    fraction = 1.0 - factor * r.a * _fraction(r, False)[0]
    inner = r.result(_Expansion(r, False).value(False), factor * _series(r, False)[0], fraction)
    return _edges(a, x, inner, 0.0, 1.0)


def _upper(a: Any, x: Any) -> Any:
    r = _Regions(a, x)
    factor = density_times_x_over_a(r.a, r.x)
    fraction = factor * r.a * _fraction(r, False)[0]
    # For small a and x, Q = 1 - x**a / Gamma(a + 1) (1 + sum(a (-x)**n / ((a + n) n!))), in which 1 cancels (DLMF
    # 8.7.1 for gamma*(a, x)). Source of the border: DiDonato and Morris, TOMS algorithm 654.
    cancels = select(r.x <= 0.5, -0.4 / log(select(r.x <= 0.5, r.x, full_like(r.x, 0.5))), 0.75 * r.x) >= r.a
    b, y = (select(r.in_series & cancels, v, full_like(v, 0.5)) for v in (r.a, r.x))
    total: Any = full_like(b, 0.0)
    for n in reversed(range(1, 22)):
        total = total * (-y / (n + 1.0)) + 1.0 / (b + float(n))
    total = -y * b * total
    power = b * log(y) - log_gamma_one_plus(b)
    small = complement_of_exp(power) - exp(power) * total
    series = select(cancels, small, 1.0 - factor * _series(r, False)[0])
    inner = r.result(_Expansion(r, False).value(True), series, fraction)
    return _edges(a, x, inner, 1.0, 0.0)


def _edges(a: Any, x: Any, inner: Any, at_zero: float, at_infinity: float) -> Any:
    """Outside of 0 < a < inf, 0 < x < inf."""
    wrong = (a != a) | (x != x) | (a < 0.0) | (x < 0.0) | ((a == 0.0) & (x == 0.0))
    both = (a == math.inf) & (x == math.inf)
    low = (x == 0.0) | (a == math.inf)
    return first_of(wrong | both, math.nan, low, at_zero, (a == 0.0) | (x == math.inf), at_infinity, inner)


# ---- derivatives with respect to a


def _lower_by_a(a: Any, x: Any) -> Any:
    r = _Regions(a, x)
    factor = density_times_x_over_a(r.a, r.x)
    expansion = _Expansion(r, True)
    expanded = -expansion.moved * exp(-expansion.exponent) / sqrt(2.0 * math.pi * expansion.a)
    series, fraction = _relative(r)
    return _edges(a, x, r.result(expanded, factor * series, factor * fraction), 0.0, 0.0)


def _variate_by_a(a: Any, x: Any) -> Any:
    """-(dP / da) x / F: by the same sums, without the factor F that may underflow."""
    r = _Regions(a, x)
    expansion = _Expansion(r, True)
    expanded = r.x / expansion.a * exp(stirling_error(expansion.a)) * expansion.moved
    series, fraction = _relative(r)
    inner = r.result(expanded, -series * r.x / r.a, -fraction * r.x / r.a)
    return first_of(x == math.inf, math.nan, _edges(a, x, inner, 0.0, math.nan))


def _relative(r: _Regions) -> tuple[Any, Any]:
    """(dP / da) a / F by the series and by the fraction."""
    log_x = log(r.x)
    total, moved = _series(r, True)
    series = (log_x - digamma_positive(1.0 + r.a)) * total + moved
    value, log_moved = _fraction(r, True)
    return series, -r.a * value * (log_x - digamma_positive(r.a) + log_moved)


def _density(a: Any, x: Any) -> Any:
    """F / x, the derivative of P with respect to x."""
    regular = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    b, y = inside(a), inside(x)
    inner = density_times_x_over_a(b, y) * (b / y)
    at_zero = first_of(a < 1.0, math.inf, a == 1.0, 1.0, full_like(a, 0.0))
    wrong = (a != a) | (x != x) | (a < 0.0) | (x < 0.0)
    return first_of(wrong, math.nan, (x == 0.0) & (a > 0.0), at_zero, regular, inner, full_like(a, 0.0))


# ---- the functions


_density_function: ElementwiseFunction = ElementwiseFunction(
    "gamma_density",
    _density,
    [
        lambda y, a, x: y * (log(x) - digamma(a)),
        lambda y, a, x: y * ((a - 1.0) / x - 1.0),
    ],
)
_igamma: ElementwiseFunction = ElementwiseFunction(
    "igamma", _lower, [lambda y, a, x: _igamma_grad_a(a, x), lambda y, a, x: _density_function(a, x)]
)
_igammac: ElementwiseFunction = ElementwiseFunction(
    "igammac", _upper, [lambda y, a, x: -_igamma_grad_a(a, x), lambda y, a, x: -_density_function(a, x)]
)
_igamma_grad_a: ElementwiseFunction = ElementwiseFunction(
    "igamma_grad_a", _lower_by_a, [None, lambda y, a, x: _density_function(a, x) * (log(x) - digamma(a))]
)
_random_gamma_grad: ElementwiseFunction = ElementwiseFunction("random_gamma_grad", _variate_by_a, [None, None])


@compound()
def igamma(a: ArrayLike, x: ArrayLike) -> Value:
    """The regularised lower incomplete gamma function P(a, x); NaN for negative operands.

    Element by element, of floating-point arrays of one dtype; a scalar, or a size of 1, meets any size.

    >>> jnp.round(lax.igamma(1.0, jnp.array([0.0, 1.0, 50.0])), 3)  # 1 - exp(-x)
    Array([0.   , 0.632, 1.   ], dtype=float32)
    """
    return _igamma(a, x)


@compound()
def igammac(a: ArrayLike, x: ArrayLike) -> Value:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), accurate where it is small.

    Element by element, of floating-point arrays of one dtype; a scalar, or a size of 1, meets any size.

    >>> jnp.round(lax.igammac(1.0, jnp.array([0.0, 1.0])), 3)  # exp(-x)
    Array([1.   , 0.368], dtype=float32)
    """
    return _igammac(a, x)


@compound()
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Value:
    """The derivative of `igamma` with respect to a.

    Element by element, of floating-point arrays of one dtype.

    >>> jnp.round(lax.igamma_grad_a(jnp.array([1.0]), jnp.array([1.0])), 3)
    Array([-0.432], dtype=float32)
    """
    return _igamma_grad_a(a, x)


@compound()
def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Value:
    """The derivative, with respect to a, of the gamma variate x with shape a.

    Element by element, of floating-point arrays of one dtype. It makes `hloom.random.gamma` differentiable.

    >>> jnp.round(lax.random_gamma_grad(jnp.array([1.0]), jnp.array([1.0])), 3)
    Array([1.174], dtype=float32)
    """
    result: Value = _random_gamma_grad(a, x)
    return reinterpret_weak(result, False)
