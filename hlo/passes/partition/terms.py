"""Results that devices make together: each has terms of a sum, or has reduced its part.

Which instructions can do that, how each device's term is made (in a type wide enough, with an init value that may enter
once for each device), and how terms are combined.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from ...builder import make_constant, make_instruction
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...shape import Shape
from ...support.loading import load
from ...support.value_tree import leaves_of
from ..patterns import broadcast, make_splat, reducer_identity, reducer_opcode, reshape
from ..simplify.reducers import binary_reducer


class Kind(Enum):
    """How the devices' results become one."""

    ADDED = "added"
    """By an all-reduce or a reduce-scatter with a simple operation."""
    GATHERED = "gathered"
    """All devices' results are gathered and reduced again, by the same computation."""


_IDEMPOTENT = frozenset({Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR})
_NARROW = frozenset({ElementType.F16, ElementType.BF16})


def kind_of(instruction: HloInstruction) -> Kind | None:
    """None: devices cannot share the instruction's summed factors."""
    match instruction.opcode:
        case Opcode.DOT | Opcode.CONVOLUTION if _is_rounded_at_the_end(instruction):
            return None
        case Opcode.DOT | Opcode.CONVOLUTION | Opcode.SCATTER:
            return Kind.ADDED if instruction.shape.is_array and _is_exact_enough(instruction.shape.element) else None
        case Opcode.REDUCE:
            if len(instruction.operands) == 2 and reducer_opcode(instruction.attributes.to_apply) is not None:
                return Kind.ADDED if _is_exact_enough(instruction.shape.element) else None
            return Kind.GATHERED if _init_may_repeat(instruction) else None
    return None


def _is_rounded_at_the_end(product: HloInstruction) -> bool:
    """True for sums of floats that become integers, or of numbers that become predicates: terms cannot."""
    result = product.shape.element
    operands = [o.shape.element for o in product.operands]
    if result is ElementType.PRED:
        return any(o is not ElementType.PRED for o in operands)
    return not result.is_inexact and any(o.is_inexact for o in operands)


def _is_exact_enough(element_type: ElementType) -> bool:
    """Sums in types of 8 bits and fewer would be rounded too early."""
    return not (element_type.is_floating and element_type.byte_width < 2)


def _init_may_repeat(reduce: HloInstruction) -> bool:
    """True if reducing the init values with themselves gives them: then they may enter once for each device."""
    inits = reduce.operands[len(reduce.operands) // 2 :]
    if any(i.opcode is not Opcode.CONSTANT for i in inits):
        return False
    values = [i.attributes.literal.array for i in inits]
    evaluate_computation = load("...evaluator", __package__).evaluate_computation
    found = list(leaves_of(evaluate_computation(reduce.attributes.to_apply, [*values, *values])))
    return all(np.array_equal(a, b) for a, b in zip(found, values, strict=True))


def reducer_of(instruction: HloInstruction, element_type: ElementType) -> HloComputation:
    """The reducer that combines the terms."""
    opcode: Opcode | None = Opcode.ADD
    if instruction.opcode is Opcode.REDUCE:
        opcode = reducer_opcode(instruction.attributes.to_apply)
    assert opcode is not None
    if element_type is ElementType.PRED:
        opcode = {Opcode.ADD: Opcode.OR, Opcode.MULTIPLY: Opcode.AND}.get(opcode, opcode)
    return binary_reducer(opcode, element_type)


def as_term(
    instruction: HloInstruction, operands: Sequence[HloInstruction], shape: Shape
) -> tuple[Sequence[HloInstruction], Shape]:
    """The operands and the type that a device makes its term with."""
    if instruction.opcode in (Opcode.DOT, Opcode.CONVOLUTION) and shape.element in _NARROW:
        return operands, shape.with_element_type(ElementType.F32)
    if instruction.opcode is Opcode.REDUCE and not _init_enters_terms(instruction):
        opcode = reducer_opcode(instruction.attributes.to_apply)
        assert opcode is not None
        init = reducer_identity(opcode, shape.element)
        return (operands[0], make_constant(np.array(init, shape.element.dtype))), shape
    if instruction.opcode is Opcode.SCATTER:  # a sum of updates and nothing else, so its operand is zeros
        return (make_splat(0, operands[0].shape), *operands[1:]), shape
    return operands, shape


def _init_enters_terms(reduce: HloInstruction) -> bool:
    """True if each device may begin with the init value: it changes nothing, or nothing more when it comes again."""
    opcode = reducer_opcode(reduce.attributes.to_apply)
    if opcode in _IDEMPOTENT:
        return True
    init = reduce.operands[1]
    if init.opcode is not Opcode.CONSTANT:
        return False
    assert opcode is not None
    return bool(init.attributes.literal.array[()] == reducer_identity(opcode, init.shape.element))


def with_init(instruction: HloInstruction, x: HloInstruction, operands: Sequence[HloInstruction]) -> HloInstruction:
    """The sum, with an init value that no device's term has."""
    if instruction.opcode is not Opcode.REDUCE or _init_enters_terms(instruction):
        return x
    opcode = reducer_opcode(instruction.attributes.to_apply)
    assert opcode is not None
    return make_instruction(opcode, (broadcast(operands[1], x.shape, ()), x))


def with_first_dimension(x: HloInstruction) -> HloInstruction:
    """The array with a dimension of size 1 in front, along which others are gathered."""
    return reshape(x, (1, *x.shape.dimensions))
