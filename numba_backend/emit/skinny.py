"""Products of a large matrix and a few vectors, as kernels: they read the matrix once, at the speed of memory.

BLAS copies the matrix into blocks first, which takes several times as long as the products themselves. Here the large
matrix is the *long* operand, the others are *few* vectors. Where the long operand's rows lie along the sum, two or more
rows at a time are multiplied with all vectors, of which a block is copied side by side::

    out[lo : hi, :] = 0                                          for j0 in range(lo, hi, 512):
    for k0 in range(0, k, 512):                                      sums0[...], sums1[...] = 0
        deep = minimum(512, k - k0)                                  for p in range(0, whole, 4):
        few[q * 512 + p] = y[q, k0 + p]                                  factor... = y[q, p], ..., y[q, p + 3]
        for i in range(lo, whole, 4):                                    for j in range(wide):
            for p in range(deep):                                            sums0[j] += factor... * x[p..p + 3, j0 + j]
                total0_0 += x[i, k0 + p] * few[p]                            sums1[j] += ...
                total0_1 += x[i, k0 + p] * few[512 + p]              out[q, j0 + j] = sums[q][j]
                ...
            out[i, q] += total...

Where its rows lie along the result, as on the right, four of them at a time are added to the sums of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ..loops.expressions import ZERO, Expr, Name, Number, as_expr, call, times
from ..loops.statements import KernelParameter, PointerParameter, SizeParameter
from ..loops.typing import pointer_to
from ..loops.writer import Writer, cast
from .kernel import HI, LO, EmittedKernel, memory_type, program_of

MOST_VECTORS = 8
"""More vectors than this are a matrix."""

_BLOCK, _BLOCKS = 1024, 4096
"""The elements of a block of one vector, and of all: those of f32 take half of a first-level cache."""
_SUMS = 24
"""Sums in registers, of which AVX-512 has 32; with fewer registers LLVM keeps some of these in memory."""
_MOST_ROWS = 4


@dataclass(frozen=True, slots=True)
class Skinny:
    """``out[i, q] = sum over p of long[i, p] * few[p, q]``, in elements of one type."""

    element: ElementType
    length: int
    """The number of results for each vector."""
    depth: int
    """The number of products in a sum."""
    vectors: int
    long_operand: int
    long_strides: tuple[int, int]
    """Between neighbouring i, and neighbouring p; one of them is 1."""
    few_strides: tuple[int, int]
    """Between neighbouring p, and neighbouring q."""
    out_strides: tuple[int, int]
    """Between neighbouring i, and neighbouring q."""

    @property
    def along_sum(self) -> bool:
        """True if the long operand's rows lie along the sum."""
        return self.long_strides[1] == 1


def emit_skinny(product: Skinny) -> EmittedKernel:
    """The kernel of such a product; `lo, hi` is a range of i."""
    return _Emitter(product).emit()


