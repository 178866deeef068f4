"""`hloom.scipy.stats.binom`: the successes in n trials, each with probability p."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Discrete
from .log_densities import beta_log_density

__all__ = ["logpmf", "pmf"]


_family = Discrete(
    "binom",
    "the successes in n trials, each with probability p",
    ([0, 2, 5], 4, 0.25),
    high=lambda n, p: n,
    valid=lambda n, p: (n >= 0) & (p >= 0) & (p <= 1),
    log_mass=lambda k, n, p: beta_log_density(p, k + 1, n - k + 1) - jnp.log1p(n),
)


@compound()
@_family.documented("[-1.151, -1.556,   -inf]")
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    return _family.logpmf(k, n, p, loc)


pmf = _family.also(logpmf, "pmf", "[0.316, 0.211, 0.   ]")


_publish(__name__)
