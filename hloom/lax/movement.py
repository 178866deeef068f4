"""Operations that move elements: broadcast, reshape, transpose, slice, pad, concatenate; full and iota make arrays.

Names and the meaning of arguments follow jax.lax. Shardings have no meaning on one device.
"""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..autodiff.placed_results import computed_in
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ..hlo.sizes import as_size, is_symbolic
from ..hlo.support.memory_pressure import allocating
from ..tracer import dtypes
from ..tracer.arrays.array import (
    Array,
    array_from_numpy,
    array_from_scalar,
    as_value,
    is_absent,
    is_placed,
    refuse_masked,
    shape_of,
)
from ..tracer.arrays.extended_ops import filled
from ..tracer.arrays.float0 import is_float0
from ..tracer.arrays.operators import ArrayBase
from ..tracer.aval import ShapedArray
from ..tracer.caches import on_clear
from ..tracer.core import Value, bind, thread_state
from ..tracer.errors import AxisError, ConcretizationTypeError, OperandError
from ..tracer.ops import convert
from ..tracer.sharding.lenience import refuse_divided, refuse_uneven
from ..tracer.sharding.placement import check_same_reductions, in_asked_place, of_type
from ..tracer.tracer import Tracer

_state = thread_state()


def canonical_axis(axis: int, rank: int) -> int:
    """A dimension's number counted from the front; AxisError (a ValueError and IndexError) if there is none."""
    try:
        number = operator.index(axis)
    except TypeError as error:
        if isinstance(error, ConcretizationTypeError):
            raise
        why = f"an axis cannot be interpreted as an integer: {axis!r}"
        raise OperandError(f"{why}", "axis") from None
    if not -rank <= number < rank:
        given = f"give one of {-rank} to {rank - 1}" if rank else "a scalar has none"
        raise AxisError(f"axis {axis} is out of bounds for an array of {rank} dimensions: {given}")
    return number % rank


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """Sizes as Python integers, of an integer (one dimension) or of anything that can be iterated over in an order.
    TracerIntegerConversionError for a traced size."""
    if type(shape) is int:
        return (shape,)
    if type(shape) is tuple:
        for size in shape:
            if type(size) is not int:
                break
        else:
            return shape
    try:
        sizes = _iterator(shape)
        return tuple([as_size(shape)] if sizes is None else [as_size(s) for s in sizes])
    except ConcretizationTypeError as error:
        raise type(error)(
            f"Shapes must be 1D sequences of concrete values of integer type, got {shape}.\n"
            f"If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.\n{error}"
        ) from None
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        raise TypeError(f"Shapes must be 1D sequences of concrete values of integer type, got {shape!r}") from None


def _iterator(shape: Any) -> Iterator[Any] | None:
    """The sizes one by one; None for an object that is not iterable, or has no order."""
    if isinstance(shape, (set, frozenset, dict)):
        return None
    try:
        return iter(np.asarray(shape) if isinstance(shape, Array) else shape)  # independent of surrounding traces
    except TypeError:
        return None


