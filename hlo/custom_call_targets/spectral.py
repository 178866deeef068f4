"""LAPACK's eigenvalues, singular values and reductions as custom calls: `lapack_<letter><routine>_ffi`.

As in factorize.py. Results that were not asked for (`N` in backend_config) are zeros. Some are data (routine.py), so
that a backend can generate code from them.
"""

from __future__ import annotations

import numpy as np

from ..element_type import ElementType
from .call import Call, NDArray, Run
from .library import Argument, Shared, each_with_work, from_columns, to_columns
from .routine import Buffer, Routine


def syevd(call: Call) -> Run:
    """For a symmetric or Hermitian matrix; only the triangle `uplo` is read: (eigenvectors, eigenvalues, info)."""
    return syevd_routine(call).run(call)


def syevd_routine(call: Call) -> Routine:
    """The routine of `syevd`."""
    mode, uplo, n = call.letter("mode", "VN"), call.letter("uplo", "LU"), call.sizes["n"]
    element_type, real = call.element_type, call.element_type.real
    kinds = (element_type, *([real] if element_type.is_complex else []), ElementType.S32)
    a = Buffer((n, n), element_type, is_matrix=True, is_operand=True)
    w, info = Buffer((n,), real), Buffer((), ElementType.S32)
    name = "heevd" if element_type.is_complex else "syevd"
    return Routine(name, element_type, (mode, uplo, n, a, max(n, 1), w), kinds, (info,), (a, w, info))


def sytrd(call: Call) -> Run:
    """To tridiagonal form: (a with reflections in the triangle `uplo`, diagonal, off-diagonal, tau, info)."""
    uplo, n, h = call.letter("uplo", "LU"), call.sizes["n"], call.sizes["h"]
    element_type, real = call.element_type, call.element_type.real

    def run(a: NDArray) -> tuple[NDArray, ...]:
        columns = to_columns(a)
        count = len(columns)
        d, e = np.zeros((count, n), real.dtype), np.zeros((count, h), real.dtype)
        tau, info = np.zeros((count, h), element_type.dtype), np.zeros(count, np.int32)
        before = (uplo, n, columns, max(n, 1), d, e, tau)
        routine = "hetrd" if element_type.is_complex else "sytrd"
        each_with_work(routine, element_type, count, before, [element_type], [info])
        batch = call.batch
        parts = (d.reshape(*batch, n), e.reshape(*batch, h), tau.reshape(*batch, h), info.reshape(batch))
        return from_columns(columns, batch), *parts

    return run


def gehrd(call: Call) -> Run:
    """To Hessenberg form in rows and columns `low` to `high`: (a with reflections below it, tau, info)."""
    n, h = call.sizes["n"], call.sizes["h"]
    low, high = call.integer("low"), call.integer("high")
    if not (1 <= low <= max(n, 1) and min(low, n) <= high <= n):
        call.fail(f"its backend_config must have 1 <= low <= high <= {n}, not {low} and {high}")

    def run(a: NDArray) -> tuple[NDArray, ...]:
        columns = to_columns(a)
        count = len(columns)
        tau, info = np.zeros((count, h), call.element_type.dtype), np.zeros(count, np.int32)
        before = (n, low, high, columns, max(n, 1), tau)
        each_with_work("gehrd", call.element_type, count, before, [call.element_type], [info])
        return from_columns(columns, call.batch), tau.reshape(*call.batch, h), info.reshape(call.batch)

    return run


def gesdd(call: Call) -> Run:
    """Singular values by divide and conquer: (a as overwritten, s, u, vt, info). `mode`: A all of u and vt, S the first
    min(m, n) columns and rows, N neither."""
    return _svd(call, "gesdd")


def gesvd(call: Call) -> Run:
    """Singular values by QR iteration; as gesdd."""
    return _svd(call, "gesvd")


def _svd(call: Call, name: str) -> Run:
    """Without singular values there is nothing to call: all of u and vt are identities."""
    routine = _svd_routine(call, name)
    if min(call.sizes["m"], call.sizes["n"]):
        return routine.run(call)

    def run(a: NDArray) -> tuple[NDArray, ...]:
        arrays = [np.zeros((*call.batch, *(b.shape[::-1] if b.is_matrix else b.shape)), b.element_type.dtype)
                  for b in routine.results]  # fmt: skip
        if chr(call.config["mode"]) != "N":
            for factor in arrays[2:4]:
                factor[:] = np.eye(*factor.shape[-2:])
        return tuple(arrays)

    return run


