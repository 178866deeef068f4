"""The semantics of constants, tuples, fusions and barriers."""

from __future__ import annotations

from typing import Any

from ..opcode import Opcode
from ..ops.structure import ConstantAttributes, FusionAttributes, GetTupleElementAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray, Value, interpret

EVALUATE.unsupported([Opcode.PARAMETER], "a parameter's value is its computation's argument")


@EVALUATE.register(Opcode.CONSTANT)
def _constant(shape: Shape, attributes: ConstantAttributes) -> NDArray:
    return attributes.literal.array


@EVALUATE.register(Opcode.TUPLE)
def _tuple(shape: Shape, attributes: Any, *operands: Value) -> Value:
    return operands


@EVALUATE.register(Opcode.GET_TUPLE_ELEMENT)
def _get_tuple_element(shape: Shape, attributes: GetTupleElementAttributes, operand: tuple[Value, ...]) -> Value:
    return operand[attributes.index]


@EVALUATE.register(Opcode.OPT_BARRIER)
def _opt_barrier(shape: Shape, attributes: Any, operand: Value) -> Value:
    return operand


@EVALUATE.register(Opcode.FUSION)
def _fusion(shape: Shape, attributes: FusionAttributes, *operands: Value) -> Any:
    return interpret(attributes.calls, operands)


@EVALUATE.register(Opcode.DOMAIN)
def _domain(shape: Shape, attributes: Any, operand: Value) -> Value:
    return operand
