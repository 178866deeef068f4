"""`hloom.scipy.stats.laplace`: Laplace's distribution."""

from __future__ import annotations

import math

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous, derived

__all__ = ["cdf", "logpdf", "pdf"]


_family = Continuous(
    "laplace",
    log_density=lambda y: -abs(y) - math.log(2),
    cdf_formula=lambda y: jnp.where(y > 0, 1 - 0.5 * jnp.exp(-abs(y)), 0.5 * jnp.exp(-abs(y))),
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of Laplace's distribution at x; -inf outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.laplace.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-1.693, -0.693, -2.693], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


pdf = derived(logpdf, "pdf", "[0.184, 0.5  , 0.068]")
cdf = derived(logpdf, "cdf", "[0.184, 0.5  , 0.932]")


_publish(__name__)