def _svd_routine(call: Call, name: str) -> Routine:
    mode, m, n = call.letter("mode", "ASN"), call.sizes["m"], call.sizes["n"]
    element_type, real, k = call.element_type, call.element_type.real, min(m, n)
    width, height = call.sizes["u"], call.sizes["v"]
    allowed = {"A": [(m, n)], "S": [(k, k)], "N": [(m, n), (k, k)]}[mode]
    if (width, height) not in allowed:
        wanted = " or ".join(f"{columns} columns and vt {rows} rows" for columns, rows in dict.fromkeys(allowed))
        call.fail(f"for mode {mode}, u must have {wanted}")
    is_gesdd = name == "gesdd"
    a = Buffer((n, m), element_type, is_matrix=True, is_operand=True)
    s, info = Buffer((k,), real), Buffer((), ElementType.S32)
    u, vt = Buffer((width, m), element_type, is_matrix=True), Buffer((n, height), element_type, is_matrix=True)
    after: list[Buffer] = []
    if element_type.is_complex:
        size = max(5 * k, k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)) if is_gesdd else 5 * k
        after.append(Buffer((size,), real, is_shared=True))
    if is_gesdd:
        after.append(Buffer((8 * k,), ElementType.S32, is_shared=True))
    letters = (mode,) if is_gesdd else (mode, mode)
    before = (*letters, m, n, a, m, s, u, m, vt, max(height, 1))
    return Routine(name, element_type, before, (element_type,), (*after, info), (a, s, u, vt, info))


def geev(call: Call) -> Run:
    """Of any square matrix: (eigenvalues, left and right eigenvectors as columns, info); for a real one the real and
    the imaginary parts of the eigenvalues are two results. info is -4 for a matrix with an infinity or a NaN in it."""
    left, right = call.letter("compute_left", "VN"), call.letter("compute_right", "VN")
    n, element_type, real = call.sizes["n"], call.element_type, call.element_type.real

    def run(a: NDArray) -> tuple[NDArray, ...]:
        finite = np.isfinite(a).all((-1, -2)).reshape(-1)
        columns = to_columns(a)
        columns[~finite] = 0
        count = len(columns)
        w = [np.zeros((count, n), element_type.dtype) for _ in range(1 if element_type.is_complex else 2)]
        vectors = [np.zeros((count, n, n), element_type.dtype) for _ in range(2)]
        info = np.zeros(count, np.int32)
        size = max(n, 1)
        rwork = [Shared(np.empty(2 * size, real.dtype))] if element_type.is_complex else []
        before: list[Argument] = [left, right, n, columns, size, *w, vectors[0], size, vectors[1], size]
        each_with_work("geev", element_type, count, before, [element_type], [*rwork, info])
        info[~finite] = -4
        if not element_type.is_complex:
            vectors = [_from_pairs(v, w[1]) for v in vectors]
        batch = call.batch
        sides = [from_columns(v, batch) for v in vectors]
        return *(part.reshape(*batch, n) for part in w), *sides, info.reshape(batch)

    return run


def _from_pairs(columns: NDArray, imaginary: NDArray) -> NDArray:
    """Complex eigenvectors from LAPACK's real ones.

    Of a conjugate pair of eigenvalues, that with the positive imaginary part comes first; column j then holds the real
    part and column j + 1 the imaginary part.
    """
    first = imaginary > 0
    second = np.zeros_like(first)
    second[:, 1:] = first[:, :-1]
    following = np.concatenate([columns[:, 1:], np.zeros_like(columns[:, :1])], 1)
    preceding = np.concatenate([np.zeros_like(columns[:, :1]), columns[:, :-1]], 1)
    real = np.where(second[:, :, None], preceding, columns)
    imag = np.where(first[:, :, None], following, np.where(second[:, :, None], -columns, 0))
    vectors = np.empty(columns.shape, np.result_type(columns.dtype, np.complex64))
    vectors.real, vectors.imag = real, imag
    return vectors


def gees(call: Call) -> Run:
    """The Schur form, not sorted: (schur form, schur vectors, eigenvalues as geev's, 0, info)."""
    mode, n, element_type = call.letter("mode", "VN"), call.sizes["n"], call.element_type
    call.letter("sort", "N")
    real = element_type.real

    def run(a: NDArray) -> tuple[NDArray, ...]:
        columns = to_columns(a)
        count = len(columns)
        w = [np.zeros((count, n), element_type.dtype) for _ in range(1 if element_type.is_complex else 2)]
        vectors = np.zeros((count, n, n), element_type.dtype)
        selected, info = np.zeros(count, np.int32), np.zeros(count, np.int32)
        size = max(n, 1)
        rwork = [Shared(np.empty(size, real.dtype))] if element_type.is_complex else []
        bwork, nobody = Shared(np.empty(size, np.int32)), Shared(np.zeros(1, np.int64))
        before: list[Argument] = [mode, "N", nobody, n, columns, size, selected, *w, vectors, size]
        each_with_work("gees", element_type, count, before, [element_type], [*rwork, bwork, info])
        batch = call.batch
        values = (part.reshape(*batch, n) for part in w)
        schur = (from_columns(columns, batch), from_columns(vectors, batch))
        return *schur, *values, selected.reshape(batch), info.reshape(batch)

    return run
