"""Factorisations, reflections and triangular solves of matrices of any size, as the text of loop programs.

Algorithms are LAPACK's unblocked ones. Matrices are row-major, and the innermost loops go along rows, so that LLVM and
C compilers make vectors of them. The names in a text are those of the kernel's pointers and sizes; `b` is the number of
the matrix in its batch. See `texts.py` for `T`, `R`, `abs1`, `sq`, `hypot`.
"""

from __future__ import annotations

from ..emit.texts import indented

Lines = list[str]


def lines(text: str) -> Lines:
    """The lines of a text without its first line break."""
    return text.strip("\n").splitlines()


def reflector(element: str, variable: str, first: str, last: str, tau: str) -> Lines:
    """larfg: of the vector of `alpha` and ``element`` for `variable` from `first` to `last`, a reflection
    H = I - tau v v^H with H^H (alpha, x) = (beta, 0): `beta`, and in place of x the vector v after its 1."""
    return lines(f"""
largest = R(0)
for {variable} in range({first}, {last}):
    item = {element}
    largest = maximum(largest, abs1(item))
beta = real(alpha)
{tau} = T(R(0))
if not (largest == R(0) and imag(alpha) == R(0)):
    largest = maximum(largest, abs1(alpha))
    item = alpha / largest
    total = sq(item)
    for {variable} in range({first}, {last}):
        item = {element} / largest
        total = total + sq(item)
    beta = largest * sqrt(total)
    if real(alpha) >= R(0):
        beta = -beta
    {tau} = (T(beta) - alpha) / beta
    divisor = alpha - T(beta)
    for {variable} in range({first}, {last}):
        {element} = {element} / divisor
""")


def reflect_rows(matrix: str, width: str, vector: str, first: str, last: str, start: str, tau: str) -> Lines:
    """The rows `first` to `last` of a matrix, from column `start` on, become (I - tau v v^H) times themselves.
    `vector`: element i of v. `sums` is a work array."""
    return lines(f"""
for j in range({start}, {width}):
    sums[j] = T(R(0))
for i in range({first}, {last}):
    item = {vector}
    item = conj(item)
    for j in range({start}, {width}):
        sums[j] = sums[j] + item * {matrix}[i * {width} + j]
for i in range({first}, {last}):
    item = {tau} * {vector}
    for j in range({start}, {width}):
        {matrix}[i * {width} + j] = {matrix}[i * {width} + j] - item * sums[j]
""")


def reflect_columns(matrix: str, width: str, vector: str, first: str, last: str, rows: str, tau: str) -> Lines:
    """The columns `first` to `last` of the first `rows` rows become themselves times (I - tau v v^H). `vector`: element
    j of v."""
    return lines(f"""
for i in range({rows}):
    dot = T(R(0))
    for j in range({first}, {last}):
        dot = reduce_add(dot, {matrix}[i * {width} + j] * {vector})
    dot = dot * {tau}
    for j in range({first}, {last}):
        item = {vector}
        {matrix}[i * {width} + j] = {matrix}[i * {width} + j] - dot * conj(item)
""")


COPIED = lines("""
for i in range(m * n):
    out[b * m * n + i] = x[b * m * n + i]
""")


