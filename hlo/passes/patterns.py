"""Questions that rewrite rules ask about instructions, and short forms for making new ones.

Only helpers that several rule files need belong here, and no rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..analyses.observed_literals import ObservedLiteral, computed
from ..builder import make_constant, make_instruction, make_tuple
from ..element_type import ElementType
from ..ir import HloComputation, HloInstruction
from ..literal import Literal
from ..opcode import Opcode
from ..ops.movement import BroadcastAttributes, TransposeAttributes
from ..shape import Shape

SIMPLE_REDUCERS = frozenset({Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR})


def splat_value(instruction: HloInstruction) -> Any:
    """The one value of all elements (a NumPy scalar) of a scalar constant or its broadcast; None for all others."""
    if instruction.opcode is Opcode.BROADCAST:
        instruction = instruction.operands[0]
    if instruction.opcode is Opcode.CONSTANT and not instruction.shape.dimensions:
        return instruction.attributes.literal.array[()]
    return None


def splat_literal(instruction: HloInstruction) -> Literal | None:
    """The literal that `splat_value` has its value from, without a look at the number."""
    if instruction.opcode is Opcode.BROADCAST:
        instruction = instruction.operands[0]
    if instruction.opcode is Opcode.CONSTANT and not instruction.shape.dimensions:
        literal: Literal = instruction.attributes.literal
        return literal
    return None


def is_true_of(literal: Literal, question: Callable[[Any], Any]) -> bool:
    """The answer to a question about the number of a scalar literal."""
    if type(literal) is ObservedLiteral:
        return literal.asked(question)
    return bool(question(literal.array))


_NEVER_ORDINARY = frozenset((0.0, 1.0, -1.0, float("inf"), float("-inf")))
"""Values that no observed literal has."""


def is_splat(instruction: HloInstruction, value: float) -> bool:
    """True when all elements are known to equal `value`; tells 0.0 from -0.0, in both parts of complex numbers."""
    literal = splat_literal(instruction)
    if literal is None or (type(literal) is ObservedLiteral and value in _NEVER_ORDINARY):
        return False
    found = literal.array[()]
    if found != value:
        return False
    if value != 0 or not instruction.shape.element.is_inexact:
        return True
    negative = bool(np.signbit(value))
    return bool(np.signbit(found.real)) == negative and (
        not instruction.shape.element.is_complex or bool(np.signbit(found.imag)) == negative
    )


def _is_negative_zero(value: Any) -> bool:
    return bool(value == 0 and np.signbit(value))


_NOT_NEGATIVE = frozenset({Opcode.ABS, Opcode.EXP, Opcode.LOGISTIC, Opcode.COSH, Opcode.IOTA})
_KEEPS_ELEMENTS = frozenset({Opcode.BROADCAST, Opcode.RESHAPE, Opcode.REVERSE, Opcode.SLICE, Opcode.TRANSPOSE})


def is_never_negative_zero(i: HloInstruction, depth: int = 6) -> bool:
    """True when no element of a real array can be -0.0, as far as up to `depth` operations before it show.

    For example sums from 0.0: with rounding to nearest, a sum is -0.0 only if both terms are.
    """
    if not i.shape.element.is_floating or i.opcode in _NOT_NEGATIVE:
        return not i.shape.element.is_complex
    literal = splat_literal(i)
    if literal is not None:
        return type(literal) is ObservedLiteral or not _is_negative_zero(literal.array)
    if not depth:
        return False
    if i.opcode in _KEEPS_ELEMENTS:
        return is_never_negative_zero(i.operands[0], depth - 1)
    match i.opcode:
        case Opcode.ADD:
            return any(is_never_negative_zero(o, depth - 1) for o in i.operands)
        case Opcode.MULTIPLY:
            return i.operands[0] is i.operands[1]
        case Opcode.SELECT:
            return all(is_never_negative_zero(o, depth - 1) for o in i.operands[1:])
        case Opcode.CONVERT:
            return i.operands[0].shape.element.is_integral or i.operands[0].shape.element is ElementType.PRED
        case Opcode.REDUCE:
            is_sum = reducer_opcode(i.attributes.to_apply) is Opcode.ADD
            return is_sum and len(i.operands) == 2 and is_never_negative_zero(i.operands[1], depth - 1)
        case _:
            return False


_KEEPS_SIGNS = frozenset({
    Opcode.ADD, Opcode.MULTIPLY, Opcode.DIVIDE, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.SQRT, Opcode.CONVERT,
})  # fmt: skip
"""No result has a sign where no operand has one."""


def is_never_negative(i: HloInstruction, depth: int = 6) -> bool:
    """True when no element of an array of floats is negative or -0.0, as far as up to `depth` operations before it
    show. It may be NaN. For example sums of squares."""
    if not i.shape.element.is_floating:
        return False
    if i.opcode in _NOT_NEGATIVE:
        return True
    literal = splat_literal(i)
    if literal is not None:
        return not is_true_of(literal, np.signbit)
    if not depth:
        return False

    def all_of(operands: Sequence[HloInstruction]) -> bool:
        return all(is_never_negative(o, depth - 1) for o in operands)

    match i.opcode:
        case Opcode.MULTIPLY if i.operands[0] is i.operands[1]:
            return True
        case Opcode.SELECT:
            return all_of(i.operands[1:])
        case Opcode.REDUCE:
            is_kept = reducer_opcode(i.attributes.to_apply) in _KEEPS_SIGNS
            return is_kept and len(i.operands) == 2 and all_of(i.operands)
        case _:
            return (i.opcode in _KEEPS_SIGNS or i.opcode in _KEEPS_ELEMENTS) and all_of(i.operands)


def is_integer_or_pred(instruction: HloInstruction) -> bool:
    return not instruction.shape.element.is_inexact


_PROGRESSIVE = frozenset({Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.CONVERT})


def is_progression(i: HloInstruction, depth: int = 4) -> bool:
    """True for an iota with sums, products and conversions of integers that is computed sooner than read: a range of
    numbers. Its elements may be floats in the end."""
    if i.opcode is Opcode.IOTA:
        return i.shape.element.is_integral
    if not depth or i.opcode not in _PROGRESSIVE:
        return False
    if i.opcode is Opcode.CONVERT:
        return is_progression(i.operands[0], depth - 1)
    known = [o for o in i.operands if splat_literal(o) is None]
    return len(known) == 1 and i.shape.element.is_integral and is_progression(known[0], depth - 1)


def make_splat(value: object, shape: Shape) -> HloInstruction:
    """`value` in every element: a scalar constant, broadcast unless `shape` is a scalar's."""
    scalar = make_constant(np.asarray(value).astype(shape.element.dtype))
    return broadcast(scalar, shape, ())