# ---- broadcasting


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape of `shapes` by NumPy's rule of broadcasting; OperandError (a ValueError) if there is none.

    >>> jnp.broadcast_shapes((3, 1), (4,), (2, 1, 1))
    (2, 3, 4)
    """
    return _broadcast_shapes(tuple([canonical_shape(s) for s in shapes]))


@lru_cache(maxsize=4096)
def _broadcast_shapes(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    rank = max((len(s) for s in shapes), default=0)
    if any(size < 0 for shape in shapes for size in shape if not is_symbolic(size)):
        raise TypeError(f"Only non-negative indices are allowed when broadcasting static shapes, but got {shapes}")
    result = []
    for d in range(-rank, 0):
        sizes = {s[d] for s in shapes if len(s) >= -d} - {1}
        if len(sizes) > 1:
            listed = ", ".join(map(str, shapes))
            raise OperandError(
                f"Incompatible shapes for broadcasting: {listed}: sizes along a dimension must be equal or 1",
                "broadcast_shapes",
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Value:
    """Dimension i of the operand becomes dimension `broadcast_dimensions[i]` of the result; size 1 is repeated.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return computed_in(
            out_sharding, "broadcast_in_dim", lambda: broadcast_in_dim(operand, shape, broadcast_dimensions)
        )
    x, shape = as_value(operand), canonical_shape(shape)
    dimensions = tuple(broadcast_dimensions)
    if len(dimensions) != x.aval.ndim:
        raise OperandError(
            f"broadcast_dimensions must have length equal to operand ndim, got {dimensions} for {x.aval.str_short()}",
            "broadcast_c2",
        )
    kept_shape, attributes = _broadcast_plan(x.aval.shape, shape, dimensions)
    if kept_shape is not None:
        x = reshape(x, kept_shape)
    if attributes is None:
        return x
    at_once = _state.direct and _state.recorder is None
    is_plain = isinstance(x, Array) and not x.aval.is_extended and not is_placed(x)
    if at_once and not attributes.dimensions and isinstance(x, Array) and is_plain:
        return Array(ShapedArray(shape, x.aval.dtype, x.aval.weak_type), allocating(np.full, shape, x._view))
    return bind(Opcode.BROADCAST, (x,), attributes, shape=ShapedArray(shape, x.aval.dtype).hlo)


