"""Parts of an array chosen by conditions and indices, deleted or inserted. Results may have sizes that
depend on values: then these must be known, or `size` be given.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import lax
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value
from ..tracer.arrays.indices import as_index
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert
from .array_creation import asarray
from .array_manipulation import along, moveaxis, ravel
from .concrete_values import SIZE_ADVICE, known_array, known_size
from .indexing_routines import from_end, no_out_argument, take
from .promotion import broadcast_to_shape, canonical_axes, check_arraylike, ensure_arraylike
from .selection import where
from .sorting import argsort
from .unary_ufuncs import to_bool
from .vectorizing import vectorize

_S32 = np.dtype(np.int32)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Value:
    """The elements where the condition is true, as a vector. `size`: see `compress`; it is needed under jit.

    >>> x = jnp.array([1, 2, 3, 4])
    >>> jnp.extract(x % 2 == 0, x)
    Array([2, 4], dtype=int32)
    """
    check_arraylike("extract", condition, arr, fill_value)
    return compress(ravel(as_value(condition)), ravel(as_value(arr)), size=size, fill_value=fill_value)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Value:
    """The slices along an axis (elements of the flattened array: None) where a vector is true. Under jit, `size` is
    required.

    size: how many there are in the result: those above it are cut off, and `fill_value` takes the places of missing
      ones.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    check_arraylike("compress", condition, a, fill_value)
    no_out_argument("compress", out)
    mask, x = to_bool(as_value(condition)), as_value(a)
    if mask.aval.ndim != 1:
        raise ValueError(f"compress: condition must be a 1D array, not {mask.aval.str_short()}")
    x, axis = along(x, axis)
    length = x.aval.shape[axis]
    if size is not None:
        count = known_size("compress", size)
        if not 0 <= count <= length:
            raise ValueError(
                f"compress: size must be positive and not greater than the size of the array axis; got {size} for "
                f"{length}"
            )
        return _compressed(mask, x, as_value(fill_value), axis, count)
    known = known_array("compress", mask, f"The size argument of jnp.compress must be specified. {SIZE_ADVICE}")
    if known[length:].any():
        raise ValueError("compress: condition contains entries that are out of bounds")
    return take(x, np.flatnonzero(known).astype(np.int32), axis, mode="clip")


@compound(static=("axis", "size"))
def _compressed(mask: Value, x: Value, fill: Value, axis: int, size: int) -> Value:
    """The true ones first; the rest is replaced."""
    length = min(mask.aval.size, x.aval.shape[axis])
    mask = lax.slice_in_dim(mask, 0, length)
    order = lax.slice_in_dim(argsort(mask, stable=True, descending=True), 0, min(size, length))
    found = take(x, order, axis, mode="clip")
    if size > length:
        gap = [(0, size - length if d == axis else 0, 0) for d in range(x.aval.ndim)]
        found = lax.pad(found, lax.full_like(found, 0, shape=()), gap)
    count = lax.reduce_sum(lax.convert_element_type(mask, np.int32), (0,))
    given = lax.broadcasted_iota(np.int32, found.aval.shape, axis) < count
    return lax.select(given, found, broadcast_to_shape(convert(fill, x.aval.dtype, False), found.aval.shape))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Value:
    """The array without slices of zeros at its ends, along all or some axes. The values must be known.

    trim: "f" for the front, "b" for the back.

    >>> jnp.trim_zeros(jnp.array([0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x, sides = ensure_arraylike("trim_zeros", filt), trim.lower()
    mask = known_array("trim_zeros", to_bool(x), "Take a slice of constant size instead.")
    starts, limits = [0] * x.aval.ndim, list(x.aval.shape)
    if "f" not in sides and "b" not in sides:
        return x
    for d in canonical_axes(axis, x.aval.ndim):
        places = np.flatnonzero(mask.any(axis=tuple(k for k in range(x.aval.ndim) if k != d)))
        if not len(places):
            limits[d] = 0
            continue
        starts[d] = int(places[0]) if "f" in sides else 0
        limits[d] = int(places[-1]) + 1 if "b" in sides else limits[d]
    return lax.slice(x, starts, limits)


def delete(
    arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Value:
    """The array without the slices that `obj` names along an axis (elements of the flattened array: None).

    obj: an integer, a slice, a mask or integers. Their values must be known, unless they are integers and
      `assume_unique_indices` says that all differ.

    >>> jnp.delete(jnp.array([1, 2, 3]), 1)
    Array([1, 3], dtype=int32)
    """
    x = ensure_arraylike("delete", arr)
    x, axis = along(x, axis)
    size = x.aval.shape[axis]
    if isinstance(obj, slice):
        return _kept(x, np.delete(np.arange(size), obj), axis)
    if not isinstance(obj, ArrayBase | np.ndarray):
        try:
            at = canonical_axis(operator.index(obj), size)  # type: ignore[arg-type]
        except TypeError:
            check_arraylike("delete", obj)
        else:
            return _kept(x, np.delete(np.arange(size), at), axis)
    index = as_value(obj)
    if assume_unique_indices and dtypes.is_integer(index.aval.dtype):
        return _without(x, ravel(index), axis)
    known = known_array("delete", index, "Integers that all differ may be traced, with assume_unique_indices=True.")
    if known.dtype.kind == "b":
        if known.shape != (size,):
            raise ValueError(
                f"delete: a mask must have one dimension, of the size of the axis, {size}, not shape {known.shape}"
            )
        return _kept(x, np.flatnonzero(~known), axis)
    if known.dtype.kind not in "iu":
        raise ValueError(f"delete: obj must be integer or bool, not {known.dtype.name}")
    return _kept(x, np.delete(np.arange(size), known), axis)


def _kept(x: Value, places: np.ndarray[Any, Any], axis: int) -> Value:
    """The slices at places that ascend: cut out in one piece or two where that is all of it."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    if len(breaks) > 1:
        return take(x, places.astype(np.int32), axis, mode="clip")
    runs = [run for run in np.split(places, breaks) if len(run)]
    pieces = [lax.slice_in_dim(x, int(run[0]), int(run[-1]) + 1, 1, axis) for run in runs]
    if not pieces:
        return lax.slice_in_dim(x, 0, 0, 1, axis)
    return pieces[0] if len(pieces) == 1 else lax.concatenate(pieces, axis)


