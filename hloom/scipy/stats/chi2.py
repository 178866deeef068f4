"""`hloom.scipy.stats.chi2`: the chi-squared distribution with df degrees of freedom."""

from __future__ import annotations

import math

from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammainc, gammaincc
from .families import Continuous
from .log_densities import gamma_log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "chi2",
    low=0.0,
    valid=lambda df: df > 0,
    log_density=lambda y, df: gamma_log_density(0.5 * y, 0.5 * df) - math.log(2),
    cdf_formula=lambda y, df: gammainc(0.5 * df, 0.5 * y),
    sf_formula=lambda y, df: gammaincc(0.5 * df, 0.5 * y),
)


@compound()
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the chi-squared distribution with df degrees of freedom at x; -inf outside of its
    support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.chi2.logpdf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([  -inf, -1.419, -2.226], dtype=float32)
    """
    return _family.logpdf(x, df, loc, scale)


@compound()
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of the chi-squared distribution with df degrees of freedom at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.chi2.pdf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([0.   , 0.242, 0.108], dtype=float32)
    """
    return _family.pdf(x, df, loc, scale)


@compound()
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by the chi-squared distribution with df degrees of freedom.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.chi2.cdf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([0.   , 0.199, 0.739], dtype=float32)
    """
    return _family.cdf(x, df, loc, scale)


@compound()
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values up to x, by the chi-squared distribution with df degrees of freedom.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.chi2.logcdf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([  -inf, -1.616, -0.303], dtype=float32)
    """
    return _family.logcdf(x, df, loc, scale)


@compound()
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by the chi-squared distribution with df degrees of freedom: 1 - cdf, accurate
    where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.chi2.sf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([1.   , 0.801, 0.261], dtype=float32)
    """
    return _family.sf(x, df, loc, scale)


@compound()
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values above x, by the chi-squared distribution with df degrees of freedom.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.chi2.logsf(jnp.array([-1.0, 1.0, 4.0]), 3.0).round(3)
    Array([ 0.   , -0.222, -1.341], dtype=float32)
    """
    return _family.logsf(x, df, loc, scale)


_publish(__name__)
