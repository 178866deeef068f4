"""LAPACK's factorisations and solvers as custom calls: the computation of `lapack_<letter><routine>_ffi`, a matrix at a
time.

The names of results, the letters in backend_config and the contents of the other triangle follow LAPACK's
documentation. `info` is 0 for success; JAX's programs turn results with another value into NaN.
"""

from __future__ import annotations

import numpy as np

from .call import Call, NDArray, Run
from .library import Shared, each, each_with_work, from_columns, rows_of, to_columns


def potrf(call: Call) -> Run:
    """Cholesky factor in the triangle `uplo`, the other one as it was: (a, info)."""
    uplo, n = call.letter("uplo", "LU"), call.sizes["n"]

    def run(a: NDArray) -> tuple[NDArray, ...]:
        columns = to_columns(a)
        info = np.zeros(len(columns), np.int32)
        each("potrf", call.element_type, len(columns), uplo, n, columns, max(n, 1), info)
        return from_columns(columns, call.batch), info.reshape(call.batch)

    return run


def getrf(call: Call) -> Run:
    """P L U with partial pivoting: (L and U in one matrix, pivots counted from 1, info)."""
    m, n = call.sizes["m"], call.sizes["n"]

    def run(a: NDArray) -> tuple[NDArray, ...]:
        columns = to_columns(a)
        count = len(columns)
        pivots, info = np.zeros((count, min(m, n)), np.int32), np.zeros(count, np.int32)
        each("getrf", call.element_type, count, m, n, columns, max(m, 1), pivots, info)
        pivots = pivots.reshape(*call.batch, min(m, n))
        return from_columns(columns, call.batch), pivots, info.reshape(call.batch)

    return run


def geqrf(call: Call) -> Run:
    """Q R: (R with Householder vectors below it, their factors tau)."""
    m, n = call.sizes["m"], call.sizes["n"]
    k = min(m, n)

    def run(a: NDArray) -> tuple[NDArray, ...]:
        columns = to_columns(a)
        count = len(columns)
        tau, info = np.zeros((count, k), call.element_type.dtype), np.zeros(count, np.int32)
        before = (m, n, columns, max(m, 1), tau)
        each_with_work("geqrf", call.element_type, count, before, [call.element_type], [info])
        return from_columns(columns, call.batch), tau.reshape(*call.batch, k)

    return run


def geqp3(call: Call) -> Run:
    """Q R with column pivoting: (as geqrf, permutation counted from 1, tau). Columns with jpvt != 0 go first."""
    m, n = call.sizes["m"], call.sizes["n"]
    k, real = min(m, n), call.element_type.real

    def run(a: NDArray, jpvt: NDArray) -> tuple[NDArray, ...]:
        columns, pivots = to_columns(a), rows_of(jpvt)
        count = len(columns)
        tau, info = np.zeros((count, k), call.element_type.dtype), np.zeros(count, np.int32)
        rwork = [Shared(np.empty(max(2 * n, 1), real.dtype))] if call.element_type.is_complex else []
        before = (m, n, columns, max(m, 1), pivots, tau)
        each_with_work("geqp3", call.element_type, count, before, [call.element_type], [*rwork, info])
        return from_columns(columns, call.batch), pivots.reshape(*call.batch, n), tau.reshape(*call.batch, k)

    return run


def orgqr(call: Call) -> Run:
    """The first n columns of the product of Householder reflections, as geqrf leaves them (orgqr, ungqr)."""
    m, n, p = (call.sizes[name] for name in "mnp")
    if not p <= n <= m:
        call.fail("there must be at most as many reflections as columns, and as many columns as rows")
    routine = "ungqr" if call.element_type.is_complex else "orgqr"

    def run(a: NDArray, tau: NDArray) -> NDArray:
        columns, factors = to_columns(a), rows_of(tau)
        count = len(columns)
        info = np.zeros(count, np.int32)
        before = (m, n, p, columns, max(m, 1), factors)
        each_with_work(routine, call.element_type, count, before, [call.element_type], [info])
        return from_columns(columns, call.batch)

    return run


def ormqr(call: Call) -> Run:
    """c multiplied by the product of Householder reflections (or its adjoint), from the left or the right."""
    left, transpose = call.flag("left"), call.flag("transpose")
    rows, p, m, n = (call.sizes[name] for name in "rpmn")
    if rows != (m if left else n) or p > rows or call.sizes["c"] < p:
        call.fail("the reflections must be as long as c has rows (columns, from the right), and be columns of a")
    is_complex = call.element_type.is_complex
    routine = "unmqr" if is_complex else "ormqr"
    trans = ("C" if is_complex else "T") if transpose else "N"

    def run(a: NDArray, tau: NDArray, c: NDArray) -> NDArray:
        reflections, factors, columns = to_columns(a), rows_of(tau), to_columns(c)
        count = len(columns)
        info = np.zeros(count, np.int32)
        before = ("L" if left else "R", trans, m, n, p, reflections, max(rows, 1), factors, columns, max(m, 1))
        each_with_work(routine, call.element_type, count, before, [call.element_type], [info])
        return from_columns(columns, call.batch)

    return run


def trsm(call: Call) -> Run:
    """x of op(a) x = b (`side` "L") or x op(a) = b ("R"), a triangular."""
    side, uplo = call.letter("side", "LR"), call.letter("uplo", "LU")
    trans, diag = call.letter("trans_x", "NTC"), call.letter("diag", "NU")
    a_size, m, n = (call.sizes[name] for name in "amn")
    if a_size != (m if side == "L" else n):
        call.fail("the sizes of a and b do not fit")

    def run(a: NDArray, b: NDArray) -> NDArray:
        triangle, columns = to_columns(a), to_columns(b)
        sizes = (m, n, 1.0, triangle, max(a_size, 1), columns, max(m, 1))
        if columns.size:
            each("trsm", call.element_type, len(columns), side, uplo, trans, diag, *sizes)
        return from_columns(columns, call.batch)

    return run


def gtsv(call: Call) -> Run:
    """x of a tridiagonal system of the diagonals dl, d, du: (the overwritten diagonals; x; info). dl[0] is not read."""
    n, count_b = call.sizes["n"], call.sizes["b"]

    def run(dl: NDArray, d: NDArray, du: NDArray, b: NDArray) -> tuple[NDArray, ...]:
        lower, diagonal, upper, columns = rows_of(dl[..., 1:]), rows_of(d), rows_of(du), to_columns(b)
        count = len(columns)
        info = np.zeros(count, np.int32)
        if not n:
            lower = np.zeros((count, 0), call.element_type.dtype)
        each("gtsv", call.element_type, count, n, count_b, lower, diagonal, upper, columns, max(n, 1), info)
        shape = (*call.batch, n)
        lower = np.concatenate([dl[..., :1], lower.reshape(*call.batch, max(n - 1, 0))], -1)
        x = from_columns(columns, call.batch)
        return lower, diagonal.reshape(shape), upper.reshape(shape), x, info.reshape(call.batch)

    return run