@lru_cache(maxsize=4096)
def _broadcast_plan(
    given: tuple[int, ...], shape: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[tuple[int, ...] | None, BroadcastAttributes | None]:
    """The shape for a reshape before broadcasting, and the broadcast itself; None for a step that is not needed.

    HLO's broadcast repeats only along new dimensions: a dimension of size 1 that grows must be removed first.
    """
    kept_shape = None
    if given == shape and dims == tuple(range(len(shape))):
        return None, None
    why = None
    if len(given) > len(shape):
        why = "target broadcast shape must have equal or higher rank to the operand shape"
    elif not all(0 <= d < len(shape) for d in dims):
        why = "broadcast_dimensions must be a subset of output dimensions"
    elif any(n not in (1, shape[d]) for n, d in zip(given, dims, strict=True)):
        why = (
            "operand dimension sizes must either be 1, or be equal to their corresponding dimensions in the target "
            "broadcast shape"
        )
    elif len(set(dims)) < len(dims):
        why = "broadcast_dimensions must not contain duplicates"
    if why is not None:
        raise OperandError(f"broadcast_in_dim {why}, got {given} to {shape} by dimensions {dims}", "broadcast_c3")
    kept = [i for i, d in enumerate(dims) if given[i] != 1 or shape[d] == 1]
    if len(kept) < len(dims):
        given = kept_shape = tuple(given[i] for i in kept)
        dims = tuple(dims[i] for i in kept)
    if given == shape and dims == tuple(range(len(shape))):
        return kept_shape, None
    return kept_shape, BroadcastAttributes(dims)


on_clear(_broadcast_shapes.cache_clear)
on_clear(_broadcast_plan.cache_clear)


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Value:
    """The operand repeated along new leading dimensions of `sizes`.

    >>> lax.broadcast(jnp.array([1, 2]), (3,))
    Array([[1, 2],
           [1, 2],
           [1, 2]], dtype=int32)
    """
    x, sizes = as_value(operand), canonical_shape(sizes)
    dimensions = range(len(sizes), len(sizes) + x.aval.ndim)
    return broadcast_in_dim(x, (*sizes, *x.aval.shape), dimensions, out_sharding=out_sharding)


def broadcast_like(arr: Any, like_arr: Any) -> Value:
    """The array broadcast to the shape of another one, its last dimensions to the last ones.

    >>> lax.broadcast_like(jnp.array([1, 2]), jnp.zeros((3, 2)))
    Array([[1, 2],
           [1, 2],
           [1, 2]], dtype=int32)
    """
    x, shape = as_value(arr), shape_of(like_arr)
    if broadcast_shapes(x.aval.shape, shape) != shape:
        raise OperandError(
            f"broadcast_like: {x.aval.str_short()} does not broadcast to the shape {shape}", "broadcast_shapes"
        )
    return broadcast_in_dim(x, shape, range(len(shape) - x.aval.ndim, len(shape)))


def tile(operand: Any, reps: Sequence[int]) -> Value:
    """The array repeated as a whole along each dimension: one number for each.

    >>> lax.tile(jnp.array([[1, 2]]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x, counts = as_value(operand), canonical_shape(reps)
    if len(counts) != x.aval.ndim:
        raise OperandError(
            f"lax.tile: reps length must be equal to the ndim of x, got {len(counts)} for {x.aval.str_short()}\n"
            "  hloom.numpy.tile takes other numbers.",
            "tile",
        )
    repeated = [d for d, n in enumerate(counts) if n != 1]
    refuse_divided(x.aval, repeated, f"tile: dimensions {repeated} cannot be sharded where tiling is non-trivial")
    shape = [n for pair in zip(counts, x.aval.shape, strict=True) for n in pair]
    wide = broadcast_in_dim(x, shape, range(1, 2 * x.aval.ndim, 2))
    return reshape(wide, [count * size for count, size in zip(counts, x.aval.shape, strict=True)])


# ---- shape


def reshape(
    operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Value:
    """The elements in row-major order under another shape (after transposing by `dimensions`, where given).

    >>> lax.reshape(jnp.arange(6), (2, 3))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    >>> lax.reshape(jnp.array([[1, 2], [3, 4]]), (4,), dimensions=(1, 0))
    Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        check_same_reductions(out_sharding, as_value(operand).aval, "reshape")
        return computed_in(out_sharding, "reshape", lambda: reshape(operand, new_sizes, dimensions))
    x, sizes = as_value(operand), canonical_shape(new_sizes)
    if dimensions is not None:
        x = transpose(x, dimensions)
    if x.aval.shape == sizes:
        return x
    if any(s < 0 for s in sizes) or math.prod(sizes) != x.aval.size:
        raise OperandError(
            f"reshape: {x.aval.str_short()} has {x.aval.size} elements, which do not make shape {sizes}", "reshape_c2"
        )
    return bind(Opcode.RESHAPE, (x,), shape=ShapedArray(sizes, x.aval.dtype).hlo)


def transpose(operand: Any, permutation: Sequence[int]) -> Value:
    """Dimension i of the result is dimension `permutation[i]` of the operand.

    >>> lax.transpose(jnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x, order = as_value(operand), tuple(operator.index(d) for d in permutation)
    if order == tuple(range(len(x.aval.shape))):
        return x
    return bind(Opcode.TRANSPOSE, (x,), TransposeAttributes(order))


def moved_dimension(x: Value, source: int, target: int) -> Value:
    """`x` with dimension `source` at `target`."""
    order = [d for d in range(x.aval.ndim) if d != source]
    order.insert(target, source)
    return transpose(x, order)


def expand_dims(array: Any, dimensions: Sequence[int]) -> Value:
    """New dimensions of size 1 at these positions of the result's shape.

    >>> lax.expand_dims(jnp.zeros((2, 3)), (0, 3)).shape
    (1, 2, 3, 1)
    """
    x = as_value(array)
    rank = x.aval.ndim + len(dimensions)
    places = {canonical_axis(d, rank) for d in dimensions}
    if len(places) != len(dimensions):
        raise ValueError(f"expand_dims: repeated axis in {tuple(dimensions)}")
    sizes = iter(x.aval.shape)
    return reshape(x, [1 if d in places else next(sizes) for d in range(rank)])


def squeeze(array: Any, dimensions: Sequence[int]) -> Value:
    """Without these dimensions, which have size 1.

    >>> lax.squeeze(jnp.zeros((1, 2, 1)), (0,)).shape
    (2, 1)
    """
    x = as_value(array)
    places = {canonical_axis(d, x.aval.ndim) for d in dimensions}
    if len(places) != len(dimensions):
        raise OperandError(f"squeeze: dimensions are not unique: {tuple(dimensions)}", "squeeze_c2")
    for d in places:
        if x.aval.shape[d] != 1:
            raise OperandError(
                "cannot select an axis to squeeze out which has size not equal to one, got "
                f"shape={x.aval.shape} and dimensions={tuple(sorted(places))}",
                "squeeze_c1",
            )
    return reshape(x, [s for d, s in enumerate(x.aval.shape) if d not in places])


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Value:
    """Dimensions [start, stop) merged into one.

    >>> lax.collapse(jnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    x = as_value(operand)
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(x.aval.ndim)
    shape = x.aval.shape
    return reshape(x, (*shape[:start], math.prod(shape[start:stop]), *shape[stop:]))


def rev(operand: Any, dimensions: Sequence[int]) -> Value:
    """Elements in reverse order along `dimensions`.

    >>> lax.rev(jnp.array([[1, 2], [3, 4]]), (1,))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    dims = tuple(operator.index(d) for d in dimensions)
    x = as_value(operand)
    return bind(Opcode.REVERSE, (x,), ReverseAttributes(dims)) if dims else x


# ---- slices, padding, joining


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Value:
    """Elements start, start + stride, ... below limit, along each dimension.

    >>> lax.slice(jnp.arange(10), (1,), (8,), (3,))
    Array([1, 4, 7], dtype=int32)
    """
    x = as_value(operand)
    starts, limits = canonical_shape(start_indices), canonical_shape(limit_indices)
    steps = canonical_shape(strides) if strides is not None else (1,) * len(starts)
    is_whole = all(s == 0 for s in starts) and limits == x.aval.shape and {*steps} <= {1}
    if is_whole and len(starts) == len(limits) == len(steps):
        return x
    return bind(Opcode.SLICE, (x,), SliceAttributes(starts, limits, steps))


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Value:
    """`slice` along one axis; negative indices count from the end.

    >>> lax.slice_in_dim(jnp.arange(6).reshape(2, 3), -2, None, axis=1)
    Array([[1, 2],
           [4, 5]], dtype=int32)
    """
    x = as_value(operand)
    axis = canonical_axis(axis, x.aval.ndim)
    starts, limits, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    size = x.aval.shape[axis]
    start = 0 if start_index is None else as_size(start_index)
    limit = size if limit_index is None else as_size(limit_index)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = as_size(stride)
    return slice(x, starts, limits, strides)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Value:
    """The element at a constant index along one axis.

    >>> lax.index_in_dim(jnp.array([[1, 2], [3, 4]]), -1, axis=1, keepdims=False)
    Array([2, 4], dtype=int32)
    """
    x = as_value(operand)
    axis = canonical_axis(axis, x.aval.ndim)
    size, number = x.aval.shape[axis], as_size(index)
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of bounds for axis {axis} with size {size}")
    place = number + size if number < 0 else number
    found = slice_in_dim(x, place, place + 1, 1, axis)
    return found if keepdims else squeeze(found, [axis])


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Value:
    """Add (low, high, interior) elements of `padding_value` in each dimension; negative low or high remove elements.

    >>> lax.pad(jnp.array([1, 2, 3]), 0, [(2, 1, 0)])
    Array([0, 0, 1, 2, 3, 0], dtype=int32)
    >>> lax.pad(jnp.array([1, 2, 3]), 0, [(-1, 0, 1)])
    Array([0, 2, 0, 3], dtype=int32)
    """
    x = as_value(operand)
    value = as_value(padding_value)
    if isinstance(value, Array) and value.aval.weak_type and not value.aval.shape:
        is_known = not is_absent(value)
        dtype = x.aval.dtype
        value = array_from_scalar(value.item(), dtype) if is_known else convert(value, dtype, False)
    low, high, interior = (tuple(as_size(c[k]) for c in padding_config) for k in range(3))
    return bind(Opcode.PAD, (x, value), PadAttributes(low, high, interior), weak_type=x.aval.weak_type)


def concatenate(operands: Sequence[Any], dimension: int) -> Value:
    """Arrays of one dtype joined along a dimension.

    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    if len(operands) == 0:
        raise ValueError("concatenate needs at least one array")
    values = [as_value(o) for o in operands]
    if len({v.aval.dtype for v in values}) > 1:
        names = ", ".join(v.aval.dtype.name for v in values)
        raise OperandError(
            f"lax.concatenate requires arguments to have the same dtypes, got {names} (hloom.numpy.concatenate "
            "promotes dtypes)",
            "concatenate_c2",
        )
    if len(values) == 1:
        return values[0]
    if len({v.aval.ndim for v in values}) > 1:
        types = ", ".join([str(v.aval.storage.hlo) for v in values])
        raise OperandError(
            f"concatenate of ({types}): all must have the same number of dimensions (ndim)", "concatenate_c4"
        )
    return bind(Opcode.CONCATENATE, values, ConcatenateAttributes(operator.index(dimension)))


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Value]:
    """Consecutive pieces of `sizes` along an axis.

    >>> lax.split(jnp.arange(5), (2, 3))
    [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]
    """
    x = as_value(operand)
    axis, pieces = canonical_axis(axis, x.aval.ndim), canonical_shape(sizes)
    if any(p < 0 for p in pieces):
        raise OperandError(f"Sizes passed to split must be nonnegative, got {pieces}", "split")
    if sum(pieces) != x.aval.shape[axis]:
        raise OperandError(
            f"Sum of sizes {sum(pieces)} must be equal to {x.aval.shape[axis]}, the size of axis {axis}: {pieces}",
            "split",
        )
    refuse_uneven(x.aval, axis, pieces, "split")
    ends = list(itertools.accumulate(pieces, initial=0))
    return [slice_in_dim(x, a, b, 1, axis) for a, b in itertools.pairwise(ends)]


# ---- making arrays


def stack(operands: Sequence[Any], axis: int = 0) -> Value:
    """Arrays of one type, stacked along a new dimension.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    arrays = [as_value(x) for x in operands]
    if not arrays:
        raise OperandError("lax.stack needs at least one array", "stack")
    shapes = {x.aval.shape for x in arrays}
    if len(shapes) > 1:
        raise OperandError(
            f"lax.stack: all arrays must have the same shape, not {', '.join(map(str, sorted(shapes)))}", "stack"
        )
    axis = canonical_axis(axis, arrays[0].aval.ndim + 1)
    return concatenate([expand_dims(x, [axis]) for x in arrays], axis)


def unstack(x: Any, axis: int = 0) -> tuple[Value, ...]:
    """The slices along a dimension, without it.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    value = as_value(x)
    axis = canonical_axis(axis, value.aval.ndim)
    refuse_divided(value.aval, [axis], f"unstack operand cannot be sharded on the unstacking axis {axis}")
    return tuple([index_in_dim(value, k, axis, False) for k in range(value.aval.shape[axis])])


def empty(shape: Any, dtype: DTypeLike, *, out_sharding: Any = None) -> Value:
    """An array with unspecified elements: zeros.

    >>> lax.empty((2, 3), jnp.float32).shape
    (2, 3)
    """
    return in_asked_place(full(shape, 0, dtype), None, out_sharding, "empty")


def full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None, *, sharding: Any = None) -> Value:
    """An array of one value; `dtype` defaults to the value's, weak type included. Of float0: a NumPy array.
    sharding: where the array is put.

    >>> lax.full((2, 2), 7, jnp.int8)
    Array([[7, 7],
           [7, 7]], dtype=int8)
    """
    sizes = canonical_shape(shape)
    found = None if dtype is None else dtypes.requested_dtype(dtype, "full")
    if found is dtypes.float0:
        return _of_float0(sizes)
    value = as_value(fill_value) if found is None else _as_dtype(fill_value, found)
    if value.aval.shape:
        raise OperandError(f"full needs a scalar, not {value.aval.str_short()}", "full_c1")
    filled_array = broadcast_in_dim(value, sizes, ())
    return in_asked_place(filled_array, sharding, None, "full")


