"""Least squares by singular values.

A solve keeps the factors of its matrix: its derivatives of any order, forward and backward, use them too, and not their
derivatives, which do not exist where singular values are equal. The derivatives of the solution do.
"""

from __future__ import annotations

from typing import Any

from ...autodiff.stopping import stop_gradient
from ...autodiff.tangents import Linear
from ...extend.primitive import Primitive
from ...tracer.arrays.matrices import adjoint, as_complex, matmul, rows_scaled, transposed
from ...tracer.core import Value
from ...tracer.ops import add, neg, sub, zeros
from .lapack import takes_batches


def least_squares(a: Value, factors: tuple[Value, Value, Value], b: Value) -> Value:
    """The smallest x of those with the smallest |a x - b|.

    a: [..., m, n]; b: [..., m, k], of one dtype and with the same batch dimensions; factors: u, 1 / s and v^H of
    a = u diag(s) v^H, with 0 for 1 / s where s counts as 0. Derivatives are those at constant rank.
    """
    u, inverse, vh = (stop_gradient(f) for f in factors)
    found: Value = _solve.bind(a, u, inverse, vh, b)
    return found


_solve = Primitive("least_squares")
takes_batches(_solve)
"""Operands: a, u, 1 / s, v^H, b. a and b determine x, so the factors do not move."""


@_solve.def_meaning
def _solve_meaning(a: Value, u: Value, inverse: Value, vh: Value, b: Value) -> Value:
    return matmul(adjoint(vh), rows_scaled(matmul(adjoint(u), b), as_complex(inverse, b.aval.dtype)))


def _solve_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    """Golub and Pereyra, 1973. With x = P b and g = P^H x:

    dx = P (db - da x) + P P^H da^H (b - a x) + (1 - P a) da^H g.
    """
    a, u, inverse, vh, b = primals
    da, _, _, _, db = tangents
    x = _solve.bind(*primals)

    def solved(right: Value) -> Value:
        found: Value = _solve.bind(a, u, inverse, vh, right)
        return found

    def solved_by_adjoint(right: Value) -> Value:
        found: Value = _solve.bind(adjoint(a), adjoint(vh), inverse, adjoint(u), right)
        return found

    if da is None:
        return x, (zeros(x.aval) if db is None else solved(db))
    product, backward = matmul(da, x), adjoint(da)
    right = neg(product) if db is None else sub(db, product)
    right = add(right, solved_by_adjoint(matmul(backward, sub(b, matmul(a, x)))))
    beside = matmul(backward, solved_by_adjoint(x))
    return x, add(solved(sub(right, matmul(a, beside))), beside)


_solve.def_jvp(_solve_jvp, symbolic_zeros=True)


@_solve.def_transpose
def _solve_transpose(ct: Value, a: Any, u: Any, inverse: Any, vh: Any, b: Any) -> Any:
    if any(isinstance(x, Linear) for x in (a, u, inverse, vh)):
        raise TypeError("least squares are not linear in their matrix and cannot be transposed")
    return None, None, None, None, _solve.bind(transposed(a), transposed(vh), inverse, transposed(u), ct)
