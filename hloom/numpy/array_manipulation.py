"""NumPy's functions that rearrange elements: shapes, axes, joining, splitting, repeating, triangles.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..autodiff.placed_results import computed_in
from ..hlo.sizes import is_symbolic, larger, smaller
from ..lax.movement import canonical_axis, canonical_shape
from ..tracer import dtypes
from ..tracer.arrays.array import as_value, rank_of, resolved, shape_of
from ..tracer.arrays.indices import as_index, holding
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import InconclusiveDimensionOperation, OperandError
from ..tracer.sharding.lenience import refuse_divided
from ..tracer.sharding.placement import check_same_reductions
from ..tracer.tracer import Tracer
from .binary_ufuncs import mod
from .concrete_values import require_known
from .promotion import (
    Axis,
    broadcast_to_shape,
    canonical_axes,
    check_arraylike,
    ensure_arraylike,
    ensure_arraylikes,
    index_tuple,
    no_out,
    promote_dtypes,
    strong,
    to_dtype,
)
from .selection import where

# ---- shape


def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Value:
    """The same elements in another shape; one size may be -1, and follows from the others. `order` "F": the first index
    varies fastest.

    The result is no view of `a`: arrays are immutable. `copy` has no effect.

    >>> x = jnp.arange(6)
    >>> jnp.reshape(x, (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    >>> jnp.reshape(x, (2, 3), order="F")
    Array([[0, 2, 4],
           [1, 3, 5]], dtype=int32)
    """
    if out_sharding is not None:
        check_same_reductions(out_sharding, as_value(a).aval, "reshape")
        return computed_in(out_sharding, "reshape", lambda: reshape(a, shape, order))
    x = ensure_arraylike("reshape", a)
    sizes = list(canonical_shape(shape))
    if sizes.count(-1) > 1:
        raise OperandError(f"reshape: only one size can be -1, not {tuple(sizes)}", "reshape")
    if -1 in sizes:
        known = math.prod([s for s in sizes if s != -1])
        if is_symbolic(known) or is_symbolic(x.aval.size):
            sizes[sizes.index(-1)] = _symbolic_quotient(x.aval.shape, sizes)
        elif known == 0 or x.aval.size % known:
            raise OperandError(
                f"reshape: {x.aval.size} elements of {x.aval.str_short()} do not make shape {tuple(sizes)}",
                "reshape_c2",
            )
        else:
            sizes[sizes.index(-1)] = x.aval.size // known
    if order == "C":
        return lax.reshape(x, sizes)
    if order != "F":
        raise ValueError(f"reshape: order must be 'C' or 'F', not {order!r}")
    return transpose(lax.reshape(transpose(x), sizes[::-1]))


def _symbolic_quotient(shape: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """The size that -1 in `sizes` stands for. Divided with its sign, as in JAX: constraints name such quotients."""
    quotient, rest = divmod(math.prod(shape), math.prod(sizes))
    if rest != 0:
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {tuple(shape)} and {tuple(sizes)}. The remainder {rest} should "
            "be 0."
        )
    return -quotient


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Value:
    """All elements in one dimension, [a.size]. `order` "F": the first index varies fastest.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    return reshape(a, (as_value(a).aval.size,), order, out_sharding=out_sharding)


def along(x: Value, axis: int | None) -> tuple[Value, int]:
    """The array and an axis of it; flattened for None."""
    if axis is None:
        return ravel(x), 0
    return x, canonical_axis(axis, x.aval.ndim)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Value:
    """Dimension i of the result is dimension axes[i]; by default the order is reversed.

    >>> jnp.transpose(jnp.array([[1, 2, 3], [4, 5, 6]]))
    Array([[1, 4],
           [2, 5],
           [3, 6]], dtype=int32)
    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = ensure_arraylike("transpose", a)
    order = range(x.aval.ndim)[::-1] if axes is None else [canonical_axis(i, x.aval.ndim) for i in axes]
    return lax.transpose(x, order)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Value:
    """Dimension i of the result is dimension axes[i]: `transpose` with the arguments of the array API standard.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, index_tuple("permute_dims: axes", axes))


def matrix_transpose(x: ArrayLike, /) -> Value:
    """The last two dimensions swapped: of [..., m, n] it is [..., n, m]. The property x.mT.

    >>> jnp.matrix_transpose(jnp.array([[[1, 2], [3, 4]]]))
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    value = ensure_arraylike("matrix_transpose", x)
    if value.aval.ndim < 2:
        raise ValueError(f"matrix_transpose needs at least 2 dimensions, not {value.aval.str_short()}")
    return swapaxes(value, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Value:
    """Two dimensions swapped.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = ensure_arraylike("swapaxes", a)
    order = list(range(x.aval.ndim))
    i, j = canonical_axis(axis1, x.aval.ndim), canonical_axis(axis2, x.aval.ndim)
    order[i], order[j] = j, i
    return lax.transpose(x, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    """Dimensions `source` moved to positions `destination`; the others keep their order.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = ensure_arraylike("moveaxis", a)
    sources = _axis_list(source, x.aval.ndim)
    targets = _axis_list(destination, x.aval.ndim)
    if len(sources) != len(targets):
        raise ValueError(f"moveaxis: {len(sources)} sources and {len(targets)} destinations")
    order = [d for d in range(x.aval.ndim) if d not in sources]
    for target, origin in sorted(zip(targets, sources)):
        order.insert(target, origin)
    return lax.transpose(x, order)


def _axis_list(axis: int | Sequence[int], rank: int) -> list[int]:
    return [canonical_axis(a, rank) for a in (axis if isinstance(axis, Sequence) else [axis])]


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Value:
    """New dimensions of size 1 at these positions of the result's shape.

    >>> jnp.expand_dims(jnp.ones((2, 3)), 0).shape, jnp.expand_dims(jnp.ones((2, 3)), (1, -1)).shape
    ((1, 2, 3), (2, 1, 3, 1))
    """
    return lax.expand_dims(ensure_arraylike("expand_dims", a), list(axis) if isinstance(axis, Sequence) else [axis])


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Value:
    """Without dimensions of size 1: all, or those given, which must have size 1.

    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape, jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
    ((3,), (3, 1))
    """
    x = ensure_arraylike("squeeze", a)
    if axis is None:
        if any(map(is_symbolic, x.aval.shape)):
            raise ValueError(
                "jnp.squeeze with axis=None is not supported with shape polymorphism: a symbolic size may be 1: "
                f"{x.aval.str_short()}"
            )
        return lax.reshape(x, [s for s in x.aval.shape if s != 1])
    return lax.squeeze(x, list(axis) if isinstance(axis, Sequence) else [axis])


def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Value:
    """Repeated along new leading dimensions and along dimensions of size 1.

    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return computed_in(out_sharding, "broadcast_to", lambda: broadcast_to(array, shape))
    x, sizes = ensure_arraylike("broadcast_to", array), canonical_shape(shape)
    own = x.aval.shape
    if len(own) > len(sizes):
        raise OperandError(f"Cannot broadcast to shape with fewer dimensions: {own} to {sizes}", "broadcast_to")
    if any(a not in (1, b) for a, b in zip(own[::-1], sizes[::-1])):
        raise OperandError(
            f"Incompatible shapes for broadcasting: {own} and requested shape {sizes}: sizes must be equal or 1",
            "broadcast_to",
        )
    return broadcast_to_shape(x, sizes)


def broadcast_arrays(*args: ArrayLike) -> list[Value]:
    """All broadcast to one shape: a list. Dtypes stay.

    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    values = [ensure_arraylike("broadcast_arrays", a) for a in args]
    shape = lax.broadcast_shapes(*[v.aval.shape for v in values]) if values else ()
    return [broadcast_to_shape(v, shape) for v in values]


def atleast_1d(*arys: ArrayLike) -> Any:
    """Scalars as vectors of size 1, other arrays as they are. A list, unless there is one argument.

    >>> jnp.atleast_1d(jnp.array(3.0))
    Array([3.], dtype=float32, weak_type=True)
    """
    return _at_least(1, arys)


def atleast_2d(*arys: ArrayLike) -> Any:
    """Scalars and vectors as matrices of one row, other arrays as they are. A list, unless there is one argument.

    >>> jnp.atleast_2d(jnp.array([1, 2]))
    Array([[1, 2]], dtype=int32)
    """
    return _at_least(2, arys)


def _at_least(rank: int, args: tuple[ArrayLike, ...]) -> Any:
    values = [ensure_arraylike(f"atleast_{rank}d", a) for a in args]
    found = [lax.reshape(v, (*[1] * (rank - v.aval.ndim), *v.aval.shape)) for v in values]
    return found[0] if len(found) == 1 else found


# ---- joining and splitting


def _sequence(name: str, arrays: Any) -> list[Any]:
    arrays = resolved(arrays)
    if isinstance(arrays, ArrayBase | np.ndarray):
        return list(arrays)
    if not isinstance(arrays, Sequence) or not arrays:
        raise OperandError(f"{name} needs at least one array, in a sequence", name)
    return list(arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Value:
    """Arrays joined along an axis; flattened first if it is None. All other sizes must be equal; dtypes promote.

    >>> jnp.concatenate([jnp.ones((1, 2)), jnp.zeros((1, 2))])
    Array([[1., 1.],
           [0., 0.]], dtype=float32)
    >>> jnp.concatenate([jnp.ones((1, 2)), jnp.zeros((1, 2))], axis=1)
    Array([[1., 1., 0., 0.]], dtype=float32)
    """
    arrays = resolved(arrays)
    if isinstance(arrays, ArrayBase | np.ndarray) and rank_of(arrays) > 1 and len(arrays):
        return _joined_rows(_of_one_dtype([arrays], dtype)[0], axis)
    items = _sequence("concatenate", arrays)
    check_arraylike("concatenate", *items)
    values = _of_one_dtype(items, dtype)
    if axis is None:
        return lax.concatenate([ravel(v) for v in values], 0)
    if values[0].aval.ndim == 0:
        raise ValueError("concatenate: arrays without dimensions cannot be joined: use stack")
    return lax.concatenate(values, canonical_axis(axis, values[0].aval.ndim))


def _of_one_dtype(items: Sequence[Any], dtype: Any) -> Sequence[Value]:
    if dtype is None:
        return promote_dtypes(*items)
    return [to_dtype(a, dtypes.requested_dtype(dtype, "stack or concatenate"), False) for a in items]


def _joined_rows(x: Value, axis: int | None) -> Value:
    """The rows x[0], x[1], ... joined: all of them at once, as taking them apart would be an operation for each."""
    if axis is None:
        return ravel(x)
    count, *sizes = x.aval.shape
    place = canonical_axis(axis, len(sizes))
    others = [d for d in range(1, x.aval.ndim) if d <= place]
    turned = lax.transpose(x, [*others, 0, *range(place + 1, x.aval.ndim)]) if place else x
    return lax.reshape(turned, (*sizes[:place], count * sizes[place], *sizes[place + 1 :]))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Value:
    """`concatenate`, with the arguments of the array API standard.

    >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


@compound(static=("axis", "dtype"), frequent=True)
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Value:
    """Arrays of one shape joined along a new axis; dtypes promote.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    arrays = resolved(arrays)
    if isinstance(arrays, ArrayBase | np.ndarray) and rank_of(arrays) and len(arrays):
        (rows,) = _of_one_dtype([arrays], dtype)
        return moveaxis(rows, 0, canonical_axis(axis, rows.aval.ndim))
    items = _sequence("stack", arrays)
    values = ensure_arraylikes("stack", *items)
    shape = values[0].aval.shape
    for v in values:
        if v.aval.shape != shape:
            raise ValueError(f"stack: all arrays must have one shape, not {shape} and {v.aval.shape}")
    place = canonical_axis(axis, len(shape) + 1)
    return concatenate([lax.expand_dims(v, [place]) for v in values], place, dtype)


@compound(static=("dtype",), frequent=True)
def vstack(tup: Any, dtype: Any = None) -> Value:
    """Rows (or arrays of more dimensions) on top of each other: joined along the first axis. Dtypes promote.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return concatenate([atleast_2d(a) for a in _sequence("vstack", tup)], 0, dtype)


@compound(static=("dtype",), frequent=True)
def hstack(tup: Any, dtype: Any = None) -> Value:
    """Vectors end to end, or arrays joined along the second axis. Dtypes promote.

    >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    >>> jnp.hstack([jnp.ones((2, 1)), jnp.zeros((2, 2))])
    Array([[1., 0., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    values = [atleast_1d(a) for a in _sequence("hstack", tup)]
    return concatenate(values, 0 if values[0].aval.ndim == 1 else 1, dtype)


@compound(frequent=True)
def column_stack(tup: Any) -> Value:
    """Vectors as the columns of a matrix; matrices are joined along the second axis. Dtypes promote.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    values = [as_value(a) for a in _sequence("column_stack", tup)]
    return concatenate([lax.reshape(v, (v.aval.size, 1)) if v.aval.ndim < 2 else v for v in values], 1)


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    """A list of pieces along an axis: as many equal ones, or cut at the given indices.

    ValueError if the size does not divide: `array_split` allows that.

    >>> jnp.split(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    >>> jnp.split(jnp.arange(4), [1, 3])
    [Array([0], dtype=int32), Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis, uneven=False)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Value]:
    """As `split`; the first pieces are one larger where the size does not divide.

    >>> jnp.array_split(jnp.arange(5), 3)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def _split(name: str, ary: ArrayLike, indices_or_sections: Any, axis: int, uneven: bool) -> list[Value]:
    x = ensure_arraylike(name, ary)
    axis = canonical_axis(axis, x.aval.ndim)
    size = x.aval.shape[axis]
    if isinstance(indices_or_sections, Sequence) or getattr(indices_or_sections, "ndim", False):
        require_known(f"{name}: a place to cut", indices_or_sections)
        cuts = [_place_of_cut(i, size) for i in canonical_shape(tuple(indices_or_sections))]
    else:
        if is_symbolic(indices_or_sections):
            raise ValueError(
                f"hloom.numpy.{name} with a symbolic number of sections is not supported: {indices_or_sections}"
            )
        count = operator.index(indices_or_sections)
        if count < 1:
            raise ValueError(f"{name}: there must be at least one section, not {count}")
        piece, rest = divmod(size, count)
        if not uneven and rest != 0:
            raise ValueError(f"{name}: size {size} does not divide into {count} equal pieces")
        cuts = [k * piece + smaller(k, rest) for k in range(1, count)]
    ends = [0, *cuts, size]
    return [lax.slice_in_dim(x, a, larger(a, b), 1, axis) for a, b in itertools.pairwise(ends)]


def _place_of_cut(place: Any, size: Any) -> Any:
    """A place to cut, counted from the front and moved into the dimension."""
    return larger(0, place + size) if place < 0 else smaller(place, size)


# ---- order and repetition


def flip(m: ArrayLike, axis: Axis = None) -> Value:
    """Reversed along all axes or those given.

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]))
    Array([[4, 3],
           [2, 1]], dtype=int32)
    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = ensure_arraylike("flip", m)
    return lax.rev(x, canonical_axes(axis, x.aval.ndim))


def flipud(m: ArrayLike) -> Value:
    """Reversed along the first axis: rows upside down.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def fliplr(m: ArrayLike) -> Value:
    """Reversed along the second axis: columns from right to left.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


@compound(static=("shift", "axis"), frequent=True)
def roll(a: ArrayLike, shift: Any, axis: Any = None) -> Value:
    """Elements moved, wrapping around at the end; the flattened array if axis is None.

    `shift` and `axis` are integers or sequences of integers, and broadcast with one another. Shifts may be traced.

    >>> jnp.roll(jnp.array([1, 2, 3, 4]), 1)
    Array([4, 1, 2, 3], dtype=int32)
    >>> jnp.roll(jnp.array([[1, 2], [3, 4]]), 1, axis=0)
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    x = ensure_arraylike("roll", a)
    if axis is None:
        return lax.reshape(roll(ravel(x), shift, 0), x.aval.shape)
    axes = [canonical_axis(d, x.aval.ndim) for d in index_tuple("roll: axis", axis)]
    shifts = _constant_shifts(shift)
    if shifts is None:
        return _roll_by_values(x, shift, axes)
    try:
        pairs = np.broadcast_arrays(shifts, axes)
    except ValueError:
        raise _unmatched_shifts(shape_of(shifts), axes) from None
    for distance, place in zip(*[p.tolist() for p in pairs], strict=True):
        size = x.aval.shape[place]
        if is_symbolic(size) or is_symbolic(distance):
            x = _roll_by_values(x, distance, [place])
            continue
        cut = -distance % size if size else 0
        if cut:
            parts = [lax.slice_in_dim(x, cut, size, 1, place), lax.slice_in_dim(x, 0, cut, 1, place)]
            x = lax.concatenate(parts, place)
    return x


def _constant_shifts(shift: Any) -> tuple[int, ...] | None:
    """Shifts that are integers known while tracing; None for others."""
    if isinstance(shift, Tracer):
        shift = shift.to_concrete_value()
    try:
        return index_tuple("roll: shift", shift)
    except TypeError:
        return None


def _roll_by_values(x: Value, shift: Any, axes: Sequence[int]) -> Value:
    """Each axis twice in a row, and the part of it that begins where the shift says."""
    if rank_of(shift) > 1:
        raise _unmatched_shifts(shape_of(shift), axes)
    distances = stack(shift) if isinstance(shift, Sequence) else as_value(shift)
    if not dtypes.is_integer(distances.aval.dtype):
        distances = lax.convert_element_type(distances, np.int32)  # JAX truncates floats
    try:
        count = np.broadcast_shapes(distances.aval.shape, (len(axes),))[0]
    except ValueError:
        raise _unmatched_shifts(distances.aval.shape, axes) from None
    distances = broadcast_to_shape(distances, (count,))
    for k, place in enumerate(list(axes) * (count if len(axes) == 1 else 1)):
        size = x.aval.shape[place]
        if size:
            distance = mod(holding(lax.index_in_dim(distances, k, 0, False), size), size)
            x = lax.dynamic_slice_in_dim(lax.concatenate([x, x], place), size - distance, size, place)
    return x


def _unmatched_shifts(shape: tuple[int, ...], axes: Sequence[int]) -> OperandError:
    return OperandError(
        f"roll: shifts of shape {shape} and {len(axes)} axes: give one shift, or one for each axis, as a number or in "
        "one dimension",
        "roll",
    )


@compound(static=("k", "axes"), frequent=True)
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Value:
    """Turned by k quarter turns in the plane of two axes, from the first towards the second (counterclockwise).

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    if (rank := ensure_arraylike("rot90", m).aval.ndim) < 2:
        raise ValueError(
            f"rot90 requires its first argument to have ndim at least two, but got first argument of {rank}"
        )
    first, second = (canonical_axis(axis, rank) for axis in axes)
    if first == second:
        raise ValueError(f"rot90: Axes must be different, not {tuple(axes)}")
    match k % 4:
        case 0:
            return ensure_arraylike("rot90", m)
        case 1:
            return swapaxes(flip(m, second), first, second)
        case 2:
            return flip(m, (first, second))
        case _:
            return flip(swapaxes(m, first, second), second)


@compound(static=("reps",), frequent=True)
def tile(A: ArrayLike, reps: Any) -> Value:
    """The whole array repeated `reps` times along each dimension; one number is for the last one.

    >>> jnp.tile(jnp.array([1, 2]), 2)
    Array([1, 2, 1, 2], dtype=int32)
    >>> jnp.tile(jnp.array([[1, 2]]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    require_known("tile: a number of repetitions", reps)
    x, counts = ensure_arraylike("tile", A), canonical_shape(reps)
    rank = max(x.aval.ndim, len(counts))
    counts = (*[1] * (rank - len(counts)), *counts)
    sizes = (*[1] * (rank - x.aval.ndim), *x.aval.shape)
    own = [d for d, n in enumerate(counts[rank - x.aval.ndim :]) if n != 1]
    refuse_divided(x.aval, own, f"tile: dimensions {own} cannot be sharded where tiling is non-trivial")
    wide = [n for pair in zip(counts, sizes) for n in pair]
    places = [2 * d + 1 for d in range(rank - x.aval.ndim, rank)]
    return lax.reshape(lax.broadcast_in_dim(x, wide, places), [c * s for c, s in zip(counts, sizes)])


# ---- triangles and diagonals


@compound(static=("N", "M", "k", "dtype"), frequent=True)
def tri(N: int, M: int | None = None, k: Any = 0, dtype: Any = None) -> Value:
    """Ones at and below diagonal k (which may be traced), else zeros: [N, M], where M is N by default. float32 by
    default.

    >>> jnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    mask = triangle("tri", N, N if M is None else M, k)
    return lax.convert_element_type(mask, dtypes.float32 if dtype is None else dtype)


def triangle(name: str, rows: int, columns: int, k: Any) -> Value:
    """True at and below diagonal k."""
    shape = canonical_shape((rows, columns))
    if any(size < 0 for size in shape):
        raise OperandError(f"{name}: sizes must not be negative: {shape}", f"{name}_shape")
    row, column = (lax.broadcasted_iota(np.int32, shape, d) for d in (0, 1))
    mask: Value = row + diagonal_number(name, k, shape) >= column
    return mask


def diagonal_number(name: str, k: Any, shape: Sequence[int]) -> Any:
    """The number of a diagonal of a matrix: a Python integer, or an int32 scalar that the program computes. Beyond the
    corners all diagonals are alike: their numbers are limited, so that they can be counted with rows and columns."""
    rows, columns = shape[-2:]
    if isinstance(k, Tracer) and k.to_concrete_value() is None:
        if k.aval.shape or not dtypes.is_integer(k.aval.dtype):
            raise _no_diagonal(name, k.aval.str_short())
        return lax.clamp(np.int32(-rows), as_index(k, np.dtype(np.int32)), np.int32(columns))
    try:
        if any(map(is_symbolic, (k, rows, columns))):
            return as_value(k)
        return max(-rows, min(operator.index(k), columns))
    except TypeError:
        raise _no_diagonal(name, repr(k)) from None


def _no_diagonal(name: str, k: str) -> OperandError:
    return OperandError(f"{name}: k must be an integer, the number of a diagonal, not {k}", "k")


@compound()
def tril(m: ArrayLike, k: Any = 0) -> Value:
    """Zeros above diagonal k (which may be traced) of the last two dimensions, [..., m, n].

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    x = _matrix("tril", m)
    mask = triangle("tril", x.aval.shape[-2], x.aval.shape[-1], k)
    return lax.select(broadcast_to_shape(mask, x.aval.shape), x, lax.full_like(x, 0))


@compound()
def triu(m: ArrayLike, k: Any = 0) -> Value:
    """Zeros below diagonal k (which may be traced) of the last two dimensions, [..., m, n].

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]), k=1)
    Array([[0, 2],
           [0, 0]], dtype=int32)
    """
    x = _matrix("triu", m)
    mask = triangle("triu", x.aval.shape[-2], x.aval.shape[-1], diagonal_number("triu", k, x.aval.shape) - 1)
    return lax.select(broadcast_to_shape(mask, x.aval.shape), lax.full_like(x, 0), x)


def _matrix(name: str, m: ArrayLike) -> Value:
    x = ensure_arraylike(name, m)
    if x.aval.ndim < 2:
        raise ValueError(f"{name} needs at least 2 dimensions, not {x.aval.str_short()}")
    return x


@compound(static=("offset", "axis1", "axis2"), frequent=True)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The elements with an index along `axis2` that is `offset` more than along `axis1`, as the last dimension. A copy,
    no view.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    >>> jnp.diagonal(jnp.ones((2, 3, 4)), axis1=0, axis2=2).shape
    (3, 2)
    """
    x = _matrix("diagonal", a)
    if canonical_axis(axis1, x.aval.ndim) == canonical_axis(axis2, x.aval.ndim):
        raise ValueError(f"diagonal: axis1 and axis2 can not be same: {axis1} and {axis2}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.aval.shape[-2:]
    low, high = max(0, -offset), max(0, offset)
    size = larger(0, smaller(rows - low, columns - high))
    batch = x.aval.shape[:-2]
    # In the flattened matrix the diagonal's elements are columns + 1 apart.
    flat = lax.reshape(x, (*batch, rows * columns))
    start = low * columns + high
    limit = start + (size - 1) * (columns + 1) + 1 if size != 0 else start
    starts, limits = [0] * len(batch) + [smaller(start, limit)], [*batch, limit]
    if size == 0:
        found = lax.slice(flat, [0] * (len(batch) + 1), [*batch, 0])
    else:
        found = lax.slice(flat, starts, limits, [1] * len(batch) + [columns + 1])
    return found if offset else strong(found)  # as in JAX


def _diagonal_by_value(a: ArrayLike, offset: Any, axis1: int, axis2: int) -> Value:
    """The elements of a diagonal, each in the place of its column, and zeros: its number is traced."""
    x = moveaxis(_matrix("trace", a), (axis1, axis2), (-2, -1))
    shape = x.aval.shape
    row, column = (lax.broadcasted_iota(np.int32, shape[-2:], d) for d in (0, 1))
    on_diagonal = broadcast_to_shape(row + diagonal_number("trace", offset, shape) == column, shape)
    return lax.reduce_sum(lax.select(on_diagonal, x, lax.full_like(x, 0)), [len(shape) - 2])


@compound(static=("k",), frequent=True)
def diag(v: ArrayLike, k: int = 0) -> Value:
    """A matrix with the vector v on diagonal k, [n + |k|, n + |k|], or diagonal k of a matrix.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    >>> jnp.diag(jnp.array([[1, 2], [3, 4]]), k=1)
    Array([2], dtype=int32)
    """
    x = ensure_arraylike("diag", v)
    if x.aval.ndim == 2:
        return diagonal(x, k)
    if x.aval.ndim != 1:
        raise ValueError(f"diag needs a vector or a matrix, not {x.aval.str_short()}")
    size = x.aval.shape[0] + abs(k)
    padded = lax.pad(x, lax.full_like(x, 0, shape=()), [(max(0, k), max(0, -k), 0)])
    row, column = (lax.broadcasted_iota(np.int32, (size, size), d) for d in (0, 1))
    on_diagonal = row + k == column
    return where(on_diagonal, lax.broadcast_in_dim(padded, (size, size), (1,)), lax.full_like(x, 0, shape=()))


@compound(static=("offset", "axis1", "axis2", "dtype"))
def trace(
    a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Value:
    """The sum of a diagonal (see `diagonal`), of each matrix if there are more than two dimensions.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    no_out("trace", out)
    if isinstance(offset, Tracer):
        found = _diagonal_by_value(a, offset, axis1, axis2)
    else:
        found = diagonal(a, offset, axis1, axis2)
    own = found.aval.dtype
    if dtype is None and own.kind in "iub":
        wide = dtypes.canonical_dtype(np.uint64 if dtypes.is_unsigned(own) else np.int64)
        found = to_dtype(found, wide, False)
    total = lax.reduce_sum(strong(found), [found.aval.ndim - 1])
    return total if dtype is None else lax.convert_element_type(total, dtype)


@compound(static=("axis",), frequent=True)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Value:
    """A new array: `values` joined to the end of `arr` along an axis; both flattened if it is None. Nothing changes in
    place.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate([arr, values], axis)


@compound(static=("dtype",), frequent=True)
def dstack(tup: Any, dtype: Any = None) -> Value:
    """Arrays joined along the third axis; vectors become [1, n, 1], matrices [m, n, 1]. Dtypes promote.

    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    values = [atleast_2d(a) for a in _sequence("dstack", tup)]
    return concatenate([v if v.aval.ndim > 2 else lax.expand_dims(v, [v.aval.ndim]) for v in values], 2, dtype)


@compound(static=("n", "axis"))
def diff(
    a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Value:
    """Differences between neighbours along an axis, n times, with values put before and after it first. Each time the
    axis gets one shorter.

    Of booleans: whether they differ. Unsigned integers wrap around.

    >>> jnp.diff(jnp.array([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int32)
    >>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
    Array([2, 2], dtype=int32)
    """
    x, count = ensure_arraylike("diff", a), operator.index(n)
    if count < 0 or (count and not x.aval.shape):
        raise OperandError(
            f"diff: n must not be negative, and the array have a dimension: n={n}, {x.aval.str_short()}", "diff"
        )
    if not count:
        return x
    axis = canonical_axis(axis, x.aval.ndim)
    edge = tuple([1 if d == axis else s for d, s in enumerate(x.aval.shape)])
    around = [None if v is None else ensure_arraylike("diff", v) for v in (prepend, append)]
    before, after = ([] if v is None else [v if v.aval.shape else broadcast_to_shape(v, edge)] for v in around)
    if before or after:
        x = concatenate([*before, x, *after], axis)
    for _ in range(count):
        size = x.aval.shape[axis]
        later = lax.slice_in_dim(x, min(1, size), size, 1, axis)
        earlier = lax.slice_in_dim(x, 0, max(0, size - 1), 1, axis)
        x = later != earlier if x.dtype.kind == "b" else later - earlier
    return x
