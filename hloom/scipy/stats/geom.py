"""`hloom.scipy.stats.geom`: the number of the first trial that succeeds."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import xlog1py
from .families import Discrete, derived

__all__ = ["logpmf", "pmf"]


_family = Discrete(
    "geom",
    low=1.0,
    valid=lambda p: (p > 0) & (p <= 1),
    log_mass=lambda k, p: xlog1py(k - 1, -p) + jnp.log(p),
)


@compound()
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """The logarithm of the probability of k: the number of the first trial that succeeds, each with probability p; -inf
    unless k - loc is an integer of the support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.geom.logpmf(jnp.array([0, 1, 2]), 0.5).round(3)
    Array([  -inf, -0.693, -1.386], dtype=float32)
    """
    return _family.logpmf(k, p, loc)


pmf = derived(logpmf, "pmf", "[0.  , 0.5 , 0.25]")


_publish(__name__)
