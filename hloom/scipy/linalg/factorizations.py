"""Factorisations, eigenvalues and systems with SciPy's arguments. Names and semantics follow scipy.linalg, and
jax.scipy.linalg where they differ.

Leading dimensions are batch dimensions. `overwrite_a` and the like, `check_finite`, `lwork`, `turbo` and `debug` are
accepted and ignored: arrays are immutable, and values are not checked.
"""

from __future__ import annotations

from typing import Any, cast

from ... import lax
from ...hlo.errors import UnsupportedError
from ...lax import linalg
from ...lax.linalg.eigen import eigh_of
from ...lax.linalg.lapack import fail, half_of, matrices, rounded, widened
from ...lax.linalg.lu import lu_solve as solve_by_factors
from ...lax.linalg.lu import permuted
from ...lax.linalg.lu import solve as solve_by_lu
from ...lax.linalg.positive import solve_positive
from ...lax.movement import broadcast_shapes
from ...numpy import linalg as np_linalg
from ...numpy.array_manipulation import reshape
from ...numpy.promotion import broadcast_to_shape, promote_dtypes_inexact, promote_inexact
from ...numpy.selection import where
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    ADJOINT,
    NO_TRANSPOSE,
    TRANSPOSE,
    adjoint,
    batch_of,
    hermitian,
    identity,
    lower_part,
    matmul,
    sizes,
    symmetric,
    symmetrized,
    upper_part,
)
from ...tracer.arrays.matrices import (
    solve_triangular as solve_with_triangle,
)
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value


def _given(name: str, a: ArrayLike, *, square: bool = False) -> Value:
    (x,) = promote_inexact(name, a)
    return matrices(name, x, square=square)


