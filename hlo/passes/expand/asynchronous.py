"""Expansion of tokens, of pairs of start and done, and of sizes as values: nothing runs between start and done here.

The call inliner inlines async-start; the other parts of such pairs only take tuples apart. Side effects keep the order
of the program, so nothing has to wait for tokens.
"""

from __future__ import annotations

import numpy as np

from ...builder import make_constant, make_get_tuple_element, make_instruction, make_tuple
from ...effects import has_side_effect
from ...errors import UnsupportedError
from ...ir import HloComputation, HloInstruction, post_order
from ...opcode import Opcode
from ...ops.collective import COLLECTIVES
from ...support.loading import load
from ..rules import rule


def after_all(instruction: HloInstruction) -> HloInstruction | None:
    """A token without dependences."""
    return make_instruction(Opcode.AFTER_ALL) if instruction.operands else None


def first_operand(instruction: HloInstruction) -> HloInstruction:
    """add-dependency, async-update, domain."""
    return instruction.operands[0]


def async_done(done: HloInstruction) -> HloInstruction:
    """The result in ((operands), result, ...)."""
    return make_get_tuple_element(done.operands[0], 1)


def copy_start(start: HloInstruction) -> HloInstruction:
    """(copy, operand, context): buffer assignment makes the copies that are needed."""
    (operand,) = start.operands
    return make_tuple([operand, operand, make_constant(np.uint32(0))])


def copy_done(done: HloInstruction) -> HloInstruction:
    """The copy in (copy, operand, context)."""
    return make_get_tuple_element(done.operands[0], 0)


def get_dimension_size(instruction: HloInstruction) -> HloInstruction:
    """The static size, as a constant."""
    size = instruction.operands[0].shape.dimensions[instruction.attributes.dimension]
    return make_constant(np.int32(size))


def set_dimension_size(instruction: HloInstruction) -> HloInstruction:
    """The operand if the size is constant and full; otherwise UnsupportedError: shapes are static."""
    operand, size = instruction.operands
    static = operand.shape.dimensions[instruction.attributes.dimension]
    _require_size(instruction, size, static)
    return operand


def dynamic_reshape(instruction: HloInstruction) -> HloInstruction:
    """A reshape if the sizes are constants and equal to the sizes of the result's type; otherwise UnsupportedError."""
    operand, *sizes = instruction.operands
    for size, static in zip(sizes, instruction.shape.dimensions, strict=True):
        _require_size(instruction, size, static)
    return make_instruction(Opcode.RESHAPE, (operand,), shape=instruction.shape)


def _require_size(instruction: HloInstruction, size: HloInstruction, static: int) -> None:
    what = f"{instruction.opcode.value} {instruction.name} of {instruction.shape}"
    given = _constant_value(size)
    if given is None:
        raise UnsupportedError(f"{what}: a size that is not a constant is not supported, shapes are static")
    if given != static:
        raise UnsupportedError(f"{what} to size {given}: only the full size, {static}, is supported")


def _constant_value(size: HloInstruction) -> int | None:
    """The value of a scalar that is computed from a few constants only."""
    order: dict[HloInstruction, None] = {}
    stack = [size]
    while stack:
        node = stack.pop()
        if len(order) > _MAX_STEPS or not node.shape.is_scalar or (not node.operands and node.opcode is not _CONSTANT):
            return None
        if node.called_computations() or has_side_effect(node) or node.opcode in COLLECTIVES:
            return None
        order[node] = None
        stack.extend(node.operands)
    value = load("...evaluator", __package__).evaluate_computation(HloComputation("size", post_order(size), size), ())
    return int(value)


_CONSTANT = Opcode.CONSTANT
_MAX_STEPS = 64


ASYNCHRONOUS = (
    rule(first_operand, Opcode.ADD_DEPENDENCY, Opcode.ASYNC_UPDATE, Opcode.DOMAIN),
    rule(after_all, Opcode.AFTER_ALL),
    rule(async_done, Opcode.ASYNC_DONE),
    rule(copy_done, Opcode.COPY_DONE),
    rule(copy_start, Opcode.COPY_START),
    rule(dynamic_reshape, Opcode.DYNAMIC_RESHAPE),
    rule(get_dimension_size, Opcode.GET_DIMENSION_SIZE),
    rule(set_dimension_size, Opcode.SET_DIMENSION_SIZE),
)
