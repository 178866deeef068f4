"""The polar decomposition by dynamically weighted Halley iterations. Source: Y. Nakatsukasa, Z. Bai, F. Gygi,
"Optimizing Halley's iteration for computing the matrix polar decomposition" (2010); names as in jax.lax.linalg."""

from __future__ import annotations

import math
from typing import Any

from ...tracer import dtypes
from ...tracer.arrays.matrices import ADJOINT, adjoint, identity, matmul, sizes, solve_triangular
from ...tracer.control_flow.branches import while_loop
from ...tracer.core import Value
from ...tracer.ops import concatenate, full_like, select, slice_
from ..instructions import sqrt
from ..movement import broadcasted_iota
from .lapack import fail, matrices
from .qr import qr
from .triangular import cholesky

_MOST_WEIGHT = 100
"""A step with a larger weight is computed by QR factors, one with a smaller weight by a Cholesky factor."""


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Value, Value, Any, Any]:
    """(u, h, iterations, whether they converged) of x = u h, u with orthonormal columns, h Hermitian and not negative.

    x: [m, n] with m >= n, of full rank; eps: the precision, by default the dtype's; max_iterations: 10 by default;
    dynamic_shape: the part of x that is the matrix, which may be traced numbers. `is_hermitian` is ignored.

    >>> u, h, iterations, converged = lax.linalg.qdwh(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> jnp.round(u) + 0.0, jnp.round(h) + 0.0
    (Array([[ 0., -1.],
           [ 1.,  0.]], dtype=float32), Array([[3., 0.],
           [0., 2.]], dtype=float32))
    """
    a = matrices("qdwh", x)
    if a.aval.ndim != 2:
        fail("qdwh", [a], "it takes one matrix", "rank")
    m, n = sizes(a)
    if m < n:
        raise ValueError(f"qdwh: the input matrix of shape M x N must have M >= N, not {(m, n)}")
    most = 10 if max_iterations is None else int(max_iterations)
    precision = float(dtypes.finfo(a.aval.dtype).eps) if eps is None else float(eps)
    value: Any = a
    if dynamic_shape is not None:
        rows, columns = dynamic_shape
        index = [broadcasted_iota(dtypes.int32, (m, n), d) for d in range(2)]
        value = select((index[0] < rows) & (index[1] < columns), value, full_like(value, 0))
    u, count, converged = _unitary(value, most, precision)
    h = matmul(adjoint(u), value)
    return u, (h + adjoint(h)) * 0.5, count, converged


def _unitary(x: Any, most: int, eps: float) -> tuple[Any, Any, Any]:
    """Steps with weights that follow from a lower bound of the singular values, then steps of Halley's method."""
    size = _size_bound(x)
    u = x / select(size == 0, full_like(size, 1), size)
    enough = 5 * eps
    low, steps, change = eps, 0, None
    while low + enough < 1 and steps < most:
        steps += 1
        a, b, c = _weights(low)
        low = low * (a + b * low * low) / (1 + c * low * low)
        before, u = u, _step(u, a, b, c)
        change = _norm(u - before)
    limit = enough ** (1 / 3)
    differs = change > limit if change is not None else _norm(u) >= 0

    def goes_on(state: Any) -> Any:
        count, _, differs = state
        return differs & (count < most)

    def step(state: Any) -> Any:
        count, u, _ = state
        new = _step(u, 3.0, 1.0, 3.0)
        return count + 1, new, _norm(new - u) > limit

    count, u, differs = while_loop(goes_on, step, (steps, u, differs))
    return u * 1.5 - matmul(u, matmul(adjoint(u), u)) * 0.5, count, ~differs


def _weights(low: float) -> tuple[float, float, float]:
    """The best weights of a step if all singular values are between `low` and 1."""
    square = low * low
    d = (4 * (1 / square - 1) / square) ** (1 / 3)
    root = math.sqrt(1 + d)
    a = root + math.sqrt(2 - d + 2 * (2 - square) / (square * root))
    b = (a - 1) ** 2 / 4
    return a, b, a + b - 1


def _step(u: Any, a: float, b: float, c: float) -> Any:
    """u (a + b u^H u) / (1 + c u^H u)."""
    n = sizes(u)[1]
    one: Any = identity((n, n), u.aval.dtype)
    if c > _MOST_WEIGHT:
        q, _ = qr(concatenate([u * (math.sqrt(c)), one], 0), full_matrices=False)
        m = sizes(u)[0]
        first, second = slice_(q, (0, 0), (m, n)), slice_(q, (m, 0), (m + n, n))
        return u * (b / c) + matmul(first, adjoint(second)) * ((a - b / c) / math.sqrt(c))
    factor = cholesky(matmul(adjoint(u), u) * c + one, symmetrize_input=False)
    inner = solve_triangular(factor, adjoint(u), lower=True)
    quotient = adjoint(solve_triangular(factor, inner, lower=True, kind=ADJOINT))
    return u * (b / c) + quotient * (a - b / c)


def _size_bound(x: Any) -> Any:
    """The root of the product of the largest sums of a column and of a row: at least the largest singular value."""
    magnitude = abs(x)
    return sqrt(magnitude.sum(0).max()) * sqrt(magnitude.sum(1).max())


def _norm(x: Any) -> Any:
    return sqrt((abs(x) ** 2).sum())
