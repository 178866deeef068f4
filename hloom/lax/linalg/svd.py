"""Singular values and vectors, and the polar decomposition. Names and semantics follow jax.lax.linalg."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ...extend.primitive import Primitive
from ...hlo.errors import UnsupportedError
from ...hlo.sizes import smaller
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    adjoint,
    as_complex,
    batch_of,
    columns_scaled,
    compare_places,
    diagonal,
    matmul,
    real_part,
    rows_scaled,
    sizes,
)
from ...tracer.core import Value
from ...tracer.ops import (
    add,
    broadcast,
    compare,
    div,
    full_like,
    is_complex,
    mul,
    select,
    sub,
    zeros,
)
from .lapack import fail, lapack, matrices, nan_unless, succeeded, takes_batches


class SvdAlgorithm(Enum):
    """How `svd` computes: DEFAULT and DIVIDE_AND_CONQUER by LAPACK's gesdd, QR by gesvd. Others are not for CPUs.

    >>> lax.linalg.svd(jnp.diag(jnp.array([2.0, 3.0])), compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)
    Array([3., 2.], dtype=float32)
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_ROUTINES = {
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """(u, s, v^H) with x = u diag(s) v^H of matrices [..., m, n]; s alone unless `compute_uv`.

    s descends. u has m columns and v^H n rows with `full_matrices`, else both have min(m, n). NaN where LAPACK finds
    none. Derivatives of vectors are infinite or NaN where singular values are equal, also the derivatives of smooth
    functions of s and the vectors together: a rule for these factors cannot tell u diag(s^2) v^H from u diag(s) v^H at
    the identity. Functions of s alone have their derivatives there, and so have `scipy.linalg.polar`, `linalg.pinv` and
    `linalg.lstsq`. With `full_matrices` of matrices that are not square there are none.

    >>> u, s, vh = lax.linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), full_matrices=False)
    >>> s.round(3), u.shape, vh.shape
    (Array([4., 3.], dtype=float32), (3, 2), (2, 2))
    """
    a = matrices("svd", x)
    routine = _ROUTINES.get(SvdAlgorithm.DEFAULT if algorithm is None else SvdAlgorithm(algorithm))
    if routine is None:
        raise UnsupportedError("svd: the Jacobi and Polar algorithms are not for CPUs")
    full = bool(full_matrices)
    if subset_by_index is not None:
        if full and compute_uv:
            fail("svd", [a], "full_matrices and subset_by_index cannot both be set", "subset")
        if tuple(subset_by_index) != (0, smaller(*sizes(a))):
            what = f"subset_by_index={subset_by_index}"
            raise UnsupportedError(f"svd: {what} is not supported on CPUs")
    if sizes(a)[0] == sizes(a)[1] or not compute_uv:
        full = False  # the same factors
    found = _svd.bind(a, full_matrices=full, compute_uv=bool(compute_uv), routine=routine)
    if not compute_uv:
        return found[0]
    s, u, vt = found
    return u, s, vt


_svd = Primitive("svd")
takes_batches(_svd)
"""Results: s, and with `compute_uv` u and v^H."""


@_svd.def_meaning
def _svd_meaning(x: Value, *, full_matrices: bool, compute_uv: bool, routine: str) -> tuple[Value, ...]:
    (m, n), batch, dtype = sizes(x), batch_of(x), x.aval.dtype
    k = smaller(m, n)
    width, height = (m, n) if full_matrices else (k, k)
    shapes = [
        (x.aval.shape, dtype),
        ((*batch, k), dtypes.real_of(dtype)),
        ((*batch, m, width), dtype),
        ((*batch, height, n), dtype),
        (batch, dtypes.int32),
    ]
    mode = "N" if not compute_uv else "A" if full_matrices else "S"
    _, s, u, vt, info = lapack(routine, [x], shapes, mode=mode)
    found = (s, u, vt) if compute_uv else (s,)
    return tuple(nan_unless(succeeded(info), f) for f in found)


@_svd.def_jvp
def _svd_jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, routine: str) -> Any:
    """With C = u^H dx v: ds is the real diagonal of C. Off the diagonal, with F_ij = 1 / (s_j^2 - s_i^2),

        u^H du = F * (C s + s C^H),  v^H dv = F * (s C + C^H s),

    and the part of dx outside of the spaces of u and v is divided by s. Of complex matrices only the product of the
    phases of a pair of vectors is determined: u takes all of its motion.
    """
    (x,), (dx,) = primals, tangents
    (m, n), k = sizes(x), smaller(*sizes(x))
    if full_matrices:
        raise UnsupportedError(
            f"svd of {x.aval.str_short()} with full_matrices: vectors beyond the first {k} are not determined, and "
            "have no derivative\n  full_matrices=False has one."
        )
    s, u, vt = _svd.bind(x, full_matrices=False, compute_uv=True, routine=routine)
    v = adjoint(vt)
    toward_u = matmul(dx, v)
    c = matmul(adjoint(u), toward_u)
    ds = real_part(diagonal(c))
    if not compute_uv:
        return (s,), (ds,)
    wide = as_complex(s, x.aval.dtype)
    factors = as_complex(_inverse_gaps(s), x.aval.dtype)
    inverse = as_complex(_inverse(s), x.aval.dtype)
    left, right = columns_scaled(c, wide), rows_scaled(c, wide)
    in_u = mul(factors, add(left, adjoint(left)))
    in_v = mul(factors, add(right, adjoint(right)))
    if is_complex(x):
        turned = columns_scaled(sub(c, as_complex(real_part(c), c.aval.dtype)), inverse)
        in_u = add(in_u, select(compare_places(c.aval.shape, "EQ"), turned, zeros(c.aval)))
    du, dv = matmul(u, in_u), matmul(v, in_v)
    if m > k:
        outside = sub(toward_u, matmul(u, c))
        du = add(du, columns_scaled(outside, inverse))
    if n > k:
        outside = sub(matmul(adjoint(dx), u), matmul(v, adjoint(c)))
        dv = add(dv, columns_scaled(outside, inverse))
    return (s, u, vt), (ds, du, adjoint(dv))


def _inverse_gaps(s: Value) -> Value:
    """F_ij = 1 / (s_j^2 - s_i^2), 0 for i = j."""
    k, rank = s.aval.shape[-1], s.aval.ndim
    square = (*s.aval.shape, k)
    across, down = broadcast(s, square, (*range(rank - 1), rank)), broadcast(s, square, range(rank))
    gaps = mul(sub(across, down), add(across, down))
    is_diagonal = compare_places(square, "EQ")
    one = full_like(gaps, 1)
    return select(is_diagonal, zeros(gaps.aval), div(one, select(is_diagonal, one, gaps)))


def _inverse(s: Value) -> Value:
    """1 / s, 0 for 0."""
    is_zero, one = compare(s, "EQ", zeros(s.aval)), full_like(s, 1)
    return select(is_zero, zeros(s.aval), div(one, select(is_zero, one, s)))
