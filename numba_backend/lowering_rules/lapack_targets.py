"""Lower the custom calls of LAPACK's routines to rows: copies of the operands, the call, and the results. The routine
and its arguments are data (`hlo/custom_call_targets/routine.py`); rules here are for what else a call computes, and for
calls that need no copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_call_targets.routine import Buffer, Routine
from ...hlo.custom_call_targets.table import BUILT_IN
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ..linalg import forms
from ..linalg.algorithms import symmetric_of
from ..linalg.eigenvalues import eigenvalues, width_of
from ..runtime.program import Argument
from .lapack import S32, Array, Batch
from .table import LoweringContext


class _Target:
    """One call: its routine, and its operands and results as arrays of the batch."""

    def __init__(self, context: LoweringContext, instruction: HloInstruction, routine: Routine) -> None:
        self.routine, self.call = routine, routine.call
        self.batch = Batch(context, instruction.name, self.call.element_type, math.prod(self.call.batch))
        rank = len(self.call.batch)

        def arrays(places: list[Argument], shapes: list[tuple[ElementType, tuple[int, ...]]]) -> list[Array]:
            return [self.batch.at(place, kind, *dims[rank:]) for place, (kind, dims) in zip(places, shapes)]

        operands = [(s.element, s.dimensions) for s in self.call.operands]
        results = [(s.element, s.dimensions) for s in self.call.result.leaves()]
        self.operands = arrays(context.operands(instruction), operands)
        self.results = arrays(context.results(instruction), results)
        self.arrays: dict[Buffer, Array] = {}
        """The routine's."""

    def prepare(self) -> None:
        """Give the routine's buffers memory, with the operands in it. A result is made in its place, unless it is a
        matrix; an operand is read in its place, if the routine changes nothing in it."""
        targets = dict(zip(self.routine.results, self.results))
        for b in self.routine.buffers:
            target, source = targets.get(b), None if b.operand is None else self.operands[b.operand]
            if b in self.arrays:
                continue
            if b.is_shared:
                self.arrays[b] = self.batch.work(b.element_type, *b.shape)
            elif b.is_matrix and not b.is_zero:
                self.arrays[b] = self.batch.columns(source) if source else self.batch.scratch(b.element_type, *b.shape)
            else:
                self.arrays[b] = target or source or self.batch.scratch(b.element_type, *b.shape)
                if b.is_zero:
                    self.batch.zero(self.arrays[b])
                elif source and target:
                    self.batch.copy(source, target)

    def run(self) -> None:
        """The row that calls the routine."""
        before, after = ([self.arrays[x] if isinstance(x, Buffer) else x for x in given]
                         for given in (self.routine.before, self.routine.after))  # fmt: skip
        self.batch.call(self.routine.name, before, self.routine.kinds, after)

    def finish(self) -> None:
        """Write the matrices into the results."""
        for b, target in zip(self.routine.results, self.results):
            if b.is_matrix and not b.is_zero:
                if b.element_type is target.element_type:
                    self.batch.transpose(self.arrays[b], target)
                else:
                    self._from_pairs(b, target)

    def _from_pairs(self, vectors: Buffer, target: Array) -> None:
        """Complex eigenvectors of a real matrix."""
        n, imaginary = vectors.shape[0], self.results[1]
        out = Array(target.place, vectors.element_type, (n, n, 2))
        arrays = {"v": self.arrays[vectors], "wi": imaginary, "out": out}
        self.batch.kernel("from_pairs", _FROM_PAIRS, arrays, {"n": n}, 1.5 * n * n)


def add_lapack(context: LoweringContext, instruction: HloInstruction, call: Call) -> bool:
    """Add the rows of a call of one of LAPACK's routines; False if it is none, or if there is nothing to compute."""
    leaves = [leaf for shape in (*call.operands, call.result) for leaf in shape.leaves()]
    built_in = BUILT_IN.get(call.target)
    if built_in is None or not all(leaf.num_elements for leaf in leaves):
        return False
    routine = built_in.bind(call)  # it refuses wrong letters and sizes
    if not isinstance(routine, Routine):
        return False
    _RULES.get(built_in.function, _routine)(_Target(context, instruction, routine))
    return True


