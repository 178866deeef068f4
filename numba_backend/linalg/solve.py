"""Triangular solves and whole linear systems, as texts.

`solve` of small matrices is LU factors, a permutation of rows and two triangular solves. If nothing else uses the
factors, elimination takes the right-hand sides with it, in the same order of the same operations. A pivot of zero is
not divided by until the end, where it gives infinity or NaN.
"""

from __future__ import annotations

from .factorize import Lines, eliminated, lines


def triangular_solve(left: bool, forwards: bool, unit: bool, conjugated: bool = False) -> Lines:
    """v: m x r becomes x of a x = v, or of x a = v for v: r x m, from the first or the last row (column) on; a: m x m.

    From the left, all columns advance together, a row at a time; from the right, a row is solved at a time.
    `conjugated`: of conj(a)."""
    def a(i: str, j: str) -> str:
        return f"conj(a[{i}, {j}])" if conjugated else f"a[{i}, {j}]"

    rest = "k + 1, m" if forwards else "k"
    quotient = f"""
    for j in range(r):
        v[k, j] = v[k, j] / {a("k", "k")}
""" if left else f"""
    for i in range(r):
        v[i, k] = v[i, k] / {a("k", "k")}
"""  # fmt: skip
    update = f"""
    for i in range({rest}):
        for j in range(r):
            v[i, j] = v[i, j] - {a("i", "k")} * v[k, j]
""" if left else f"""
    for i in range(r):
        factor = v[i, k]
        for c in range({rest}):
            v[i, c] = v[i, c] - factor * {a("k", "c")}
"""  # fmt: skip
    text = ["for k in range(m):"] if forwards else ["for step in range(m):", "    k = m - 1 - step"]
    return [*text, *([] if unit else lines(quotient)), *lines(update)]


def solve() -> Lines:
    """v: m x r becomes x of w x = v."""
    return eliminated(False, beside=True) + [line.replace("a[", "w[") for line in triangular_solve(True, False, False)]


def inverse() -> Lines:
    """v: m x m becomes the inverse of w: `solve` with identities as right-hand sides."""
    return lines("""
for i in range(m):
    for j in range(r):
        v[i, j] = select(i == j, T(R(1)), T(R(0)))
""") + solve()  # fmt: skip


def lu_solve(trans: int) -> Lines:
    """v becomes x of a x = v from a's factors, a: m x m; with `trans` of its transpose, with 2 of its adjoint."""
    first = triangular_solve(True, True, trans == 0, trans == 2)
    return first + triangular_solve(True, False, trans != 0, trans == 2)
