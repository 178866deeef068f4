"""Lower the custom calls of LAPACK's routines to rows: the routine that each calls, on copies of its operands, and the
results. `hlo/custom_call_targets/` says what they mean, file by file in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_call_targets.table import BUILT_IN
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ..linalg.algorithms import symmetric_of
from ..runtime.program import Argument
from .lapack import S32, Array, Batch, Given
from .table import LoweringContext


class _Target:
    """One call: its sizes, and its operands and results as arrays of the batch."""

    def __init__(self, context: LoweringContext, instruction: HloInstruction, call: Call) -> None:
        self.call, self.element_type = call, call.element_type
        self.batch = Batch(context, instruction.name, call.element_type, math.prod(call.batch))
        rank = len(call.batch)

        def arrays(places: list[Argument], shapes: list[tuple[ElementType, tuple[int, ...]]]) -> list[Array]:
            return [self.batch.at(place, kind, *dims[rank:]) for place, (kind, dims) in zip(places, shapes)]

        operands = [(s.element, s.dimensions) for s in call.operands]
        results = [(s.element, s.dimensions) for s in call.result.leaves()]
        self.operands = arrays(context.operands(instruction), operands)
        self.results = arrays(context.results(instruction), results)

    def sizes(self, letters: str) -> list[int]:
        """The sizes of the signature's letters."""
        return [self.call.sizes[letter] for letter in letters]

    def named(self, real: str, complex_: str) -> str:
        """The routine's name, which the type decides."""
        return complex_ if self.element_type.is_complex else real

    def info(self) -> Array:
        """Memory for an info that is not a result."""
        return self.batch.scratch(S32)


def add_lapack(context: LoweringContext, instruction: HloInstruction, call: Call) -> bool:
    """Add the rows of a call of one of LAPACK's routines; False if it is none, or if there is nothing to compute."""
    built_in = BUILT_IN.get(call.target)
    add = _TARGETS.get(built_in.function) if built_in else None
    if built_in is None or add is None:
        return False
    call = built_in.typed(call)
    leaves = [leaf for shape in (*call.operands, call.result) for leaf in shape.leaves()]
    if not all(leaf.num_elements for leaf in leaves):
        return False
    built_in.bind(call)  # it refuses wrong letters and sizes
    add(_Target(context, instruction, call))
    return True


def _potrf(t: _Target) -> None:
    """In place, on the transpose and its other triangle."""
    (n,) = t.sizes("n")
    (a,), (out, info) = t.operands, t.results
    t.batch.copy(a, out)
    t.batch.call("potrf", ("U" if t.call.letter("uplo", "LU") == "L" else "L", n, out, n, info))


def _getrf(t: _Target) -> None:
    m, n = t.sizes("mn")
    (a,), (out, pivots, last) = t.operands, t.results
    columns = t.batch.columns(a)
    if t.call.target != "LuDecomposition":
        t.batch.call("getrf", (m, n, columns, m, pivots, last))
    else:
        t.batch.call("getrf", (m, n, columns, m, pivots, t.info()))
        t.batch.kernel("order", _ORDER, {"pivots": pivots, "order": last}, {"m": m, "steps": min(m, n)}, 3.0 * m)
    t.batch.transpose(columns, out)


_ORDER = """\
for i in range(m):
    order[b * m + i] = int32(i)
for k in range(steps):
    chosen = int64(pivots[b * steps + k]) - 1
    pivots[b * steps + k] = int32(chosen)
    kept = order[b * m + k]
    order[b * m + k] = order[b * m + chosen]
    order[b * m + chosen] = kept
""".splitlines()


def _geqrf(t: _Target) -> None:
    m, n = t.sizes("mn")
    (a,), (out, tau) = t.operands, t.results
    columns = t.batch.columns(a)
    t.batch.call("geqrf", (m, n, columns, m, tau), [t.element_type], [t.info()])
    t.batch.transpose(columns, out)


def _geqp3(t: _Target) -> None:
    m, n = t.sizes("mn")
    (a, first), (out, pivots, tau) = t.operands, t.results
    columns = t.batch.columns(a)
    t.batch.copy(first, pivots)
    rwork = [t.batch.work(t.element_type.real, 2 * n)] if t.element_type.is_complex else []
    t.batch.call("geqp3", (m, n, columns, m, pivots, tau), [t.element_type], [*rwork, t.info()])
    t.batch.transpose(columns, out)


def _orgqr(t: _Target) -> None:
    m, n, p = t.sizes("mnp")
    (a, tau), (out,) = t.operands, t.results
    columns = t.batch.columns(a)
    t.batch.call(t.named("orgqr", "ungqr"), (m, n, p, columns, m, tau), [t.element_type], [t.info()])
    t.batch.transpose(columns, out)


