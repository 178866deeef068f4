"""Bits, integers, and distributions of integers and booleans.

How bits become numbers follow jax.random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from ..autodiff.placed_results import computed_in
from ..lax.movement import canonical_shape
from ..lax.reduce import limits
from ..numpy.promotion import broadcast_to_shape, strong
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert, scalar_like
from .continuous import uniform
from .drawing import compound_draw
from .keys import random_bits, single_key, split
from .parameters import integer_dtype, sized


@compound_draw(uses_keys=True)
def bits(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """Random unsigned integers; by default as wide as default integers are (uint32 without x64).

    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    >>> random.bits(random.key(0), (4,), jnp.uint8)
    Array([167, 146,  40,  53], dtype=uint8)
    """
    default = np.dtype(f"uint{8 * dtypes.default_int().itemsize}")
    found = default if dtype is None else dtypes.requested_dtype(dtype, "bits")
    if found.kind != "u":
        raise OperandError(f"dtype argument to `bits` must be an unsigned int dtype, got {found.name}", "bits")
    return random_bits(single_key("bits", key), 8 * found.itemsize, canonical_shape(shape))


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Value:
    """True with probability p, a float.

    mode: with "low" probabilities below about 1e-7 (in float32) never come true; "high" takes twice the bits and is
    right down to about 1e-14.

    >>> random.bernoulli(random.key(0), 0.5, (5,))
    Array([False, False,  True,  True, False], dtype=bool)
    """
    if mode not in ("low", "high"):
        raise ValueError(f"bernoulli: mode must be 'low' or 'high', not {mode!r}")
    draw = _bernoulli if mode == "low" else _precise_bernoulli
    return computed_in(out_sharding, "bernoulli", lambda: draw(key, p, shape))


@compound_draw(static=("shape",))
def _bernoulli(key: Any, p: Any, shape: Any = None) -> Value:
    key, probability = single_key("bernoulli", key), _probability(p)
    sizes = sized("bernoulli", shape, probability)
    return lax.lt(uniform(key, sizes, probability.aval.dtype), broadcast_to_shape(probability, sizes))


@compound(static=("shape",))
def _precise_bernoulli(key: Any, p: Any, shape: Any) -> Value:
    """The second half of the bits decides where the first half equals p's."""
    key, probability = single_key("bernoulli", key), _probability(p)
    sizes, found = sized("bernoulli", shape, probability), probability.aval.dtype
    both = uniform(key, (2, *sizes), found)
    lowest = 2.0 ** -dtypes.finfo(found).nmant
    return lax.lt(both[1] * lowest, lax.sub(broadcast_to_shape(probability, sizes), both[0]))


def _probability(p: Any) -> Value:
    value = as_value(p)
    if not dtypes.is_floating(value.aval.dtype):
        raise OperandError(
            f"bernoulli probability `p` must have a floating dtype, got {value.aval.dtype.name}", "bernoulli"
        )
    return strong(value)


@compound_draw()
def rademacher(key: Any, shape: Any = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Value:
    """-1 or 1, each with probability 1/2.

    Of `dtype`, int32 by default, in an array of `shape`.

    >>> random.rademacher(random.key(0), (5,))
    Array([-1, -1,  1,  1, -1], dtype=int32)
    """
    found = dtypes.requested_dtype(dtypes.default_int() if dtype is None else dtype, "rademacher")
    heads = convert(bernoulli(single_key("rademacher", key), 0.5, canonical_shape(shape)), found, False)
    return heads * 2 - 1


@compound_draw()
def randint(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Value:
    """Integers in [minval, maxval), from twice as many random bits as they have; minval if the range is empty.

    Of `dtype`, int32 by default; the bounds broadcast to `shape`. The same key gives the same numbers as in jax.random.

    >>> random.randint(random.key(0), (6,), 1, 7)
    Array([2, 1, 3, 2, 6, 4], dtype=int32)
    """
    key, found = single_key("randint", key), integer_dtype(dtype, "randint")
    if found.itemsize < 4:  # drawn from 32 bits, which makes the bias of the remainder small
        smallest, largest = limits(found)
        bounds = [convert(_integer(v), dtypes.int32, False) for v in (minval, maxval)]
        low, high = _clipped(bounds[0], smallest, largest), _clipped(bounds[1], smallest, largest + 1)
        return convert(randint(key, shape, low, high, np.int32), found, False)
    sizes = sized("randint", shape, minval, maxval)
    low, span = _bounds(minval, maxval, sizes, found)
    half = scalar_like(span, 2 ** (4 * found.itemsize))
    multiplier = lax.rem(half, span)
    multiplier = lax.rem(multiplier * multiplier, span)
    upper, lower = (random_bits(k, 8 * found.itemsize, sizes) for k in split(key))
    offset = lax.rem(upper, span) * multiplier + lax.rem(lower, span)
    return low + convert(lax.rem(offset, span), found, False)


def _bounds(minval: Any, maxval: Any, sizes: tuple[int, ...], found: np.dtype[Any]) -> tuple[Value, Value]:
    """The smallest integer to draw, and how many there are (as unsigned integers; 1 where the range is empty)."""
    smallest, largest = limits(found)
    low, high = (_integer(v) for v in (minval, maxval))
    beyond = lax.gt(high, scalar_like(high, min(largest, limits(high.aval.dtype)[1])))
    low, high = (convert(_clipped(v, smallest, largest), found, False) for v in (low, high))
    beyond, low, high = (broadcast_to_shape(v, sizes) for v in (beyond, low, high))
    span = convert(lax.sub(high, low), np.dtype(f"uint{8 * found.itemsize}"), False)
    one = lax.full_like(span, 1)
    span = lax.select(lax.le(high, low), one, span)
    # With maxval one above the largest integer the span is one more; it may wrap to 0, and x % 0 is x.
    return low, lax.select(lax.bitwise_and(beyond, lax.gt(high, low)), lax.add(span, one), span)


def _integer(x: Any) -> Value:
    value = as_value(x)
    return strong(value) if dtypes.is_integer(value.aval.dtype) else convert(value, dtypes.default_int(), False)


def _clipped(x: Value, low: int, high: int) -> Value:
    own_low, own_high = limits(x.aval.dtype)
    return lax.clamp(scalar_like(x, max(low, own_low)), x, scalar_like(x, min(high, own_high)))
