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
from .families import Continuous

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
    "the generalized normal distribution of shape beta",
    ([-1.0, 0.0, 2.0], 1.5),
    valid=lambda beta: beta > 0,
    log_density=_log_density,
    cdf_formula=_cdf,
)


@compound()
@_family.documented("[-1.591, -0.591, -3.419]")
def logpdf(x: ArrayLike, beta: ArrayLike) -> Value:
    return _family.logpdf(x, beta, 0, 1)


pdf = _family.also(logpdf, "pdf", "[0.204, 0.554, 0.033]")
cdf = _family.also(logpdf, "cdf", "[0.112, 0.5  , 0.986]")


_publish(__name__)
