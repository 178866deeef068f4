"""LU factors, and solving with them. Names and semantics follow jax.lax.linalg.

A solve keeps the factors: `solve` factors its matrix once, and its derivatives of any order, forward and backward, use
the same factors.
"""

from __future__ import annotations

from typing import Any, cast

from ...autodiff.stopping import stop_gradient
from ...autodiff.tangents import Linear
from ...extend.primitive import Primitive
from ...hlo.element_type import element_type_of
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ...hlo.sizes import as_size, smaller
from ...tracer import dtypes
from ...tracer.arrays.array import as_value
from ...tracer.arrays.matrices import (
    ADJOINT,
    NO_TRANSPOSE,
    TRANSPOSE,
    applied,
    batch_of,
    conjugated,
    identity,
    lower_part,
    matmul,
    places,
    sizes,
    solve_triangular,
    upper_part,
)
from ...tracer.control_flow.scan import fori_loop
from ...tracer.core import Value, bind
from ...tracer.ops import (
    add,
    broadcast,
    compare,
    concatenate,
    convert,
    full_like,
    last_of_two,
    neg,
    read_block,
    reduce_sum,
    reshape,
    select,
    slice_,
    sub,
    write_block,
    zeros,
)
from .lapack import fail, half_of, lapack, matrices, nan_unless, rounded, takes_batches, widened


def lu(x: Any) -> tuple[Value, Value, Value]:
    """P x = L U with partial pivoting, of matrices [..., m, n]: (factors, pivots, permutation).

    The factors are in one matrix [..., m, n]: U on and above the diagonal, L below it; L's diagonal is 1. Row i was
    exchanged with row `pivots[..., i]`, one after the other; so row i of P x is row `permutation[..., i]` of x.

    >>> factors, pivots, permutation = lax.linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors, pivots, permutation
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32), Array([1, 0], dtype=int32))
    """
    if half := half_of(x):
        return cast("tuple[Value, Value, Value]", rounded(half, lu(*widened(x))))
    a = matrices("lu", x)
    found: tuple[Value, Value, Value] = _lu.bind(a)
    return found


_lu = Primitive("lu")
_lu.custom_call_target = "LuDecomposition"
takes_batches(_lu)


@_lu.def_meaning
def _lu_meaning(x: Value) -> tuple[Value, Value, Value]:
    m, n = sizes(x)
    batch = batch_of(x)
    pivots_type = ((*batch, smaller(m, n)), dtypes.int32)
    factors, pivots, info = lapack("getrf", [x], [(x.aval.shape, x.aval.dtype), pivots_type, (batch, dtypes.int32)])
    factors = nan_unless(compare(info, "GE", zeros(info.aval)), factors)
    pivots = sub(pivots, full_like(pivots, 1))  # LAPACK counts from 1
    return factors, pivots, lu_pivots_to_permutation(pivots, m)


@_lu.def_jvp
def _lu_jvp(primals: Any, tangents: Any) -> Any:
    """With P dx = [B1 B2; B3 .] cut at k = min(m, n) rows and columns, and M = L1^-1 B1 U1^-1: dL1 = L1 tril(M, -1),
    dU1 = triu(M) U1. Rows below and columns to the right follow from L2 U1 = B3 and L1 U2 = B2."""
    (x,), (dx,) = primals, tangents
    factors, pivots, permutation = _lu.bind(x)
    m, n = sizes(x)
    k = smaller(m, n)
    moved = permuted(dx, permutation)
    first = _block(factors, 0, k, 0, k)
    lower, upper = _unit_lower(first), upper_part(first)
    half = solve_triangular(first, _block(moved, 0, k, 0, k), lower=True, unit=True)
    inner = solve_triangular(first, half, left=False, lower=False)
    in_lower, in_upper = lower_part(inner, -1), upper_part(inner)
    result = add(matmul(lower, in_lower), matmul(in_upper, upper))
    if m > k:
        below = sub(_block(moved, k, m, 0, k), matmul(_block(factors, k, m, 0, k), matmul(in_upper, upper)))
        below = solve_triangular(first, below, left=False, lower=False)
        result = concatenate([result, below], x.aval.ndim - 2)
    if n > k:
        beside = solve_triangular(first, _block(moved, 0, k, k, n), lower=True, unit=True)
        beside = sub(beside, matmul(in_lower, _block(factors, 0, k, k, n)))
        result = concatenate([result, beside], x.aval.ndim - 1)
    return (factors, pivots, permutation), (result, None, None)


