"""Products of vectors, matrices and tensors. Names and semantics follow NumPy, and jax.numpy where they differ."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .. import lax
from ..autodiff.placed_results import computed_in
from ..lax.movement import broadcast_shapes, canonical_axis
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .array_manipulation import moveaxis, stack
from .binary_ufuncs import multiply
from .promotion import broadcast_to_shape, no_out, promote_dtypes, strong
from .unary_ufuncs import conj


@compound(static=("precision", "preferred_element_type", "out_sharding"), small=True)
def dot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Value:
    """The last dimension of a times the second to last (or only) of b, summed; a plain product if one has no
    dimensions.

    Dtypes promote, and products are added in that dtype: give `preferred_element_type` to add integers or float16 in a
    wider one. `precision` is as in JAX; float32 is multiplied with full precision by default.

    >>> jnp.dot(jnp.array([1, 2, 3]), jnp.array([4, 5, 6]))
    Array(32, dtype=int32)
    >>> jnp.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if out_sharding is not None:
        given = {"precision": precision, "preferred_element_type": preferred_element_type}
        return computed_in(out_sharding, "dot", lambda a, b: dot(a, b, **given), a, b)
    x, y = promote_dtypes(a, b, name="dot")
    if not x.aval.shape or not y.aval.shape:
        shape = x.aval.shape or y.aval.shape
        return broadcast_to_shape(x, shape) * broadcast_to_shape(y, shape)
    contracting = ((x.aval.ndim - 1,), (max(0, y.aval.ndim - 2),))
    _check_sizes("dot", x, y, *contracting)
    return lax.dot_general(x, y, (contracting, ((), ())), precision, preferred_element_type)


def _check_sizes(name: str, x: Value, y: Value, lhs: Sequence[int], rhs: Sequence[int]) -> None:
    a, b = ([v.aval.shape[d] for d in dims] for v, dims in ((x, lhs), (y, rhs)))
    if a != b:
        raise OperandError(
            f"{name} of {x.aval.str_short()} and {y.aval.str_short()}: dot_general requires contracting dimensions to "
            f"have the same shape, got {tuple(a)} and {tuple(b)}.",
            "dot_c5",
        )


@compound(static=("precision", "preferred_element_type", "out_sharding"), small=True)
def matmul(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None, out_sharding: Any = None
) -> Value:
    """Matrix products, [..., m, k] and [..., k, n]; leading dimensions broadcast. The function of the operator x @ y.
    Dtypes promote.

    A vector is a row on the left and a column on the right, and its dimension is not in the result. OperandError for
    scalars.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [1, 1]]))
    Array([[3, 2],
           [7, 4]], dtype=int32)
    >>> jnp.matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
    (5, 2, 4)
    """
    if out_sharding is not None:
        given = {"precision": precision, "preferred_element_type": preferred_element_type}
        return computed_in(out_sharding, "matmul", lambda a, b: matmul(a, b, **given), a, b)
    x, y = promote_dtypes(a, b, name="matmul")
    if not x.aval.shape or not y.aval.shape:
        raise OperandError(
            f"matmul needs at least 1 dimension, not {x.aval.str_short()} and {y.aval.str_short()}", "matmul_rank"
        )
    lhs, rhs = x.aval.ndim - 1, max(0, y.aval.ndim - 2)
    _check_sizes("matmul", x, y, (lhs,), (rhs,))
    x_batch, y_batch = x.aval.shape[:-2], y.aval.shape[:-2]
    if not (x_batch or y_batch):
        return lax.dot_general(x, y, (((lhs,), (rhs,)), ((), ())), precision, preferred_element_type)
    if not y_batch or not x_batch:
        return _one_batch(x, y, lhs, rhs, precision, preferred_element_type)
    batch = broadcast_shapes(x_batch, y_batch)
    x = broadcast_to_shape(x, (*batch, *x.aval.shape[-2:]))
    y = broadcast_to_shape(y, (*batch, *y.aval.shape[-2:]))
    dims = tuple(range(len(batch)))
    numbers = (((x.aval.ndim - 1,), (y.aval.ndim - 2,)), (dims, dims))
    return lax.dot_general(x, y, numbers, precision, preferred_element_type)


