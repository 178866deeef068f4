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
    """By associated Legendre functions (DLMF 14.30.1)."""
    angles = promote_dtypes_inexact(theta, phi)
    degree, order, polar, azimuth = broadcast_values([jnp.asarray(n), jnp.asarray(m), *angles])
    dtype = polar.dtype
    if not polar.shape:
        degree, order, polar, azimuth = (v.reshape(1) for v in (degree, order, polar, azimuth))
    degree, size = degree.astype(dtype), abs(order).astype(dtype)
    # functions of the cosine: even in the angle; at 0 the derivative is that to the right
    cosine, sine = jnp.cos(polar), jnp.sin(polar)
    sine = jnp.where(sine < 0, -sine, sine)
    legendre = _normalized_legendre(degree, size, cosine, sine, n_max)
    angle = size * azimuth
    sign = jnp.where((order < 0) & (size % 2 == 1), -1, 1).astype(dtype)
    direction = jnp.where(order < 0, -1, 1).astype(dtype)
    return lax.complex(sign * legendre * jnp.cos(angle), sign * direction * legendre * jnp.sin(angle))


def _normalized_legendre(degree: Any, size: Any, cosine: Any, sine: Any, n_max: int) -> Any:
    """The associated Legendre functions that are orthonormal on the sphere, 0 where size > degree, by the recurrence in
    the degree (DLMF 14.10.3). All arrays have one shape and dtype."""
    one = jnp.ones_like(cosine)

    def diagonal(k: Any, p: Any) -> Any:
        k = lax.convert_element_type(k, cosine.dtype)
        return jnp.where(k <= size, -p * sine * jnp.sqrt(1 + 0.5 / k), p)

    def upwards(k: Any, state: Any) -> Any:
        before, current = state  # the functions of degrees k - 2 and k - 1
        j = lax.convert_element_type(k, cosine.dtype)
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
    return jnp.where(size <= degree, legendre, 0)


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Value:
    """The associated Legendre functions of all orders to m and degrees to n at the points z: [orders, degrees, points].

    m, n: equal integers; NotImplementedError otherwise, as in JAX.
    z: f32[points] or f64[points] between -1 and 1; TypeError for other dtypes, ValueError for other ranks.
    is_normalized: with the factors that make spherical harmonics orthonormal.

    >>> special.lpmn_values(1, 1, jnp.array([0.5]), False)[..., 0].round(3)
    Array([[ 1.   ,  0.5  ],
           [ 0.   , -0.866]], dtype=float32)
    """
    check_arraylike("lpmn_values", z)
    points = jnp.asarray(z)
    if points.dtype not in (np.float32, np.float64):
        raise TypeError(f"lpmn_values: z must be float32 or float64, but it is {points.dtype}")
    if points.ndim != 1:
        raise ValueError(f"lpmn_values: z must have one dimension, but its shape is {points.shape}")
    orders, degrees = operator.index(m), operator.index(n)
    if orders != degrees:
        raise NotImplementedError(f"lpmn_values: m and n must be equal, but they are {orders} and {degrees}")
    return _lpmn_values(points, degrees, bool(is_normalized))


@compound(static=("n", "is_normalized"))
def _lpmn_values(z: Any, n: int, is_normalized: bool) -> Value:
    every = np.arange(n + 1)
    size, degree, cosine = broadcast_values(
        [*(jnp.asarray(v, z.dtype) for v in (every[:, None, None], every[:, None])), z]
    )
    found: Value = _normalized_legendre(degree, size, cosine, jnp.sqrt(1 - cosine * cosine), n)
    if is_normalized:
        return found
    logs = np.array([math.lgamma(k + 1) for k in range(2 * n + 1)])
    m, k = np.meshgrid(every, every, indexing="ij")
    ratios = np.where(m <= k, logs[k + m] - logs[abs(k - m)], 0)
    return found * jnp.asarray(np.sqrt(4 * np.pi / (2 * k + 1)) * np.exp(ratios / 2), z.dtype)[..., None]
