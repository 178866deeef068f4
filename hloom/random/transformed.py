"""Distributions with draws that are formulas of uniform, normal or exponential draws.

Names, parameters and formulas follow jax.random.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from .. import numpy as jnp
from ..lax.movement import canonical_shape
from ..tracer import dtypes
from ..tracer.arrays.array import shape_of
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .continuous import exponential, normal, uniform
from .discrete import rademacher
from .drawing import compound_draw
from .keys import single_key, split
from .parameters import float_dtype, of_parameters, sized, spread

_ONE = np.float32(1)


@compound_draw()
def cauchy(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Cauchy of location 0 and scale 1: tan(pi (u - 1/2)).

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.cauchy(random.key(0), (3,)).round(2)
    Array([ 6.03, 14.84, -0.58], dtype=float32)
    """
    found = float_dtype(dtype, "cauchy")
    u = uniform(single_key("cauchy", key), shape, found, float(dtypes.finfo(found).eps), 1.0)
    return lax.tan(math.pi * (u - 0.5))


@compound_draw()
def pareto(key: Any, b: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Pareto with density b / x**(b + 1) above 1. `shape`: the shape of `b` by default.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.pareto(random.key(0), 3.0, (3,)).round(2)
    Array([2.67, 3.6 , 1.14], dtype=float32)
    """
    key, found = single_key("pareto", key), float_dtype(dtype, "pareto")
    sizes = sized("pareto", shape, b)
    return lax.exp(lax.div(exponential(key, sizes, found), *spread(found, sizes, b)))


@compound_draw()
def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Rayleigh: the length of a vector of two normal numbers of standard deviation `scale`.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.rayleigh(random.key(0), 2.0, (3,)).round(2)
    Array([0.66, 0.42, 2.97], dtype=float32)
    """
    key, found, sizes, (sigma,) = of_parameters("rayleigh", key, dtype, shape, scale)
    logarithm = lax.log(uniform(key, sizes, found))
    return lax.mul(sigma, lax.sqrt(logarithm * -2.0))


@compound_draw()
def lognormal(
    key: Any,
    sigma: Any = _ONE,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """exp of a normal number of mean 0 and standard deviation `sigma`; complex dtypes: of a complex normal one.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.lognormal(random.key(0), 0.5, (3,)).round(2)
    Array([2.25, 2.75, 0.81], dtype=float32)
    """
    key, found = single_key("lognormal", key), dtypes.default_float()
    if dtype is not None:
        found = dtypes.requested_dtype(dtype, "lognormal")
    if not dtypes.is_inexact(found):
        raise OperandError(
            f"dtype argument to `lognormal` must be a float or complex dtype, got {found.name}", "lognormal"
        )
    sizes = sized("lognormal", shape, sigma)
    return lax.exp(lax.mul(normal(key, sizes, found), *spread(found, sizes, sigma)))


@compound(static=("shape", "dtype"))
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Weibull: scale * e ** (1 / concentration) for exponential e. `shape`: the shape of the draws; both broadcast with
    it.

    >>> random.weibull_min(random.key(0), 1.0, 2.0, (3,)).round(2)
    Array([1.72, 1.96, 0.64], dtype=float32)
    """
    key, found = single_key("weibull_min", key), float_dtype(dtype, "weibull_min")
    u = uniform(key, canonical_shape(shape), found)
    drawn: Value = jnp.power(-lax.log1p(-u), 1.0 / jnp.asarray(concentration)) * scale
    return drawn


@compound_draw()
def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """With a density that rises from 0 at `left` to its maximum at `mode`, and falls to 0 at `right`.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.triangular(random.key(0), 0.0, 1.0, 4.0, (3,)).round(2)
    Array([3.21, 3.49, 1.17], dtype=float32)
    """
    key, found, sizes, (low, top, high) = of_parameters("triangular", key, dtype, shape, left, mode, right)
    u = uniform(key, sizes, found)
    rising = low + lax.sqrt(u * (high - low) * (top - low))
    falling = high - lax.sqrt((1 - u) * (high - low) * (high - top))
    return lax.select(u < (top - low) / (high - low), rising, falling)


@compound_draw()
def wald(key: Any, mean: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Wald (inverse Gaussian) of scale 1.

    Source: Michael, Schucany, Haas, "Generating random variates using transformations with multiple roots" (1976).

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.wald(random.key(0), 2.0, (3,)).round(2)
    Array([0.53, 0.6 , 0.73], dtype=float32)
    """
    key, found, sizes, (mu,) = of_parameters("wald", key, dtype, shape, mean)
    for_normal, for_choice = split(key)
    y = lax.integer_pow(normal(for_normal, sizes, found), 2)
    z = uniform(for_choice, sizes, found)
    square = lax.integer_pow(mu, 2)
    root = lax.sqrt(4 * mu * y + square * lax.integer_pow(y, 2))
    x = mu + square * y / 2 - mu / 2 * root
    return lax.select(z <= mu / (mu + x), x, square / x)


@compound_draw()
def maxwell(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Maxwell: the length of a vector of three standard normal numbers.

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.maxwell(random.key(0), (3,)).round(2)
    Array([2.63, 0.99, 0.96], dtype=float32)
    """
    key, found = single_key("maxwell", key), float_dtype(dtype, "maxwell")
    return jnp.linalg.norm(normal(key, (*canonical_shape(shape), 3), found), axis=-1)


@compound(static=("shape", "dtype"))
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Maxwell with a random sign, times `scale`, plus `loc`.

    The result's shape is `shape` (by default the parameters' shape), followed by the parameters' shape.

    >>> random.double_sided_maxwell(random.key(0), 0.0, 1.0, (3,)).round(2)
    Array([ 1.55,  1.57, -2.08], dtype=float32)
    """
    key, found = single_key("double_sided_maxwell", key), float_dtype(dtype, "double_sided_maxwell")
    own = lax.broadcast_shapes(shape_of(loc), shape_of(scale))
    sizes = (*(canonical_shape(shape) or own), *own)
    for_length, for_sign = split(key)
    drawn: Value = rademacher(for_sign, sizes, found) * maxwell(for_length, sizes, found) * scale + loc
    return drawn