def _routine(t: _Target) -> None:
    t.prepare()
    t.run()
    t.finish()


def _potrf(t: _Target) -> None:
    """In place, on the transpose and its other triangle."""
    n, (a,), (out, info) = t.call.sizes["n"], t.operands, t.results
    t.batch.copy(a, out)
    t.batch.call("potrf", ("U" if t.call.letter("uplo", "LU") == "L" else "L", n, out, n, info))


def _lu_decomposition(t: _Target) -> None:
    m, n = (t.call.sizes[letter] for letter in "mn")
    _, pivots, order = t.results
    t.prepare()
    t.run()
    t.batch.kernel("order", _ORDER, {"pivots": pivots, "order": order}, {"m": m, "steps": min(m, n)}, 3.0 * m)
    t.finish()


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
    n, dl, new_dl = t.call.sizes["n"], t.operands[0], t.results[0]
    shifted = t.arrays[t.routine.results[0]] = t.batch.scratch(None, n)
    t.batch.kernel("shifted", _SHIFTED, {"x": dl, "out": shifted}, {"n": n}, 0.3 * n)
    t.prepare()
    t.run()
    arrays = {"x": dl, "y": shifted, "out": new_dl}
    t.batch.kernel("shifted_back", _SHIFTED_BACK, arrays, {"n": n}, 0.3 * n)
    t.finish()


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
    """Eigenvalues alone of a small real matrix are a kernel's."""
    (n, lower, vectors), kind = symmetric_of(t.call), t.call.element_type
    if vectors or kind.is_complex or n > forms.MOST_ROWS:
        _routine(t)
        return
    (x,), (out, values, info) = t.operands, t.results
    t.batch.zero(out)
    arrays = {"x": x, "values": values, "info": info}
    words = {"n": n, "width": width_of(n, kind)}
    t.batch.kernel("eigenvalues", eigenvalues(lower), arrays, {}, 20.0 * n * n, words=words)


def _eigh(t: _Target) -> None:
    (out, w), n = t.results, t.call.sizes["n"]
    _routine(t)
    info = t.arrays[t.routine.results[2]]
    t.batch.kernel("checked", _CHECKED, {"info": info, "out": out, "w": w}, {"n": n}, 2.0)


_CHECKED = """\
if info[b] != 0:
    for i in range(n * n):
        out[b * n * n + i] = T(R(0) / R(0))
    for i in range(n):
        w[b * n + i] = R(0) / R(0)
""".splitlines()


def _geev(t: _Target) -> None:
    """A matrix with an infinity or a NaN is replaced by zeros: LAPACK may not come back from it."""
    n, kind, bad = t.call.sizes["n"], t.call.element_type, t.batch.scratch(S32)
    t.prepare()
    (columns,) = (t.arrays[b] for b in t.routine.buffers if b.operand == 0)
    part, count = Array(columns.place, kind.real, (n, n)), n * n * (2 if kind.is_complex else 1)
    t.batch.kernel("finite", _FINITE, {"x": part, "bad": bad}, {"k": count}, 0.5 * n * n)
    t.run()
    t.batch.kernel("said", _SAID, {"bad": bad, "info": t.results[-1]}, {}, 1.0)
    t.finish()


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


_RULES: Mapping[str, Callable[[_Target], None]] = {
    "potrf": _potrf, "lu_decomposition": _lu_decomposition, "trsm": _trsm, "gtsv": _gtsv, "eigh": _eigh, "geev": _geev,
    "syevd": _syevd,
}  # fmt: skip
"""The rules that are no plain call, by the function of the built-in target."""
