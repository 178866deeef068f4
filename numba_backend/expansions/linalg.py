"""Expansions of factorisations: f16 and bf16 are computed in f32 and rounded once, because LAPACK lacks these types."""

from __future__ import annotations

from ...hlo.builder import make_instruction
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.passes.patterns import convert

_HALF = (ElementType.F16, ElementType.BF16)


def half_in_f32(instruction: HloInstruction) -> HloInstruction | None:
    """cholesky or triangular-solve of f16 or bf16: the operands converted to f32, the result back."""
    element_type = instruction.shape.element
    if element_type not in _HALF:
        return None
    operands = [convert(operand, ElementType.F32) for operand in instruction.operands]
    return convert(make_instruction(instruction.opcode, operands, instruction.attributes), element_type)
