"""Bits, integers, and distributions of integers and booleans.

Source for how bits become numbers: jax.random.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import lax
from .. import numpy as jnp
from ..lax.movement import canonical_axis, canonical_shape
from ..lax.reduce import limits
from ..numpy.promotion import broadcast_to_shape
from ..tracer import dtypes
from ..tracer.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.operators import ArrayBase
from ..tracer.ops import convert, scalar_like
from ..tracer.source import user_line
from .continuous import gumbel, sized, uniform
from .drawing import compound_draw
from .keys import random_bits, single_key, split

__all__ = ["bernoulli", "bits", "categorical", "permutation", "rademacher", "randint"]


@compound_draw()
def bits(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """Random unsigned integers, uint32 by default."""
    found = dtypes.requested_dtype(np.uint32 if dtype is None else dtype, "bits")
    if found.kind != "u":
        raise OperandError(f"bits makes unsigned integers, not {found.name}\n  at {user_line()}", "bits")
    return random_bits(single_key("bits", key), 8 * found.itemsize, canonical_shape(shape))


@compound(static=("shape",))
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Value:
    """True with probability p."""
    key, probability = single_key("bernoulli", key), as_value(p)
    if not dtypes.is_floating(probability.aval.dtype):
        probability = convert(probability, dtypes.default_float(), False)
    sizes = sized("bernoulli", shape, probability)
    return lax.lt(uniform(key, sizes, probability.aval.dtype), broadcast_to_shape(_strong(probability), sizes))


@compound_draw()
def rademacher(key: Any, shape: Any = (), dtype: DTypeLike | None = None) -> Value:
    """-1 or 1, each with probability 1/2."""
    found = dtypes.requested_dtype(dtypes.default_int() if dtype is None else dtype, "rademacher")
    heads: Any = convert(bernoulli(single_key("rademacher", key), 0.5, canonical_shape(shape)), found, False)
    drawn: Value = heads * 2 - 1
    return drawn


@compound(static=("shape", "dtype"))
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: DTypeLike | None = None) -> Value:
    """Integers in [minval, maxval), from twice as many random bits as they have; minval if the range is empty."""
    key, found = (
        single_key("randint", key),
        dtypes.requested_dtype(dtypes.default_int() if dtype is None else dtype, "randint"),
    )
    if not dtypes.is_integer(found):
        raise OperandError(f"randint makes integers, not {found.name}\n  at {user_line()}", "randint")
    if found.itemsize < 4:  # drawn from 32 bits, which makes the bias of the remainder small
        smallest, largest = limits(found)
        bounds = [convert(_integer(v), dtypes.int32, False) for v in (minval, maxval)]
        low, high = _clipped(bounds[0], smallest, largest), _clipped(bounds[1], smallest, largest + 1)
        return convert(randint(key, shape, low, high, np.int32), found, False)
    sizes = sized("randint", shape, minval, maxval)
    low, span = _bounds(minval, maxval, sizes, found)
    half = scalar_like(span, 2 ** (4 * found.itemsize))
    multiplier: Any = lax.rem(half, span)
    multiplier = lax.rem(multiplier * multiplier, span)
    upper, lower = (random_bits(k, 8 * found.itemsize, sizes) for k in split(key))
    offset = lax.rem(upper, span) * multiplier + lax.rem(lower, span)
    drawn: Value = low + convert(lax.rem(offset, span), found, False)
    return drawn


def _bounds(minval: Any, maxval: Any, sizes: tuple[int, ...], found: np.dtype[Any]) -> tuple[Any, Value]:
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


def _strong(x: Value) -> Value:
    return convert(x, x.aval.dtype, False)


def _integer(x: Any) -> Value:
    value = as_value(x)
    return _strong(value) if dtypes.is_integer(value.aval.dtype) else convert(value, dtypes.default_int(), False)


def _clipped(x: Value, low: int, high: int) -> Value:
    own_low, own_high = limits(x.aval.dtype)
    return lax.clamp(scalar_like(x, max(low, own_low)), x, scalar_like(x, min(high, own_high)))


@compound(static=("axis", "shape", "replace", "mode"))
def categorical(
    key: Any, logits: Any, axis: int = -1, shape: Any = None, replace: bool = True, mode: str | None = None
) -> Value:
    """Indices along `axis` with probabilities softmax(logits), by the Gumbel-max trick."""
    if not replace:
        raise UnsupportedError("categorical without replacement needs a sort, which this version does not have")
    key, x = single_key("categorical", key), as_value(logits)
    x = x if dtypes.is_floating(x.aval.dtype) else convert(x, dtypes.default_float(), False)
    axis = canonical_axis(axis, x.aval.ndim)
    batch = tuple([s for d, s in enumerate(x.aval.shape) if d != axis])
    sizes = batch if shape is None else sized("categorical", shape, np.empty(batch))
    prefix = sizes[: len(sizes) - len(batch)]
    place = len(prefix) + axis
    noise_shape = list(sizes)
    noise_shape.insert(place, x.aval.shape[axis])
    return jnp.argmax(gumbel(key, noise_shape, x.aval.dtype, mode) + x, axis=place)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Value:
    """Needs a sort: UnsupportedError. Outside of jit, NumPy's generators can permute."""
    single_key("permutation", key)
    size = x.shape[axis] if isinstance(x, ArrayBase | np.ndarray) else operator.index(x)
    raise UnsupportedError(
        f"permutation of {size} elements needs a sort, which this version does not have; "
        f"numpy.random.default_rng(seed).permutation({size}) gives one outside of traced code\n  at {user_line()}"
    )