def _block(x: Value, top: int, bottom: int, left: int, right: int) -> Value:
    batch = batch_of(x)
    return slice_(x, (*[0] * len(batch), top, left), (*batch, bottom, right))


def _unit_lower(factors: Value) -> Value:
    """L of square factors."""
    return add(lower_part(factors, -1), identity(factors.aval.shape, factors.aval.dtype))


# ---- permutations


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Value:
    """The permutation that exchanges of rows make: row i with row `pivots[..., i]`, one after the other. int32.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2, 2]), 3)
    Array([2, 0, 1], dtype=int32)
    """
    value = as_value(pivots)
    if value.aval.dtype is not dtypes.int32 or value.aval.ndim < 1:
        fail("lu_pivots_to_permutation", [value], "the pivots must be an array of int32", "dtype")
    if permutation_size < value.aval.shape[-1]:
        why = f"Output permutation size {permutation_size} has to exceed the trailing dimension of the pivots"
        fail("lu_pivots_to_permutation", [value], why, "size")
    found: Value = _permutation.bind(value, permutation_size=as_size(permutation_size))
    return found


_permutation = Primitive("lu_pivots_to_permutation")
takes_batches(_permutation)


@_permutation.def_meaning
def _permutation_meaning(pivots: Value, *, permutation_size: int) -> Value:
    count = pivots.aval.shape[-1]
    start = places((*pivots.aval.shape[:-1], permutation_size))
    if not count or not permutation_size:
        return start
    position = places(pivots.aval.shape)

    def exchange_one(i: Value, order: Value) -> Value:
        """Elements i and pivots[i] exchanged."""
        i = convert(i, dtypes.int32, False)
        pivot = reshape(read_block(pivots, (i,), (1,)), ())
        mine, its = read_block(order, (i,), (1,)), read_block(order, (pivot,), (1,))
        return write_block(write_block(order, its, (i,)), mine, (pivot,))

    def exchange(i: Value, order: Value) -> Value:
        """The same for all of the batch at once."""
        i = convert(i, dtypes.int32, False)
        pivot = _at(pivots, position, i)
        here = compare(start, "EQ", broadcast(i, start.aval.shape, ()))
        there = compare(start, "EQ", _along(pivot, start))
        mine, its = _chosen(order, here), _chosen(order, there)
        return select(there, _along(mine, start), select(here, _along(its, start), order))

    found: Value = fori_loop(0, count, exchange_one if pivots.aval.ndim == 1 else exchange, start)
    return found


def _chosen(x: Value, is_chosen: Value) -> Value:
    """The one element of each row that is chosen."""
    return reduce_sum(select(is_chosen, x, zeros(x.aval)), (x.aval.ndim - 1,))


def _at(x: Value, position: Value, i: Value) -> Value:
    return _chosen(x, compare(position, "EQ", broadcast(i, position.aval.shape, ())))


def _along(x: Value, like: Value) -> Value:
    """A value of each row, repeated in its row."""
    return broadcast(x, like.aval.shape, tuple(range(x.aval.ndim)))


def permuted(x: Value, permutation: Value, *, inverse: bool = False) -> Value:
    """Rows [..., permutation[..., i], :] of x, or with `inverse` the array that has the rows of x at these places."""
    found: Value = _permute_rows.bind(x, permutation, inverse=inverse)
    return found


_permute_rows = Primitive("permute_rows")
takes_batches(_permute_rows)


