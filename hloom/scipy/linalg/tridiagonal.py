"""Eigenvalues of tridiagonal matrices. Names and semantics follow jax.scipy.linalg."""

from __future__ import annotations

from typing import Any

from ...hlo.errors import UnsupportedError
from ...lax import linalg
from ...lax.linalg.lapack import fail
from ...numpy.array_creation import asarray
from ...numpy.array_manipulation import diag
from ...numpy.promotion import check_arraylike
from ...numpy.unary_ufuncs import conj
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.compound import compound

_INEXACT = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """(w, v), or w alone, of the Hermitian matrix with d on the diagonal, e above and its conjugate below.

    d: [n], its real part is read; e: [n - 1], of the same dtype; select: "a" all eigenvalues, ascending, or "i" those
    from number select_range[0] to select_range[1]. `tol` and `key` are ignored: eigenvalues are as exact as from
    `eigh`, for the whole matrix.

    >>> linalg.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True).round(3)
    Array([1., 3.], dtype=float32)
    """
    check_arraylike("eigh_tridiagonal", d, e)
    middle, beside = asarray(d), asarray(e)
    if middle.dtype != beside.dtype or middle.dtype not in _INEXACT:
        raise TypeError(
            "eigh_tridiagonal: diagonal and off-diagonal values must have same dtype, of floats or complex numbers, "
            f"got {middle.dtype} and {beside.dtype}"
        )
    if middle.ndim != 1 or beside.shape != (max(middle.shape[0] - 1, 0),):
        fail("eigh_tridiagonal", [middle, beside], "d must be a vector, and e one with one number less", "shape")
    if select == "v":
        raise UnsupportedError("eigh_tridiagonal(..., select='v') is not implemented")
    if select not in ("a", "i"):
        raise ValueError(f"select must be 'a' or 'i', not {select!r}")
    first, last = 0, middle.shape[0] - 1
    if select == "i":
        if select_range is None:
            raise ValueError("for select='i', select_range must be specified.")
        first, last = (int(k) for k in select_range)
        if first > last:
            raise ValueError("Got empty index range in select_range.")
    return _eigh(middle, beside, bool(eigvals_only), first, last)


@compound(static=("values_only", "first", "last"))
def _eigh(d: Any, e: Any, values_only: bool, first: int, last: int) -> Any:
    matrix = diag(d.real).astype(d.dtype) + diag(e, 1) + diag(conj(e), -1)
    v, w = linalg.eigh(matrix, symmetrize_input=False)
    w = w[first : last + 1]
    return w if values_only else (w, v[:, first : last + 1])
