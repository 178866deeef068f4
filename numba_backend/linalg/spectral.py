"""Eigenvalues of symmetric and Hermitian matrices, and singular values, as the text of loop programs.

Reflections bring a matrix to tridiagonal (bidiagonal) form, and rotations then bring it to diagonal form. The product
of the reflections is stored transposed, so that a rotation changes two rows that are contiguous in memory. The forms of
one matrix are in work arrays, `w` and others, and are written to the results at the end.

Sources: Golub, Van Loan: Matrix Computations, 8.3 and 8.6; Wilkinson, Reinsch: Handbook for Automatic Computation,
contributions II/2, II/3 and I/10.
"""

from __future__ import annotations

from .factorize import Lines, exchanged, lines, reflect_columns, reflect_rows, reflector, rotated

MOST_SWEEPS = 60
"""Most sweeps for one eigenvalue; after that there is no result. LAPACK takes 30."""


def tridiagonal(lower: bool) -> Lines:
    """w: n x n, Hermitian with both triangles, becomes d (real), e (real); the reflections' vectors are stored in the
    columns of `v` (n x n) as in LAPACK's sytrd for this triangle, and their factors in t. sums, p: n."""
    if lower:
        order, pivot, first, last, column = "step", "k + 1", "k + 1", "n", "k"
        inner, head, corner = ("k + 2", "n"), "n - 1", "(n - 1) * n + n - 1"
    else:
        order, pivot, first, last, column = "n - 2 - step", "k", "0", "k + 1", "k + 1"
        inner, head, corner = ("0", "k"), "0", "0"
    return lines(f"""
for step in range(n - 1):
    k = {order}
    for i in range({first}, {last}):
        v[i * n + {column}] = w[i * n + {column}]
    alpha = v[({pivot}) * n + {column}]
    REFLECTOR
    e[k] = beta
    t[k] = factor
    v[({pivot}) * n + {column}] = T(R(1))
    for j in range({first}, {last}):
        p[j] = T(R(0))
    for i in range({first}, {last}):
        item = factor * v[i * n + {column}]
        for j in range({first}, {last}):
            other = w[i * n + j]
            p[j] = p[j] + conj(other) * item
    dot = T(R(0))
    for i in range({first}, {last}):
        item = p[i]
        dot = reduce_add(dot, conj(item) * v[i * n + {column}])
    dot = (factor * dot) * R(-0.5)
    for i in range({first}, {last}):
        p[i] = p[i] + dot * v[i * n + {column}]
        item = v[i * n + {column}]
        other = p[i]
        sums[i] = conj(item)
        q[i] = conj(other)
    for i in range({first}, {last}):
        item = v[i * n + {column}]
        other = p[i]
        for j in range({first}, {last}):
            w[i * n + j] = w[i * n + j] - item * q[j] - other * sums[j]
    item = w[({column}) * n + {column}]
    d[{column}] = real(item)
if n > 0:
    item = w[{corner}]
    d[{head}] = real(item)
""", REFLECTOR=reflector(f"v[i * n + {column}]", "i", *inner))  # fmt: skip


def hermitian(lower: bool) -> Lines:
    """w = the matrix x; only one triangle of x is read."""
    return lines(f"""
for i in range(n):
    for j in range(i + 1):
        item = x[b * n * n + {"i * n + j" if lower else "j * n + i"}]
        CONJUGATED
        if i == j:
            item = T(real(item))
        w[i * n + j] = item
        w[j * n + i] = conj(item)
""", CONJUGATED=[] if lower else ["item = conj(item)"])


def reduced_to_tridiagonal(lower: bool) -> Lines:
    """sytrd: x, out: n x n, d, e, tau, info, of a batch; work arrays own_d, own_e, t, w, v, sums, p, q."""
    place, column, rows = ("(k + 1) * n + k", "k", "k + 2, n") if lower else ("k * n + k + 1", "k + 1", "k")
    return hermitian(lower) + tridiagonal(lower) + lines(f"""
for i in range(n * n):
    out[b * n * n + i] = x[b * n * n + i]
for i in range(n):
    d_out[b * n + i] = d[i]
    out[b * n * n + i * n + i] = T(d[i])
for i in range(n - 1):
    e_out[b * (n - 1) + i] = e[i]
    tau[b * (n - 1) + i] = t[i]
info[b] = int32(0)
for k in range(n - 1):
    out[b * n * n + {place}] = T(e[k])
    for i in range({rows}):
        out[b * n * n + i * n + {column}] = v[i * n + {column}]
""")


_PRODUCT = lines("""
for i in range(n):
    for j in range(n):
        w[i * n + j] = T(R(0))
    w[i * n + i] = T(R(1))
for step in range(n - 1):
    k = n - 2 - step
    factor = t[k]
    REFLECTED
for i in range(n):
    for j in range(i):
        item = w[i * n + j]
        w[i * n + j] = w[j * n + i]
        w[j * n + i] = item
""", REFLECTED=reflect_rows("w[", "n", "v[i * n + k]", "k + 1", "n", "k + 1", "factor"))  # fmt: skip
"""w = the transpose of the product of the reflections of `tridiagonal(lower=True)`."""


