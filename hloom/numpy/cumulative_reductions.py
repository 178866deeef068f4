"""Sums and products of prefixes. Names and semantics follow NumPy, and jax.numpy where they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lax
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.sharding.lenience import refuse_divided
from . import unary_ufuncs as ew
from .promotion import ensure_arraylike, no_out, to_dtype
from .reductions import wide_integer
from .selection import where


def _cumulative(
    function: Callable[..., Value], name: str, a: ArrayLike, axis: int | None, dtype: Any, out: None
) -> Value:
    no_out(name, out)
    x = ensure_arraylike(name, a)
    if axis is None:
        every = range(x.aval.ndim)
        refuse_divided(x.aval, every, f"The input should be fully replicated when axis is not specified to jnp.{name}")
        x, axis = lax.reshape(x, (x.aval.size,)), 0
    result = x.aval.dtype
    if dtype is not None:
        result = dtypes.requested_dtype(dtype, name)
    elif result.kind == "b":
        result = dtypes.default_int()
    if result.kind == "b":
        return ew.to_bool(function(to_dtype(ew.to_bool(x), dtypes.default_int(), False), axis))
    return function(to_dtype(x, result, False), axis)


@compound(static=("axis", "dtype"))
def cumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """Sums of prefixes along an axis, or of the flattened array: as many as there are elements.

    The result has the array's dtype, unless another is given (booleans: int32); NumPy widens small integers.

    >>> jnp.cumsum(jnp.array([1, 2, 3, 4]))
    Array([ 1,  3,  6, 10], dtype=int32)
    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([[1, 2],
           [4, 6]], dtype=int32)
    """
    return _cumulative(lax.cumsum, "cumsum", a, axis, dtype, out)


@compound(static=("axis", "dtype"))
def cumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """Products of prefixes along an axis, or of the flattened array: as many as there are elements.

    The result has the array's dtype, unless another is given (booleans: int32).

    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _cumulative(lax.cumprod, "cumprod", a, axis, dtype, out)


def _numbers(name: str, a: ArrayLike, stand_in: float) -> Value:
    """The array with NaN replaced."""
    x = ensure_arraylike(name, a)
    return where(ew.isnan(x), stand_in, x) if dtypes.is_inexact(x.aval.dtype) else x


@compound(static=("axis", "dtype"))
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """Sums of prefixes along an axis, or of the flattened array, where NaN counts as 0.

    >>> jnp.nancumsum(jnp.array([1, jnp.nan, 3]))
    Array([1., 1., 4.], dtype=float32)
    """
    return _cumulative(lax.cumsum, "nancumsum", _numbers("nancumsum", a, 0), axis, dtype, out)


@compound(static=("axis", "dtype"))
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: Any = None, out: None = None) -> Value:
    """Products of prefixes along an axis, or of the flattened array, where NaN counts as 1.

    >>> jnp.nancumprod(jnp.array([2, jnp.nan, 3]))
    Array([2., 2., 6.], dtype=float32)
    """
    return _cumulative(lax.cumprod, "nancumprod", _numbers("nancumprod", a, 1), axis, dtype, out)


@compound(static=("axis", "dtype", "include_initial"))
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Value:
    """Sums of prefixes along an axis, which only a vector may leave out. Narrow integers become the default ones,
    int32.

    include_initial: include the empty prefix, with the sum 0: the axis is one longer.

    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _from_standard("cumulative_sum", lax.cumsum, 0, x, axis, dtype, include_initial, True)


@compound(static=("axis", "dtype", "include_initial"))
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Value:
    """Products of prefixes along an axis, which only a vector may leave out. The dtype stays.

    include_initial: include the empty prefix, with the product 1: the axis is one longer.

    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _from_standard("cumulative_prod", lax.cumprod, 1, x, axis, dtype, include_initial, False)


def _from_standard(
    name: str,
    function: Callable[..., Value],
    initial: int,
    x: ArrayLike,
    axis: int | None,
    dtype: Any,
    include_initial: bool,
    widens: bool,
) -> Value:
    """The functions of the Array API standard."""
    value = ensure_arraylike(name, x)
    if not value.aval.ndim:
        raise ValueError(f"{name}: The input must be non-scalar to take a running total")
    if axis is None and value.aval.ndim > 1:
        raise ValueError(
            f"{name}: The input array has rank {value.aval.ndim}, however axis was not given: it is only optional for "
            "one dimension"
        )
    axis = canonical_axis(0 if axis is None else axis, value.aval.ndim)
    if dtype is None and widens and value.aval.dtype.kind in "iub":
        dtype = wide_integer(value.aval.dtype)
    found = _cumulative(function, name, value, axis, dtype, None)
    if not include_initial:
        return found
    sizes = [1 if d == axis else size for d, size in enumerate(found.aval.shape)]
    return lax.concatenate([lax.full(sizes, initial, found.aval.dtype), found], axis)