def cholesky(lower: bool, how: str) -> Lines:
    """x, out, info, w: n x n. In w the factor is above the diagonal. `how`: "op": the other triangle of the result is
    zero, and a result without a factor NaN; "potrf": the other triangle is as it was, and info the first pivot that is
    not positive."""
    source = "x[b * n * n + j * n + i]" if lower else "x[b * n * n + i * n + j]"
    read = lines(f"""
bad = 0
for i in range(n):
    for j in range(i, n):
        item = {source}
        w[i * n + j] = {"conj(item)" if lower else "item"}
for k in range(n):
    item = w[k * n + k]
    pivot = real(item)
    if bad == 0 and not pivot > R(0):
        bad = k + 1
    root = sqrt(pivot)
    w[k * n + k] = T(root)
    for j in range(k + 1, n):
        w[k * n + j] = w[k * n + j] / root
    for i in range(k + 1, n):
        item = w[k * n + i]
        factor = conj(item)
        for j in range(i, n):
            w[i * n + j] = w[i * n + j] - factor * w[k * n + j]
""")
    target = "out[b * n * n + j * n + i]" if lower else "out[b * n * n + i * n + j]"
    other = "out[b * n * n + i * n + j]" if lower else "out[b * n * n + j * n + i]"
    if how == "potrf":
        kept = other.replace("out[", "x[")
        return read + lines(f"""
for i in range(n):
    for j in range(i, n):
        {other} = {kept}
    for j in range(i, n):
        item = w[i * n + j]
        {target} = {"conj(item)" if lower else "item"}
info[b] = int32(bad)
""")
    return read + lines(f"""
if bad > 0:
    for i in range(n * n):
        out[b * n * n + i] = T(R(0) / R(0))
else:
    for i in range(n):
        for j in range(i, n):
            {other} = T(R(0))
        for j in range(i, n):
            item = w[i * n + j]
            {target} = {"conj(item)" if lower else "item"}
""")


def triangular_solve(left: bool, lower: bool, trans: str, unit: bool) -> Lines:
    """op(x) out = y or out op(x) = y; out is m x n, x is square. `trans`: N, T or C."""
    size = "m" if left else "n"
    place = f"x[b * {size} * {size} + {{}} * {size} + {{}}]"

    def op(i: str, j: str) -> Lines:
        """item = op(x)[i, j]"""
        found = [f"item = {place.format(*((i, j) if trans == 'N' else (j, i)))}"]
        return [*found, "item = conj(item)"] if trans == "C" else found

    forwards = (lower == (trans == "N")) == left
    text = [*COPIED_Y, f"for step in range({size}):", f"    k = {'step' if forwards else f'{size} - 1 - step'}"]
    first, last = ("k + 1", size) if forwards else ("0", "k")
    if left:
        if not unit:
            text += indented([*op("k", "k"), *lines("""
for j in range(n):
    out[b * m * n + k * n + j] = out[b * m * n + k * n + j] / item
""")])
        text += indented([f"for i in range({first}, {last}):", *indented([*op("i", "k"), *lines("""
for j in range(n):
    out[b * m * n + i * n + j] = out[b * m * n + i * n + j] - item * out[b * m * n + k * n + j]
""")])])
        return text
    if not unit:
        text += indented([*op("k", "k"), *lines("""
for i in range(m):
    out[b * m * n + i * n + k] = out[b * m * n + i * n + k] / item
""")])
    text += indented(lines("""
for i in range(m):
    factor = out[b * m * n + i * n + k]
""") + indented([f"for j in range({first}, {last}):", *indented([*op("k", "j"), *lines("""
out[b * m * n + i * n + j] = out[b * m * n + i * n + j] - factor * item
""")])]))
    return text


COPIED_Y = [line.replace("x[", "y[") for line in COPIED]


def lu(with_order: bool) -> Lines:
    """x, out: m x n, pivots, then info; or `with_order` pivots counted from 0, then order: the permutation."""
    first = 0 if with_order else 1
    text = COPIED + lines("""
steps = minimum(m, n)
base = b * m * n
bad = 0
for k in range(steps):
    item = out[base + k * n + k]
    best = abs1(item)
    chosen = k
    for i in range(k + 1, m):
        item = out[base + i * n + k]
        size = abs1(item)
        if size > best:
            best = size
            chosen = i
    pivots[b * steps + k] = int32(chosen + FIRST)
    if chosen != k:
        for j in range(n):
            item = out[base + k * n + j]
            out[base + k * n + j] = out[base + chosen * n + j]
            out[base + chosen * n + j] = item
    if best == R(0):
        if bad == 0:
            bad = k + 1
    else:
        pivot = out[base + k * n + k]
        for i in range(k + 1, m):
            factor = out[base + i * n + k] / pivot
            out[base + i * n + k] = factor
            for j in range(k + 1, n):
                out[base + i * n + j] = out[base + i * n + j] - factor * out[base + k * n + j]
""")
    text = [line.replace("FIRST", str(first)) for line in text]
    if not with_order:
        return [*text, "info[b] = int32(bad)"]
    return text + lines("""
for i in range(m):
    order[b * m + i] = int32(i)
for k in range(steps):
    chosen = int64(pivots[b * steps + k])
    kept = order[b * m + k]
    order[b * m + k] = order[b * m + chosen]
    order[b * m + chosen] = kept
""")