@compound(static=("lower", "overwrite_a", "check_finite"))
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """The upper triangular U of a = U^H U, or with `lower` L of a = L L^H. NaN if a is not positive definite.

    a: [..., n, n], only the triangle of the factor is read; integers become floats. `overwrite_a` and `check_finite`
    are ignored.

    >>> linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = _given("cholesky", a, square=True)
    return np_linalg.cholesky(x, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Value, bool]:
    """The argument of `cho_solve`: (the factor of `cholesky`, lower).

    a: [..., n, n], only one triangle is read; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> a, b = jnp.array([[4.0, 2.0], [2.0, 5.0]]), jnp.array([6.0, 7.0])
    >>> linalg.cho_solve(linalg.cho_factor(a), b).round(3)
    Array([1., 1.], dtype=float32)
    """
    return cholesky(a, lower=lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Value:
    """x of a x = b, from `cho_factor` of a; b: [n], or [..., n, k]. Of the factor one triangle is read.

    >>> a, b = jnp.array([[4.0, 2.0], [2.0, 5.0]]), jnp.array([6.0, 7.0])
    >>> linalg.cho_solve(linalg.cho_factor(a), b).round(3)
    Array([1., 1.], dtype=float32)
    """
    factor, lower = c_and_lower
    return _cho_solve(factor, b, bool(lower))


@compound(static=("lower",))
def _cho_solve(c: ArrayLike, b: ArrayLike, lower: bool) -> Value:
    factor, right, is_vector = _system("cho_solve", c, b)
    first, second = (NO_TRANSPOSE, ADJOINT) if lower else (ADJOINT, NO_TRANSPOSE)
    x = solve_with_triangle(factor, right, lower=lower, kind=first)
    return _result(solve_with_triangle(factor, x, lower=lower, kind=second), is_vector)


def _system(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Value, Value, bool]:
    """The matrices and right-hand sides of one dtype and with the same batch dimensions; whether b was a vector."""
    x, y = promote_dtypes_inexact(a, b, name=name)
    x = matrices(name, x, square=True)
    is_vector = y.aval.ndim == 1
    if is_vector:
        y = reshape(y, (-1, 1))
    y = matrices(name, y)
    if y.aval.shape[-2] != x.aval.shape[-1]:
        fail(name, [x, y], "b must have as many rows as a", "rows")
    batch = broadcast_shapes(batch_of(x), batch_of(y))
    x, y = (broadcast_to_shape(v, (*batch, *sizes(v))) for v in (x, y))
    return x, y, is_vector


def _result(x: Value, is_vector: bool) -> Value:
    return reshape(x, x.aval.shape[:-1]) if is_vector else x


@compound(static=("lower", "unit_diagonal", "trans", "overwrite_b", "debug", "check_finite"))
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Value:
    """x of op(a) x = b, a triangular; `trans`: 0 or "N" a itself, 1 or "T" its transpose, 2 or "C" its adjoint.

    >>> linalg.solve_triangular(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 5.0]), lower=True)
    Array([1., 1.], dtype=float32)
    """
    kinds = {0: NO_TRANSPOSE, "N": NO_TRANSPOSE, 1: TRANSPOSE, "T": TRANSPOSE, 2: ADJOINT, "C": ADJOINT}
    if trans not in kinds:
        raise ValueError(f"Invalid 'trans' value {trans!r}: it is 0, 1, 2, 'N', 'T' or 'C'")
    if half := half_of(a, b):
        wide = widened(a, b)
        return cast("Value", rounded(half, solve_triangular(wide[0], wide[1], trans, lower, unit_diagonal)))
    x, y, is_vector = _system("solve_triangular", a, b)
    found = solve_with_triangle(x, y, lower=bool(lower), unit=bool(unit_diagonal), kind=kinds[trans])
    return _result(found, is_vector)


_ASSUMED = ("gen", "sym", "her", "pos")


@compound(static=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a"))
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Value:
    """x of a x = b; with `assume_a` "pos" by Cholesky factors, else ("gen", "sym", "her") by LU.

    a: [..., n, n]; b: [n], or [..., n, k]. Unless "gen", one triangle of a is read, the upper one or with `lower` the
    lower one; the other one is its transpose ("sym") or its adjoint ("her", "pos"), and has no derivative.
    Derivatives use the factors that are found.

    >>> a, b = jnp.array([[4.0, 2.0], [2.0, 5.0]]), jnp.array([6.0, 7.0])
    >>> linalg.solve(a, b, assume_a="pos").round(3)
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in _ASSUMED:
        raise ValueError(f"Expected assume_a to be one of {list(_ASSUMED)}; got {assume_a!r}")
    if assume_a == "gen":
        return np_linalg.solve(a, b)
    if half := half_of(a, b):
        wide = widened(a, b)
        return cast("Value", rounded(half, solve(wide[0], wide[1], lower, assume_a=assume_a)))
    x, y, is_vector = _system("solve", a, b)
    if assume_a == "sym":
        x = symmetric(x, bool(lower))
    else:
        x = hermitian(x, bool(lower))
    return _result(solve_positive(x, y) if assume_a == "pos" else solve_by_lu(x, y), is_vector)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """The inverses of square matrices.

    a: [..., n, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return np_linalg.inv(a)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """The determinants of square matrices.

    a: [..., n, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> linalg.det(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array(16., dtype=float32)
    """
    return np_linalg.det(a)


# ---- LU


@compound(static=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Value, Value]:
    """The argument of `lu_solve`: (factors in one matrix, pivots); row i was exchanged with row pivots[i].

    a: [..., n, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> a, b = jnp.array([[1.0, 2.0], [4.0, 4.0]]), jnp.array([5.0, 12.0])
    >>> linalg.lu_solve(linalg.lu_factor(a), b)
    Array([1., 2.], dtype=float32)
    """
    if half := half_of(a):
        return cast("tuple[Value, Value]", rounded(half, lu_factor(widened(a)[0])))
    factors, pivots, _ = linalg.lu(_given("lu_factor", a))
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Value:
    """x of a x = b from `lu_factor` of a; `trans` 1: of a^T x = b, 2: of a^H x = b.

    >>> a, b = jnp.array([[1.0, 2.0], [4.0, 4.0]]), jnp.array([5.0, 12.0])
    >>> linalg.lu_solve(linalg.lu_factor(a), b)
    Array([1., 2.], dtype=float32)
    >>> linalg.lu_solve(linalg.lu_factor(a), b, trans=1)
    Array([ 7. , -0.5], dtype=float32)
    """
    factors, pivots = lu_and_piv
    return _lu_solve(factors, pivots, b, trans)


@compound(static=("trans",))
def _lu_solve(factors: ArrayLike, pivots: ArrayLike, b: ArrayLike, trans: int) -> Value:
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    if half := half_of(factors, b):
        wide, right = widened(factors, b)
        return cast("Value", rounded(half, _lu_solve(wide, pivots, right, trans)))
    x, y, is_vector = _system("lu_solve", factors, b)
    order = linalg.lu_pivots_to_permutation(lax.convert_element_type(pivots, dtypes.int32), x.aval.shape[-1])
    order = broadcast_to_shape(order, x.aval.shape[:-1])
    return _result(solve_by_factors(x, order, y, trans), is_vector)


@compound(static=("permute_l", "overwrite_a", "check_finite"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(P, L, U) with a = P L U, or with `permute_l` (P L, U).

    a: [..., m, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> p, l, u = linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> p, l, u
    (Array([[0., 1.],
           [1., 0.]], dtype=float32), Array([[1.  , 0.  ],
           [0.25, 1.  ]], dtype=float32), Array([[4., 4.],
           [0., 1.]], dtype=float32))
    """
    if half := half_of(a):
        return rounded(half, lu(widened(a)[0], permute_l))
    x = _given("lu", a)
    factors, _, order = linalg.lu(x)
    (m, n), batch, none = sizes(x), batch_of(x), [0] * x.aval.ndim
    k = min(m, n)
    lower = lower_part(lax.slice(factors, none, (*batch, m, k)), -1)
    lower = lax.add(lower, identity(lower.aval.shape, lower.aval.dtype))
    upper = upper_part(lax.slice(factors, none, (*batch, k, n)))
    if permute_l:
        return permuted(lower, order, inverse=True), upper
    real = dtypes.real_of(x.aval.dtype)
    return permuted(identity((*batch, m, m), real), order, inverse=True), lower, upper


# ---- QR


@compound(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """a = Q R: (Q, R), (R,) with mode "r", and with `pivoting` the permutation p of a[..., p] = Q R.

    mode: "full" Q [..., m, m]; "economic" Q [..., m, min(m, n)]; "r" R alone, as in full.

    a: [..., m, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> a = jnp.array([[3.0, 1.0], [4.0, 2.0], [0.0, 2.0]])
    >>> q, r = linalg.qr(a, mode="economic")
    >>> q.shape, bool(jnp.allclose(q @ r, a, atol=1e-5))
    ((3, 2), True)
    """
    if mode not in ("full", "r", "economic"):
        known = "'full', 'r' or 'economic'"
        raise ValueError(f"Unsupported QR decomposition mode {mode!r}: use {known}")
    q, r, *order = linalg.qr(_given("qr", a), pivoting=pivoting, full_matrices=mode != "economic")
    return (r, *order) if mode == "r" else (q, r, *order)


@compound(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> Any:
    """(c Q, R), or with mode "left" (Q c, R), for the economic Q of a; with `pivoting` and p. `conjugate` Q.

    >>> a, c = jnp.array([[3.0, 0.0], [4.0, 5.0]]), jnp.array([3.0, 4.0])
    >>> cq, r = linalg.qr_multiply(a, c)
    >>> abs(cq).round(3)
    Array([5., 0.], dtype=float32)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"Mode argument should be 'left' or 'right', not {mode!r}")
    x, y = promote_dtypes_inexact(a, c, name="qr_multiply")
    q, r, *order = linalg.qr(matrices("qr_multiply", x), pivoting=pivoting, full_matrices=False)
    is_vector = y.aval.ndim == 1
    if is_vector:
        y = reshape(y, (-1, 1) if mode == "left" else (1, -1))
    y = matrices("qr_multiply", y)
    q = lax.conj(q) if conjugate and dtypes.is_complex(q.aval.dtype) else q
    wanted, found = (sizes(q)[1], sizes(y)[0]) if mode == "left" else (sizes(q)[0], sizes(y)[1])
    if wanted != found:
        fail("qr_multiply", [x, y], f"c must have {wanted} {'rows' if mode == 'left' else 'columns'}", "sizes")
    product = matmul(q, y) if mode == "left" else matmul(y, q)
    return (reshape(product, (-1,)) if is_vector else product, r, *order)


# ---- eigenvalues and singular values


@compound(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """(U, s, Vh) of a = U diag(s) Vh; s alone unless `compute_uv`. `lapack_driver`: "gesdd" or "gesvd".

    a: [..., m, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> u, s, vh = linalg.svd(jnp.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]), full_matrices=False)
    >>> u.shape, s.round(3), vh.shape
    ((3, 2), Array([4., 3.], dtype=float32), (2, 2))
    """
    drivers = {"gesdd": linalg.SvdAlgorithm.DEFAULT, "gesvd": linalg.SvdAlgorithm.QR}
    if lapack_driver not in drivers:
        raise ValueError(f"lapack_driver must be one of {list(drivers)}, not {lapack_driver!r}")
    x = _given("svd", a)
    return linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=drivers[lapack_driver])


@compound(static=("lower", "eigvals_only", "overwrite_a", "overwrite_b", "turbo", "eigvals", "type", "check_finite"))
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """(w, v) of Hermitian matrices, w ascending; w alone with `eigvals_only`.

    One triangle of a (and of b) is read, the lower one unless `lower` is false.
    With b, positive definite, of a v = b v w (`type` 1), a b v = v w (2) or b a v = v w (3); then v^H b v = 1, in type
    3 v^H b^-1 v = 1.

    >>> a, b = jnp.diag(jnp.array([6.0, 2.0])), jnp.diag(jnp.array([2.0, 1.0]))
    >>> linalg.eigh(a, eigvals_only=True)
    Array([2., 6.], dtype=float32)
    >>> linalg.eigh(a, b, eigvals_only=True).round(3)
    Array([2., 3.], dtype=float32)
    """
    if eigvals is not None:
        raise UnsupportedError("eigh: a part of the eigenvalues (eigvals) is not supported")
    if type not in (1, 2, 3):
        raise ValueError(f"'type' must be 1, 2, or 3, not {type}")
    if b is None:
        found = eigh_of(_given("eigh", a, square=True), lower=bool(lower), vectors=not eigvals_only)
        return found[0] if eigvals_only else (found[1], found[0])
    x, y, _ = _system("eigh", a, b)
    x, y = hermitian(x, bool(lower)), hermitian(y, bool(lower))
    factor = linalg.cholesky(y, symmetrize_input=False)
    if type == 1:
        reduced = solve_with_triangle(factor, x, lower=True)
        reduced = solve_with_triangle(factor, reduced, left=False, lower=True, kind=ADJOINT)
    else:
        reduced = matmul(adjoint(factor), matmul(x, factor))
    if eigvals_only:
        return eigh_of(symmetrized(reduced), vectors=False)[0]
    v, w = eigh_of(symmetrized(reduced))
    if type == 3:
        return w, matmul(factor, v)
    return w, solve_with_triangle(factor, v, lower=True, kind=ADJOINT)


@compound(static=("output",))
def schur(a: ArrayLike, output: str = "real") -> tuple[Value, Value]:
    """(T, Z) with a = Z T Z^H; `output` "complex" makes T triangular also for a real matrix.

    a: [..., n, n]; integers become floats.

    >>> t, z = linalg.schur(jnp.array([[0.0, 2.0], [-2.0, 0.0]]), output="complex")
    >>> jnp.diag(t).round(3)
    Array([0.+2.j, 0.-2.j], dtype=complex64)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output!r}")
    x = _given("schur", a, square=True)
    if output == "complex":
        x = lax.convert_element_type(x, dtypes.to_complex(x.aval.dtype))
    t, z = linalg.schur(x)
    return t, z


@compound(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H of a = Q H Q^H, zero below the first subdiagonal; with `calc_q` (H, Q).

    a: [..., n, n]; integers become floats. `overwrite_a` and `check_finite` are ignored.

    >>> a = jnp.array([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0], [4.0, 1.0, 2.0]])
    >>> h, q = linalg.hessenberg(a, calc_q=True)
    >>> h.round(3)
    Array([[ 1. , -3.6,  0.2],
           [-5. ,  2.6, -0.2],
           [ 0. , -0.2,  0.4]], dtype=float32)
    >>> bool(jnp.allclose(q @ h @ q.T, a, atol=1e-5))
    True
    """
    x = _given("hessenberg", a, square=True)
    n, batch, none = sizes(x)[0], batch_of(x), [0] * x.aval.ndim
    if n <= 1:
        return (x, identity(x.aval.shape, x.aval.dtype)) if calc_q else x
    found, taus = linalg.hessenberg(x)
    h = upper_part(found, -1)
    if not calc_q:
        return h
    inner = linalg.householder_product(lax.slice(found, [*none[2:], 1, 0], (*batch, n, n - 1)), taus)
    zero = lax.full_like(inner, 0, shape=())
    edges = [(0, 0, 0)] * len(batch) + [(1, 0, 0)] * 2
    q = lax.add(lax.pad(inner, zero, edges), _corner(x))
    return h, q


def _corner(x: Value) -> Value:
    """1 at [..., 0, 0], 0 at all other places."""
    unit = identity(x.aval.shape, x.aval.dtype)
    first = lax.broadcasted_iota(dtypes.int32, x.aval.shape, x.aval.ndim - 1) == 0
    return where(first, unit, 0).astype(x.aval.dtype)
