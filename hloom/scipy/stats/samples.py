"""Statistics of samples. Names and semantics follow jax.scipy.stats."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ... import lax
from ... import numpy as jnp
from ...lax.movement import canonical_axis
from ...numpy.promotion import check_arraylike, promote_inexact
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value


class ModeResult(NamedTuple):
    """The most frequent values, and how often they are there."""

    mode: Value
    count: Value  # type: ignore[assignment]  # the name of a tuple's method, as in SciPy


def _check_policy(function: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(
            f"{function}: illegal nan_policy value {nan_policy!r}; expected one of {{'propagate', 'omit', 'raise'}}"
        )
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"{function}: nan_policy={nan_policy!r} is not implemented, as in JAX: a traced program cannot know which "
            "elements are NaN. Look for them before the call."
        )


def _runs(rows: Any) -> tuple[Any, Any]:
    """Of sorted rows: where runs of equal elements, NaN among them, start, and where they end."""
    later, earlier = rows[..., 1:], rows[..., :-1]
    differ = (later != earlier) & ((later == later) | (earlier == earlier))
    edge = jnp.ones((*rows.shape[:-1], 1), bool)
    return jnp.concatenate([edge, differ], -1), jnp.concatenate([differ, edge], -1)


def _extent(rows: Any) -> tuple[Any, Any]:
    """For each element of sorted rows: the first and the last place of its run."""
    starts, ends = _runs(rows)
    places = jnp.arange(rows.shape[-1])
    axis = rows.ndim - 1
    first = lax.cummax(jnp.where(starts, places, 0), axis)
    last = lax.cummin(jnp.where(ends, places, rows.shape[-1]), axis, reverse=True)
    return first, last


@compound(static=("axis", "nan_policy", "keepdims"))
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """(mode, count): the most frequent elements along an axis, and how often they are there.

    Of equally frequent elements it is the smallest. The axis None means all elements. NaNs are equal, and the largest.
    nan_policy: "propagate"; NotImplementedError for "omit" and "raise", as in JAX.

    >>> stats.mode(jnp.array([[1, 5], [1, 7], [3, 7]]))
    ModeResult(mode=Array([1, 7], dtype=int32), count=Array([2, 2], dtype=int32))
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy)
    x = jnp.atleast_1d(a)
    kept = [1] * x.ndim
    if axis is None:
        x, axis = x.ravel(), 0
    else:
        axis = canonical_axis(axis, x.ndim)
        kept = [1 if i == axis else n for i, n in enumerate(x.shape)]
    rows = jnp.moveaxis(x, axis, -1)
    shape = kept if keepdims else rows.shape[:-1]
    if not rows.shape[-1]:
        empty = dtypes.default_float()
        return ModeResult(jnp.full(shape, math.nan, empty), jnp.zeros(shape, empty))
    rows = jnp.sort(rows, -1)
    first, last = _extent(rows)
    counts = last - first + 1
    place = jnp.argmax(counts, -1, keepdims=True)
    values, found = jnp.take_along_axis(rows, place, -1), jnp.take_along_axis(counts, place, -1)
    return ModeResult(values.reshape(shape), found.reshape(shape))


@compound(static=("method", "axis", "nan_policy"))
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Value:
    """The ranks of elements, from 1, along an axis or of all elements (as a vector). NaN where a row has a NaN.

    method: the rank of equal elements: "average", "min" or "max" of their ranks; "dense": as "min", but the next rank
      is one higher; "ordinal": different ranks in the order of the elements.

    >>> stats.rankdata(jnp.array([10.0, 30.0, 10.0, 20.0]))
    Array([1.5, 4. , 1.5, 3. ], dtype=float32)
    >>> stats.rankdata(jnp.array([10.0, 30.0, 10.0, 20.0]), method="dense")
    Array([1., 3., 1., 2.], dtype=float32)
    """
    check_arraylike("rankdata", a)
    _check_policy("rankdata", nan_policy)
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"rankdata: unknown method '{method}'; there are average, min, max, dense and ordinal")
    x = jnp.asarray(a)
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    rows = jnp.moveaxis(x, axis, -1)
    dtype = dtypes.default_float()
    order = jnp.argsort(rows, -1)
    ranked = jnp.take_along_axis(rows, order, -1)
    if method == "ordinal":
        ranks = jnp.broadcast_to(jnp.arange(1, rows.shape[-1] + 1), rows.shape).astype(dtype)
    elif method == "dense":
        ranks = jnp.cumsum(_runs(ranked)[0], -1).astype(dtype)
    else:
        first, last = (v.astype(dtype) for v in _extent(ranked))
        ranks = {"min": first + 1, "max": last + 1, "average": 0.5 * (first + last) + 1}[method]
    result = jnp.take_along_axis(ranks, jnp.argsort(order, -1), -1)
    if jnp.issubdtype(rows.dtype, jnp.floating):
        result = jnp.where(jnp.isnan(rows).any(-1, keepdims=True), math.nan, result)
    return jnp.moveaxis(result, -1, axis)


@compound(static=("axis", "ddof", "nan_policy", "keepdims"))
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Value:
    """The standard error of the mean along an axis, or of all elements.

    ddof: the number that is subtracted from the number of elements in the variance.
    nan_policy: "propagate", or "omit" for the elements that are not NaN.

    >>> stats.sem(jnp.array([1.0, 3.0, 5.0, 7.0])).round(3)
    Array(1.291, dtype=float32)
    """
    (x,) = promote_inexact("sem", a)
    if nan_policy == "propagate":
        size = x.size if axis is None else x.shape[axis]
        return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(jnp.asarray(size, x.dtype))
    if nan_policy == "omit":
        count = (~jnp.isnan(x)).sum(axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))
    raise ValueError(f"sem: nan_policy {nan_policy!r} is not supported; there are 'propagate' and 'omit'")
