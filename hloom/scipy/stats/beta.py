"""`hloom.scipy.stats.beta`: the beta distribution of shapes a and b."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...lax.elementwise_functions import ElementwiseFunction
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import betainc
from .families import Continuous
from .log_densities import beta_log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


def _upper_meaning(y: Any, a: Any, b: Any) -> Any:
    """1 - betainc(a, b, y), which is betainc(b, a, 1 - y) but for the digits that 1 - y loses of a small y."""
    is_small = y < 0.01
    first, second, x = (jnp.where(is_small, *pair) for pair in ((a, b), (b, a), (y, 1 - y)))
    part = betainc(first, second, x)
    return jnp.where(is_small, 1 - part, part)


# 1 - part loses digits of narrow types
_upper: ElementwiseFunction = ElementwiseFunction("beta_upper", _upper_meaning, [None] * 3)
_family = Continuous(
    "beta",
    "the beta distribution of shapes a and b, on [loc, loc + scale]",
    ([0.2, 0.6, 1.5], 2.0, 3.0),
    low=0.0,
    high=1.0,
    valid=lambda a, b: (a > 0) & (b > 0),
    log_density=beta_log_density,
    cdf_formula=lambda y, a, b: betainc(a, b, y),
    sf_formula=_upper,
)


@compound()
@_family.documented("[0.429, 0.141,  -inf]")
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, a, b, loc, scale)


pdf = _family.also(logpdf, "pdf", "[1.536, 1.152, 0.   ]")
cdf = _family.also(logpdf, "cdf", "[0.181, 0.821, 1.   ]")
logcdf = _family.also(logpdf, "logcdf", "[-1.71 , -0.197,  0.   ]")
sf = _family.also(logpdf, "sf", "[0.819, 0.179, 0.   ]")
logsf = _family.also(logpdf, "logsf", "[-0.199, -1.719,   -inf]")


_publish(__name__)