def _ormqr(t: _Target) -> None:
    rows, p, m, n = t.sizes("rpmn")
    (a, tau, c), (out,) = t.operands, t.results
    side = "L" if t.call.flag("left") else "R"
    trans = t.named("T", "C") if t.call.flag("transpose") else "N"
    reflections, columns = t.batch.columns(a), t.batch.columns(c)
    before = (side, trans, m, n, p, reflections, rows, tau, columns, m)
    t.batch.call(t.named("ormqr", "unmqr"), before, [t.element_type], [t.info()])
    t.batch.transpose(columns, out)


def add_trsm(
    batch: Batch, a: Array, x: Array, out: Array, left: bool, lower: bool, trans: str, unit: bool
) -> None:
    """In place, as transposes: op(a) x = b is x^T op(a^T) = b^T."""
    (rows, columns), n = out.shape, a.shape[0]
    batch.copy(x, out)
    letters = ("R" if left else "L", "U" if lower else "L", trans, "U" if unit else "N")
    batch.call("trsm", (*letters, columns, rows, 1.0, a, n, out, columns))


def _trsm(t: _Target) -> None:
    (a, b), (out,) = t.operands, t.results
    left, lower = t.call.letter("side", "LR") == "L", t.call.letter("uplo", "LU") == "L"
    trans, unit = t.call.letter("trans_x", "NTC"), t.call.letter("diag", "NU") == "U"
    add_trsm(t.batch, a, b, out, left, lower, trans, unit)


def _gtsv(t: _Target) -> None:
    """The first number of dl is not the matrix's; LAPACK's arrays of it are shorter."""
    n, count = t.sizes("nb")
    (dl, d, du, b), (new_dl, new_d, new_du, out, info) = t.operands, t.results
    columns, shifted = t.batch.columns(b), t.batch.scratch(None, n)
    t.batch.kernel("shifted", _SHIFTED, {"x": dl, "out": shifted}, {"n": n}, 0.3 * n)
    t.batch.copy(d, new_d)
    t.batch.copy(du, new_du)
    t.batch.call("gtsv", (n, count, shifted, new_d, new_du, columns, n, info))
    arrays = {"x": dl, "y": shifted, "out": new_dl}
    t.batch.kernel("shifted_back", _SHIFTED_BACK, arrays, {"n": n}, 0.3 * n)
    t.batch.transpose(columns, out)


_SHIFTED = """\
for i in range(1, n):
    out[b * n + i - 1] = x[b * n + i]
""".splitlines()
_SHIFTED_BACK = """\
out[b * n] = x[b * n]
for i in range(1, n):
    out[b * n + i] = y[b * n + i - 1]
""".splitlines()


def _syevd(t: _Target) -> None:
    (n, lower, vectors), real, is_eigh = symmetric_of(t.call), t.element_type.real, t.call.target == "Eigh"
    (a,), (out, w) = t.operands, t.results[:2]
    mode, uplo = "V" if vectors else "N", "L" if lower else "U"
    info = t.info() if is_eigh else t.results[2]
    columns = t.batch.columns(a)
    kinds = [t.element_type, *([real] if t.element_type.is_complex else []), S32]
    t.batch.call(t.named("syevd", "heevd"), (mode, uplo, n, columns, n, w), kinds, [info])
    t.batch.transpose(columns, out)
    if is_eigh:
        t.batch.kernel("checked", _CHECKED, {"info": info, "out": out, "w": w}, {"n": n}, 2.0)


_CHECKED = """\
if info[b] != 0:
    for i in range(n * n):
        out[b * n * n + i] = T(R(0) / R(0))
    for i in range(n):
        w[b * n + i] = R(0) / R(0)
""".splitlines()


def _sytrd(t: _Target) -> None:
    (n,) = t.sizes("n")
    (a,), (out, d, e, tau, info) = t.operands, t.results
    columns = t.batch.columns(a)
    before = (t.call.letter("uplo", "LU"), n, columns, n, d, e, tau)
    t.batch.call(t.named("sytrd", "hetrd"), before, [t.element_type], [info])
    t.batch.transpose(columns, out)


def _gehrd(t: _Target) -> None:
    (n,) = t.sizes("n")
    (a,), (out, tau, info) = t.operands, t.results
    columns = t.batch.columns(a)
    t.batch.zero(tau)
    before = (n, t.call.integer("low"), t.call.integer("high"), columns, n, tau)
    t.batch.call("gehrd", before, [t.element_type], [info])
    t.batch.transpose(columns, out)


