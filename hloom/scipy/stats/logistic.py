"""`hloom.scipy.stats.logistic`: the logistic distribution."""

from __future__ import annotations

from typing import Any

from ... import lax
from ... import numpy as jnp
from ...extend.primitive import Primitive
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import logit
from .families import Continuous

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


_distribution = Primitive("logistic_distribution", lax.logistic)


@_distribution.def_jvp
def _distribution_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """y (1 - y) would lose 1 - y where y is close to 1."""
    (x,), (t,) = primals, tangents
    return _distribution.bind(x), t * (lax.logistic(x) * lax.logistic(-x))


_family = Continuous(
    "logistic",
    "the logistic distribution",
    ([-1.0, 0.0, 2.0],),
    log_density=lambda y: -abs(y) - 2 * jnp.log1p(jnp.exp(-abs(y))),
    cdf_formula=_distribution.bind,
    sf_formula=lambda y: _distribution.bind(-y),
    ppf_formula=logit,
    isf_formula=lambda q: -logit(q),
)


@compound()
@_family.documented("[-1.627, -1.386, -2.254]")
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    return _family.logpdf(x, loc, scale)


pdf = _family.also(logpdf, "pdf", "[0.197, 0.25 , 0.105]")
cdf = _family.also(logpdf, "cdf", "[0.269, 0.5  , 0.881]")
sf = _family.also(logpdf, "sf", "[0.731, 0.5  , 0.119]")
ppf = _family.also(logpdf, "ppf", "[  -inf, -1.099,  0.   ]", "x")
isf = _family.also(logpdf, "isf", "[  inf, 1.099, 0.   ]", "x")


_publish(__name__)
