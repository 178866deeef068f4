"""`hloom.scipy.stats.gennorm`: the generalized normal distribution of shape beta."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...lax.elementwise_functions import ElementwiseFunction
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammaincc, gammaln
from .families import Continuous, derived

__all__ = ["cdf", "logpdf", "pdf"]


def _log_density(y: Any, beta: Any) -> Any:
    return jnp.log(0.5 * beta) - gammaln(1 / beta) - abs(y) ** beta


def _cdf_meaning(y: Any, beta: Any) -> Any:
    upper = 0.5 * gammaincc(1 / beta, abs(y) ** beta)
    return jnp.where(y > 0, 1 - upper, upper)


# in float64, and with the density as its derivative: the power underflows where the density does not
_cdf: ElementwiseFunction = ElementwiseFunction(
    "gennorm_cdf", _cdf_meaning, [lambda r, y, beta: jnp.exp(_log_density(y, beta)), None]
)
_family = Continuous(
    "gennorm",
    valid=lambda beta: beta > 0,
    log_density=_log_density,
    cdf_formula=_cdf,
)


@compound()
def logpdf(x: ArrayLike, beta: ArrayLike) -> Value:
    """The logarithm of the density of the generalized normal distribution of shape beta at x; -inf outside of its
    support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.gennorm.logpdf(jnp.array([-1.0, 0.0, 2.0]), 1.5).round(3)
    Array([-1.591, -0.591, -3.419], dtype=float32)
    """
    return _family.logpdf(x, beta, 0, 1)


pdf = derived(logpdf, "pdf", "[0.204, 0.554, 0.033]")
cdf = derived(logpdf, "cdf", "[0.112, 0.5  , 0.986]")


_publish(__name__)
