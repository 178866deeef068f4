"""`hloom.scipy.stats.uniform`: the uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous, derived

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


_family = Continuous(
    "uniform",
    low=0.0,
    high=1.0,
    log_density=jnp.zeros_like,
    cdf_formula=lambda y: y,
    ppf_formula=lambda q: q,
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the uniform distribution on [loc, loc + scale] at x; -inf outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.uniform.logpdf(jnp.array([-0.5, 0.25, 2.0])).round(3)
    Array([-inf,   0., -inf], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


pdf = derived(logpdf, "pdf", "[0., 1., 0.]")
cdf = derived(logpdf, "cdf", "[0.  , 0.25, 1.  ]")
ppf = derived(logpdf, "ppf", "[0.  , 0.25, 0.5 ]", "q")


_publish(__name__)
