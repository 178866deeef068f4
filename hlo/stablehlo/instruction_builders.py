"""Builders of the instructions that the rules make besides the operation itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import make_computation, make_constant, make_instruction, make_parameter
from ..element_type import ElementType
from ..instruction import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops.elementwise import CompareAttributes, ComparisonDirection
from ..ops.movement import BroadcastAttributes, TransposeAttributes
from ..shape import Shape
from .scope import Scope


def combination(opcode: Opcode, element: ElementType) -> HloComputation:
    """The computation that is one op on two elements."""
    shape = Shape.array(element)
    parameters = [make_parameter(k, shape) for k in range(2)]
    return make_computation(opcode.value, make_instruction(opcode, parameters), parameters)


def splat(scope: Scope, value: object, shape: Shape) -> HloInstruction:
    """An array with one value everywhere."""
    scalar = scope.add(make_constant(np.asarray(value, shape.element.dtype)))
    if not shape.dimensions:
        return scalar
    return scope.op(Opcode.BROADCAST, (scalar,), BroadcastAttributes(()), Shape.array(shape.element, shape.dimensions))


def compare(scope: Scope, direction: ComparisonDirection, a: HloInstruction, b: HloInstruction) -> HloInstruction:
    """Booleans."""
    return scope.op(Opcode.COMPARE, (a, b), CompareAttributes(direction))


def reshape(scope: Scope, operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    """The operand with other sizes; itself if they are its own."""
    if operand.shape.dimensions == tuple(dimensions):
        return operand
    return scope.op(Opcode.RESHAPE, (operand,), shape=Shape.array(operand.shape.element, dimensions))


def transpose(scope: Scope, operand: HloInstruction, order: Sequence[int]) -> HloInstruction:
    """The operand with its dimensions in another order."""
    return scope.op(Opcode.TRANSPOSE, (operand,), TransposeAttributes(tuple(order)))


def convert(scope: Scope, operand: HloInstruction, element: ElementType) -> HloInstruction:
    """The operand in another type."""
    if operand.shape.element is element:
        return operand
    return scope.op(Opcode.CONVERT, (operand,), shape=Shape.array(element, operand.shape.dimensions))
