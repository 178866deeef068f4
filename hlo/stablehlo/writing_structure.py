"""Writing instructions that give a program its structure: constants, tuples, calls, loops, custom calls."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..instruction import HloComputation, HloInstruction
from ..mlir.tree import Attribute, Dense, IndexType, Opaque, Record, Symbol, Tensor, Tuple, Value
from ..opcode import Opcode
from ..ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ..passes.expand.scan import scan
from ..shape import Shape
from ..shardy import SHARDING
from .attributes import INTEGER32
from .body import Body, Rule, Tree, leaf_shapes, tree_of
from .dictionaries import attributes_in, attributes_of_text
from .discardable_attributes import ONE_VALUE, OWN_COMPOSITES, PER_VALUE, write_discardable
from .types import type_of


def _constant(body: Body, instruction: HloInstruction) -> Tree:
    """A splat where all elements have the same bits."""
    array = instruction.attributes.literal.array
    bits = np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize)
    if array.size > 1 and (bits == bits[0]).all():
        array = np.broadcast_to(array.reshape(-1)[0], array.shape)
    return body.constant(array, instruction.shape)


def _tuple(body: Body, instruction: HloInstruction) -> Tree:
    return tuple([body.values[operand] for operand in instruction.operands])


def _get_tuple_element(body: Body, instruction: HloInstruction) -> Tree:
    return _part(body, instruction, instruction.attributes.index)


def _part(body: Body, instruction: HloInstruction, index: int) -> Tree:
    value = body.values[instruction.operands[0]]
    assert isinstance(value, tuple)
    return value[index]


def _operand(body: Body, instruction: HloInstruction) -> Tree:
    """copy, domain, async-update: the same value."""
    return body.values[instruction.operands[0]]


def _element(index: int) -> Rule:
    """The second operation of an asynchronous pair: its result is an element of the first one's tuple."""
    return lambda body, instruction: _part(body, instruction, index)


def context(body: Body) -> Value:
    """The value that identifies a transfer, between its two operations."""
    return body.constant(np.zeros((), np.uint32), Shape.parse("u32[]"))


def _padded(body: Body, instruction: HloInstruction, *elements: Tree) -> Tree:
    """The value of the first half of a pair: these elements, and contexts."""
    return (*elements, *(context(body) for _ in instruction.shape.elements[len(elements) :]))


def _async_start(body: Body, instruction: HloInstruction) -> Tree:
    operands = tuple([body.values[operand] for operand in instruction.operands])
    return _padded(body, instruction, operands, body.run(instruction.attributes.calls, operands))


def _copy_start(body: Body, instruction: HloInstruction) -> Tree:
    operand = body.values[instruction.operands[0]]
    return _padded(body, instruction, operand, operand)


def _opt_barrier(body: Body, instruction: HloInstruction) -> Tree:
    operands = body.leaves(instruction.operands[0])
    return body.main("stablehlo.optimization_barrier", instruction, operands) if operands else ()


def _add_dependency(body: Body, instruction: HloInstruction) -> Tree:
    """A barrier through which the operand and the token go together."""
    operand, token = instruction.operands
    values = [*body.leaves(operand), body.value(token)]
    results = body.emit("stablehlo.optimization_barrier", values, [value.type for value in values])
    return tree_of(instruction.shape, results[:-1])


# ---- control flow


def _fusion(body: Body, instruction: HloInstruction) -> Tree:
    """Its body, in its place."""
    return body.run(instruction.attributes.calls, [body.values[operand] for operand in instruction.operands])


_COMPOSITE_NAME = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+", re.ASCII)
"""A namespace and a name, as the specification of `composite` requires."""
_PACKING = (Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.AFTER_ALL)


def _is_custom_call(computation: HloComputation) -> bool:
    """Whether a computation is one custom call."""
    acting = [i.opcode for i in computation.instructions if i.opcode not in _PACKING]
    return acting == [Opcode.CUSTOM_CALL]


def _call(body: Body, instruction: HloInstruction) -> Tree:
    """A composite becomes a composite. If its name is not allowed there, it becomes a call of its function. If its
    computation is one custom call, as for a foreign function, it becomes the custom call."""
    composite, called = instruction.attributes.composite, instruction.attributes.to_apply
    if composite is not None and _is_custom_call(called):
        return body.run(called, [body.values[operand] for operand in instruction.operands])
    operands = body.all_leaves(instruction.operands)
    symbol = Symbol((body.program.function(called),))
    name = "" if composite is None else composite.name if "." in composite.name else OWN_COMPOSITES + composite.name
    if composite is None or not _COMPOSITE_NAME.fullmatch(name):
        return body.main("func.call", instruction, operands, {"callee": symbol})
    attributes: dict[str, Attribute] = {
        "name": name,
        "composite_attributes": attributes_in(composite.parameters),
        "decomposition": symbol,
        "version": INTEGER32.write(composite.version),
    }
    return body.main("stablehlo.composite", instruction, operands, attributes)


def _while(body: Body, instruction: HloInstruction) -> Tree:
    attributes = instruction.attributes
    regions = [body.region(attributes.condition), body.region(attributes.body)]
    return body.main("stablehlo.while", instruction, body.leaves(instruction.operands[0]), {}, regions)


def _conditional(body: Body, instruction: HloInstruction) -> Tree:
    index, *operands = instruction.operands
    branches = instruction.attributes.branch_computations
    regions = [
        body.region(branch, [body.values[operand]]) for branch, operand in zip(branches, operands, strict=True)
    ]  # fmt: skip
    name = "stablehlo.if" if index.shape.element.value == "pred" else "stablehlo.case"
    return body.main(name, instruction, [body.value(index)], {}, regions)


