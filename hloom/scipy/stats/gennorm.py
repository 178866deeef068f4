"""`hloom.scipy.stats.gennorm`: the generalized normal distribution of shape beta."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import gammaincc, gammaln
from .families import Continuous

__all__ = ["cdf", "logpdf", "pdf"]


def _cdf(y: Any, beta: Any) -> Any:
    upper = 0.5 * gammaincc(1 / beta, abs(y) ** beta)
    return jnp.where(y > 0, 1 - upper, upper)


_family = Continuous(
    "gennorm",
    valid=lambda beta: beta > 0,
    log_density=lambda y, beta: jnp.log(0.5 * beta) - gammaln(1 / beta) - abs(y) ** beta,
    cdf_formula=_cdf,
)


@compound()
def logpdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, beta, 0, 1)


@compound()
def pdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """The density."""
    return _family.pdf(x, beta, 0, 1)


@compound()
def cdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """The probability of values up to x."""
    return _family.cdf(x, beta, 0, 1)


_publish(__name__)
