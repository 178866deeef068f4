"""Integrals of sampled functions. Names and semantics follow jax.scipy.integrate."""

from __future__ import annotations

from ... import numpy as jnp
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value


@compound(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Value:
    """The integral of y along an axis by the trapezoidal rule.

    x: the places of the samples, a vector or an array like y; without it they are dx apart.

    >>> from hloom import numpy as jnp
    >>> from hloom.scipy import integrate
    >>> integrate.trapezoid(jnp.array([0.0, 1.0, 4.0]), dx=0.5)
    Array(1.5, dtype=float32)
    >>> integrate.trapezoid(jnp.array([0.0, 1.0, 4.0]), jnp.array([0.0, 1.0, 3.0]))
    Array(5.5, dtype=float32)
    """
    return jnp.trapezoid(y, x, dx, axis)
