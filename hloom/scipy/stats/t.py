"""`hloom.scipy.stats.t`: Student's distribution with df degrees of freedom."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import betaln
from .families import Continuous

__all__ = ["logpdf", "pdf"]


def _log_density(y: Any, df: Any) -> Any:
    """With the beta function, so that nothing large cancels for large df; for df = inf the normal density."""
    normal = df == math.inf
    df = jnp.where(normal, 1, df)
    value = -betaln(0.5 * df, 0.5) - 0.5 * jnp.log(df) - 0.5 * (df + 1) * jnp.log1p(y * (y / df))
    return jnp.where(normal, -0.5 * y * y - 0.5 * math.log(2 * math.pi), value)


_family = Continuous(
    "t",
    "Student's distribution with df degrees of freedom",
    ([-1.0, 0.0, 2.0], 4.0),
    valid=lambda df: df > 0,
    log_density=_log_density,
)


@compound()
@_family.documented("[-1.539, -0.981, -2.714]")
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, df, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.215, 0.375, 0.066]")


_publish(__name__)
