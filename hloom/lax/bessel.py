"""Modified Bessel functions of the first kind, scaled. Source of names and arguments: jax.lax."""

from __future__ import annotations

from typing import Any

from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from .elementwise import sign
from .elementwise_functions import ElementwiseFunction, first_of
from .instructions import abs, select, sqrt
from .movement import full_like
from .series import chebyshev
from .special_tables import I0_FAR, I0_LESS_I1_FAR, I0_LESS_I1_NEAR, I0_NEAR, I1_FAR, I1_NEAR

_BORDER = 8.0


def _pieces(x: Any, near: tuple[float, ...], far: tuple[float, ...]) -> tuple[Any, Any]:
    """Chebyshev series below and above 8, as in Cephes' i0 and i1; the argument of the second is 16 / |x| - 1."""
    size = abs(x)
    low = select(size < _BORDER, size, full_like(size, 1.0))
    high = select(size < _BORDER, full_like(size, _BORDER), size)
    inverse = 1.0 / high
    return chebyshev(near, 0.25 * low - 1.0), chebyshev(far, 16.0 * inverse - 1.0) * sqrt(inverse)


def i0e_meaning(x: Any) -> Any:
    low, high = _pieces(x, I0_NEAR, I0_FAR)
    return select(abs(x) < _BORDER, low, high)


def i1e_meaning(x: Any) -> Any:
    low, high = _pieces(x, I1_NEAR, I1_FAR)
    return first_of(abs(x) < _BORDER, low * x, x < 0.0, -high, high)


def _difference_meaning(x: Any) -> Any:
    """exp(-|x|) (I0(|x|) - I1(|x|)): far out the two are the same but for a share of 1 / (2 |x|)."""
    size = abs(x)
    low, high = _pieces(x, I0_LESS_I1_NEAR, I0_LESS_I1_FAR)
    return select(size < _BORDER, low, high / size)


def _i1e_slope(y: Any, x: Any) -> Any:
    """I0e - (sign(x) + 1/x) I1e; at 0, where I1e(x) / x is 1/2, one half."""
    at_zero = x == 0.0
    safe = select(at_zero, full_like(x, 1.0), x)
    return select(at_zero, full_like(x, 0.5), _difference(safe) - y / safe)


_difference: ElementwiseFunction = ElementwiseFunction(
    "bessel_i0e_less_i1e", _difference_meaning, [None], short=True
)
_i0e: ElementwiseFunction = ElementwiseFunction(
    "bessel_i0e", i0e_meaning, [lambda y, x: -sign(x) * _difference(x)], short=True
)
_i1e: ElementwiseFunction = ElementwiseFunction("bessel_i1e", i1e_meaning, [_i1e_slope], short=True)


@compound()
def bessel_i0e(x: ArrayLike) -> Value:
    """exp(-|x|) I0(x), the modified Bessel function of order 0.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.bessel_i0e(jnp.array([0.0, 1.0])), 3)
    Array([1.   , 0.466], dtype=float32)
    """
    return _i0e(x)


@compound()
def bessel_i1e(x: ArrayLike) -> Value:
    """exp(-|x|) I1(x), the modified Bessel function of order 1.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.bessel_i1e(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 0.208], dtype=float32)
    """
    return _i1e(x)
