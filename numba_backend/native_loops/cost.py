"""Which loops are native: the cost model.

A native loop runs on one thread and calls no BLAS; what it saves is the way through the program's table, some 10 ns for
each row, and the way of the loop's state through memory. So a loop is native if nothing in its body is large enough for
a second thread or for BLAS to pay, and if its text is not too long for the compiler. This file has all the numbers.
"""

from __future__ import annotations

from ...hlo.buffers.values import is_alias
from ...hlo.effects import has_side_effect
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, has_trait
from ..dot import is_gemm
from .products import MOST_VECTOR_WORK, MOST_WORK, SUPPORTED, work_of

MOST_NANOSECONDS = 40_000.0
"""A kernel of this many estimated nanoseconds is shared by threads, if it is a row of its own."""

MOST_INSTRUCTIONS = 1_200
"""Instructions in a loop's kernels, all together: beyond, compiling takes longer than most programs run."""

WITH_KERNELS = frozenset((Opcode.SCATTER,))
"""Other instructions whose rows are kernels, and nothing else."""

_CONTROL = frozenset((Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL))


def is_native(loop: HloInstruction) -> bool:
    """True for a `while` that should be one kernel."""
    budget = [MOST_INSTRUCTIONS]
    return all(_is_cheap(c, budget) for c in loop.called_computations())


def _is_cheap(computation: HloComputation, budget: list[int]) -> bool:
    return all(_may_join(i, budget) for i in computation.instructions)


def _may_join(instruction: HloInstruction, budget: list[int]) -> bool:
    opcode = instruction.opcode
    if any(not s.array_layout.is_row_major for s in instruction.shape.leaves() if s.is_array):
        return False
    if opcode in (Opcode.PARAMETER, Opcode.CONSTANT):
        return instruction.shape.is_array or instruction.shape.is_tuple
    if is_alias(instruction):
        return opcode is not Opcode.AFTER_ALL
    if opcode in _CONTROL:
        return all(_is_cheap(c, budget) for c in instruction.called_computations())
    if has_side_effect(instruction):
        return False
    if opcode is Opcode.FUSION:
        body = instruction.attributes.calls
        budget[0] -= len(body.instructions)
        return budget[0] >= 0 and nanoseconds(body) < MOST_NANOSECONDS
    if opcode is Opcode.DOT:
        if instruction.shape.element not in SUPPORTED or not is_gemm(instruction):
            return False
        budget[0] -= 10
        work, with_vector = work_of(instruction)
        return work <= (MOST_VECTOR_WORK if with_vector else MOST_WORK)
    if opcode in WITH_KERNELS:
        budget[0] -= 20
        return instruction.operands[-1].shape.num_elements * 2.0 < MOST_NANOSECONDS
    return False


def nanoseconds(body: HloComputation) -> float:
    """The time of a fused computation on one thread, estimated."""
    total = 0.0
    for instruction in body.instructions:
        if instruction.opcode in (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT):
            continue
        if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            total += 0.2 * instruction.operands[1].shape.num_elements
            continue
        count = sum(leaf.num_elements for leaf in instruction.shape.leaves())
        if instruction.opcode is Opcode.REDUCE:
            count = instruction.operands[0].shape.num_elements
        total += count * (0.6 if has_trait(instruction.opcode, Trait.EXPENSIVE) else 0.05)
    return total
