"""Spherical harmonics. Names and semantics follow scipy.special, jax.scipy.special."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import lax
from ... import numpy as jnp
from ...lax import fori_loop
from ...numpy.promotion import broadcast_values, check_arraylike, promote_dtypes_inexact
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.errors import ConcretizationTypeError


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Value:
    """The spherical harmonics of degrees n and orders m at polar angles theta and azimuthal angles phi.

    The arguments broadcast. Scalars give an array of one element, as in JAX. The result is 0 for |m| > n.

    n_max: the largest degree, an integer that is not traced; without it the largest of n, which then is not traced.
    diff_n: NotImplementedError unless it is None, as in JAX.

    >>> special.sph_harm_y(jnp.array([0, 1]), jnp.array([0, 0]), 0.0, 0.0).round(3)
    Array([0.282+0.j, 0.489+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: diff_n is not supported; hloom.jvp and hloom.grad give derivatives")
    check_arraylike("sph_harm_y", n, m, theta, phi)
    if n_max is None:
        try:
            n_max = int(np.max(np.asarray(n)))
        except ConcretizationTypeError as error:
            raise ConcretizationTypeError(
                "sph_harm_y: n is traced, so the largest degree must be given: n_max=..., a Python integer"
            ) from error
    return _sph_harm_y(n, m, theta, phi, operator.index(n_max))


@compound(static=("n_max",))
def _sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, n_max: int) -> Value:
    """By the recurrence in the degree of normalised associated Legendre functions (DLMF 14.10.3, 14.30.1)."""
    angles = promote_dtypes_inexact(theta, phi)
    degree, order, polar, azimuth = broadcast_values([jnp.asarray(n), jnp.asarray(m), *angles])
    dtype = polar.dtype
    if not polar.shape:
        degree, order, polar, azimuth = (v.reshape(1) for v in (degree, order, polar, azimuth))
    degree, size = degree.astype(dtype), abs(order).astype(dtype)
    # functions of the cosine: even in the angle; at 0 the derivative is that to the right
    cosine, sine = jnp.cos(polar), jnp.sin(polar)
    sine = jnp.where(sine < 0, -sine, sine)
    one = jnp.ones_like(polar)

    def diagonal(k: Any, p: Any) -> Any:
        k = lax.convert_element_type(k, dtype)
        return jnp.where(k <= size, -p * sine * jnp.sqrt(1 + 0.5 / k), p)

    def upwards(k: Any, state: Any) -> Any:
        before, current = state  # the functions of degrees k - 2 and k - 1
        j = lax.convert_element_type(k, dtype)
        active = (j > size) & (j <= degree)
        gap = jnp.where(active, j * j - size * size, 1)
        scale = jnp.sqrt((4 * j * j - 1) / gap)
        previous = jnp.maximum((j - 1) ** 2 - size * size, 0) / (4 * (j - 1) ** 2 - 1)
        safe = jnp.where(previous > 0, previous, 1)
        lower = jnp.where(previous > 0, jnp.sqrt(safe), 0)
        following = scale * (cosine * current - lower * before)
        return jnp.where(active, current, before), jnp.where(active, following, current)

    start = fori_loop(1, n_max + 1, diagonal, one * (0.5 / math.sqrt(math.pi)))
    _, legendre = fori_loop(1, n_max + 1, upwards, (jnp.zeros_like(start), start))
    legendre = jnp.where(size <= degree, legendre, 0)
    angle = size * azimuth
    sign = jnp.where((order < 0) & (size % 2 == 1), -1, 1).astype(dtype)
    direction = jnp.where(order < 0, -1, 1).astype(dtype)
    return lax.complex(sign * legendre * jnp.cos(angle), sign * direction * legendre * jnp.sin(angle))
