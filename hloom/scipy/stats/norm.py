"""`hloom.scipy.stats.norm`: the normal distribution."""

from __future__ import annotations

import math

from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import log_ndtr, ndtr, ndtri
from .families import Continuous

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


_family = Continuous(
    "norm",
    log_density=lambda y: -0.5 * y * y - 0.5 * math.log(2 * math.pi),
    cdf_formula=ndtr,
    sf_formula=lambda y: ndtr(-y),
    logcdf_formula=log_ndtr,
    logsf_formula=lambda y: log_ndtr(-y),
    ppf_formula=ndtri,
    isf_formula=lambda q: -ndtri(q),
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the normal distribution of mean loc and standard deviation scale at x; -inf
    outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.logpdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-1.419, -0.919, -2.919], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


@compound()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of the normal distribution of mean loc and standard deviation scale at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.pdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([0.242, 0.399, 0.054], dtype=float32)
    """
    return _family.pdf(x, loc, scale)


@compound()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by the normal distribution of mean loc and standard deviation scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.cdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([0.159, 0.5  , 0.977], dtype=float32)
    """
    return _family.cdf(x, loc, scale)


@compound()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values up to x, by the normal distribution of mean loc and standard deviation
    scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.logcdf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-1.841, -0.693, -0.023], dtype=float32)
    """
    return _family.logcdf(x, loc, scale)


@compound()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by the normal distribution of mean loc and standard deviation scale: 1 - cdf,
    accurate where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.sf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([0.841, 0.5  , 0.023], dtype=float32)
    """
    return _family.sf(x, loc, scale)


@compound()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values above x, by the normal distribution of mean loc and standard deviation
    scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.logsf(jnp.array([-1.0, 0.0, 2.0])).round(3)
    Array([-0.173, -0.693, -3.783], dtype=float32)
    """
    return _family.logsf(x, loc, scale)


@compound()
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The quantile at q of the normal distribution of mean loc and standard deviation scale: the inverse of cdf. NaN
    outside of [0, 1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.ppf(jnp.array([0.0, 0.25, 0.5])).round(3)
    Array([  -inf, -0.674,  0.   ], dtype=float32)
    """
    return _family.ppf(q, loc, scale)


@compound()
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The value above which the probability is q, by the normal distribution of mean loc and standard deviation scale:
    the inverse of sf. NaN outside of [0, 1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.norm.isf(jnp.array([0.0, 0.25, 0.5])).round(3)
    Array([  inf, 0.674, 0.   ], dtype=float32)
    """
    return _family.isf(q, loc, scale)


_publish(__name__)
