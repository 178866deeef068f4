"""Factorisations of matrices, their eigenvalues and singular values. Names and semantics follow NumPy, and
jax.numpy.linalg where they differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...lax import linalg
from ...lax.linalg.eigen import eigh_of
from ...lax.linalg.lapack import fail, matrices
from ...lax.linalg.lu import permuted
from ...lax.linalg.qr import geqrf
from ...tracer import dtypes
from ...tracer.arrays.matrices import adjoint, compare_places, symmetrized, transposed
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound
from ...tracer.core import Value
from .. import unary_ufuncs as ew
from ..promotion import promote_inexact
from ..selection import where


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Value
    eigenvectors: Value


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Value
    eigenvectors: Value


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Value
    R: Value


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Value
    S: Value
    Vh: Value


def _matrices(name: str, a: ArrayLike, square: bool = False) -> Value:
    (x,) = promote_inexact(f"linalg.{name}", a)
    if x.aval.ndim < 2:
        fail(name, [x], "it must have at least two dimensions", "rank")
    if square and x.aval.shape[-1] != x.aval.shape[-2]:
        fail(name, [x], f"Argument to {name} must have shape [..., n, n]", "square")
    return x


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Value:
    """L of a = L L^H, lower triangular, or with `upper` its adjoint; a: [..., n, n]. NaN if a is not positive definite.

    With `symmetrize_input` a is replaced by (a + a^H) / 2.
    A float or complex array of the shape of a; integers become floats. NumPy raises LinAlgError where NaN is here.

    >>> a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> jnp.linalg.cholesky(a)
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return _cholesky(a, upper=bool(upper), symmetrize_input=bool(symmetrize_input))


@compound(static=("upper", "symmetrize_input"))
def _cholesky(a: ArrayLike, *, upper: bool, symmetrize_input: bool) -> Value:
    x = _matrices("cholesky", a, square=True)
    factor = linalg.cholesky(adjoint(x) if upper and not symmetrize_input else x, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@compound(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """a = Q R of matrices [..., m, n], with k = min(m, n).

    mode: "reduced" Q [..., m, k], R [..., k, n]; "complete" Q [..., m, m], R [..., m, n]; "r" R alone; "raw" (h, tau),
    the reflections in h's rows.
    A named tuple, or an array for "r". Signs are LAPACK's. Integers become floats.

    >>> q, r = jnp.linalg.qr(jnp.array([[0.0, 2.0], [1.0, 3.0]]))
    >>> (q @ r).round(3)
    Array([[0., 2.],
           [1., 3.]], dtype=float32)
    """
    x = _matrices("qr", a)
    if mode == "raw":
        h, taus = geqrf(x)
        return QRResult(transposed(h), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        known = "'reduced', 'complete', 'r' or 'raw'"
        raise ValueError(f"Unsupported QR decomposition mode {mode!r}: use {known}")
    q, r = linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def _is_lower(uplo: str | None) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo!r}")
    return uplo != "U"


@compound(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues [..., n], ascending, and eigenvectors [..., n, n], in columns, of Hermitian matrices [..., n, n].

    A named tuple. With `symmetrize_input` a is replaced by (a + a^H) / 2, which NumPy does not do; without it, only one
    triangle is read: UPLO is "L" or "U". Derivatives of eigenvectors of equal eigenvalues are not defined (NaN).

    >>> values, vectors = jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(3), (vectors @ jnp.diag(values) @ vectors.T).round(3)
    (Array([1., 3.], dtype=float32), Array([[2., 1.],
           [1., 2.]], dtype=float32))
    """
    lower = _is_lower(UPLO)
    x = _matrices("eigh", a, square=True)
    v, w = linalg.eigh(x, lower=lower, symmetrize_input=bool(symmetrize_input))
    return EighResult(w, v)


@compound(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Value:
    """The eigenvalues [..., n] of Hermitian matrices [..., n, n], ascending; real. Arguments as for `eigh`.

    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
    Array([1., 3.], dtype=float32)
    """
    lower = _is_lower(UPLO)
    x = matrices("eigvalsh", _matrices("eigvalsh", a, square=True))
    return eigh_of(symmetrized(x) if symmetrize_input else x, lower=lower, vectors=False)[0]


@compound()
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues [..., n] and right eigenvectors [..., n, n], in columns, of square matrices; always complex, where
    NumPy's are real if all are.

    A named tuple. There is no order. Eigenvectors have length 1, and a phase that is not defined.

    >>> values, vectors = jnp.linalg.eig(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    >>> jnp.sort_complex(values).round(3)
    Array([0.-1.j, 0.+1.j], dtype=complex64)
    """
    w, v = linalg.eig(_matrices("eig", a, square=True), compute_left_eigenvectors=False)
    return EigResult(w, v)


@compound()
def eigvals(a: ArrayLike) -> Value:
    """The eigenvalues [..., n] of square matrices [..., n, n], always complex and in no order.

    >>> jnp.sort_complex(jnp.linalg.eigvals(jnp.array([[1.0, 2.0], [0.0, 3.0]]))).round(3)
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    x = _matrices("eigvals", a, square=True)
    return linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@compound(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """a = U diag(S) Vh of matrices [..., m, n]; S [..., min(m, n)] descends. S alone unless `compute_uv`, else a named
    tuple.

    U has m columns and Vh n rows with `full_matrices`, else both have min(m, n). `hermitian` says that a is Hermitian:
    then they come from its eigenvalues.

    >>> a = jnp.array([[3.0, 0.0], [0.0, -2.0], [0.0, 0.0]])
    >>> u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    >>> s.round(3), (u * s @ vh).round(3)
    (Array([3., 2.], dtype=float32), Array([[ 3.,  0.],
           [ 0., -2.],
           [ 0.,  0.]], dtype=float32))
    """
    x = _matrices("svd", a, square=hermitian)
    if hermitian:
        return _svd_of_hermitian(x, compute_uv)
    found = linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*found) if compute_uv else found


def _svd_of_hermitian(x: Value, compute_uv: bool) -> Any:
    """Singular values are the magnitudes of eigenvalues; the signs of these go into Vh."""
    v, w = linalg.eigh(x)
    places = _places_descending(ew.abs(w))
    s = permuted(ew.abs(w)[..., None], places, inverse=True)[..., 0]
    if not compute_uv:
        return s
    rows = permuted(adjoint(v), places, inverse=True)
    signs = permuted(where(w < 0, -1, 1)[..., None], places, inverse=True)
    return SVDResult(adjoint(rows), s, rows * signs.astype(rows.dtype))


def _places_descending(x: Value) -> Value:
    """Where each number of the last dimension goes when they are sorted, the largest first."""
    numbers = where(ew.isnan(x), 0, x)
    across, down = numbers[..., None, :], numbers[..., :, None]
    n = x.aval.shape[-1]
    is_before = (across > down) | ((across == down) & compare_places((n, n), "LT"))
    return is_before.sum(-1, dtype=dtypes.int32)


@compound()
def svdvals(x: ArrayLike, /) -> Value:
    """The singular values [..., min(m, n)] of matrices [..., m, n], descending.

    >>> jnp.linalg.svdvals(jnp.array([[3.0, 0.0], [0.0, -2.0]])).round(3)
    Array([3., 2.], dtype=float32)
    """
    found: Value = linalg.svd(_matrices("svdvals", x), full_matrices=False, compute_uv=False)
    return found
