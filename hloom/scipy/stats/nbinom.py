"""`hloom.scipy.stats.nbinom`: the failures before n successes."""

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
    "nbinom",
    "the failures before n successes, each with probability p",
    ([0, 1, 2], 2, 0.6),
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    log_mass=lambda k, n, p: beta_log_density(p, n, k + 1) + jnp.log(p / (k + n)),
)


@compound()
@_family.documented("[-1.022, -1.245, -1.756]")
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    return _family.logpmf(k, n, p, loc)


pmf = _family.also(logpmf, "pmf", "[0.36 , 0.288, 0.173]")


_publish(__name__)