def _scan(body: Body, instruction: HloInstruction) -> Tree:
    """A loop: StableHLO has no scan, and CHLO's is not in all versions."""
    return body.expanded(scan(instruction))


# ---- custom calls

_VERSIONS = tuple(CustomCallApiVersion)
_PREFIX, _ = PER_VALUE.split("{}")


def _custom_call(body: Body, instruction: HloInstruction) -> Tree:
    call: CustomCallAttributes = instruction.attributes
    named = dict(instruction.frontend_attributes).get(SHARDING, "")
    if call.custom_call_target == "Sharding" and named.startswith(_PREFIX):
        sharding: dict[str, Attribute] = {"sharding": Opaque("sdy", ONE_VALUE + named.removeprefix(_PREFIX)[:-2])}
        operands = body.all_leaves(instruction.operands)
        return tree_of(instruction.shape, body.emit("sdy.sharding_constraint", operands, [operands[0].type], sharding))
    if call.function is not None:
        raise UnsupportedError(f"{call.custom_call_target} calls a function of this Python process")
    attributes: dict[str, Attribute] = {"call_target_name": call.custom_call_target}
    if call.has_side_effect:
        attributes["has_side_effect"] = True
    if call.api_version is CustomCallApiVersion.TYPED_FFI:
        attributes["backend_config"] = attributes_of_text(call.backend_config or "{}")
    elif call.backend_config:
        attributes["backend_config"] = call.backend_config
    attributes["api_version"] = INTEGER32.write(_VERSIONS.index(call.api_version))
    if call.callees:
        attributes["called_computations"] = tuple(Symbol((body.program.function(c),)) for c in call.callees)
    if call.operand_layout_constraints is not None:
        constraints = call.operand_layout_constraints
        attributes["operand_layouts"] = tuple(_layout(leaf) for each in constraints for leaf in leaf_shapes(each))
        attributes["result_layouts"] = tuple(_layout(leaf) for leaf in leaf_shapes(instruction.shape))
    if call.output_to_operand_aliasing:
        attributes["output_operand_aliases"] = tuple(map(_alias, call.output_to_operand_aliasing))
    return called(body, instruction, attributes)


def called(body: Body, instruction: HloInstruction, attributes: dict[str, Attribute]) -> Tree:
    """A custom call of an instruction's operands. Several results are results; a tuple in a tuple, or of one element,
    is a tuple in MLIR too."""
    operands = [_packed(body, body.values[operand]) for operand in instruction.operands]
    elements = instruction.shape.tuple_shapes
    if instruction.shape.is_token or elements is None or (
        len(elements) != 1 and not any(e.is_tuple and not e.is_token for e in elements)
    ):
        return body.main("stablehlo.custom_call", instruction, operands, attributes)
    discardable = write_discardable(instruction.frontend_attributes, instruction.annotations)
    (found,) = body.emit(
        "stablehlo.custom_call", operands, [type_of(instruction.shape)], {**attributes, **discardable}
    )  # fmt: skip
    return _unpacked(body, found, instruction.shape)


def _packed(body: Body, value: Tree) -> Value:
    if isinstance(value, Value):
        return value
    elements = [_packed(body, element) for element in value]
    (found,) = body.emit("stablehlo.tuple", elements, [Tuple(tuple(e.type for e in elements))])
    return found


def _unpacked(body: Body, value: Value, shape: Shape) -> Tree:
    if shape.tuple_shapes is None or shape.is_token:
        return value
    found: list[Tree] = []
    for k, element in enumerate(shape.tuple_shapes):
        (part,) = body.emit(
            "stablehlo.get_tuple_element", [value], [type_of(element)], {"index": INTEGER32.write(k)}
        )  # fmt: skip
        found.append(_unpacked(body, part, element))
    return tuple(found)


def _layout(shape: Shape) -> Dense:
    """`dense<[1, 0]> : tensor<2xindex>`"""
    if shape.is_token:
        order: tuple[int, ...] = ()
    elif not shape.array_layout.is_dense:
        raise UnsupportedError(f"StableHLO has no layouts with tiles or packing, as in {shape.to_text()}")
    else:
        order = shape.array_layout.minor_to_major
    return Dense(Tensor((len(order),), IndexType()), np.array(order, np.int64))


def _alias(alias: Any) -> Record:
    fields = {
        "output_tuple_indices": alias.output_index,
        "operand_index": alias.operand,
        "operand_tuple_indices": alias.operand_index,
    }
    return Record("stablehlo", "output_operand_alias", fields)


RULES: dict[Opcode, Rule] = {
    Opcode.CONSTANT: _constant,
    Opcode.TUPLE: _tuple,
    Opcode.GET_TUPLE_ELEMENT: _get_tuple_element,
    Opcode.COPY: _operand,
    Opcode.DOMAIN: _operand,
    Opcode.ASYNC_START: _async_start,
    Opcode.ASYNC_UPDATE: _operand,
    Opcode.ASYNC_DONE: _element(1),
    Opcode.COPY_START: _copy_start,
    Opcode.COPY_DONE: _element(0),
    Opcode.OPT_BARRIER: _opt_barrier,
    Opcode.ADD_DEPENDENCY: _add_dependency,
    Opcode.FUSION: _fusion,
    Opcode.CALL: _call,
    Opcode.WHILE: _while,
    Opcode.CONDITIONAL: _conditional,
    Opcode.SCAN: _scan,
    Opcode.CUSTOM_CALL: _custom_call,
}
