"""Integrals of functions of which samples are known. Source for names and meaning: jax.scipy.integrate."""

from __future__ import annotations

from typing import Any

from ... import numpy as jnp
from ...numpy.promotion import check_arraylike, promote_dtypes_inexact
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike

__all__ = ["trapezoid"]


@compound(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Value:
    """The integral of y along an axis by the trapezoidal rule.

    x: the places of the samples, a vector or an array like y; without it they are dx apart.
    """
    values: Any
    if x is None:
        check_arraylike("trapezoid", y)
        (values,) = promote_dtypes_inexact(y)
        values, steps = jnp.moveaxis(values, axis, -1), dx
    else:
        check_arraylike("trapezoid", y, x)
        values, places = promote_dtypes_inexact(y, x)
        values = jnp.moveaxis(values, axis, -1)
        steps = jnp.diff(places if places.ndim == 1 else jnp.moveaxis(places, axis, -1))
    return 0.5 * (steps * (values[..., 1:] + values[..., :-1])).sum(-1)  # type: ignore[no-any-return]
