"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from ... import lax
from ...lax.linalg.lapack import fail
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .. import reductions as red
from .. import unary_ufuncs as ew
from ..array_manipulation import moveaxis
from ..promotion import (
    Axis,
    canonical_axes,
    ensure_arraylike,
    promote_inexact,
    to_dtype,
)
from ..selection import where
from .decompositions import svdvals
from .solving import inv


@compound(static=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Value:
    """A vector norm (one axis, or ord None over all elements) or a matrix norm (two axes). Real.

    Vectors: any number, inf, -inf, 0. Matrices: "fro", "nuc" (the sum of the singular values), 1, -1, inf, -inf, 2
    and -2 (the largest and the smallest singular value).
    Integers become floats. Without `ord` and `axis` it is the square root of the sum of the squares of all elements.

    >>> x = jnp.array([[3.0, 4.0], [6.0, 8.0]])
    >>> jnp.linalg.norm(x, axis=1)
    Array([ 5., 10.], dtype=float32)
    >>> jnp.linalg.norm(jnp.array([3.0, -4.0]), ord=1), jnp.linalg.norm(x, ord=jnp.inf)
    (Array(7., dtype=float32), Array(14., dtype=float32))
    """
    (a,) = promote_inexact("norm", x)
    if axis is None and ord is None:
        return _euclidean(a, tuple(range(a.aval.ndim)), keepdims)
    axes = axis_tuple(axis, a.aval.ndim)
    if len(axes) == 1:
        return _vector_norm(a, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(a, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(f"norm: {len(axes)} axes {axes}; one is a vector's, two are a matrix's")


def axis_tuple(axis: Axis, rank: int) -> tuple[int, ...]:
    """The axes in the order given."""
    given = range(rank) if axis is None else axis if isinstance(axis, tuple | list | range) else (axis,)
    return tuple(canonical_axes(a, rank)[0] for a in given)


def _euclidean(a: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    squares = ew.square(ew.abs(a)) if dtypes.is_complex(a.aval.dtype) else ew.square(a)
    return ew.sqrt(red.sum(squares, axes, keepdims=keepdims))


def _vector_norm(a: Value, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Value:
    if ord is None or ord == 2:
        return _euclidean(a, axes, keepdims)
    magnitude = ew.abs(a)
    if ord == math.inf:
        return _largest(magnitude, axes, keepdims)
    if ord == -math.inf:
        return red.min(magnitude, axes, keepdims=keepdims)
    if ord == 0:
        return red.sum(a != 0, axes, magnitude.aval.dtype, keepdims=keepdims)
    if ord == 1:
        return red.sum(magnitude, axes, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"norm: Invalid order {ord!r} for vector norm.")
    exponent: float = ord
    return red.sum(magnitude**exponent, axes, keepdims=keepdims) ** (1.0 / exponent)


def _largest(magnitudes: Value, axes: Axis, keepdims: bool) -> Value:
    """The largest; 0 if there are none."""
    found = canonical_axes(axes, magnitudes.aval.ndim)
    empty = any(magnitudes.aval.shape[d] == 0 for d in found)
    return red.max(magnitudes, axes, keepdims=keepdims, initial=0 if empty else None)


def _matrix_norm(a: Value, ord: Any, axes: tuple[int, int], keepdims: bool) -> Value:
    rows, columns = axes
    if ord in ("fro", "f"):
        return _euclidean(a, axes, keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = red.sum(ew.abs(a), first, keepdims=True)
        result = _largest(sums, second, True) if ord > 0 else red.min(sums, second, keepdims=True)
        return result if keepdims else lax.squeeze(result, axes)
    if ord in (2, -2, "nuc"):
        s = svdvals(moveaxis(a, axes, (-2, -1)))
        if ord == "nuc":
            result = red.sum(s, -1)
        else:
            result = _largest(s, (s.aval.ndim - 1,), False) if ord == 2 else red.min(s, -1)
        if not keepdims:
            return result
        return lax.reshape(result, [1 if d in axes else size for d, size in enumerate(a.aval.shape)])
    known = "1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'"
    raise ValueError(f"norm: Invalid order {ord!r} for matrix norm: use {known}")


@compound(static=("p",))
def cond(x: ArrayLike, p: Any = None) -> Value:
    """The condition numbers of matrices: the product of the norms `p` of x and of its inverse. None and 2: the largest
    singular value over the smallest; -2: the other way round. Infinite for singular matrices.

    >>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]])).round(3)
    Array(2., dtype=float32)
    """
    (a,) = promote_inexact("linalg.cond", x)
    if a.aval.ndim < 2:
        fail("cond", [a], "input array must be at least 2D", "rank")
    if not a.aval.size:
        fail("cond", [a], "input array must not be empty", "size")
    if p in (None, 2, -2):
        s: Any = svdvals(a)
        result = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        if a.aval.shape[-1] != a.aval.shape[-2]:
            fail("cond", [a], f"for p={p!r}, array must be square", "square")
        result = norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))
        p = None
    if p is not None and p < 0:
        return result  # type: ignore[no-any-return]
    return where(ew.isnan(result) & ~red.any(ew.isnan(a), (-2, -1)), math.inf, result)


@compound(static=("axis", "keepdims", "ord"))
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Value:
    """The vector norm over `axis`: an axis, several as one vector, or all elements by default. Real. `ord` as for
    `norm`.

    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    Array([ 5., 10.], dtype=float32)
    """
    a = ensure_arraylike("vector_norm", x)
    if not dtypes.is_inexact(a.aval.dtype):
        a = to_dtype(a, dtypes.default_float(), False)
    return _vector_norm(a, ord, canonical_axes(axis, a.aval.ndim), keepdims)


@compound(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Value:
    """The norm of the matrices in the last two dimensions, [..., m, n]. Real. `ord` as for `norm`.

    >>> jnp.linalg.matrix_norm(jnp.array([[1.0, -2.0], [3.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)
