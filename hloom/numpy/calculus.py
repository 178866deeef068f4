"""Functions of samples: differences, integrals, interpolation, phases.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import lax
from ..hlo.sizes import is_symbolic
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .array_manipulation import concatenate, diff, moveaxis, ravel
from .binary_ufuncs import floor_divide, less, mod
from .promotion import broadcast_to_shape, check_arraylike, ensure_arraylike, promote_dtypes_inexact, strong, to_dtype
from .selection import where
from .sorting import halving
from .unary_ufuncs import abs


@compound()
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Value:
    """The differences of neighbours of the flattened array, a vector, with values put before and after them.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=-1)
    Array([ 3,  5, -1], dtype=int32)
    """
    check_arraylike("ediff1d", *[v for v in (ary, to_end, to_begin) if v is not None])
    x = ravel(ary)
    if x.aval.dtype == np.bool_:
        raise TypeError("ediff1d: booleans have no differences, as in NumPy\n  Use x.astype(int), or diff")
    steps = diff(x)
    around = [None if v is None else ravel(v) for v in (to_begin, to_end)]
    parts = [p for p in (around[0], steps, around[1]) if p is not None]
    return lax.concatenate([to_dtype(p, x.aval.dtype, False) for p in parts], 0) if len(parts) > 1 else steps


# ---- gradient


@compound(static=("axis", "edge_order"))
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None, edge_order: int | None = None
) -> Any:
    """Central differences inside, one-sided ones at both ends, along each axis or those given.

    varargs: the distance between samples, or their coordinates in one dimension: one for all axes, or one for each.
    edge_order: 1 (the default) or 2, the number of differences at the ends.
    A list, unless there is one axis.

    >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
    Array([3., 4., 6., 7.], dtype=float32)
    """
    check_arraylike("gradient", f, *varargs)
    order = 1 if edge_order is None else operator.index(edge_order)
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, not {edge_order}")
    x, *spacing = promote_dtypes_inexact(f, *varargs)
    spacing = spacing or [lax.full((), 1.0, x.aval.dtype)]
    rank = x.aval.ndim
    given: Any = range(rank) if axis is None else axis if isinstance(axis, tuple | list | range) else [axis]
    axes = [canonical_axis(d, rank) for d in given]
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"gradient: Invalid number of spacing arguments: {len(varargs)} for {len(axes)} axes")
    steps = spacing * len(axes) if len(spacing) == 1 else spacing
    for d in axes:
        if x.aval.shape[d] < order + 1:
            raise ValueError(
                f"gradient: along axis {d} there are {x.aval.shape[d]} samples, and edge_order={order} needs "
                f"{order + 1}"
            )
    found = [_gradient(x, d, h, order) for d, h in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else found


def _gradient(x: Value, axis: int, h: Value, order: int) -> Value:
    """Along one axis. h: the distance of samples, or their coordinates."""
    y = moveaxis(x, axis, 0)
    size = y.aval.shape[0]

    def row(k: int) -> Value:
        return lax.index_in_dim(y, k, 0)

    if h.aval.ndim > 1 or (h.aval.ndim == 1 and h.aval.shape[0] != size):
        raise ValueError(
            f"gradient: spacing is a number, or one coordinate for each of {size} samples, not {h.aval.str_short()}"
        )
    if not h.aval.shape:
        inside = (lax.slice_in_dim(y, 2, size) - lax.slice_in_dim(y, 0, size - 2)) / (2 * h) if size > 2 else None
        first, last = (row(1) - row(0)) / h, (row(size - 1) - row(size - 2)) / h
        if order == 2:
            first = (-3 * row(0) + 4 * row(1) - row(2)) / (2 * h)
            last = (3 * row(size - 1) - 4 * row(size - 2) + row(size - 3)) / (2 * h)
    else:
        distance = lax.reshape(diff(h), (size - 1, *[1] * (y.aval.ndim - 1)))

        def gap(k: int) -> Value:
            return lax.index_in_dim(distance, k, 0)

        inside = None
        if size > 2:
            a, b = lax.slice_in_dim(distance, 0, size - 2), lax.slice_in_dim(distance, 1, size - 1)
            left, middle, right = (lax.slice_in_dim(y, k, size - 2 + k) for k in range(3))
            inside = -b / (a * (a + b)) * left + (b - a) / (a * b) * middle + a / (b * (a + b)) * right
        first, last = (row(1) - row(0)) / gap(0), (row(size - 1) - row(size - 2)) / gap(size - 2)
        if order == 2:
            first = _three_points(row(0), row(1), row(2), gap(0), gap(1))
            last = -_three_points(row(size - 1), row(size - 2), row(size - 3), gap(size - 2), gap(size - 3))
    parts = [first, *([] if inside is None else [inside]), last]
    return moveaxis(lax.concatenate(parts, 0), 0, axis)


def _three_points(y0: Value, y1: Value, y2: Value, a: Value, b: Value) -> Value:
    """The slope at the first of three samples, which are a and b apart."""
    return -(2 * a + b) / (a * (a + b)) * y0 + (a + b) / (a * b) * y1 - a / (b * (a + b)) * y2


# ---- integrals and phases


@compound(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1) -> Value:
    """The integral of samples along an axis, by straight lines between them, which are dx apart or stand at x. A float.

    dx: a number, or an array that is broadcast to the distances of neighbours.

    >>> jnp.trapezoid(jnp.array([1, 2, 3]), dx=2.0)
    Array(8., dtype=float32)
    >>> jnp.trapezoid(jnp.array([1, 2, 3]), x=jnp.array([0.0, 1.0, 5.0]))
    Array(11.5, dtype=float32)
    """
    check_arraylike("trapezoid", y, *([] if x is None else [x]))
    if x is None:
        (samples,) = promote_dtypes_inexact(y)
        width: Any = to_dtype(dx, samples.aval.dtype, False)
        values = moveaxis(samples, axis, -1)
        if width.aval.ndim:  # one distance for each pair of neighbours
            sizes = list(samples.aval.shape)
            sizes[axis] = max(0, sizes[axis] - 1)
            width = moveaxis(broadcast_to_shape(width, tuple(sizes)), axis, -1)
    else:
        samples, points = promote_dtypes_inexact(y, x)
        values = moveaxis(samples, axis, -1)
        width = diff(points if points.aval.ndim == 1 else moveaxis(points, axis, -1))
    size = values.aval.shape[-1]
    if not size:
        return lax.full(values.aval.shape[:-1], 0, values.aval.dtype)
    later = lax.slice_in_dim(values, 1, size, 1, -1)
    earlier = lax.slice_in_dim(values, 0, size - 1, 1, -1)
    areas = width * (later + earlier)
    return strong(lax.reduce_sum(areas, [areas.aval.ndim - 1]) * 0.5)


@compound(static=("axis",))
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi) -> Value:
    """Values that are known up to multiples of a period, made continuous along an axis: steps of more than half of it
    (or than `discont`) become the shortest equal ones.

    >>> jnp.unwrap(jnp.array([0, 1, 2, -1, 0]), period=4)
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    x = ensure_arraylike("unwrap", p)
    if dtypes.is_complex(x.aval.dtype):
        raise OperandError("jnp.unwrap does not support complex inputs", "unwrap")
    if not x.aval.shape:
        raise ValueError(f"unwrap needs a dimension, not {x.aval.str_short()}")
    axis = canonical_axis(axis, x.aval.ndim)
    dtype = dtypes.result_type(x, period)
    if not x.aval.shape[axis]:
        return to_dtype(x, dtype, False)
    whole = dtypes.is_integer(dtype)
    turn = to_dtype(period, dtype, False)
    half: Any = floor_divide(turn, 2) if whole else turn / 2
    steps = diff(to_dtype(x, dtype, False), axis=axis)
    short = mod(steps + half, turn) - half
    short = where((short == -half) & (steps > 0), half, short)
    if whole:  # as NumPy: with an odd period there is no boundary between the two directions
        short = where(mod(turn, 2) == 0, short, mod(steps + half, turn) - half)
    limit: Any = turn / 2 if discont is None else discont
    change = where(less(abs(steps), limit), 0, short - steps)
    before = lax.slice_in_dim(to_dtype(x, dtype, False), 0, 1, 1, axis)
    rest = lax.slice_in_dim(to_dtype(x, dtype, False), 1, x.aval.shape[axis], 1, axis)
    return concatenate([before, rest + lax.cumsum(to_dtype(change, dtype, False), axis)], axis)


