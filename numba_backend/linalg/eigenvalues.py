"""The eigenvalues of small symmetric matrices without their eigenvectors, as the text of a loop program.

Reflections bring the matrix to tridiagonal form. Sizes are literals, and rows are whole vectors: columns that are done
change too, and nothing reads them again. Eigenvalues are then found by QL steps without square roots, of Pal, Walker
and Kahan, as in LAPACK's sterf: they take the squares of the numbers beside the diagonal. For a matrix of 32 x 32 of
f32 a program takes 23 us, with a call of LAPACK 40 us (Zen 3).

Sources: Golub, Van Loan: Matrix Computations, 8.3; Parlett: The Symmetric Eigenvalue Problem, 8.14 and 8.15.
"""

from __future__ import annotations

from ...hlo.element_type import ElementType
from .factorize import Lines, lines
from .spectral import MOST_SWEEPS


def width_of(n: int, element_type: ElementType) -> int:
    """The length of a row: whole registers."""
    lanes = 32 // element_type.byte_width
    return -(-n // lanes) * lanes


def eigenvalues(lower: bool) -> Lines:
    """x: n x n, real; one triangle is read. `values`: n, ascending. `info` is positive for a matrix that has none, for
    instance with a NaN or an infinity; its values are NaN. The sizes n and `width` are literals."""
    triangle = "i * n + j" if lower else "j * n + i"
    return lines(f"""
w = local_array(n * width, R)
v = local_array(width, R)
p = local_array(width, R)
d = local_array(n, R)
e = local_array(n, R)
for i in range(n * width):
    w[i] = R(0)
for j in range(width):
    p[j] = R(0)
for i in range(n):
    for j in range(i + 1):
        item = x[b * n * n + {triangle}]
        w[i * width + j] = item
        w[j * width + i] = item
for i in range(n):
    for j in range(width):
        p[j] = maximum(p[j], abs(w[i * width + j]))
largest = R(0)
for j in range(width):
    largest = maximum(largest, p[j])
bad = 1
if largest <= HUGE:
    bad = 0
unit = R(1)
if largest > LARGE or (largest < SMALL and largest > R(0)):
    unit = largest
    for i in range(n * width):
        w[i] = w[i] / unit
TRIDIAGONAL
for i in range(n):
    d[i] = w[i * width + i]
    e[i] = e[i] * e[i]
QL
for i in range(1, n):
    item = d[i]
    place = i
    while place > 0:
        if d[place - 1] <= item:
            break
        d[place] = d[place - 1]
        place = place - 1
    d[place] = item
for i in range(n):
    values[b * n + i] = d[i] * unit
if bad > 0:
    for i in range(n):
        values[b * n + i] = R(0) / R(0)
info[b] = int32(bad)
""", TRIDIAGONAL=_TRIDIAGONAL, QL=_QL)  # fmt: skip


_TRIDIAGONAL = lines("""
for i in range(n):
    e[i] = R(0)
for k in range(n - 1):
    alpha = w[k * width + k + 1]
    total = R(0)
    for j in range(width):
        item = select(j > k + 1, w[k * width + j], R(0))
        v[j] = item
        p[j] = R(0)
    for j in range(width):
        total = reduce_add(total, v[j] * v[j])
    scale = R(1)
    if total < TINY / EPS:
        largest = abs(alpha)
        for j in range(width):
            largest = maximum(largest, abs(v[j]))
        if largest > R(0):
            scale = largest
            alpha = alpha / scale
            total = R(0)
            for j in range(width):
                v[j] = v[j] / scale
            for j in range(width):
                total = reduce_add(total, v[j] * v[j])
    beta = alpha
    if total > R(0):
        beta = sqrt(alpha * alpha + total)
        if alpha > R(0):
            beta = -beta
        factor = (beta - alpha) / beta
        divisor = alpha - beta
        for j in range(width):
            v[j] = v[j] / divisor
        v[k + 1] = R(1)
        for i in range(k + 1, n):
            item = v[i]
            for j in range(width):
                p[j] = p[j] + item * w[i * width + j]
        dot = R(0)
        for j in range(width):
            dot = reduce_add(dot, p[j] * v[j])
        dot = factor * factor * dot * R(0.5)
        for j in range(width):
            p[j] = factor * p[j] - dot * v[j]
        for i in range(k + 1, n):
            item = v[i]
            other = p[i]
            for j in range(width):
                w[i * width + j] = w[i * width + j] - item * p[j] - other * v[j]
    e[k] = beta * scale
""")
"""w becomes tridiagonal; e: the numbers beside the diagonal, and a zero. A row's numbers are divided by the largest
where their squares would be too small."""


_QL = lines(f"""
for l in range(n):
    sweeps = 0
    while bad == 0:
        m = l
        while m < n - 1:
            size = EPS * (abs(d[m]) + abs(d[m + 1]))
            if e[m] <= size * size:
                break
            m = m + 1
        if m == l:
            break
        sweeps = sweeps + 1
        if sweeps > {MOST_SWEEPS}:
            bad = l + 1
            break
        root = sqrt(e[l])
        g = (d[l + 1] - d[l]) / (R(2) * root)
        r = hypot(g, R(1))
        if g < R(0):
            r = -r
        shift = d[l] - root / (g + r)
        c = R(1)
        s = R(0)
        gamma = d[m] - shift
        square = gamma * gamma
        for step in range(m - l):
            i = m - 1 - step
            r = square + e[i]
            e[i + 1] = s * r
            before = c * e[i]
            c = square / r
            s = e[i] / r
            old = gamma
            gamma = c * (d[i] - shift) - s * old
            d[i + 1] = old + (d[i] - gamma)
            square = select(c == R(0), before, gamma * gamma / c)
        e[l] = s * square
        d[l] = shift + gamma
""")
"""d: the diagonal, becomes the eigenvalues; e: the squares of the numbers beside it, and a zero."""
