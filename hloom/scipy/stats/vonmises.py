"""`hloom.scipy.stats.vonmises`: von Mises' distribution on the circle, with concentration kappa."""

from __future__ import annotations

import math

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import i0e
from .families import Continuous

__all__ = ["logpdf", "pdf"]


_family = Continuous(
    "vonmises",
    "von Mises' distribution on the circle, with concentration kappa",
    ([0.0, 1.0, 3.0], 2.0),
    valid=lambda kappa: kappa >= 0,
    log_density=lambda y, kappa: kappa * (jnp.cos(y) - 1) - jnp.log(2 * math.pi * i0e(kappa)),
)


@compound()
@_family.documented("[-0.662, -1.581, -4.642]")
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Value:
    return _family.logpdf(x, kappa, 0, 1)


pdf = _family.also(logpdf, "pdf", "[0.516, 0.206, 0.01 ]")


_publish(__name__)
