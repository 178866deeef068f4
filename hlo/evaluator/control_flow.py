"""What the ops that run computations mean."""

from __future__ import annotations

from typing import Any

from ..attributes import CallAttributes, ConditionalAttributes, WhileAttributes
from ..opcode import Opcode
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
    """A pred index takes branch 0 when it is true; an integer out of range takes the last branch."""
    branches = attributes.branch_computations
    if index.dtype == bool:
        taken = 0 if index else 1
    else:
        taken = int(index) if 0 <= index < len(branches) else len(branches) - 1
    return interpret(branches[taken], [operands[taken]])


EVALUATE.unsupported([Opcode.SCAN], "not written yet")
