"""Taking elements by indices, and putting them: `x[...]` and `x.at[...]` under NumPy's names.

Names and semantics follow NumPy, and jax.numpy where they differ. The `mode` of each function determines the treatment
of indices out of bounds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..hlo.element_type import element_type_of
from ..hlo.sizes import as_size
from ..lax.indexing import GatherScatterMode, start_index
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, rank_of, resolved
from ..tracer.arrays.indices import holding, index_dtype_of
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import UnsupportedError
from ..tracer.tracer import Tracer
from .array_manipulation import along, ravel
from .binary_ufuncs import floor_divide, mod
from .concrete_values import known_array
from .indexing import IndexUpdate
from .promotion import broadcast_to_shape, broadcast_values, check_arraylike, promote_dtypes, strong, to_dtype
from .selection import clip, where
from .sorting import check_integers

_FILL = GatherScatterMode.FILL_OR_DROP


def from_end(indices: Value, size: int) -> Value:
    """Indices with those that are negative counted from the end, in a type that holds the size."""
    if dtypes.is_unsigned(indices.aval.dtype):
        return holding(indices, size)
    return start_index(indices, size, index_dtype_of(indices.aval.dtype, size))


def no_out_argument(name: str, out: None) -> None:
    """NotImplementedError for an `out` argument."""
    if out is not None:
        raise UnsupportedError(f"The 'out' argument to {name} is not supported: arrays are immutable")


def not_in_place(name: str, inplace: bool, error: type[Exception] = ValueError) -> None:
    """An error unless `inplace` is False."""
    if inplace:
        raise error(
            f"{name} cannot modify arrays in-place, because they are immutable\n  Pass inplace=False to return an "
            "updated array instead."
        )


@compound(static=("axis", "mode", "unique_indices", "indices_are_sorted", "fill_value"))
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Value:
    """Elements at `indices` along an axis, or of the flattened array; the indices' dimensions take the axis' place.

    mode: the treatment of indices out of bounds. "fill", the default: `fill_value` is read (by default NaN, the least
        signed or largest unsigned integer, True). "clip": the nearest one; negative ones do not count from the end.
        "wrap": they count on from the start.
    unique_indices, indices_are_sorted: promises of the user.

    >>> jnp.take(jnp.array([10.0, 20.0, 30.0]), jnp.array([2, -1, 7]))
    Array([30., 30., nan], dtype=float32)
    """
    check_arraylike("take", a, indices)
    no_out_argument("take", out)
    x, index = as_value(a), as_value(indices)
    index = lax.convert_element_type(index, np.int32) if index.aval.dtype.kind == "b" else index
    check_integers("take", "indices", index)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis(operator.index(axis), x.aval.ndim)
    size, shape = x.aval.shape[axis], x.aval.shape
    index = holding(index, size)
    handled = _FILL
    if not size:
        if index.aval.size:
            raise IndexError(f"cannot do a non-empty jnp.take from the empty axis {axis} of {x.aval.str_short()}")
    elif mode is None or mode == "fill":
        index = from_end(index, size)
    elif mode == "wrap":
        index, handled = mod(index, size), GatherScatterMode.PROMISE_IN_BOUNDS
    elif mode == "clip":
        handled = GatherScatterMode.CLIP
    elif mode == "raise":
        raise UnsupportedError(
            "take: a compiled program cannot raise an error for an index\n  mode can be 'fill', 'clip' or 'wrap'."
        )
    else:
        raise ValueError(f"Invalid mode '{mode}' for take: 'fill', 'clip' or 'wrap'")
    rank, ahead = index.aval.ndim, list(range(axis))
    if not index.aval.size:
        return lax.full_like(x, 0, shape=(*shape[:axis], *index.aval.shape, *shape[axis + 1 :]))
    numbers = lax.GatherDimensionNumbers(
        (*ahead, *range(axis + rank, len(shape) + rank - 1)), (axis,), (axis,)
    )  # fmt: skip
    return lax.gather(
        x, lax.expand_dims(index, [rank]), numbers, (*shape[:axis], 1, *shape[axis + 1 :]), mode=handled,
        fill_value=fill_value, unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
    )  # fmt: skip


@compound(static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Value:
    """arr[..., indices[..., k, ...], ...]: along the axis, elements at indices that are given for each of its lines.

    The other dimensions are broadcast. With axis None both are vectors, the array flattened.

    mode, fill_value: the treatment of indices out of bounds, as for `x.at[...].get()`; by default "fill".
    wrap_negative_indices: negative ones count from the end; false by default if mode is "promise_in_bounds".

    >>> jnp.take_along_axis(jnp.array([[1, 9], [8, 2]]), jnp.array([[1], [0]]), axis=1)
    Array([[9],
           [8]], dtype=int32)
    """
    check_arraylike("take_along_axis", arr, indices)
    x, index = as_value(arr), check_integers("take_along_axis", "indices", indices)
    if axis is None:
        if index.aval.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {index.aval.shape}")
        x, axis = ravel(x), 0
    if x.aval.ndim != index.aval.ndim:
        raise ValueError(
            f"take_along_axis: indices and arr must have the same number of dimensions; {index.aval.ndim} vs. "
            f"{x.aval.ndim}"
        )
    axis = canonical_axis(axis, x.aval.ndim)
    size = x.aval.shape[axis]
    result = lax.broadcast_shapes(index.aval.shape, (*x.aval.shape[:axis], 1, *x.aval.shape[axis + 1 :]))
    if not size or 0 in result:
        return lax.full(result, 0, x.aval.dtype)
    index = holding(index, size)
    promised = mode in ("promise_in_bounds", GatherScatterMode.PROMISE_IN_BOUNDS)
    if not promised if wrap_negative_indices is None else wrap_negative_indices:
        index = from_end(index, size)
    if mode == "one_hot":
        return _by_products(x, index, axis)
    return _along(x, index, axis, "fill" if mode is None else mode, fill_value)


def _along(x: Value, index: Value, axis: int, mode: str | GatherScatterMode, fill_value: Any) -> Value:
    """A gather. Of the other dimensions, those where the array is broadcast are left out of it, those where the indices
    are broadcast are windows, and all others are batches."""
    ours, theirs = x.aval.shape, index.aval.shape
    others = [d for d in range(len(ours)) if d != axis]
    windows = [d for d in others if theirs[d] == 1]
    absent = [d for d in others if ours[d] == 1 and theirs[d] != 1]
    batches = [d for d in others if d not in windows and d not in absent]
    left = [d for d in range(len(ours)) if d not in absent]  # the dimensions of the operand
    named = [d for d in range(len(ours)) if d not in windows]  # of the indices
    numbers = lax.GatherDimensionNumbers(
        tuple(windows), (left.index(axis),), (left.index(axis),),
        tuple([left.index(d) for d in batches]), tuple([named.index(d) for d in batches]),
    )  # fmt: skip
    starts = lax.reshape(index, (*[theirs[d] for d in named], 1))
    sizes = [ours[d] if d in windows else 1 for d in left]
    return lax.gather(lax.squeeze(x, absent), starts, numbers, sizes, mode=mode, fill_value=fill_value)


def _by_products(x: Value, index: Value, axis: int) -> Value:
    """Mode "one_hot": the sum of products with 1 at the index and 0 at other places; 0 for an index out of bounds."""
    shape, line = x.aval.shape, x.aval.shape[axis]
    wide = lax.expand_dims(index, [axis + 1])
    steps = lax.broadcasted_iota(index.aval.dtype, (*[1] * (axis + 1), line, *[1] * (len(shape) - axis - 1)), axis + 1)
    hot, elements = broadcast_values([wide == steps, lax.expand_dims(x, [axis])])
    return lax.reduce_sum(lax.select(hot, elements, lax.full_like(elements, 0)), (axis + 1,))


@compound(static=("axis", "inplace", "mode"))
def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Value:
    """A copy of `arr` with `values` where `take_along_axis` would read. `inplace` must be False: arrays are immutable.

    mode: the treatment of indices out of bounds, as for `x.at[...].set()`; by default they are dropped.

    >>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 7, axis=1, inplace=False)
    Array([[0., 7.],
           [7., 0.]], dtype=float32)
    """
    not_in_place("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    given, index, new = as_value(arr), check_integers("put_along_axis", "indices", indices), as_value(values)
    x, axis = along(given, axis)
    if x.aval.ndim != index.aval.ndim:
        raise ValueError(
            f"put_along_axis arguments 'arr' and 'indices' must have same ndim, not {x.aval.ndim} and {index.aval.ndim}"
        )
    shape = index.aval.shape
    if lax.broadcast_shapes(new.aval.shape, shape) != shape:
        raise ValueError(
            f"put_along_axis argument 'values' must be broadcastable to 'indices', and {new.aval.shape} is not to "
            f"{shape}"
        )
    index = broadcast_to_shape(index, (*x.aval.shape[:axis], shape[axis], *x.aval.shape[axis + 1 :]))
    place: list[Any] = [_steps(size, d, x.aval.ndim) for d, size in enumerate(x.aval.shape)]
    place[axis] = index
    changed = IndexUpdate(x, tuple(place)).set(broadcast_to_shape(new, index.aval.shape), mode=mode)
    return lax.reshape(changed, given.aval.shape)


def _steps(size: int, dimension: int, rank: int) -> Value:
    """0, 1, ... along a dimension; the others have size 1."""
    return lax.broadcasted_iota(np.int32, [size if d == dimension else 1 for d in range(rank)], dimension)


def repeated_to(values: Value, size: int) -> Value:
    """A vector, repeated as a whole and cut to a size."""
    count = values.aval.shape[0]
    if count == size:
        return values
    whole = lax.broadcast_in_dim(values, (-(-size // count), count), (1,))
    return lax.slice_in_dim(lax.reshape(whole, (whole.aval.size,)), 0, size)


@compound(static=("mode", "inplace"))
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True) -> Value:
    """A copy of `a` with `v`, repeated, at the flat indices `ind`. `inplace` must be False: arrays are immutable.

    mode: "clip" or "wrap" for indices out of bounds; by default they are dropped.

    >>> jnp.put(jnp.zeros(4), jnp.array([0, 2]), 5, inplace=False)
    Array([5., 0., 5., 0.], dtype=float32)
    """
    not_in_place("put", inplace)
    check_arraylike("put", a, ind, v)
    x, index, values = as_value(a), ravel(check_integers("put", "ind", ind)), ravel(as_value(v))
    if not x.aval.size or not index.aval.size or not values.aval.size:
        return x
    index = holding(index, x.aval.size)
    if mode == "clip":
        index = clip(index, 0, x.aval.size - 1)
    elif mode == "wrap":
        index = mod(index, x.aval.size)
    elif mode == "raise":
        raise UnsupportedError(
            "put: a compiled program cannot raise an error for an index\n  mode can be 'clip', 'wrap' or None."
        )
    elif mode is not None:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    changed = IndexUpdate(ravel(x), index).set(repeated_to(values, index.aval.size), mode="drop")
    return lax.reshape(changed, x.aval.shape)


@compound(static=("inplace",))
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Value:
    """A copy of `arr` with `vals`, repeated, one after the other where the mask is true. `inplace` must be False.

    >>> jnp.place(jnp.zeros(4), jnp.array([True, False, True, True]), jnp.array([1, 2]), inplace=False)
    Array([1., 0., 2., 1.], dtype=float32)
    """
    not_in_place("place", inplace)
    check_arraylike("place", arr, mask, vals)
    x, chosen, values = as_value(arr), ravel(as_value(mask)), ravel(as_value(vals))
    if x.aval.size != chosen.aval.size:
        raise ValueError(f"place: arr and mask must be the same size, not {x.aval.size} and {chosen.aval.size}")
    if not values.aval.size:
        raise ValueError("Cannot place values from an empty array")
    if not x.aval.size:
        return x
    chosen = lax.ne(chosen, lax.full_like(chosen, 0))
    rank = lax.cumsum(lax.convert_element_type(chosen, np.int32)) - 1
    turn = mod(rank, np.int32(values.aval.size))
    new = take(to_dtype(values, x.aval.dtype, x.aval.weak_type), turn, mode="wrap")
    return lax.reshape(lax.select(chosen, new, ravel(x)), x.aval.shape)


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Value:
    """For each element of `a`, the element of the choice of this number. All are broadcast.

    mode: the treatment of numbers out of bounds: "clip", "wrap", or "raise", which is a ValueError: the values of `a`
        must be known for it.

    >>> jnp.choose(jnp.array([0, 1, 0]), [jnp.array([1, 2, 3]), 10])
    Array([ 1, 10,  3], dtype=int32)
    """
    no_out_argument("choose", out)
    choices = resolved(choices)
    check_arraylike("choose", a, *choices)
    number = as_value(a)
    if not dtypes.is_integer(number.aval.dtype):
        raise ValueError(f"choose: `a` array must be integer typed, not {number.aval.str_short()}")
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    count = len(choices)
    if mode == "raise":
        advice = (
            "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' "
            "instead."
        )
        values = known_array("choose with mode='raise'", number, advice)
        if ((values < 0) | (values >= count)).any():
            raise ValueError(f"invalid entry in choice array: choose takes numbers from 0 to {count - 1}")
    return _chosen(number, list(choices), mode)


@compound(static=("mode",))
def _chosen(number: Value, choices: list[Any], mode: str) -> Value:
    number = holding(number, len(choices))
    index = mod(number, len(choices)) if mode == "wrap" else clip(number, 0, len(choices) - 1)
    arrays = [as_value(index), *promote_dtypes(*choices)]
    shape = lax.broadcast_shapes(*[x.aval.shape for x in arrays])
    index, *arrays = [broadcast_to_shape(x, shape) for x in arrays]
    stacked = lax.concatenate([lax.expand_dims(x, [0]) for x in arrays], 0)
    return strong(lax.squeeze(take_along_axis(stacked, lax.expand_dims(index, [0]), 0), [0]))


@compound(static=("wrap", "inplace"))
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Value:
    """A copy of `a` with `val`, repeated, on its diagonal. `inplace` must be False: arrays are immutable.

    An array of more than two dimensions must have the same size along all. `wrap` must be False.

    >>> jnp.fill_diagonal(jnp.ones((2, 3)), 7, inplace=False)
    Array([[7., 1., 1.],
           [1., 7., 1.]], dtype=float32)
    """
    not_in_place("fill_diagonal", inplace, NotImplementedError)
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not implemented")
    check_arraylike("fill_diagonal", a, val)
    x, values = as_value(a), ravel(as_value(val))
    if x.aval.ndim < 2:
        raise ValueError(f"fill_diagonal: array must be at least 2-d, not {x.aval.str_short()}")
    if x.aval.ndim > 2 and len(set(x.aval.shape)) > 1:
        raise ValueError(f"fill_diagonal: all dimensions of {x.aval.str_short()} must be of equal length")
    size = min(x.aval.shape)
    if not size:
        return x
    steps = lax.iota(np.int32, size)
    return IndexUpdate(x, (steps,) * x.aval.ndim).set(repeated_to(values, size))


def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Value, ...]:
    """Flat indices as one array of indices for each dimension of `shape`; those out of bounds are clipped.

    Negative ones count from the end. The sizes may be traced, their number may not.

    >>> jnp.unravel_index(jnp.array([0, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([0, 2], dtype=int32))
    """
    check_arraylike("unravel_index", indices)
    rest = check_integers("unravel_index", "indices", indices)
    sizes = list(shape) if isinstance(shape, Sequence) or rank_of(shape) else [shape]
    if any(rank_of(size) for size in sizes):
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence")
    if any(isinstance(size, Tracer) for size in sizes):
        return _unraveled(rest, tuple(sizes))
    return _unraveled_known(rest, tuple([as_size(size) for size in sizes]))


@compound(static=("sizes",))
def _unraveled_known(rest: Value, sizes: tuple[int, ...]) -> tuple[Value, ...]:
    return _unraveled(rest, sizes)


def _unraveled(rest: Value, sizes: tuple[Any, ...]) -> tuple[Value, ...]:
    found: list[Value] = []
    if not any(isinstance(size, Tracer) for size in sizes):
        rest = holding(rest, max(sizes, default=0))
    for size in reversed(sizes):
        found.insert(0, mod(rest, size))
        rest = floor_divide(rest, size)
    above = rest > 0
    below = None if dtypes.is_unsigned(rest.aval.dtype) else rest < -1
    clipped = [where(above, size - 1, part) for part, size in zip(found, sizes, strict=True)]
    return tuple(clipped if below is None else [where(below, 0, part) for part in clipped])


def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise", order: str = "C", *, dtype: Any = None
) -> Value:
    """An array of indices for each dimension of an array of sizes `dims`, as flat indices of the default integer type.

    Args:
      mode: the treatment of indices out of bounds. "raise": ValueError, so their values must be known. "clip", "wrap";
        "ignore": nothing.
      order: "C" or "F", of the flat array.
      dtype: of the result.

    >>> jnp.ravel_multi_index((1, 2), (2, 3))
    Array(5, dtype=int32)
    """
    check_arraylike("ravel_multi_index", *multi_index)
    if len(multi_index) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(multi_index)} indices for {len(dims)} dimensions")
    sizes = [as_size(d) for d in dims]
    columns = [check_integers("ravel_multi_index", "indices", i) for i in multi_index]
    if dtype is not None:
        kind = dtypes.requested_dtype(dtype, "ravel_multi_index")
    else:
        kind = dtypes.result_type(int, *columns)
        if math.prod(sizes) - 1 > element_type_of(kind).limits[1]:
            kind = dtypes.result_type(np.int32, kind)
    if not dtypes.is_integer(kind):
        raise ValueError(f"ravel_multi_index: dtype={dtype!r} is not an integer type")
    if math.prod(sizes) - 1 > dtypes.iinfo(kind).max:
        raise ValueError(
            f"ravel_multi_index: dtype={kind.name!r} not large enough to hold flattened index for dims={tuple(sizes)}"
        )
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if mode not in ("raise", "clip", "wrap", "ignore"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'")
    if mode == "raise":
        for index, size in zip(columns, sizes, strict=True):
            values = known_array(
                "ravel_multi_index with mode='raise'",
                index,
                "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. "
                "Use mode='wrap' or mode='clip' instead.",
            )
            if ((values < 0) | (values >= size)).any():
                raise ValueError("invalid entry in coordinates array: ravel_multi_index")
    return _flat_index(columns, tuple(sizes), mode, order, kind)


@compound(static=("sizes", "mode", "order", "kind"))
def _flat_index(columns: list[Value], sizes: tuple[int, ...], mode: str, order: str, kind: Any) -> Value:
    strides = [math.prod(sizes[:d] if order == "F" else sizes[d + 1 :]) for d in range(len(sizes))]
    found: Value = lax.full((), 0, kind)
    for index, size, stride in zip(columns, sizes, strides, strict=True):
        index = holding(index, size)
        if mode == "clip":
            index = clip(index, 0, size - 1)
        elif mode == "wrap":
            index = mod(index, size)
        found = found + lax.convert_element_type(index, kind) * stride
    return found
