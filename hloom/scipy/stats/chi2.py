"""`hloom.scipy.stats.chi2`: the chi-squared distribution with df degrees of freedom."""

from __future__ import annotations

import math

from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import gammainc, gammaincc, gammaln, xlogy
from .families import Continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "chi2",
    low=0.0,
    valid=lambda df: df > 0,
    log_density=lambda y, df: xlogy(0.5 * df - 1, 0.5 * y) - 0.5 * y - gammaln(0.5 * df) - math.log(2),
    cdf_formula=lambda y, df: gammainc(0.5 * df, 0.5 * y),
    sf_formula=lambda y, df: gammaincc(0.5 * df, 0.5 * y),
)


@compound()
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, df, loc, scale)


@compound()
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density."""
    return _family.pdf(x, df, loc, scale)


@compound()
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x."""
    return _family.cdf(x, df, loc, scale)


@compound()
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of cdf."""
    return _family.logcdf(x, df, loc, scale)


@compound()
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """1 - cdf, accurate where it is small."""
    return _family.sf(x, df, loc, scale)


@compound()
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of sf."""
    return _family.logsf(x, df, loc, scale)


_publish(__name__)
