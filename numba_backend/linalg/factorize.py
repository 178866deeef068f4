"""Factorisations and reflections of a matrix, as texts. Algorithms are LAPACK's unblocked ones.

A quotient is a quotient, not a product with a reciprocal. A pivot is the first element of the largest size; NaN is only
chosen where it is the first one. Norms are of vectors divided by their largest element, so that no square is too large
or too small.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..emit.texts import indented

Lines = list[str]


def lines(text: str, **blocks: Sequence[str]) -> Lines:
    """The lines of a text without its first line break. A line that is the name of one of the `blocks` is replaced by
    its lines, as far to the right."""
    found: Lines = []
    for line in text.strip("\n").splitlines():
        name = line.strip()
        space = line[: len(line) - len(name)]
        found += [space + inner for inner in blocks[name]] if name in blocks else [line]
    return found


def cholesky(with_info: bool) -> Lines:
    """w: n x n becomes U with U^H U = w. It is Hermitian, and only its upper triangle is read.

    The other triangle is zero then, and where a pivot is not positive, the whole result is NaN. `with_info`: as potrf,
    the other triangle stays, and info[0] says which pivot was the first one not positive (or 0).
    """
    fails = "pivot <= R(0)" if with_info else "not pivot > R(0)"
    text = lines(f"""
bad = 0
for k in range(n):
    pivot = real(w[k, k])
    if bad == 0 and {fails}:
        bad = k + 1
    root = sqrt(pivot)
    for j in range(k + 1, n):
        w[k, j] = w[k, j] / root
    w[k, k] = T(root)
    for i in range(k + 1, n):
        for j in range(i, n):
            w[i, j] = w[i, j] - conj(w[k, i]) * w[k, j]
""")
    return text + lines("info[0] = bad" if with_info else """
for i in range(n):
    for j in range(n):
        w[i, j] = select(bad > 0, T(R(0) / R(0)), select(j < i, T(R(0)), w[i, j]))
""")


def exchanged(variable: str, span: str, first: str, second: str) -> Lines:
    """Two elements change places, for a variable in a range."""
    return lines(f"""
for {variable} in range({span}):
    kept = {first}
    {first} = {second}
    {second} = kept
""")


def eliminated(keeps: bool, beside: bool = False, each: Sequence[str] = (), exchange: Sequence[str] = ()) -> Lines:
    """Gaussian elimination with partial pivoting of w: m x n. `keeps`: the factors stay below the diagonal; else the
    elements below the diagonal are arbitrary. `beside`: v, m x r, goes with it. Lines for each step, where `chosen` is
    the pivot's row and `pivot` the pivot; and for rows k and i when they change places."""
    return lines("""
for k in range(minimum(m, n)):
    best = abs1(w[k, k])
    chosen = k
    for i in range(k + 1, m):
        size = abs1(w[i, k])
        if size > best:
            best = size
            chosen = i
    for i in range(maximum(k + 1, chosen), minimum(m, chosen + 1)):
        EXCHANGE
        ROWS
        ROWS_BESIDE
    pivot = w[k, k]
    EACH
    divisor = select(abs1(pivot) == R(0), T(R(1)), pivot)
    for i in range(k + 1, m):
        factor = w[i, k] / divisor
        for j in range(k + 1, n):
            w[i, j] = w[i, j] - factor * w[k, j]
        KEPT
        BESIDE
""", EXCHANGE=exchange, EACH=each, ROWS=exchanged("j", "n" if keeps else "k, n", "w[k, j]", "w[i, j]"),
        ROWS_BESIDE=exchanged("j", "r", "v[k, j]", "v[i, j]") if beside else [],
        KEPT=["w[i, k] = factor"] if keeps else [],
        BESIDE=["for j in range(r):", "    v[i, j] = v[i, j] - factor * v[k, j]"] if beside else [])  # fmt: skip


def lu(with_order: bool) -> Lines:
    """w: m x n. P L U as getrf: L and U in place of w, `pivots` the rows that were exchanged, counted from 1, and
    info[0] the first pivot that is zero, or 0. `with_order`: as LuDecomposition, they are counted from 0, and `order`
    gives the original place of each row."""
    if not with_order:
        each = ["pivots[k] = chosen + 1", "if bad == 0 and abs1(pivot) == R(0):", "    bad = k + 1"]
        return ["bad = 0", *eliminated(True, each=each), "info[0] = bad"]
    swap = ["place = order[k]", "order[k] = order[i]", "order[i] = place"]
    start = ["for i in range(m):", "    order[i] = i"]
    return start + eliminated(True, each=["pivots[k] = chosen"], exchange=swap)


