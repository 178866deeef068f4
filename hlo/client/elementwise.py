"""ComputationBuilder's element-wise operations: arithmetic, comparisons, functions, conversions, choices.

Source: the sections "Element-wise binary arithmetic operations", "Element-wise comparison operations", "Element-wise
unary functions", "ConvertElementType", "ReducePrecision", "Clamp", "Select".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..broadcasting import Expansion, plan_broadcast
from ..element_type import ElementType
from ..ir import NO_ATTRIBUTES, Attributes
from ..opcode import Opcode
from ..ops.elementwise import CompareAttributes, ComparisonDirection, ReducePrecisionAttributes
from ..ops.movement import BroadcastAttributes
from ..ops.structure import GetTupleElementAttributes
from ..shape import Shape
from .constants import Constants
from .core import Handle, Integers, operation


class Elementwise(Constants):
    """Two operands are broadcast as `plan_broadcast` says: `broadcast_dimensions`, then dimensions of size 1."""

    # ---- two operands

    @operation
    def add(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs + rhs. Integers wrap around; pred: or."""
        return self._binary(Opcode.ADD, lhs, rhs, broadcast_dimensions)

    @operation
    def sub(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs - rhs."""
        return self._binary(Opcode.SUBTRACT, lhs, rhs, broadcast_dimensions)

    @operation
    def mul(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs * rhs; pred: and."""
        return self._binary(Opcode.MULTIPLY, lhs, rhs, broadcast_dimensions)

    @operation
    def div(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs / rhs; of integers towards zero, x / 0 is all bits set."""
        return self._binary(Opcode.DIVIDE, lhs, rhs, broadcast_dimensions)

    @operation
    def rem(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """The remainder of lhs / rhs, with the sign of lhs."""
        return self._binary(Opcode.REMAINDER, lhs, rhs, broadcast_dimensions)

    @operation
    def max(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """The larger one; NaN if one is NaN."""
        return self._binary(Opcode.MAXIMUM, lhs, rhs, broadcast_dimensions)

    @operation
    def min(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """The smaller one; NaN if one is NaN."""
        return self._binary(Opcode.MINIMUM, lhs, rhs, broadcast_dimensions)

    @operation
    def pow(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs to the power of rhs."""
        return self._binary(Opcode.POWER, lhs, rhs, broadcast_dimensions)

    @operation
    def and_(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """Logical and of pred, bitwise of integers."""
        return self._binary(Opcode.AND, lhs, rhs, broadcast_dimensions)

    @operation
    def or_(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """Logical or of pred, bitwise of integers."""
        return self._binary(Opcode.OR, lhs, rhs, broadcast_dimensions)

    @operation
    def logical_and(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """`and_` of pred. builder_c10: the operands are pred."""
        self._require_type(ElementType.PRED, lhs, rhs)
        return self._binary(Opcode.AND, lhs, rhs, broadcast_dimensions)

    @operation
    def logical_or(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """`or_` of pred. builder_c10: the operands are pred."""
        self._require_type(ElementType.PRED, lhs, rhs)
        return self._binary(Opcode.OR, lhs, rhs, broadcast_dimensions)

    # ---- comparisons: by value, NaN is unordered

    @operation
    def eq(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs == rhs, as pred."""
        return self._compare(ComparisonDirection.EQ, lhs, rhs, broadcast_dimensions)

    @operation
    def ne(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs != rhs, as pred."""
        return self._compare(ComparisonDirection.NE, lhs, rhs, broadcast_dimensions)

    @operation
    def ge(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs >= rhs, as pred."""
        return self._compare(ComparisonDirection.GE, lhs, rhs, broadcast_dimensions)

    @operation
    def gt(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs > rhs, as pred."""
        return self._compare(ComparisonDirection.GT, lhs, rhs, broadcast_dimensions)

    @operation
    def lt(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs < rhs, as pred."""
        return self._compare(ComparisonDirection.LT, lhs, rhs, broadcast_dimensions)

    @operation
    def le(self, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers = ()) -> Handle:
        """lhs <= rhs, as pred."""
        return self._compare(ComparisonDirection.LE, lhs, rhs, broadcast_dimensions)

    # ---- one operand

    @operation
    def abs(self, operand: Handle) -> Handle:
        """|x|; real for complex numbers."""
        return self._enqueue(Opcode.ABS, [operand])

    @operation
    def ceil(self, operand: Handle) -> Handle:
        """The next integer above."""
        return self._enqueue(Opcode.CEIL, [operand])

    @operation
    def cos(self, operand: Handle) -> Handle:
        """The cosine, of radians."""
        return self._enqueue(Opcode.COS, [operand])

    @operation
    def exp(self, operand: Handle) -> Handle:
        """e to the power of x."""
        return self._enqueue(Opcode.EXP, [operand])

    @operation
    def floor(self, operand: Handle) -> Handle:
        """The next integer below."""
        return self._enqueue(Opcode.FLOOR, [operand])

    @operation
    def is_finite(self, operand: Handle) -> Handle:
        """Neither infinite nor NaN, as pred."""
        return self._enqueue(Opcode.IS_FINITE, [operand])

    @operation
    def log(self, operand: Handle) -> Handle:
        """The natural logarithm."""
        return self._enqueue(Opcode.LOG, [operand])

    @operation
    def neg(self, operand: Handle) -> Handle:
        """-x; integers wrap around."""
        return self._enqueue(Opcode.NEGATE, [operand])

    @operation
    def not_(self, operand: Handle) -> Handle:
        """Logical not of pred, bitwise of integers."""
        return self._enqueue(Opcode.NOT, [operand])

    @operation
    def logical_not(self, operand: Handle) -> Handle:
        """`not_` of pred. builder_c10: the operand is pred."""
        self._require_type(ElementType.PRED, operand)
        return self._enqueue(Opcode.NOT, [operand])

    @operation
    def sign(self, operand: Handle) -> Handle:
        """-1, 0 or 1; zeros keep their sign, NaN stays."""
        return self._enqueue(Opcode.SIGN, [operand])

    @operation
    def sin(self, operand: Handle) -> Handle:
        """The sine, of radians."""
        return self._enqueue(Opcode.SIN, [operand])

    @operation
    def sqrt(self, operand: Handle) -> Handle:
        """The square root; NaN for negative numbers."""
        return self._enqueue(Opcode.SQRT, [operand])

    @operation
    def square(self, operand: Handle) -> Handle:
        """x * x."""
        return self._enqueue(Opcode.MULTIPLY, [operand, operand])

    @operation
    def reciprocal(self, operand: Handle) -> Handle:
        """1 / x."""
        element_type = self._array(operand).element
        one = self._literal(np.ones((), element_type.dtype))
        return self._binary(Opcode.DIVIDE, one, operand, ())

    @operation
    def tanh(self, operand: Handle) -> Handle:
        """The hyperbolic tangent."""
        return self._enqueue(Opcode.TANH, [operand])

    @operation
    def sqrt_f32(self, operand: Handle) -> Handle:
        """`sqrt`. builder_c10: the operand is f32."""
        self._require_type(ElementType.F32, operand)
        return self.sqrt(operand)

    @operation
    def square_f32(self, operand: Handle) -> Handle:
        """`square`. builder_c10: the operand is f32."""
        self._require_type(ElementType.F32, operand)
        return self.square(operand)

    @operation
    def reciprocal_f32(self, operand: Handle) -> Handle:
        """`reciprocal`. builder_c10: the operand is f32."""
        self._require_type(ElementType.F32, operand)
        return self.reciprocal(operand)

    # ---- conversions

    @operation
    def convert_element_type(self, operand: Handle, new_element_type: ElementType | DTypeLike) -> Handle:
        """Each element as `new_element_type`, an ElementType or a dtype. To integers: towards zero, saturating."""
        shape = self._array(operand)
        element_type = self._element_type(new_element_type)
        return self._enqueue(Opcode.CONVERT, [operand], shape=Shape.array(element_type, shape.dimensions))

    @operation
    def reduce_precision(self, operand: Handle, exponent_bits: int, mantissa_bits: int) -> Handle:
        """Round to a format with so many bits, to nearest even; what is too large becomes infinite."""
        attributes = ReducePrecisionAttributes(*self._integers((exponent_bits, mantissa_bits), "numbers of bits"))
        return self._enqueue(Opcode.REDUCE_PRECISION, [operand], attributes)

    # ---- three operands

    @operation
    def clamp(self, min: Handle, operand: Handle, max: Handle) -> Handle:
        """The operand, raised to `min`, then lowered to `max`. A bound is a scalar, or of the operand's shape."""
        return self._enqueue(Opcode.CLAMP, [min, operand, max])

    @operation
    def select(self, pred: Handle, on_true: Handle, on_false: Handle) -> Handle:
        """Elements of `on_true` where `pred`, a scalar or of their dimensions, is true; else of `on_false`.

        Tuples count as scalars: they need a scalar `pred`, and one of them is the result.
        """
        true_shape, false_shape = self._instruction(on_true).shape, self._instruction(on_false).shape
        if not true_shape.is_tuple:
            return self._enqueue(Opcode.SELECT, [pred, on_true, on_false])
        if self._array(pred).dimensions or self._array(pred).element is not ElementType.PRED:
            self._refuse("between tuples, which count as scalars, a scalar pred selects", "select_c3")
        if not true_shape.compatible(false_shape):
            self._refuse("the tuples must have one shape", "select_c2")
        chosen = []
        for k in range(len(true_shape.elements)):
            attributes = GetTupleElementAttributes(k)
            pair = [self._enqueue(Opcode.GET_TUPLE_ELEMENT, [t], attributes) for t in (on_true, on_false)]
            chosen.append(self.select(pred, *pair))
        return self._enqueue(Opcode.TUPLE, chosen)

    # ---- what the others share

    def _binary(
        self,
        opcode: Opcode,
        lhs: Handle,
        rhs: Handle,
        broadcast_dimensions: Integers,
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> Handle:
        """The op on both operands, made of one shape first."""
        dimensions = self._integers(broadcast_dimensions, "broadcast_dimensions")
        plan = plan_broadcast(self._instruction(lhs).shape, self._instruction(rhs).shape, dimensions)
        operands = [self._expanded(lhs, plan.lhs, plan.dimensions), self._expanded(rhs, plan.rhs, plan.dimensions)]
        return self._enqueue(opcode, operands, attributes)

    def _compare(
        self, direction: ComparisonDirection, lhs: Handle, rhs: Handle, broadcast_dimensions: Integers
    ) -> Handle:
        return self._binary(Opcode.COMPARE, lhs, rhs, broadcast_dimensions, CompareAttributes(direction))

    def _expanded(self, operand: Handle, expansion: Expansion | None, dimensions: tuple[int, ...]) -> Handle:
        if expansion is None:
            return operand
        shape = operand.shape
        if shape.dimensions != expansion.reshaped:
            operand = self._enqueue(Opcode.RESHAPE, [operand], shape=Shape.array(shape.element, expansion.reshaped))
        target = Shape.array(shape.element, dimensions)
        return self._enqueue(Opcode.BROADCAST, [operand], BroadcastAttributes(expansion.dimensions), target)

    def _require_type(self, element_type: ElementType, *operands: Handle) -> None:
        for operand in operands:
            if self._instruction(operand).shape.element_type is not element_type:
                self._refuse(f"operands must be {element_type.value}", "builder_c10")