def symmetric_eigen(lower: bool, vectors: bool, info: bool) -> Lines:
    """syevd: x, out: n x n, values: n, perhaps info. Eigenvectors are the columns of `out`. Where rotations do not end,
    info is positive; without `info` the results are NaN then."""
    scaled = ["if bad > 0:", "    scale = R(0) / R(0)"]
    nan = ["if bad > 0:", "    for i in range(n * n):", "        w[i] = T(scale)"]
    return hermitian(lower) + _scaled() + tridiagonal(True) + (_PRODUCT if vectors else []) + lines(f"""
bad = 0
if n > 0:
    e[n - 1] = R(0)
for l in range(n):
    sweeps = 0
    while bad == 0:
        m = l
        while m < n - 1:
            if abs(e[m]) <= EPS * (abs(d[m]) + abs(d[m + 1])):
                break
            m = m + 1
        if m == l:
            break
        sweeps = sweeps + 1
        if sweeps > {MOST_SWEEPS}:
            bad = l + 1
            break
        g = (d[l + 1] - d[l]) / (R(2) * e[l])
        r = hypot(g, R(1))
        if g < R(0):
            r = -r
        g = d[m] - d[l] + e[l] / (g + r)
        s = R(1)
        c = R(1)
        less = R(0)
        i = m - 1
        while i >= l:
            f = s * e[i]
            h = c * e[i]
            r = hypot(f, g)
            e[i + 1] = r
            if r == R(0):
                d[i + 1] = d[i + 1] - less
                e[m] = R(0)
                break
            s = f / r
            c = g / r
            g = d[i + 1] - less
            r = (d[i] - g) * s + R(2) * c * h
            less = s * r
            d[i + 1] = g + less
            g = c * r - h
            ROTATE
            i = i - 1
        if i < l:
            d[l] = d[l] - less
            e[l] = g
            e[m] = R(0)
for i in range(n):
    k = i
    for j in range(i + 1, n):
        if d[j] < d[k]:
            k = j
    if k != i:
        least = d[k]
        d[k] = d[i]
        d[i] = least
        SWAP
SCALED
for i in range(n):
    values[b * n + i] = d[i] * scale
NAN
OUT
INFO
""", ROTATE=rotated("j", "n", "w[(i + 1) * n + j]", "w[i * n + j]") if vectors else [],
        SWAP=exchanged("j", "n", "w[i * n + j]", "w[k * n + j]") if vectors else [],
        SCALED=[] if info else scaled, NAN=[] if info or not vectors else nan, INFO=["info[b] = int32(bad)"] * info,
        OUT=_VECTORS if vectors else ["for i in range(n * n):", "    out[b * n * n + i] = T(R(0))"])  # fmt: skip


_VECTORS = lines("""
for i in range(n):
    for j in range(n):
        out[b * n * n + i * n + j] = w[j * n + i]
""")


def _scaled(count: str = "n * n") -> Lines:
    """w / scale, so that no square of an element is too large or too small."""
    return lines(f"""
largest = R(0)
for i in range({count}):
    item = w[i]
    largest = maximum(largest, abs1(item))
scale = R(1)
if largest > LARGE or (largest < SMALL and largest > R(0)):
    scale = largest
    for i in range({count}):
        w[i] = w[i] / scale
""")


