"""`hloom.scipy.stats.pareto`: Pareto's distribution of shape b."""

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
    "pareto",
    "Pareto's distribution of shape b, above loc + scale",
    ([0.5, 1.5, 4.0], 3.0),
    low=1.0,
    inner=2.0,
    valid=lambda b: b > 0,
    log_density=lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y),
    cdf_formula=lambda y, b: complement_of_exp(-b * jnp.log(y)),
    logcdf_formula=lambda y, b: log_of_complement(-b * jnp.log(y)),
    logsf_formula=lambda y, b: -b * jnp.log(y),
    ppf_formula=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)


@compound()
@_family.documented("[  -inf, -0.523, -4.447]")
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, b, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.   , 0.593, 0.012]")
cdf = _family.also(logpdf, "cdf", "[0.   , 0.704, 0.984]")
logcdf = _family.also(logpdf, "logcdf", "[  -inf, -0.351, -0.016]")
sf = _family.also(logpdf, "sf", "[1.   , 0.296, 0.016]")
logsf = _family.also(logpdf, "logsf", "[ 0.   , -1.216, -4.159]")
ppf = _family.also(logpdf, "ppf", "[1.   , 1.101, 1.26 ]")


_publish(__name__)