def qr() -> Lines:
    """x, out: m x n, tau, sums: n."""
    own = lines("""
alpha = out[b * m * n + k * n + k]
""") + reflector("out[b * m * n + i * n + k]", "i", "k + 1", "m", "factor")
    own += lines("""
out[b * m * n + k * n + k] = T(R(1))
turned = conj(factor)
""")
    own += _based(reflect_rows("out", "n", "out[i * n + k]", "k", "m", "k + 1", "turned"))
    own += lines("""
out[b * m * n + k * n + k] = T(beta)
tau[b * steps + k] = factor
""")
    return [*COPIED, "steps = minimum(m, n)", "for k in range(steps):", *indented(own)]


def _based(text: Lines) -> Lines:
    """The same in matrix `b` of the batch."""
    return [line.replace("out[", "out[b * m * n + ") for line in text]


def qr_with_pivots() -> Lines:
    """geqp3: x, chosen_first: n, out: m x n, pivots: n, tau; sums, norms, first_norms: n."""
    swap = lines("""
for i in range(m):
    item = out[b * m * n + i * n + place]
    out[b * m * n + i * n + place] = out[b * m * n + i * n + k]
    out[b * m * n + i * n + k] = item
kept = pivots[b * n + place]
pivots[b * n + place] = pivots[b * n + k]
pivots[b * n + k] = kept
""")
    norm = lines("""
largest = R(0)
for i in range(START, m):
    item = out[b * m * n + i * n + j]
    largest = maximum(largest, abs1(item))
total = R(0)
if largest > R(0):
    for i in range(START, m):
        item = out[b * m * n + i * n + j] / largest
        total = total + sq(item)
norms[j] = largest * sqrt(total)
first_norms[j] = norms[j]
""")
    step = lines("""
alpha = out[b * m * n + k * n + k]
""") + reflector("out[b * m * n + i * n + k]", "i", "k + 1", "m", "factor") + lines("""
out[b * m * n + k * n + k] = T(R(1))
turned = conj(factor)
""") + _based(reflect_rows("out", "n", "out[i * n + k]", "k", "m", "k + 1", "turned")) + lines("""
out[b * m * n + k * n + k] = T(beta)
tau[b * steps + k] = factor
""")
    renew = lines("""
for j in range(k + 1, n):
    if norms[j] != R(0):
        item = out[b * m * n + k * n + j]
        ratio = abs(item) / norms[j]
        ratio = maximum(R(0), (R(1) + ratio) * (R(1) - ratio))
        quotient = norms[j] / first_norms[j]
        if ratio * quotient * quotient <= sqrt(EPS):
""") + indented([line.replace("START", "k + 1") for line in norm], 3) + lines("""
        else:
            norms[j] = norms[j] * sqrt(ratio)
""")
    choose = lines("""
if k >= fixed:
    place = k
    for j in range(k + 1, n):
        if norms[j] > norms[place]:
            place = j
    if place != k:
""") + indented(swap, 2) + lines("""
        norms[place] = norms[k]
        first_norms[place] = first_norms[k]
""")
    return COPIED + lines("""
steps = minimum(m, n)
fixed = 0
for j in range(n):
    pivots[b * n + j] = int32(j + 1)
for j in range(n):
    if chosen_first[b * n + j] != 0:
        k = fixed
        place = j
        if place != k:
""") + indented(swap, 3) + ["        fixed = fixed + 1", "for j in range(n):"] + indented(
        [line.replace("START", "0") for line in norm]
    ) + ["for k in range(steps):", *indented([
        "if k == fixed and k > 0:", "    for j in range(k, n):",
        *indented([line.replace("START", "k") for line in norm], 2), *choose, *step, *renew,
    ])]  # fmt: skip


