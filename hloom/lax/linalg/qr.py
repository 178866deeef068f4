"""QR factors and Householder reflections. Names and semantics follow jax.lax.linalg."""

from __future__ import annotations

from typing import Any

from ...extend.primitive import Primitive
from ...hlo.sizes import smaller
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    adjoint,
    as_complex,
    batch_of,
    compare_places,
    identity,
    lower_part,
    matmul,
    places,
    real_part,
    sizes,
    solve_triangular,
    transposed,
    upper_part,
)
from ...tracer.core import Value
from ...tracer.ops import (
    add,
    concatenate,
    full_like,
    is_complex,
    pad,
    scalar,
    select,
    slice_,
    sub,
    zeros,
)
from .lapack import fail, inexact, lapack, matrices, no_derivative, takes_batches
from .lu import permuted, solve


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """x = Q R of matrices [..., m, n]: (Q, R), or with `pivoting` (Q, R, p), where Q R is x[..., p].

    Q has orthonormal columns: m of them with `full_matrices`, else min(m, n). R is upper triangular. With `pivoting`
    the elements on its diagonal do not increase in magnitude; p is int32. `use_magma` is ignored.

    >>> x = jnp.array([[3.0, 1.0], [4.0, 2.0]])
    >>> q, r = lax.linalg.qr(x)
    >>> abs(r).round(3), bool(jnp.allclose(q @ r, x, atol=1e-5))
    (Array([[5. , 2.2],
           [0. , 0.4]], dtype=float32), True)
    """
    a = matrices("qr", x)
    return _qr.bind(a, pivoting=bool(pivoting), full_matrices=bool(full_matrices))


def geqrf(x: Any) -> tuple[Value, Value]:
    """R and, below its diagonal, Householder vectors; and the factors tau."""
    a = matrices("qr", x)
    found: tuple[Value, Value] = _geqrf.bind(a)
    return found


_geqrf = Primitive("geqrf")
takes_batches(_geqrf)
no_derivative(_geqrf, "those of qr are")


@_geqrf.def_meaning
def _geqrf_meaning(x: Value) -> tuple[Value, Value]:
    factors = (*batch_of(x), smaller(*sizes(x)))
    found, taus = lapack("geqrf", [x], [(x.aval.shape, x.aval.dtype), (factors, x.aval.dtype)])
    return found, taus


_qr = Primitive("qr")
takes_batches(_qr)


@_qr.def_meaning
def _qr_meaning(x: Value, *, pivoting: bool, full_matrices: bool) -> tuple[Value, ...]:
    (m, n), batch, dtype = sizes(x), batch_of(x), x.aval.dtype
    k = smaller(m, n)
    width = m if full_matrices else k
    order: list[Value] = []
    if not k:
        q = identity((*batch, m, width), dtype)
        factors = zeros(x.aval)
        if pivoting:
            order = [places((*batch, n))]
    elif pivoting:
        free = zeros(places((*batch, n)).aval)
        shapes = [(x.aval.shape, dtype), ((*batch, n), dtypes.int32), ((*batch, k), dtype)]
        factors, columns, taus = lapack("geqp3", [x, free], shapes)
        order = [sub(columns, full_like(columns, 1))]  # LAPACK counts from 1
        q = _product(factors, taus, width)
    else:
        factors, taus = _geqrf.bind(x)
        q = _product(factors, taus, width)
    r = upper_part(slice_(factors, [0] * x.aval.ndim, (*batch, width, n)))
    return (q, r, *order)


def _product(factors: Value, taus: Value, width: int) -> Value:
    """The first `width` columns of Q."""
    (m, n), batch, rank = sizes(factors), batch_of(factors), factors.aval.ndim
    factors = slice_(factors, [0] * rank, (*batch, m, smaller(n, width)))
    if smaller(n, width) != width:
        none = [0] * rank
        factors = pad(factors, scalar(0, factors.aval.dtype), none, [*none[1:], width - n], none)
    found: Value = _householder_product.bind(factors, taus)
    return found


@_qr.def_jvp
def _qr_jvp(primals: Any, tangents: Any, *, pivoting: bool, full_matrices: bool) -> Any:
    """With k = min(m, n), x = [X1 X2] and R = [R1 R2] cut at k columns, Q1 the first k columns of Q, and C = Q1^H dX1
    R1^-1: W = Q1^H dQ1 is anti-Hermitian, and C - W = dR1 R1^-1 upper triangular with a real diagonal, which determines
    both. Columns of Q that x does not determine come from the product of its reflections.
    """
    (x,), (dx,) = primals, tangents
    q, r, *order = _qr.bind(x, pivoting=pivoting, full_matrices=full_matrices)
    (m, n), batch, rank = sizes(x), batch_of(x), x.aval.ndim
    k, none = smaller(m, n), [0] * x.aval.ndim
    if not k:
        return (q, r, *order), (None, zeros(r.aval), *[None] * len(order))
    if pivoting:
        dx = transposed(permuted(transposed(dx), order[0]))
    q1, r1 = slice_(q, none, (*batch, m, k)), slice_(r, none, (*batch, k, k))
    quotient = solve_triangular(r1, slice_(dx, none, (*batch, m, k)), left=False, lower=False)
    c = matmul(adjoint(q1), quotient)
    low = lower_part(c, -1)
    w = sub(low, adjoint(low))
    if is_complex(x):
        on_diagonal = sub(c, as_complex(real_part(c), c.aval.dtype))
        w = add(w, select(compare_places(c.aval.shape, "EQ"), on_diagonal, zeros(c.aval)))
    rest = sub(c, w)
    dq, dr = sub(quotient, matmul(q1, rest)), matmul(rest, r1)
    if n > k:
        beyond = [*none[1:], k]
        moved, r2 = slice_(dx, beyond, dx.aval.shape), slice_(r, beyond, r.aval.shape)
        dr = concatenate([dr, sub(matmul(adjoint(q1), moved), matmul(w, r2))], rank - 1)
    if q.aval.shape[-1] > k:
        dq = concatenate([dq, _moved_complement(q1, dq)], rank - 1)
        dr = pad(dr, scalar(0, dr.aval.dtype), none, [*none[2:], m - k, 0], none)
    return (q, r, *order), (dq, dr, *[None] * len(order))


