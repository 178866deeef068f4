"""Making arrays: from Python and NumPy data, from constants, from ranges.

Source for names and meaning: NumPy, and jax.numpy where they differ. `device` and `out_sharding` have no meaning on one
device.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..lax.movement import canonical_axis, canonical_shape
from ..tracer import dtypes
from ..tracer.array import Array, array_from_numpy, array_from_scalar, as_value, refuse_masked
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError, UnsupportedElementTypeError
from ..tracer.operators import ArrayBase, ArrayLike
from ..tracer.source import user_line
from .movement import diagonal_number, stack
from .promotion import broadcast_to_shape, check_arraylike, promote_dtypes_inexact, to_dtype

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """An array of numbers, nested sequences or anything with `__array__`; itself if it is one already.

    Python scalars stay weakly typed unless `dtype` is given. NumPy data is copied, unless `copy` is False.
    """
    target = None if dtype is None else dtypes.requested_dtype(dtype, "asarray")
    if isinstance(a, ArrayBase):
        value = as_value(a)
        return value if target is None else to_dtype(value, target, False)
    if isinstance(a, bool | int | float | complex) and not isinstance(a, np.generic):
        if target is None or dtypes.is_extended(target):
            return as_value(a) if target is None else to_dtype(a, target, False)
        return array_from_scalar(a, target)
    if copy is False and isinstance(a, np.ndarray) and (target is None or target == a.dtype):
        return array_from_numpy(a, copy=False)
    if isinstance(a, list | tuple):
        return _from_sequence(a, target)
    if a is None or isinstance(a, str | bytes | dict | set):
        raise _not_an_array(a)
    refuse_masked(a)
    data = np.asarray(a)
    _check_dtype(a, data)
    return array_from_numpy(data if target is None else data.astype(target))


def array(
    object: Any,
    dtype: Any = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """As `asarray`, but an existing array is copied; with at least `ndmin` dimensions."""
    value = asarray(object, dtype)
    if copy and value is object and isinstance(value, Array) and not value.aval.is_extended:
        value = Array(value.aval, value._view.copy())
    missing = ndmin - value.aval.ndim
    return lax.reshape(value, (*[1] * missing, *value.aval.shape)) if missing > 0 else value


def _from_sequence(a: Sequence[Any], target: np.dtype[Any] | None) -> Value:
    if _holds_values(a):
        rows = [asarray(item) for item in a]
        return stack(rows, dtype=target if target is not None else dtypes.result_type(*rows))
    try:
        data = np.array(a)
        _check_dtype(a, data)
        # converted again with the final dtype, so that Python integers that do not fit raise an OverflowError
        return array_from_numpy(np.array(a, dtypes.canonical_dtype(data.dtype) if target is None else target))
    except (ValueError, TypeError) as error:
        if isinstance(error, UnsupportedElementTypeError):
            raise
        raise type(error)(f"{error}\n  at {user_line()}") from None


def _holds_values(a: Any) -> bool:
    """True if a nested sequence has an Array or Tracer in it."""
    return any(_holds_values(x) if isinstance(x, list | tuple) else isinstance(x, ArrayBase) for x in a)


def _check_dtype(a: Any, data: np.ndarray[Any, Any]) -> None:
    if data.dtype.kind in "OSUMm":
        raise _not_an_array(a)


def _not_an_array(a: Any) -> UnsupportedElementTypeError:
    text = repr(a)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UnsupportedElementTypeError(
        f"{shown} of type {type(a).__name__} is not a valid array: arrays hold numbers and booleans\n  at {user_line()}"
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Value:
    """An array over (or with a copy of) the memory of another library's array."""
    data = np.from_dlpack(x)
    return array_from_numpy(data, copy=bool(copy) or dtypes.canonical_dtype(data.dtype) != data.dtype)


def copy(a: ArrayLike, order: str | None = None) -> Value:
    """A copy."""
    return array(a, copy=True)


# ---- constants


def full(
    shape: Any, fill_value: ArrayLike, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """An array of one value (or of a value broadcast to `shape`)."""
    check_arraylike("full", fill_value)
    if np.ndim(fill_value) == 0:
        return lax.full(shape, fill_value, dtype)
    return broadcast_to_shape(asarray(fill_value, dtype), canonical_shape(shape))


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """Zeros, float32 by default."""
    return lax.full(shape, 0, dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "zeros"))


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """Ones, float32 by default."""
    return lax.full(shape, 1, dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, "ones"))


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """Zeros, as in JAX: there is no memory without contents."""
    return zeros(shape, dtype)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """An array of one value with the shape and dtype of `a`, unless others are given."""
    check_arraylike("full_like", a, fill_value)
    if np.ndim(fill_value) == 0:
        return lax.full_like(a, fill_value, dtype, shape)
    x = as_value(a)
    sizes = x.aval.shape if shape is None else canonical_shape(shape)
    return broadcast_to_shape(asarray(fill_value, x.aval.dtype if dtype is None else dtype), sizes)


