"""Bessel functions. Names and semantics follow jax.scipy.special."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from ... import lax
from ... import numpy as jnp
from ...extend.primitive import Primitive
from ...lax.bessel import i0e_meaning, i1e_meaning
from ...lax.elementwise_functions import ElementwiseFunction
from ...numpy.promotion import strong
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.control_flow.branches import while_loop
from ...tracer.core import Value
from ...tracer.ops import convert
from ...tracer.settings.config import enable_x64
from .promoting import real


@compound()
def i0e(x: ArrayLike) -> Value:
    """exp(-|x|) i0(x).

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.i0e(jnp.array([0.0, 1.0, 1000.0])).round(3)
    Array([1.   , 0.466, 0.013], dtype=float32)
    """
    return lax.bessel_i0e(*real("i0e", x))


@compound()
def i0(x: ArrayLike) -> Value:
    """The modified Bessel function of the first kind of order 0.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.i0(jnp.array([0.0, 1.0])).round(3)
    Array([1.   , 1.266], dtype=float32)
    """
    return _i0(*real("i0", x))


@compound()
def i1e(x: ArrayLike) -> Value:
    """exp(-|x|) i1(x).

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.i1e(jnp.array([0.0, 1.0, 1000.0])).round(3)
    Array([0.   , 0.208, 0.013], dtype=float32)
    """
    return lax.bessel_i1e(*real("i1e", x))


@compound()
def i1(x: ArrayLike) -> Value:
    """The modified Bessel function of the first kind of order 1.

    Element by element; integers become floats (float32 by default), and the shape remains.

    >>> special.i1(jnp.array([0.0, 1.0])).round(3)
    Array([0.   , 0.565], dtype=float32)
    """
    return _i1(*real("i1", x))


def _unscaled(scaled: Any, x: Any) -> Any:
    """exp(|x|) times a scaled function: the power overflows before the product does."""
    half = lax.exp(0.5 * lax.abs(x))
    return half * scaled * half


def _i1_slope(y: Any, x: Any) -> Any:
    at_zero, at_end = x == 0.0, lax.abs(y) == math.inf
    usual = _i0(x) - y / lax.select(at_zero, lax.full_like(x, 1.0), x)
    return lax.select(at_zero, lax.full_like(x, 0.5), lax.select(at_end, lax.abs(y), usual))


_i0: ElementwiseFunction = ElementwiseFunction(
    "i0", lambda x: _unscaled(i0e_meaning(x), x), [lambda y, x: _i1(x)], short=True
)
_i1: ElementwiseFunction = ElementwiseFunction(
    "i1", lambda x: _unscaled(i1e_meaning(x), x), [_i1_slope], short=True
)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Value:
    """The Bessel functions of the first kind of orders 0 to v, stacked along a new first axis.

    v: an integer that is not traced.
    n_iter: the order at which the recurrence begins in JAX, which limits |z| there. Here it begins high enough for
      every element; NaN for |z| > 100,000.

    >>> special.bessel_jn(jnp.array([0.0, 1.0]), v=1).round(3)
    Array([[1.   , 0.765],
           [0.   , 0.44 ]], dtype=float32)
    """
    order, count = operator.index(v), operator.index(n_iter)
    if order < 0 or count < 1:
        raise ValueError(f"bessel_jn: v must be at least 0 and n_iter positive, not {order} and {count}")
    return _bessel_jn(z, order)


@compound(static=("order",))
def _bessel_jn(z: ArrayLike, order: int) -> Value:
    (value,) = real("bessel_jn", z)
    return strong(_orders(order).bind(value))


@functools.cache
def _orders(v: int) -> Primitive:
    """The orders 0 to v as a primitive; its derivative needs the orders up to v + 1 (DLMF 10.6.1)."""
    primitive = Primitive("bessel_jn")

    @primitive.def_meaning
    def _(z: Any) -> Any:
        dtype, weak = z.aval.dtype, z.aval.weak_type
        with enable_x64(True):
            result = _recurrence(convert(z, dtypes.float64, False), v)
        return convert(result, dtype, weak)

    @primitive.def_jvp
    def _(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (z,), (t,) = primals, tangents
        higher = _orders(v + 1).bind(z)
        before = jnp.concatenate([-higher[1:2], higher[:v]])
        return higher[: v + 1], t[None] * (0.5 * (before - higher[1:]))

    return primitive


_LIMIT = 100_000.0
_LARGE = 1e200


def _recurrence(z: Any, v: int) -> Any:
    """Miller's algorithm: the recurrence downwards from an order at which the function is negligible, normalised by
    J0 + 2 J2 + 2 J4 + ... = 1 (DLMF 10.12.4). Values are scaled down when they grow large.
    """
    size = lax.abs(z)
    usable = (size <= _LIMIT) & (size > 0.0)
    size = lax.select(usable, size, lax.full_like(z, 1.0))
    top = jnp.maximum(jnp.max(size, initial=1.0), float(v))
    start = 2.0 * jnp.floor(0.5 * (top + 20.0 + 12.0 * jnp.cbrt(top))) + 2.0

    def step(state: Any) -> Any:
        k, after, current, total, kept = state  # orders k + 1 and k
        kept = jnp.where((jnp.arange(v + 1) == k).reshape(-1, *[1] * z.ndim), current, kept)
        even = jnp.floor(k * 0.5) * 2.0 == k
        total = jnp.where(even, total + jnp.where(k == 0.0, current, 2.0 * current), total)
        before = (2.0 * k) / size * current - after
        shrink = jnp.where(jnp.abs(before) > _LARGE, 1.0 / _LARGE, 1.0)
        return k - 1.0, current * shrink, before * shrink, total * shrink, kept * shrink

    zeros = lax.full_like(z, 0.0)
    first = (start, zeros, lax.full_like(z, 1e-30), zeros, jnp.zeros((v + 1, *z.shape), dtypes.float64))
    # the step of order 0 would divide by nothing that matters: it computes J_-1, which is not used
    kept, total = while_loop(lambda state: state[0] > -0.5, step, first)[4:2:-1]
    values = kept / total
    orders = jnp.arange(v + 1).reshape(-1, *[1] * z.ndim)
    values = jnp.where((z < 0.0) & (orders % 2 == 1), -values, values)
    at_zero = jnp.where(orders == 0, 1.0, 0.0)
    return jnp.where(z == 0.0, at_zero, jnp.where(usable, values, math.nan))
