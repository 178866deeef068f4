"""Gamma numbers, and the distributions that are made of them.

A gamma number is drawn by rejection: proposals are made until one is accepted, which the first is with a probability of
95% at least. So the first proposals of all elements are computed at once, in one pass that threads share; a loop over
the elements then continues with those whose first proposal was refused. Each element has a key of its own, so that its
number does not depend on the others.

Source: Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS 26, 2000); names, parameters and
the use of keys: jax.random.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from numpy.typing import DTypeLike

from .. import lax
from .. import numpy as jnp
from ..autodiff.placed_results import computed_in
from ..autodiff.vmap import vmap
from ..extend.primitive import Primitive
from ..lax.movement import canonical_shape
from ..numpy.promotion import check_arraylike
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .continuous import exponential, normal, uniform
from .discrete import rademacher
from .drawing import compound_draw
from .keys import single_key, split
from .parameters import float_dtype, of_parameters, sized

# ---- gamma


@compound_draw()
def gamma(key: Any, a: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Gamma of shape parameter `a` and scale 1. Differentiable in `a`, with the distribution function held fixed.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.gamma(random.key(0), 2.0, (3,)).round(2)
    Array([1.59, 1.76, 1.13], dtype=float32)
    >>> random.gamma(random.key(0), jnp.array([0.5, 1.0, 50.0])).shape
    (3,)
    """
    return _gamma("gamma", key, a, shape, dtype, False)


