"""Eigenvalues of any square matrix as the text of loop programs: Hessenberg form, Schur form, eigenvectors.

`h` is the matrix, row by row. `z` has the columns of the unitary matrix as its rows, so that rotations of two columns
are of neighbours in memory.

Sources: Wilkinson, Reinsch: Handbook for Automatic Computation, contributions II/14 and II/15; Golub, Van Loan: Matrix
Computations, 7.4 to 7.6; the standard form of a real 2 x 2 block is LAPACK's (lanv2).
"""

from __future__ import annotations

from .factorize import Lines, lines, reflect_columns, reflect_rows, reflector, rotated

_MOST_TURNS = 60


def _hessenberg(first: str, last: str, start: str = "") -> Lines:
    """h = Q^H h Q with zeros below the first subdiagonal, in rows and columns `first` to `last`: they are the
    reflections' vectors after their 1; factors in t. v, sums: n. `start`: of the matrix in h."""
    return lines(f"""
for k in range({first}, {last} - 1):
    alpha = h[{start}(k + 1) * n + k]
    REFLECTOR
    t[k] = factor
    for i in range(k + 2, {last}):
        v[i] = h[{start}i * n + k]
    v[k + 1] = T(R(1))
    turned = conj(factor)
    h[{start}(k + 1) * n + k] = T(beta)
    FROM_RIGHT
    FROM_LEFT
""", REFLECTOR=reflector(f"h[{start}i * n + k]", "i", "k + 2", last),
        FROM_RIGHT=reflect_columns(f"h[{start}", "n", "v[j]", "k + 1", last, last, "factor"),
        FROM_LEFT=reflect_rows(f"h[{start}", "n", "v[i]", "k + 1", last, "k + 1", "turned"))  # fmt: skip


def reduced_to_hessenberg() -> Lines:
    """gehrd: x, h: n x n of a batch, tau, info; sizes first and last; t, v, sums: n."""
    return lines("""
for i in range(n * n):
    h[b * n * n + i] = x[b * n * n + i]
for i in range(n - 1):
    t[i] = T(R(0))
HESSENBERG
for i in range(n - 1):
    tau[b * (n - 1) + i] = t[i]
info[b] = int32(0)
""", HESSENBERG=_hessenberg("first", "last", "b * n * n + "))


_TO_HESSENBERG = lines("""
HESSENBERG
for i in range(n * n):
    z[i] = T(R(0))
for i in range(n):
    z[i * n + i] = T(R(1))
for step in range(n - 1):
    k = n - 2 - step
    factor = t[k]
    for row in range(k + 1, n):
        dot = z[row * n + k + 1]
        for i in range(k + 2, n):
            item = h[i * n + k]
            dot = reduce_add(dot, conj(item) * z[row * n + i])
        dot = dot * factor
        z[row * n + k + 1] = z[row * n + k + 1] - dot
        for i in range(k + 2, n):
            z[row * n + i] = z[row * n + i] - dot * h[i * n + k]
for i in range(2, n):
    for j in range(i - 1):
        h[i * n + j] = T(R(0))
""", HESSENBERG=_hessenberg("0", "n"))
"""h in Hessenberg form, and z; row r of z is column r of the product of reflections."""


_ADJOINT = "first", "second", "ca", "sa"
"""A rotation from the right."""