@compound(static=("axis",))
def _without(x: Value, index: Value, axis: int) -> Value:
    """The place of a slice that remains is its rank, plus the number of deleted ones that are not behind it."""
    size = x.aval.shape[axis]
    deleted = lax.sort(
        lax.clamp(np.int32(0), as_index(from_end(index, size), _S32), array_from_scalar(size, _S32))
    )
    before = deleted - lax.iota(np.int32, index.aval.size)
    rank = lax.iota(np.int32, size - index.aval.size)
    passed = lax.expand_dims(rank, [1]) >= lax.expand_dims(before, [0])
    return take(x, rank + lax.reduce_sum(lax.convert_element_type(passed, np.int32), (1,)), axis, mode="clip")


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Value:
    """The array with `values` before the places that `obj` names along an axis (of the flattened array: None).

    obj: an integer, integers or a slice. One place takes all values; several take one each, or all the same.

    >>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    x, new = as_value(arr), as_value(values)
    x, axis = along(x, axis)
    size = x.aval.shape[axis]
    places = asarray(np.arange(*obj.indices(size)) if isinstance(obj, slice) else obj)
    if places.aval.ndim > 1:
        raise ValueError(
            f"insert: obj must be a slice, a one-dimensional array, or a scalar; got {places.aval.str_short()}"
        )
    if not dtypes.is_integer(places.aval.dtype):
        if places.aval.size or isinstance(obj, ArrayBase):
            raise ValueError(f"insert: index array must be integer typed; got {places.aval.str_short()}")
        places = lax.full((0,), 0, np.int32)
    return _inserted(x, places, new, axis)


@compound(static=("axis",))
def _inserted(x: Value, places: Value, values: Value, axis: int) -> Value:
    """Old and new slices one after the other, taken in the order of their places: equal ones new before old."""
    size, rank = x.aval.shape[axis], x.aval.ndim
    new = convert(values, x.aval.dtype, x.aval.weak_type)
    if new.aval.ndim < rank:
        new = lax.reshape(new, (*[1] * (rank - new.aval.ndim), *new.aval.shape))
    if places.aval.size == 1:
        if not places.aval.ndim:
            new = moveaxis(new, 0, axis)
        places = lax.broadcast(lax.reshape(places, ()), (new.aval.shape[axis],))
    count = lax.broadcast_shapes(places.aval.shape, (new.aval.shape[axis],))[0]
    new = broadcast_to_shape(new, (*x.aval.shape[:axis], count, *x.aval.shape[axis + 1 :]))
    places = lax.clamp(np.int32(0), as_index(from_end(places, size), _S32), array_from_scalar(size, _S32))
    places = broadcast_to_shape(places, (count,))
    keys = lax.concatenate([places, lax.iota(np.int32, size)], 0)
    order = lax.sort_key_val(keys, lax.iota(np.int32, size + count))[1]
    return take(lax.concatenate([new, x], axis), order, axis, mode="clip")


def piecewise(
    x: ArrayLike,
    condlist: Any,
    funclist: Sequence[ArrayLike | Callable[..., Any]],
    *args: Any,
    **kw: Any,
) -> Value:
    """For each element, the function with the last true condition, applied to this element, in the dtype of x.

    Args:
      condlist: an array or a list of masks.
      funclist: a function or a number for each condition, and perhaps one more for elements where none is true; else
        these are 0.
      args, kw: passed to the functions.

    >>> x = jnp.array([-2.0, 0.5, 3.0])
    >>> jnp.piecewise(x, [x < 0, x > 1], [lambda t: -t, 1.0])
    Array([2., 0., 1.], dtype=float32)
    """
    value = ensure_arraylike("piecewise", x)
    conditions, functions = len(condlist), list(funclist)
    if len(functions) == conditions:
        functions.append(0)
    if len(functions) != conditions + 1:
        raise ValueError(
            f"piecewise: with {conditions} condition(s), either {conditions} or {conditions + 1} functions are "
            f"expected; got {len(funclist)}"
        )
    constants = tuple([0 if callable(f) else f for f in functions])
    called = tuple([f if callable(f) else None for f in functions])
    return _piecewise(value, to_bool(asarray(condlist)), constants, called, args, kw)


@compound(static=("functions",))
def _piecewise(x: Value, masks: Value, constants: Any, functions: Any, args: Any, kw: Any) -> Value:
    """All functions on all elements, and of the results one. A call with the same functions is not traced again."""
    results = []
    for function, constant in zip(functions, constants, strict=True):
        found = as_value(constant) if function is None else vectorize(_of_element(function, args, kw))(x)
        results.append(convert(found, x.aval.dtype, False))
    result = results[-1]
    for k, other in enumerate(results[:-1]):
        result = where(lax.index_in_dim(masks, k, 0, False), other, result)
    return broadcast_to_shape(result, lax.broadcast_shapes(x.aval.shape, masks.aval.shape[1:]))


def _of_element(function: Callable[..., Any], args: Any, kw: Any) -> Callable[[Any], Any]:
    return lambda element: function(element, *args, **kw)
