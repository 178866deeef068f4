"""`hloom.scipy.stats.beta`: the beta distribution of shapes a and b."""

from __future__ import annotations

from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import betainc, betaln, xlog1py, xlogy
from .families import Continuous

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "beta",
    low=0.0,
    high=1.0,
    valid=lambda a, b: (a > 0) & (b > 0),
    log_density=lambda y, a, b: xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b),
    cdf_formula=lambda y, a, b: betainc(a, b, y),
    sf_formula=lambda y, a, b: betainc(b, a, 1 - y),
)


@compound()
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, a, b, loc, scale)


@compound()
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density."""
    return _family.pdf(x, a, b, loc, scale)


@compound()
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x."""
    return _family.cdf(x, a, b, loc, scale)


@compound()
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of cdf."""
    return _family.logcdf(x, a, b, loc, scale)


@compound()
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """1 - cdf, accurate where it is small."""
    return _family.sf(x, a, b, loc, scale)


@compound()
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of sf."""
    return _family.logsf(x, a, b, loc, scale)


_publish(__name__)
