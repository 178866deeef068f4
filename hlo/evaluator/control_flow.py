"""The semantics of the ops that run computations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..opcode import Opcode
from ..ops.control_flow import CallAttributes, ConditionalAttributes, ScanAttributes, WhileAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray, Value, interpret


@EVALUATE.register(Opcode.CALL)
def _call(shape: Shape, attributes: CallAttributes, *operands: Value) -> Any:
    return interpret(attributes.to_apply, operands)


@EVALUATE.register(Opcode.WHILE)
def _while(shape: Shape, attributes: WhileAttributes, state: Value) -> Value:
    while interpret(attributes.condition, [state]):
        state = interpret(attributes.body, [state])
    return state


@EVALUATE.register(Opcode.CONDITIONAL)
def _conditional(shape: Shape, attributes: ConditionalAttributes, index: NDArray, *operands: Value) -> Any:
    branches = attributes.branch_computations
    taken = branch_taken(index, len(branches))
    return interpret(branches[taken], [operands[taken]])


def branch_taken(index: NDArray, count: int) -> int:
    """The number of the branch of `count`: a pred index takes branch 0 when it is true; an integer out of range takes
    the last branch."""
    if index.dtype == bool:
        return 0 if index else 1
    return int(index) if 0 <= index < count else count - 1


@EVALUATE.register(Opcode.SCAN)
def _scan(shape: Shape, attributes: ScanAttributes, *operands: Any) -> Any:
    """Applies `to_apply` to one slice after the other (from the last if reversed) and the previous step's carries."""
    axis, first_carry = attributes.dimension, len(operands) - attributes.num_carries
    arrays, carries = operands[:first_carry], operands[first_carry:]
    shapes = shape.elements if shape.is_tuple else (shape,)
    results = [np.zeros(s.dimensions, s.element.dtype) for s in shapes[: len(shapes) - len(carries)]]
    length = (*arrays, *results)[0].shape[axis]
    for step in reversed(range(length)) if attributes.is_reverse else range(length):
        slices = [np.asarray(np.take(array, step, axis)) for array in arrays]
        made = interpret(attributes.to_apply, [*slices, *carries])
        made = made if isinstance(made, tuple) else (made,)
        for result, value in zip(results, made):
            np.moveaxis(result, axis, 0)[step] = value
        carries = made[len(results) :]
    found = (*results, *carries)
    return found if shape.is_tuple else found[0]
