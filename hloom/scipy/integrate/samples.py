"""Integrals of functions of which samples are known. Source for names and meaning: jax.scipy.integrate."""

from __future__ import annotations

from ... import numpy as jnp
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.operators import ArrayLike

__all__ = ["trapezoid"]


@compound(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Value:
    """The integral of y along an axis by the trapezoidal rule.

    x: the places of the samples, a vector or an array like y; without it they are dx apart.
    """
    return jnp.trapezoid(y, x, dx, axis)
