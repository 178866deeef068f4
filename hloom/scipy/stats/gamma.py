"""`hloom.scipy.stats.gamma`: the gamma distribution of shape a."""

from __future__ import annotations

from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammainc, gammaincc
from .families import Continuous
from .log_densities import gamma_log_density

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


_family = Continuous(
    "gamma",
    low=0.0,
    valid=lambda a: a > 0,
    log_density=gamma_log_density,
    cdf_formula=lambda y, a: gammainc(a, y),
    sf_formula=lambda y, a: gammaincc(a, y),
)


@compound()
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the density of the gamma distribution of shape a at x; -inf outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gamma.logpdf(jnp.array([-1.0, 1.0, 4.0]), 2.0).round(3)
    Array([  -inf, -1.   , -2.614], dtype=float32)
    """
    return _family.logpdf(x, a, loc, scale)


@compound()
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The density of the gamma distribution of shape a at x; 0 outside of its support.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gamma.pdf(jnp.array([-1.0, 1.0, 4.0]), 2.0).round(3)
    Array([0.   , 0.368, 0.073], dtype=float32)
    """
    return _family.pdf(x, a, loc, scale)


@compound()
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values up to x, by the gamma distribution of shape a.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gamma.cdf(jnp.array([-1.0, 1.0, 4.0]), 2.0).round(3)
    Array([0.   , 0.264, 0.908], dtype=float32)
    """
    return _family.cdf(x, a, loc, scale)


@compound()
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values up to x, by the gamma distribution of shape a.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gamma.logcdf(jnp.array([-1.0, 1.0, 4.0]), 2.0).round(3)
    Array([  -inf, -1.331, -0.096], dtype=float32)
    """
    return _family.logcdf(x, a, loc, scale)


@compound()
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The probability of values above x, by the gamma distribution of shape a: 1 - cdf, accurate where it is small.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gamma.sf(jnp.array([-1.0, 1.0, 4.0]), 2.0).round(3)
    Array([1.   , 0.736, 0.092], dtype=float32)
    """
    return _family.sf(x, a, loc, scale)


@compound()
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Value:
    """The logarithm of the probability of values above x, by the gamma distribution of shape a.

    The arguments broadcast and become floating-point numbers of one dtype, which the result has too.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import stats
    >>> stats.gamma.logsf(jnp.array([-1.0, 1.0, 4.0]), 2.0).round(3)
    Array([ 0.   , -0.307, -2.391], dtype=float32)
    """
    return _family.logsf(x, a, loc, scale)


_publish(__name__)
