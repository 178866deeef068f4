"""Numbers of events: geometric, Poisson, binomial and multinomial.

Poisson and binomial numbers come from one of two loops, whichever suits an element's parameters: counting waiting times
where few events are expected, rejection for the rest. Each iteration draws for all elements, until all are done; a loop
that no element needs makes no iteration. As in JAX, an element takes the last number that rejection accepts, so that it
depends on the number of iterations, and so on all elements; those that the other loop draws take part with a parameter
of their own.

Names, parameters and the use of keys follow jax.random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from .. import numpy as jnp
from ..autodiff.placed_results import computed_in
from ..numpy.promotion import check_arraylike, promote_dtypes_inexact, promote_inexact
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert
from .continuous import uniform
from .drawing import compound_draw
from .keys import clone, single_key, split
from .parameters import float_dtype, integer_dtype, sized, spread

FEW = 10.0
"""Where more events are expected, rejection is faster than counting."""


@compound_draw()
def geometric(
    key: Any, p: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """The number of trials up to the first success, each of probability `p`: at least 1.

    Integers of `dtype`, int32 by default; the parameters must broadcast to `shape`, which defaults to their broadcast
    shape. The same key gives the same numbers as in jax.random.

    >>> random.geometric(random.key(0), 0.5, (8,))
    Array([1, 1, 2, 2, 1, 3, 2, 1], dtype=int32)
    """
    check_arraylike("geometric", p)
    one, found = single_key("geometric", key), integer_dtype(dtype, "geometric")
    sizes = sized("geometric", shape, p)
    (probability,) = promote_inexact("geometric", p)
    (spread_out,) = spread(probability.aval.dtype, sizes, probability)
    u: Any = uniform(one, sizes, probability.aval.dtype)
    u = jnp.where(u == 0, 1, u)
    return convert(jnp.floor(jnp.log(u) / lax.log1p(-spread_out)) + 1, found, False)


# ---- Poisson


@compound(static=("shape", "dtype", "out_sharding"))
def poisson(
    key: Any, lam: Any, shape: Any = None, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Poisson of mean `lam`, computed in float32; -1 where `lam` is NaN.

    Integers of `dtype`, int32 by default; the parameters must broadcast to `shape`, which defaults to their broadcast
    shape. The same key gives the same numbers as in jax.random.

    >>> random.poisson(random.key(0), 4.0, (6,))
    Array([0, 1, 5, 5, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return computed_in(out_sharding, "poisson", lambda: poisson(key, lam, shape, dtype))
    one, found = single_key("poisson", key), integer_dtype(dtype, "poisson")
    sizes = sized("poisson", shape, lam)
    (mean,) = spread(dtypes.float32, sizes, lam)
    is_few = (mean != mean) | (mean < FEW)
    few = _poisson_by_counting(one, jnp.where(is_few, mean, 0), found)
    many = convert(_poisson_by_rejection(clone(one), mean, is_few), found, False)  # one of the two is used
    return jnp.where(mean == 0, 0, jnp.where(is_few, few, many))


def _poisson_by_counting(key: Value, mean: Any, dtype: np.dtype[Any]) -> Any:
    """How many exponential waiting times fit into `mean`: Knuth's algorithm, in logarithms."""

    def wait(state: Any) -> Any:
        key, count, log_product = state
        key, drawing = split(key)
        count = jnp.where(log_product > -mean, count + 1, count)
        return key, count, log_product + jnp.log(uniform(drawing, mean.shape, dtypes.float32))

    none = jnp.zeros(mean.shape, dtype)
    _, count, _ = lax.while_loop(
        lambda state: jnp.any(state[2] > -mean), wait, (key, none, jnp.zeros(mean.shape, dtypes.float32))
    )
    return count - 1


def _poisson_by_rejection(key: Value, mean: Any, is_few: Any) -> Any:
    """Transformed rejection with squeeze.

    Source: Hörmann, "The transformed rejection method for generating Poisson random variables" (1993), algorithm PTRS.
    """
    mean = jnp.where(is_few, 1e5, mean)
    b = 0.931 + 2.53 * jnp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    log_mean = jnp.log(mean)

    def propose(state: Any) -> Any:
        key, drawn, is_done = state
        key, for_u, for_v = split(key, 3)
        u = uniform(for_u, mean.shape, mean.dtype) - 0.5
        v = uniform(for_v, mean.shape, mean.dtype)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + mean + 0.43)
        s = jnp.log(v * inverse_alpha / (a / (us * us) + b))
        within = s <= -mean + k * log_mean - lax.lgamma(k + 1)
        outside = (k < 0) | ((us < 0.013) & (v > us))
        accepted = ((us >= 0.07) & (v <= v_r)) | (~outside & within)
        return key, jnp.where(accepted, k, drawn), is_done | accepted

    start = (key, jnp.full(mean.shape, -1, mean.dtype), jnp.broadcast_to(jnp.all(is_few), mean.shape))
    return lax.while_loop(lambda state: jnp.any(~state[2]), propose, start)[1]


# ---- binomial


@compound(static=("shape", "dtype"))
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: DTypeLike | None = None) -> Value:
    """The number of successes in `n` trials of probability `p`, as a float; NaN where a parameter is out of range.

    Floating-point numbers of `dtype`, float32 by default; the parameters must broadcast to `shape`, which defaults to
    their broadcast shape. The same key gives the same numbers as in jax.random.

    >>> random.binomial(random.key(0), 10, 0.5, (5,))
    Array([6., 7., 5., 6., 7.], dtype=float32)
    """
    check_arraylike("binomial", n, p)
    one, found = single_key("binomial", key), float_dtype(dtype, "binomial")
    return _binomial(one, n, p, sized("binomial", shape, n, p), found)


