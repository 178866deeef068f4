"""HLO instructions as policies of `checkpoint` see them: JAX's name of the operation, its operand types, parameters.

Also the primitive behind `checkpoint_name`, which only policies look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ..hlo.instruction import HloInstruction
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.support.records import dataclass
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.core import Call, Primitive, Value, bind_call, call_of, run_meaning
from .tangents import Tangent

NAME = Primitive("name", evaluate=run_meaning)
"""The identity, on a value that the user has named. The parameter of a call: the name."""


@NAME.def_jvp
def _name_jvp(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
    return bind_call(call, primals), list(tangents)


@NAME.def_transpose
def _name_transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Any]) -> Sequence[Value | None]:
    return cts


@dataclass(frozen=True, slots=True)
class NamedOperation:
    """The object that a policy gets in place of JAX's primitive."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Operation:
    """An instruction in JAX's terms."""

    primitive: NamedOperation
    avals: tuple[ShapedArray, ...]
    params: dict[str, Any]


_O = Opcode
_NAMES = {
    _O.ADD: "add", _O.SUBTRACT: "sub", _O.MULTIPLY: "mul", _O.DIVIDE: "div", _O.REMAINDER: "rem", _O.POWER: "pow",
    _O.MAXIMUM: "max", _O.MINIMUM: "min", _O.NEGATE: "neg", _O.SIN: "sin", _O.COS: "cos", _O.EXP: "exp",
    _O.EXPM1: "expm1", _O.LOG1P: "log1p", _O.POPULATION_COUNT: "population_count", _O.COUNT_LEADING_ZEROS: "clz",
    _O.ROUND_NEAREST_AFZ: "round", _O.ROUND_NEAREST_EVEN: "round", _O.SELECT: "select_n", _O.REVERSE: "rev",
    _O.CONVERT: "convert_element_type", _O.BITCAST_CONVERT: "bitcast_convert_type", _O.TOPK: "top_k",
    _O.BROADCAST: "broadcast_in_dim", _O.DOT: "dot_general", _O.RAGGED_DOT: "ragged_dot_general",
    _O.CONVOLUTION: "conv_general_dilated", _O.CONDITIONAL: "cond", _O.OPT_BARRIER: "optimization_barrier",
}
"""JAX's names that differ from HLO's with `_` for `-`."""
_OF_CALLS = {"custom_jvp": "custom_jvp_call", "custom_vjp": "custom_vjp_call"}
_REDUCERS = {
    _O.ADD: "sum", _O.MULTIPLY: "prod", _O.MAXIMUM: "max", _O.MINIMUM: "min",
    _O.AND: "and", _O.OR: "or", _O.XOR: "xor",
}


def operation_of(instruction: HloInstruction) -> Operation:
    """The instruction in JAX's terms; parameters that JAX has not are the attributes of HLO, under HLO's names."""
    operands = [o.shape for o in instruction.operands]
    shapes = [s for o in operands for s in (o.elements if o.is_tuple else (o,))]
    name, params = _name_and_parameters(instruction)
    return Operation(NamedOperation(name), tuple([aval_of_shape(s) for s in shapes]), params)


def _name_and_parameters(instruction: HloInstruction) -> tuple[str, dict[str, Any]]:
    opcode, attributes = instruction.opcode, instruction.attributes
    match opcode:
        case Opcode.CALL:
            call = call_of(attributes)
            if call.primitive is NAME:
                return "name", {"name": call.params}
            name = call.primitive.name or "closed_call"
            return _OF_CALLS.get(name, name), {"name": call.label}
        case Opcode.DOT:
            contracting = attributes.lhs_contracting_dims, attributes.rhs_contracting_dims
            batch = attributes.lhs_batch_dims, attributes.rhs_batch_dims
            dtype = instruction.shape.element.dtype
            return "dot_general", {
                "dimension_numbers": (contracting, batch),
                "precision": attributes.operand_precision,
                "preferred_element_type": dtype,
            }
        case Opcode.REDUCE:
            return jax_name(opcode, attributes), {"axes": attributes.dimensions}
        case Opcode.COMPARE:
            return jax_name(opcode, attributes), {}
        case Opcode.CONVERT:
            return "convert_element_type", {"new_dtype": instruction.shape.element.dtype}
    params = {f.name: getattr(attributes, f.name) for f in fields(attributes)}
    return jax_name(opcode, attributes), params


def jax_name(opcode: Opcode, attributes: Any) -> str:
    """JAX's name of an operation."""
    if opcode is Opcode.COMPARE:
        direction: str = attributes.direction.value
        return direction.lower()
    if opcode is Opcode.REDUCE:
        reducer = _reducer(attributes.to_apply)
        return f"reduce_{reducer}" if reducer else "reduce"
    return _NAMES.get(opcode) or opcode.value.replace("-", "_")


def _reducer(computation: HloComputation) -> str | None:
    """The name of a reduction by one operation on two scalars."""
    root = computation.root
    if len(computation.parameters) != 2 or set(root.operands) != set(computation.parameters):
        return None
    return _REDUCERS.get(root.opcode)
