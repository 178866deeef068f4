"""`hloom.scipy.stats.gamma`: the gamma distribution of shape a."""

from __future__ import annotations

from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammainc, gammaincc
from .families import Continuous
from .log_densities import gamma_log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "gamma",
    "the gamma distribution of shape a",
    ([-1.0, 1.0, 4.0], 2.0),
    low=0.0,
    valid=lambda a: a > 0,
    log_density=gamma_log_density,
    cdf_formula=lambda y, a: gammainc(a, y),
    sf_formula=lambda y, a: gammaincc(a, y),
)


@compound()
@_family.documented("[  -inf, -1.   , -2.614]")
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, a, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.   , 0.368, 0.073]")
cdf = _family.also(logpdf, "cdf", "[0.   , 0.264, 0.908]")
logcdf = _family.also(logpdf, "logcdf", "[  -inf, -1.331, -0.096]")
sf = _family.also(logpdf, "sf", "[1.   , 0.736, 0.092]")
logsf = _family.also(logpdf, "logsf", "[ 0.   , -0.307, -2.391]")


_publish(__name__)
