"""Expansion of topk: a sort with the elements' indices, and its first k."""

from __future__ import annotations

from ...builder import make_computation, make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType
from ...ops.movement import IotaAttributes, SliceAttributes
from ...ops.sort import SortAttributes
from ...shape import Shape


def topk_by_sort(instruction: HloInstruction) -> HloInstruction:
    """The first k of a stable sort in total order, descending or ascending."""
    operand, attributes = instruction.operands[0], instruction.attributes
    last = operand.shape.rank - 1
    places = Shape.array(ElementType.S32, operand.shape.dimensions)
    iota = make_instruction(Opcode.IOTA, (), IotaAttributes(last), places)
    order = SortAttributes(last, _comparator(operand.shape.element, attributes.largest), is_stable=True)
    both = make_instruction(Opcode.SORT, (operand, iota), order)
    dimensions = (*operand.shape.dimensions[:-1], attributes.k)
    first = SliceAttributes((0,) * len(dimensions), dimensions, (1,) * len(dimensions))
    return make_tuple(
        [make_instruction(Opcode.SLICE, (make_get_tuple_element(both, k),), first) for k in range(2)]
    )


def _comparator(element_type: ElementType, largest: bool) -> HloComputation:
    shapes = [Shape.array(t) for t in (element_type, ElementType.S32)]
    parameters = [make_parameter(n, shapes[n // 2], f"p{n}") for n in range(4)]
    direction = ComparisonDirection.GT if largest else ComparisonDirection.LT
    kind = ComparisonType.TOTALORDER if element_type.is_floating else None
    root = make_instruction(Opcode.COMPARE, parameters[:2], CompareAttributes(direction, kind))
    return make_computation("in_order", root, parameters)
