"""`hloom.scipy.stats.norm`: the normal distribution."""

from __future__ import annotations

import math

from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import log_ndtr, ndtr, ndtri
from .families import Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


_family = Continuous(
    "norm",
    log_density=lambda y: -0.5 * y * y - 0.5 * math.log(2 * math.pi),
    cdf_formula=ndtr,
    sf_formula=lambda y: ndtr(-y),
    logcdf_formula=log_ndtr,
    logsf_formula=lambda y: log_ndtr(-y),
    ppf_formula=ndtri,
    isf_formula=lambda q: -ndtri(q),
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, loc, scale)


@compound()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density."""
    return _family.pdf(x, loc, scale)


@compound()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x."""
    return _family.cdf(x, loc, scale)


@compound()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of cdf."""
    return _family.logcdf(x, loc, scale)


@compound()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """1 - cdf, accurate where it is small."""
    return _family.sf(x, loc, scale)


@compound()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of sf."""
    return _family.logsf(x, loc, scale)


@compound()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The inverse of cdf; NaN outside of [0, 1]."""
    return _family.ppf(q, loc, scale)


@compound()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The inverse of sf; NaN outside of [0, 1]."""
    return _family.isf(q, loc, scale)


_publish(__name__)
