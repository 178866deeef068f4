"""`hloom.scipy.stats.pareto`: Pareto's distribution of shape b."""

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
    "pareto",
    low=1.0,
    inner=2.0,
    valid=lambda b: b > 0,
    log_density=lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y),
    cdf_formula=lambda y, b: complement_of_exp(-b * jnp.log(y)),
    logcdf_formula=lambda y, b: log_of_complement(-b * jnp.log(y)),
    logsf_formula=lambda y, b: -b * jnp.log(y),
    ppf_formula=lambda q, b: jnp.exp(-jnp.log1p(-q) / b),
)


@compound()
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of Pareto's distribution of shape b, above loc + scale at x; -inf outside of its
    support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.logpdf(jnp.array([0.5, 1.5, 4.0]), 3.0).round(3)
    Array([  -inf, -0.523, -4.447], dtype=float32)
    """
    return _family.logpdf(x, b, loc, scale)


@compound()
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of Pareto's distribution of shape b, above loc + scale at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.pdf(jnp.array([0.5, 1.5, 4.0]), 3.0).round(3)
    Array([0.   , 0.593, 0.012], dtype=float32)
    """
    return _family.pdf(x, b, loc, scale)


@compound()
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by Pareto's distribution of shape b, above loc + scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.cdf(jnp.array([0.5, 1.5, 4.0]), 3.0).round(3)
    Array([0.   , 0.704, 0.984], dtype=float32)
    """
    return _family.cdf(x, b, loc, scale)


@compound()
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values up to x, by Pareto's distribution of shape b, above loc + scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.logcdf(jnp.array([0.5, 1.5, 4.0]), 3.0).round(3)
    Array([  -inf, -0.351, -0.016], dtype=float32)
    """
    return _family.logcdf(x, b, loc, scale)


@compound()
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by Pareto's distribution of shape b, above loc + scale: 1 - cdf, accurate
    where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.sf(jnp.array([0.5, 1.5, 4.0]), 3.0).round(3)
    Array([1.   , 0.296, 0.016], dtype=float32)
    """
    return _family.sf(x, b, loc, scale)


@compound()
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values above x, by Pareto's distribution of shape b, above loc + scale.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.logsf(jnp.array([0.5, 1.5, 4.0]), 3.0).round(3)
    Array([ 0.   , -1.216, -4.159], dtype=float32)
    """
    return _family.logsf(x, b, loc, scale)


@compound()
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The quantile at q of Pareto's distribution of shape b, above loc + scale: the inverse of cdf. NaN outside of [0,
    1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.pareto.ppf(jnp.array([0.0, 0.25, 0.5]), 3.0).round(3)
    Array([1.   , 1.101, 1.26 ], dtype=float32)
    """
    return _family.ppf(q, b, loc, scale)


_publish(__name__)