def reflections() -> Lines:
    """orgqr: x: m x n, tau: p, out: m x n; sums: n."""
    own = lines("""
k = p - 1 - step
factor = tau[b * p + k]
for j in range(n):
    sums[j] = T(R(0))
for i in range(k, m):
    item = T(R(1))
    if i > k:
        item = x[b * m * n + i * n + k]
    item = conj(item)
    for j in range(n):
        sums[j] = sums[j] + item * out[b * m * n + i * n + j]
for i in range(k, m):
    item = T(R(1))
    if i > k:
        item = x[b * m * n + i * n + k]
    item = item * factor
    for j in range(n):
        out[b * m * n + i * n + j] = out[b * m * n + i * n + j] - item * sums[j]
""")
    return lines("""
for i in range(m):
    for j in range(n):
        out[b * m * n + i * n + j] = T(R(0))
for i in range(n):
    out[b * m * n + i * n + i] = T(R(1))
for step in range(p):
""") + indented(own)


def times_reflections(left: bool, adjoint: bool) -> Lines:
    """ormqr: x: rows x columns with reflections, tau: p, y and out: m x n; v: rows, sums: n."""
    ascending = left == adjoint
    text = [*COPIED_Y, "for step in range(p):", f"    k = {'step' if ascending else 'p - 1 - step'}"]
    own = lines(f"""
factor = tau[b * p + k]
{"factor = conj(factor)" if adjoint else ""}
v[k] = T(R(1))
for i in range(k + 1, rows):
    v[i] = x[b * rows * columns + i * columns + k]
""")
    own = [line for line in own if line]
    if left:
        own += _based(reflect_rows("out", "n", "v[i]", "k", "m", "0", "factor"))
    else:
        own += _based(reflect_columns("out", "n", "v[j]", "k", "n", "m", "factor"))
    return text + indented(own)


def tridiagonal_solve() -> Lines:
    """gtsv: dl, d, du: n, y: n x m; the same as results, and info. Rows are exchanged as LAPACK does. A system with a
    pivot of zero is left where it is."""
    return lines("""
for i in range(n):
    new_dl[b * n + i] = dl[b * n + i]
    new_d[b * n + i] = d[b * n + i]
    new_du[b * n + i] = du[b * n + i]
for i in range(n * m):
    out[b * n * m + i] = y[b * n * m + i]
bad = 0
for k in range(n - 1):
    if bad == 0:
        lower = new_dl[b * n + k + 1]
        pivot = new_d[b * n + k]
        if abs1(lower) == R(0):
            if abs1(pivot) == R(0):
                bad = k + 1
        elif abs1(pivot) >= abs1(lower):
            factor = lower / pivot
            new_d[b * n + k + 1] = new_d[b * n + k + 1] - factor * new_du[b * n + k]
            for j in range(m):
                place = b * n * m + (k + 1) * m + j
                out[place] = out[place] - factor * out[place - m]
            new_dl[b * n + k + 1] = T(R(0))
        else:
            factor = pivot / lower
            new_d[b * n + k] = lower
            item = new_d[b * n + k + 1]
            new_d[b * n + k + 1] = new_du[b * n + k] - factor * item
            if k < n - 2:
                new_dl[b * n + k + 1] = new_du[b * n + k + 1]
                new_du[b * n + k + 1] = -(factor * new_dl[b * n + k + 1])
            else:
                new_dl[b * n + k + 1] = T(R(0))
            new_du[b * n + k] = item
            for j in range(m):
                place = b * n * m + (k + 1) * m + j
                item = out[place - m]
                out[place - m] = out[place]
                out[place] = item - factor * out[place]
if n > 0 and bad == 0:
    pivot = new_d[b * n + n - 1]
    if abs1(pivot) == R(0):
        bad = n
if bad == 0:
    for step in range(n):
        k = n - 1 - step
        for j in range(m):
            place = b * n * m + k * m + j
            item = out[place]
            if k < n - 1:
                item = item - new_du[b * n + k] * out[place + m]
            if k < n - 2:
                item = item - new_dl[b * n + k + 1] * out[place + 2 * m]
            out[place] = item / new_d[b * n + k]
info[b] = int32(bad)
""")
