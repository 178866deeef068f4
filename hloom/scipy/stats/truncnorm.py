"""`hloom.scipy.stats.truncnorm`: the normal distribution cut off at a and b, before location and scale."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...lax.elementwise_functions import ElementwiseFunction
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import log_ndtr, ndtr
from .families import Continuous, log_of_complement

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _log_mass_meaning(low: Any, high: Any) -> Any:
    """log(ndtr(high) - ndtr(low)), in the tail on the side of 0 in which both are small."""
    right = low > 0
    left, top = jnp.where(right, -high, low), jnp.where(right, -low, high)
    central = (left < 0) & (top > 0)
    upper = log_ndtr(jnp.where(central, 0, top))
    is_gone = upper == -math.inf  # underflow of the logarithm itself
    share = log_ndtr(jnp.where(central, -1, left)) - jnp.where(is_gone, 0, upper)
    tail = upper + log_of_complement(jnp.where((left < top) & ~is_gone, share, -1))
    return jnp.where(central, jnp.log1p(-ndtr(left) - ndtr(-top)), tail)


def _log_normal(x: Any) -> Any:
    return -0.5 * x * x - 0.5 * math.log(2 * math.pi)


_log_mass: ElementwiseFunction = ElementwiseFunction(
    "truncnorm_log_mass",
    _log_mass_meaning,
    [lambda r, low, high: -jnp.exp(_log_normal(low) - r), lambda r, low, high: jnp.exp(_log_normal(high) - r)],
)


def _inner(low: Any, high: Any) -> Any:
    """The middle of [low, high], or 1 away from the end that is finite."""
    first, last = jnp.where(low > -math.inf, low, high - 2), jnp.where(high < math.inf, high, low + 2)
    return jnp.where((low == -math.inf) & (high == math.inf), 0, 0.5 * (first + last))


def _log_share_meaning(low: Any, y: Any, high: Any) -> Any:
    """The logarithm of the share of [low, high] that lies below y; near 1 from that above."""
    total = _log_mass(low, high)
    below, above = _log_mass(low, y) - total, _log_mass(y, high) - total
    near = below > -0.1
    return jnp.where(near, jnp.log1p(-jnp.exp(jnp.where(near, above, -1))), below)


# of numbers that are large beside their differences, so all of it in float64
_log_share: ElementwiseFunction = ElementwiseFunction("truncnorm_log_share", _log_share_meaning, [None] * 3)
_log_density: ElementwiseFunction = ElementwiseFunction(
    "truncnorm_log_density", lambda y, a, b: _log_normal(y) - _log_mass(a, b), [lambda r, y, a, b: -y, None, None]
)
_family = Continuous(
    "truncnorm",
    "the normal distribution cut off at a and b, before location and scale",
    ([-2.0, 0.0, 0.5], -1.0, 1.0),
    low=lambda a, b: a,
    high=lambda a, b: b,
    inner=_inner,
    valid=lambda a, b: a < b,
    log_density=_log_density,
    logcdf_formula=lambda y, a, b: _log_share(a, y, b),
    logsf_formula=lambda y, a, b: _log_share(-b, -y, -a),
)


@compound()
@_family.documented("[  -inf, -0.537, -0.662]")
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, a, b, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.   , 0.584, 0.516]")
cdf = _family.also(logpdf, "cdf", "[0.  , 0.5 , 0.78]")
logcdf = _family.also(logpdf, "logcdf", "[  -inf, -0.693, -0.248]")
sf = _family.also(logpdf, "sf", "[1.  , 0.5 , 0.22]")
logsf = _family.also(logpdf, "logsf", "[ 0.   , -0.693, -1.516]")


_publish(__name__)
