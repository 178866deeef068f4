"""`hloom.scipy.stats.laplace`: Laplace's distribution."""

from __future__ import annotations

import math

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from .families import Continuous

__all__ = ["cdf", "logpdf", "pdf"]


_family = Continuous(
    "laplace",
    log_density=lambda y: -abs(y) - math.log(2),
    cdf_formula=lambda y: jnp.where(y > 0, 1 - 0.5 * jnp.exp(-abs(y)), 0.5 * jnp.exp(-abs(y))),
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


_publish(__name__)
