"""`hloom.scipy.stats.uniform`: the uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from .families import Continuous

__all__ = ["cdf", "logpdf", "pdf", "ppf"]


_family = Continuous(
    "uniform",
    low=0.0,
    high=1.0,
    log_density=jnp.zeros_like,
    cdf_formula=lambda y: y,
    ppf_formula=lambda q: q,
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
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The inverse of cdf; NaN outside of [0, 1]."""
    return _family.ppf(q, loc, scale)


_publish(__name__)
