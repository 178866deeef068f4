"""NumPy's reductions: over all axes, one, or several. Narrow floats are summed in float32, small integers in int32.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..hlo.support.records import dataclass
from ..lax.movement import canonical_axis
from ..lax.reduce import keep_dimensions
from ..namespaces.declaring import F, declared
from ..tracer import dtypes
from ..tracer.arrays.array import rank_of, shape_of
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import ConcretizationTypeError, OperandError
from . import binary_ufuncs as bi
from . import unary_ufuncs as ew
from .promotion import (
    Axis,
    broadcast_to_shape,
    canonical_axes,
    ensure_arraylike,
    mask,
    no_out,
    promote_dtypes_inexact,
    to_dtype,
)
from .selection import where as select

_WIDE_INTEGERS = {"i": np.int64, "u": np.uint64, "b": np.int64}


def wide_integer(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of sums of integers or truth values: the default one, signed or not."""
    default = dtypes.canonical_dtype(_WIDE_INTEGERS[dtype.kind])
    return dtypes.promote([(default, False), (dtype, False)])[0] if dtype.itemsize == 8 else default


@dataclass(frozen=True, slots=True)
class _Reduction:
    """One kind of reduction. `identity` None: a reduction of no elements has no value."""

    name: str
    reduce: Callable[[Value, tuple[int, ...]], Value]
    combine: Callable[[Any, Any], Value]
    identity: int | None

    def __call__(
        self,
        a: ArrayLike,
        axis: Axis,
        dtype: Any,
        out: None,
        keepdims: bool,
        initial: ArrayLike | None,
        where: ArrayLike | None,
        promote_integers: bool = True,
    ) -> Value:
        no_out(self.name, out)
        x = ensure_arraylike(self.name, a)
        axes = canonical_axes(axis, x.aval.ndim)
        if initial is not None and rank_of(initial):
            raise OperandError(
                f"{self.name}: initial value must be a scalar. Got array of shape {shape_of(initial)}", self.name
            )
        own = self._result_dtype(x.aval.dtype) if promote_integers or x.aval.dtype.kind == "b" else x.aval.dtype
        result = dtypes.requested_dtype(dtype, self.name) if dtype is not None else own
        narrow = self.identity is not None and dtypes.is_floating(result) and result.itemsize < 4
        x = to_dtype(x, dtypes.float32 if narrow else result, False)
        start = self._start(x, axes, initial, where)
        if where is not None:
            start = lax.convert_element_type(start, x.aval.dtype)
            x = select(broadcast_to_shape(mask(self.name, where), x.aval.shape), x, start)
        reduced = self.reduce(x, axes)
        if initial is not None:
            reduced = self.combine(lax.convert_element_type(initial, x.aval.dtype), reduced)
        if narrow:
            reduced = lax.convert_element_type(reduced, result)
        return keep_dimensions(reduced, x.aval.shape, axes) if keepdims else reduced

    def _result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Sums and products of small integers have the default integer type."""
        return dtype if self.identity is None or dtype.kind not in "iub" else wide_integer(dtype)

    def _start(self, x: Value, axes: tuple[int, ...], initial: ArrayLike | None, where: ArrayLike | None) -> Any:
        """The value that replaces elements that are left out."""
        if self.identity is not None:
            return self.identity
        empty = math.prod([x.aval.shape[d] for d in axes]) == 0
        if initial is None and (empty or where is not None):
            why = "over an axis of size 0" if empty else "with where"
            raise ValueError(f"{self.name} {why} has no value: give initial")
        return initial


def _total(x: Value, axes: tuple[int, ...]) -> Value:
    """Of truth values, where dtype=bool: whether one is true."""
    return (lax.reduce_or if x.aval.dtype.kind == "b" else lax.reduce_sum)(x, axes)


def _product(x: Value, axes: tuple[int, ...]) -> Value:
    """Of truth values: whether all are true."""
    return (lax.reduce_and if x.aval.dtype.kind == "b" else lax.reduce_prod)(x, axes)


_SUM = _Reduction("sum", _total, bi.add, 0)
_PROD = _Reduction("prod", _product, bi.multiply, 1)
_MAX = _Reduction("max", lax.reduce_max, bi.maximum, None)
_MIN = _Reduction("min", lax.reduce_min, bi.minimum, None)


@compound(static=("axis", "dtype", "keepdims", "promote_integers"), small=True)
def sum(
    a: ArrayLike, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Value:  # fmt: skip
    """`initial` plus the sum over `axis` (None: all axes) of the elements where `where` is true.

    Integers that are narrower than the default integers, and booleans, become these, unless `promote_integers` is
    False; float16 and bfloat16 are added in float32 and rounded once. `keepdims` leaves the axes, with size 1.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.sum(x), jnp.sum(x, axis=0)
    (Array(10, dtype=int32), Array([4, 6], dtype=int32))
    >>> jnp.sum(x, axis=1, keepdims=True, where=x > 1)
    Array([[2],
           [7]], dtype=int32)
    """
    return _SUM(a, axis, dtype, out, keepdims, initial, where, promote_integers)


@compound(static=("axis", "dtype", "keepdims", "promote_integers"), small=True)
def prod(
    a: ArrayLike, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True,
) -> Value:  # fmt: skip
    """`initial` times the product over `axis` (None: all axes) of the elements where `where` is true.

    Dtypes, `promote_integers` and `keepdims` as for `sum`.

    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """
    return _PROD(a, axis, dtype, out, keepdims, initial, where, promote_integers)


@compound(static=("axis", "keepdims"), small=True)
def max(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The largest of `initial` and the elements over `axis` (None: all axes) where `where` is true; NaN if one is NaN.

    ValueError for no elements without `initial`, which `where` needs too. `amax` is the same.

    >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=0)
    Array([3, 5], dtype=int32)
    >>> jnp.max(jnp.array([1.0, jnp.nan])), jnp.max(jnp.array([1, 5]), initial=7)
    (Array(nan, dtype=float32), Array(7, dtype=int32))
    """
    return _MAX(a, axis, None, out, keepdims, initial, where)


