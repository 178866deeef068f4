"""`hloom.scipy.stats.logistic`: the logistic distribution."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import expit, logit
from .families import Continuous

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


_family = Continuous(
    "logistic",
    log_density=lambda y: -abs(y) - 2 * jnp.log1p(jnp.exp(-abs(y))),
    cdf_formula=expit,
    sf_formula=lambda y: expit(-y),
    ppf_formula=logit,
    isf_formula=lambda q: -logit(q),
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
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """1 - cdf, accurate where it is small."""
    return _family.sf(x, loc, scale)


@compound()
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The inverse of cdf; NaN outside of [0, 1]."""
    return _family.ppf(x, loc, scale)


@compound()
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The inverse of sf; NaN outside of [0, 1]."""
    return _family.isf(x, loc, scale)


_publish(__name__)
