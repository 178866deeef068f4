"""Order statistics: median, percentiles and quantiles, with NaN or without. Source: NumPy, and jax.numpy where they
differ.

All of them are one function. It sorts along one axis, finds between which two elements a quantile is, and combines
these. As NaN is last in a sorted line, the last element says whether there is one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert
from .indexing_routines import take, take_along_axis
from .promotion import (
    Axis,
    broadcast_to_shape,
    canonical_axes,
    check_arraylike,
    promote_dtypes_inexact,
    promote_inexact,
)
from .reductions import weights_along
from .selection import where
from .unary_ufuncs import isnan

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
_STATIC = ("axis", "out", "overwrite_input", "method", "keepdims")


@compound(static=_STATIC)
def quantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The value below which a part q of the elements over `axis` is, in the (floating) dtype of `a`; NaN if one is NaN.

    Args:
      q: a number from 0 to 1, or a vector of them, which becomes the first dimension of the result.
      method: the rule for a quantile between two elements: "linear", "lower", "higher", "midpoint", "nearest"; or
        "inverted_cdf", the first element at which the cumulative weights reach q of their sum.
      weights: for "inverted_cdf", of the shape of `a` or one for each index of the axes.

    >>> jnp.quantile(jnp.array([1.0, 2.0, 4.0]), jnp.array([0.5, 0.75]))
    Array([2., 3.], dtype=float32)
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights)


@compound(static=_STATIC)
def nanquantile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The `quantile` of elements that are not NaN; NaN if all are.

    >>> jnp.nanquantile(jnp.array([1, jnp.nan, 3, 5]), 0.5)
    Array(3., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights)


@compound(static=(*_STATIC, "out_sharding"))
def percentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None, out_sharding: Any = None,
) -> Value:  # fmt: skip
    """The `quantile` at q / 100, where q is between 0 and 100: the shape is the shape of q, then the array's without
    `axis`.

    `out_sharding` has no meaning on one device.

    >>> jnp.percentile(jnp.array([1, 2, 3, 4, 5]), jnp.array([25, 50]))
    Array([2., 3.], dtype=float32)
    """
    return _quantile("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights)


@compound(static=_STATIC)
def nanpercentile(
    a: ArrayLike, q: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The `quantile` at q / 100 of elements that are not NaN; NaN if all are.

    >>> jnp.nanpercentile(jnp.array([1, jnp.nan, 3, 5]), 50)
    Array(3., dtype=float32)
    """
    return _quantile("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights)


@compound(static=("axis", "out", "overwrite_input", "keepdims"))
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Value:
    """The element in the middle over `axis` (None: of all), or the mean of the two that are; NaN if one is NaN, or if
    there is none.

    A float: integers have a float32 (float64 with x64).

    >>> jnp.median(jnp.array([[1, 2, 4, 9], [0, 0, 1, 1]]), axis=1)
    Array([3. , 0.5], dtype=float32)
    """
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None)


@compound(static=("axis", "out", "overwrite_input", "keepdims"))
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Value:
    """The `median` over `axis` of elements that are not NaN; NaN if there is none, without a warning.

    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 4.0]))
    Array(2.5, dtype=float32)
    """
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None)


def _quantile(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis,
    out: None,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
) -> Value:
    check_arraylike(name, a, q)
    skips_nan = name.startswith("nan")
    if name.endswith("percentile"):
        q = promote_dtypes_inexact(q)[0] / 100
    if overwrite_input or out is not None:
        raise ValueError(f"{name} does not support overwrite_input=True or out != None")
    if method not in _METHODS:
        raise ValueError(f"{name}: method can only be one of {_METHODS}, not {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"{name}: {method} doesn't support weights\n  Only method 'inverted_cdf' supports weights."
        )
    x, parts = promote_dtypes_inexact(a)[0], promote_dtypes_inexact(q)[0]
    if dtypes.is_complex(x.aval.dtype):
        raise ValueError(f"{name} does not support complex input: they have no order")
    if parts.aval.ndim > 1:
        raise ValueError(f"{name}: q must have rank <= 1, got shape {parts.aval.shape}")
    axes = canonical_axes(axis, x.aval.ndim)
    line = _in_front(x, axes)
    if not line.aval.shape[0]:
        if not skips_nan and name != "median":
            raise ValueError(f"{name} over axes of size 0 of {x.aval.str_short()} has no value")
        found = lax.full((*parts.aval.shape, *line.aval.shape[1:]), math.nan, x.aval.dtype)
    elif method == "inverted_cdf":
        heavy = None if weights is None else _weights_in_front(name, x, weights, axis, axes)
        found = _by_weights(line, heavy, parts, skips_nan)
    else:
        found = _between(line, parts, method, skips_nan)
    found = convert(found, x.aval.dtype, False)
    if not keepdims:
        return found
    kept = [1 if d in axes else size for d, size in enumerate(x.aval.shape)]
    return lax.reshape(found, (*parts.aval.shape, *kept))


