"""`hloom.scipy.stats.expon`: the exponential distribution."""

from __future__ import annotations

from ... import numpy as jnp
from ...lax.elementwise_functions import complement_of_exp
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .families import Continuous, log_of_complement

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


_family = Continuous(
    "expon",
    low=0.0,
    log_density=lambda y: -y,
    cdf_formula=lambda y: complement_of_exp(-y),
    logcdf_formula=lambda y: log_of_complement(-y),
    logsf_formula=lambda y: -y,
    ppf_formula=lambda q: -jnp.log1p(-q),
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the exponential distribution, above loc and of mean loc + scale at x; -inf
    outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.logpdf(jnp.array([-1.0, 1.0, 4.0])).round(3)
    Array([-inf,  -1.,  -4.], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


@compound()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of the exponential distribution, above loc and of mean loc + scale at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.pdf(jnp.array([-1.0, 1.0, 4.0])).round(3)
    Array([0.   , 0.368, 0.018], dtype=float32)
    """
    return _family.pdf(x, loc, scale)


@compound()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by the exponential distribution, above loc and of mean loc + scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.cdf(jnp.array([-1.0, 1.0, 4.0])).round(3)
    Array([0.   , 0.632, 0.982], dtype=float32)
    """
    return _family.cdf(x, loc, scale)


@compound()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values up to x, by the exponential distribution, above loc and of mean loc +
    scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.logcdf(jnp.array([-1.0, 1.0, 4.0])).round(3)
    Array([  -inf, -0.459, -0.018], dtype=float32)
    """
    return _family.logcdf(x, loc, scale)


@compound()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by the exponential distribution, above loc and of mean loc + scale: 1 - cdf,
    accurate where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.sf(jnp.array([-1.0, 1.0, 4.0])).round(3)
    Array([1.   , 0.368, 0.018], dtype=float32)
    """
    return _family.sf(x, loc, scale)


@compound()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values above x, by the exponential distribution, above loc and of mean loc +
    scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.logsf(jnp.array([-1.0, 1.0, 4.0])).round(3)
    Array([ 0., -1., -4.], dtype=float32)
    """
    return _family.logsf(x, loc, scale)


@compound()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The quantile at q of the exponential distribution, above loc and of mean loc + scale: the inverse of cdf. NaN
    outside of [0, 1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.expon.ppf(jnp.array([0.0, 0.25, 0.5])).round(3)
    Array([0.   , 0.288, 0.693], dtype=float32)
    """
    return _family.ppf(q, loc, scale)


_publish(__name__)
