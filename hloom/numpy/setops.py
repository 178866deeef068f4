"""Arrays as sets: distinct elements, intersections, unions and differences.

How many these are depends on values. So outside of jit the result has the needed size; inside it is an argument, and
`fill_value` takes the places of missing elements. Source: NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, shape_of
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert
from ..tracer.tracer import Tracer
from .array_manipulation import along, moveaxis, ravel
from .concrete_values import SIZE_ADVICE, known_array, known_size, unknown_array
from .indexing_routines import take
from .promotion import broadcast_to_shape, ensure_arraylike, ensure_arraylikes, promote_dtypes, strong
from .searching import nonzero
from .selection import where
from .selections import Selection
from .sorting import elements_of, searchsorted
from .unary_ufuncs import isnan


@compound(static=("equal_nan",))
def _grouped(rows: Value, equal_nan: bool) -> tuple[Value, Value]:
    """The order that sorts rows, and in this order whether each is the first of several equal ones."""
    size, width = rows.aval.shape
    columns = [lax.index_in_dim(rows, k, 1, False) for k in range(width)]
    if dtypes.is_complex(rows.aval.dtype):
        columns = [where(isnan(c), math.nan, c) for c in columns]
    *ordered, order = lax.sort((*columns, lax.iota(dtypes.default_int(), size)), 0, num_keys=width)
    differs: Value = lax.full((size - 1,), False, np.bool_)
    for column in ordered:
        before, after = lax.slice_in_dim(column, 0, size - 1), lax.slice_in_dim(column, 1, size)
        unequal = lax.ne(before, after)
        if equal_nan and dtypes.is_inexact(column.aval.dtype):
            unequal = unequal & ~(isnan(before) & isnan(after))
        differs = differs | unequal
    return order, lax.concatenate([lax.full((1,), True, np.bool_), differs], 0)


@compound()
def _inverse(order: Value, first: Value) -> Value:
    """For each element the number of its group."""
    group = lax.cumsum(lax.convert_element_type(first, order.aval.dtype)) - 1
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lax.scatter(lax.full_like(group, 0), lax.expand_dims(order, [1]), group, numbers, unique_indices=True)


@compound()
def _counts(first: Value, starts: Value) -> Value:
    """The sizes of groups, from where they begin and where one more does; those beyond the last group are empty."""
    number = starts.aval.size
    count = lax.reduce_sum(lax.convert_element_type(first, np.int32), (0,))
    starts = where(lax.iota(np.int32, number) < count, starts, first.aval.size)
    return lax.slice_in_dim(starts, 1, number) - lax.slice_in_dim(starts, 0, number - 1)


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements as a vector, or the distinct slices along an axis, in ascending order. Under jit, `size` is
    required, since the number of elements depends on values, unless only functions of single elements and reductions
    take the result.

    Args:
      return_index: also the index of the first of each, int32.
      return_inverse: also the index into the result for each element, in the shape of the array.
      return_counts: also how often each occurs.
      equal_nan: all NaN are one.
      size: how many there are in the result: those above it are cut off.
      fill_value: the fill value for missing ones; by default the least element.
      sorted: without effect, they always are.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    >>> jnp.unique(jnp.array([3, 1, 3]), size=3, fill_value=0)
    Array([1, 3, 0], dtype=int32)
    """
    x = ensure_arraylike("unique", ar)
    shape = x.aval.shape
    count = None if size is None else known_size("unique", size)
    flat = axis is None
    x, axis = along(x, axis)
    length = x.aval.shape[axis]
    if not length and count and fill_value is None:
        raise ValueError("unique: for zero-sized input with nonzero size argument, fill_value must be specified")
    integer = dtypes.default_int()
    slices = moveaxis(x, axis, 0)
    width = math.prod(slices.aval.shape[1:])
    if not length:
        order, first = lax.full((0,), 0, integer), lax.full((0,), False, np.bool_)
    elif not width:  # slices without elements are all equal
        order = lax.iota(integer, length)
        first = order == 0
    else:
        order, first = _grouped(lax.reshape(slices, (length, width)), bool(equal_nan))
    if count is None:
        is_alone = not (return_index or return_inverse or return_counts)
        if is_alone and isinstance(first, Tracer) and first.to_concrete_value() is None:
            values = take(slices, order, 0, mode="clip")
            return Selection.of(values, 0, axis, first, unknown_array("unique", first, SIZE_ADVICE))
        known = np.flatnonzero(known_array("unique", first, SIZE_ADVICE))
        count, starts = len(known), as_value(np.append(known, length).astype(integer))
    else:
        (starts,) = nonzero(first, size=count + 1)
    if length:
        places = take(order, lax.slice_in_dim(starts, 0, count), 0, mode="clip")
        values = take(slices, places, 0, mode="clip")
    else:
        places = lax.full((count,), 0, integer)
        values = lax.full_like(slices, 0, shape=(count, *slices.aval.shape[1:]))
    if size is not None and fill_value is not None:
        values = _filled_up(values, first, as_value(fill_value))
    results = [moveaxis(values, 0, axis)]
    if return_index:
        results.append(places)
    if return_inverse:
        inverse = _inverse(order, first) if length else order
        results.append(lax.reshape(inverse, shape) if flat else inverse)
    if return_counts:
        results.append(_counts(first, starts))
    return results[0] if len(results) == 1 else tuple(results)


