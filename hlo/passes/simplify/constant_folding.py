"""constant-folding: the evaluator computes small operations on constants.

Nothing becomes larger: broadcasts and iotas stay, so no big array enters the program. Beside another constant, a
broadcast constant counts as a constant. Elementary functions stay, for the kernels to compute: a constant must have the
bits that the same number has as an argument. Source: XLA's HloConstantFolding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...analyses.observed_literals import computed
from ...builder import make_constant
from ...effects import has_side_effect
from ...elementary import FUNCTIONS, is_function
from ...ir import HloInstruction, HloModule
from ...literal import Literal
from ...opcode import Opcode
from ...ops.collective import COLLECTIVES
from ...support.loading import load
from ...support.records import dataclass
from ..patterns import splat_literal
from ..rewrite import map_computations, rewrite_computation

NOT_FOLDED = COLLECTIVES | frozenset(
    {
        Opcode.BITCAST,  # its meaning depends on layouts
        Opcode.BROADCAST,
        Opcode.CALL,
        Opcode.CONDITIONAL,
        Opcode.CONSTANT,
        Opcode.COPY,
        Opcode.CUSTOM_CALL,  # may fail, or take long
        Opcode.FUSION,
        Opcode.GET_TUPLE_ELEMENT,
        Opcode.IOTA,
        Opcode.OPT_BARRIER,
        Opcode.PARAMETER,
        Opcode.TUPLE,
        Opcode.WHILE,
    }
)


@dataclass(frozen=True, slots=True)
class ConstantFolding:
    """Evaluates instructions with constant operands, up to `max_elements` in the result and `max_operand_elements` in
    all operands together."""

    name: str = "constant-folding"
    max_elements: int = 1024
    max_operand_elements: int = 1 << 14

    def __call__(self, module: HloModule) -> HloModule:
        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            return self.folded(moved)

        return map_computations(module, lambda computation: rewrite_computation(computation, visit))

    def folded(self, instruction: HloInstruction) -> HloInstruction:
        """The constant that is equal to `instruction`, or `instruction`."""
        operands = instruction.operands
        if not operands or instruction.opcode in NOT_FOLDED or instruction.shape.is_tuple:
            return instruction
        if not all(map(_is_known, operands)) or _is_function(instruction):
            return instruction
        sizes = [o.shape.num_elements for o in operands if o.opcode is Opcode.CONSTANT]
        if not sizes or (len(sizes) < len(operands) and instruction.shape.num_elements > max(sizes)):
            return instruction  # it would be larger than each of its operands' constants
        if instruction.shape.num_elements > self.max_elements:
            return instruction
        if sum(o.shape.num_elements for o in operands) > self.max_operand_elements:
            return instruction
        if has_side_effect(instruction):
            return instruction
        return make_constant(_folded_literal(instruction))


def _folded_literal(instruction: HloInstruction) -> Literal:
    """The value of an instruction on constants. That of an observed scalar is observed, too."""

    def folded(*arrays: Any) -> np.ndarray[Any, Any]:
        evaluate = _evaluator().evaluate_op
        return np.asarray(evaluate(instruction.opcode, arrays, instruction.attributes, instruction.shape))

    operands = instruction.operands
    if any(i.shape.dimensions for i in (instruction, *operands)):
        return Literal(folded(*map(_value, operands)))
    literals: list[Any] = [splat_literal(operand) for operand in operands]
    return computed(folded, literals)


def _evaluator() -> Any:
    """Imported when something is folded: many first programs of a process have nothing."""
    return load("...evaluator", __package__)


def _is_function(instruction: HloInstruction) -> bool:
    opcode, source = instruction.opcode, instruction.operands[0].shape
    return opcode in FUNCTIONS and is_function(opcode, source.element.dtype)


def _is_known(operand: HloInstruction) -> bool:
    """A constant, or the broadcast of one."""
    if operand.opcode is Opcode.BROADCAST:
        operand = operand.operands[0]
    return operand.opcode is Opcode.CONSTANT


def _value(operand: HloInstruction) -> np.ndarray[Any, Any]:
    if operand.opcode is Opcode.CONSTANT:
        array: np.ndarray[Any, Any] = operand.attributes.literal.array
        return array
    source = operand.operands[0].attributes.literal.array
    return np.asarray(_evaluator().evaluate_op(Opcode.BROADCAST, [source], operand.attributes, operand.shape))
