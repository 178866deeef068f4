"""`hloom.scipy.stats.gamma`: the gamma distribution of shape a."""

from __future__ import annotations

from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import gammainc, gammaincc, gammaln, xlogy
from .families import Continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "gamma",
    low=0.0,
    valid=lambda a: a > 0,
    log_density=lambda y, a: xlogy(a - 1, y) - y - gammaln(a),
    cdf_formula=lambda y, a: gammainc(a, y),
    sf_formula=lambda y, a: gammaincc(a, y),
)


@compound()
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, a, loc, scale)


@compound()
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density."""
    return _family.pdf(x, a, loc, scale)


@compound()
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x."""
    return _family.cdf(x, a, loc, scale)


@compound()
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of cdf."""
    return _family.logcdf(x, a, loc, scale)


@compound()
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """1 - cdf, accurate where it is small."""
    return _family.sf(x, a, loc, scale)


@compound()
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of sf."""
    return _family.logsf(x, a, loc, scale)


_publish(__name__)
