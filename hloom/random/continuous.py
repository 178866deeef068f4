"""Distributions of floating-point numbers. Each begins with `uniform`.

How bits become numbers follow jax.random.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from ..autodiff.placed_results import computed_in
from ..lax.movement import canonical_shape
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert, scalar_like
from .drawing import compound_draw
from .keys import random_bits, single_key, split
from .parameters import float_dtype, of_parameters, spread


@compound_draw()
def uniform(
    key: Any,
    shape: Any = (),
    dtype: DTypeLike | None = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Value:
    """Uniform on [minval, maxval): random mantissas of floats in [1, 2), shifted and scaled.

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.uniform(random.key(0), (3,)).round(3)
    Array([0.948, 0.979, 0.332], dtype=float32)
    >>> random.uniform(random.key(0), (3,), minval=-1.0, maxval=1.0).round(3)
    Array([ 0.895,  0.957, -0.335], dtype=float32)
    """
    key, found, sizes = single_key("uniform", key), float_dtype(dtype, "uniform"), canonical_shape(shape)
    low, high = spread(found, sizes, minval, maxval)
    width, mantissa = 8 * found.itemsize, int(dtypes.finfo(found).nmant)
    integer = np.dtype(f"uint{width}")
    random_width = 8 if mantissa < 8 else width
    random = convert(random_bits(key, random_width, sizes), integer, False)
    one = array_from_scalar(int(np.ones((), found).view(integer)), integer)
    floats = lax.bitcast_convert_type((random >> (random_width - mantissa)) | one, found)
    return lax.max(low, (floats - 1.0) * (high - low) + low)


def _above_minus_one(found: np.dtype[Any]) -> Any:
    """The smallest float above -1."""
    return np.nextafter(np.array(-1.0, found), np.array(0.0, found), dtype=found)


def _tiny(found: np.dtype[Any]) -> float:
    """The smallest normal float."""
    return float(dtypes.finfo(found).tiny)


@compound_draw()
def normal(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Normal of mean 0 and variance 1; complex dtypes: both parts have variance 1/2.

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.normal(random.key(0), (3,)).round(3)
    Array([ 1.623,  2.025, -0.434], dtype=float32)
    >>> random.normal(random.key(0), (2, 2), jnp.complex64).dtype
    dtype('complex64')
    """
    key = single_key("normal", key)
    if dtype is not None and dtypes.is_complex(dtypes.canonical_dtype(dtype)):
        found = dtypes.requested_dtype(dtype, "normal")
        real, imaginary = (normal(k, shape, dtypes.real_of(found)) for k in split(key))
        return lax.div(lax.complex(real, imaginary), lax.full((), math.sqrt(2), found))
    found = float_dtype(dtype, "normal")
    u = uniform(key, shape, found, _above_minus_one(found), 1.0)
    return math.sqrt(2) * lax.erf_inv(u)


@compound_draw()
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Normal of mean 0 and variance 1, restricted to (lower, upper).

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.truncated_normal(random.key(0), -1.0, 1.0, (3,)).round(3)
    Array([ 0.862,  0.941, -0.291], dtype=float32)
    """
    key, found, sizes, (low, high) = of_parameters("truncated_normal", key, dtype, shape, lower, upper)
    root = scalar_like(low, math.sqrt(2))
    a, b = (lax.erf(v / root) for v in (low, high))
    result = root * lax.erf_inv(uniform(key, sizes, found, a, b))
    inside_low = lax.nextafter(lax.stop_gradient(low), lax.full_like(low, math.inf))
    inside_high = lax.nextafter(lax.stop_gradient(high), lax.full_like(high, -math.inf))
    return lax.clamp(inside_low, result, inside_high)


@compound_draw()
def exponential(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Exponential of mean 1.

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.exponential(random.key(0), (3,)).round(3)
    Array([2.95 , 3.843, 0.404], dtype=float32)
    """
    u = uniform(single_key("exponential", key), shape, float_dtype(dtype, "exponential"))
    return -lax.log1p(-u)


