"""Systems with Hermitian positive definite matrices, by Cholesky factors.

A solve keeps the factor: `solve_positive` factors its matrix once, and its derivatives of any order, forward and
backward, use the same factor. The derivative of the factor itself, which costs several products, is not needed.
"""

from __future__ import annotations

from typing import Any

from ...autodiff.stopping import stop_gradient
from ...autodiff.tangents import Linear
from ...extend.primitive import Primitive
from ...tracer.arrays.matrices import ADJOINT, conjugated, matmul, solve_triangular
from ...tracer.core import Value
from ...tracer.ops import neg, sub, zeros
from .lapack import takes_batches
from .triangular import cholesky


def solve_positive(a: Value, b: Value) -> Value:
    """x of a x = b; NaN if a is not positive definite.

    a: [..., n, n], Hermitian in both triangles; b: [..., n, k], of one dtype and with the same batch dimensions.
    """
    factor = cholesky(stop_gradient(a), symmetrize_input=False)
    found: Value = _solve.bind(a, factor, b)
    return found


_solve = Primitive("solve_positive")
takes_batches(_solve)
"""Operands: the matrix, its lower factor, b. The matrix and b determine x, so the factor does not move."""


@_solve.def_meaning
def _solve_meaning(a: Value, factor: Value, b: Value) -> Value:
    first = solve_triangular(factor, b, lower=True)
    return solve_triangular(factor, first, lower=True, kind=ADJOINT)


def _solve_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    """a dx = db - da x."""
    a, factor, b = primals
    da, _, db = tangents
    x = _solve.bind(a, factor, b)
    right = db
    if da is not None:
        product = matmul(da, x)
        right = neg(product) if db is None else sub(db, product)
    if right is None:  # only the factor moves, which follows a
        return x, zeros(x.aval)
    return x, _solve.bind(a, factor, right)


_solve.def_jvp(_solve_jvp, symbolic_zeros=True)


@_solve.def_transpose
def _solve_transpose(ct: Value, a: Any, factor: Any, b: Any) -> Any:
    if isinstance(a, Linear) or isinstance(factor, Linear):
        raise TypeError("a solve is not linear in its matrix and cannot be transposed")
    # the transpose of a Hermitian matrix is its conjugate
    return None, None, conjugated(_solve.bind(a, factor, conjugated(ct)))
