"""Sorting, and searching in sorted arrays. Names and semantics follow NumPy, and jax.numpy where they differ.

NaN is last, -0.0 and 0.0 are equal, and complex numbers are ordered by their real and then their imaginary parts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import lax
from ..hlo.sizes import is_symbolic
from ..lax.movement import canonical_axis
from ..lax.sort import order_keys, ordered_before
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value, rank_of, resolved
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import reinterpret_weak
from .array_manipulation import along
from .promotion import check_arraylike, ensure_arraylike, promote_dtypes
from .selection import where

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")
_LEAST_EVEN, _MOST_EVEN = 16, 1 << 20
"""Of elements among which positions are found by distances: a search of fewer takes no more than 4 steps, and of more a
float32 has too few digits."""
_MANY = 4
"""Points for each element, so that the test of the elements takes little."""


def _no_kind(name: str, kind: None, order: None) -> None:
    for argument, value in (("kind", kind), ("order", order)):
        if value is not None:
            raise TypeError(
                f"'{argument}' argument to {name} is not supported: {value!r}\n  stable=True keeps equal elements in "
                "their order."
            )


@compound(static=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Value:
    """The elements in ascending order along an axis, or of the flattened array (None). NaN are at the end.

    descending: in the reverse order, NaN first. Complex numbers are ordered by their real part, then by the imaginary
    part.

    >>> jnp.sort(jnp.array([[3, 1, 2], [9, 8, 7]]))
    Array([[1, 2, 3],
           [7, 8, 9]], dtype=int32)
    >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    """
    check_arraylike("sort", a)
    _no_kind("sort", kind, order)
    x, axis = along(as_value(a), axis)
    found = reinterpret_weak(lax.sort(x, axis, stable), x.aval.weak_type)
    return lax.rev(found, [axis]) if descending else found


@compound(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Value:
    """The indices that sort an array along an axis, or the flattened array (None): integers of `dtype`, int32 by
    default.

    Of equal elements the one with the lower index is first, also if `descending`, unless `stable` is false.

    >>> x = jnp.array([30, 10, 20])
    >>> jnp.argsort(x), x[jnp.argsort(x)]
    (Array([1, 2, 0], dtype=int32), Array([10, 20, 30], dtype=int32))
    """
    check_arraylike("argsort", a)
    _no_kind("argsort", kind, order)
    x, axis = along(as_value(a), axis)
    kind_of_index = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "argsort")
    index = lax.broadcasted_iota(kind_of_index, x.aval.shape, axis)
    if descending and stable:
        x, index = lax.rev(x, [axis]), lax.rev(index, [axis])
    found = lax.sort_key_val(x, index, axis, stable)[1]
    return lax.rev(found, [axis]) if descending else found


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Value, Value]:
    """The k largest (or smallest) elements along an axis, and their indices (int32), in order. Of equal ones the one
    with the lower index is first. NaN is the largest.

    Args:
      mode: "largest" or "smallest".
      sorted: has no effect: they are sorted.

    Raises:
      ValueError: a negative k, one beyond the size, or another mode.

    >>> jnp.top_k(jnp.array([3, 1, 4, 1, 5]), 2)
    (Array([5, 4], dtype=int32), Array([4, 2], dtype=int32))
    >>> jnp.top_k(jnp.array([3, 1, 4, 1, 5]), 2, mode="smallest")
    (Array([1, 1], dtype=int32), Array([1, 3], dtype=int32))
    """
    check_arraylike("top_k", a)
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    x = as_value(a)
    if mode == "largest":
        values, indices = lax.top_k(x, k, axis=axis)
        return values, indices
    axis, k = canonical_axis(axis, x.aval.ndim), operator.index(k)
    if not 0 <= k <= x.aval.shape[axis]:
        raise ValueError(f"top_k: k must be in [0, {x.aval.shape[axis]}], got {k}")
    ordered = lax.sort_key_val(x, lax.broadcasted_iota("int32", x.aval.shape, axis), axis)
    values, indices = (lax.slice_in_dim(v, 0, k, axis=axis) for v in ordered)
    return reinterpret_weak(values, x.aval.weak_type), indices


@compound(static=("axis",))
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Value:
    """The indices (int32) that sort by several keys along an axis: by the last key, then by the one before it, and so
    on.

    >>> first, last = jnp.array([2, 1, 0]), jnp.array([0, 5, 0])
    >>> jnp.lexsort((first, last))
    Array([2, 0, 1], dtype=int32)
    """
    arrays = [as_value(key) for key in resolved(keys)]
    check_arraylike("lexsort", *arrays)
    if not arrays:
        raise TypeError("lexsort needs at least one key")
    if len({key.aval.shape for key in arrays}) > 1:
        shapes = ", ".join(str(key.aval.shape) for key in arrays)
        raise ValueError(f"lexsort: all keys need to be the same shape, not {shapes}")
    integer = dtypes.default_int()
    if not arrays[0].aval.ndim:
        return lax.full((), 0, integer)
    axis = canonical_axis(axis, arrays[0].aval.ndim)
    index = lax.broadcasted_iota(integer, arrays[0].aval.shape, axis)
    found: Value = lax.sort((*reversed(arrays), index), axis, num_keys=len(arrays))[-1]
    return found


@compound()
def sort_complex(a: ArrayLike) -> Value:
    """The elements in ascending order along the last axis, by real part first, as complex numbers: complex64 of real
    ones.

    >>> jnp.sort_complex(jnp.array([2 + 1j, 1, 2 - 1j]))
    Array([1.+0.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    found = lax.sort(ensure_arraylike("sort_complex", a))
    return lax.convert_element_type(found, dtypes.to_complex(found.aval.dtype))


def _split_at(name: str, x: Value, kth: int, axis: int) -> tuple[int, int]:
    """The axis, and the position after kth, both counted from 0."""
    axis = canonical_axis(axis, x.aval.ndim)
    if dtypes.is_complex(x.aval.dtype):
        raise NotImplementedError(
            f"{name} of complex numbers ({x.aval.str_short()})\n  hloom.numpy.{name.replace('partition', 'sort')} "
            "orders them."
        )
    return axis, canonical_axis(kth, x.aval.shape[axis]) + 1


@compound(static=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Value:
    """The element that sorting would put at `kth` is there, no larger one before it, and no smaller one after it.

    Those before it are in ascending order, those after it in descending order; NumPy has another order.

    >>> jnp.partition(jnp.array([5, 1, 4, 2]), 1)
    Array([1, 2, 5, 4], dtype=int32)
    """
    x = ensure_arraylike("partition", a)
    axis, split = _split_at("partition", x, kth, axis)
    found, size = lax.sort(x, axis), x.aval.shape[axis]
    top = lax.rev(lax.slice_in_dim(found, split, size, 1, axis), [axis])
    return lax.concatenate([lax.slice_in_dim(found, 0, split, 1, axis), top], axis)


@compound(static=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Value:
    """The indices (int32) of `partition`: the element of rank `kth` stands at its place, smaller ones before it.

    Those after `kth` are in ascending order. To get the k largest ones, `hloom.lax.top_k` is faster.

    >>> x = jnp.array([5, 1, 4, 2])
    >>> jnp.sort(x[jnp.argpartition(x, 1)[:2]])
    Array([1, 2], dtype=int32)
    """
    x = ensure_arraylike("argpartition", a)
    axis, split = _split_at("argpartition", x, kth, axis)
    found, size = argsort(x, axis, dtype=np.int32), x.aval.shape[axis]
    top = lax.sort(lax.slice_in_dim(found, split, size, 1, axis), axis)
    return lax.concatenate([lax.slice_in_dim(found, 0, split, 1, axis), top], axis)


@compound(static=("side", "method"))
def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
) -> Value:
    """For each element of v, how many elements of the sorted vector `a` are before it (int32).

    Args:
      side: "left" counts the elements below it, "right" those that are equal to it too.
      sorter: indices that sort `a`.
      method: one of JAX's. There is one here, a binary search.

    >>> jnp.searchsorted(jnp.array([1, 3, 5]), jnp.array([0, 3, 9]), side="right")
    Array([0, 2, 3], dtype=int32)
    """
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side': 'left' or 'right'")
    if method not in _METHODS:
        raise ValueError(f"{method!r} is an invalid value for searchsorted's method: {_METHODS}")
    if rank_of(a) != 1:
        raise ValueError(f"searchsorted: a should be 1-dimensional, not {as_value(a).aval.str_short()}")
    line, points = promote_dtypes(a, v)
    if sorter is not None:
        check_arraylike("searchsorted", sorter)
        line = line[as_value(sorter)]
    return positions(line, points, side == "right")


def positions(line: Value, points: Value, after_equals: bool, closed: bool = False) -> Value:
    """How many elements of the line are before each point. `after_equals`: equal elements are, too, and with `closed`
    all of them but the last.

    Many points among evenly spaced elements find their position by its distance; the program tests whether they are
    evenly spaced."""
    size, dtype = line.aval.shape[0], line.aval.dtype
    if size == 0 or points.aval.size == 0:
        return lax.full(points.aval.shape, 0, np.int32)

    def found_by(search: Callable[[Value, Value, bool], Value]) -> Value:
        found = search(line, points, after_equals)
        return where(lax.index_in_dim(line, size - 1, 0, False) == points, size - 1, found) if closed else found

    if (
        dtype not in (np.float32, np.float64) or is_symbolic(size) or is_symbolic(points.aval.size)
        or not _LEAST_EVEN <= size <= _MOST_EVEN or points.aval.size < _MANY * size
    ):  # fmt: skip
        return found_by(_searched)
    found: Value = lax.cond(_is_even(line), lambda: found_by(_by_distance), lambda: found_by(_searched))
    return found


def _along(line: Value, x: Value) -> Value:
    """The distance of x from the line's first element, as multiples of the mean distance of neighbours. Rounding is
    monotonic, so this is, too, where the line ascends."""
    first, last = (lax.index_in_dim(line, k, 0, False) for k in (0, -1))
    scale = np.asarray(line.aval.shape[0] - 1, line.aval.dtype) / (last - first)
    return (x - first) * scale


def _is_even(line: Value) -> Value:
    """Whether the line ascends, and `_along` of element k is within 1/8 of k. (1/4 would do: `_by_distance` may round
    otherwise than here.) False for NaN and infinities."""
    first, last = (lax.index_in_dim(line, k, 0, False) for k in (0, -1))
    away = lax.abs(_along(line, line) - lax.iota(line.aval.dtype, line.aval.shape[0]))
    return (first < last) & lax.reduce_and(away <= 0.125, [0])


def _by_distance(line: Value, points: Value, after_equals: bool) -> Value:
    """The positions among evenly spaced elements: a point between elements k and k + 1 is within k - 1/4 and k + 5/4 by
    `_along`, so it is compared with the element of the nearest number alone. NaN is after all."""
    last = line.aval.shape[0] - 1
    inside = points < lax.index_in_dim(line, last, 0, False)
    place = lax.select(inside, _along(line, points), lax.full_like(points, last))
    near = lax.convert_element_type(lax.max(place, lax.full_like(place, 0)) + 0.5, np.int32)
    element = elements_of(line, near)
    is_after = ~(points < element if after_equals else points <= element)
    return near + lax.convert_element_type(is_after, np.int32)


def _searched(line: Value, points: Value, after_equals: bool) -> Value:
    """A binary search of all points at once: in each step, the position of a point moves right over half of the
    elements that are left, or stays."""
    size = line.aval.shape[0]
    found = lax.full(points.aval.shape, 0, np.int32)
    line, points = order_keys(line), order_keys(points)

    def is_before(place: Value) -> Value:
        """Whether the element at this place is before the position of the point."""
        element = elements_of(line, place)
        return ~ordered_before(points, element) if after_equals else ordered_before(element, points)

    def moved(found: Value, step: Any) -> Value:
        ahead = lax.add(found, step)
        last = lax.min(ahead, array_from_scalar(size, ahead.aval.dtype)) - np.int32(1)
        return lax.select(is_before(last) & (ahead <= size), ahead, found)

    if is_symbolic(size):
        return halving(moved, found)
    left = size
    while left:  # the sum of all steps is the size, so no step tests for the end of the line
        half = max(left // 2, 1)
        moves = lax.convert_element_type(is_before(found + np.int32(half - 1)), np.int32)
        found = found + lax.mul(moves, np.int32(half))
        left -= half
    return found


def halving(step: Callable[[Value, Any], Value], start: Value) -> Value:
    """`step(state, k)` for k = 2**30, 2**29, ..., 1, as a loop: a search among a symbolic number of elements."""
    one, last = np.int32(1), np.int32(30)
    found: Value = lax.fori_loop(0, 31, lambda i, state: step(state, lax.shift_left(one, last - i)), start)
    return found


def elements_of(line: Value, index: Value) -> Value:
    """line[index] for a vector and indices that are in bounds."""
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    return lax.gather(line, lax.expand_dims(index, [index.aval.ndim]), numbers, (1,))


@compound(static=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Value:
    """The bin of each element (int32): i if bins[i-1] <= x < bins[i]; if `right`, if bins[i-1] < x <= bins[i].

    The bins ascend or descend. `method`: see `searchsorted`.

    >>> jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int32)
    """
    check_arraylike("digitize", x, bins)
    edges = as_value(bins)
    if edges.aval.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={edges.aval.str_short()}")
    size = edges.aval.shape[0]
    if not size:
        return lax.full_like(as_value(x), 0, np.int32)
    side, method = "left" if right else "right", method or "scan"
    first, last = (lax.index_in_dim(edges, k, 0, False) for k in (0, size - 1))
    up = searchsorted(edges, x, side, method=method)
    down = np.int32(size) - searchsorted(lax.rev(edges, [0]), x, side, method=method)
    return where(last >= first, up, down)


def check_integers(name: str, what: str, x: Any) -> Value:
    """An array of integers; OperandError (a TypeError) for anything else."""
    value = x if isinstance(x, ArrayBase) else as_value(x)
    if not dtypes.is_integer(value.aval.dtype):
        raise OperandError(f"{name} {what} must be of integer type, got {value.aval.str_short()}", name)
    return value