def _one_batch(x: Value, y: Value, lhs: int, rhs: int, precision: Any, preferred: Any) -> Value:
    """A matrix product in which only one operand has leading dimensions: they are free dimensions of one product."""
    product = lax.dot_general(x, y, (((lhs,), (rhs,)), ((), ())), precision, preferred)
    if x.aval.ndim > 2 or y.aval.ndim <= 2:
        return product
    # lhs's row dimension is before rhs's leading ones, and belongs after them
    rows = x.aval.ndim - 1
    batch = y.aval.ndim - 2
    return lax.transpose(product, [*range(rows, rows + batch), *range(rows), *range(rows + batch, product.aval.ndim)])


@compound(static=("precision", "preferred_element_type"), small=True)
def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Value:
    """The sum of products of all elements, the first ones conjugated: a number. Arrays are flattened.

    >>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 3]))
    Array(7.+0.j, dtype=complex64)
    """
    x, y = promote_dtypes(a, b, name="vdot")
    x, y = (lax.reshape(v, (v.aval.size,)) for v in (conj(x), y))
    return dot(x, y, precision=precision, preferred_element_type=preferred_element_type)


@compound(static=("precision", "preferred_element_type"), small=True)
def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None) -> Value:
    """The last dimension of a times the last of b, summed: [*a.shape[:-1], *b.shape[:-1]]. Nothing is conjugated.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = promote_dtypes(a, b, name="inner")
    if not x.aval.shape or not y.aval.shape:
        return dot(x, y)
    return tensordot(x, y, (-1, -1), precision=precision, preferred_element_type=preferred_element_type)


@compound()
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Value:
    """All products of two flattened arrays, [a.size, b.size].

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([1, 10, 100]))
    Array([[  1,  10, 100],
           [  2,  20, 200]], dtype=int32)
    """
    no_out("outer", out)
    x, y = promote_dtypes(a, b, name="outer")
    shape = (x.aval.size, y.aval.size)
    x, y = (lax.reshape(v, (v.aval.size,)) for v in (x, y))
    return lax.broadcast_in_dim(x, shape, (0,)) * lax.broadcast_in_dim(y, shape, (1,))


@compound(static=("axes", "precision", "preferred_element_type", "out_sharding"), small=True)
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Value:
    """The product summed over `axes`: a number (the last ones of a with the first ones of b), two axes, or two lists of
    axes.

    The result has the other dimensions of a, then the other dimensions of b.

    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))).shape
    (2, 5)
    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 5)), axes=(1, 0)).shape
    (2, 4, 5)
    """
    if out_sharding is not None:
        given = {"precision": precision, "preferred_element_type": preferred_element_type}
        return computed_in(out_sharding, "tensordot", lambda a, b: tensordot(a, b, axes, **given), a, b)
    x, y = promote_dtypes(a, b, name="tensordot")
    lhs, rhs = _contracted(axes, x, y)
    if len(lhs) != len(rhs) or any(d < 0 for d in (*lhs, *rhs)) or max(rhs, default=-1) >= y.aval.ndim:
        raise OperandError(
            f"tensordot: axes {axes} do not fit {x.aval.str_short()} and {y.aval.str_short()}", "tensordot_axes"
        )
    _check_sizes("tensordot", x, y, lhs, rhs)
    return lax.dot_general(x, y, ((lhs, rhs), ((), ())), precision, preferred_element_type)


def _contracted(axes: Any, x: Value, y: Value) -> tuple[list[int], list[int]]:
    """The axes of each operand that are summed over."""
    if not isinstance(axes, Sequence):
        try:
            count = operator.index(axes)
        except TypeError:
            raise _no_axes(axes) from None
        if count > min(x.aval.ndim, y.aval.ndim):
            raise OperandError(
                f"tensordot: Number of tensordot axes, {count}, exceeds input ranks, of {x.aval.str_short()} and "
                f"{y.aval.str_short()}",
                "tensordot_axes",
            )
        return list(range(x.aval.ndim - count, x.aval.ndim)), list(range(count))
    if len(axes) != 2:
        raise _no_axes(axes)
    first, second = axes
    if any(isinstance(given, Sequence) and not isinstance(given, list | tuple | range) for given in axes):
        raise OperandError(
            f"tensordot requires both axes lists to be either ints, tuples or lists, not {axes!r}", "tensordot_axes"
        )
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        if len(first) != len(second):
            raise OperandError(f"tensordot requires axes lists to have equal length, not {axes!r}", "tensordot_axes")
        return [canonical_axis(d, x.aval.ndim) for d in first], [canonical_axis(d, y.aval.ndim) for d in second]
    if isinstance(first, Sequence) or isinstance(second, Sequence):
        raise _no_axes(axes)
    return [canonical_axis(first, x.aval.ndim)], [canonical_axis(second, y.aval.ndim)]


def _no_axes(axes: Any) -> OperandError:
    return OperandError(
        f"tensordot axes argument must be an int, a pair of ints, or a pair of lists, not {axes!r}", "tensordot_axes"
    )


@compound(static=("axisa", "axisb", "axisc", "axis"))
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Value:
    """The cross product of vectors of 3 or 2 elements, along `axisa` and `axisb`; the result's are along `axisc`.

    `axis` gives all three. A vector of 2 elements has 0 as its third; of two such vectors the result is the third
    component alone.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = promote_dtypes(a, b, name="cross")
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (moveaxis(v, d, -1) for v, d in ((x, axisa), (y, axisb)))
    sizes = [v.aval.shape[-1] for v in (x, y)]
    if not {*sizes} <= {2, 3}:
        raise OperandError(f"cross of vectors of {sizes[0]} and {sizes[1]} elements: they must have 2 or 3", "cross")
    (x0, x1, *x2), (y0, y1, *y2) = (
        [lax.index_in_dim(v, k, -1, False) for k in range(size)] for v, size in zip((x, y), sizes)
    )
    third: Value = multiply(x0, y1) - multiply(x1, y0)
    if sizes == [2, 2]:
        return third
    (xz,), (yz,) = (z or [lax.full_like(z0, 0)] for z, z0 in ((x2, x0), (y2, y0)))
    first: Value = multiply(x1, yz) - multiply(xz, y1)
    second: Value = multiply(xz, y0) - multiply(x0, yz)
    return strong(stack([first, second, third], canonical_axis(axisc, third.aval.ndim + 1)))


