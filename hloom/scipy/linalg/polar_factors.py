"""The polar decomposition. Names and semantics follow scipy.linalg, and jax.scipy.linalg where they differ.

It has derivatives of its own instead of those of the singular vectors that it is computed from: these do not exist
where singular values are equal, while both factors are smooth there. So each orthogonal matrix has a derivative.
"""

from __future__ import annotations

from typing import Any

from ...autodiff.stopping import stop_gradient
from ...autodiff.tangents import Linear
from ...extend.primitive import Primitive
from ...lax import linalg
from ...lax.linalg.lapack import matrices, takes_batches
from ...lax.linalg.least_squares import least_squares
from ...numpy.promotion import promote_inexact
from ...tracer.arrays.matrices import (
    adjoint,
    as_complex,
    columns_scaled,
    compare_places,
    conjugated,
    matmul,
    sizes,
)
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from ...tracer.ops import add, broadcast, div, full_like, is_complex, select, sub, zeros


@compound(static=("side", "method", "eps", "max_iterations"))
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Value, Value]:
    """(U, P) with a = U P, or with `side` "left" a = P U; U has orthonormal columns or rows, P is semidefinite.

    It is computed by singular values for both methods, "qdwh" and "svd"; `eps` and `max_iterations` are ignored. There
    are derivatives of any order where a has full rank, also where singular values are equal.

    >>> u, p = linalg.polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> u.round(3) + 0.0, p.round(3) + 0.0
    (Array([[ 0., -1.],
           [ 1.,  0.]], dtype=float32), Array([[3., 0.],
           [0., 2.]], dtype=float32))
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', not {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method!r}")
    (x,) = promote_inexact("polar", a)
    x = matrices("polar", x)
    m, n = sizes(x)
    tall = x if m >= n else adjoint(x)
    u, p = _polar.bind(tall, *linalg.svd(stop_gradient(tall), full_matrices=False))
    if (side == "right") != (m >= n):
        p = matmul(tall, adjoint(u))
    return (u if m >= n else adjoint(u)), p


_polar = Primitive("polar")
takes_batches(_polar)
"""Operands: a matrix with as many rows as columns or more, and its u, s, v^H. Both results follow from the matrix, so
these do not move."""


@_polar.def_meaning
def _polar_meaning(a: Value, u: Value, s: Value, vh: Value) -> tuple[Value, Value]:
    v = adjoint(vh)
    return matmul(u, vh), matmul(columns_scaled(v, as_complex(s, v.aval.dtype)), vh)


@_polar.def_jvp
def _polar_jvp(primals: Any, tangents: Any) -> Any:
    """With C = U^H da: dU = U W + (da - U C) P^-1 and dP = C - W P, where W = U^H dU is the rotation of C."""
    (a, _, s, vh), da = primals, tangents[0]
    unitary, p = _polar.bind(*primals)
    c = matmul(adjoint(unitary), da)
    turn = _rotation.bind(p, s, vh, c)
    moved = matmul(unitary, turn)
    m, n = sizes(a)
    if m > n:
        outside = sub(da, matmul(unitary, c))
        inverse = div(full_like(s, 1), s)
        moved = add(moved, adjoint(least_squares(p, (adjoint(vh), inverse, vh), adjoint(outside))))
    return (unitary, p), (moved, sub(c, matmul(turn, p)))


_rotation = Primitive("polar_rotation")
takes_batches(_rotation)
"""W of P W + W P = C - C^H, which is antihermitian. Operands: P, its eigenvalues s and eigenvectors v as v^H, which do
not move, and C."""


@_rotation.def_meaning
def _rotation_meaning(p: Value, s: Value, vh: Value, c: Value) -> Value:
    v = adjoint(vh)
    inner = matmul(vh, matmul(sub(c, adjoint(c)), v))
    size, rank = inner.aval.shape, inner.aval.ndim
    sums = add(broadcast(s, size, range(rank - 1)), broadcast(s, size, (*range(rank - 2), rank - 1)))
    scaled = div(inner, as_complex(sums, inner.aval.dtype))
    if not is_complex(inner):  # also where s is 0
        scaled = select(compare_places(size, "EQ"), zeros(scaled.aval), scaled)
    return matmul(v, matmul(scaled, vh))


def _rotation_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    """P dW + dW P = dC - dC^H - dP W - W dP, in which the last two are -dP W minus its adjoint."""
    p, s, vh, c = primals
    dp, _, _, dc = tangents
    turn = _rotation.bind(p, s, vh, c)
    right = zeros(c.aval) if dc is None else dc
    if dp is not None:
        right = sub(right, matmul(dp, turn))
    return turn, _rotation.bind(p, s, vh, right)


_rotation.def_jvp(_rotation_jvp, symbolic_zeros=True)


@_rotation.def_transpose
def _rotation_transpose(ct: Value, p: Any, s: Any, vh: Any, c: Any) -> Any:
    if any(isinstance(x, Linear) for x in (p, s, vh)):
        raise TypeError("a rotation is not linear in its matrix and cannot be transposed")
    return None, None, None, _rotation.bind(conjugated(p), s, conjugated(vh), ct)