def _moved_complement(q1: Value, dq1: Value) -> Value:
    """How the last m - n columns Q2 of n reflections move with the first ones, Q1.

    Q - 1 = -V T V^H for a V of n columns. So with E = [1; 0] and Q1 - E = [K; Q21] cut at row n, Q2 is
    [0; 1] + (Q1 - E) Z^H, where Z = Q21 K^-1.
    """
    n, batch, none = sizes(q1)[1], batch_of(q1), [0] * q1.aval.ndim
    top, bottom = (none, (*batch, n, n)), ([*none[2:], n, 0], q1.aval.shape)
    reduced = sub(q1, identity(q1.aval.shape, q1.aval.dtype))
    k_adjoint = adjoint(slice_(reduced, *top))
    z_adjoint = solve(k_adjoint, adjoint(slice_(q1, *bottom)))
    moved = sub(slice_(dq1, *bottom), matmul(adjoint(z_adjoint), slice_(dq1, *top)))
    return add(matmul(dq1, z_adjoint), matmul(reduced, solve(k_adjoint, adjoint(moved))))


def householder_product(a: Any, taus: Any) -> Value:
    """The first n columns of H_1 H_2 ... H_k, H_i = 1 - tau_i v_i v_i^H; a: [..., m, n], m >= n, has v_i below its
    diagonal in column i, where v_i is 1; taus: [..., k], k <= n.

    >>> lax.linalg.householder_product(jnp.array([[1.0], [1.0]]), jnp.array([1.0]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    v, factors = matrices("householder_product", a), inexact("householder_product", taus)
    m, n = sizes(v)
    if m < n:
        why = "The first argument must have at least as many rows as columns"
        fail("householder_product", [v, factors], why, "rows")
    if factors.aval.ndim < 1 or factors.aval.shape[-1] > n or factors.aval.shape[:-1] != batch_of(v):
        why = "The second argument must be one vector a matrix, no longer than that has columns"
        fail("householder_product", [v, factors], why, "taus")
    if v.aval.dtype is not factors.aval.dtype:
        fail("householder_product", [v, factors], "both must have one dtype", "dtype")
    found: Value = _householder_product.bind(v, factors)
    return found


_householder_product = Primitive("householder_product")
takes_batches(_householder_product)
no_derivative(_householder_product, "that of qr is")


@_householder_product.def_meaning
def _householder_product_meaning(a: Value, taus: Value) -> Value:
    (found,) = lapack("orgqr", [a, taus], [(a.aval.shape, a.aval.dtype)])
    return found


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Value:
    """Q c, or c Q unless `left`, of the whole Q = H_1 H_2 ... of `householder_product`; Q^H with `transpose`.

    >>> a, taus, c = jnp.array([[1.0], [1.0]]), jnp.array([1.0]), jnp.array([[1.0], [0.0]])
    >>> lax.linalg.ormqr(a, taus, c)
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    v, factors, x = matrices("ormqr", a), inexact("ormqr", taus), matrices("ormqr", c)
    if len({o.aval.dtype for o in (v, factors, x)}) > 1:
        fail("ormqr", [v, factors, x], "all must have one dtype", "dtype")
    if v.aval.shape[-2] != x.aval.shape[-2 if left else -1]:
        side = "rows" if left else "columns"
        fail("ormqr", [v, factors, x], f"c must have as many {side} as the Householder matrix a has rows", "size")
    if not batch_of(v) == batch_of(x) == factors.aval.shape[:-1] or factors.aval.shape[-1] > smaller(*sizes(v)):
        fail("ormqr", [v, factors, x], "batch dimensions must be the same, and taus one for each reflection", "taus")
    found: Value = _ormqr.bind(v, factors, x, left=bool(left), transpose=bool(transpose))
    return found


_ormqr = Primitive("ormqr")
takes_batches(_ormqr)
no_derivative(_ormqr, "that of qr is")


@_ormqr.def_meaning
def _ormqr_meaning(a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    (found,) = lapack("ormqr", [a, taus, c], [(c.aval.shape, c.aval.dtype)], left=left, transpose=transpose)
    return found
