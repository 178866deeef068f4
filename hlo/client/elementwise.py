"""ComputationBuilder's element-wise operations: arithmetic, comparisons, functions, conversions, choices.

Source: the sections "Element-wise binary arithmetic operations", "Element-wise comparison operations", "Element-wise
unary functions", "ConvertElementType", "ReducePrecision", "Clamp", "Select".

Operations that are one op without attributes have a line in `builder.py` each; this file turns such a line into
instructions, and has the operations that need more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..broadcasting import Expansion, plan_broadcast
from ..element_type import ElementType
from ..ir import NO_ATTRIBUTES, Attributes
from ..opcode import Opcode
from ..ops.elementwise import ReducePrecisionAttributes
from ..ops.movement import BroadcastAttributes
from ..ops.structure import GetTupleElementAttributes
from ..shape import Shape
from .constants import element_type_like, literal
from .construction import Construction, Handle, Integers, integers, refuse


def apply_binary(
    build: Construction,
    opcode: Opcode,
    lhs: Handle,
    rhs: Handle,
    broadcast_dimensions: Integers = (),
    attributes: Attributes = NO_ATTRIBUTES,
) -> Handle:
    """The op on both operands, broadcast to one shape first: `broadcast_dimensions`, then dimensions of size 1."""
    dimensions = integers(broadcast_dimensions, "broadcast_dimensions")
    plan = plan_broadcast(build.shape(lhs), build.shape(rhs), dimensions)
    operands = [_expanded(build, lhs, plan.lhs, plan.dimensions), _expanded(build, rhs, plan.rhs, plan.dimensions)]
    return build.enqueue(opcode, operands, attributes)


def _expanded(build: Construction, operand: Handle, expansion: Expansion | None, dimensions: tuple[int, ...]) -> Handle:
    if expansion is None:
        return operand
    shape = operand.shape
    if shape.dimensions != expansion.reshaped:
        operand = build.enqueue(Opcode.RESHAPE, [operand], shape=Shape.array(shape.element, expansion.reshaped))
    target = Shape.array(shape.element, dimensions)
    return build.enqueue(Opcode.BROADCAST, [operand], BroadcastAttributes(expansion.dimensions), target)


def require_type(build: Construction, element_type: ElementType, *operands: Handle) -> None:
    """builder_c10: the operands are of `element_type`."""
    for operand in operands:
        if build.shape(operand).element_type is not element_type:
            refuse(f"operands must be {element_type.value}", "builder_c10")


# ---- compositions of one operand


def square(build: Construction, operand: Handle) -> Handle:
    """x * x."""
    return build.enqueue(Opcode.MULTIPLY, [operand, operand])


def reciprocal(build: Construction, operand: Handle) -> Handle:
    """1 / x."""
    one = literal(build, np.ones((), build.array(operand).element.dtype))
    return apply_binary(build, Opcode.DIVIDE, one, operand)


def square_f32(build: Construction, operand: Handle) -> Handle:
    """`square`. builder_c10: the operand is f32."""
    require_type(build, ElementType.F32, operand)
    return square(build, operand)


def reciprocal_f32(build: Construction, operand: Handle) -> Handle:
    """`reciprocal`. builder_c10: the operand is f32."""
    require_type(build, ElementType.F32, operand)
    return reciprocal(build, operand)


# ---- conversions


def convert_element_type(build: Construction, operand: Handle, new_element_type: ElementType | DTypeLike) -> Handle:
    """Each element as `new_element_type`, an ElementType or a dtype. To integers: towards zero, saturating."""
    shape = build.array(operand)
    element_type = element_type_like(new_element_type)
    return build.enqueue(Opcode.CONVERT, [operand], shape=Shape.array(element_type, shape.dimensions))


def reduce_precision(build: Construction, operand: Handle, exponent_bits: int, mantissa_bits: int) -> Handle:
    """Round to a format with these numbers of bits, to nearest even; too large numbers become infinite."""
    attributes = ReducePrecisionAttributes(*integers((exponent_bits, mantissa_bits), "numbers of bits"))
    return build.enqueue(Opcode.REDUCE_PRECISION, [operand], attributes)


# ---- three operands


def clamp(build: Construction, min: Handle, operand: Handle, max: Handle) -> Handle:
    """The operand, raised to `min`, then lowered to `max`. A bound is a scalar, or of the operand's shape."""
    return build.enqueue(Opcode.CLAMP, [min, operand, max])


def select(build: Construction, pred: Handle, on_true: Handle, on_false: Handle) -> Handle:
    """Elements of `on_true` where `pred`, a scalar or of their dimensions, is true; else of `on_false`.

    Tuples count as scalars: they need a scalar `pred`, and one of them is the result.
    """
    true_shape, false_shape = build.shape(on_true), build.shape(on_false)
    if not true_shape.is_tuple:
        return build.enqueue(Opcode.SELECT, [pred, on_true, on_false])
    if build.array(pred).dimensions or build.array(pred).element is not ElementType.PRED:
        refuse("between tuples, which count as scalars, a scalar pred selects", "select_c3")
    if not true_shape.compatible(false_shape):
        refuse("the tuples must have one shape", "select_c2")
    chosen = []
    for k in range(len(true_shape.elements)):
        attributes = GetTupleElementAttributes(k)
        pair = [build.enqueue(Opcode.GET_TUPLE_ELEMENT, [t], attributes) for t in (on_true, on_false)]
        chosen.append(select(build, pred, *pair))
    return build.enqueue(Opcode.TUPLE, chosen)