def _of_float0(shape: tuple[int, ...]) -> Value:
    """An array of NumPy's, as tangents of integers are: no array of a program has this dtype."""
    array: Any = np.zeros(shape, dtypes.float0)
    found: Value = array
    return found


def _as_dtype(value: Any, dtype: np.dtype[Any]) -> Value:
    if dtypes.is_extended(dtype):
        return convert(value, dtype) if isinstance(value, ArrayBase) else filled(value, ShapedArray((), dtype))
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return _number_as(value, dtype)
    if isinstance(value, np.ndarray | np.generic):
        refuse_masked(value)
        return array_from_numpy(np.asarray(value).astype(dtype))
    found = as_value(value)
    if found.aval.dtype is dtype and not found.aval.weak_type:
        return found
    return bind(Opcode.CONVERT, (found,), shape=ShapedArray(found.aval.shape, dtype).hlo, weak_type=False)


def _number_as(value: complex, dtype: np.dtype[Any]) -> Array:
    """A Python number as a scalar of `dtype`: integers wrap, and floats saturate, where they do not fit."""
    if dtypes.is_integer(dtype) and not isinstance(value, builtins.complex):
        limits = dtypes.iinfo(dtype)
        if isinstance(value, float):
            value = 0 if math.isnan(value) else int(min(max(value, int(limits.min)), int(limits.max)))
        elif not limits.min <= value <= limits.max:
            size = int(limits.max) - int(limits.min) + 1
            value = (value - int(limits.min)) % size + int(limits.min)
    return array_from_scalar(value, dtype)