@_permute_rows.def_meaning
def _permute_meaning(x: Value, permutation: Value, *, inverse: bool) -> Value:
    rank, columns = x.aval.ndim, x.aval.shape[-1]
    batch = tuple(range(rank - 2))
    if 0 in x.aval.shape:
        return x
    if not inverse:
        window = (*[1] * (rank - 1), columns)
        taking = GatherAttributes((rank - 1,), (rank - 2,), (rank - 2,), rank - 1, window, batch, batch)
        return bind(Opcode.GATHER, (x, permutation), taking)
    putting = ScatterAttributes(
        (rank - 1,), (rank - 2,), (rank - 2,), rank - 1, last_of_two(element_type_of(x.aval.dtype)), batch, batch,
        unique_indices=True,
    )  # fmt: skip
    return bind(Opcode.SCATTER, (zeros(x.aval), permutation, x), putting)


@_permute_rows.def_jvp
def _permute_jvp(primals: Any, tangents: Any, *, inverse: bool) -> tuple[Value, Value]:
    (x, permutation), (dx, _) = primals, tangents
    return permuted(x, permutation, inverse=inverse), permuted(dx, permutation, inverse=inverse)


@_permute_rows.def_transpose
def _permute_transpose(ct: Value, x: Any, permutation: Value, *, inverse: bool) -> tuple[Value, None]:
    return permuted(ct, permutation, inverse=not inverse), None


# ---- solving


def lu_solve(factors: Value, permutation: Value, b: Value, trans: int = 0) -> Value:
    """x of A x = b from `lu` of A; trans 1: of A^T x = b, 2: of A^H x = b. b: [..., n, k]."""
    if trans == 0:
        b = permuted(b, permutation)
        b = solve_triangular(factors, b, lower=True, unit=True)
        return solve_triangular(factors, b, lower=False)
    kind = ADJOINT if trans == 2 else TRANSPOSE
    b = solve_triangular(factors, b, lower=False, kind=kind)
    b = solve_triangular(factors, b, lower=True, unit=True, kind=kind)
    return permuted(b, permutation, inverse=True)


def solve(a: Value, b: Value) -> Value:
    """x of a x = b; a: [..., n, n], b: [..., n, k], of one dtype and with the same batch dimensions."""
    factors, _, permutation = lu(stop_gradient(a))
    found: Value = _solve.bind(a, factors, permutation, b, trans=0)
    return found


_solve = Primitive("solve")
_solve.custom_call_target = "hloom.lu_solve"
takes_batches(_solve)
"""Operands: a, its factors and permutation, b. a and b determine x, so the factors do not move."""


@_solve.def_meaning
def _solve_meaning(a: Value, factors: Value, permutation: Value, b: Value, *, trans: int) -> Value:
    return lu_solve(factors, permutation, b, trans)


_KINDS = (NO_TRANSPOSE, TRANSPOSE, ADJOINT)


def _solve_jvp(primals: Any, tangents: Any, *, trans: int) -> tuple[Value, Value]:
    """op(a) dx = db - op(da) x."""
    a, factors, permutation, b = primals
    da, _, _, db = tangents
    x = _solve.bind(a, factors, permutation, b, trans=trans)
    right = db
    if da is not None:
        product = matmul(applied(_KINDS[trans], da), x)
        right = neg(product) if db is None else sub(db, product)
    if right is None:  # only the factors move, which follow a
        return x, zeros(x.aval)
    return x, _solve.bind(a, factors, permutation, right, trans=trans)


_solve.def_jvp(_solve_jvp, symbolic_zeros=True)


@_solve.def_transpose
def _solve_transpose(ct: Value, a: Any, factors: Any, permutation: Any, b: Any, *, trans: int) -> Any:
    if isinstance(a, Linear) or isinstance(factors, Linear):
        raise TypeError("a solve is not linear in its matrix and cannot be transposed")
    if trans == 2:  # the transpose of the adjoint is the conjugate
        ct_b = conjugated(_solve.bind(a, factors, permutation, conjugated(ct), trans=0))
    else:
        ct_b = _solve.bind(a, factors, permutation, ct, trans=1 - trans)
    return None, None, None, ct_b
