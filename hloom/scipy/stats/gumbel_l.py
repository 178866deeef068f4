"""`hloom.scipy.stats.gumbel_l`: the Gumbel distribution of minima."""

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
    "gumbel_l",
    "the Gumbel distribution of minima",
    ([-2.0, 0.0, 1.0],),
    log_density=lambda y: y - jnp.exp(y),
    cdf_formula=lambda y: complement_of_exp(-jnp.exp(y)),
    logcdf_formula=lambda y: log_of_complement(-jnp.exp(y)),
    logsf_formula=lambda y: -jnp.exp(y),
    ppf_formula=lambda q: jnp.log(-jnp.log1p(-q)),
)


@compound()
@_family.documented("[-2.135, -1.   , -1.718]")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.118, 0.368, 0.179]")
cdf = _family.also(logpdf, "cdf", "[0.127, 0.632, 0.934]")
logcdf = _family.also(logpdf, "logcdf", "[-2.067, -0.459, -0.068]")
sf = _family.also(logpdf, "sf", "[0.873, 0.368, 0.066]")
logsf = _family.also(logpdf, "logsf", "[-0.135, -1.   , -2.718]")
ppf = _family.also(logpdf, "ppf", "[  -inf, -1.246, -0.367]", "p")


_publish(__name__)
