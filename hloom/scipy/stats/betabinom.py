"""`hloom.scipy.stats.betabinom`: the successes in n trials with a probability from the beta distribution of a and b."""

from __future__ import annotations

from ... import lax
from ...lax.elementwise_functions import ElementwiseFunction
from ...namespaces import publish as _publish
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ..special import betaln
from .families import Discrete

__all__ = ["logpmf", "pmf"]


_log_mass: ElementwiseFunction = ElementwiseFunction(
    "betabinom_log_mass",
    lambda k, n, a, b: betaln(k + a, n - k + b) - betaln(a, b) - lax.log1p(n) - betaln(n - k + 1.0, k + 1.0),
    [None] * 4,
)
_family = Discrete(
    "betabinom",
    "the successes in n trials with a probability from the beta distribution of a and b",
    ([0, 2, 5], 4, 2.0, 3.0),
    high=lambda n, a, b: n,
    valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    log_mass=_log_mass,
)


@compound()
@_family.documented("[-1.54 , -1.358,   -inf]")
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Value:
    return _family.logpmf(k, n, a, b, loc)


pmf = _family.also(logpmf, "pmf", "[0.214, 0.257, 0.   ]")


_publish(__name__)
