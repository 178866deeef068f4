"""Cholesky factors, triangular solves, symmetric products. Names and semantics follow jax.lax.linalg."""

from __future__ import annotations

from typing import Any, cast

from ...hlo.opcode import Opcode
from ...hlo.ops.linalg import CholeskyAttributes
from ...tracer.arrays.array import as_value
from ...tracer.arrays.matrices import (
    ADJOINT,
    NO_TRANSPOSE,
    TRANSPOSE,
    batch_of,
    compare_places,
    conjugated,
    lower_part,
    matmul,
    solve_triangular,
    symmetrized,
    transposed,
    upper_part,
)
from ...tracer.compound import compound
from ...tracer.core import Value, bind
from ...tracer.ops import add, convert, reshape, select
from .lapack import fail, half_of, inexact, matrices, rounded, widened


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Value:
    """L of x = L L^H, lower triangular; x: [..., n, n], Hermitian and positive definite.

    NaN where x is not positive definite. With `symmetrize_input` x is replaced by (x + x^H) / 2; without it, only its
    lower triangle is read.

    >>> lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    a = matrices("cholesky", x, square=True)
    if symmetrize_input:
        a = symmetrized(a)
    return lower_part(bind(Opcode.CHOLESKY, (a,), CholeskyAttributes(True)))


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Value:
    """x of op(a) x = b, or of x op(a) = b unless `left_side`; a: [..., n, n]; only one triangle is read.

    op(a) is a, its transpose, its conjugate, or both. b may lack its last dimension (its first one with `left_side`
    false): then it is one vector, or one row, for each matrix.

    >>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
    >>> lax.linalg.triangular_solve(a, jnp.array([[2.0], [5.0]]), left_side=True, lower=True)
    Array([[1.],
           [1.]], dtype=float32)
    """
    if half := half_of(a, b):
        options = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a}
        return cast("Value", rounded(half, triangular_solve(*widened(a, b), **options, unit_diagonal=unit_diagonal)))
    matrix, right = matrices("triangular_solve", a, square=True), inexact("triangular_solve", b)
    if matrix.aval.dtype is not right.aval.dtype:
        fail("triangular_solve", [matrix, right], "both must have one dtype", "dtype")
    is_vector = right.aval.ndim == matrix.aval.ndim - 1
    if is_vector:
        place = right.aval.ndim if left_side else right.aval.ndim - 1
        shape = right.aval.shape
        right = reshape(right, (*shape[:place], 1, *shape[place:]))
    if conjugate_a and not transpose_a:
        matrix = conjugated(matrix)
    kind = NO_TRANSPOSE if not transpose_a else ADJOINT if conjugate_a else TRANSPOSE
    result = solve_triangular(matrix, right, left=left_side, lower=lower, unit=unit_diagonal, kind=kind)
    return reshape(result, as_value(b).aval.shape) if is_vector else result


@compound()
def cholesky_update(r_matrix: Any, w_vector: Any) -> Value:
    """The upper triangular factor of R^T R + w w^T; r_matrix: R [n, n], only the upper triangle is read;
    w_vector: [n]. Real.

    >>> lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0])).round(3)  # sqrt(3**2 + 4**2)
    Array([[5.]], dtype=float32)
    """
    r, w = matrices("cholesky_update", r_matrix, square=True), inexact("cholesky_update", w_vector)
    if r.aval.ndim != 2 or w.aval.shape != r.aval.shape[:1]:
        fail("cholesky_update", [r, w], "it takes one square matrix and a vector of its size", "shape")
    if r.aval.dtype is not w.aval.dtype or r.aval.dtype.kind == "c":
        fail("cholesky_update", [r, w], "both must be real and have one dtype", "dtype")
    r = upper_part(r)
    row = reshape(w, (1, w.aval.shape[0]))
    updated = add(matmul(transposed(r), r), matmul(transposed(row), row))
    return transposed(cholesky(updated, symmetrize_input=False))


@compound(static=("symmetrize_output",))
def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: Any = 1.0, beta: Any = 0.0, symmetrize_output: bool = False
) -> Value:
    """alpha a a^T + beta c; a_matrix: [..., n, m], c_matrix: [..., n, n], symmetric.

    With `symmetrize_output` false only one triangle of the result is promised to hold it.

    >>> a, c = jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2))
    >>> lax.linalg.symmetric_product(a, c, symmetrize_output=True)
    Array([[1., 2.],
           [2., 4.]], dtype=float32)
    """
    a, c = matrices("symmetric_product", a_matrix), matrices("symmetric_product", c_matrix, square=True)
    n = a.aval.shape[-2]
    if c.aval.shape != (*batch_of(a), n, n) or a.aval.dtype is not c.aval.dtype:
        fail("symmetric_product", [a, c], "c must be the square matrices of a's rows, of a's dtype", "shape")
    product = matmul(a, transposed(a))
    alphas, betas = (convert(as_value(v), a.aval.dtype, False) for v in (alpha, beta))
    result: Any = alphas * product + betas * c
    if not symmetrize_output:
        return result  # type: ignore[no-any-return]
    return select(compare_places(result.aval.shape, "LE"), result, transposed(result))
