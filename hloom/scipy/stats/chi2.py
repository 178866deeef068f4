"""`hloom.scipy.stats.chi2`: the chi-squared distribution with df degrees of freedom."""

from __future__ import annotations

import math

from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammainc, gammaincc
from .families import Continuous, derived
from .log_densities import gamma_log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "chi2",
    low=0.0,
    valid=lambda df: df > 0,
    log_density=lambda y, df: gamma_log_density(0.5 * y, 0.5 * df) - math.log(2),
    cdf_formula=lambda y, df: gammainc(0.5 * df, 0.5 * y),
    sf_formula=lambda y, df: gammaincc(0.5 * df, 0.5 * y),
)


@compound()
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the chi-squared distribution with df degrees of freedom at x; -inf outside of its
    support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.chi2.logpdf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([  -inf, -1.419, -2.226], dtype=float32)
    """
    return _family.logpdf(x, df, loc, scale)


pdf = derived(logpdf, "pdf", "[0.   , 0.242, 0.108]")
cdf = derived(logpdf, "cdf", "[0.   , 0.199, 0.739]")
logcdf = derived(logpdf, "logcdf", "[  -inf, -1.616, -0.303]")
sf = derived(logpdf, "sf", "[1.   , 0.801, 0.261]")
logsf = derived(logpdf, "logsf", "[ 0.   , -0.222, -1.341]")


_publish(__name__)
