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
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.control_flow import WhileAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import DynamicSliceAttributes
from ...shape import Shape
from ..patterns import broadcast, make_splat, reshape

_O = Opcode
_STRUCTURE = frozenset((_O.PARAMETER, _O.CONSTANT, _O.CALL, _O.TUPLE, _O.GET_TUPLE_ELEMENT, _O.MAP))
_ON_SCALARS = frozenset((_O.RESHAPE, _O.BROADCAST, _O.TRANSPOSE, _O.COPY))
"""Ops that, from a scalar to a scalar, are their operand."""


def mapped(instruction: HloInstruction) -> HloInstruction | None:
    """A map as ops on arrays."""
    computation, operands = instruction.attributes.to_apply, instruction.operands
    if not _takes_arrays(computation):
        return _loop(instruction)
    return _applied(computation, operands, instruction.shape.dimensions)


def _takes_arrays(computation: HloComputation) -> bool:
    """True if every op is elementwise, in calls too."""
    for i in computation.instructions:
        if i.opcode in _STRUCTURE:
            if not all(map(_takes_arrays, i.called_computations())):
                return False
        elif i.opcode in _ON_SCALARS:
            if i.shape.rank or i.operands[0].shape.rank:
                return False
        elif i.opcode is _O.BITCAST_CONVERT:
            if i.shape.rank or i.shape.element.bit_width != i.operands[0].shape.element.bit_width:
                return False
        elif not has_trait(i.opcode, Trait.ELEMENTWISE) or i.shape.rank:
            return False
    return True


def _applied(
    computation: HloComputation, arguments: tuple[HloInstruction, ...], dimensions: tuple[int, ...]
) -> HloInstruction:
    """The root of `computation` with arrays of `dimensions` for the scalars."""
    arrays = dict(zip(computation.parameters, arguments, strict=True))
    for i in computation.instructions:
        operands = tuple(arrays[o] for o in i.operands if o in arrays)
        if i in arrays:
            continue
        if i.opcode is _O.CONSTANT:
            arrays[i] = broadcast(make_constant(i.attributes.literal), Shape.array(i.shape.element, dimensions), ())
        elif i.opcode in (_O.CALL, _O.MAP):
            arrays[i] = _applied(i.attributes.to_apply, operands, dimensions)
        elif i.opcode in _ON_SCALARS:
            arrays[i] = operands[0]
        elif i.opcode is _O.TUPLE:
            arrays[i] = make_tuple(operands)
        elif i.opcode is _O.GET_TUPLE_ELEMENT:
            arrays[i] = make_get_tuple_element(operands[0], i.attributes.index)
        else:
            shape = Shape.array(i.shape.element, dimensions)
            arrays[i] = make_instruction(i.opcode, operands, i.attributes, shape)
    return arrays[computation.root]


def _loop(instruction: HloInstruction) -> HloInstruction:
    """while: element i of the flat operands, through the computation, to element i of the result."""
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