class _Emitter:
    def __init__(self, product: Skinny) -> None:
        self.product = product
        self.writer = Writer()
        self.sizes: list[SizeParameter] = []
        self.kind = memory_type(product.element)
        number = product.long_operand
        names = [Name(f"x{operand}", pointer_to(self.kind)) for operand in (0, 1)]
        self.long, self.few = names[number], names[1 - number]
        self.out = Name("out", pointer_to(self.kind))
        self.k = self._size(product.depth, "k")
        self.long_row, self.long_step = (self._stride(s, f"long{n}") for n, s in enumerate(product.long_strides))
        self.few_step, self.few_row = (self._stride(s, f"few{n}") for n, s in enumerate(product.few_strides))
        self.out_row, self.out_column = (self._stride(s, f"out{n}") for n, s in enumerate(product.out_strides))
        self.block = min(_BLOCK, _BLOCKS // product.vectors)

    def _size(self, value: int, name: str) -> Expr:
        self.sizes.append(SizeParameter(name, value))
        return Name(name)

    def _stride(self, value: int, name: str) -> Expr:
        return Number(1) if value == 1 else self._size(value, name)

    def emit(self) -> EmittedKernel:
        product = self.product
        if product.along_sum:
            self._dots()
        else:
            self._columns()
        parameters: tuple[KernelParameter, ...] = (
            PointerParameter("x0", product.element, 0, None), PointerParameter("x1", product.element, 1, None),
            PointerParameter("out", product.element, None, 0), *self.sizes,
        )  # fmt: skip
        width = product.element.byte_width
        cost = product.depth * width * (0.04 + 0.004 * product.vectors)
        name = "product_of_rows" if product.along_sum else "product_of_columns"
        least = 1 if product.along_sum else 64
        return EmittedKernel(
            program_of(name, parameters, self.writer), parameters, product.length, max(cost, 0.5), least=least
        )

    def _zero(self) -> Expr:
        return cast(self.kind, 0)

    def _dots(self) -> None:
        product, writer = self.product, self.writer
        rows = max(1, min(_MOST_ROWS, _SUMS // product.vectors))
        few = writer.local_array("few", product.vectors * self.block, self.kind)
        with writer.loop("i", LO, HI) as i:
            for q in range(product.vectors):
                writer.store(self.out, times(i, self.out_row) + times(Number(q), self.out_column), self._zero())
        with writer.loop("k0", 0, self.k, step=self.block) as k0:
            deep = writer.assign("deep", call("minimum", Number(self.block), self.k - k0))
            for q in range(product.vectors):
                with writer.loop("p", deep) as p:
                    at = times(k0 + p, self.few_step) + times(Number(q), self.few_row)
                    writer.store(few, p + q * self.block, self.few[at])
            whole = writer.assign("whole", LO + (HI - LO) // Number(rows) * Number(rows))
            with writer.loop("i", LO, whole, step=rows) as i:
                self._tile(i, rows, k0, deep, few)
            if rows > 1:
                with writer.loop("i", whole, HI) as i:
                    self._tile(i, 1, k0, deep, few)

    def _tile(self, i: Name, rows: int, k0: Name, deep: Name, few: Name) -> None:
        """Some rows of the result: all sums of a block side by side."""
        writer, vectors = self.writer, self.product.vectors
        at = writer.assign("at", times(i, self.long_row) + k0)
        totals = [[writer.assign(f"total{r}_{q}", self._zero()) for q in range(vectors)] for r in range(rows)]
        with writer.loop("p", deep) as p:
            factors = [writer.assign(f"factor{q}", few[p + q * self.block]) for q in range(vectors)]
            for r, row in enumerate(totals):
                x = writer.assign(f"row{r}", self.long[at + times(Number(r), self.long_row) + p])
                for total, factor in zip(row, factors, strict=True):
                    writer.assign(total, call("reduce_add", total, as_expr(x) * factor))
        to = writer.assign("to", times(i, self.out_row))
        places = [
            (to + times(Number(r), self.out_row) + times(Number(q), self.out_column), total)
            for r, row in enumerate(totals)
            for q, total in enumerate(row)
        ]
        for place, total in places:
            writer.store(self.out, place, self.out[place] + total)

    def _columns(self) -> None:
        product, writer = self.product, self.writer
        rows = _MOST_ROWS
        sums = [writer.local_array(f"sums{q}", self.block, self.kind) for q in range(product.vectors)]
        with writer.loop("j0", LO, HI, step=self.block) as j0:
            wide = writer.assign("wide", call("minimum", Number(self.block), HI - j0))
            with writer.loop("j", wide) as j:
                for total in sums:
                    writer.store(total, j, self._zero())
            whole = writer.assign("whole", self.k // Number(rows) * Number(rows))
            with writer.loop("p", ZERO, whole, step=rows) as p:
                self._rank(p, rows, j0, wide, sums)
            with writer.loop("p", whole, self.k) as p:
                self._rank(p, 1, j0, wide, sums)
            for q, total in enumerate(sums):
                with writer.loop("j", wide) as j:
                    place = times(j0 + j, self.out_row) + times(Number(q), self.out_column)
                    writer.store(self.out, place, total[j])

    def _rank(self, p: Name, rows: int, j0: Name, wide: Name, sums: list[Name]) -> None:
        """Some products of each sum of a block."""
        writer = self.writer
        at = writer.assign("at", times(p, self.long_step) + j0)
        factors = [
            [
                writer.assign(
                    f"factor{q}_{r}", self.few[times(p + r, self.few_step) + times(Number(q), self.few_row)]
                )
                for r in range(rows)
            ]
            for q in range(len(sums))
        ]
        with writer.loop("j", wide) as j:
            xs = [writer.assign(f"row{r}", self.long[at + times(Number(r), self.long_step) + j]) for r in range(rows)]
            for total, row in zip(sums, factors, strict=True):
                value: Expr = total[j]
                for factor, x in zip(row, xs, strict=True):
                    value = value + as_expr(factor) * x
                writer.store(total, j, value)