def gumbel(
    key: Any, shape: Any = (), dtype: DTypeLike | None = None, mode: str | None = None, *, out_sharding: Any = None
) -> Value:
    """Standard Gumbel: -log(-log(u)).

    mode: how small a probability may be for its event to be drawn (in float32): "low" about 1e-7, "high" about 1e-14,
    for twice the random bits; "highest" (float32 only, else as "high") about 1e-19. None is "low".

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.gumbel(random.key(0), (3,)).round(3)
    Array([ 2.923,  3.833, -0.097], dtype=float32)
    """
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"gumbel: mode must be 'low', 'high' or 'highest', not {mode!r}")
    if out_sharding is not None:
        return computed_in(out_sharding, "gumbel", lambda: gumbel(key, shape, dtype, mode))
    if mode in (None, "low"):
        return _gumbel(key, shape, dtype)
    return _wide_gumbel(key, shape, dtype, mode)


@compound_draw(static=("shape", "dtype"))
def _gumbel(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    found = float_dtype(dtype, "gumbel")
    u = uniform(single_key("gumbel", key), shape, found, _tiny(found), 1.0)
    return -lax.log(-lax.log(u))


@compound(static=("shape", "dtype", "mode"))
def _wide_gumbel(key: Any, shape: Any, dtype: DTypeLike | None, mode: str) -> Value:
    """Of twice as many bits. The tail of large values needs small u in log(1 - u), which has them."""
    key, found, sizes = single_key("gumbel", key), float_dtype(dtype, "gumbel"), canonical_shape(shape)
    if mode == "highest" and found == np.float32:
        return _gumbel_of_64_bits(key, sizes)
    both = uniform(key, (2, *sizes), found)
    high, low = both[0], both[1]
    info = dtypes.finfo(found)
    u = lax.select(high >= 0.5, high, high + 2.0**-info.nmant * low + _tiny(found))
    return -lax.log(-lax.log1p(-u))


def _gumbel_of_64_bits(key: Value, sizes: tuple[int, ...]) -> Value:
    """From a fraction u of 64 bits, or 1 - u where u is not below 1/2: the smaller one keeps its small digits."""
    words = random_bits(key, 32, (2, *sizes))
    high, low = words[0], words[1]
    below = high < np.uint32(1 << 31)
    negated = lax.bitwise_not(high) + convert(lax.bitwise_not(low) == np.uint32(2**32 - 1), dtypes.uint32, False)
    first = lax.select(below, high, negated)
    second = lax.select(below, low, lax.bitwise_not(low) + np.uint32(1))
    u = _fraction(first) + _fraction(second) * np.float32(2.0**-32)
    return lax.select(below, -lax.log(-lax.log1p(-u)), -lax.log(-lax.log(u)))


def _fraction(word: Any) -> Any:
    """A 32-bit word as a float32 in [0, 1]."""
    return convert(word, dtypes.float32, False) * np.float32(2.0**-32)


@compound_draw()
def laplace(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Laplace of mean 0 and scale 1.

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.laplace(random.key(0), (3,)).round(3)
    Array([-2.257, -3.15 ,  0.409], dtype=float32)
    """
    found = float_dtype(dtype, "laplace")
    u = uniform(single_key("laplace", key), shape, found, _above_minus_one(found), 1.0)
    return lax.sign(u) * lax.log1p(-lax.abs(u))


@compound_draw()
def logistic(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Logistic of mean 0 and scale 1.

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.logistic(random.key(0), (3,)).round(3)
    Array([ 2.896,  3.822, -0.698], dtype=float32)
    """
    found = float_dtype(dtype, "logistic")
    u = uniform(single_key("logistic", key), shape, found, _tiny(found), 1.0)
    return lax.log(u) - lax.log1p(-u)