_COMPLEX_QR = lines(f"""
bad = 0
high = n - 1
iterations = 0
while high >= 0 and bad == 0:
    low = high
    while low > 0:
        item = h[low * n + low - 1]
        other = h[(low - 1) * n + low - 1]
        third = h[low * n + low]
        size = abs1(other) + abs1(third)
        if size == R(0):
            size = norm
        if abs1(item) <= EPS * size or abs1(item) <= TINY:
            h[low * n + low - 1] = T(R(0))
            break
        low = low - 1
    if low == high:
        high = high - 1
        iterations = 0
        continue
    iterations = iterations + 1
    if iterations > {_MOST_TURNS}:
        bad = high + 1
        break
    corner = h[high * n + high]
    below = h[high * n + high - 1]
    if iterations % 10 == 0:
        shift = corner + T(R(0.75) * abs1(below))
    else:
        half = (h[(high - 1) * n + high - 1] - corner) * R(0.5)
        other = below * h[(high - 1) * n + high]
        root = sqrt(half * half + other)
        sum = half + root
        difference = half - root
        if abs1(difference) > abs1(sum):
            sum = difference
        shift = corner
        if abs1(sum) > R(0):
            shift = corner - other / sum
    for k in range(low, high):
        if k == low:
            first = h[low * n + low] - shift
            second = h[(low + 1) * n + low]
        else:
            first = h[k * n + k - 1]
            second = h[(k + 1) * n + k - 1]
        largest = maximum(abs1(first), abs1(second))
        if largest > R(0):
            first = first / largest
            second = second / largest
            size = sqrt(sq(first) + sq(second))
            first = first / size
            second = second / size
            ca = conj(first)
            sa = conj(second)
            start = k - 1
            if k == low:
                start = k
            ROWS
            if k > low:
                h[(k + 1) * n + k - 1] = T(R(0))
            COLUMNS
            VECTORS
""", ROWS=rotated("j", "start, n", "h[k * n + j]", "h[(k + 1) * n + j]", "ca", "sa", "first", "second"),
    COLUMNS=rotated("i", "minimum(k + 2, high) + 1", "h[i * n + k]", "h[i * n + k + 1]", *_ADJOINT),
    VECTORS=rotated("j", "n", "z[k * n + j]", "z[(k + 1) * n + j]", *_ADJOINT))  # fmt: skip
"""A complex Hessenberg matrix to triangular form, with a single shift and rotations."""

_STANDARD = lines("""
k = low
p0 = h[k * n + k]
q0 = h[k * n + k + 1]
r0 = h[(k + 1) * n + k]
s0 = h[(k + 1) * n + k + 1]
c = R(1)
s = R(0)
if r0 == R(0):
    s = R(0)
elif q0 == R(0):
    c = R(0)
    s = R(1)
    y = s0
    s0 = p0
    p0 = y
    q0 = -r0
    r0 = R(0)
elif not (p0 - s0 == R(0) and (q0 < R(0)) != (r0 < R(0))):
    y = p0 - s0
    p = R(0.5) * y
    most = maximum(abs(q0), abs(r0))
    least = minimum(abs(q0), abs(r0))
    if (q0 < R(0)) != (r0 < R(0)):
        least = -least
    size = maximum(abs(p), most)
    w = p / size * p + most / size * least
    if w >= R(4) * EPS:
        w = sqrt(size) * sqrt(w)
        if p < R(0):
            w = -w
        w = p + w
        p0 = s0 + w
        s0 = s0 - most / w * least
        y = hypot(r0, w)
        c = w / y
        s = r0 / y
        q0 = q0 - r0
        r0 = R(0)
    else:
        x0 = q0 + r0
        w = hypot(x0, y)
        c = sqrt(R(0.5) * (R(1) + abs(x0) / w))
        s = -(p / (w * c))
        if x0 < R(0):
            s = -s
        p = p0 * c + q0 * s
        q = q0 * c - p0 * s
        r = r0 * c + s0 * s
        w = s0 * c - r0 * s
        p0 = p * c + r * s
        q0 = q * c + w * s
        r0 = r * c - p * s
        s0 = w * c - q * s
        y = R(0.5) * (p0 + s0)
        p0 = y
        s0 = y
        if r0 != R(0):
            if q0 != R(0):
                if (q0 < R(0)) == (r0 < R(0)):
                    p = sqrt(abs(q0))
                    q = sqrt(abs(r0))
                    w = p * q
                    if r0 < R(0):
                        w = -w
                    x0 = R(1) / sqrt(abs(q0 + r0))
                    p0 = y + w
                    s0 = y - w
                    q0 = q0 - r0
                    r0 = R(0)
                    p = p * x0
                    q = q * x0
                    y = c * p - s * q
                    s = c * q + s * p
                    c = y
            else:
                q0 = -r0
                r0 = R(0)
                y = c
                c = -s
                s = y
h[k * n + k] = p0
h[k * n + k + 1] = q0
h[(k + 1) * n + k] = r0
h[(k + 1) * n + k + 1] = s0
wr[k] = p0
wr[k + 1] = s0
wi[k] = R(0)
if r0 != R(0):
    wi[k] = sqrt(abs(q0)) * sqrt(abs(r0))
wi[k + 1] = -wi[k]
ROWS
COLUMNS
VECTORS
""", ROWS=rotated("j", "k + 2, n", "h[k * n + j]", "h[(k + 1) * n + j]"),
    COLUMNS=rotated("i", "k", "h[i * n + k]", "h[i * n + k + 1]"),
    VECTORS=rotated("j", "n", "z[k * n + j]", "z[(k + 1) * n + j]"))  # fmt: skip