@compound(static=("axis", "keepdims"), small=True)
def min(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:  # fmt: skip
    """The smallest of `initial` and the elements over `axis` (None: all axes) where `where` is true; NaN if one is NaN.

    ValueError for no elements without `initial`, which `where` needs too. `amin` is the same.

    >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)
    """
    return _MIN(a, axis, None, out, keepdims, initial, where)


amax, amin = max, min


def minmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Value, Value]:
    """`min` and `max` of the same elements. A pair for `initial`: one for each.

    >>> jnp.minmax(jnp.array([[1, 5], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([5, 4], dtype=int32))
    """
    first, last = initial if isinstance(initial, tuple) else (initial, initial)
    return min(a, axis, out, keepdims, first, where), max(a, axis, out, keepdims, last, where)


def _truth(combine: Callable[[Value, tuple[int, ...]], Value], neutral: bool) -> Callable[[F], F]:
    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(
            a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
        ) -> Value:
            no_out(name, out)
            try:
                x = ew.to_bool(ensure_arraylike(name, a))
            except ConcretizationTypeError as error:
                return error.of_all(op, (a, axis, None, keepdims), {"where": where})
            axes = canonical_axes(axis, x.aval.ndim)
            if where is not None:
                x = select(broadcast_to_shape(mask(name, where), x.aval.shape), x, neutral)
            reduced = combine(x, axes)
            return keep_dimensions(reduced, x.aval.shape, axes) if keepdims else reduced

        return compound(static=("axis", "keepdims"), frequent=True)(declared(declaration, op))

    return decorate


@_truth(lax.reduce_and, True)
def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Value:
    """True if all of the elements over `axis` (where `where` is true) are not 0. A boolean array; of no elements True.

    >>> x = jnp.array([[1, 0], [2, 3]])
    >>> jnp.all(x), jnp.all(x, axis=1)
    (Array(False, dtype=bool), Array([False,  True], dtype=bool))
    """


@_truth(lax.reduce_or, False)
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Value:
    """True if any of the elements over `axis` (where `where` is true) are not 0. A boolean array; of no elements False.

    >>> x = jnp.array([[0, 0], [2, 3]])
    >>> jnp.any(x), jnp.any(x, axis=1)
    (Array(True, dtype=bool), Array([False,  True], dtype=bool))
    """


