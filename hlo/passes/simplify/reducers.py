"""Reducers that passes make: computations of two scalars with one op."""

from __future__ import annotations

from functools import cache

from ...builder import make_instruction, make_parameter
from ...element_type import ElementType
from ...ir import HloComputation
from ...opcode import Opcode
from ...shape import Shape


@cache
def binary_reducer(opcode: Opcode, element_type: ElementType) -> HloComputation:
    """The computation of two scalars that is one binary op."""
    scalar = Shape.array(element_type)
    x, y = make_parameter(0, scalar, "x"), make_parameter(1, scalar, "y")
    root = make_instruction(opcode, (x, y), name=opcode.value)
    return HloComputation(f"{opcode.value}_{element_type.value}", (x, y, root), root)