@compound_draw()
def loggamma(key: Any, a: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """The logarithm of a gamma number, exact where the number itself would underflow, as it does for small `a`.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.loggamma(random.key(0), 0.001, (2,)).round()
    Array([-111.,  -96.], dtype=float32)
    """
    return _gamma("loggamma", key, a, shape, dtype, True)


def _gamma(name: str, key: Any, a: Any, shape: Any, dtype: DTypeLike | None, log_space: bool) -> Value:
    one, _, _, parameters = of_parameters(name, key, dtype, shape, a)
    drawn: Value = random_gamma_p.bind(one, *parameters, log_space=log_space)
    return drawn


random_gamma_p: Primitive = Primitive("random_gamma")
"""Operands: keys [*k], and parameters [*k, *n]; each key is for n of them. Parameter: log_space."""
random_gamma_p.uses_keys(0)  # once, though a proposal that is refused may be drawn again from the same key


@random_gamma_p.def_meaning
def _random_gamma(keys: Any, a: Any, *, log_space: bool) -> Any:
    shape, each = a.shape, math.prod(a.shape[keys.ndim :])
    if math.prod(shape) == 0:
        return a
    one_each = vmap(lambda k: split(k, each))(keys.reshape(-1)).reshape(-1)
    return _draws(one_each, a.reshape(-1), log_space).reshape(shape)


def _draws(keys: Any, a: Any, log_space: bool) -> Any:
    """One gamma number from each key. For a < 1, one of a + 1 times u ** (1 / a)."""
    is_large = a >= 1
    d = jnp.where(is_large, a, a + 1) - 1.0 / 3.0
    c = (1.0 / 3.0) / jnp.sqrt(d)
    both = vmap(split)(keys)
    cube = _accepted_cubes(both[:, 0], c, d)
    for_power = both[:, 1]
    if log_space:
        log_u = -vmap(lambda k: exponential(k, (), a.dtype))(for_power)
        power = jnp.where(is_large | (log_u == 0), 0, log_u * (1 / a))
        return jnp.log(d) + jnp.log(cube) + power
    u = 1 - vmap(lambda k: uniform(k, (), a.dtype))(for_power)
    return d * cube * jnp.where(is_large, 1, u ** (1 / a))


def _accepted_cubes(keys: Any, c: Any, d: Any) -> Any:
    """(1 + c x) ** 3 for the first normal x that is accepted; all arguments are vectors."""
    next_keys, cubes, is_accepted = vmap(_first_proposal)(keys, c, d)

    def go_on(element: Any) -> Any:
        key, cube, done, c, d = element

        def propose(state: Any) -> Any:
            key, for_normal, for_u = split(state[0], 3)
            _, x, v = lax.while_loop(lambda s: s[2] <= 0, lambda s: _normal_and_base(s[0], c), (for_normal, 0 * c, -c))
            return (key, v * v * v, _accepts(x, v * v * v, for_u, d))

        return lax.while_loop(lambda state: ~state[2], propose, (key, cube, done))[1]

    return lax.map(go_on, (next_keys, cubes, is_accepted, c, d))


def _normal_and_base(key: Any, c: Any) -> tuple[Any, Any, Any]:
    key, drawing = split(key)
    x = normal(drawing, (), c.dtype)
    return key, x, 1 + x * c


def _accepts(x: Any, cube: Any, key: Any, d: Any) -> Any:
    """The second condition follows from the first, which is cheap to test; both are computed in any case."""
    square = x * x
    u = uniform(key, (), d.dtype)
    return (u < 1 - 0.0331 * (square * square)) | (jnp.log(u) < square * 0.5 + d * (1 - cube + jnp.log(cube)))


def _first_proposal(key: Any, c: Any, d: Any) -> tuple[Any, Any, Any]:
    """(key to go on with, cube, whether it is accepted). Where the base 1 + c x is not positive, the loop starts again
    from the same key. For parameters that no distribution has, d is not positive, or NaN: no proposal would be
    accepted, so the first one is, which is NaN."""
    next_key, for_normal, for_u = split(key, 3)
    _, x, base = _normal_and_base(for_normal, c)
    is_valid = base > 0
    cube = base * base * base
    is_accepted = (is_valid & _accepts(x, cube, for_u, d)) | ~(d > 0)
    return jnp.where(is_valid, next_key, key), cube, is_accepted


@random_gamma_p.def_jvp
def _random_gamma_jvp(primals: Any, tangents: Any, *, log_space: bool) -> tuple[Any, Any]:
    """The derivative of a gamma number in `a` at which the distribution function keeps its value.

    For x close to 0 the distribution function is x**a / gamma(a + 1), so the derivative of log x is
    (digamma(a + 1) - log x) / a, also where x underflows. An overflow gives the largest number instead: the factor that
    follows is 0 where that number is no part of a result.
    """
    keys, a = primals
    drawn = random_gamma_p.bind(keys, a, log_space=log_space)
    if not log_space:
        return drawn, tangents[1] * lax.random_gamma_grad(a, drawn)
    is_small = drawn < -40.0
    number = jnp.exp(jnp.where(is_small, 0.0, drawn))
    near_zero = (lax.digamma(a + 1) - drawn) / a
    derivative = jnp.where(is_small, near_zero, lax.random_gamma_grad(a, number) / number)
    return drawn, tangents[1] * jnp.minimum(derivative, float(dtypes.finfo(a.dtype).max))


@random_gamma_p.def_batch
def _random_gamma_batch(size: int, batched: Any, keys: Any, a: Any, *, log_space: bool) -> tuple[Any, Any]:
    """Keys have the batch as one more dimension in front, as parameters have."""
    if not batched[0]:
        keys = jnp.broadcast_to(keys, (size, *keys.shape))
    if not batched[1]:
        a = jnp.broadcast_to(a, (size, *a.shape))
    return random_gamma_p.bind(keys, a, log_space=log_space), True


# ---- made of gamma numbers


@compound_draw()
def beta(
    key: Any, a: Any, b: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Beta of parameters `a` and `b`: x / (x + y) for gamma numbers x and y of these parameters.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.beta(random.key(0), 2.0, 5.0, (3,)).round(3)
    Array([0.17 , 0.274, 0.497], dtype=float32)
    """
    key, found, sizes, (first, second) = of_parameters("beta", key, dtype, shape, a, b)
    keys = split(key)
    x, y = (loggamma(k, p, sizes, found) for k, p in zip(keys, (first, second), strict=True))
    larger = lax.max(x, y)
    x, y = jnp.exp(x - larger), jnp.exp(y - larger)
    return lax.div(x, lax.add(x, y))


@compound(static=("shape", "dtype", "out_sharding"))
def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Dirichlet: vectors of gamma numbers of parameters `alpha` [..., n], divided by their sums: [*shape, n].

    >>> x = random.dirichlet(random.key(0), jnp.array([1.0, 2.0, 3.0]), (5,))
    >>> x.shape, x.sum(axis=1).round(3)
    ((5, 3), Array([1., 1., 1., 1., 1.], dtype=float32))
    """
    from ..nn.normalization import softmax

    if out_sharding is not None:
        return computed_in(out_sharding, "dirichlet", lambda: dirichlet(key, alpha, shape, dtype))
    check_arraylike("dirichlet", alpha)
    key, found, parameters = single_key("dirichlet", key), float_dtype(dtype, "dirichlet"), as_value(alpha)
    if parameters.aval.ndim < 1:
        raise OperandError(f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {parameters.aval.ndim}", "dirichlet")
    *batch, size = parameters.aval.shape
    sizes = sized("dirichlet", tuple(batch) if shape is None else shape, jnp.empty(batch))
    return softmax(loggamma(key, parameters, (*sizes, size), found), -1)


@compound_draw()
def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Chi-square with `df` degrees of freedom.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.chisquare(random.key(0), 3.0, (3,)).round(2)
    Array([2.21, 2.49, 1.46], dtype=float32)
    """
    key, found = single_key("chisquare", key), float_dtype(dtype, "chisquare")
    sizes = sized("chisquare", shape, df)
    half = lax.convert_element_type(df, found)
    return jnp.exp(loggamma(key, half / 2, sizes, found)) * 2


@compound_draw()
def t(key: Any, df: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Student's t with `df` degrees of freedom.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.t(random.key(0), 4.0, (3,)).round(2)
    Array([ 0.72, -2.42, -1.41], dtype=float32)
    """
    key, found, sizes, (freedom,) = of_parameters("t", key, dtype, shape, df)
    half = freedom / 2
    for_normal, for_gamma = split(key)
    n = normal(for_normal, sizes, found)
    return n * jnp.sqrt(half / gamma(for_gamma, half, sizes, found))


@compound_draw()
def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Any = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """F: the quotient of two chi-square numbers, each divided by its degrees of freedom `dfnum` and `dfden`.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.f(random.key(0), 3.0, 5.0, (3,)).round(2)
    Array([2.58, 0.19, 0.16], dtype=float32)
    """
    key, found, sizes, (above, below) = of_parameters("f", key, dtype, shape, dfnum, dfden)
    for_below, for_above = split(key)
    return lax.div(
        lax.div(chisquare(for_above, above, sizes, found), above),
        lax.div(chisquare(for_below, below, sizes, found), below),
    )


@compound_draw()
def generalized_normal(
    key: Any, p: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """With a density proportional to exp(-abs(x) ** p).

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> random.generalized_normal(random.key(0), 1.5, (3,)).round(2)
    Array([ 1.06,  0.09, -1.38], dtype=float32)
    """
    key, found = single_key("generalized_normal", key), float_dtype(dtype, "generalized_normal")
    sizes = canonical_shape(shape)
    for_gamma, for_sign = split(key)
    power = 1 / as_value(p)
    return rademacher(for_sign, sizes, found) * gamma(for_gamma, power, sizes, found) ** power


def ball(
    key: Any, d: int, p: Any = 2, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Uniform in the unit ball of the p-norm in `d` dimensions: [*shape, d].

    Source: Barthe, Guédon, Mendelson, Naor, "A probabilistic approach to the geometry of the l_p^n-ball" (2005).

    Floating-point numbers of `dtype`, float32 by default, in an array of `shape`; the same key gives the same numbers
    as in jax.random.

    >>> x = random.ball(random.key(0), 3, shape=(100,))
    >>> x.shape, bool((jnp.linalg.norm(x, axis=1) <= 1).all())
    ((100, 3), True)
    """
    size, sizes = operator.index(d), canonical_shape(shape)
    return computed_in(out_sharding, "ball", lambda: _ball(key, p, size, sizes, dtype))


@compound(static=("d", "shape", "dtype"))
def _ball(key: Any, p: Any, d: int, shape: Any, dtype: DTypeLike | None) -> Value:
    for_direction, for_radius = split(single_key("ball", key))
    g = generalized_normal(for_direction, p, (*shape, d), dtype)
    e = exponential(for_radius, shape, dtype)
    norm = (jnp.sum(jnp.abs(g) ** p, -1) + e) ** (1 / as_value(p))
    return lax.div(g, jnp.broadcast_to(jnp.expand_dims(norm, -1), g.shape))
