"""`hloom.scipy.stats.uniform`: the uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


_family = Continuous(
    "uniform",
    "the uniform distribution on [loc, loc + scale]",
    ([-0.5, 0.25, 2.0],),
    low=0.0,
    high=1.0,
    log_density=jnp.zeros_like,
    cdf_formula=lambda y: y,
    ppf_formula=lambda q: q,
)


@compound()
@_family.documented("[-inf,   0., -inf]")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0., 1., 0.]")
cdf = _family.also(logpdf, "cdf", "[0.  , 0.25, 1.  ]")
ppf = _family.also(logpdf, "ppf", "[0.  , 0.25, 0.5 ]")


_publish(__name__)