@compound(static=("axis", "keepdims"), frequent=True)
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Value:
    """The number of elements over `axis` that are not 0, int32 (int64 with x64).

    >>> jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0)
    Array([2, 1], dtype=int32)
    """
    try:
        x = ew.to_bool(ensure_arraylike("count_nonzero", a))
    except ConcretizationTypeError as error:
        x = error.of_elements(bi.not_equal, a, 0)
    return sum(x, axis, dtypes.default_int(), keepdims=keepdims)


def _count(x: Value, axes: tuple[int, ...], where: ArrayLike | None, keepdims: bool, dtype: np.dtype[Any]) -> Any:
    """The number of elements that are averaged: a Python integer, or an array if `where` chooses."""
    if where is None:
        return math.prod([x.aval.shape[d] for d in axes])
    chosen = broadcast_to_shape(mask("mean", where), x.aval.shape)
    return sum(chosen, axes, dtype, keepdims=keepdims)


@compound(static=("axis", "dtype", "keepdims"))
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Value:
    """The mean over `axis` (None: all axes) of the elements where `where` is true; NaN if there are none.

    Integers have the mean as a float32 (float64 with x64); float16 and bfloat16 are added in float32.

    >>> x = jnp.array([[1, 2], [3, 6]])
    >>> jnp.mean(x), jnp.mean(x, axis=0)
    (Array(3., dtype=float32), Array([2., 4.], dtype=float32))
    """
    no_out("mean", out)
    x, where = ensure_arraylike("mean", a), None if where is None else mask("mean", where)
    axes = canonical_axes(axis, x.aval.ndim)
    result = dtypes.requested_dtype(dtype, "mean") if dtype is not None else dtypes.to_inexact(x.aval.dtype)
    wide = dtypes.float32 if dtypes.is_floating(result) and result.itemsize < 4 else result
    total = sum(x, axes, wide, keepdims=keepdims, where=where)
    average = total / _count(x, axes, where, keepdims, wide)
    return to_dtype(average, result, False)


_mean = mean  # where an argument has this name


