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
from .families import Continuous, derived

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]


_distribution = Primitive("logistic_distribution", lax.logistic)


@_distribution.def_jvp
def _distribution_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """y (1 - y) would lose 1 - y where y is close to 1."""
    (x,), (t,) = primals, tangents
    return _distribution.bind(x), t * (lax.logistic(x) * lax.logistic(-x))


_family = Continuous(
    "logistic",
    log_density=lambda y: -abs(y) - 2 * jnp.log1p(jnp.exp(-abs(y))),
    cdf_formula=_distribution.bind,
    sf_formula=lambda y: _distribution.bind(-y),
    ppf_formula=logit,
    isf_formula=lambda q: -logit(q),
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the logistic distribution at x; -inf outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> stats.logistic.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-1.627, -1.386, -2.254], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


pdf = derived(logpdf, "pdf", "[0.197, 0.25 , 0.105]")
cdf = derived(logpdf, "cdf", "[0.269, 0.5  , 0.881]")
sf = derived(logpdf, "sf", "[0.731, 0.5  , 0.119]")
ppf = derived(logpdf, "ppf", "[  -inf, -1.099,  0.   ]")
isf = derived(logpdf, "isf", "[  inf, 1.099, 0.   ]")


_publish(__name__)