def singular_values(vectors: bool, adjoint: bool) -> Lines:
    """gesdd of a matrix with m rows and n <= m columns; `adjoint`: of the adjoint of x, which has n rows.

    s: n of the batch. Work: w (m x n), du (columns of U, as rows: `columns` x m), dv (columns of V, conjugated: n x n),
    d, e, t, r: n, sums: m.
    """
    source = "x[b * m * n + j * m + i]" if adjoint else "x[b * m * n + i * n + j]"
    blocks = {
        "TURN_U": rotated("j", "m", "du[l * m + j]", "du[i * m + j]"),
        "TURN_V": rotated("j", "n", "dv[l * n + j]", "dv[i * n + j]"),
        "FLIP": ["for j in range(n):", "    dv[k * n + j] = -dv[k * n + j]"],
        "SWAP_U": exchanged("j", "m", "du[i * m + j]", "du[k * m + j]"),
        "SWAP_V": exchanged("j", "n", "dv[i * n + j]", "dv[k * n + j]"),
    }
    return lines(f"""
for i in range(m):
    for j in range(n):
        item = {source}
        w[i * n + j] = {"conj(item)" if adjoint else "item"}
""") + _scaled("m * n") + _bidiagonal() + (_products() if vectors else []) + lines(f"""
bad = 0
limit = R(0)
for i in range(n):
    limit = maximum(limit, abs(d[i]) + abs(e[i]))
limit = limit * EPS
if not limit == limit:
    bad = 1
for step in range(n):
    k = n - 1 - step
    sweeps = 0
    while bad == 0:
        first = k
        split = False
        while first > 0:
            if abs(e[first]) <= limit:
                break
            if abs(d[first - 1]) <= limit:
                split = True
                break
            first = first - 1
        if split:
            l = first - 1
            c = R(0)
            s = R(1)
            for i in range(first, k + 1):
                f = s * e[i]
                e[i] = c * e[i]
                if abs(f) <= limit:
                    break
                g = d[i]
                h = hypot(f, g)
                d[i] = h
                c = g / h
                s = -f / h
                TURN_U
        if first == k:
            if d[k] < R(0):
                d[k] = -d[k]
                FLIP
            break
        sweeps = sweeps + 1
        if sweeps > {MOST_SWEEPS}:
            bad = k + 1
            break
        x0 = d[first]
        y = d[k - 1]
        g = e[k - 1]
        h = e[k]
        z = d[k]
        f = ((y - z) * (y + z) + (g - h) * (g + h)) / (R(2) * h * y)
        g = hypot(f, R(1))
        if f < R(0):
            g = -g
        f = ((x0 - z) * (x0 + z) + h * (y / (f + g) - h)) / x0
        c = R(1)
        s = R(1)
        for l in range(first, k):
            i = l + 1
            g = e[i]
            y = d[i]
            h = s * g
            g = c * g
            z = hypot(f, h)
            e[l] = z
            c = f / z
            s = h / z
            f = x0 * c + g * s
            g = g * c - x0 * s
            h = y * s
            y = y * c
            TURN_V
            z = hypot(f, h)
            d[l] = z
            if z != R(0):
                c = f / z
                s = h / z
            f = c * g + s * y
            x0 = c * y - s * g
            TURN_U
        e[first] = R(0)
        e[k] = f
        d[k] = x0
for i in range(n):
    k = i
    for j in range(i + 1, n):
        if d[j] > d[k]:
            k = j
    if k != i:
        most = d[k]
        d[k] = d[i]
        d[i] = most
        SWAP_U
        SWAP_V
if bad > 0:
    scale = R(0) / R(0)
for i in range(n):
    values[b * n + i] = d[i] * scale
info[b] = int32(bad)
""", **(blocks if vectors else dict.fromkeys(blocks, ())))


def singular_vectors(adjoint: bool) -> Lines:
    """u and vt of the batch from du and dv. Of the adjoint matrix they are exchanged."""
    if adjoint:
        return lines("""
for i in range(n):
    for j in range(n):
        item = dv[j * n + i]
        u[b * n * n + i * n + j] = conj(item)
for j in range(columns):
    for i in range(m):
        item = du[j * m + i]
        vt[b * columns * m + j * m + i] = conj(item)
""")
    return lines("""
for i in range(m):
    for j in range(columns):
        u[b * columns * m + i * columns + j] = du[j * m + i]
for i in range(n * n):
    vt[b * n * n + i] = dv[i]
""")


def _bidiagonal() -> Lines:
    """d, and e before it, of w = Q B P^H; vectors below the diagonal and right of it, factors t and r."""
    return lines("""
for k in range(n):
    if k == 0:
        e[k] = R(0)
    alpha = w[k * n + k]
    LEFT
    d[k] = beta
    t[k] = factor
    w[k * n + k] = T(R(1))
    factor = conj(factor)
    TO_ROWS
    if k < n - 1:
        for j in range(k + 1, n):
            item = w[k * n + j]
            w[k * n + j] = conj(item)
        alpha = w[k * n + k + 1]
        RIGHT
        e[k + 1] = beta
        r[k] = factor
        w[k * n + k + 1] = T(R(1))
        TO_COLUMNS
""", LEFT=reflector("w[i * n + k]", "i", "k + 1", "m"), RIGHT=reflector("w[k * n + j]", "j", "k + 2", "n"),
        TO_ROWS=reflect_rows("w[", "n", "w[i * n + k]", "k", "m", "k + 1", "factor"),
        TO_COLUMNS=reflect_columns("w[", "n", "w[k * n + j]", "k + 1", "n", "k + 1, m", "factor"))  # fmt: skip


def _products() -> Lines:
    """du = Q^T, only its first `columns` rows, and dv = P^H."""
    return lines("""
for i in range(m * columns):
    du[i] = T(R(0))
for i in range(columns):
    du[i * m + i] = T(R(1))
for step in range(n):
    k = n - 1 - step
    for j in range(columns):
        dot = T(R(0))
        for i in range(k, m):
            item = w[i * n + k]
            dot = reduce_add(dot, conj(item) * du[j * m + i])
        dot = dot * t[k]
        for i in range(k, m):
            du[j * m + i] = du[j * m + i] - dot * w[i * n + k]
for i in range(n * n):
    dv[i] = T(R(0))
for i in range(n):
    dv[i * n + i] = T(R(1))
for step in range(n - 1):
    k = n - 2 - step
    factor = r[k]
    factor = conj(factor)
    REFLECTED
""", REFLECTED=reflect_columns("dv[", "n", "w[k * n + j]", "k + 1", "n", "k + 1, n", "factor"))