def determinant() -> Lines:
    """w: n x n, value[0]: the product of the pivots, and -1 for each exchange of rows."""
    return lines("""
sign = R(1)
ELIMINATED
total = T(sign)
for k in range(n):
    total = total * w[k, k]
value[0] = total
""", ELIMINATED=eliminated(False, exchange=["sign = -sign"]))


def reflector(element: str, variable: str, first: str, last: str) -> Lines:
    """larfg: a reflection H = I - factor v v^H with H^H (alpha, x) = (beta, 0), for the vector of `alpha` and x, which
    is ``element`` for `variable` from `first` to `last`. It assigns `beta`, and stores v without its leading 1 in place
    of x. The names that it uses begin with "v_", so that they do not collide with names of the surrounding text."""
    return lines(f"""
v_largest = R(0)
for {variable} in range({first}, {last}):
    v_largest = maximum(v_largest, abs1({element}))
v_nothing = v_largest == R(0) and imag(alpha) == R(0)
v_scale = select(v_nothing, R(1), maximum(v_largest, abs1(alpha)))
v_total = sq(alpha / v_scale)
for {variable} in range({first}, {last}):
    v_total = v_total + sq({element} / v_scale)
v_norm = v_scale * sqrt(v_total)
beta = select(real(alpha) < R(0), v_norm, -v_norm)
factor = select(v_nothing, T(R(0)), (T(beta) - alpha) / beta)
v_divisor = select(v_nothing, T(R(1)), alpha - T(beta))
beta = select(v_nothing, real(alpha), beta)
for {variable} in range({first}, {last}):
    {element} = {element} / v_divisor
""")


def reflected(factor: str, vectors: str = "w", first: str = "k + 1") -> Lines:
    """The columns of w from `first` on become (I - factor v v^H) times themselves: v is 0 above row k, 1 in row k, and
    below it has the elements of column k of `vectors`."""
    return lines(f"""
for j in range({first}, n):
    dot = w[k, j]
    for i in range(k + 1, m):
        dot = dot + conj({vectors}[i, k]) * w[i, j]
    dot = dot * {factor}
    w[k, j] = w[k, j] - dot
    for i in range(k + 1, m):
        w[i, j] = w[i, j] - {vectors}[i, k] * dot
""")


def reflect_rows(matrix: str, width: str, vector: str, first: str, last: str, start: str, tau: str) -> Lines:
    """The rows `first` to `last` of a matrix, from column `start` on, become (I - tau v v^H) times themselves.
    `matrix`: how its elements begin: ``h[``. `vector`: element i of v. `sums` is a work array."""
    return lines(f"""
for j in range({start}, {width}):
    sums[j] = T(R(0))
for i in range({first}, {last}):
    item = {vector}
    item = conj(item)
    for j in range({start}, {width}):
        sums[j] = sums[j] + item * {matrix}i * {width} + j]
for i in range({first}, {last}):
    item = {tau} * {vector}
    for j in range({start}, {width}):
        {matrix}i * {width} + j] = {matrix}i * {width} + j] - item * sums[j]
""")


def reflect_columns(matrix: str, width: str, vector: str, first: str, last: str, rows: str, tau: str) -> Lines:
    """The columns `first` to `last` of a range of rows become themselves times (I - tau v v^H). `vector`: element
    j of v."""
    return lines(f"""
for i in range({rows}):
    dot = T(R(0))
    for j in range({first}, {last}):
        dot = reduce_add(dot, {matrix}i * {width} + j] * {vector})
    dot = dot * {tau}
    for j in range({first}, {last}):
        item = {vector}
        {matrix}i * {width} + j] = {matrix}i * {width} + j] - dot * conj(item)
""")


