"""Expansion of scan: a while loop that reads slices, calls, and writes slices. Source: XLA's scan_expander."""

from __future__ import annotations

from collections.abc import Sequence

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
from ...ops.control_flow import ScanAttributes, WhileAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import DynamicSliceAttributes
from ...shape import Shape
from ..patterns import make_splat, reshape


def scan(instruction: HloInstruction) -> HloInstruction:
    """The loop's state is (step, arrays, results, carries). Without steps it returns empty results and the carries."""
    attributes: ScanAttributes = instruction.attributes
    first_carry = len(instruction.operands) - attributes.num_carries
    arrays, carries = instruction.operands[:first_carry], instruction.operands[first_carry:]
    shapes = instruction.shape.elements if instruction.shape.is_tuple else (instruction.shape,)
    results = [make_splat(0, s.with_default_layout()) for s in shapes[: len(shapes) - len(carries)]]
    length = (*arrays, *results)[0].shape.dimensions[attributes.dimension]
    found: Sequence[HloInstruction] = (*results, *carries)
    if length:
        initial = make_tuple([make_constant(np.int64(0)), *arrays, *results, *carries])
        condition = _condition(initial.shape, length)
        body = _body(initial.shape, attributes, len(arrays), len(results), length)
        loop = make_instruction(Opcode.WHILE, (initial,), WhileAttributes(condition, body))
        found = [make_get_tuple_element(loop, 1 + len(arrays) + k) for k in range(len(found))]
    return make_tuple(found) if instruction.shape.is_tuple else found[0]


def _condition(state: Shape, length: int) -> HloComputation:
    """step < length"""
    parameter = make_parameter(0, state, "state")
    step = make_get_tuple_element(parameter, 0)
    less = CompareAttributes(ComparisonDirection.LT)
    root = make_instruction(Opcode.COMPARE, (step, make_constant(np.int64(length))), less)
    return make_computation("scan_condition", root, (parameter,))


def _body(state: Shape, attributes: ScanAttributes, arrays: int, results: int, length: int) -> HloComputation:
    parameter = make_parameter(0, state, "state")
    step, *elements = (make_get_tuple_element(parameter, k) for k in range(len(state.elements)))
    at = step
    if attributes.is_reverse:
        at = make_instruction(Opcode.SUBTRACT, (make_constant(np.int64(length - 1)), step))
    slices = [_slice(array, at, attributes.dimension) for array in elements[:arrays]]
    made = make_call(attributes.to_apply, [*slices, *elements[arrays + results :]])
    values = [made]
    if made.shape.is_tuple:
        values = [make_get_tuple_element(made, k) for k in range(len(made.shape.elements))]
    updated = [
        _put(result, value, at, attributes.dimension) for result, value in zip(elements[arrays:], values[:results])
    ]
    following = make_instruction(Opcode.ADD, (step, make_constant(np.int64(1))))
    root = make_tuple([following, *elements[:arrays], *updated, *values[results:]])
    return make_computation("scan_body", root, (parameter,), (made,))


def _start(rank: int, at: HloInstruction, dimension: int) -> list[HloInstruction]:
    return [at if d == dimension else make_constant(np.int64(0)) for d in range(rank)]


def _slice(array: HloInstruction, at: HloInstruction, dimension: int) -> HloInstruction:
    """array[..., at, ...] without that dimension."""
    sizes = [1 if d == dimension else size for d, size in enumerate(array.shape.dimensions)]
    operands = (array, *_start(array.shape.rank, at, dimension))
    cut = make_instruction(Opcode.DYNAMIC_SLICE, operands, DynamicSliceAttributes(tuple(sizes)))
    return reshape(cut, sizes[:dimension] + sizes[dimension + 1 :])


def _put(result: HloInstruction, value: HloInstruction, at: HloInstruction, dimension: int) -> HloInstruction:
    """result[..., at, ...] = value"""
    sizes = [1 if d == dimension else size for d, size in enumerate(result.shape.dimensions)]
    operands = (result, reshape(value, sizes), *_start(result.shape.rank, at, dimension))
    return make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, operands)
