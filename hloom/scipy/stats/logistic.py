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

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.logistic.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-1.627, -1.386, -2.254], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


@compound()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of the logistic distribution at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.logistic.pdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([0.197, 0.25 , 0.105], dtype=float32)
    """
    return _family.pdf(x, loc, scale)


@compound()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by the logistic distribution.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.logistic.cdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([0.269, 0.5  , 0.881], dtype=float32)
    """
    return _family.cdf(x, loc, scale)


@compound()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by the logistic distribution: 1 - cdf, accurate where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.logistic.sf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([0.731, 0.5  , 0.119], dtype=float32)
    """
    return _family.sf(x, loc, scale)


@compound()
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The quantile at x of the logistic distribution: the inverse of cdf. NaN outside of [0, 1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.logistic.ppf(jnp.array([0.0, 0.25, 0.5])).round(3)
    Array([  -inf, -1.099,  0.   ], dtype=float32)
    """
    return _family.ppf(x, loc, scale)


@compound()
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The value above which the probability is x, by the logistic distribution: the inverse of sf. NaN outside of [0,
    1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.logistic.isf(jnp.array([0.0, 0.25, 0.5])).round(3)
    Array([  inf, 1.099, 0.   ], dtype=float32)
    """
    return _family.isf(x, loc, scale)


_publish(__name__)
