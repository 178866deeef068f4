"""`hloom.scipy.stats.bernoulli`: one trial that succeeds with probability p."""

from __future__ import annotations

import math

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import xlog1py, xlogy
from ..special.promoting import real
from .families import Discrete

__all__ = ["cdf", "logpmf", "pmf", "ppf"]


_family = Discrete(
    "bernoulli",
    "one trial that succeeds with probability p",
    ([0, 1, 2], 0.25),
    high=1.0,
    valid=lambda p: (p >= 0) & (p <= 1),
    log_mass=lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
)


@compound()
@_family.documented("[-0.288, -1.386,   -inf]")
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    return _family.logpmf(k, p, loc)


pmf = _family.also(logpmf, "pmf", "[0.75, 0.25, 0.  ]")


@compound()
def cdf(k: ArrayLike, p: ArrayLike) -> Value:
    """The probability of values up to k: one trial that succeeds with probability p.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.bernoulli.cdf(jnp.array([0, 1, 2]), 0.25).round(3)
    Array([0.75, 1.  , 1.  ], dtype=float32)
    """
    place, share = real("bernoulli.cdf", k, p)
    value = jnp.where(place < 0, 0, jnp.where(place < 1, 1 - share, 1))
    return jnp.where((place == place) & (share >= 0) & (share <= 1), value, math.nan)


@compound()
def ppf(q: ArrayLike, p: ArrayLike) -> Value:
    """The smallest k with a cdf of at least q; NaN for q outside of [0, 1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.bernoulli.ppf(jnp.array([0.5, 0.9]), 0.25).round(3)
    Array([0., 1.], dtype=float32)
    """
    level, share = real("bernoulli.ppf", q, p)
    valid = (level >= 0) & (level <= 1) & (share >= 0) & (share <= 1)
    return jnp.where(valid, jnp.where(level <= 1 - share, jnp.zeros_like(level), jnp.ones_like(level)), math.nan)


_publish(__name__)