def full_like(
    x: Any, fill_value: Any, dtype: DTypeLike | None = None, shape: Any = None, sharding: Any = None
) -> Value:
    """An array of one value with the shape, dtype and weak type of x, unless others are given.

    x: an array, a number, or an object with only a shape and a dtype, such as `hloom.ShapeDtypeStruct`.
    sharding: where the result is. By default, outside of jit, where x is, if the shapes are equal or x is replicated;
        within jit, divided by Explicit axes as x is, if no shape is given.

    >>> lax.full_like(jnp.zeros((2, 2)), 7)
    Array([[7., 7.],
           [7., 7.]], dtype=float32)
    """
    if is_float0(x):
        return full(x.shape if shape is None else shape, fill_value, dtypes.float0 if dtype is None else dtype)
    if not isinstance(x, ArrayBase) and is_described(x):
        kind, weak = dtypes.requested_dtype(x.dtype, "full_like"), getattr(x, "weak_type", False)
    else:
        x = as_value(x)
        kind, weak = x.aval.dtype, x.aval.weak_type
    sizes = canonical_shape(x.shape if shape is None else shape)
    if dtype is not None:
        found = full(sizes, fill_value, dtype)
    else:
        scalar = _as_dtype(fill_value, kind)
        if weak and isinstance(scalar, Array):
            scalar = scalar.with_aval(scalar.aval.with_weak_type(True))
        found = broadcast_in_dim(scalar, sizes, ())
    if sharding is None and shape is None and isinstance(x, Tracer):
        return of_type(found, x.aval)
    if sharding is None and isinstance(x, Array) and is_placed(x) and isinstance(found, Array):
        sharding = x.sharding if sizes == x.shape or x.is_fully_replicated else None
    return found if sharding is None else in_asked_place(found, sharding, None, "full_like")


def is_described(x: Any) -> bool:
    """True for an object with only a shape and a dtype, such as `hloom.ShapeDtypeStruct`."""
    return not isinstance(x, (ArrayBase, np.ndarray, np.generic)) and hasattr(x, "shape") and hasattr(x, "dtype")


def iota(dtype: DTypeLike, size: int) -> Value:
    """0, 1, ..., size - 1.

    >>> lax.iota(jnp.float32, 4)
    Array([0., 1., 2., 3.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: Any, dimension: int, *, out_sharding: Any = None) -> Value:
    """An array in which each element is its own index along `dimension`.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    sizes, found = canonical_shape(shape), dtypes.requested_dtype(dtype, "iota")
    if dtypes.is_extended(found):
        raise OperandError(f"iota does not accept dtype {found.name}", "iota_c1")
    attributes = IotaAttributes(canonical_axis(dimension, len(sizes)))
    numbers = bind(Opcode.IOTA, (), attributes, shape=ShapedArray(sizes, found).hlo, weak_type=False)
    return numbers if out_sharding is None else in_asked_place(numbers, None, out_sharding, "broadcasted_iota")
