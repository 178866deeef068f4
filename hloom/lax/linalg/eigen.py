"""Eigenvalues and eigenvectors. Names and semantics follow jax.lax.linalg."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ...extend.primitive import Primitive
from ...hlo.errors import UnsupportedError
from ...hlo.opcode import Opcode
from ...hlo.ops.movement import IotaAttributes
from ...tracer import dtypes
from ...tracer.arrays.matrices import (
    adjoint,
    as_complex,
    batch_of,
    columns_scaled,
    compare_places,
    conjugated,
    diagonal,
    hermitian,
    matmul,
    real_part,
    symmetrized,
)
from ...tracer.core import Value, bind
from ...tracer.ops import (
    array_shape,
    broadcast,
    compare,
    div,
    full_like,
    is_complex,
    make_complex,
    mul,
    reduce_sum,
    select,
    sub,
    unary,
    zeros,
)
from ..reduce import argmax
from .lapack import lapack, matrices, nan_unless, succeeded, takes_batches
from .lu import solve


class EighImplementation(Enum):
    """How `eigh` computes; on a CPU always by LAPACK, which is QR here.

    >>> lax.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]]), implementation=lax.linalg.EighImplementation.QR)[1]
    Array([1., 2.], dtype=float32)
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(Enum):
    """How `eig` computes; on a CPU always by LAPACK.

    >>> lax.linalg.eig(jnp.array([[1.0]]), implementation=lax.linalg.EigImplementation.LAPACK)[0]
    Array([1.+0.j], dtype=complex64)
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# ---- Hermitian matrices


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Value, Value]:
    """(v, w) of Hermitian matrices x = v diag(w) v^H; x: [..., n, n]. The eigenvalues w are real and ascend.

    With `symmetrize_input` x is replaced by (x + x^H) / 2; without it, only one triangle is read: `lower` says which.
    NaN where LAPACK finds none. Derivatives of v are infinite or NaN where eigenvalues are equal, also the derivatives
    of smooth functions of w and v together: a rule for these factors cannot tell v diag(log w) v^H from 0 at the
    identity. Functions of w alone have their derivatives there, and so have `scipy.linalg.expm` and `polar`.

    >>> v, w = lax.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w.round(3), abs(v).round(3)
    (Array([1., 3.], dtype=float32), Array([[0.707, 0.707],
           [0.707, 0.707]], dtype=float32))
    """
    a = matrices("eigh", x, square=True)
    if implementation is not None and EighImplementation(implementation) is not EighImplementation.QR:
        raise UnsupportedError(f"eigh: the implementation {implementation} is not for CPUs\n  QR (or None) is.")
    if subset_by_index not in (None, (0, a.aval.shape[-1])):
        raise UnsupportedError(f"eigh: subset_by_index={subset_by_index} is not supported on CPUs")
    v, w = eigh_of(symmetrized(a) if symmetrize_input else a, lower=lower)
    return v, w


def eigh_of(a: Value, *, lower: bool = True, vectors: bool = True) -> list[Value]:
    """`eigh` of matrices that are Hermitian: [v, w], without `vectors` [w]."""
    return list(_eigh.bind(a, lower=bool(lower), vectors=vectors))


_eigh = Primitive("eigh")
takes_batches(_eigh)


@_eigh.def_meaning
def _eigh_meaning(x: Value, *, lower: bool, vectors: bool) -> tuple[Value, ...]:
    batch, dtype = batch_of(x), x.aval.dtype
    shapes = [(x.aval.shape, dtype), (x.aval.shape[:-1], dtypes.real_of(dtype)), (batch, dtypes.int32)]
    config = {"mode": "V" if vectors else "N", "uplo": "L" if lower else "U"}
    v, w, info = lapack("syevd", [x], shapes, **config)
    w = nan_unless(succeeded(info), w)
    return (nan_unless(succeeded(info), v), w) if vectors else (w,)


@_eigh.def_jvp
def _eigh_jvp(primals: Any, tangents: Any, *, lower: bool, vectors: bool) -> Any:
    """With C = v^H dx v: dw is the diagonal of C, and dv = v (F * C) with F_ij = 1 / (w_j - w_i), 0 on the diagonal."""
    (x,), (dx,) = primals, tangents
    v, w = _eigh.bind(x, lower=lower, vectors=True)
    c = matmul(adjoint(v), matmul(hermitian(dx, lower), v))
    dw = real_part(diagonal(c))
    if not vectors:
        return (w,), (dw,)
    return (v, w), (matmul(v, mul(as_complex(_inverse_gaps(w), c.aval.dtype), c)), dw)


def _inverse_gaps(w: Value) -> Value:
    """F_ij = 1 / (w_j - w_i), 0 for i = j."""
    gaps = _differences(w)
    is_diagonal = compare_places(gaps.aval.shape, "EQ")
    one = full_like(gaps, 1)
    return select(is_diagonal, zeros(gaps.aval), div(one, select(is_diagonal, one, gaps)))


def _differences(w: Value) -> Value:
    """w_j - w_i."""
    n, rank = w.aval.shape[-1], w.aval.ndim
    square = (*w.aval.shape, n)
    across = broadcast(w, square, (*range(rank - 1), rank))
    return sub(across, broadcast(w, square, range(rank)))


# ---- other matrices


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Value]:
    """[w, left vectors, right vectors] of square matrices [..., n, n], complex; only the requested vectors.

    x v = v w and u^H x = w u^H; each column of v and u has length 1, and its largest element is real. The derivative of
    w is correct for simple eigenvalues; vectors have one only with `enable_eigvec_derivs`, since it assumes that their
    largest elements stay where they are. `use_magma` is ignored.

    >>> w, left, right = lax.linalg.eig(jnp.array([[0.0, 1.0], [-1.0, 0.0]]))  # a rotation by 90 degrees
    >>> w.imag, right.shape
    (Array([ 1., -1.], dtype=float32), (2, 2))
    """
    a = matrices("eig", x, square=True)
    if implementation is not None and EigImplementation(implementation) is not EigImplementation.LAPACK:
        raise ValueError("eig: only the LAPACK implementation is supported on a CPU")
    found = _eig.bind(
        a,
        left=bool(compute_left_eigenvectors),
        right=bool(compute_right_eigenvectors),
        vectors_move=bool(enable_eigvec_derivs),
    )
    return list(found)


_eig = Primitive("eig")
takes_batches(_eig)


@_eig.def_meaning
def _eig_meaning(x: Value, *, left: bool, right: bool, vectors_move: bool) -> tuple[Value, ...]:
    batch, dtype = batch_of(x), x.aval.dtype
    wide = dtypes.to_complex(dtype)
    parts = [(x.aval.shape[:-1], dtype)] * (1 if is_complex(x) else 2)
    shapes = [*parts, (x.aval.shape, wide), (x.aval.shape, wide), (batch, dtypes.int32)]
    letters = {"compute_left": "V" if left else "N", "compute_right": "V" if right else "N"}
    *values, u, v, info = lapack("geev", [x], shapes, **letters)
    w = values[0] if is_complex(x) else make_complex(values[0], values[1])
    kept = [w, *([u] if left else []), *([v] if right else [])]
    return tuple(nan_unless(succeeded(info), k) for k in kept)


@_eig.def_jvp
def _eig_jvp(primals: Any, tangents: Any, *, left: bool, right: bool, vectors_move: bool) -> Any:
    """dw is the diagonal of C = v^-1 dx v."""
    (x,), (dx,) = primals, tangents
    if (left or right) and not vectors_move:
        raise UnsupportedError(
            "the derivative of eigenvectors of matrices that are not Hermitian is valid under assumptions that "
            "cannot be checked\n  hloom.lax.linalg.eig(x, enable_eigvec_derivs=True) computes it; eigvals, or eig "
            "without vectors, has a derivative."
        )
    # Second derivatives of w move the vectors, but depend neither on their lengths nor on their phases.
    w, *vectors = _eig.bind(x, left=left, right=True, vectors_move=True)
    v = vectors[-1]
    moved = as_complex(dx, v.aval.dtype)
    c = solve(v, matmul(moved, v))
    results, found = [w], [diagonal(c)]
    if left:  # the columns of u are right eigenvectors of the adjoint
        u = vectors[0]
        results.append(u)
        found.append(_moved_vectors(conjugated(w), u, solve(u, matmul(adjoint(moved), u))))
    if right:
        results.append(v)
        found.append(_moved_vectors(w, v, c))
    return tuple(results), tuple(found)


def _moved_vectors(w: Value, v: Value, c: Value) -> Value:
    """v (F * C), and then for each column the multiple of it that keeps its length, and its largest element real."""
    dv = matmul(v, mul(_inverse_gaps(w), c))
    rank = v.aval.ndim
    growth = real_part(reduce_sum(mul(conjugated(v), dv), (rank - 2,)))
    largest = _is_first_largest(v)
    pivot = real_part(_picked(v, largest))
    turn = div(_imaginary(_picked(dv, largest)), pivot)
    return sub(dv, columns_scaled(v, make_complex(growth, turn)))


def _picked(x: Value, is_picked: Value) -> Value:
    return reduce_sum(select(is_picked, x, zeros(x.aval)), (x.aval.ndim - 2,))


def _is_first_largest(v: Value) -> Value:
    """In each column, true for the first element of the largest magnitude."""
    size = v.aval.shape
    row = argmax(real_part(mul(v, conjugated(v))), len(size) - 2, dtypes.int32)
    rows = bind(Opcode.IOTA, (), IotaAttributes(len(size) - 2), shape=array_shape(dtypes.int32, size))
    return compare(rows, "EQ", broadcast(row, size, (*range(len(size) - 2), len(size) - 1)))


def _imaginary(x: Value) -> Value:
    return unary(Opcode.IMAG, x)