def rotated(
    variable: str, span: str, first: str, second: str, c: str = "c", s: str = "s", other_c: str = "c",
    other_s: str = "s", kept: str = "item", other: str = "other",
) -> Lines:  # fmt: skip
    """For a variable in a range: first = c first + s second, second = other_c second - other_s first."""
    return lines(f"""
for {variable} in range({span}):
    {kept} = {first}
    {other} = {second}
    {first} = {c} * {kept} + {s} * {other}
    {second} = {other_c} * {other} - {other_s} * {kept}
""")


def qr() -> Lines:
    """w: m x n. Q R as geqrf: R, and below it the reflections' vectors; their factors in `tau`."""
    return ["for k in range(minimum(m, n)):", *indented(_QR_STEP)]


_QR_STEP = [
    "alpha = w[k, k]", *reflector("w[i, k]", "i", "k + 1", "m"), *reflected("conj(factor)"),
    "w[k, k] = T(beta)", "tau[k] = factor",
]  # fmt: skip


def _norm(start: str) -> Lines:
    """The norm of column c from row `start` on."""
    return lines(f"""
largest = R(0)
for i in range({start}, m):
    largest = maximum(largest, abs1(w[i, c]))
total = R(0)
if largest > R(0):
    for i in range({start}, m):
        total = total + sq(w[i, c] / largest)
norms[c] = largest * sqrt(total)
first_norms[c] = norms[c]
""")


def qr_with_pivots() -> Lines:
    """geqp3: w: m x n, chosen_first, pivots: n, tau; work arrays norms, first_norms: n."""
    exchange = exchanged("i", "m", "w[i, place]", "w[i, k]")
    exchange += ["number = pivots[place]", "pivots[place] = pivots[k]", "pivots[k] = number"]
    return lines("""
fixed = 0
for c in range(n):
    pivots[c] = int32(c + 1)
for c in range(n):
    if chosen_first[c] != 0:
        k = fixed
        place = c
        if place != k:
            EXCHANGE
        fixed = fixed + 1
for c in range(n):
    NORM
for k in range(minimum(m, n)):
    if k == fixed and k > 0:
        for c in range(k, n):
            NORM_FROM_K
    if k >= fixed:
        place = k
        for c in range(k + 1, n):
            if norms[c] > norms[place]:
                place = c
        if place != k:
            EXCHANGE
            norms[place] = norms[k]
            first_norms[place] = first_norms[k]
    QR_STEP
    for c in range(k + 1, n):
        if norms[c] != R(0):
            ratio = abs(w[k, c]) / norms[c]
            ratio = maximum(R(0), (R(1) + ratio) * (R(1) - ratio))
            quotient = norms[c] / first_norms[c]
            if ratio * quotient * quotient <= sqrt(EPS):
                NORM_AFTER_K
            else:
                norms[c] = norms[c] * sqrt(ratio)
""", EXCHANGE=exchange, QR_STEP=_QR_STEP, NORM=_norm("0"), NORM_FROM_K=_norm("k"), NORM_AFTER_K=_norm("k + 1"))


def reflections() -> Lines:
    """w: m x n, tau: p. The first columns of a product of reflections, in place, as org2r: a column holds a reflection
    until it is computed."""
    return lines("""
for c in range(p, n):
    for i in range(m):
        w[i, c] = select(i == c, T(R(1)), T(R(0)))
for step in range(p):
    k = p - 1 - step
    factor = tau[k]
    REFLECTED
    for i in range(k + 1, m):
        w[i, k] = -(factor * w[i, k])
    for i in range(k):
        w[i, k] = T(R(0))
    w[k, k] = T(R(1)) - factor
""", REFLECTED=reflected("factor"))


def times_reflections(left: bool, adjoint: bool) -> Lines:
    """ormqr: w: m x n becomes Q w or w Q, or with the adjoint of Q; q: p reflections in columns, tau: p. v: n is a work
    array."""
    text = ["for step in range(p):", f"    k = {'step' if left == adjoint else 'p - 1 - step'}"]
    text.append(f"    factor = {'conj(tau[k])' if adjoint else 'tau[k]'}")
    return text + indented(reflected("factor", "q", "0") if left else lines("""
v[k] = T(R(1))
for c in range(k + 1, n):
    v[c] = q[c, k]
for i in range(m):
    total = T(R(0))
    for c in range(k, n):
        total = reduce_add(total, w[i, c] * v[c])
    total = total * factor
    for c in range(k, n):
        w[i, c] = w[i, c] - total * conj(v[c])
"""))
