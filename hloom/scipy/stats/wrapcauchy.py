"""`hloom.scipy.stats.wrapcauchy`: Cauchy's distribution wrapped around the circle [0, 2 pi]."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous

__all__ = ["logpdf", "pdf"]


def _log_density(y: Any, c: Any) -> Any:
    """1 + c**2 - 2 c cos(y) is (1 - c)**2 + 4 c sin(y / 2)**2, which does not cancel."""
    distance = (1 - c) ** 2 + 4 * c * jnp.sin(0.5 * y) ** 2
    return jnp.log1p(-c) + jnp.log1p(c) - math.log(2 * math.pi) - jnp.log(distance)


_family = Continuous(
    "wrapcauchy",
    "Cauchy's distribution wrapped around the circle [0, 2 pi]",
    ([0.0, 1.0, 3.0], 0.5),
    low=0.0,
    high=2 * math.pi,
    valid=lambda c: (c > 0) & (c < 1),
    log_density=_log_density,
)


@compound()
@_family.documented("[-0.739, -1.783, -2.932]")
def logpdf(x: ArrayLike, c: ArrayLike) -> Value:
    return _family.logpdf(x, c, 0, 1)


pdf = _family.also(logpdf, "pdf", "[0.477, 0.168, 0.053]")


_publish(__name__)
