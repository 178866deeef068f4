"""`hloom.scipy.stats.cauchy`: Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


def _log_density(y: Any) -> Any:
    """-log(pi (1 + y**2)), without the overflow of y**2."""
    size = abs(y)
    far = size > 1
    near, large = jnp.where(far, 0, y), jnp.where(far, size, 1)
    value = jnp.where(far, 2 * jnp.log(large) + jnp.log1p((1 / large) ** 2), jnp.log1p(near * near))
    return -value - math.log(math.pi)


def _quantile(q: Any) -> Any:
    """-1 / tan(pi q); near 1/2 the tangent of the rest, near 1 from 1 - q."""
    low, high = q < 0.25, q > 0.75
    outer = low | high
    end = jnp.where(outer, jnp.where(low, q, q - 1), 0.25)
    return jnp.where(outer, -1 / jnp.tan(math.pi * end), jnp.tan(math.pi * jnp.where(outer, 0, q - 0.5)))


_family = Continuous(
    "cauchy",
    "Cauchy's distribution",
    ([-1.0, 0.0, 3.0],),
    log_density=_log_density,
    cdf_formula=lambda y: jnp.arctan2(1, -y) / math.pi,
    sf_formula=lambda y: jnp.arctan2(1, y) / math.pi,
    ppf_formula=_quantile,
    isf_formula=lambda q: -_quantile(q),
)


@compound()
@_family.documented("[-1.838, -1.145, -3.447]")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.159, 0.318, 0.032]")
cdf = _family.also(logpdf, "cdf", "[0.25 , 0.5  , 0.898]")
logcdf = _family.also(logpdf, "logcdf", "[-1.386, -0.693, -0.108]")
sf = _family.also(logpdf, "sf", "[0.75 , 0.5  , 0.102]")
logsf = _family.also(logpdf, "logsf", "[-0.288, -0.693, -2.279]")
ppf = _family.also(logpdf, "ppf", "[-inf,  -1.,   0.]")
isf = _family.also(logpdf, "isf", "[inf,  1.,  0.]")


_publish(__name__)
