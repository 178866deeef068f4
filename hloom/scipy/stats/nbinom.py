"""`hloom.scipy.stats.nbinom`: the failures before n successes."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Discrete, derived
from .log_densities import beta_log_density

__all__ = ["logpmf", "pmf"]


_family = Discrete(
    "nbinom",
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    log_mass=lambda k, n, p: beta_log_density(p, n, k + 1) + jnp.log(p / (k + n)),
)


@compound()
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Value:
    """The logarithm of the probability of k: the failures before n successes, each with probability p; -inf unless k -
    loc is an integer of the support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.nbinom.logpmf(jnp.array([0, 1, 2]), 2, 0.6).round(3)
    Array([-1.022, -1.245, -1.756], dtype=float32)
    """
    return _family.logpmf(k, n, p, loc)


pmf = derived(logpmf, "pmf", "[0.36 , 0.288, 0.173]")


_publish(__name__)