@compound()
def kron(a: ArrayLike, b: ArrayLike) -> Value:
    """The Kronecker product: blocks of b, each times an element of a. Sizes multiply; missing dimensions are in front.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = promote_dtypes(a, b, name="kron")
    rank = max(x.aval.ndim, y.aval.ndim)
    p, q = ((*[1] * (rank - v.aval.ndim), *v.aval.shape) for v in (x, y))
    wide = [n for pair in zip(p, q) for n in pair]
    left = lax.broadcast_in_dim(lax.reshape(x, p), wide, range(0, 2 * rank, 2))
    right = lax.broadcast_in_dim(lax.reshape(y, q), wide, range(1, 2 * rank, 2))
    return lax.reshape(left * right, [m * n for m, n in zip(p, q)])


@compound(static=("axis", "precision", "preferred_element_type"), small=True)
def vecdot(
    x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None
) -> Value:
    """Sums of products along an axis, the first ones conjugated, in the dtype of the products. Other dimensions
    broadcast.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = (moveaxis(v, axis, -1) for v in promote_dtypes(x1, x2, name="vecdot"))
    if x.aval.shape[-1] != y.aval.shape[-1]:
        types = f"{x.aval.str_short()} and {y.aval.str_short()}"
        raise OperandError(f"vecdot of {types}: the last dimensions (axis {axis}) differ", "vecdot")
    rank = max(x.aval.ndim, y.aval.ndim) - 1
    batch = broadcast_shapes(x.aval.shape[:-1], y.aval.shape[:-1])
    x, y = (broadcast_to_shape(v, (*batch, v.aval.shape[-1])) for v in (conj(x), y))
    numbers = (((rank,), (rank,)), (tuple(range(rank)),) * 2)
    return lax.dot_general(x, y, numbers, precision, preferred_element_type)


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """Matrices times vectors, [..., m, n] and [..., n], as [..., m]; leading dimensions broadcast, dtypes promote.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = _matrix_and_vector("matvec", x1, x2, 2, 1)
    return lax.squeeze(matmul(x, lax.expand_dims(y, [y.aval.ndim])), [-1])


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """Vectors, conjugated, times matrices, [..., m] and [..., m, n], as [..., n]; leading dimensions broadcast, dtypes
    promote.

    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    x, y = _matrix_and_vector("vecmat", x1, x2, 1, 2)
    return lax.squeeze(matmul(lax.expand_dims(conj(x), [x.aval.ndim - 1]), y), [-2])


def _matrix_and_vector(name: str, x1: ArrayLike, x2: ArrayLike, rank1: int, rank2: int) -> tuple[Value, Value]:
    x, y = promote_dtypes(x1, x2, name=name)
    if x.aval.ndim < rank1 or y.aval.ndim < rank2:
        raise OperandError(
            f"{name} of {x.aval.str_short()} and {y.aval.str_short()}: they need {rank1} and {rank2} dimensions at "
            "least",
            name,
        )
    return x, y
