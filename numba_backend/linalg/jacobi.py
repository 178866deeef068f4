"""The eigenvalues and eigenvectors of many small symmetric matrices, interleaved in vectors.

Jacobi's method: each rotation makes one number beside the diagonal zero, and a sweep rotates all of them in turn. It
has LAPACK's accuracy or better, in some five sweeps, and all matrices do the same in each. A matrix is done when the
numbers beside its diagonal are below its rounding errors. Then it is rotated by nothing, so that its results do not
depend on its neighbours in the vector. Eigenvalues are put in order by exchanges of neighbours. Eigenvectors have norm
1; their signs differ from LAPACK's choice. Matrices with numbers that would overflow are scaled, as in LAPACK; NaN or
an infinity anywhere in a matrix gives NaN everywhere.

Source: G. H. Golub, C. F. Van Loan, Matrix Computations, 8.5; H. Rutishauser, The Jacobi method for real symmetric
matrices (1966).
"""

from __future__ import annotations

from ..emit.texts import indented
from .factorize import Lines, exchanged, lines

LARGEST_SYMMETRIC = 16
"""Rows of the largest matrix: for larger ones LAPACK takes less work."""
_SWEEPS = 30
"""Far more than any matrix takes."""


def symmetric(vectors: bool, with_info: bool) -> Lines:
    """w: n x n; only its upper triangle is read. `values`: the eigenvalues, in ascending order; if `vectors`, the
    columns of v: n x n are eigenvectors, else w is arbitrary. `with_info`: info[0] is 0, or n for a matrix without
    result; such a result is NaN."""
    spans = [("p", "w[k, p]", "w[k, q]"), ("p + 1, q", "w[p, k]", "w[k, q]"), ("q + 1, n", "w[p, k]", "w[q, k]")]
    rotations = [line for each in (*spans, *[("n", "v[k, p]", "v[k, q]")] * vectors) for line in _rotation(*each)]
    return lines(f"""
size = R(0)
off = R(0)
for i in range(n):
    for j in range(i, n):
        found = abs(w[i, j])
        size = maximum(size, found)
        off = off + (found - found)
size = size + off
scale = select(size > LARGE or (size < SMALL and size > R(0)), size, R(1))
for i in range(n):
    for j in range(i, n):
        w[i, j] = w[i, j] / scale
size = EPS * R(0.25) * (size / scale)
for i in range(n):
    values[i] = w[i, i]
    IDENTITY
left = True
sweep = 0
while left and sweep < {_SWEEPS}:
    sweep = sweep + 1
    off = R(0)
    for i in range(n):
        for j in range(i + 1, n):
            off = maximum(off, abs(w[i, j]))
    going = select(off > size, R(1), R(0))
    left = any_of(going > R(0))
    if left:
        for p in range(n - 1):
            for q in range(p + 1, n):
                twice = w[p, q] + w[p, q]
                gap = values[q] - values[p]
                down = abs(gap) + sqrt(gap * gap + twice * twice)
                angle = twice / select(down > R(0), down, R(1))
                tangent = select(gap < R(0), -angle, angle) * going
                whole = sqrt(tangent * tangent + R(1))
                sine = tangent / whole
                ratio = tangent / (whole + R(1))
                moved = tangent * w[p, q]
                values[p] = values[p] - moved
                values[q] = values[q] + moved
                w[p, q] = select(going > R(0), w[p, q] - w[p, q], w[p, q])
                ROTATIONS
result = select(off <= size, R(1), R(0) / R(0))
for i in range(n):
    values[i] = values[i] * scale * result
for i in range(n - 1):
    for j in range(n - 1 - i):
        swaps = values[j + 1] < values[j]
        first = values[j]
        second = values[j + 1]
        values[j] = select(swaps, second, first)
        values[j + 1] = select(swaps, first, second)
        VECTORS
RESULTS
INFO
""", ROTATIONS=rotations, INFO=["info[0] = select(off <= size, int32(0), int32(n))"] * with_info,
        IDENTITY=["for j in range(n):", "    v[i, j] = select(i == j, R(1), R(0))"] if vectors else [],
        VECTORS=["if swaps:", *indented(exchanged("k", "n", "v[k, j]", "v[k, j + 1]"))] if vectors else [],
        RESULTS=["for i in range(n):", "    for j in range(n):", "        v[i, j] = v[i, j] * result"]
        if vectors else [])  # fmt: skip


def _rotation(span: str, one: str, other: str) -> Lines:
    return lines(f"""
for k in range({span}):
    first = {one}
    second = {other}
    {one} = first - sine * (second + first * ratio)
    {other} = second + sine * (first - second * ratio)
""")
