"""`hloom.scipy.stats.gumbel_l`: the Gumbel distribution of minima."""

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
    "gumbel_l",
    log_density=lambda y: y - jnp.exp(y),
    cdf_formula=lambda y: complement_of_exp(-jnp.exp(y)),
    logcdf_formula=lambda y: log_of_complement(-jnp.exp(y)),
    logsf_formula=lambda y: -jnp.exp(y),
    ppf_formula=lambda q: jnp.log(-jnp.log1p(-q)),
)


@compound()
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the Gumbel distribution of minima at x; -inf outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.logpdf(jnp.array([-2.0, 0.0, 1.0])).round(3)
    Array([-2.135, -1.   , -1.718], dtype=float32)
    """
    return _family.logpdf(x, loc, scale)


@compound()
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of the Gumbel distribution of minima at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.pdf(jnp.array([-2.0, 0.0, 1.0])).round(3)
    Array([0.118, 0.368, 0.179], dtype=float32)
    """
    return _family.pdf(x, loc, scale)


@compound()
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by the Gumbel distribution of minima.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.cdf(jnp.array([-2.0, 0.0, 1.0])).round(3)
    Array([0.127, 0.632, 0.934], dtype=float32)
    """
    return _family.cdf(x, loc, scale)


@compound()
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values up to x, by the Gumbel distribution of minima.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.logcdf(jnp.array([-2.0, 0.0, 1.0])).round(3)
    Array([-2.067, -0.459, -0.068], dtype=float32)
    """
    return _family.logcdf(x, loc, scale)


@compound()
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by the Gumbel distribution of minima: 1 - cdf, accurate where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.sf(jnp.array([-2.0, 0.0, 1.0])).round(3)
    Array([0.873, 0.368, 0.066], dtype=float32)
    """
    return _family.sf(x, loc, scale)


@compound()
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values above x, by the Gumbel distribution of minima.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.logsf(jnp.array([-2.0, 0.0, 1.0])).round(3)
    Array([-0.135, -1.   , -2.718], dtype=float32)
    """
    return _family.logsf(x, loc, scale)


@compound()
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The quantile at p of the Gumbel distribution of minima: the inverse of cdf. NaN outside of [0, 1].

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gumbel_l.ppf(jnp.array([0.0, 0.25, 0.5])).round(3)
    Array([  -inf, -1.246, -0.367], dtype=float32)
    """
    return _family.ppf(p, loc, scale)


_publish(__name__)