# ---- interpolation


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Value:
    """The value at x of the piecewise linear function through the points (xp, fp), with increasing xp. A float of the
    shape of x.

    left, right: the value outside; by default that at the end; "extrapolate": the line goes on.
    period: xp and x are on a circle of this length; then xp have any order.

    >>> jnp.interp(jnp.array([0.5, 3.0]), jnp.array([0.0, 1.0, 2.0]), jnp.array([0.0, 10.0, 0.0]))
    Array([5., 0.], dtype=float32)
    """
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"the only valid string value of '{name}' is 'extrapolate', but got: {side!r}")
    sides = [s if isinstance(s, str) else None for s in (left, right)]
    values = [None if isinstance(s, str) else s for s in (left, right)]
    return _interp(x, xp, fp, values[0], values[1], period, sides[0], sides[1])


@compound(static=("beyond_left", "beyond_right"))
def _interp(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any, beyond_left: Any, beyond_right: Any) -> Value:
    check_arraylike("interp", x, xp, fp)
    at, points = promote_dtypes_inexact(x, xp)
    (values,) = promote_dtypes_inexact(fp)
    if points.aval.shape != values.aval.shape or points.aval.ndim != 1:
        raise OperandError(
            f"xp and fp must be one-dimensional arrays of equal size, not {points.aval.str_short()} and "
            f"{values.aval.str_short()}",
            "interp",
        )
    size = points.aval.size
    if not size:
        raise ValueError("interp: there are no points")
    if dtypes.is_complex(at.aval.dtype):
        raise OperandError("interp: x and xp must be real", "interp")
    if period is not None:
        if as_value(period).aval.shape:
            raise ValueError(f"period must be a scalar; got {as_value(period).aval.str_short()}")
        circle = lax.abs(to_dtype(period, at.aval.dtype, False))
        at, points = mod(at, circle), mod(points, circle)
        order = lax.sort_key_val(points, lax.iota(np.int32, size))[1]
        points, values = points[order], values[order]
        points = lax.concatenate([points[-1:] - circle, points, points[:1] + circle], 0)
        values = lax.concatenate([values[-1:], values, values[:1]], 0)
        size += 2
    if size == 1:
        inside = broadcast_to_shape(lax.reshape(values, ()), at.aval.shape)
    else:
        k = lax.clamp(np.int32(1), count_not_above(points, at), array_from_scalar(size - 1, np.dtype(np.int32)))
        x0, x1, y0, y1 = points[k - 1], points[k], values[k - 1], values[k]
        distance = x1 - x0
        flat = abs(distance) <= float(np.spacing(np.finfo(at.aval.dtype).eps))
        slope = (y1 - y0) / to_dtype(where(flat, 1, distance), values.aval.dtype, False)
        inside = where(flat, y0, y0 + to_dtype(at - x0, slope.aval.dtype, False) * slope)
    if period is not None:
        return strong(inside)
    result: Any = inside
    for side, beyond, outside, end in (
        (left, beyond_left, at < points[0], values[0]), (right, beyond_right, at > points[-1], values[-1])
    ):  # fmt: skip
        if beyond is None:
            result = where(outside, end if side is None else side, result)
    return strong(result)


def count_not_above(points: Value, at: Value) -> Value:
    """For each element, how many of the sorted points are not above it, as int32.

    Halves of a power of two are added as long as the point there is not above: no branches, and one read of the points
    a step.
    """
    size = points.aval.size
    count = lax.full(at.aval.shape, 0, np.int32)

    def counted_further(count: Value, by: Any) -> Value:
        probe = count + by
        there = points[lax.min(probe, lax.full_like(probe, size)) - 1]
        return lax.select((probe <= size) & (there <= at), probe, count)

    if is_symbolic(size):
        return halving(counted_further, count)
    for k in reversed(range(size.bit_length())):
        count = counted_further(count, np.int32(1 << k))
    return count
