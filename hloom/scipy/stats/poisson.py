"""`hloom.scipy.stats.poisson`: Poisson's distribution of mean mu."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import entr, gammaincc, gammaln, xlogy
from ..special.promoting import real
from .families import Discrete
from .log_densities import gamma_log_density

__all__ = ["cdf", "entropy", "logpmf", "pmf"]


_family = Discrete(
    "poisson",
    "Poisson's distribution of mean mu",
    ([0, 2, 4], 2.0),
    valid=lambda mu: mu >= 0,
    log_mass=lambda k, mu: gamma_log_density(mu, k + 1),
)


@compound()
@_family.documented("[-2.   , -1.307, -2.405]")
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    return _family.logpmf(k, mu, loc)


pmf = _family.also(logpmf, "pmf", "[0.135, 0.271, 0.09 ]")


@compound()
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """The probability of values up to k: Poisson's distribution of mean mu.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.poisson.cdf(jnp.array([0, 2, 4]), 2.0).round(3)
    Array([0.135, 0.677, 0.947], dtype=float32)
    """
    place, mean, start = real("poisson.cdf", k, mu, loc)
    y = place - start
    inside = (y >= 0) & (y < math.inf)
    value = gammaincc(jnp.floor(jnp.where(inside, y, 0)) + 1, mean)
    value = jnp.where(inside, value, jnp.where(y < 0, 0.0, 1.0))
    return jnp.where((y == y) & (mean >= 0), value, math.nan)


_SUMMED = 250


@compound()
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Value:
    """The entropy in nats: a sum for mu below 100, else its expansion in 1 / mu.

    >>> stats.poisson.entropy(jnp.array([1.0, 100.0])).round(3)
    Array([1.305, 3.721], dtype=float32)
    """
    mean, _ = real("poisson.entropy", mu, loc)
    small = mean < 100
    near = jnp.where(small & (mean >= 0), mean, 1)[..., None]
    k = jnp.arange(_SUMMED, dtype=mean.dtype)
    summed = entr(jnp.exp(xlogy(k, near) - gammaln(k + 1) - near)).sum(-1)
    far = jnp.where(small, 100, mean)
    tail: Any = 0
    for c in (9 / 80, 19 / 360, 1 / 24, 1 / 12):
        tail = (tail + c) / far
    expanded = 0.5 * jnp.log(2 * math.pi * math.e * far) - tail
    return jnp.where(mean >= 0, jnp.where(small, summed, expanded), math.nan)


_publish(__name__)
