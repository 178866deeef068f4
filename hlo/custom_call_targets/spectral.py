"""LAPACK's eigenvalues, singular values and reductions as custom calls: `lapack_<letter><routine>_ffi`.

As in factorize.py. Results that were not asked for (`N` in backend_config) are zeros.
"""

from __future__ import annotations

import numpy as np

from ..element_type import ElementType
from .call import Call, NDArray, Run
from .routine import Buffers, Given, Routine


def syevd(call: Call) -> Routine:
    """For a symmetric or Hermitian matrix; only the triangle `uplo` is read: (eigenvectors, eigenvalues, info)."""
    mode, uplo, n, new = call.letter("mode", "VN"), call.letter("uplo", "LU"), call.sizes["n"], Buffers(call)
    kinds = (new.element_type, *([new.real] if new.is_complex else []), ElementType.S32)
    a, w, name = new.matrix(n, n, 0), new.row(n, kind=new.real), "heevd" if new.is_complex else "syevd"
    return Routine(call, name, (mode, uplo, n, a, max(n, 1), w), kinds, (new.info,), (a, w, new.info))


def sytrd(call: Call) -> Routine:
    """To tridiagonal form: (a with reflections in the triangle `uplo`, diagonal, off-diagonal, tau, info)."""
    uplo, n, h, new = call.letter("uplo", "LU"), call.sizes["n"], call.sizes["h"], Buffers(call)
    a, d, e, tau = new.matrix(n, n, 0), new.row(n, kind=new.real), new.row(h, kind=new.real), new.row(h)
    before, name = (uplo, n, a, max(n, 1), d, e, tau), "hetrd" if new.is_complex else "sytrd"
    return Routine(call, name, before, (new.element_type,), (new.info,), (a, d, e, tau, new.info))


def gehrd(call: Call) -> Routine:
    """To Hessenberg form in rows and columns `low` to `high`: (a with reflections below it, tau, info)."""
    n, h, new = call.sizes["n"], call.sizes["h"], Buffers(call)
    low, high = call.integer("low"), call.integer("high")
    if not (1 <= low <= max(n, 1) and min(low, n) <= high <= n):
        call.fail(f"its backend_config must have 1 <= low <= high <= {n}, not {low} and {high}")
    a, tau = new.matrix(n, n, 0), new.row(h, is_zero=True)
    before = (n, low, high, a, max(n, 1), tau)
    return Routine(call, "gehrd", before, (new.element_type,), (new.info,), (a, tau, new.info))


def gesdd(call: Call) -> Routine:
    """Singular values by divide and conquer: (a as overwritten, s, u, vt, info). `mode`: A all of u and vt, S the first
    min(m, n) columns and rows, N neither."""
    m, n = call.sizes["m"], call.sizes["n"]
    k = min(m, n)
    return _svd(call, "gesdd", max(5 * k, k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)), 8 * k)


def gesvd(call: Call) -> Routine:
    """Singular values by QR iteration; as gesdd."""
    return _svd(call, "gesvd", 5 * min(call.sizes["m"], call.sizes["n"]))


def _svd(call: Call, name: str, real_work: int, integers: int = 0) -> Routine:
    mode, m, n, new = call.letter("mode", "ASN"), call.sizes["m"], call.sizes["n"], Buffers(call)
    k, width, height = min(m, n), call.sizes["u"], call.sizes["v"]
    allowed = {"A": [(m, n)], "S": [(k, k)], "N": [(m, n), (k, k)]}[mode]
    if (width, height) not in allowed:
        wanted = " or ".join(f"{columns} columns and vt {rows} rows" for columns, rows in dict.fromkeys(allowed))
        call.fail(f"for mode {mode}, u must have {wanted}")
    a, s = new.matrix(m, n, 0), new.row(k, kind=new.real)
    u, vt = new.matrix(m, width, is_zero=mode == "N"), new.matrix(height, n, is_zero=mode == "N")
    results = (a, s, u, vt, new.info)
    after = (*new.of_complex(real_work), *([new.work(integers, ElementType.S32)] if integers else []), new.info)

    def around(run: Run, a: NDArray) -> tuple[NDArray, ...]:
        """Without singular values there is nothing to call: all of u and vt are identities."""
        if k:
            return tuple(run(a))
        arrays = [np.zeros((*call.batch, *b.shape[::-1]), b.element_type.dtype) for b in results]
        if mode != "N":
            for factor in arrays[2:4]:
                factor[:] = np.eye(*factor.shape[-2:])
        return tuple(arrays)

    before = (*((mode,) if integers else (mode, mode)), m, n, a, max(m, 1), s, u, max(m, 1), vt, max(height, 1))
    return Routine(call, name, before, (new.element_type,), after, results, around)


def geev(call: Call) -> Routine:
    """Of any square matrix: (eigenvalues, left and right eigenvectors as columns, info); for a real one the real and
    the imaginary parts of the eigenvalues are two results. info is -4 for a matrix with an infinity or a NaN in it."""
    left, right = call.letter("compute_left", "VN"), call.letter("compute_right", "VN")
    n, new = call.sizes["n"], Buffers(call)
    size, a, w = max(n, 1), new.matrix(n, n, 0), new.values(n)
    vectors = [new.matrix(n, n, is_zero=letter == "N") for letter in (left, right)]

    def around(run: Run, a: NDArray) -> tuple[NDArray, ...]:
        finite = np.asarray(np.isfinite(a).all((-1, -2)))
        *values, left, right, info = run(np.where(finite[..., None, None], a, a.dtype.type(0)))
        if not new.is_complex:
            left, right = (_from_pairs(v, values[1][..., None, :]) for v in (left, right))
        return *values, left, right, np.where(finite, info, np.int32(-4))

    before: tuple[Given, ...] = (left, right, n, a, size, *w, vectors[0], size, vectors[1], size)
    after = (*new.of_complex(2 * n), new.info)
    return Routine(call, "geev", before, (new.element_type,), after, (*w, *vectors, new.info), around)


def _from_pairs(vectors: NDArray, imaginary: NDArray) -> NDArray:
    """Complex eigenvectors from LAPACK's real ones.

    Of a conjugate pair of eigenvalues, that with the positive imaginary part comes first; column j then holds the real
    part and column j + 1 the imaginary part.
    """
    first = imaginary > 0
    second = np.zeros_like(first)
    second[..., 1:] = first[..., :-1]
    zeros = np.zeros_like(vectors[..., :1])
    following = np.concatenate([vectors[..., 1:], zeros], -1)
    preceding = np.concatenate([zeros, vectors[..., :-1]], -1)
    found = np.empty(vectors.shape, np.result_type(vectors.dtype, np.complex64))
    found.real = np.where(second, preceding, vectors)
    found.imag = np.where(first, following, np.where(second, -vectors, 0))
    return found


def gees(call: Call) -> Routine:
    """The Schur form, not sorted: (schur form, schur vectors, eigenvalues as geev's, 0, info)."""
    mode, n, new = call.letter("mode", "VN"), call.sizes["n"], Buffers(call)
    call.letter("sort", "N")
    size, a, w = max(n, 1), new.matrix(n, n, 0), new.values(n)
    vectors, selected = new.matrix(n, n, is_zero=mode == "N"), Buffers(call).info
    before: tuple[Given, ...] = (mode, "N", 0, n, a, size, selected, *w, vectors, size)
    after = (*new.of_complex(n), new.work(n, ElementType.S32), new.info)
    return Routine(call, "gees", before, (new.element_type,), after, (a, vectors, *w, selected, new.info))
