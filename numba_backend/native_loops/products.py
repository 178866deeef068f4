"""Small matrix products as loop programs, for native loops: a call of BLAS costs more than they do.

The innermost loop goes along the columns of the result if rhs lies that way, along its rows if lhs lies that way, and
otherwise along the sum. A row of results is added up in a local array, of which LLVM makes registers::

    for i in range(4):                              for i in range(8):
        for j in range(8):                              total0 = float32(0)
            row[j] = float32(0)                         for k in range(8):
        for k in range(4):                                  total0 = reduce_add(total0, x0[i * 8 + k] * x1[k])
            factor0 = x0[i * 4 + k]                     out[i] = total0
            for j in range(8):
                row[j] = row[j] + factor0 * x1[k * 8 + j]
        for j in range(8):
            out[i * 8 + j] = row[j]
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ..dot import gemm_of
from ..emit.kernel import HI, LO, EmittedKernel, memory_type, program_of
from ..loops.expressions import ZERO, Expr, Name, Number, call, product_of, sum_of, times
from ..loops.statements import KernelParameter, PointerParameter, SizeParameter
from ..loops.typing import pointer_to
from ..loops.writer import Writer, cast

SUPPORTED = frozenset((ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128))
"""Element types of products that native loops compute. The others have become these, or fusions."""

MOST_WORK = 1 << 14
"""Multiplications times bytes of an element of a product in a native loop; larger ones are left to BLAS, whose loops
are better: 16 x 16 x 16 of f32. A multiplication of complex numbers counts as four."""
MOST_VECTOR_WORK = 1 << 15
"""The same for a matrix and a vector, where BLAS has no advantage beyond its call."""

LITERAL = 64
"""Sizes of up to this are written into the text."""

LONG_ROW = 12
"""A row of results from this length on is padded to whole vector registers, where its matrix can be: LLVM leaves others
in memory."""


def work_of(dot: HloInstruction) -> tuple[int, bool]:
    """(the number of multiplications, whether one operand is a vector)."""
    gemm = gemm_of(dot)
    count = gemm.m * gemm.n * gemm.k
    for dimension in gemm.batch:
        count *= dimension.count
    return count, gemm.m == 1 or gemm.n == 1


@dataclass(frozen=True, slots=True)
class Preparation:
    """A copy of an operand that does not change in the loop: its rows are the steps of the sum, so that the innermost
    loop of the product goes along memory."""

    operand: int
    steps: int
    length: int
    stride: int
    """The distance between neighbours of a row in the operand; steps are neighbours."""
    width: int
    """The length of a row of the copy; zeros fill it."""

    def kernel(self, element: ElementType) -> EmittedKernel:
        """Makes the copy: operand 0 to output 0."""
        kind = memory_type(element)
        writer = Writer()
        x, out = Name("x", pointer_to(kind)), Name("out", pointer_to(kind))
        with writer.loop("k", self.steps) as k:
            with writer.loop("j", self.length) as j:
                writer.store(out, times(k, Number(self.width)) + j, x[times(j, Number(self.stride)) + k])
            if self.width > self.length:
                with writer.loop("j", self.length, self.width) as j:
                    writer.store(out, times(k, Number(self.width)) + j, _zero(element))
        parameters = (PointerParameter("x", element, 0, None), PointerParameter("out", element, None, 0))
        return EmittedKernel(program_of("transposed", parameters, writer), parameters, 1, 0.5 * self.steps * self.width)


def preparation_of(dot: HloInstruction) -> Preparation | None:
    """The operand that should be copied before the loop, if it does not change; None if that does not pay."""
    gemm = gemm_of(dot)
    if gemm.batch or not 1 < gemm.k <= LITERAL // 2:
        return None
    if gemm.transpose_b == "T" and 1 < gemm.n <= LITERAL // 2:
        operand, length, stride = 1, gemm.n, gemm.ldb
    elif gemm.n == 1 and gemm.transpose_a == "N" and 1 < gemm.m <= LITERAL // 2:
        operand, length, stride = 0, gemm.m, gemm.lda
    else:
        return None
    lanes = 32 // dot.shape.element.byte_width
    width = length if length < LONG_ROW else -(-length // lanes) * lanes
    return Preparation(operand, gemm.k, length, stride, width)


def _zero(element: ElementType) -> Expr:
    if element.is_complex:
        part = cast(memory_type(element.real), 0)
        return call("complex_from", part, part)
    return cast(memory_type(element), 0)


def emit_product(
    dot: HloInstruction, prepared: Preparation | None = None, *, is_sliced: bool = False, turns_b: bool = False
) -> EmittedKernel:
    """The kernel of a product. Operands and result are dense; BLAS could take them too. `prepared`: this operand is the
    copy. `is_sliced`: the outermost loop, over the first batch dimension or the rows of the result, is from `lo` to
    `hi`. `turns_b`: a small rhs whose rows lie along the sum is copied into a local array first, transposed."""
    return _Product(dot, prepared, is_sliced, turns_b).emit()


class _Product:
    def __init__(
        self, dot: HloInstruction, prepared: Preparation | None, is_sliced: bool, turns_b: bool = False
    ) -> None:
        self.is_sliced = is_sliced
        self.gemm = gemm = gemm_of(dot)
        self.element = dot.shape.element
        self.work, _ = work_of(dot)
        self.prepared = prepared
        self.writer = Writer()
        self.sizes: list[SizeParameter] = []
        kind = memory_type(self.element)
        self.a, self.b, self.c = (Name(name, pointer_to(kind)) for name in ("x0", "x1", "out"))
        operand = None if prepared is None else prepared.operand
        width = None if prepared is None else Number(prepared.width)
        self.rows_of_a = operand == 0 or gemm.transpose_a == "T"
        """Neighbours in memory are neighbours in a column."""
        self.rows_of_b = operand == 1 or gemm.transpose_b == "N"
        one: Expr = Number(1)
        lda: Expr = width if operand == 0 and width is not None else self.size(gemm.lda)
        ldb: Expr = width if operand == 1 and width is not None else self.size(gemm.ldb)
        self.a_row, self.a_step = (one, lda) if self.rows_of_a else (lda, one)
        self.b_step, self.b_column = (ldb, one) if self.rows_of_b else (one, ldb)
        self.c_row = self.size(gemm.ldc)
        self.turns_b = turns_b and not self.rows_of_b and gemm.n > 1

    def size(self, value: int) -> Expr:
        if value <= LITERAL:
            return Number(value)
        self.sizes.append(SizeParameter(f"n{len(self.sizes)}", value))
        return Name(self.sizes[-1].name)

    def _rows(self) -> tuple[Expr, ...]:
        """The bounds of the loop over the rows of the result."""
        return (LO, HI) if self.is_sliced and not self.gemm.batch else (self.size(self.gemm.m),)

    def emit(self) -> EmittedKernel:
        gemm, writer = self.gemm, self.writer
        at_a: Expr = ZERO
        at_b: Expr = ZERO
        at_c: Expr = ZERO
        with ExitStack() as stack:
            for number, dimension in enumerate(gemm.batch):
                bounds = (LO, HI) if self.is_sliced and not number else (self.size(dimension.count),)
                index = stack.enter_context(writer.loop(f"b{number}", *bounds))
                at_a = at_a + times(index, self.size(dimension.a_stride))
                at_b = at_b + times(index, self.size(dimension.b_stride))
                at_c = at_c + times(index, self.size(dimension.c_stride))
            if self.turns_b:
                at_b = self._turned(at_b)
            if 1 < gemm.n <= LITERAL and self.rows_of_b:
                with writer.loop("i", *self._rows()) as i:
                    self._row(
                        gemm.n, gemm.m, (self.a, at_a + times(i, self.a_row), self.a_step), (self.b, at_b, self.b_step),
                        at_c + times(i, self.c_row), Number(1),
                    )  # fmt: skip
            elif gemm.n > 1 and self.rows_of_b:
                self._long_rows(at_a, at_b, at_c)
            elif 1 < gemm.m <= LITERAL and self.rows_of_a and not (self.is_sliced and not gemm.batch):
                with writer.loop("i", self.size(gemm.n)) as i:
                    self._row(
                        gemm.m, gemm.n, (self.b, at_b + times(i, self.b_column), self.b_step),
                        (self.a, at_a, self.a_step), at_c + i, self.c_row,
                    )  # fmt: skip
            else:
                self._sums(at_a, at_b, at_c)
        parameters: tuple[KernelParameter, ...] = (
            PointerParameter("x0", self.element, 0, None), PointerParameter("x1", self.element, 1, None),
            PointerParameter("out", self.element, None, 0), *self.sizes,
        )  # fmt: skip
        cost = 5.0 + 0.3 * self.work * (4 if self.element.is_complex else 1)
        extent = 1 if not self.is_sliced else gemm.batch[0].count if gemm.batch else gemm.m
        return EmittedKernel(program_of("product", parameters, self.writer), parameters, extent, cost / extent)

    def _turned(self, at_b: Expr) -> Expr:
        """Copies the rhs into a local array, row by row, and takes it from there."""
        writer, gemm = self.writer, self.gemm
        turned = writer.local_array("turned", gemm.k * gemm.n, memory_type(self.element))
        with writer.loop("j", gemm.n) as j, writer.loop("k", gemm.k) as k:
            element = self.b[at_b + times(k, self.b_step) + times(j, self.b_column)]
            writer.store(turned, times(k, Number(gemm.n)) + j, element)
        self.b, self.b_step, self.b_column, self.rows_of_b = turned, Number(gemm.n), Number(1), True
        return ZERO

    def _plus(self, total: Expr, x: Expr, y: Expr) -> Expr:
        """total + x * y"""
        return sum_of(total, product_of(x, y))

    def _row(
        self, length: int, rows: int, vector: tuple[Name, Expr, Expr], matrix: tuple[Name, Expr, Expr],
        to: Expr, step: Expr,
    ) -> None:  # fmt: skip
        """A row of results. Operands are (pointer, first element, distance of the steps). A row that is alone has two
        sums, for even and odd steps, so that fewer additions wait for each other."""
        writer, k = self.writer, self.gemm.k
        width = length if self.prepared is None else self.prepared.width
        sums = 2 if rows == 1 and k >= 4 else 1
        totals = [writer.local_array(f"row{s}", width, memory_type(self.element)) for s in range(sums)]

        def add(places: list[tuple[Name, Expr]]) -> None:
            x, at_x, x_step = vector
            y, at_y, y_step = matrix
            factors = [writer.assign(f"factor{n}", x[at_x + times(at, x_step)]) for n, (_, at) in enumerate(places)]
            with writer.loop("j", width) as j:
                for factor, (total, at) in zip(factors, places, strict=True):
                    writer.store(total, j, self._plus(total[j], factor, y[at_y + times(at, y_step) + j]))

        with writer.loop("j", width) as j:
            for total in totals:
                writer.store(total, j, _zero(self.element))
        with writer.loop("k", *(() if sums == 1 else (0,)), self.size(k - k % sums), step=sums) as at:
            add([(total, at + n) for n, total in enumerate(totals)])
        if k % sums:
            add([(totals[0], self.size(k - 1))])
        with writer.loop("j", length) as j:
            value: Expr = totals[0][j]
            if sums > 1:
                value = sum_of(value, totals[1][j])
            writer.store(self.c, to + times(j, step), value)

    def _long_rows(self, at_a: Expr, at_b: Expr, at_c: Expr) -> None:
        """Rows that are added up where they will be."""
        writer, gemm = self.writer, self.gemm
        n = self.size(gemm.n)
        with writer.loop("i", *self._rows()) as i:
            row = at_c + times(i, self.c_row)
            with writer.loop("j", n) as j:
                writer.store(self.c, row + j, _zero(self.element))
            with writer.loop("k", self.size(gemm.k)) as k:
                factor = writer.assign("factor", self.a[at_a + times(i, self.a_row) + times(k, self.a_step)])
                with writer.loop("j", n) as j:
                    y = self.b[at_b + times(k, self.b_step) + j]
                    writer.store(self.c, row + j, self._plus(self.c[row + j], factor, y))

    def _sums(self, at_a: Expr, at_b: Expr, at_c: Expr) -> None:
        """One result after the other."""
        writer, gemm = self.writer, self.gemm
        with writer.loop("i", *self._rows()) as i, writer.loop("j", self.size(gemm.n)) as j:
            total = writer.assign("total", _zero(self.element))
            with writer.loop("k", self.size(gemm.k)) as k:
                x = self.a[at_a + times(i, self.a_row) + times(k, self.a_step)]
                y = self.b[at_b + times(k, self.b_step) + times(j, self.b_column)]
                writer.assign(total, call("reduce_add", total, product_of(x, y)))
            writer.store(self.c, at_c + times(i, self.c_row) + j, total)
