"""`hloom.scipy.stats.betabinom`: the successes in n trials whose probability has the beta distribution of a and b."""

from __future__ import annotations

from ... import numpy as jnp
from ...namespaces import publish as _publish
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike
from ..special import betaln
from .families import Discrete

__all__ = ["logpmf", "pmf"]


_family = Discrete(
    "betabinom",
    high=lambda n, a, b: n,
    valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    log_mass=lambda k, n, a, b: betaln(k + a, n - k + b) - betaln(a, b) - jnp.log1p(n) - betaln(n - k + 1, k + 1),
)


@compound()
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Value:
    """The logarithm of the probability of k; -inf unless k - loc is an integer of the support."""
    return _family.logpmf(k, n, a, b, loc)


@compound()
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Value:
    """The probability of k; 0 unless k - loc is an integer of the support."""
    return _family.pmf(k, n, a, b, loc)


_publish(__name__)
