"""Copy operands of products in native loops before they begin: operands that the loop does not change, along memory."""

from __future__ import annotations

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.support.records import dataclass
from ..dot import gemm_of
from ..emit.product import zero_of
from ..emitted_kernel import EmittedKernel, memory_type, program_of
from ..loops.expressions import Name, Number, times
from ..loops.statements import PointerParameter
from ..loops.typing import pointer_to
from ..loops.writer import Writer
from ..policy.small_products import LITERAL

LONG_ROW = 12
"""A row of results from this length on is padded to whole vector registers, where its matrix can be: LLVM leaves others
in memory."""


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
                    writer.store(out, times(k, Number(self.width)) + j, zero_of(element))
        parameters = (PointerParameter("x", element, 0, None), PointerParameter("out", element, None, 0))
        return EmittedKernel(program_of("transposed", parameters, writer), parameters, 1)


def preparation_of(dot: HloInstruction) -> Preparation | None:
    """The operand that should be copied before the loop, if it does not change; None if that does not pay."""
    if dot.shape.element.is_integral:
        return None
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