def _svd(t: _Target) -> None:
    is_gesdd = BUILT_IN[t.call.target].function == "gesdd"
    mode, (m, n, height) = t.call.letter("mode", "ASN"), t.sizes("mnv")
    k, real = min(m, n), t.element_type.real
    (a,), (out, s, u, vt, info) = t.operands, t.results
    columns = t.batch.columns(a)
    u_columns, vt_columns = (t.batch.scratch(None, *x.shape[::-1]) for x in (u, vt))
    after = []
    if t.element_type.is_complex:
        length = max(5 * k, k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)) if is_gesdd else 5 * k
        after.append(t.batch.work(real, length))
    if is_gesdd:
        after.append(t.batch.work(S32, 8 * k))
    letters = [mode] if is_gesdd else [mode, mode]
    before: list[Given] = [*letters, m, n, columns, m, s, u_columns, m, vt_columns, height]
    t.batch.call("gesdd" if is_gesdd else "gesvd", before, [t.element_type], [*after, info])
    t.batch.transpose(columns, out)
    for source, target in ((u_columns, u), (vt_columns, vt)):
        if mode == "N":
            t.batch.zero(target)
        else:
            t.batch.transpose(source, target)


def _geev(t: _Target) -> None:
    """A matrix with an infinity or a NaN is replaced by zeros: LAPACK may not come back from it."""
    (n,), real, is_complex = t.sizes("n"), t.element_type.real, t.element_type.is_complex
    left, right = t.call.letter("compute_left", "VN"), t.call.letter("compute_right", "VN")
    (a,), (*w, left_out, right_out, info) = t.operands, t.results
    columns, bad = t.batch.columns(a), t.batch.scratch(S32)
    part = Array(columns.place, real, (n, n))
    t.batch.kernel("finite", _FINITE, {"x": part, "bad": bad}, {"k": n * n * (2 if is_complex else 1)}, 0.5 * n * n)
    vectors = [t.batch.scratch(None, n, n) for _ in range(2)]
    rwork = [t.batch.work(real, 2 * n)] if is_complex else []
    before: list[Given] = [left, right, n, columns, n, *w, vectors[0], n, vectors[1], n]
    t.batch.call("geev", before, [t.element_type], [*rwork, info])
    t.batch.kernel("said", _SAID, {"bad": bad, "info": info}, {}, 1.0)
    for letter, source, target in ((left, vectors[0], left_out), (right, vectors[1], right_out)):
        if letter == "N":
            t.batch.zero(target)
        elif is_complex:
            t.batch.transpose(source, target)
        else:
            arrays = {"v": source, "wi": w[1], "out": Array(target.place, real, (n, n, 2))}
            t.batch.kernel("from_pairs", _FROM_PAIRS, arrays, {"n": n}, 1.5 * n * n)


_FINITE = """\
bad[b] = int32(0)
for i in range(k):
    item = x[b * k + i]
    if not item - item == R(0):
        bad[b] = int32(1)
if bad[b] != 0:
    for i in range(k):
        x[b * k + i] = R(0)
""".splitlines()
_SAID = """\
if bad[b] != 0:
    info[b] = int32(-4)
""".splitlines()
_FROM_PAIRS = """\
for j in range(n):
    of = j
    turn = R(0)
    if wi[b * n + j] > R(0):
        turn = R(1)
    elif j > 0:
        if wi[b * n + j - 1] > R(0):
            of = j - 1
            turn = R(-1)
    base = b * n * n + of * n
    if turn != R(0) and of + 1 < n:
        for i in range(n):
            out[2 * (b * n * n + i * n + j)] = v[base + i]
            out[2 * (b * n * n + i * n + j) + 1] = turn * v[base + n + i]
    else:
        for i in range(n):
            out[2 * (b * n * n + i * n + j)] = v[base + i]
            out[2 * (b * n * n + i * n + j) + 1] = R(0)
""".splitlines()
"""In a conjugate pair, the eigenvalue with the positive imaginary part comes first; column j then holds the real part
and column j + 1 the imaginary part."""


def _gees(t: _Target) -> None:
    (n,), real = t.sizes("n"), t.element_type.real
    (a,), (out, vectors, *w, selected, info) = t.operands, t.results
    mode, columns, vs = t.call.letter("mode", "VN"), t.batch.columns(a), t.batch.scratch(None, n, n)
    rwork = [t.batch.work(real, n)] if t.element_type.is_complex else []
    before: list[Given] = [mode, "N", 0, n, columns, n, selected, *w, vs, n]
    t.batch.call("gees", before, [t.element_type], [*rwork, t.batch.work(S32, n), info])
    t.batch.transpose(columns, out)
    if mode == "V":
        t.batch.transpose(vs, vectors)
    else:
        t.batch.zero(vectors)


_TARGETS: Mapping[str, Callable[[_Target], None]] = {
    "potrf": _potrf, "getrf": _getrf, "lu_decomposition": _getrf, "geqrf": _geqrf, "qr": _geqrf, "geqp3": _geqp3,
    "orgqr": _orgqr, "householder_product": _orgqr, "ormqr": _ormqr, "trsm": _trsm, "gtsv": _gtsv, "syevd": _syevd,
    "eigh": _syevd, "sytrd": _sytrd, "gehrd": _gehrd, "gesdd": _svd, "gesvd": _svd, "geev": _geev, "gees": _gees,
}  # fmt: skip
"""The rules, by the function of the built-in target."""