"""A 2 x 2 block on the diagonal: triangular, or with equal elements on its diagonal and others of different signs."""

_REAL_QR = lines(f"""
bad = 0
p = R(0)
q = R(0)
r = R(0)
high = n - 1
iterations = 0
while high >= 0 and bad == 0:
    low = high
    while low > 0:
        size = abs(h[(low - 1) * n + low - 1]) + abs(h[low * n + low])
        if size == R(0):
            size = norm
        if abs(h[low * n + low - 1]) <= EPS * size or abs(h[low * n + low - 1]) <= TINY:
            h[low * n + low - 1] = R(0)
            break
        low = low - 1
    if low == high:
        wr[high] = h[high * n + high]
        wi[high] = R(0)
        high = high - 1
        iterations = 0
        continue
    if low == high - 1:
        STANDARD
        high = high - 2
        iterations = 0
        continue
    iterations = iterations + 1
    if iterations > {_MOST_TURNS}:
        bad = high + 1
        break
    x0 = h[high * n + high]
    y = h[(high - 1) * n + high - 1]
    w = h[high * n + high - 1] * h[(high - 1) * n + high]
    if iterations % 10 == 0:
        s = abs(h[high * n + high - 1]) + abs(h[(high - 1) * n + high - 2])
        x0 = R(0.75) * s + h[high * n + high]
        y = x0
        w = R(-0.4375) * s * s
    else:
        p = R(0.5) * (y - x0)
        q = p * p + w
        if q > R(0):
            q = sqrt(q)
            if p < R(0):
                q = -q
            x0 = x0 - w / (p + q)
            y = x0
            w = R(0)
    m = high - 2
    while m >= low:
        c = h[m * n + m]
        r = x0 - c
        s = y - c
        p = (r * s - w) / h[(m + 1) * n + m] + h[m * n + m + 1]
        q = h[(m + 1) * n + m + 1] - c - r - s
        r = h[(m + 2) * n + m + 1]
        s = abs(p) + abs(q) + abs(r)
        p = p / s
        q = q / s
        r = r / s
        if m == low:
            break
        s = abs(p) * (abs(h[(m - 1) * n + m - 1]) + abs(c) + abs(h[(m + 1) * n + m + 1]))
        if abs(h[m * n + m - 1]) * (abs(q) + abs(r)) <= EPS * s:
            break
        m = m - 1
    for i in range(m + 2, high + 1):
        h[i * n + i - 2] = R(0)
        if i > m + 2:
            h[i * n + i - 3] = R(0)
    for k in range(m, high):
        three = k != high - 1
        if k != m:
            p = h[k * n + k - 1]
            q = h[(k + 1) * n + k - 1]
            r = R(0)
            if three:
                r = h[(k + 2) * n + k - 1]
            x0 = abs(p) + abs(q) + abs(r)
            if x0 == R(0):
                continue
            p = p / x0
            q = q / x0
            r = r / x0
        s = sqrt(p * p + q * q + r * r)
        if p < R(0):
            s = -s
        if k != m:
            h[k * n + k - 1] = -s * x0
        elif low != m:
            h[k * n + k - 1] = -h[k * n + k - 1]
        p = p + s
        x0 = p / s
        y = q / s
        c = r / s
        q = q / p
        r = r / p
        if three:
            for j in range(k, n):
                p = h[k * n + j] + q * h[(k + 1) * n + j] + r * h[(k + 2) * n + j]
                h[k * n + j] = h[k * n + j] - p * x0
                h[(k + 1) * n + j] = h[(k + 1) * n + j] - p * y
                h[(k + 2) * n + j] = h[(k + 2) * n + j] - p * c
            for i in range(minimum(high, k + 3) + 1):
                p = x0 * h[i * n + k] + y * h[i * n + k + 1] + c * h[i * n + k + 2]
                h[i * n + k] = h[i * n + k] - p
                h[i * n + k + 1] = h[i * n + k + 1] - p * q
                h[i * n + k + 2] = h[i * n + k + 2] - p * r
            for j in range(n):
                p = x0 * z[k * n + j] + y * z[(k + 1) * n + j] + c * z[(k + 2) * n + j]
                z[k * n + j] = z[k * n + j] - p
                z[(k + 1) * n + j] = z[(k + 1) * n + j] - p * q
                z[(k + 2) * n + j] = z[(k + 2) * n + j] - p * r
        else:
            for j in range(k, n):
                p = h[k * n + j] + q * h[(k + 1) * n + j]
                h[k * n + j] = h[k * n + j] - p * x0
                h[(k + 1) * n + j] = h[(k + 1) * n + j] - p * y
            for i in range(high + 1):
                p = x0 * h[i * n + k] + y * h[i * n + k + 1]
                h[i * n + k] = h[i * n + k] - p
                h[i * n + k + 1] = h[i * n + k + 1] - p * q
            for j in range(n):
                p = x0 * z[k * n + j] + y * z[(k + 1) * n + j]
                z[k * n + j] = z[k * n + j] - p
                z[(k + 1) * n + j] = z[(k + 1) * n + j] - p * q
""", STANDARD=_STANDARD)
"""A real Hessenberg matrix to quasi-triangular form, with double shifts; eigenvalues in wr and wi."""

