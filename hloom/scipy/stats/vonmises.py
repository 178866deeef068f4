"""`hloom.scipy.stats.vonmises`: von Mises' distribution on the circle, with concentration kappa."""

from __future__ import annotations

import math

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import i0e
from .families import Continuous

__all__ = ["logpdf", "pdf"]


_family = Continuous(
    "vonmises",
    valid=lambda kappa: kappa >= 0,
    log_density=lambda y, kappa: kappa * (jnp.cos(y) - 1) - jnp.log(2 * math.pi * i0e(kappa)),
)


@compound()
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Value:
    """The logarithm of the density."""
    return _family.logpdf(x, kappa, 0, 1)


@compound()
def pdf(x: ArrayLike, kappa: ArrayLike) -> Value:
    """The density."""
    return _family.pdf(x, kappa, 0, 1)


_publish(__name__)