@compound()
def _filled_up(values: Value, first: Value, fill_value: Value) -> Value:
    """Slices beyond the number of groups replaced."""
    count = lax.reduce_sum(lax.convert_element_type(first, np.int32), (0,))
    given = lax.broadcasted_iota(np.int32, values.aval.shape, 0) < count
    return lax.select(
        given, values, broadcast_to_shape(convert(fill_value, values.aval.dtype, False), values.aval.shape)
    )


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`."""

    values: Value
    indices: Value
    inverse_indices: Value
    counts: Value


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`."""

    values: Value
    counts: Value


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`."""

    values: Value
    inverse_indices: Value


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """The distinct elements (no two NaN are equal), the first index of each, the inverse, and how often each occurs.

    A named tuple; the inverse has the shape of x. `size` and `fill_value`: see `unique`.

    >>> found = jnp.unique_all(jnp.array([3, 1, 3]))
    >>> found.values, found.indices, found.inverse_indices, found.counts
    (Array([1, 3], dtype=int32), Array([1, 0], dtype=int32), Array([1, 0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """The distinct elements (no two NaN are equal), and how often each occurs. Arguments: see `unique`.

    >>> values, counts = jnp.unique_counts(jnp.array([3, 1, 3]))
    >>> values, counts
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """The distinct elements (no two NaN are equal), and for each element its index there. Arguments: see `unique`.

    >>> values, inverse = jnp.unique_inverse(jnp.array([3, 1, 3]))
    >>> values[inverse]
    Array([3, 1, 3], dtype=int32)
    """
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Value:
    """The distinct elements in ascending order (no two NaN are equal). Arguments: see `unique`.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    >>> jnp.unique_values(jnp.array([3, 1, 3]), size=3, fill_value=0)
    Array([1, 3, 0], dtype=int32)
    """
    found: Value = unique(x, equal_nan=False, size=size, fill_value=fill_value)
    return found


# ---- two sets


def _vectors(name: str, ar1: ArrayLike, ar2: ArrayLike) -> tuple[Value, Value]:
    a, b = promote_dtypes(ar1, ar2, name=name)
    return ravel(a), ravel(b)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Value:
    """The distinct elements of both arrays, in ascending order; dtypes promote. `size` and `fill_value`: see `unique`.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 1]))
    Array([1, 2, 3], dtype=int32)
    """
    a, b = _vectors("union1d", ar1, ar2)
    found: Value = unique(lax.concatenate([a, b], 0), size=size, fill_value=fill_value)
    return found


@compound(static=("invert", "method"))
def _is_in(a: Value, b: Value, invert: bool, method: str) -> Value:
    if not a.aval.size or not b.aval.size:
        return lax.full(a.aval.shape, invert, np.bool_)
    if method == "compare_all" or (method == "auto" and b.aval.size <= _FEW):
        found = lax.reduce_or(lax.expand_dims(a, [1]) == lax.expand_dims(b, [0]), (1,))
    else:
        line = lax.sort(b)
        place = lax.min(searchsorted(line, a), np.int32(b.aval.size - 1))
        found = lax.eq(elements_of(line, place), a)
    return ~found if invert else found