_NORM = lines("""
norm = R(0)
for i in range(n):
    for j in range(n):
        item = h[i * n + j]
        norm = maximum(norm, abs1(item))
""")


def _schur(is_complex: bool) -> Lines:
    if is_complex:
        return _TO_HESSENBERG + _NORM + _COMPLEX_QR
    return lines("""
for i in range(n):
    wr[i] = R(0)
    wi[i] = R(0)
""") + _TO_HESSENBERG + _NORM + _REAL_QR


def schur(is_complex: bool) -> Lines:
    """gees: x, form, vectors: n x n, values (or real_values and imag_values), selected, info; work h, z, t, v, sums,
    and wr, wi for real matrices."""
    return lines("""
for i in range(n * n):
    h[i] = x[b * n * n + i]
""") + _schur(is_complex) + lines(f"""
for i in range(n):
    for j in range(n):
        form[b * n * n + i * n + j] = h[i * n + j]
        vectors[b * n * n + i * n + j] = z[j * n + i]
        if j < i - {0 if is_complex else 1}:
            form[b * n * n + i * n + j] = T(R(0))
selected[b] = int32(0)
info[b] = int32(bad)
""") + _values(is_complex)


def _values(is_complex: bool) -> Lines:
    if is_complex:
        return lines("""
for i in range(n):
    values[b * n + i] = h[i * n + i]
""")
    return lines("""
for i in range(n):
    real_values[b * n + i] = wr[i]
    imag_values[b * n + i] = wi[i]
""")


_COMPLEX = "one", "two"
"""Names of complex values: `item` and `other` are real here."""
_ADJOINT_WITH_REAL_SINE = "first", "c", "ca", "c"
_TO_COMPLEX = lines("""
for i in range(n * n):
    ch[i] = complex_from(h[i], R(0))
    cz[i] = complex_from(z[i], R(0))
for k in range(n - 1):
    if wi[k] > R(0):
        mu = complex_from(R(0), wi[k]) + complex_from(wr[k] - h[(k + 1) * n + k + 1], R(0))
        below = real(ch[(k + 1) * n + k])
        size = hypot(abs(mu), below)
        ca = conj(mu) / size
        first = mu / size
        c = below / size
        ROWS
        COLUMNS
        VECTORS
        ch[(k + 1) * n + k] = complex_from(R(0), R(0))
        ch[k * n + k] = complex_from(wr[k], wi[k])
        ch[(k + 1) * n + k + 1] = complex_from(wr[k + 1], wi[k + 1])
""", ROWS=rotated("j", "k, n", "ch[k * n + j]", "ch[(k + 1) * n + j]", "ca", "c", "first", "c", *_COMPLEX),
    COLUMNS=rotated("i", "k + 2", "ch[i * n + k]", "ch[i * n + k + 1]", *_ADJOINT_WITH_REAL_SINE, *_COMPLEX),
    VECTORS=rotated("j", "n", "cz[k * n + j]", "cz[(k + 1) * n + j]", *_ADJOINT_WITH_REAL_SINE, *_COMPLEX))  # fmt: skip