def _in_front(x: Value, axes: tuple[int, ...]) -> Value:
    """The given axes as one, which is the first."""
    others = [d for d in range(x.aval.ndim) if d not in axes]
    size = math.prod([x.aval.shape[d] for d in axes])
    return lax.reshape(lax.transpose(x, (*axes, *others)), (size, *[x.aval.shape[d] for d in others]))


def _between(line: Value, parts: Value, method: str, skips_nan: bool) -> Value:
    """The quantiles of lines along dimension 0; the dimension of `parts` comes first in the result."""
    line = lax.sort(line, 0)
    last, size = line.aval.shape[0] - 1, parts.aval.size
    rest = line.aval.shape[1:]
    if skips_nan:
        count = lax.reduce_sum(lax.convert_element_type(~isnan(line), parts.aval.dtype), (0,))
        end = broadcast_to_shape(lax.max(count - 1, lax.full_like(count, 0)), (size, *rest))
    else:
        end = lax.full_like(parts, last, shape=(size, *[1] * len(rest)))
    parts_in_front = lax.reshape(parts, (size, *[1] * len(rest)))
    position = parts_in_front * end
    low = lax.floor(position)
    above = position - low
    zero = lax.full_like(end, 0)
    below, ahead = (lax.convert_element_type(lax.clamp(zero, p, end), np.int32) for p in (low, lax.ceil(position)))
    if skips_nan:
        first, second = take_along_axis(line, below, 0), take_along_axis(line, ahead, 0)
    else:
        flat = [lax.reshape(p, (size,)) for p in (below, ahead)]
        first, second = (take(line, p, 0, mode="clip") for p in flat)
    above = broadcast_to_shape(above, first.aval.shape)
    found = _combined(first, second, above, method)
    if not skips_nan:
        has_nan = isnan(lax.index_in_dim(line, last, 0))
        found = where(broadcast_to_shape(has_nan, found.aval.shape), math.nan, found)
    return found if parts.aval.ndim else lax.squeeze(found, [0])


def _combined(first: Value, second: Value, above: Value, method: str) -> Value:
    """Of two neighbours, between which the quantile is; `above` is its distance from the first, from 0 to 1."""
    if method == "lower":
        return first
    if method == "higher":
        return second
    if method == "nearest":
        return lax.select(above <= 0.5, first, second)
    if method == "midpoint":
        return (first + second) * 0.5
    first, second = (convert(v, above.aval.dtype, False) for v in (first, second))
    between = first * (1 - above) + second * above
    return lax.select(lax.eq(above, lax.full_like(above, 0)), first, between)  # infinity times 0 is NaN


def _weights_in_front(name: str, x: Value, weights: ArrayLike, axis: Axis, axes: tuple[int, ...]) -> Value:
    w = promote_inexact(name, weights)[0]
    if dtypes.is_complex(w.aval.dtype):
        raise ValueError(f"{name}: weights cannot be complex types")
    return _in_front(w if w.aval.shape == x.aval.shape else weights_along(name, x, w, axis), axes)


def _by_weights(line: Value, weights: Value | None, parts: Value, skips_nan: bool) -> Value:
    """The first element at which the cumulative weights reach a part of their sum."""
    if weights is None:
        line = lax.sort(line, 0)
        weights = lax.full_like(line, 1)
    else:
        dtype = dtypes.promote_types(line.aval.dtype, weights.aval.dtype)
        line, weights = lax.sort_key_val(convert(line, dtype, False), convert(weights, dtype, False), 0)
    no_number = isnan(line)
    zero = lax.full_like(weights, 0)
    bad = lax.lt(weights, zero) | isnan(weights)
    sums = lax.cumsum(lax.select(bad | no_number, zero, weights), 0)
    rest = line.aval.shape[1:]
    total = lax.index_in_dim(sums, line.aval.shape[0] - 1, 0, False)
    count = lax.reduce_sum(lax.convert_element_type(~no_number, np.int32), (0,)) if skips_nan else None
    limit = line.aval.shape[0] - 1 if count is None else lax.max(count - 1, lax.full_like(count, 0))
    flat = lax.reshape(parts, (parts.aval.size, *[1] * len(rest)))
    target = lax.expand_dims(convert(flat, sums.aval.dtype, False) * lax.expand_dims(total, [0]), [1])
    below = lax.expand_dims(sums, [0]) < target
    place = lax.reduce_sum(lax.convert_element_type(below, np.int32), (1,))
    place = lax.min(place, broadcast_to_shape(as_value(limit) + lax.full(rest, 0, np.int32), place.aval.shape))
    found = take_along_axis(line, place, 0)
    wrong = lax.reduce_or(bad, (0,))
    wrong = wrong | (lax.reduce_or(no_number, (0,)) if count is None else count == 0)
    found = where(broadcast_to_shape(wrong, found.aval.shape), math.nan, found)
    return found if parts.aval.ndim else lax.squeeze(found, [0])