_FEW = 32
"""Among so many elements all are compared; more are sorted."""


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Value:
    """For each element whether it is one of `test_elements` (is none of them, if `invert`), in the shape of `element`;
    NaN is not.

    method: "compare_all" compares each with each, "binary_search" and "sort" sort. `assume_unique` is without effect.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    a, b = _vectors("isin", element, test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            f"isin: method={method!r} is not implemented\n  It can be 'compare_all', 'binary_search', 'sort' or 'auto'."
        )
    return lax.reshape(_is_in(a, b, bool(invert), method), shape_of(element))


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Value:
    """The distinct elements of ar1 that are not in ar2; in their order, and repeated, if `assume_unique`.

    `size` and `fill_value`: see `unique`, but the default of `fill_value` is 0.

    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2, 9]))
    Array([1, 3], dtype=int32)
    """
    a, b = map(ravel, ensure_arraylikes("setdiff1d", ar1, ar2))
    first = lax.full(a.aval.shape, True, np.bool_)
    if not assume_unique and a.aval.size:
        order, first = _grouped(lax.expand_dims(a, [1]), True)
        a = elements_of(a, order)
    return _selected("setdiff1d", a, first & isin(a, b, invert=True), size, 0 if fill_value is None else fill_value)


def _selected(name: str, line: Value, mask: Value, size: int | None, fill_value: Any) -> Value:
    """The elements where the mask is true."""
    if size is None:
        return take(line, np.flatnonzero(known_array(name, mask, SIZE_ADVICE)).astype(np.int32), 0, mode="clip")
    return _of_size(line, mask, as_value(fill_value), known_size(name, size))


@compound(static=("size",))
def _of_size(line: Value, mask: Value, fill_value: Value, size: int) -> Value:
    fill = broadcast_to_shape(convert(fill_value, line.aval.dtype, line.aval.weak_type), (size,))
    if not line.aval.size or not size:
        return fill
    (places,) = nonzero(mask, size=size)
    given = lax.iota(np.int32, size) < lax.reduce_sum(lax.convert_element_type(mask, np.int32), (0,))
    return lax.select(given, take(line, places, 0, mode="clip"), fill)


def _least_of(line: Value, mask: Value, size: int | None, fill_value: Any) -> Any:
    """The default of `fill_value`: the least of the elements in the result, or 0 if there are none."""
    if fill_value is not None or size is None or not line.aval.size:
        return 0 if fill_value is None else fill_value
    place = lax.argmax(mask, 0, np.int32)
    return where(lax.reduce_or(mask, (0,)), elements_of(line, place), lax.full_like(line, 0, shape=()))


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Value:
    """The distinct elements that only one of both arrays has, in ascending order. `size` and `fill_value`: see
    `unique`.

    >>> jnp.setxor1d(jnp.array([1, 2, 3]), jnp.array([2, 3, 4]))
    Array([1, 4], dtype=int32)
    """
    a, b = _vectors("setxor1d", ar1, ar2)
    line, mask = _once(a, b, bool(assume_unique))
    line = line if size is None else strong(line)
    return _selected("setxor1d", line, mask, size, _least_of(line, mask, size, fill_value))


@compound(static=("assume_unique",))
def _once(a: Value, b: Value, assume_unique: bool) -> tuple[Value, Value]:
    """All elements in order; and where an element is the first of equal ones, and in one of both arrays only."""
    line = lax.concatenate([a, b], 0)
    total = line.aval.size
    if not total:
        return line, lax.full((0,), False, np.bool_)
    owner = lax.convert_element_type(lax.iota(np.int32, total) >= a.aval.size, np.int32)
    line, owner = lax.sort((line, owner), 0, num_keys=2)
    before, after = lax.slice_in_dim(line, 0, total - 1), lax.slice_in_dim(line, 1, total)
    alike = lax.eq(before, after)
    end = lax.full((1,), False, np.bool_)
    if assume_unique:
        return line, ~lax.concatenate([end, alike], 0) & ~lax.concatenate([alike, end], 0)
    no_number = isnan(line)
    both = isnan(before) & isnan(after)
    same = lax.eq(lax.slice_in_dim(owner, 0, total - 1), lax.slice_in_dim(owner, 1, total))
    first = ~lax.concatenate([end, alike | (both & same)], 0)
    return line, first & (lax.ne(isin(line, a), isin(line, b)) | no_number)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The distinct elements that both arrays have, in ascending order; with `return_indices` also the first index of
    each, in both. Dtypes promote.

    `size` and `fill_value`: see `unique`; the places of missing indices have the size of their array.

    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 9]))
    Array([2, 3], dtype=int32)
    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3, 9]), return_indices=True)[1:]
    (Array([2, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    a, b = _vectors("intersect1d", ar1, ar2)
    line, mask, first, second = _common(a, b)
    line = line if size is None else strong(line)
    values = _selected("intersect1d", line, mask, size, _least_of(line, mask, size, fill_value))
    if not return_indices:
        return values
    return (
        values,
        _selected("intersect1d", first, mask, size, a.aval.size),
        _selected("intersect1d", second, mask, size, b.aval.size),
    )


@compound()
def _common(a: Value, b: Value) -> tuple[Value, Value, Value, Value]:
    """a in order; where an element is the first of equal ones and in b; and its first index in both."""
    integer = dtypes.default_int()
    if not a.aval.size or not b.aval.size:
        index = lax.full(a.aval.shape, 0, integer)
        return a, lax.full(a.aval.shape, False, np.bool_), index, index
    order, new = _grouped(lax.expand_dims(a, [1]), False)
    line = elements_of(a, order)
    others, places = lax.sort_key_val(b, lax.iota(integer, b.aval.size))
    place = lax.min(searchsorted(others, line), np.int32(b.aval.size - 1))
    return line, new & lax.eq(elements_of(others, place), line), order, elements_of(places, place)