def _binomial(key: Value, n: Any, p: Any, sizes: tuple[int, ...], found: np.dtype[Any]) -> Value:
    """Of the outcome that is less likely; the other one's number is the rest."""
    (probability,) = promote_inexact("binomial", p)
    count, p = spread(probability.aval.dtype, sizes, n, probability)
    is_less_likely = p < 0.5
    q = jnp.where(is_less_likely, p, 1 - p)
    bad_count, is_nan, is_infinite = (count != count) | (count < 0), q != q, jnp.isinf(count)
    is_bad = bad_count | is_nan | (q < 0)
    q = jnp.where(is_nan | (q < 0), 0.01, q)
    is_few = bad_count | (count * q <= FEW)
    count = jnp.floor(count)
    few = _binomial_by_counting(key, jnp.where(is_few, count, -1), q)
    many = _binomial_by_rejection(clone(key), count, q, is_few)  # one of the two is used
    drawn = convert(jnp.where(is_few, few, many), found, False)
    drawn = jnp.where(is_infinite & ~is_bad, np.inf, jnp.where(is_bad, np.nan, drawn))
    is_final = is_less_likely | bad_count | is_nan | is_infinite
    return jnp.where(is_final, drawn, convert(count, found, False) - drawn)


def _binomial_by_counting(key: Value, count: Any, q: Any) -> Any:
    """How many geometric waiting times fit into `count` trials."""
    log_failure = lax.log1p(-q)

    def wait(state: Any) -> Any:
        key, successes, trials = state
        drawing, key = split(key)
        successes = jnp.where(trials <= count, successes + 1, successes)
        u = uniform(drawing, q.shape, q.dtype)
        return key, successes, trials + jnp.ceil(jnp.log(u) / log_failure)

    zero = jnp.zeros(q.shape, q.dtype)
    return lax.while_loop(lambda state: jnp.any(state[2] <= count), wait, (key, zero, zero))[1] - 1


def _binomial_by_rejection(key: Value, count: Any, q: Any, is_few: Any) -> Any:
    """Transformed rejection with squeeze.

    Source: Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS.
    """
    count, q = jnp.where(is_few, 1e4, count), jnp.where(is_few, 0.5, q)
    deviation = jnp.sqrt(count * q * (1 - q))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q
    c = count * q + 0.5
    v_r = 0.92 - 4.2 / b
    r = q / (1 - q)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = jnp.floor((count + 1) * q)

    def propose(state: Any) -> Any:
        key, drawn, is_done = state
        key, for_u, for_v = split(key, 3)
        u = uniform(for_u, q.shape, q.dtype) - 0.5
        v = uniform(for_v, q.shape, q.dtype)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / us + b) * u + c)
        bound = (
            (mode + 0.5) * jnp.log((mode + 1) / (r * (count - mode + 1)))
            + (count + 1) * jnp.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * jnp.log(r * (count - k + 1) / (k + 1))
            + (_stirling_tail(mode) + _stirling_tail(count - mode))
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        within = jnp.log(v * alpha / (a / (us * us) + b)) <= bound
        accepted = ((us >= 0.07) & (v <= v_r)) | (~((k < 0) | (k > count)) & within)
        return key, jnp.where(accepted, k, drawn), is_done | accepted

    start = (key, jnp.full(q.shape, -1, q.dtype), jnp.broadcast_to(jnp.all(is_few), q.shape))
    return lax.while_loop(lambda state: jnp.any(~state[2]), propose, start)[1]


_STIRLING_TAILS = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211),
    *(0.0138761288230707, 0.0118967099458917, 0.010411265261972, 0.00925546218271273, 0.00833056343336287),
)
"""log(k!) minus Stirling's formula for (k + 1), for k from 0 to 9."""


def _stirling_tail(k: Any) -> Any:
    """log(k!) minus Stirling's formula, by a table or by its series."""
    inverse_square = 1 / ((k + 1) * (k + 1))
    series = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 * inverse_square) * inverse_square) / (k + 1)
    for small, tail in enumerate(_STIRLING_TAILS):
        series = jnp.where(k == small, tail, series)
    return series


@compound(static=("shape", "dtype", "unroll"))
def multinomial(
    key: Any, n: Any, p: Any, *, shape: Any = None, dtype: DTypeLike | None = None, unroll: int | bool = 1
) -> Value:
    """How often each outcome occurs in `n` trials: [..., k] for probabilities `p` [..., k], as floats.

    `shape`: of the result, with the outcomes as its last dimension; by default the shape of `p`. Each outcome's number
    is binomial among the trials that are left.

    >>> random.multinomial(random.key(0), 100.0, jnp.array([0.2, 0.3, 0.5]))
    Array([14., 25., 61.], dtype=float32)
    """
    check_arraylike("multinomial", n, p)
    one = single_key("multinomial", key)
    trials, probabilities = promote_dtypes_inexact(n, p)
    sizes = sized("multinomial", shape, probabilities)
    found = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "multinomial")
    trials = jnp.broadcast_to(trials, sizes[:-1])
    parts: Any = jnp.moveaxis(jnp.broadcast_to(probabilities, sizes), -1, 0)
    left: Any = lax.cumsum(parts, 0, reverse=True)
    ratios = parts / jnp.where(left == 0, 1, left)

    def draw(rest: Any, outcome: Any) -> tuple[Any, Any]:
        ratio, key = outcome
        count: Any = _binomial(key, rest, jnp.clip(ratio, 0, 1), rest.shape, rest.dtype)
        return rest - count, count

    _, counts = lax.scan(draw, trials, (ratios, split(one, parts.shape[0])), unroll=unroll)
    return convert(jnp.moveaxis(as_value(counts), 0, -1), found, False)
