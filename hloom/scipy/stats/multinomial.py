"""`hloom.scipy.stats.multinomial`: how often each outcome happens in n trials."""

from __future__ import annotations

import math
from typing import Any

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...numpy.promotion import check_arraylike, promote_dtypes, promote_dtypes_inexact
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import gammaln, xlogy
from ..special.promoting import in_double

__all__ = ["logpmf", "pmf"]


def _log_mass(counts: Any, total: Any, chances: Any) -> Any:
    return gammaln(total + 1) + (xlogy(counts, chances) - gammaln(counts + 1)).sum(-1)


@compound()
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
    """The logarithm of the probability of the counts x[..., :], integers; -inf unless they are n in sum.

    >>> stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).round(3)
    Array(-0.981, dtype=float32)
    """
    check_arraylike("multinomial.logpmf", x, n, p)
    (chances,) = promote_dtypes_inexact(p)
    counts, trials = promote_dtypes(x, n)
    if not dtypes.is_integer(counts.aval.dtype):
        raise ValueError(f"x and n must be of integer type; got x.dtype={jnp.result_type(x)}, n.dtype={trials.dtype}")
    whole, total = counts.astype(chances.dtype), trials.astype(chances.dtype)
    value = in_double(_log_mass, whole, total, chances)
    return jnp.where(counts.sum(-1) == trials, value, -math.inf)


@compound()
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Value:
    """The probability of the counts x[..., :], integers; 0 unless they are n in sum.

    >>> stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])).round(3)
    Array(0.375, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))


_publish(__name__)
