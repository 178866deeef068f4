"""Making arrays: from Python and NumPy data, from constants, from ranges.

Names and semantics follow NumPy, and jax.numpy where they differ. `device` and `out_sharding` have no meaning on one
device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import lax
from ..hlo.sizes import as_size, is_symbolic, larger
from ..lax.movement import canonical_axis, canonical_shape, is_described
from ..tracer import dtypes, ops
from ..tracer.arrays.array import (
    Array,
    array_from_numpy,
    array_from_scalar,
    as_value,
    capturing_block,
    is_absent,
    rank_of,
    refuse_masked,
    resolved,
    shape_of,
)
from ..tracer.arrays.dlpack import array_of
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import InconclusiveDimensionOperation, OperandError, UnsupportedElementTypeError
from ..tracer.sharding.placement import chosen_place, in_asked_place
from ..tracer.source import warn_user
from ..tracer.tracer import Tracer
from .array_manipulation import diagonal_number, stack
from .concrete_values import known_array
from .promotion import broadcast_to_shape, check_arraylike, ensure_arraylikes, promote_dtypes_inexact, to_dtype


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """An array of numbers, nested sequences or objects with `__jax_array__` or `__array__`; itself if it is one
    already.

    The dtype, unless it is given, follows the data: int32 of Python integers and float32 of floats (64 bits wide with
    x64), and 64-bit NumPy data is narrowed too. Python numbers stay weakly typed, so that they adapt to other operands.
    NumPy data is copied, unless `copy` is False.

    >>> import numpy as np, hloom.numpy as jnp
    >>> jnp.asarray([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    >>> jnp.asarray(np.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    value = _converted(a, None if dtype is None else dtypes.requested_dtype(dtype, "asarray"), copy)
    return in_asked_place(value, device, out_sharding, "asarray")


def _converted(a: Any, target: Any, copy: bool | None = None) -> Value:
    """`asarray` of a canonical dtype, or of None."""
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
    if a is None:
        raise _none_is_no_value()
    if hasattr(a, "__jax_array__"):  # before `__array__`, as it may be traced
        return _converted(a.__jax_array__(), target)
    if isinstance(a, str | bytes | dict | set):
        raise _not_an_array(a)
    refuse_masked(a)
    data = np.asarray(a)
    _check_dtype(a, data)
    return array_from_numpy(data if target is None else data.astype(target), target)


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """As `asarray`, but an existing array is copied; with at least `ndmin` dimensions.

    dtype: int32 of Python integers and float32 of floats by default, where NumPy has 64 bits. `order` has no effect.

    >>> jnp.array([1, 2, 3])
    Array([1, 2, 3], dtype=int32)
    >>> jnp.array([[1, 2], [3, 4]], dtype=jnp.float16)
    Array([[1., 2.],
           [3., 4.]], dtype=float16)
    """
    if args:
        copy, order, ndmin = _by_position(args, copy, order, ndmin)
    value = _converted(object, None if dtype is None else dtypes.requested_dtype(dtype, "array"))
    if copy and value is object and isinstance(value, Array) and is_absent(value):
        value = value.with_aval(value.aval)
    elif copy and value is object and isinstance(value, Array) and not value.aval.is_extended:
        value = value.__copy__()
    missing = ndmin - value.aval.ndim
    return in_asked_place(
        lax.reshape(value, (*[1] * missing, *value.aval.shape)) if missing > 0 else value, device, out_sharding, "array"
    )


def _by_position(args: tuple[Any, ...], *named: Any) -> tuple[Any, ...]:
    """`copy`, `order` and `ndmin`, the first of which were given by their position."""
    if len(args) > len(named):
        raise TypeError(f"array() takes at most 5 positional arguments but {len(args) + 2} were given")
    for name, given, default in list(zip(("copy", "order", "ndmin"), named, (True, "K", 0), strict=True))[: len(args)]:
        if given != default:
            raise TypeError(f"array() got multiple values for argument '{name}'")
    warn_user(
        "Passing the copy, order, and ndmin arguments to jnp.array positionally is deprecated. Use keyword arguments "
        "instead.",
        DeprecationWarning,
    )
    return (*args, *named[len(args) :])


def _from_sequence(a: Sequence[Any], target: np.dtype[Any] | None) -> Value:
    if _holds_values(a):
        rows = [asarray(item) for item in a]
        return stack(rows, dtype=target if target is not None else dtypes.result_type(*rows))
    try:
        given = _leaf_types(a)
        if target is None and given and any(t not in _PYTHON_NUMBERS for t in given):
            target = dtypes.result_type(*given)  # NumPy's scalars are stronger than Python's
        data = np.array(a)
        _check_dtype(a, data)
        # converted again with the final dtype, so that Python integers that do not fit raise an OverflowError
        return array_from_numpy(np.array(a, dtypes.canonical_dtype(data.dtype) if target is None else target), target)
    except (ValueError, TypeError) as error:
        if isinstance(error, UnsupportedElementTypeError):
            raise
        is_ragged = " inhomogeneous " in str(error)
        why = f"{error}{' Nested sequences must have equal lengths.' if is_ragged else ''}"
        raise type(error)(f"{why}") from None


_PYTHON_NUMBERS = frozenset([bool, int, float, complex])


def _leaf_types(a: Any) -> set[Any]:
    """The types of the numbers in a nested sequence, and the dtypes of its arrays; nothing if it has anything else."""
    found: set[Any] = set()
    kinds = set(map(type, a))
    if kinds <= _PYTHON_NUMBERS:
        return kinds
    for kind in kinds:
        if issubclass(kind, list | tuple):
            parts = [_leaf_types(item) for item in a if type(item) is kind]
            if not all(parts):
                return set()
            found.update(*parts)
        elif kind in _PYTHON_NUMBERS:
            found.add(kind)
        elif issubclass(kind, np.generic) and issubclass(kind, np.number | np.bool_):
            found.add(np.dtype(kind))
        elif issubclass(kind, np.ndarray):
            found.update(item.dtype for item in a if type(item) is kind)
        else:
            return set()
    return found


def _holds_values(a: Any) -> bool:
    """True if a nested sequence has an Array or Tracer in it."""
    return any(
        _holds_values(x) if isinstance(x, list | tuple) else isinstance(x, ArrayBase) or hasattr(x, "__jax_array__")
        for x in a
    )


def _check_dtype(a: Any, data: np.ndarray[Any, Any]) -> None:
    if data.dtype.kind in "OSUMm":
        if data.dtype.kind == "O":
            if any(v is None for v in data.flat):
                raise _none_is_no_value()
            if all(isinstance(v, bool | int | float) for v in data.flat):
                raise OverflowError(f"Python int too large to convert to {dtypes.default_int()}")
        raise _not_an_array(a)


def _none_is_no_value() -> OperandError:
    return OperandError("None is not a valid value for jnp.array", "array")


def _not_an_array(a: Any) -> UnsupportedElementTypeError:
    text = repr(a)
    shown = text if len(text) <= 60 else text[:57] + "..."
    return UnsupportedElementTypeError(
        f"{shown} of type {type(a).__name__} is not a valid array: arrays hold numbers and booleans"
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Value:
    """An array over (or with a copy of) the memory of another library's array.

    Without a copy both see the same memory, which must not change any more: arrays are immutable.

    >>> import numpy as np, hloom.numpy as jnp
    >>> jnp.from_dlpack(np.array([1.5, 2.5], np.float32))
    Array([1.5, 2.5], dtype=float32)
    """
    data = array_of(x)
    found = array_from_numpy(data, copy=bool(copy) or dtypes.canonical_dtype(data.dtype) != data.dtype)
    return in_asked_place(found, device, None, "from_dlpack")


def copy(a: ArrayLike, order: str | None = None) -> Value:
    """A copy, of the same shape and dtype. Arrays are immutable, so that it is rarely needed.

    >>> jnp.copy(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return array(a, copy=True)


# ---- constants


def full(
    shape: Any, fill_value: ArrayLike, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """An array of one value (or of a value broadcast to `shape`), in the dtype of the value by default.

    >>> jnp.full((2, 3), 7)
    Array([[7, 7, 7],
           [7, 7, 7]], dtype=int32, weak_type=True)
    >>> jnp.full((2, 3), jnp.array([1.0, 2.0, 3.0]))
    Array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """
    check_arraylike("full", fill_value)
    if rank_of(fill_value) == 0:
        return in_asked_place(lax.full(shape, fill_value, dtype), device, out_sharding, "full")
    return in_asked_place(
        broadcast_to_shape(asarray(fill_value, dtype), canonical_shape(shape)), device, out_sharding, "full"
    )


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """Zeros of a shape, float32 by default (float64 with x64).

    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    >>> jnp.zeros(2, dtype=int)
    Array([0, 0], dtype=int32)
    """
    return in_asked_place(lax.full(shape, 0, _dtype_of_constants("zeros", shape, dtype)), device, out_sharding, "zeros")


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """Ones of a shape, float32 by default (float64 with x64).

    >>> jnp.ones((2, 3))
    Array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    return in_asked_place(lax.full(shape, 1, _dtype_of_constants("ones", shape, dtype)), device, out_sharding, "ones")


def _dtype_of_constants(name: str, shape: Any, dtype: Any) -> np.dtype[Any]:
    """float32 by default; TypeError for a number, which is meant as a second size."""
    if dtype is None:
        return dtypes.default_float()
    if isinstance(dtype, int | np.integer):
        raise TypeError(
            f"{dtype} is no dtype. Did you accidentally write `jax.numpy.{name}({shape}, {dtype})` when you meant "
            f"`jax.numpy.{name}(({shape}, {dtype}))`?"
        )
    return dtypes.requested_dtype(dtype, name)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Value:
    """Zeros, as in JAX: there is no memory without contents. float32 by default.

    >>> jnp.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Value:
    """An array of one value with the shape and dtype of `a`, unless others are given. The value is converted to the
    dtype.

    >>> jnp.full_like(jnp.array([[1, 2], [3, 4]]), 7.9)
    Array([[7, 7],
           [7, 7]], dtype=int32)
    """
    like: Any = a
    if is_described(a):
        check_arraylike("full_like", fill_value)
    else:
        check_arraylike("full_like", a, fill_value)
        like = as_value(a).aval
    if rank_of(fill_value) == 0:
        return lax.full_like(a, fill_value, dtype, shape, chosen_place(device, out_sharding, "full_like"))
    wanted = canonical_shape(like.shape if shape is None else shape)
    filled = broadcast_to_shape(asarray(fill_value, like.dtype if dtype is None else dtype), wanted)
    return in_asked_place(filled, device, out_sharding, "full_like")


def zeros_like(
    a: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """Zeros with the shape and dtype of `a`, unless others are given.

    >>> jnp.zeros_like(jnp.array([1, 2, 3]))
    Array([0, 0, 0], dtype=int32)
    >>> jnp.zeros_like(jnp.array([1, 2, 3]), dtype=float, shape=(2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    if not is_described(a):
        check_arraylike("zeros_like", a)
    return lax.full_like(a, 0, dtype, shape, chosen_place(device, out_sharding, "zeros_like"))


def ones_like(
    a: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """Ones with the shape and dtype of `a`, unless others are given.

    >>> jnp.ones_like(jnp.array([0.5, 2.5]))
    Array([1., 1.], dtype=float32)
    """
    if not is_described(a):
        check_arraylike("ones_like", a)
    return lax.full_like(a, 1, dtype, shape, chosen_place(device, out_sharding, "ones_like"))


def empty_like(prototype: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Value:
    """Zeros with the shape and dtype of `prototype`: there is no memory without contents.

    >>> jnp.empty_like(jnp.ones((2, 3), jnp.int8))
    Array([[0, 0, 0],
           [0, 0, 0]], dtype=int8)
    """
    return zeros_like(prototype, dtype, shape, device=device)


# ---- ranges


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Value:
    """start, start + step, ... below stop, as a vector: int32 of integers, float32 of floats; the bounds must be known
    while tracing.

    Of floats the number of elements depends on rounding, as in NumPy: prefer `linspace`. OperandError for bounds that
    are no real numbers, and for dtypes without arithmetic (bool).

    >>> jnp.arange(4)
    Array([0, 1, 2, 3], dtype=int32)
    >>> jnp.arange(1, 2, 0.25)
    Array([1.  , 1.25, 1.5 , 1.75], dtype=float32)
    """
    if any(map(is_symbolic, (start, stop, step))):
        return in_asked_place(_symbolic_range(start, stop, step, dtype), device, out_sharding, "arange")
    start, stop, step = resolved(start), resolved(stop), resolved(step)
    given = [start, *[b for b in (stop, step) if b is not None]]
    for bound in given:
        _check_bound(bound)
    target = dtypes.requested_dtype(dtype, "arange") if dtype is not None else dtypes.result_type(*given)
    if not (dtypes.is_integer(target) or dtypes.is_inexact(target)):
        raise OperandError(f"arange does not make {target.name}: give dtype=int, and convert the result", "arange")
    bounds = [0 if stop is None else start, start if stop is None else stop, 1 if step is None else step]
    numbers = [_known_number(b, name) for b, name in zip(bounds, ("start", "stop", "step"), strict=True)]
    if all(isinstance(n, int) for n in numbers) and target.kind in "iu":
        first, last, distance = numbers
        if distance == 0:
            raise ValueError("arange: the step must not be 0")
        index = lax.iota(target, max(0, -((first - last) // distance)))
        scaled = index if distance == 1 else index * distance
        return in_asked_place(scaled if first == 0 else scaled + first, device, out_sharding, "arange")
    if any(math.isinf(n) for n in numbers):
        raise OverflowError(f"arange: {numbers} has no end")
    if any(isinstance(b, Tracer) for b in bounds):  # bounds that are differentiated: the numbers move with them
        first, _, distance = (as_value(b) for b in bounds)
        steps = lax.iota(dtypes.to_inexact(target), len(np.arange(*numbers)))
        moving: Value = lax.convert_element_type(first + steps * distance, target)
        return in_asked_place(moving, device, out_sharding, "arange")
    return in_asked_place(array_from_numpy(np.arange(*numbers).astype(target), target), device, out_sharding, "arange")


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Value:
    """`arange` with a symbolic bound: all bounds are integers or symbolic."""
    first, end = (0, start) if stop is None else (start, stop)
    by = 1 if step is None else step
    for bound in (first, end, by):
        if not is_symbolic(bound) and not (hasattr(bound, "__index__") and not isinstance(bound, Tracer)):
            raise ValueError(
                "arange: if one of start, stop and step is symbolic, all must be either dimension expressions or "
                f"integers: start={first}, stop={end}, step={by}"
            )
    first, end, by = as_size(first), as_size(end), as_size(by)
    try:
        if by == 0:
            raise ValueError(f"arange has step == 0: start={first}, stop={end}")
        distance, gap = (end - first, by) if by > 0 else (first - end, -by)
    except InconclusiveDimensionOperation as error:
        raise InconclusiveDimensionOperation(
            f"In arange with non-constant arguments the step ({by}) must be resolved statically if it is > 0 or < 0."
            f"\nDetails: {error}"
        ) from None
    target = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "arange")
    count = larger(distance + gap - 1, 0) // gap
    index = lax.iota(target, count)
    scaled = index if by == 1 else index * array_from_scalar(by, target)
    return scaled if first == 0 else scaled + array_from_scalar(first, target)


def _known_number(bound: Any, name: str) -> Any:
    if isinstance(bound, Tracer):
        what = f"It arose in the jnp.arange argument '{name}': arange"
        bound = known_array(what, bound, "Give it as a static argument.")
    return bound.item() if hasattr(bound, "item") else bound


def _check_bound(bound: Any) -> None:
    if type(bound) in (int, float):
        return
    check_arraylike("arange", bound)
    shape = shape_of(bound)
    if shape or dtypes.is_complex(dtypes.type_of(bound)[0]):
        if not shape:
            raise OperandError(
                f"Passing complex start/stop/step to jnp.arange is no longer supported: {bound!r}", "arange"
            )
        raise OperandError(f"arange takes real numbers, and {bound!r} is an array of shape {shape}", "arange")


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
    """`num` evenly spaced values from start to stop (included if `endpoint`), float32 by default; with `retstep` also
    the step.

    start, stop: numbers or arrays; of arrays that broadcast to a shape, the new dimension `axis` is put into it.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    >>> jnp.linspace(0, 1, 4, endpoint=False, retstep=True)
    (Array([0.  , 0.25, 0.5 , 0.75], dtype=float32), Array(0.25, dtype=float32))
    """
    found = _linspace(start, stop, num, endpoint, retstep, dtype, axis)
    if device is None:
        return found
    values, *step = found if retstep else (found,)
    values = in_asked_place(values, device, None, "linspace")
    return (values, *step) if retstep else values


@compound(static=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int) -> Any:
    check_arraylike("linspace", start, stop)
    count = as_size(num)
    if count < 0:
        raise ValueError(f"linspace: the number of values must not be negative: {count}")
    a, b = promote_dtypes_inexact(start, stop)
    result = dtypes.requested_dtype(dtype, "linspace") if dtype is not None else a.aval.dtype
    kind = result if dtypes.is_inexact(result) else dtypes.default_float()
    a, b = to_dtype(a, kind, False), to_dtype(b, kind, False)
    shape = lax.broadcast_shapes(a.aval.shape, b.aval.shape)
    intervals = count - 1 if endpoint else count
    values = _between(a, b, shape, count, larger(intervals, 1))
    if endpoint and (is_symbolic(count) or count > 1):  # exactly `stop` at the end
        row = lax.broadcasted_iota(dtypes.int32, values.aval.shape, 0)
        values = lax.select(row == intervals, broadcast_to_shape(b, values.aval.shape), values)
    if dtypes.is_integer(result):
        values = lax.floor(values)
    values = to_dtype(values, result, False)
    place = canonical_axis(axis, len(shape) + 1)
    if place:
        values = lax.transpose(values, [*range(1, place + 1), 0, *range(place + 1, len(shape) + 1)])
    if not retstep:
        return values
    if is_symbolic(count):
        return values, (b - a) / lax.convert_element_type(as_value(intervals), kind)
    step = (b - a) * kind.type(1 / intervals) if count and intervals else lax.full_like(a, math.nan, shape=())
    return values, lax.convert_element_type(step, step.dtype)


def _between(a: Value, b: Value, shape: tuple[int, ...], count: int, steps: int) -> Value:
    """`count` values a + k (b - a) / steps: [count, *shape].

    Of a * (1 - t) + b * t, with t = k / steps, XLA's compiler contracts one product and the sum to a multiply-add. Here
    the same one is a multiply-add, so that the values of float32 are JAX's to the last bit, on processors with that
    instruction; of float64 they are for ranges between numbers, and from a number to an array. With registers of 64
    bytes, XLA writes out other loops than here: there, ranges of more than 216 elements may differ in the last bits.
    XLA multiplies by 1 / steps. Where b is a number, it takes b out of the second product, which makes k * (b / steps)
    of it.
    """
    kind = a.aval.dtype
    real = dtypes.real_of(kind)
    sizes = (count, *shape)
    if kind not in _LOOPS or is_symbolic(steps):
        t = lax.convert_element_type(lax.iota(real, count) / steps, kind)
        t = lax.broadcast_in_dim(t, sizes, (0,))
        first, last = broadcast_to_shape(a, sizes), broadcast_to_shape(b, sizes)
        return first * (1 - t) + last * t
    part: Any = kind.type(1) / kind.type(steps)
    first = broadcast_to_shape(a, sizes)
    if b.aval.shape:
        t = lax.broadcast_in_dim(_rounded_places(kind, part, count), sizes, (0,))
        last = broadcast_to_shape(b, sizes)
        if a.aval.shape:
            return _multiply_add(first, 1 - t, last * t)
        return _multiply_add(last, t, first * (1 - t))
    k, each = lax.iota(kind, count), b * part
    rest = _rest(k, part, count, steps, math.prod(shape))
    if a.aval.shape:
        remaining, of_last = (lax.broadcast_in_dim(x, sizes, (0,)) for x in (rest, k * each))
        return _multiply_add(first, remaining, of_last)
    values = _multiply_add(k, broadcast_to_shape(each, sizes), first * rest)
    if steps > _ALONE:
        return values
    return lax.select(k == 1, broadcast_to_shape(_multiply_add(a, as_value(1 - part), each), sizes), values)


class _Loop(NamedTuple):
    """How XLA for CPUs compiles a range that ends at a number."""

    step: int
    """The rows that an iteration of a loop computes."""
    unrolled: tuple[int, ...]
    """By the number of columns: up to so many iterations are written out, without a loop."""


_LOOPS = {
    np.dtype(np.float32): _Loop(8, (27, 15, 10, 7, 5, 3, 2, 2)),
    np.dtype(np.float64): _Loop(16, (10,)),
}
"""Found with jaxlib 0.10.2 and JAX 0.12, on a processor with AVX2."""
_WIDE = 12
"""From so many columns on rows are computed one by one."""
_ALONE = 32
"""Up to so many steps, the second place of a range of numbers is computed by itself: then k = 1 is no factor."""


def _multiply_add(x: Value, y: Value, z: Value) -> Value:
    """x * y + z. Of float32 it is a multiply-add, but for ties in float64: the product is exact there, and the sum is
    rounded to float64 first. The compiler decides how it computes other types."""
    kind, wide = x.aval.dtype, np.dtype(np.float64)
    if kind == wide:
        return lax.add(x * y, z)
    x, y, z = (ops.convert(v, wide, False) for v in (x, y, z))
    return ops.convert(ops.add(ops.mul(x, y), z), kind, False)


def _rounded_places(kind: np.dtype[Any], part: Any, count: int, begin: int = 0) -> Value:
    """k * part for k = begin, ..., count - 1, rounded: no compiler contracts these products with a sum."""
    if kind == np.float64:
        is_shared = count - begin <= _FEW_PLACES and not capturing_block()  # such a block has numbers of its own
        return (_few_places if is_shared else _known_places)(part, count, begin)
    k = ops.shift(ops.convert(lax.iota(dtypes.int32, count - begin), kind, False), begin)
    return _multiply_add(k, ops.full_like(k, part), ops.zeros(k.aval))


def _known_places(part: Any, count: int, begin: int) -> Value:
    return as_value(np.arange(begin, count, dtype=np.float64) * part)


_FEW_PLACES = 192
_few_places = functools.lru_cache(maxsize=64)(_known_places)
"""Two equal ranges in a program then capture one array, and are merged with all that is computed from them."""


def _rest(k: Value, part: Any, count: int, steps: int, columns: int) -> Value:
    """1 - k * part. The product is rounded first where k is known to the compiler, which is outside of loops."""
    kind = k.aval.dtype
    loop = _LOOPS[kind]
    iterations = steps // loop.step
    unrolled = loop.unrolled[columns - 1] if columns <= len(loop.unrolled) else int(columns < 2 * loop.step)
    if iterations <= unrolled:
        return 1 - _rounded_places(kind, part, count)
    in_loop = _multiply_add(k, ops.full_like(k, -part), ops.full_like(k, 1))
    begin = iterations * loop.step
    if columns >= _WIDE or begin == steps:
        return in_loop
    return lax.concatenate([in_loop[:begin], 1 - _rounded_places(kind, part, count, begin)], 0)


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
    """base ** linspace(start, stop): `num` values with equal ratios, float32 by default.

    >>> jnp.logspace(0, 3, 4, base=2)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    values = lax.pow(lax.full_like(exponents, base), exponents)
    return values if dtype is None else to_dtype(values, dtypes.requested_dtype(dtype, "logspace"), False)


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Value:
    """`num` numbers from start to stop (included if `endpoint`), each the same multiple of the one before.

    Both must have one sign; of complex numbers the quotient's logarithm is the principal one, so that they are on a
    spiral.

    >>> jnp.geomspace(1.0, 8.0, 4).round(3)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    return _geomspace(start, stop, num, endpoint, dtype, axis)


@compound(static=("num", "endpoint", "dtype", "axis"))
def _geomspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, dtype: Any, axis: int) -> Value:
    a, b = promote_dtypes_inexact(start, stop, name="geomspace")
    result = dtypes.requested_dtype(dtype, "geomspace") if dtype is not None else a.aval.dtype
    wide = a.aval.dtype if a.aval.dtype.itemsize >= 4 else dtypes.float32
    a, b = (to_dtype(v, wide, False) for v in (a, b))
    shape = lax.broadcast_shapes(a.aval.shape, b.aval.shape)
    a, b = broadcast_to_shape(a, shape), broadcast_to_shape(b, shape)
    count = as_size(num)
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


@compound(static=("N", "M", "k", "dtype", "device"), frequent=True)
def eye(N: int, M: int | None = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Value:
    """Ones on diagonal k (which may be traced), else zeros: [N, M], where M is N by default. float32 by default.

    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    shape = (as_size(N), as_size(N if M is None else M))
    if any(size < 0 for size in shape):
        raise OperandError(f"eye: sizes must not be negative: {shape}", "eye_shape")
    row, column = (lax.broadcasted_iota(np.int32, shape, d) for d in (0, 1))
    mask = row + diagonal_number("eye", k, shape) == column
    ones_there = lax.convert_element_type(mask, dtypes.default_float() if dtype is None else dtype)
    return in_asked_place(ones_there, device, None, "eye")


def identity(n: int, dtype: Any = None) -> Value:
    """The n x n identity matrix, float32 by default.

    >>> jnp.identity(2, dtype=int)
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    return eye(n, dtype=dtype)


def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Value]:
    """Coordinate arrays of a grid from the coordinates along its axes, a list of as many arrays.

    indexing: "xy" (arrays have the shape [len(y), len(x), ...], as for pictures) or "ij" ([len(x), len(y), ...]).
    sparse: arrays have size 1 along all axes but their own, and broadcast. OperandError unless `copy`: the arrays share
    no memory with the coordinates.

    >>> x, y = jnp.meshgrid(jnp.array([1, 2, 3]), jnp.array([10, 20]))
    >>> x + y
    Array([[11, 12, 13],
           [21, 22, 23]], dtype=int32)
    """
    if not copy:
        raise OperandError("meshgrid: copy=False is not possible: arrays are new", "meshgrid")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', not {indexing!r}")
    vectors = ensure_arraylikes("meshgrid", *xi)
    for v in vectors:
        if v.aval.ndim != 1:
            raise OperandError(
                f"meshgrid takes vectors, not {v.aval.str_short()}\n  Use hloom.numpy.ravel.", "meshgrid"
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


@compound(static=("dimensions", "dtype", "sparse"), frequent=True)
def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The index of each element along each dimension, stacked: [len(dimensions), *dimensions]; a tuple of arrays that
    broadcast if `sparse`. int32 by default.

    >>> rows, columns = jnp.indices((2, 3))
    >>> rows * 10 + columns
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    sizes = canonical_shape(dimensions)
    found = dtypes.default_int() if dtype is None else dtypes.requested_dtype(dtype, "indices")
    if sparse:
        return tuple([lax.reshape(lax.iota(found, s), _only(list(sizes), d)) for d, s in enumerate(sizes)])
    if not sizes:
        return zeros((0,), found)
    return stack([lax.broadcasted_iota(found, sizes, d) for d in range(len(sizes))])
