"""Choosing among elements: permutations, samples with and without replacement, categories.

Names and algorithms follow jax.random.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..autodiff.placed_results import computed_in
from ..hlo.sizes import as_size, is_symbolic
from ..lax.movement import canonical_axis, canonical_shape
from ..numpy.promotion import check_arraylike, promote_inexact
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, rank_of, resolved, shape_of
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.ops import convert
from .continuous import gumbel, uniform
from .discrete import randint
from .keys import random_bits, single_key, split
from .parameters import sized


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None) -> Value:
    """The elements of `x` along an axis in random order; of ``arange(x)`` if x is an integer.

    independent: each vector along the axis has its own order; otherwise slices stay whole.

    >>> random.permutation(random.key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    >>> random.permutation(random.key(1), jnp.array([[1, 2], [3, 4], [5, 6]]))
    Array([[5, 6],
           [1, 2],
           [3, 4]], dtype=int32)
    """
    if out_sharding is not None:
        return computed_in(out_sharding, "permutation", lambda: permutation(key, x, axis, independent))
    check_arraylike("permutation", x)
    axis = canonical_axis(axis, rank_of(x) or 1)
    if rank_of(x):
        return _permuted(key, x, axis, bool(independent))
    return _permuted_range(key, _integer("permutation", x))


def _integer(name: str, x: Any) -> int:
    if not dtypes.is_integer(as_value(x).aval.dtype):
        raise OperandError(
            f"{name}: x must be an integer or at least 1-dimensional, not {as_value(x).aval.str_short()}", name
        )
    return as_size(x)


@compound(static=("size",))
def _permuted_range(key: Any, size: int) -> Value:
    return _shuffled(single_key("permutation", key), jnp.arange(size), 0)


@compound(static=("axis", "independent"))
def _permuted(key: Any, x: Any, axis: int, independent: bool) -> Value:
    one, value = single_key("permutation", key), as_value(x)
    if independent or value.aval.ndim == 1:
        return _shuffled(one, value, axis)
    order = _shuffled(one, jnp.arange(value.aval.shape[axis]), 0)
    return _taken(value, order, axis)


def _taken(x: Value, indices: Value, axis: int) -> Value:
    """Slices of `x` at indices along an axis, all of them in bounds."""
    taken: Any = x
    return taken.at[(slice(None),) * axis + (indices,)].get(mode="promise_in_bounds")  # type: ignore[no-any-return]


def _shuffled(key: Value, x: Value, axis: int) -> Value:
    """Sorted by random 32-bit numbers, repeatedly with new ones, until equal numbers in all rounds are unlikely:
    n elements need 3 log(n) / log(2**32) rounds."""
    if is_symbolic(x.aval.size):
        raise UnsupportedError(
            f"permutation: the number of rounds depends on the size, and that of {x.aval.str_short()} is symbolic"
        )
    turns = math.ceil(3 * math.log(max(1, math.prod(x.aval.shape))) / math.log(2**32 - 1))
    for _ in range(turns):
        key, drawing = split(key)
        _, x = lax.sort_key_val(random_bits(drawing, 32, x.aval.shape), x, axis)
    return x


def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Value:
    """A sample of slices of `a` along an axis, or of ``arange(a)`` if a is an integer.

    Args:
      shape: the shape of the sample, which takes the place of the axis in the result.
      replace: whether a slice can be drawn several times.
      p: the probabilities, a vector; uniform if it is None.
      mode: for `p` without replacement, the mode of `gumbel`.

    >>> random.choice(random.key(0), jnp.array([10, 20, 30, 40]), (3,), replace=False)
    Array([10, 20, 40], dtype=int32)
    >>> random.choice(random.key(0), 3, (6,), p=jnp.array([0.0, 0.5, 0.5]))
    Array([1, 1, 2, 2, 1, 2], dtype=int32)
    """
    if not np.iterable(shape):
        raise TypeError(f"shape argument of random.choice must be a sequence, got {shape}")
    check_arraylike("choice", a)
    a = resolved(a)
    sizes, rank = canonical_shape(shape), rank_of(a)
    if rank:
        axis = canonical_axis(axis, rank)
    count = a.shape[axis] if rank else _integer("choice", a)
    draws = math.prod(sizes)
    if draws == 0:
        return jnp.zeros(sizes, as_value(a).aval.dtype)
    if count <= 0:
        raise ValueError("choice: a must be greater than 0 unless no samples are taken")
    if not replace and draws > count:
        raise ValueError(
            f"choice: cannot take a larger sample (size {draws}) than population (size {count}) when 'replace=False'"
        )
    if p is None and not replace:
        order = permutation(key, a if rank else count, axis)
        chosen = order[(slice(None),) * axis + (slice(draws),)] if rank else order[:draws]
        return jnp.reshape(chosen, _shape_of_sample(a, rank, sizes, axis))
    if p is None:
        indices = randint(key, sizes, 0, count)
    else:
        check_arraylike("choice", p)
        if shape_of(p) != (count,):
            raise ValueError(
                "choice: p must be None or a 1D vector with the same size as a.shape[axis]; p has shape "
                f"{shape_of(p)} and a.shape[axis] is {count}"
            )
        indices = _weighted(key, p, sizes) if replace else _weighted_without(key, p, sizes, mode)
    return _slices(a, indices, axis) if rank else indices


def _shape_of_sample(a: Any, rank: int, sizes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*a.shape[:axis], *sizes, *a.shape[axis + 1 :]) if rank else sizes


@compound(static=("axis",))
def _slices(a: Any, indices: Any, axis: int) -> Value:
    return _taken(as_value(a), indices, axis)


@compound(static=("sizes",))
def _weighted(key: Any, p: Any, sizes: tuple[int, ...]) -> Value:
    """Indices at which the cumulative sum of p passes uniform numbers."""
    (weights,) = promote_inexact("choice", p)
    sums = jnp.cumsum(weights)
    u = uniform(single_key("choice", key), sizes, sums.dtype)
    return convert(jnp.searchsorted(sums, sums[-1] * (1 - u)), dtypes.default_int(), False)


@compound(static=("sizes", "mode"))
def _weighted_without(key: Any, p: Any, sizes: tuple[int, ...], mode: str | None) -> Value:
    """The largest of log(p) plus Gumbel noise.

    Source: Kool, van Hoof, Welling, "Stochastic beams and where to find them: the Gumbel-top-k trick" (ICML 2019).
    """
    (weights,) = promote_inexact("choice", p)
    noise = gumbel(single_key("choice", key), weights.aval.shape, weights.aval.dtype, mode)
    _, indices = lax.top_k(noise + lax.log(weights), math.prod(sizes))
    return lax.reshape(convert(indices, dtypes.default_int(), False), sizes)


@compound(static=("axis", "shape", "replace", "mode", "out_sharding"))
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Indices along `axis` with probabilities softmax(logits), by the Gumbel-max trick.

    Args:
      shape: the result's shape, which ends with the shape of `logits` without the axis; the default is that.
      replace: if False, the dimensions of `shape` in front hold different indices.
      mode: the mode of `gumbel`.

    >>> random.categorical(random.key(0), jnp.log(jnp.array([0.1, 0.1, 0.8])), shape=(8,))
    Array([1, 2, 2, 1, 2, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return computed_in(out_sharding, "categorical", lambda: categorical(key, logits, axis, shape, replace, mode))
    check_arraylike("categorical", logits)
    key, x = single_key("categorical", key), as_value(logits)
    x = x if dtypes.is_floating(x.aval.dtype) else convert(x, dtypes.default_float(), False)
    axis = canonical_axis(axis, x.aval.ndim)
    batch = tuple([s for d, s in enumerate(x.aval.shape) if d != axis])
    sizes = batch if shape is None else sized("categorical", shape, np.empty(batch))
    prefix = sizes[: len(sizes) - len(batch)]
    if not replace:
        return _categories_without(key, x, axis, prefix, batch, mode)
    place = len(prefix) + axis
    noise_shape = list(sizes)
    noise_shape.insert(place, x.aval.shape[axis])
    return jnp.argmax(gumbel(key, noise_shape, x.aval.dtype, mode) + x, axis=place)


def _categories_without(
    key: Value, x: Value, axis: int, prefix: tuple[int, ...], batch: tuple[int, ...], mode: str | None
) -> Value:
    count, size = math.prod(prefix), x.aval.shape[axis]
    if count > size:
        raise ValueError(
            f"categorical: Number of samples without replacement ({count}) cannot exceed number of categories ({size})"
        )
    noisy = gumbel(key, x.aval.shape, x.aval.dtype, mode) + x
    _, indices = lax.top_k(jnp.moveaxis(noisy, axis, -1), count)
    return lax.reshape(jnp.moveaxis(indices, -1, 0), (*prefix, *batch))