"""The complex Schur form ch, cz of a real one: a rotation for each 2 x 2 block."""


def eigen(is_complex: bool, left: bool, right: bool) -> Lines:
    """geev: x: n x n, values (or real_values and imag_values), left_vectors, right_vectors (complex), info; work h, z,
    t, v, sums, column, and for real matrices wr, wi, ch, cz. For complex ones ch is h and cz is z."""
    text = lines("""
finite = True
for i in range(n * n):
    item = x[b * n * n + i]
    h[i] = item
    if not abs1(item) <= HUGE:
        finite = False
if not finite:
    for i in range(n * n):
        h[i] = T(R(0))
SCHUR
info[b] = int32(bad)
if not finite:
    info[b] = int32(-4)
TO_COMPLEX
size = norm * EPS
smallest = maximum(size, TINY / EPS)
""", SCHUR=_schur(is_complex), TO_COMPLEX=[] if is_complex else _TO_COMPLEX)
    for wanted, name in ((left, "left_vectors"), (right, "right_vectors")):
        if not wanted:
            text += ["for i in range(n * n):", f"    {name}[b * n * n + i] = complex_from(R(0), R(0))"]
        else:
            text += _eigenvectors(name, is_complex)
    return text + _values(is_complex)


def _eigenvectors(name: str, is_complex: bool) -> Lines:
    """The eigenvectors of the triangular ch by substitution, times cz, with length 1 and a real largest element. For a
    pair of conjugate eigenvalues of a real matrix, the second vector is the conjugate of the first."""
    h, z = ("h", "z") if is_complex else ("ch", "cz")
    if name == "left_vectors":
        first, last, order, rows = "k", "n", ["for i in range(k + 1, n):"], "k, i"
        element, pivot = f"conj({h}[j * n + i])", f"conj({h}[i * n + i]) - conj(own)"
    else:
        first, last, order, rows = "0", "k + 1", ["for step in range(k):", "    i = k - 1 - step"], "i + 1, k + 1"
        element, pivot = f"{h}[i * n + j]", f"{h}[i * n + i] - own"
    return lines(f"""
for k in range(n):
    own = {h}[k * n + k]
    column[k] = complex_from(R(1), R(0))
    ORDER
        part = complex_from(R(0), R(0))
        for j in range({rows}):
            part = reduce_add(part, {element} * column[j])
        pivot = {pivot}
        if abs(pivot) < smallest:
            pivot = complex_from(smallest, R(0))
        most = abs(part) / abs(pivot)
        if most > LARGE:
            part = part / most
            for j in range({first}, {last}):
                column[j] = column[j] / most
        column[i] = -(part / pivot)
    for i in range(n):
        {name}[b * n * n + i * n + k] = complex_from(R(0), R(0))
    largest = R(0)
    for j in range({first}, {last}):
        largest = maximum(largest, abs(column[j]))
    for i in range(n):
        part = complex_from(R(0), R(0))
        for j in range({first}, {last}):
            part = reduce_add(part, {z}[j * n + i] * (column[j] / largest))
        {name}[b * n * n + i * n + k] = part
    largest = R(0)
    total = R(0)
    phase = complex_from(R(1), R(0))
    chosen = 0
    for i in range(n):
        part = {name}[b * n * n + i * n + k]
        most = abs(part)
        total = total + most * most
        if most > largest:
            largest = most
            chosen = i
            phase = conj(part) / most
    total = sqrt(total)
    for i in range(n):
        part = {name}[b * n * n + i * n + k] * phase
        {name}[b * n * n + i * n + k] = part / total
        if i == chosen:
            {name}[b * n * n + i * n + k] = complex_from(largest / total, R(0))
    PAIRS
""", ORDER=order, PAIRS=[] if is_complex else lines(f"""
if wi[k] == R(0):
    for i in range(n):
        part = {name}[b * n * n + i * n + k]
        {name}[b * n * n + i * n + k] = complex_from(real(part), R(0))
if wi[k] < R(0):
    for i in range(n):
        part = {name}[b * n * n + i * n + k - 1]
        {name}[b * n * n + i * n + k] = conj(part)
"""))
