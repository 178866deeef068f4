"""Reductions of the elements that are not NaN. Names and semantics follow NumPy, and jax.numpy where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from . import reductions
from . import unary_ufuncs as ew
from .promotion import Axis, broadcast_to_shape, ensure_arraylike, mask, no_out
from .reductions import any, mean, var
from .selection import where as select

_STAND_INS = {"nanprod": 1, "nanmax": -math.inf, "nanmin": math.inf, "nanargmax": -math.inf, "nanargmin": math.inf}
"""The numbers that replace NaN, where that is not 0."""


def _without_nan(name: str, a: ArrayLike) -> tuple[Value, Value]:
    """The array with NaN replaced, and a mask that is true where it was not NaN."""
    x = ensure_arraylike(name, a)
    number = ~ew.isnan(x)
    return select(number, x, _STAND_INS.get(name, 0)) if dtypes.is_inexact(x.aval.dtype) else x, number


def _check_mask(name: str, where: ArrayLike | None) -> None:
    """The error names the function that the user called."""
    if where is not None:
        mask(name, where)


@compound(static=("axis", "dtype", "keepdims"))
def nansum(
    a: ArrayLike, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The sum over `axis` of elements that are not NaN; 0 if there are none. Other arguments: see `sum`.

    >>> jnp.nansum(jnp.array([[1, jnp.nan], [3, 4]]), axis=0)
    Array([4., 4.], dtype=float32)
    """
    return _nan_reduction("nansum", reductions.sum, a, axis, dtype, out, keepdims, initial, where)


@compound(static=("axis", "dtype", "keepdims"))
def nanprod(
    a: ArrayLike, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The product over `axis` of elements that are not NaN; 1 if there are none. Other arguments: see `prod`.

    >>> jnp.nanprod(jnp.array([[1, jnp.nan], [3, 4]]), axis=0)
    Array([3., 4.], dtype=float32)
    """
    return _nan_reduction("nanprod", reductions.prod, a, axis, dtype, out, keepdims, initial, where)


def _nan_reduction(
    name: str, reduction: Callable[..., Value], a: ArrayLike, axis: Axis, dtype: Any, out: None, keepdims: bool,
    initial: ArrayLike | None, where: ArrayLike | None,
) -> Value:  # fmt: skip
    _check_mask(name, where)
    return reduction(_without_nan(name, a)[0], axis, dtype, out, keepdims, initial, where)


def _also(name: str, number: Value, where: ArrayLike | None) -> Value:
    """Where both are true."""
    return number if where is None else number & broadcast_to_shape(mask(name, where), number.aval.shape)


@compound(static=("axis", "dtype", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Value:
    """The mean over `axis` of elements that are not NaN; NaN if there are none, without a warning.

    >>> jnp.nanmean(jnp.array([[1, jnp.nan], [3, 4]]), axis=0)
    Array([2., 4.], dtype=float32)
    """
    number = _also("nanmean", _without_nan("nanmean", a)[1], where)
    return mean(a, axis, dtype, out, keepdims, where=number)


@compound(static=("axis", "dtype", "ddof", "keepdims"))
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Value:
    """The variance over `axis` of elements that are not NaN; NaN if there are none, without a warning. Arguments: see
    `var`.

    >>> jnp.nanvar(jnp.array([1, jnp.nan, 3]))
    Array(1., dtype=float32)
    """
    x, number = _without_nan("nanvar", a)
    return var(x, axis, dtype, out, ddof, keepdims, where=_also("nanvar", number, where), mean=mean)


@compound(static=("axis", "dtype", "ddof", "keepdims"))
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Value:
    """The standard deviation over `axis` of elements that are not NaN; NaN if there are none. Arguments: see `var`.

    >>> jnp.nanstd(jnp.array([1, jnp.nan, 3]))
    Array(1., dtype=float32)
    """
    _check_mask("nanstd", where)
    return ew.sqrt(nanvar(a, axis, dtype, out, ddof, keepdims, where, mean))


@compound(static=("axis", "keepdims"))
def nanmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The largest element over `axis` that is not NaN; NaN if all are NaN, without a warning.

    >>> jnp.nanmax(jnp.array([[1, jnp.nan], [3, 4]]), axis=1)
    Array([1., 4.], dtype=float32)
    """
    return _nan_extremum("nanmax", reductions.max, a, axis, out, keepdims, initial, where)


@compound(static=("axis", "keepdims"))
def nanmin(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The smallest element over `axis` that is not NaN; NaN if all are NaN, without a warning.

    >>> jnp.nanmin(jnp.array([[1, jnp.nan], [3, 4]]), axis=1)
    Array([1., 3.], dtype=float32)
    """
    return _nan_extremum("nanmin", reductions.min, a, axis, out, keepdims, initial, where)


def _nan_extremum(
    name: str,
    extremum: Callable[..., Value],
    a: ArrayLike,
    axis: Axis,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Value:
    _check_mask(name, where)
    x, number = _without_nan(name, a)
    found = extremum(x, axis, out, keepdims, initial, where)
    if not dtypes.is_inexact(x.aval.dtype) or initial is not None:
        return found
    return select(any(_also(name, number, where), axis, keepdims=keepdims), found, math.nan)


@compound(static=("axis", "out", "keepdims"))
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Value:
    """The index of the first largest element that is not NaN, in all or along an axis; -1 if all are NaN, where NumPy
    raises.

    >>> jnp.nanargmax(jnp.array([1, jnp.nan, 3]))
    Array(2, dtype=int32)
    """
    return _nan_index("nanargmax", reductions.argmax, a, axis, out, keepdims)


@compound(static=("axis", "out", "keepdims"))
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Value:
    """The index of the first smallest element that is not NaN, in all or along an axis; -1 if all are NaN, where NumPy
    raises.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 3, 1]))
    Array(2, dtype=int32)
    """
    return _nan_index("nanargmin", reductions.argmin, a, axis, out, keepdims)


def _nan_index(
    name: str,
    index_of: Callable[..., Value],
    a: ArrayLike,
    axis: int | None,
    out: None,
    keepdims: bool | None,
) -> Value:
    no_out(name, out)
    x, number = _without_nan(name, a)
    found = index_of(x, axis, keepdims=bool(keepdims))
    if not dtypes.is_inexact(x.aval.dtype):
        return found
    return select(any(number, axis, keepdims=bool(keepdims)), found, -1)
