"""Expansion of map: the computation's ops on whole arrays, or, where it has control flow, a loop over the elements."""

from __future__ import annotations

import math

import numpy as np

from ...builder import (
    make_call,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
)
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import DynamicSliceAttributes
from ...shape import Shape
from ..map_inliner import apply_to_arrays
from ..patterns import make_splat, reshape

_O = Opcode
def mapped(instruction: HloInstruction) -> HloInstruction:
    """A map as ops on arrays."""
    dimensions = instruction.shape.dimensions
    applied = apply_to_arrays(instruction.attributes.to_apply, instruction.operands, dimensions)
    return _loop(instruction) if applied is None else applied


def _loop(instruction: HloInstruction) -> HloInstruction:
    """A while loop: iteration i applies the computation to element i of the flat operands."""
    dimensions = instruction.shape.dimensions
    count = math.prod(dimensions)
    flat = [reshape(o, (count,)) for o in instruction.operands]
    start = make_splat(0, Shape.array(instruction.shape.element, (count,)))
    if not count:
        return reshape(start, dimensions)
    state = make_tuple([make_constant(np.int64(0)), start, *flat])

    given = make_parameter(0, state.shape, "state")
    index, result, *arrays = (make_get_tuple_element(given, k) for k in range(len(state.operands)))
    one = DynamicSliceAttributes((1,))
    slices = [make_instruction(_O.DYNAMIC_SLICE, (array, index), one) for array in arrays]
    value = reshape(make_call(instruction.attributes.to_apply, [reshape(s, ()) for s in slices]), (1,))
    updated = make_instruction(_O.DYNAMIC_UPDATE_SLICE, (result, value, index))
    following = make_instruction(_O.ADD, (index, make_constant(np.int64(1))))
    body = make_computation("map_body", make_tuple([following, updated, *arrays]), [given])

    tested = make_parameter(0, state.shape, "state")
    below = CompareAttributes(ComparisonDirection.LT)
    test = make_instruction(_O.COMPARE, (make_get_tuple_element(tested, 0), make_constant(np.int64(count))), below)
    condition = make_computation("map_condition", test, [tested])
    loop = make_instruction(_O.WHILE, (state,), WhileAttributes(condition, body))
    return reshape(make_get_tuple_element(loop, 1), dimensions)
