"""Expansions of custom calls that are other ops under a name: passes then see those ops.

A target that only annotates its operand becomes the operand; unwritten memory becomes zeros. A target that was
registered keeps its call.
"""

from __future__ import annotations

import numpy as np

from ...builder import make_constant, make_instruction, make_tuple
from ...custom_call_targets.call import Call
from ...custom_call_targets.ordering import topk_attributes
from ...custom_call_targets.table import IDENTITIES, ZEROED
from ...custom_calls import bind_custom_call, call_of, registered_custom_calls
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.movement import BroadcastAttributes

_TOPK = ("TopK", "mhlo.topk")


def annotation(call: HloInstruction) -> HloInstruction | None:
    """`Sharding`, `LayoutConstraint` and their kin: the operands."""
    target = call.attributes.custom_call_target
    if target not in IDENTITIES or target in registered_custom_calls():
        return None
    bind_custom_call(_call(call))
    if call.shape.is_tuple and not call.shape.elements:
        return make_tuple([])
    if len(call.operands) == 1 and call.shape.compatible(call.operands[0].shape):
        return call.operands[0]
    return make_tuple(call.operands)


def unwritten_memory(call: HloInstruction) -> HloInstruction | None:
    """`AllocateBuffer`: zeros."""
    target = call.attributes.custom_call_target
    if target not in ZEROED or target in registered_custom_calls():
        return None
    bind_custom_call(_call(call))
    zero = make_constant(np.zeros((), call.shape.element.dtype))
    shape = call.shape.with_default_layout()
    return make_instruction(Opcode.BROADCAST, (zero,), BroadcastAttributes(()), shape)


def topk(call: HloInstruction) -> HloInstruction | None:
    """`TopK`: the op topk."""
    target = call.attributes.custom_call_target
    if target not in _TOPK or target in registered_custom_calls():
        return None
    return make_instruction(Opcode.TOPK, call.operands, topk_attributes(_call(call)))


def _call(instruction: HloInstruction) -> Call:
    return call_of(instruction.attributes, [o.shape for o in instruction.operands], instruction.shape)