def zeros_like(
    a: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """Zeros with the shape and dtype of `a`, unless others are given."""
    check_arraylike("zeros_like", a)
    return lax.full_like(a, 0, dtype, shape)


def ones_like(
    a: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """Ones with the shape and dtype of `a`, unless others are given."""
    check_arraylike("ones_like", a)
    return lax.full_like(a, 1, dtype, shape)


def empty_like(prototype: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Value:
    """Zeros with the shape and dtype of `prototype`: there is no memory without contents."""
    return zeros_like(prototype, dtype, shape)


# ---- ranges


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """start, start + step, ... below stop; the bounds must be known while tracing.

    OperandError for bounds that are no real numbers, and for dtypes without arithmetic (bool).
    """
    given = [start, *[b for b in (stop, step) if b is not None]]
    for bound in given:
        _check_bound(bound)
    target = dtypes.requested_dtype(dtype, "arange") if dtype is not None else dtypes.result_type(*given)
    if not (dtypes.is_integer(target) or dtypes.is_inexact(target)):
        raise OperandError(
            f"arange does not make {target.name}: give dtype=int, and convert the result\n  at {user_line()}",
            "arange",
        )
    bounds = [0 if stop is None else start, start if stop is None else stop, 1 if step is None else step]
    numbers = [b.item() if hasattr(b, "item") else b for b in bounds]
    if all(isinstance(n, int) for n in numbers) and target.kind in "iu":
        first, last, distance = numbers
        if distance == 0:
            raise ValueError(f"arange: the step must not be 0\n  at {user_line()}")
        index = lax.iota(target, max(0, -((first - last) // distance)))
        scaled = index if distance == 1 else index * distance
        return scaled if first == 0 else scaled + first
    if any(math.isinf(n) for n in numbers):
        raise OverflowError(f"arange: {numbers} has no end\n  at {user_line()}")
    return array_from_numpy(np.arange(*numbers).astype(target))


def _check_bound(bound: Any) -> None:
    check_arraylike("arange", bound)
    shape = np.shape(bound)
    if shape or dtypes.is_complex(dtypes.type_of(bound)[0]):
        what = f"an array of shape {shape}" if shape else "complex"
        raise OperandError(f"arange takes real numbers, and {bound!r} is {what}\n  at {user_line()}", "arange")


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced values from start to stop (included if `endpoint`)."""
    return _linspace(start, stop, num, endpoint, retstep, dtype, axis)


@compound(static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    check_arraylike("linspace", start, stop)
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"linspace: the number of values must not be negative: {count}")
    a, b = promote_dtypes_inexact(start, stop)
    result = dtypes.requested_dtype(dtype, "linspace") if dtype is not None else a.aval.dtype
    shape = lax.broadcast_shapes(a.aval.shape, b.aval.shape)
    a, b = broadcast_to_shape(a, shape), broadcast_to_shape(b, shape)
    intervals = count - 1 if endpoint else count
    sizes = (count, *shape)
    index = lax.broadcasted_iota(dtypes.real_of(a.aval.dtype), sizes, 0)
    t = lax.convert_element_type(index / max(intervals, 1), a.dtype)
    first, last = broadcast_to_shape(a, sizes), broadcast_to_shape(b, sizes)
    values = first * (1 - t) + last * t
    if endpoint and count > 1:  # exactly `stop` at the end
        values = lax.select(index == intervals, last, values)
    if dtypes.is_integer(result) and dtypes.is_floating(values.aval.dtype):
        values = lax.floor(values)
    values = to_dtype(values, result, False)
    place = canonical_axis(axis, len(sizes))
    if place:
        values = lax.transpose(values, [*range(1, place + 1), 0, *range(place + 1, len(sizes))])
    if not retstep:
        return values
    step = (b - a) / intervals if intervals else lax.full_like(a, math.nan)
    return values, lax.convert_element_type(step, step.dtype)


@compound(static=("num", "endpoint", "dtype", "axis"))
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Value:
    """base ** linspace(start, stop)."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    values = lax.pow(lax.full_like(exponents, base), exponents)
    return values if dtype is None else to_dtype(values, dtypes.requested_dtype(dtype, "logspace"), False)


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Value:
    """`num` numbers from start to stop (included if `endpoint`), each the same multiple of the one before.

    Both must have one sign; of complex numbers the quotient's logarithm is the principal one, so that they are on a
    spiral.

    >>> import hloom.numpy as jnp
    >>> [round(x, 3) for x in jnp.geomspace(1.0, 8.0, 4).tolist()]
    [1.0, 2.0, 4.0, 8.0]
    """
    return _geomspace(start, stop, num, endpoint, dtype, axis)


@compound(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, dtype: Any, axis: int) -> Value:
    check_arraylike("geomspace", start, stop)
    a, b = promote_dtypes_inexact(start, stop)
    result = dtypes.requested_dtype(dtype, "geomspace") if dtype is not None else a.aval.dtype
    a, b = (to_dtype(v, dtypes.result_type(a.aval.dtype, np.float32), False) for v in (a, b))
    shape = lax.broadcast_shapes(a.aval.shape, b.aval.shape)
    a, b = broadcast_to_shape(a, shape), broadcast_to_shape(b, shape)
    count = operator.index(num)
    t = linspace(lax.full_like(a, 0), lax.full_like(a, 1), count, endpoint)
    growth = lax.log(b / a)
    sizes = (count, *shape)
    values = broadcast_to_shape(a, sizes) * lax.exp(t * broadcast_to_shape(growth, sizes))
    if endpoint and count > 1:  # exactly `stop` at the end
        last = lax.broadcasted_iota(np.int32, sizes, 0) == count - 1
        values = lax.select(last, broadcast_to_shape(b, sizes), values)
    place = canonical_axis(axis, len(sizes))
    order = [*range(1, place + 1), 0, *range(place + 1, len(sizes))]
    return to_dtype(lax.transpose(values, order), result, False)


def eye(N: int, M: int | None = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Value:
    """Ones on diagonal k (which may be traced), else zeros; [N, M]."""
    shape = (operator.index(N), operator.index(N if M is None else M))
    if min(shape) < 0:
        raise OperandError(f"eye: sizes must not be negative: {shape}\n  at {user_line()}", "eye_shape")
    row, column = (lax.broadcasted_iota(np.int32, shape, d) for d in (0, 1))
    mask = row + diagonal_number("eye", k) == column
    return lax.convert_element_type(mask, dtypes.default_float() if dtype is None else dtype)


def identity(n: int, dtype: Any = None) -> Value:
    """The n x n identity matrix."""
    return eye(n, dtype=dtype)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Value]:
    """Coordinate arrays of a grid from its axes' coordinates; "xy": the first two axes swapped.

    OperandError unless `copy`: the arrays share no memory with the coordinates.
    """
    if not copy:
        raise OperandError(f"meshgrid: copy=False is not possible: arrays are new\n  at {user_line()}", "meshgrid")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    check_arraylike("meshgrid", *xi)
    vectors = [as_value(x) for x in xi]
    for v in vectors:
        if v.aval.ndim != 1:
            raise OperandError(
                f"meshgrid takes vectors, not {v.aval.str_short()}\n  at {user_line()}\n  Use hloom.numpy.ravel.",
                "meshgrid",
            )
    places = list(range(len(vectors)))
    if indexing == "xy" and len(places) > 1:
        places[:2] = [1, 0]
    sizes = [0] * len(vectors)
    for v, p in zip(vectors, places):
        sizes[p] = v.aval.shape[0]
    if sparse:
        return [lax.reshape(v, _only(sizes, p)) for v, p in zip(vectors, places)]
    return [lax.broadcast_in_dim(v, sizes, [p]) for v, p in zip(vectors, places)]


def _only(sizes: list[int], place: int) -> list[int]:
    """`sizes`, with all entries except that at `place` replaced by 1."""
    return [s if d == place else 1 for d, s in enumerate(sizes)]


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The index of each element along each dimension, stacked; a tuple of broadcastable arrays if `sparse`."""
    sizes = canonical_shape(dimensions)
    found = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "indices")
    if sparse:
        return tuple([lax.reshape(lax.iota(found, s), _only(list(sizes), d)) for d, s in enumerate(sizes)])
    if not sizes:
        return zeros((0,), found)
    return stack([lax.broadcasted_iota(found, sizes, d) for d in range(len(sizes))])
