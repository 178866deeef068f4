"""Ops that run computations: call, while, conditional.

Source: XLA's ShapeInference::InferCallShape, InferWhileShape, InferConditionalShape.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..attributes import CallAttributes, ConditionalAttributes, ScanAttributes, WhileAttributes
from ..element_type import ElementType
from ..opcode import Opcode
from ..shape import Shape
from .checks import fail, not_checked, require_signature
from .spec import OpSpec, Trait


def _call_rule(operands: Sequence[Shape], attributes: CallAttributes, declared: Shape | None) -> Shape:
    """c1: the computation's parameters have the operands' types."""
    require_signature(Opcode.CALL, operands, attributes.to_apply, operands, 1)
    return attributes.to_apply.root.shape


def _while_rule(operands: Sequence[Shape], attributes: WhileAttributes, declared: Shape | None) -> Shape:
    """c1: condition and body take the operand; c2: the condition returns pred[]; c3: the body returns the operand's
    type."""
    state, condition, body = operands[0], attributes.condition, attributes.body
    require_signature(Opcode.WHILE, operands, condition, operands, 1)
    require_signature(Opcode.WHILE, operands, body, operands, 1)
    if condition.root.shape.element_type is not ElementType.PRED or condition.root.shape.dimensions:
        fail(Opcode.WHILE, operands, f"condition {condition.name} returns {condition.root.shape}, not pred[]", 2)
    if not body.root.shape.compatible(state):
        fail(Opcode.WHILE, operands, f"body {body.name} returns {body.root.shape}, not {state}", 3)
    return state


def _conditional_rule(operands: Sequence[Shape], attributes: ConditionalAttributes, declared: Shape | None) -> Shape:
    """Operands: the index, then one operand a branch.

    c1: the index is pred[] or s32[]; c2: there is a branch, and exactly two for pred[]; c3: there is one operand a
    branch; c4: each branch takes its operand; c5: all branches return one type.
    """
    branches = attributes.branch_computations
    if not operands or operands[0].dimensions or operands[0].element_type not in (ElementType.PRED, ElementType.S32):
        fail(Opcode.CONDITIONAL, operands, "the first operand must be pred[] or s32[]", 1)
    if not branches or (operands[0].element_type is ElementType.PRED and len(branches) != 2):
        fail(Opcode.CONDITIONAL, operands, f"{len(branches)} branches do not fit the index", 2)
    if len(operands) != len(branches) + 1:
        fail(Opcode.CONDITIONAL, operands, f"{len(branches)} branches need as many operands after the index", 3)
    result = branches[0].root.shape
    for branch, operand in zip(branches, operands[1:]):
        require_signature(Opcode.CONDITIONAL, operands, branch, [operand], 4)
        if not branch.root.shape.compatible(result):
            why = f"branch {branch.name} returns {branch.root.shape}, branch {branches[0].name} {result}"
            fail(Opcode.CONDITIONAL, operands, why, 5)
    return result


_FAMILY = "control_flow"

SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.CALL, _FAMILY, None, CallAttributes, _call_rule, Trait.CONTROL_FLOW),
    OpSpec(Opcode.CONDITIONAL, _FAMILY, None, ConditionalAttributes, _conditional_rule, Trait.CONTROL_FLOW),
    OpSpec(Opcode.WHILE, _FAMILY, 1, WhileAttributes, _while_rule, Trait.CONTROL_FLOW),
    OpSpec(Opcode.SCAN, "control_flow", None, ScanAttributes, not_checked),
)
