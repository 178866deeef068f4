"""Sizes that the types of a program write `?`, and that follow from constants and from the types of its arguments.

A program for any size computes with its sizes: it asks for them (`get_dimension_size`), calculates, and gives the
results to operations that make arrays of such sizes (`dynamic_broadcast_in_dim`, `dynamic_iota`, ...). Where the sizes
of the arguments are known, these are computations on constants: they are evaluated while the program is read, and then
all shapes are known. Source: StableHLO's pass stablehlo-refine-shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..builder import make_constant
from ..effects import has_side_effect
from ..errors import ShapeError, UnsupportedError
from ..evaluator import evaluate_op
from ..instruction import HloInstruction
from ..mlir.tree import DYNAMIC, Operation, Tensor, Value, operations
from ..opcode import Opcode
from ..ops.collective import COLLECTIVES
from ..shape import Shape

_LARGEST = 1024
"""Elements of a constant: sizes are few."""
_NEVER = COLLECTIVES | {
    *(Opcode.CONSTANT, Opcode.PARAMETER, Opcode.RNG, Opcode.REPLICA_ID, Opcode.PARTITION_ID, Opcode.CUSTOM_CALL),
    *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.SCAN, Opcode.OPT_BARRIER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
    *(Opcode.RNG_BIT_GENERATOR, Opcode.RNG_GET_AND_UPDATE_STATE),
}


def needs_refinement(module: Operation) -> bool:
    """Whether a type has a size `?`, or an operation takes sizes as values."""
    return any(
        ".dynamic_" in operation.name
        or operation.name in _WITH_SIZES
        or any(DYNAMIC in value.type.dimensions for value in _values(operation) if isinstance(value.type, Tensor))
        for operation in operations(module)
    )


_WITH_SIZES = ("stablehlo.real_dynamic_slice", "stablehlo.set_dimension_size", "chlo.minimum_broadcast_shapes")


def _values(operation: Operation) -> Iterator[Value]:
    yield from operation.results
    for region in operation.regions:
        for block in region.blocks:
            yield from block.arguments


def folded(instruction: HloInstruction) -> HloInstruction:
    """A constant in place of an instruction that computes few integers or booleans from constants; else itself."""
    opcode = instruction.opcode
    if opcode is Opcode.GET_DIMENSION_SIZE:
        return make_constant(np.int32(instruction.operands[0].shape.dimensions[instruction.attributes.dimension]))
    shape = instruction.shape
    if opcode in _NEVER or shape.is_tuple or shape.element.is_inexact or shape.num_elements > _LARGEST:
        return instruction
    if not (instruction.operands or opcode is Opcode.IOTA) or has_side_effect(instruction):
        return instruction
    values = [value for value in map(_literal, instruction.operands) if value is not None]
    if len(values) != len(instruction.operands):
        return instruction
    with np.errstate(all="ignore"):
        return make_constant(evaluate_op(opcode, values, instruction.attributes, shape))


def _literal(instruction: HloInstruction) -> np.ndarray[Any, Any] | None:
    if instruction.opcode is not Opcode.CONSTANT or instruction.shape.num_elements > _LARGEST:
        return None
    array: np.ndarray[Any, Any] = instruction.attributes.literal.array
    return array


def is_size(instruction: HloInstruction) -> bool:
    """Whether it is a constant of few integers or booleans."""
    literal = _literal(instruction)
    return literal is not None and not instruction.shape.element.is_inexact


def integers_of(instruction: HloInstruction, what: str) -> tuple[int, ...]:
    """The integers of a constant operand; UnsupportedError, which names it, if it is none."""
    array = _literal(instruction)
    if array is None:
        raise UnsupportedError(f"{what} must be constants of the program: shapes are static")
    return tuple(int(number) for number in array.reshape(-1).tolist())


def integer_of(instruction: HloInstruction, what: str) -> int:
    """The integer of a constant operand with one element, as `integers_of`. ShapeError if it has another number."""
    numbers = integers_of(instruction, what)
    if len(numbers) != 1:
        raise ShapeError(f"{what} must be one number, not {instruction.shape}")
    return numbers[0]


def pairs_of(instruction: HloInstruction, what: str) -> list[tuple[int, int]]:
    """The rows of a constant operand with two columns, as `integers_of`. ShapeError if it has others."""
    if instruction.shape.rank != 2 or instruction.shape.dimensions[1] != 2:
        raise ShapeError(f"{what} must have two numbers for each dimension, not {instruction.shape}")
    numbers = integers_of(instruction, what)
    return list(zip(numbers[::2], numbers[1::2]))


def check_sizes(given: HloInstruction, shape: Shape) -> None:
    """ShapeError if an operand is a constant with other sizes than the result of this shape."""
    if is_size(given) and integers_of(given, "the sizes") != shape.dimensions:
        sizes = list(integers_of(given, "the sizes"))
        raise ShapeError(f"its operand says that the sizes are {sizes}, but its result is {shape}")