@compound(static=("axis", "returned", "keepdims"))
def average(
    a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean over `axis`, weighted by `weights`; with `returned`, also the sum of weights.

    Weights have the array's shape, or one dimension for each axis of `axis`, in its order. Integers become floats. A
    sum of weights that is 0 gives NaN or infinity, where NumPy raises.

    >>> jnp.average(jnp.array([1, 2, 3]), weights=jnp.array([3, 1, 0]))
    Array(1.25, dtype=float32)
    """
    if weights is None:
        x = ensure_arraylike("average", a)
        result = mean(x, axis, keepdims=keepdims)
        count = math.prod([x.aval.shape[d] for d in canonical_axes(axis, x.aval.ndim)])
        return (result, lax.full_like(result, count)) if returned else result
    x, w = promote_dtypes_inexact(a, weights, name="average")
    if w.aval.shape != x.aval.shape:
        w = weights_along("average", x, w, axis)
    total = sum(w, axis, keepdims=keepdims)
    result = sum(x * w, axis, keepdims=keepdims) / total
    return (result, total) if returned else result


def weights_along(name: str, x: Value, w: Value, axis: Axis) -> Value:
    """Weights for some axes of x, broadcast to its shape."""
    rank = x.aval.ndim
    given = [] if axis is None else axis if isinstance(axis, tuple | list | range) else [axis]
    axes = [canonical_axis(d, rank) for d in given]
    if axis is None or w.aval.shape != tuple([x.aval.shape[d] for d in axes]):
        raise OperandError(
            f"{name}: weights of {w.aval.str_short()} for {x.aval.str_short()} and axis {axis}: they must have the "
            "array's shape, or the sizes of the given axes",
            name,
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    return lax.broadcast_in_dim(lax.transpose(w, order), x.aval.shape, sorted(axes))


@compound(static=("axis", "dtype", "ddof", "keepdims", "correction"))
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Value:
    """The mean squared distance from the mean, over n - ddof (or n - correction); NaN unless that is positive.

    A float, also of integers and of complex numbers. `mean`: the mean, with the reduced axes as dimensions of size 1,
    if it is known. `where`: the elements that take part.

    >>> x = jnp.array([1, 2, 3, 6])
    >>> jnp.var(x), jnp.var(x, ddof=2)
    (Array(3.5, dtype=float32), Array(7., dtype=float32))
    """
    no_out("var", out)
    x, where = ensure_arraylike("var", a), None if where is None else mask("var", where)
    axes = canonical_axes(axis, x.aval.ndim)
    own = dtypes.to_inexact(x.aval.dtype)
    if dtype is not None and not dtypes.is_inexact(dtypes.canonical_dtype(dtype)):
        raise OperandError(f"var: dtype must be a floating or complex one, not {dtype!r}", "var")
    if correction is not None and ddof != 0:
        raise ValueError("var: ddof and correction can't be provided simultaneously")
    result = dtypes.requested_dtype(dtype, "var") if dtype is not None else dtypes.real_of(own)
    wide = dtypes.float32 if dtypes.is_floating(own) and own.itemsize < 4 else own
    if dtype is not None:
        if dtypes.is_complex(own) and not dtypes.is_complex(result):
            raise ValueError(
                f"var: the variance of complex numbers is computed with a complex dtype, not {result.name}: give "
                "none, and convert the result"
            )
        wide = dtypes.wider(wide, result)
    x = to_dtype(x, wide, False)
    average = _mean(x, axes, keepdims=True, where=where) if mean is None else to_dtype(mean, wide, False)
    centered = x - average
    squares = ew.square(ew.abs(centered)) if dtypes.is_complex(wide) else ew.square(centered)
    total = sum(squares, axes, keepdims=keepdims, where=where)
    freedom = _count(x, axes, where, keepdims, total.dtype) - (ddof if correction is None else correction)
    spread = total / freedom
    if isinstance(freedom, ArrayBase) or freedom <= 0:
        spread = select(bi.greater(freedom, 0), spread, math.nan)
    return to_dtype(spread, result, False)


@compound(static=("axis", "dtype", "ddof", "keepdims", "correction"))
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Value:
    """The square root of the variance. Arguments: see `var`.

    >>> jnp.std(jnp.array([[1, 3], [2, 6]]), axis=1)
    Array([1., 2.], dtype=float32)
    """
    where = None if where is None else mask("std", where)
    return ew.sqrt(var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction))


@compound(static=("axis", "keepdims"))
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Value:
    """The largest minus the smallest value over `axis`, in the dtype of the array.

    >>> jnp.ptp(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([4, 1], dtype=int32)
    """
    return max(a, axis, out, keepdims) - min(a, axis, out, keepdims)


def _arg(
    function: Callable[..., Value], name: str, a: ArrayLike, axis: int | None, out: None, keepdims: bool | None
) -> Value:
    no_out(name, out)
    x = ensure_arraylike(name, a)
    if x.aval.size == 0 and axis is None:
        raise ValueError(f"attempt to get {name} of an empty sequence: give an array with elements")
    flat = lax.reshape(x, (x.aval.size,)) if axis is None else x
    number = 0 if axis is None else canonical_axis(axis, x.aval.ndim)
    found = function(flat, number, dtypes.default_int())
    if not keepdims:
        return found
    axes = canonical_axes(axis, x.aval.ndim)
    return keep_dimensions(found, x.aval.shape, axes)


@compound(static=("axis", "keepdims"))
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Value:
    """The index of the first largest element (of the first NaN), in the flattened array or along an axis. int32 (int64
    with x64).

    >>> x = jnp.array([[1, 5], [7, 4]])
    >>> jnp.argmax(x), jnp.argmax(x, axis=1)
    (Array(2, dtype=int32), Array([1, 0], dtype=int32))
    """
    return _arg(lax.argmax, "argmax", a, axis, out, keepdims)


@compound(static=("axis", "keepdims"))
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Value:
    """The index of the first smallest element (of the first NaN), in the flattened array or along an axis. int32 (int64
    with x64).

    >>> x = jnp.array([[1, 5], [7, 4]])
    >>> jnp.argmin(x), jnp.argmin(x, axis=1)
    (Array(0, dtype=int32), Array([0, 1], dtype=int32))
    """
    return _arg(lax.argmin, "argmin", a, axis, out, keepdims)
