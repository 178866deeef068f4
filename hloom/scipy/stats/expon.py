"""`hloom.scipy.stats.expon`: the exponential distribution."""

from __future__ import annotations

from ... import numpy as jnp
from ...lax.elementwise_functions import complement_of_exp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous, log_of_complement

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


_family = Continuous(
    "expon",
    "the exponential distribution, above loc and of mean loc + scale",
    ([-1.0, 1.0, 4.0],),
    low=0.0,
    log_density=lambda y: -y,
    cdf_formula=lambda y: complement_of_exp(-y),
    logcdf_formula=lambda y: log_of_complement(-y),
    logsf_formula=lambda y: -y,
    ppf_formula=lambda q: -jnp.log1p(-q),
)


@compound()
@_family.documented("[-inf,  -1.,  -4.]")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.   , 0.368, 0.018]")
cdf = _family.also(logpdf, "cdf", "[0.   , 0.632, 0.982]")
logcdf = _family.also(logpdf, "logcdf", "[  -inf, -0.459, -0.018]")
sf = _family.also(logpdf, "sf", "[1.   , 0.368, 0.018]")
logsf = _family.also(logpdf, "logsf", "[ 0., -1., -4.]")
ppf = _family.also(logpdf, "ppf", "[0.   , 0.288, 0.693]")


_publish(__name__)
