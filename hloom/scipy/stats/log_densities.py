"""The logarithms of the gamma and the beta density, which other distributions consist of too.

They are computed in float64 for all types of operands, and so are their derivatives: for large parameters they are
small differences of large terms, which float32 would round away. For parameters above 8.5 the large terms are taken
together before they are computed. Source of the form: Loader, "Fast and accurate computation of binomial probabilities"
(2000).
"""

from __future__ import annotations

import math
from typing import Any

from ... import lax
from ...lax.elementwise_functions import ElementwiseFunction, first_of
from ...lax.gamma_functions import (
    digamma_difference,
    digamma_difference_of_positive,
    digamma_minus_log,
    digamma_positive,
    log_gamma_positive,
    stirling_tail,
)
from ...lax.incomplete_beta import log_of_beta_ratio
from ..special.gamma_functions import log_beta_of_positive

_FAR = 8.5
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _times_log(factor: Any, x: Any) -> Any:
    """factor log(x), and 0 where the factor is 0."""
    return lax.select(factor == 0.0, lax.full_like(x, 0.0), factor * lax.log(x))


def _times_log1p(factor: Any, x: Any) -> Any:
    return lax.select(factor == 0.0, lax.full_like(x, 0.0), factor * lax.log1p(x))


# ---- y**(a - 1) exp(-y) / gamma(a)


def _log_ratio(y: Any, a: Any) -> Any:
    """log(y / a), where y / a is near 1 from the difference."""
    u = (y - a) / a
    near = lax.abs(u) < 0.5
    return lax.select(near, lax.log1p(lax.select(near, u, lax.full_like(u, 0.0))), lax.log(y / a))


def _gamma_meaning(y: Any, a: Any) -> Any:
    large = a >= _FAR
    small = lax.select(large, lax.full_like(a, 1.0), a)
    low = _times_log(small - 1.0, y) - y - log_gamma_positive(small)
    far = lax.select(large & (a < math.inf), a, lax.full_like(a, _FAR))
    ratio = _log_ratio(y, far)
    inner = (far * ratio - (y - far)) - ratio - 0.5 * lax.log(far) - _HALF_LOG_TWO_PI - stirling_tail(far)
    high = first_of((y == 0.0) | (a == math.inf), -math.inf, inner)
    return lax.select(large, high, low)


def _gamma_by_y(r: Any, y: Any, a: Any) -> Any:
    return lax.select(a == 1.0, lax.full_like(y, -1.0), ((a - 1.0) - y) / y)


def _gamma_by_a_meaning(y: Any, a: Any) -> Any:
    """log(y) - digamma(a)"""
    large = a >= _FAR
    small, far = lax.select(large, lax.full_like(a, 1.0), a), lax.select(large, a, lax.full_like(a, _FAR))
    return lax.select(large, _log_ratio(y, far) - digamma_minus_log(far), lax.log(y) - digamma_positive(small))


_gamma_by_a: ElementwiseFunction = ElementwiseFunction(
    "gamma_log_density_by_a", _gamma_by_a_meaning, [lambda r, y, a: 1.0 / y, lambda r, y, a: -lax.polygamma(1.0, a)]
)
gamma_log_density: ElementwiseFunction = ElementwiseFunction(
    "gamma_log_density", _gamma_meaning, [_gamma_by_y, lambda r, y, a: _gamma_by_a(y, a)]
)
"""gamma_log_density(y, a), for y >= 0 and a > 0"""


# ---- y**(a - 1) (1 - y)**(b - 1) / beta(a, b)


def _beta_meaning(y: Any, a: Any, b: Any) -> Any:
    large = (a >= _FAR) & (b >= _FAR)
    one = lax.full_like(y, 1.0)
    p, q = lax.select(large, one, a), lax.select(large, one, b)
    low = _times_log(p - 1.0, y) + _times_log1p(q - 1.0, -y) - log_beta_of_positive(p, q)
    finite = large & (a < math.inf) & (b < math.inf)
    in_middle = (y > 0.0) & (y < 1.0)
    x = lax.select(in_middle, y, lax.full_like(y, 0.5))
    p, q = (lax.select(finite, v, lax.full_like(v, 10.0)) for v in (a, b))
    errors = stirling_tail(p + q) - stirling_tail(p) - stirling_tail(q)
    scale = 0.5 * (lax.log(p) - lax.log1p(p / q)) - _HALF_LOG_TWO_PI  # log(p q / (p + q)) / 2
    high = log_of_beta_ratio(p, q, x) + (scale + errors) - lax.log(x) - lax.log1p(-x)
    return first_of(finite & in_middle, high, large, -math.inf, low)


def _over(factor: Any, x: Any) -> Any:
    """factor / x, and 0 where the factor is 0."""
    return lax.select(factor == 0.0, lax.full_like(x, 0.0), factor / x)


def _beta_by_y_meaning(y: Any, a: Any, b: Any) -> Any:
    return _over(a - 1.0, y) - _over(b - 1.0, 1.0 - y)


def _beta_by_a_meaning(y: Any, a: Any, b: Any) -> Any:
    """log(y) - digamma(a) + digamma(a + b)"""
    return lax.log(y) - digamma_difference_of_positive(a, b)


def _beta_by_b_meaning(y: Any, a: Any, b: Any) -> Any:
    return lax.log1p(-y) - digamma_difference_of_positive(b, a)


_beta_by_y: ElementwiseFunction = ElementwiseFunction("beta_log_density_by_y", _beta_by_y_meaning, [None] * 3)
_beta_by_a: ElementwiseFunction = ElementwiseFunction(
    "beta_log_density_by_a",
    _beta_by_a_meaning,
    [
        lambda r, y, a, b: 1.0 / y,
        lambda r, y, a, b: -digamma_difference.partial(0)(r, a, b),
        lambda r, y, a, b: -digamma_difference.partial(1)(r, a, b),
    ],
)
_beta_by_b: ElementwiseFunction = ElementwiseFunction(
    "beta_log_density_by_b",
    _beta_by_b_meaning,
    [
        lambda r, y, a, b: -1.0 / (1.0 - y),
        lambda r, y, a, b: -digamma_difference.partial(1)(r, b, a),
        lambda r, y, a, b: -digamma_difference.partial(0)(r, b, a),
    ],
)
beta_log_density: ElementwiseFunction = ElementwiseFunction(
    "beta_log_density",
    _beta_meaning,
    [
        lambda r, y, a, b: _beta_by_y(y, a, b),
        lambda r, y, a, b: _beta_by_a(y, a, b),
        lambda r, y, a, b: _beta_by_b(y, a, b),
    ],
)
"""beta_log_density(y, a, b), for y in [0, 1] and positive a and b"""
