"""LAPACK's factorisations and solvers as custom calls: the computation of `lapack_<letter><routine>_ffi`, a matrix at a
time.

The names of results, the letters in backend_config and the contents of the other triangle follow LAPACK's
documentation. `info` is 0 for success; JAX's programs turn results with another value into NaN. The routines are data
(routine.py), so that a backend can generate code from them.
"""

from __future__ import annotations

import numpy as np

from ..element_type import ElementType
from .call import Call, NDArray, Run
from .routine import Buffers, Routine


def potrf(call: Call) -> Routine:
    """Cholesky factor in the triangle `uplo`, the other one as it was: (a, info)."""
    uplo, n, new = call.letter("uplo", "LU"), call.sizes["n"], Buffers(call)
    a = new.matrix(n, n, 0)
    return Routine(call, "potrf", (uplo, n, a, max(n, 1), new.info), (), (), (a, new.info))


def getrf(call: Call) -> Routine:
    """P L U with partial pivoting: (L and U in one matrix, pivots counted from 1, info)."""
    m, n, new = call.sizes["m"], call.sizes["n"], Buffers(call)
    a, pivots = new.matrix(m, n, 0), new.row(min(m, n), kind=ElementType.S32)
    return Routine(call, "getrf", (m, n, a, max(m, 1), pivots, new.info), (), (), (a, pivots, new.info))


def geqrf(call: Call) -> Routine:
    """Q R: (R with Householder vectors below it, their factors tau)."""
    m, n, new = call.sizes["m"], call.sizes["n"], Buffers(call)
    a, tau = new.matrix(m, n, 0), new.row(min(m, n))
    return Routine(call, "geqrf", (m, n, a, max(m, 1), tau), (call.element_type,), (new.info,), (a, tau))


def geqp3(call: Call) -> Routine:
    """Q R with column pivoting: (as geqrf, permutation counted from 1, tau). Columns with jpvt != 0 go first."""
    m, n, new = call.sizes["m"], call.sizes["n"], Buffers(call)
    a, pivots, tau = new.matrix(m, n, 0), new.row(n, 1, ElementType.S32), new.row(min(m, n))
    before, after = (m, n, a, max(m, 1), pivots, tau), (*new.of_complex(2 * n), new.info)
    return Routine(call, "geqp3", before, (call.element_type,), after, (a, pivots, tau))


def orgqr(call: Call) -> Routine:
    """The first n columns of the product of Householder reflections, as geqrf leaves them (orgqr, ungqr)."""
    (m, n, p), new = (call.sizes[name] for name in "mnp"), Buffers(call)
    if not p <= n <= m:
        call.fail("there must be at most as many reflections as columns, and as many columns as rows")
    a, tau = new.matrix(m, n, 0), new.row(p, 1)
    name = "ungqr" if new.is_complex else "orgqr"
    return Routine(call, name, (m, n, p, a, max(m, 1), tau), (call.element_type,), (new.info,), (a,))


def ormqr(call: Call) -> Routine:
    """c multiplied by the product of Householder reflections (or its adjoint), from the left or the right."""
    left, transpose, new = call.flag("left"), call.flag("transpose"), Buffers(call)
    rows, columns, p, m, n = (call.sizes[name] for name in "rcpmn")
    if rows != (m if left else n) or p > rows or columns < p:
        call.fail("the reflections must be as long as c has rows (columns, from the right), and be columns of a")
    trans = ("C" if new.is_complex else "T") if transpose else "N"
    a, tau, c = new.matrix(rows, columns, 0), new.row(p, 1), new.matrix(m, n, 2)
    before = ("L" if left else "R", trans, m, n, p, a, max(rows, 1), tau, c, max(m, 1))
    return Routine(call, "unmqr" if new.is_complex else "ormqr", before, (call.element_type,), (new.info,), (c,))


def trsm(call: Call) -> Routine:
    """x of op(a) x = b (`side` "L") or x op(a) = b ("R"), a triangular."""
    side, uplo = call.letter("side", "LR"), call.letter("uplo", "LU")
    trans, diag, new = call.letter("trans_x", "NTC"), call.letter("diag", "NU"), Buffers(call)
    size, m, n = (call.sizes[name] for name in "amn")
    if size != (m if side == "L" else n):
        call.fail("the sizes of a and b do not fit")
    a, b = new.matrix(size, size, 0), new.matrix(m, n, 1)
    before = (side, uplo, trans, diag, m, n, 1.0, a, max(size, 1), b, max(m, 1))
    return Routine(call, "trsm", before, (), (), (b,))


def gtsv(call: Call) -> Routine:
    """x of a tridiagonal system of the diagonals dl, d, du: (the overwritten diagonals; x; info). dl[0] is not read."""
    n, count, new = call.sizes["n"], call.sizes["b"], Buffers(call)
    dl, d, du, b = new.row(max(n, 1) - 1, 0), new.row(n, 1), new.row(n, 2), new.matrix(n, count, 3)

    def around(run: Run, dl: NDArray, *others: NDArray) -> tuple[NDArray, ...]:
        lower, *found = run(dl[..., 1:], *others)
        return np.concatenate([dl[..., :1], lower], -1), *found

    before = (n, count, dl, d, du, b, max(n, 1), new.info)
    return Routine(call, "gtsv", before, (), (), (dl, d, du, b, new.info), around)