def computed_splat(literal: Literal, function: Callable[[Any], Any], shape: Shape) -> HloInstruction:
    """`function` of the number of a scalar literal of the same type in every element."""

    def of(value: Any) -> Any:
        return np.asarray(function(value[()])).astype(shape.element.dtype)

    return broadcast(make_constant(computed(of, [literal])), shape, ())


def make_zeros(shape: Shape) -> HloInstruction:
    """Zeros of any shape, tuples and tokens included."""
    if shape.is_token:
        return make_instruction(Opcode.AFTER_ALL)
    return make_tuple([make_zeros(s) for s in shape.elements]) if shape.is_tuple else make_splat(0, shape)


def broadcast(operand: HloInstruction, shape: Shape, dimensions: Sequence[int]) -> HloInstruction:
    """A broadcast to `shape`; the operand itself if that changes nothing."""
    if operand.shape.dimensions == shape.dimensions and tuple(dimensions) == tuple(range(shape.rank)):
        return operand
    return make_instruction(Opcode.BROADCAST, (operand,), BroadcastAttributes(tuple(dimensions)), shape)


def reshape(operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    """A reshape; the operand itself if that changes nothing."""
    if operand.shape.dimensions == tuple(dimensions):
        return operand
    return make_instruction(Opcode.RESHAPE, (operand,), shape=Shape.array(operand.shape.element, dimensions))


def transpose(operand: HloInstruction, dimensions: Sequence[int]) -> HloInstruction:
    """A transpose; the operand itself if that changes nothing."""
    if tuple(dimensions) == tuple(range(operand.shape.rank)):
        return operand
    return make_instruction(Opcode.TRANSPOSE, (operand,), TransposeAttributes(tuple(dimensions)))


def binary(opcode: Opcode, a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, (a, b))


def unary(opcode: Opcode, a: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, (a,))


def convert(operand: HloInstruction, element_type: ElementType) -> HloInstruction:
    """A conversion; the operand itself if it has that type."""
    if operand.shape.element_type is element_type:
        return operand
    return make_instruction(Opcode.CONVERT, (operand,), shape=operand.shape.with_element_type(element_type))


def reducer_opcode(computation: HloComputation) -> Opcode | None:
    """The commutative and associative op that a reducer of two scalars consists of, or None."""
    root = computation.root
    if root.opcode in SIMPLE_REDUCERS and len(computation.parameters) == 2:
        a, b = root.operands
        if a is not b and a.opcode is Opcode.PARAMETER and b.opcode is Opcode.PARAMETER:
            return root.opcode
    return None


def reducer_identity(opcode: Opcode, element_type: ElementType) -> Any:
    """The value e with op(e, x) = x for all x of a simple reducer (for sums of floats up to the sign of zero)."""
    if opcode in (Opcode.ADD, Opcode.OR):
        return element_type.dtype.type(0)
    if opcode is Opcode.MULTIPLY:
        return element_type.dtype.type(1)
    if opcode is Opcode.AND:
        return ~element_type.dtype.type(0)
    if element_type is ElementType.PRED:
        return np.bool_(opcode is Opcode.MINIMUM)
    if element_type.is_floating:
        return element_type.dtype.type(-np.inf if opcode is Opcode.MAXIMUM else np.inf)
    lowest, highest = element_type.limits
    return element_type.dtype.type(lowest if opcode is Opcode.MAXIMUM else highest)


def nontrivial_dimensions(dimensions: Sequence[int]) -> list[int]:
    """The numbers of the dimensions larger than 1 (0 counts as larger)."""
    return [d for d, size in enumerate(dimensions) if size != 1]


def degenerate_map(before: Sequence[int], after: Sequence[int]) -> list[int | None] | None:
    """For a reshape that only adds or removes dimensions of size 1: the position in `after` of each one of `before`.

    The position is None for a dimension of size 1 without counterpart. The result is None for any other reshape.
    Dimensions of size 1 are matched if both sides have one at the same position between larger ones.
    """
    if [s for s in before if s != 1] != [s for s in after if s != 1]:
        return None
    found: list[int | None] = []
    j = 0
    for size in before:
        if size == 1:
            if j < len(after) and after[j] == 1:
                found.append(j)
                j += 1
            else:
                found.append(None)
            continue
        while after[j] == 1:
            j += 1
        found.append(j)
        j += 1
    return found
