"""`hloom.scipy.stats.pareto`: Pareto's distribution of shape b."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from .families import Continuous, log_of_complement

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


_family = Continuous(
    "pareto",
    low=1.0,
    inner=2.0,
    valid=lambda b: b > 0,
    log_density=lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y),
    cdf_formula=lambda y, b: -jnp.expm1(-b * jnp.log(y)),
    logcdf_formula=lambda y, b: log_of_complement(-b * jnp.log(y)),
    logsf_formula=lambda y, b: -b * jnp.log(y),
    ppf_formula=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)


@compound()
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, b, loc, scale)


@compound()
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density."""
    return _family.pdf(x, b, loc, scale)


@compound()
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x."""
    return _family.cdf(x, b, loc, scale)


@compound()
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of cdf."""
    return _family.logcdf(x, b, loc, scale)


@compound()
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """1 - cdf, accurate where it is small."""
    return _family.sf(x, b, loc, scale)


@compound()
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of sf."""
    return _family.logsf(x, b, loc, scale)


@compound()
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The inverse of cdf; NaN outside of [0, 1]."""
    return _family.ppf(q, b, loc, scale)


_publish(__name__)
