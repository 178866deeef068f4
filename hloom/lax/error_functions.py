"""The complementary error function. Source of names and arguments: jax.lax."""

from __future__ import annotations

import math
from typing import Any

from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from .elementwise_functions import ElementwiseFunction, first_of
from .instructions import abs, erf, exp, mul, select, sub
from .movement import full_like
from .series import chebyshev, narrow
from .special_tables import ERFCX


def scaled_erfc_positive(x: Any) -> Any:
    """exp(x**2) erfc(x) for x >= 0.

    Source: Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x**2) erfc x" (1981).
    """
    t = select(x < 1e20, (x - 3.75) / (x + 3.75), full_like(x, 1.0))
    return chebyshev(ERFCX, t) / (1.0 + 2.0 * x)


def exp_of_square(x: Any, sign: float = -1.0) -> Any:
    """exp(sign x**2) without the rounding of x**2: x = h + l, and x**2 = h**2 + l (x + h), where h**2 is exact.

    That rounding is up to 2**-43 of a result of normal size, which narrow results do not show."""
    if narrow():
        return exp(sign * x * x)
    h = split_high(x)
    return exp(sign * h * h) * exp(sign * (x - h) * (x + h))


def split_high(x: Any) -> Any:
    """x rounded to 26 bits (Dekker 1971)."""
    scaled = mul(x, full_like(x, 2.0**27 + 1.0))
    return sub(scaled, sub(scaled, x))


def erfc_meaning(x: Any) -> Any:
    size = abs(x)
    far = select(size < 27.5, size, full_like(x, 27.5))
    upper = exp_of_square(far) * scaled_erfc_positive(far)
    both = first_of(x != x, math.nan, x < 0.0, 2.0 - upper, upper)
    # near 0 this is wrong by some bits of float64
    return both if narrow() else select(size < 0.5, 1.0 - erf(x), both)


_erfc: ElementwiseFunction = ElementwiseFunction(
    "erfc", erfc_meaning, [lambda y, x: -2.0 / math.sqrt(math.pi) * exp(-x * x)], short=True
)


@compound()
def erfc(x: ArrayLike) -> Value:
    """1 - erf(x), accurate where it is small.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> 1 - lax.erf(jnp.array([5.0])), jnp.log10(lax.erfc(jnp.array([5.0]))).astype(int)
    (Array([0.], dtype=float32), Array([-11], dtype=int32))
    """
    return _erfc(x)
