"""Small matrix products as loop programs, for native loops: a call of BLAS costs more than they do.

The innermost loop goes along the columns of the result if rhs lies that way, else along the sum::

    for i in range(4):                          for i in range(8):
        for j in range(4):                          acc0 = float32(0)
            out[i * 4 + j] = float32(0)             for k in range(8):
        for k in range(4):                              acc0 = reduce_add(acc0, x0[i * 8 + k] * x1[k])
            v0 = x0[i * 4 + k]                      out[i] = acc0
            for j in range(4):
                out[i * 4 + j] += v0 * x1[...]
"""

from __future__ import annotations

from contextlib import ExitStack

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ..dot import gemm_of
from ..emit.kernel import EmittedKernel, memory_type, program_of
from ..loops.expressions import ZERO, Expr, Name, Number, as_expr, call, times
from ..loops.statements import KernelParameter, PointerParameter, SizeParameter
from ..loops.typing import pointer_to
from ..loops.writer import Writer, cast

SUPPORTED = frozenset((ElementType.F32, ElementType.F64))
"""Element types of products that native loops compute."""

MOST_WORK = 1 << 12
"""Multiplications of a product in a native loop; larger ones are left to BLAS, whose loops are better."""
MOST_VECTOR_WORK = 1 << 15
"""The same for a matrix and a vector, where BLAS has no advantage beyond its call."""

LITERAL = 64


def work_of(dot: HloInstruction) -> tuple[int, bool]:
    """(the number of multiplications, whether one operand is a vector)."""
    gemm = gemm_of(dot)
    count = gemm.m * gemm.n * gemm.k
    for dimension in gemm.batch:
        count *= dimension.count
    return count, gemm.m == 1 or gemm.n == 1


def emit_product(dot: HloInstruction) -> EmittedKernel:
    """The kernel of a product. Operands and result are dense; BLAS could take them too."""
    gemm = gemm_of(dot)
    element = dot.shape.element
    kind = memory_type(element)
    writer = Writer()
    sizes: list[SizeParameter] = []

    def size(value: int) -> Expr:
        if value <= LITERAL:
            return Number(value)
        sizes.append(SizeParameter(f"n{len(sizes)}", value))
        return Name(sizes[-1].name)

    a, b, c = (Name(name, pointer_to(kind)) for name in ("x0", "x1", "out"))
    m, n, k = size(gemm.m), size(gemm.n), size(gemm.k)
    a_row, a_step = (Number(1), size(gemm.lda)) if gemm.transpose_a == "T" else (size(gemm.lda), Number(1))
    b_step, b_column = (Number(1), size(gemm.ldb)) if gemm.transpose_b == "T" else (size(gemm.ldb), Number(1))
    c_row = size(gemm.ldc)
    at_a: Expr = ZERO
    at_b: Expr = ZERO
    at_c: Expr = ZERO
    with ExitStack() as stack:
        for number, dimension in enumerate(gemm.batch):
            index = stack.enter_context(writer.loop(f"b{number}", size(dimension.count)))
            at_a = at_a + times(index, size(dimension.a_stride))
            at_b = at_b + times(index, size(dimension.b_stride))
            at_c = at_c + times(index, size(dimension.c_stride))
        zero = cast(kind, 0)
        if gemm.n > 1 and gemm.transpose_b == "N":
            with writer.loop("i", m) as i:
                with writer.loop("j", n) as j:
                    writer.store(c, at_c + times(i, c_row) + j, zero)
                with writer.loop("k", k) as step:
                    factor = writer.assign("v", a[at_a + times(i, a_row) + times(step, a_step)])
                    with writer.loop("j", n) as j:
                        at = at_c + times(i, c_row) + j
                        product = as_expr(factor) * b[at_b + times(step, b_step) + j]
                        writer.store(c, at, c[at] + product)
        else:
            with writer.loop("i", m) as i, writer.loop("j", n) as j:
                total = writer.assign("acc", zero)
                with writer.loop("k", k) as step:
                    x = a[at_a + times(i, a_row) + times(step, a_step)]
                    y = b[at_b + times(step, b_step) + times(j, b_column)]
                    writer.assign("acc", call("reduce_add", total, x * y))
                writer.store(c, at_c + times(i, c_row) + j, total)
    parameters: tuple[KernelParameter, ...] = (
        PointerParameter("x0", element, 0, None), PointerParameter("x1", element, 1, None),
        PointerParameter("out", element, None, 0), *sizes,
    )  # fmt: skip
    work, _ = work_of(dot)
    return EmittedKernel(program_of("product", parameters, writer), parameters, 1, 5.0 + 0.3 * work)
