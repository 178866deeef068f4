"""Kernels of factorisations of small matrices, and of triangular solves: a batch, one matrix after the other.

A matrix is read into a local array, whose rows are as long as vector registers, is worked on there, and is stored at
the end. Sizes are literals, so that LLVM makes straight vector code of the loops::

    w = local_array(64, float32)
    for b in range(lo, hi):
        at = b * 64
        ...                                             w = A, or its transpose
        for k in range(8):
            pivot0 = w[k * 8 + k]
            ...                                         row k is divided by the root of the pivot
            for i in range(k + 1, 8):
                factor0 = w[k * 8 + i]
                for j in range(8):
                    w[i * 8 + j] = w[i * 8 + j] - factor0 * w[k * 8 + j]
        ...                                             out = w

Whole rows are updated, also where the result is known or of no interest: in that way the innermost loop has a literal
length. What is there is never read again. Algorithms are LAPACK's unblocked ones (potf2, getf2, trsm); a quotient is a
quotient, not a product with a reciprocal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ...hlo.element_type import ElementType
from ...hlo.ops.linalg import TransposeKind, TriangularSolveAttributes
from ..loops.expressions import ZERO, Expr, Name, Number, as_expr, binary, call, times, unary
from ..loops.writer import boolean, cast
from .applied import Buffer, KernelText
from .element import CAST
from .kernel import HI, LO, EmittedKernel

MOST_LOCAL_BYTES = 32 << 10
"""All local arrays of a kernel: more would not stay in the first-level cache."""


def padded(n: int, element_type: ElementType) -> int:
    """The length of a row in a local array: whole vector registers of 32 bytes, or of 16 if that is enough."""
    lanes = 32 // element_type.byte_width
    if n <= lanes // 2:
        lanes = max(1, lanes // 2)
    return 1 if n == 1 else -(-n // lanes) * lanes


class _Matrices:
    """What the kernels of this file share: a batch of matrices, and arithmetic in their element type."""

    def __init__(self, name: str, element_type: ElementType) -> None:
        self.text = KernelText(name, guarded=True)
        self.writer = self.text.writer
        self.element_type = element_type
        self.kind = CAST[element_type]
        self._bytes = 0

    def array(self, name: str, count: int, kind: str | None = None) -> Name:
        """A local array of this element type."""
        return self.writer.local_array(name, max(count, 1), kind or self.kind)

    @contextmanager
    def matrices(self) -> Iterator[Name]:
        """The loop over the batch."""
        with self.writer.loop("b", LO, HI) as b:
            yield b

    @property
    def zero(self) -> Expr:
        if self.element_type.is_complex:
            part = cast(CAST[self.element_type.real], 0)
            return call("complex_from", part, part)
        return cast(self.kind, 0)

    @property
    def nan(self) -> Expr:
        """0 / 0; the imaginary part is 0."""
        zero = cast(CAST[self.element_type.real], 0)
        return self.whole(zero / zero)

    def real(self, value: Expr) -> Expr:
        return call("real", value) if self.element_type.is_complex else value

    def whole(self, value: Expr) -> Expr:
        """A real number as an element."""
        if not self.element_type.is_complex:
            return value
        return call("complex_from", value, cast(CAST[self.element_type.real], 0))

    def conj(self, value: Expr, when: bool = True) -> Expr:
        return call("conj", value) if when and self.element_type.is_complex else value

    def quotient(self, a: Expr, b: Expr) -> Expr:
        """a / b; by a real number, part by part."""
        if not self.element_type.is_complex:
            return a / b
        if b.type.startswith("complex"):
            return call("divide", a, b)
        return call("complex_from", call("real", a) / b, call("imag", a) / b)

    def size_of(self, value: Expr) -> Expr:
        """|x|, for a complex number |re| + |im|, as LAPACK compares pivots."""
        if self.element_type.is_complex:
            return call("abs", call("real", value)) + call("abs", call("imag", value))
        return call("abs", value)

    def read(self, source: Buffer, base: Expr, target: Name, rows: int, columns: int, width: int,
             transposed: bool = False, conjugated: bool = False) -> None:  # fmt: skip
        """target[i * width + j] = source[i, j], or source[j, i]; zero in the columns from `columns` on."""
        writer = self.writer
        with writer.loop("i", rows) as i:
            with writer.loop("j", columns) as j:
                offset = times(j, Number(rows)) + i if transposed else times(i, Number(columns)) + j
                writer.store(target, times(i, Number(width)) + j, self.conj(source.load(base + offset), conjugated))
            if width > columns:
                with writer.loop("j", columns, width) as j:
                    writer.store(target, times(i, Number(width)) + j, self.zero)

    def less(self, value: Expr, factor: Expr, other: Expr) -> Expr:
        """value - factor * other"""
        if self.element_type.is_complex:
            return call("subtract", value, call("multiply", factor, other))
        return value - factor * other

    def eliminate(self, w: Name, row: Expr, other: Name, other_row: Expr, factor: Expr, width: int) -> None:
        """``w[row + j] = w[row + j] - factor * other[other_row + j]``"""
        with self.writer.loop("j", width) as j:
            self.writer.store(w, row + j, self.less(w[row + j], factor, other[other_row + j]))

    def reflect(
        self, w: Name, v: Name, sums: Name, rows: int, width: int, deep: int, k: Expr, factor: Expr
    ) -> None:
        """w = w - factor v (v^T w), for column k of v, which is zero above row k."""
        writer = self.writer
        with writer.loop("j", width) as j:
            writer.store(sums, j, self.zero)
        with writer.loop("i", k, rows) as i:
            element = writer.assign("element", v[times(i, Number(deep)) + k])
            with writer.loop("j", width) as j:
                writer.store(sums, j, sums[j] + element * w[times(i, Number(width)) + j])
        with writer.loop("i", k, rows) as i:
            element = writer.assign("element", factor * v[times(i, Number(deep)) + k])
            self.eliminate(w, times(i, Number(width)), sums, ZERO, element, width)

    def finish(self, count: int, nanoseconds: float) -> EmittedKernel:
        return self.text.finish(count, nanoseconds)


def emit_cholesky(element_type: ElementType, count: int, n: int, lower: bool, with_info: bool = False) -> EmittedKernel:
    """The Cholesky factor of `count` matrices, of which one triangle is read: operand 0 to output 0.

    The other triangle of the result is zero. Where a pivot is not positive, the whole factor is NaN. `with_info`: as
    potrf, the other triangle is as it was, and output 1 says which pivot was the first one not positive (or 0).
    """
    own = _Matrices("cholesky", element_type)
    text, writer, width = own.text, own.writer, padded(n, element_type)
    x, out = text.operand("x", element_type, 0), text.output("out", element_type, 0)
    info = text.output("info", ElementType.S32, 1) if with_info else None
    w = own.array("w", n * width)
    with own.matrices() as b:
        at = writer.assign("at", times(b, Number(n * n)))
        own.read(x, at, w, n, n, width, transposed=lower, conjugated=lower)
        bad = writer.assign("bad", cast("int32", 0)) if with_info else writer.assign("good", boolean(True))
        with writer.loop("k", n) as k:
            row = times(k, Number(width))
            pivot = writer.assign("pivot", own.real(w[row + k]))
            zero = cast(pivot.type, 0)
            if info is not None:
                first = binary("and", bad.eq(0), pivot <= zero)
                writer.assign(bad, call("select", first, cast("int32", k + 1), bad))
            else:
                writer.assign(bad, binary("and", bad, pivot > zero))
            root = writer.assign("root", call("sqrt", pivot))
            with writer.loop("j", width) as j:
                writer.store(w, row + j, own.quotient(w[row + j], root))
            writer.store(w, row + k, own.conj(own.whole(root), lower))
            with writer.loop("i", k + 1, n) as i:
                factor = writer.assign("factor", own.conj(w[row + i]))
                own.eliminate(w, times(i, Number(width)), w, row, factor, width)
        with writer.loop("i", n) as i, writer.loop("j", n) as j:
            place = times(j, Number(width)) + i if lower else times(i, Number(width)) + j
            inside = (j <= i) if lower else (i <= j)
            offset = at + times(i, Number(n)) + j
            if info is not None:
                value = call("select", inside, own.conj(w[place], lower), x.load(offset))
            else:
                value = call("select", inside, own.conj(w[place], lower), own.zero)
                value = call("select", bad, value, own.nan)
            writer.store(out.pointer, offset, value)
        if info is not None:
            writer.store(info.pointer, b, bad)
    return own.finish(count, _cubic(element_type, n, n, n) + 8.0 * n)


def emit_triangular_solve(
    element_type: ElementType, count: int, rows: int, columns: int, attributes: TriangularSolveAttributes
) -> EmittedKernel:
    """op(a) x = b or x op(a) = b for `count` matrices b, rows x columns: operands a and b, output x.

    From the left, all columns advance together, a row at a time; from the right, a row is solved at a time.
    """
    own = _Matrices("triangular_solve", element_type)
    text, writer = own.text, own.writer
    left = attributes.left_side
    n = rows if left else columns
    a, b_, out = (
        text.operand("x", element_type, 0), text.operand("y", element_type, 1), text.output("out", element_type, 0)
    )  # fmt: skip
    trans = attributes.transpose_a is not TransposeKind.NO_TRANSPOSE
    conjugated = attributes.transpose_a is TransposeKind.ADJOINT
    width = padded(columns, element_type)
    w = own.array("w", rows * width)
    forwards = (attributes.lower != trans) == left
    with own.matrices() as b:
        at = writer.assign("at", times(b, Number(n * n)))
        to = writer.assign("to", times(b, Number(rows * columns)))
        own.read(b_, to, w, rows, columns, width)

        def op(i: Expr, j: Expr) -> Expr:
            """op(a)[i, j]"""
            offset = times(j, Number(n)) + i if trans else times(i, Number(n)) + j
            return own.conj(a.load(at + offset), conjugated)

        with writer.loop("k", n) as step:
            k: Expr = step if forwards else writer.assign("last", n - 1 - step)
            if not attributes.unit_diagonal:
                pivot = writer.assign("pivot", op(k, k))
                if left:
                    with writer.loop("j", width) as j:
                        place = times(k, Number(width)) + j
                        writer.store(w, place, own.quotient(w[place], pivot))
                else:
                    with writer.loop("i", rows) as i:
                        place = times(i, Number(width)) + k
                        writer.store(w, place, own.quotient(w[place], pivot))
            others = writer.loop("r", step + 1, n) if forwards else writer.loop("r", n - 1 - step)
            if left:
                with others as r:
                    factor = writer.assign("factor", op(r, k))
                    own.eliminate(w, times(r, Number(width)), w, times(k, Number(width)), factor, width)
            else:
                with writer.loop("i", rows) as i:
                    row = times(i, Number(width))
                    factor = writer.assign("factor", w[row + k])
                    with others as r:
                        writer.store(w, row + r, own.less(w[row + r], factor, op(k, r)))
        with writer.loop("i", rows) as i, writer.loop("j", columns) as j:
            writer.store(out.pointer, to + times(i, Number(columns)) + j, w[times(i, Number(width)) + j])
    work = _cubic(element_type, n, n, columns if left else rows)
    return own.finish(count, 0.5 * work + 4.0 * n)


def emit_lu(
    element_type: ElementType, count: int, rows: int, columns: int, order: bool = False
) -> EmittedKernel:
    """P L U with partial pivoting, as getrf: output 0 has L and U in one matrix, output 1 the rows that were exchanged,
    counted from 1, output 2 the first pivot that is zero, or 0. With `order`, as LuDecomposition: they are counted from
    0, and output 2 says which row of the matrix is in which place.

    Rows of L and of U are in two arrays, so that whole rows are updated and exchanged. The pivot is the first element
    of the largest size; NaN is only chosen where it is the first one.
    """
    own = _Matrices("lu", element_type)
    text, writer = own.text, own.writer
    steps, width = min(rows, columns), padded(columns, element_type)
    deep = padded(steps, element_type)
    x, out = text.operand("x", element_type, 0), text.output("out", element_type, 0)
    pivots = text.output("pivots", ElementType.S32, 1)
    last = text.output("order" if order else "info", ElementType.S32, 2)
    w, factors = own.array("w", rows * width), own.array("v", rows * deep)
    with own.matrices() as b:
        at = writer.assign("at", times(b, Number(rows * columns)))
        own.read(x, at, w, rows, columns, width)
        with writer.loop("i", rows * deep) as i:
            writer.store(factors, i, own.zero)
        if order:
            with writer.loop("i", rows) as i:
                writer.store(last.pointer, times(b, Number(rows)) + i, cast("int32", i))
        bad = writer.assign("bad", cast("int32", 0))
        with writer.loop("k", steps) as k:
            row = times(k, Number(width))
            best = writer.assign("best", own.size_of(w[row + k]))
            chosen = writer.assign("chosen", as_expr(k))
            with writer.loop("i", k + 1, rows) as i:
                size = writer.assign("size", own.size_of(w[times(i, Number(width)) + k]))
                better = writer.assign("better", size > best)
                writer.assign(best, call("select", better, size, best))
                writer.assign(chosen, call("select", better, i, chosen))
            writer.store(pivots.pointer, times(b, Number(steps)) + k, cast("int32", chosen if order else chosen + 1))
            if order:
                place = times(b, Number(rows))
                was = writer.assign("was", last.pointer[place + k])
                writer.store(last.pointer, place + k, last.pointer[place + chosen])
                writer.store(last.pointer, place + chosen, was)
            for array, length in ((w, width), (factors, deep)):
                with writer.loop("j", length) as j:
                    first, second = times(k, Number(length)) + j, times(chosen, Number(length)) + j
                    kept = writer.assign("kept", array[first])
                    writer.store(array, first, array[second])
                    writer.store(array, second, kept)
            pivot = writer.assign("pivot", w[row + k])
            regular = writer.assign("regular", own.size_of(pivot).ne(0))
            first = binary("and", bad.eq(0), unary("not", regular))
            writer.assign(bad, call("select", first, cast("int32", k + 1), bad))
            divisor = writer.assign("divisor", call("select", regular, pivot, own.whole(cast(_part(own), 1))))
            with writer.loop("i", k + 1, rows) as i:
                down = times(i, Number(width))
                factor = writer.assign("factor", own.quotient(w[down + k], divisor))
                writer.store(factors, times(i, Number(deep)) + k, factor)
                own.eliminate(w, down, w, row, factor, width)
        with writer.loop("i", rows) as i, writer.loop("j", columns) as j:
            offset = at + times(i, Number(columns)) + j
            lower = factors[times(i, Number(deep)) + (call("minimum", j, steps - 1) if columns > steps else j)]
            value = call("select", j < call("minimum", i, steps), lower, w[times(i, Number(width)) + j])
            writer.store(out.pointer, offset, value)
        if not order:
            writer.store(last.pointer, b, bad)
    return own.finish(count, _cubic(element_type, rows, columns, steps) + 20.0 * steps)


def emit_qr(element_type: ElementType, count: int, rows: int, columns: int) -> EmittedKernel:
    """Q R by Householder reflections, as geqrf, of real matrices: output 0 has R and below it the reflections' vectors,
    whose first elements are 1; output 1 their factors tau.

    Norms are of vectors divided by their largest element, so that no square is too large or too small.
    """
    own = _Matrices("qr", element_type)
    text, writer = own.text, own.writer
    steps, width = min(rows, columns), padded(columns, element_type)
    deep = padded(steps, element_type)
    x, out, tau = (
        text.operand("x", element_type, 0), text.output("out", element_type, 0), text.output("tau", element_type, 1)
    )  # fmt: skip
    w, v, sums = own.array("w", rows * width), own.array("v", rows * deep), own.array("sums", width)
    one = cast(own.kind, 1)
    with own.matrices() as b:
        at = writer.assign("at", times(b, Number(rows * columns)))
        own.read(x, at, w, rows, columns, width)
        with writer.loop("k", steps) as k:
            row = times(k, Number(width))
            alpha = writer.assign("alpha", w[row + k])
            largest = writer.assign("largest", own.zero)
            with writer.loop("i", k + 1, rows) as i:
                writer.assign(largest, call("maximum", largest, call("abs", w[times(i, Number(width)) + k])))
            nothing = writer.assign("nothing", largest.eq(own.zero))
            scale = writer.assign("scale", call("maximum", largest, call("abs", alpha)))
            writer.assign(scale, call("select", nothing, one, scale))
            ratio = writer.assign("ratio", alpha / scale)
            total = writer.assign("total", ratio * ratio)
            with writer.loop("i", k + 1, rows) as i:
                part = writer.assign("part", w[times(i, Number(width)) + k] / scale)
                writer.assign(total, total + part * part)
            norm = writer.assign("norm", scale * call("sqrt", total))
            beta = writer.assign("beta", call("select", alpha < own.zero, norm, -norm))
            factor = writer.assign("factor", call("select", nothing, own.zero, (beta - alpha) / beta))
            divisor = writer.assign("divisor", call("select", nothing, one, alpha - beta))
            writer.assign(beta, call("select", nothing, alpha, beta))
            with writer.loop("i", k) as i:
                writer.store(v, times(i, Number(deep)) + k, own.zero)
            writer.store(v, times(k, Number(deep)) + k, one)
            with writer.loop("i", k + 1, rows) as i:
                writer.store(v, times(i, Number(deep)) + k, w[times(i, Number(width)) + k] / divisor)
            own.reflect(w, v, sums, rows, width, deep, k, factor)
            writer.store(w, row + k, beta)
            writer.store(tau.pointer, times(b, Number(steps)) + k, factor)
        with writer.loop("i", rows) as i, writer.loop("j", columns) as j:
            offset = at + times(i, Number(columns)) + j
            lower = v[times(i, Number(deep)) + (call("minimum", j, steps - 1) if columns > steps else j)]
            value = call("select", j < call("minimum", i, steps), lower, w[times(i, Number(width)) + j])
            writer.store(out.pointer, offset, value)
    return own.finish(count, 2.5 * _cubic(element_type, rows, columns, steps) + 70.0 * steps)


def emit_reflections(element_type: ElementType, count: int, rows: int, columns: int, number: int) -> EmittedKernel:
    """The first columns of the product of Householder reflections, as orgqr: operands are what geqrf gives."""
    own = _Matrices("reflections", element_type)
    text, writer = own.text, own.writer
    width, deep = padded(columns, element_type), padded(max(number, 1), element_type)
    x, tau, out = (
        text.operand("x", element_type, 0), text.operand("tau", element_type, 1), text.output("out", element_type, 0)
    )  # fmt: skip
    w, v, sums = own.array("w", rows * width), own.array("v", rows * deep), own.array("sums", width)
    one = cast(own.kind, 1)
    with own.matrices() as b:
        at = writer.assign("at", times(b, Number(rows * columns)))
        with writer.loop("i", rows) as i:
            with writer.loop("j", width) as j:
                writer.store(w, times(i, Number(width)) + j, call("select", i.eq(j), one, own.zero))
            with writer.loop("j", number) as j:
                below = call("select", j < i, x.load(at + times(i, Number(columns)) + j), own.zero)
                writer.store(v, times(i, Number(deep)) + j, call("select", i.eq(j), one, below))
        with writer.loop("step", number) as step:
            k = writer.assign("last", number - 1 - step)
            factor = writer.assign("factor", tau.load(times(b, Number(number)) + k))
            own.reflect(w, v, sums, rows, width, deep, k, factor)
        with writer.loop("i", rows) as i, writer.loop("j", columns) as j:
            writer.store(out.pointer, at + times(i, Number(columns)) + j, w[times(i, Number(width)) + j])
    return own.finish(count, 2.0 * _cubic(element_type, rows, columns, number) + 10.0 * number)


def _part(own: _Matrices) -> str:
    return CAST[own.element_type.real]


def _cubic(element_type: ElementType, a: int, b: int, c: int) -> float:
    """Nanoseconds of the updates of a factorisation, of which half are needed, and of reading and storing."""
    lanes = 32 / element_type.byte_width
    return 0.2 * a * b * math.ceil(c / lanes) * (4 if element_type.is_complex else 1) + 0.3 * (a * b + b * c)


def local_bytes(element_type: ElementType, *arrays: tuple[int, int]) -> int:
    """The memory of local arrays of these numbers of rows and columns."""
    return sum(rows * padded(columns, element_type) * element_type.byte_width for rows, columns in arrays)

