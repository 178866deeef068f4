"""Writing instructions on arrays, and between devices and the host, that StableHLO has in another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..builder import make_constant, make_instruction
from ..element_type import ElementType
from ..errors import UnsupportedError
from ..instruction import HloInstruction
from ..mlir.tree import Attribute, Record, Value
from ..opcode import Opcode
from ..ops.elementwise import CompareAttributes, ComparisonDirection
from ..ops.random import RandomDistribution
from ..passes.expand.convolution import convolution_in_one_type
from ..passes.expand.dot import scaled_dot
from ..passes.expand.elementwise import complex_extremum, stochastic_convert
from ..passes.expand.sort import topk_by_sort
from ..shape import Shape
from .attribute_mappings import channel_handle, precision
from .attributes import INTEGER32, INTEGERS, integer, table
from .body import Body, Rule, Tree, leaf_shapes, refuse, tree_of
from .ops import OP_OF, RNG_DISTRIBUTION, attributes_of, regions_of
from .record_fields import DOT
from .types import type_of
from .writing_structure import called, context


def by_table(body: Body, instruction: HloInstruction) -> Tree:
    """An instruction by the row of its opcode."""
    return written(body, instruction, instruction.opcode)


def written(body: Body, instruction: HloInstruction, opcode: Opcode) -> Tree:
    """The operation of `opcode` on an instruction's operands, with its attributes and its type."""
    row, attributes = OP_OF[opcode], instruction.attributes
    found = attributes_of(row, attributes, [o.shape for o in instruction.operands])
    computations = [getattr(attributes, name) for name in regions_of(row)]
    regions = [body.region(computation) for computation in computations if computation is not None]
    return body.main(row.name, instruction, body.all_leaves(instruction.operands), found, regions)


def _of_scalar(operand: int) -> Rule:
    """StableHLO's dynamic slices have at least one dimension: of a scalar it is the scalar, and an update replaces
    it."""

    def rule(body: Body, instruction: HloInstruction) -> Tree:
        if not instruction.shape.dimensions:
            return body.values[instruction.operands[operand]]
        return by_table(body, instruction)

    return rule


def _topk(body: Body, instruction: HloInstruction) -> Tree:
    if not instruction.attributes.largest:
        return body.expanded(topk_by_sort(instruction))
    return by_table(body, instruction)


def _expanded(rule: Any) -> Rule:
    return lambda body, instruction: body.expanded(rule(instruction))


def _extremum(body: Body, instruction: HloInstruction) -> Tree:
    """Of complex numbers HLO compares in another way than StableHLO."""
    new = complex_extremum(instruction)
    return by_table(body, instruction) if new is None else body.expanded(new)


def _convert(body: Body, instruction: HloInstruction) -> Tree:
    """In HLO a complex number that is not 0 is true; in StableHLO its real part must not be 0."""
    (operand,) = instruction.operands
    if instruction.shape.element is not ElementType.PRED or not operand.shape.element.is_complex:
        return by_table(body, instruction)
    zero = make_constant(np.zeros(operand.shape.dimensions, operand.shape.element.dtype))
    return body.expanded(
        make_instruction(Opcode.COMPARE, (operand, zero), CompareAttributes(ComparisonDirection.NE))
    )  # fmt: skip


def _convolution(body: Body, instruction: HloInstruction) -> Tree:
    """StableHLO's operands have one type."""
    lhs, rhs = instruction.operands
    new = None if lhs.shape.element is rhs.shape.element else convolution_in_one_type(instruction)
    return by_table(body, instruction) if new is None else body.expanded(new)


def _reshape_to(body: Body, value: Value, shape: Shape) -> Value:
    return body.emit("stablehlo.reshape", [value], [type_of(shape)])[0]


def _dynamic_reshape(body: Body, instruction: HloInstruction) -> Tree:
    """The type has the sizes."""
    return _reshape_to(body, body.value(instruction.operands[0]), instruction.shape)


def _transposed(body: Body, value: Value, shape: Shape, order: Sequence[int]) -> Value:
    if list(order) == list(range(len(order))):
        return value
    moved = Shape.array(shape.element, [shape.dimensions[d] for d in order])
    return body.emit("stablehlo.transpose", [value], [type_of(moved)], {"permutation": INTEGERS.write(order)})[0]


def _bitcast(body: Body, instruction: HloInstruction) -> Tree:
    """The same bytes: the elements in the order of their memory, reinterpreted, in the result's order."""
    before, after = instruction.operands[0].shape, instruction.shape
    if not (before.array_layout.is_dense and after.array_layout.is_dense):
        raise UnsupportedError("a bitcast of a layout with tiles or packing")
    value = _transposed(body, body.value(instruction.operands[0]), before, before.array_layout.minor_to_major[::-1])
    if before.element is not after.element:
        value = _reinterpreted(body, value, before, after)
    order = after.array_layout.minor_to_major[::-1]
    physical = Shape.array(after.element, [after.dimensions[d] for d in order])
    value = _reshape_to(body, value, physical)
    return _transposed(body, value, physical, [order.index(d) for d in range(len(order))])


def _reinterpreted(body: Body, value: Value, before: Shape, after: Shape) -> Value:
    """A vector of the new elements."""
    few, many = sorted((before.num_elements, after.num_elements))
    parts = many // few if few else 1
    from_few = before.num_elements <= after.num_elements
    pieces = [few, parts] if parts > 1 else [few]
    value = _reshape_to(body, value, Shape.array(before.element, [few] if from_few else pieces))
    result = Shape.array(after.element, pieces if from_few else [few])
    return body.emit("stablehlo.bitcast_convert", [value], [type_of(result)])[0]


def _rng(body: Body, instruction: HloInstruction) -> Tree:
    distribution = instruction.attributes.distribution
    if distribution is RandomDistribution.BERNOULLI:
        raise UnsupportedError("StableHLO has no distribution bernoulli")
    sizes = np.array(instruction.shape.dimensions, np.int64)
    shape = body.constant(sizes, Shape.parse(f"s64[{sizes.size}]"))
    attributes = {"rng_distribution": RNG_DISTRIBUTION.write(distribution)}
    return body.main("stablehlo.rng", instruction, [*body.all_leaves(instruction.operands), shape], attributes)


def _ragged_dot(body: Body, instruction: HloInstruction) -> Tree:
    attributes, dot = instruction.attributes, instruction.attributes.dot
    fields = {
        **{name: getattr(dot, field) for name, field in DOT.items()},
        "lhs_ragged_dimensions": attributes.lhs_ragged_dims,
        "rhs_group_dimensions": attributes.rhs_group_dims,
    }
    found: dict[str, Attribute] = {"ragged_dot_dimension_numbers": Record("chlo", "ragged_dot", fields)}
    found.update(precision("chlo").write(dot, ()))
    return body.main("chlo.ragged_dot", instruction, body.all_leaves(instruction.operands), found)


# ---- collectives


def _all_to_all(body: Body, instruction: HloInstruction) -> Tree:
    """The form with an array. That with a tuple: the operands as one array, and the result taken apart."""
    attributes = instruction.attributes
    groups = attributes.replica_groups.groups
    first = instruction.operands[0].shape
    found: dict[str, Attribute] = {"replica_groups": table(groups)}
    if attributes.channel_id is not None:
        found["channel_handle"] = channel_handle(attributes.channel_id)
    is_array = attributes.dimension is not None
    dimension = attributes.dimension if is_array else 0
    count = len(groups[0]) if groups else (0 if is_array else len(instruction.operands))
    if not count:
        raise UnsupportedError("an all-to-all of all devices needs their number: replica_groups")
    for name in ("split_dimension", "concat_dimension"):
        found[name] = integer(dimension)
    found["split_count"] = integer(count)
    if is_array:
        return body.main("stablehlo.all_to_all", instruction, body.all_leaves(instruction.operands), found)
    row = Shape.array(first.element, (1, *first.dimensions))
    rows = [_reshape_to(body, body.value(operand), row) for operand in instruction.operands]
    joined = Shape.array(first.element, (len(rows), *first.dimensions))
    (stacked,) = body.emit("stablehlo.concatenate", rows, [type_of(joined)], {"dimension": integer(0)})
    (moved,) = body.emit("stablehlo.all_to_all", [stacked], [type_of(joined)], found)
    elements: list[Tree] = []
    for k in range(len(rows)):
        bounds = {
            "start_indices": [k, *(0 for _ in first.dimensions)],
            "limit_indices": [k + 1, *first.dimensions],
            "strides": [1] * (first.rank + 1),
        }
        written_bounds = {name: INTEGERS.write(values) for name, values in bounds.items()}
        (piece,) = body.emit("stablehlo.slice", [moved], [type_of(row)], written_bounds)
        elements.append(_reshape_to(body, piece, first))
    return tuple(elements)


def _collective_permute(body: Body, instruction: HloInstruction) -> Tree:
    """One operation for each operand."""
    shapes = list(leaf_shapes(instruction.shape))
    if len(instruction.operands) != len(shapes):
        raise UnsupportedError("a collective-permute of slices")
    found = attributes_of(OP_OF[Opcode.COLLECTIVE_PERMUTE], instruction.attributes, ())
    results = [
        body.emit("stablehlo.collective_permute", [body.value(o)], [type_of(shape)], found)[0]
        for o, shape in zip(instruction.operands, shapes, strict=True)
    ]
    return tree_of(instruction.shape, results)


def _start(opcode: Opcode, pair: bool) -> Rule:
    """The first half of a collective does it all. `pair`: its value is (operands, result, contexts...)."""

    def rule(body: Body, instruction: HloInstruction) -> Tree:
        if not pair:
            return written(body, instruction, opcode)
        shape = instruction.shape.elements[1]
        whole = HloInstruction(opcode, shape, instruction.operands, instruction.attributes)
        operands = [body.values[o] for o in instruction.operands]
        contexts = [context(body) for _ in instruction.shape.elements[2:]]
        result = body.program.rule(whole)(body, whole)
        return (operands[0] if len(operands) == 1 else tuple(operands), result, *contexts)

    return rule


def _second(body: Body, instruction: HloInstruction) -> Tree:
    value = body.values[instruction.operands[0]]
    assert isinstance(value, tuple)
    return value[1]


def _same(body: Body, instruction: HloInstruction) -> Tree:
    return body.values[instruction.operands[0]]


def _ragged_all_to_all(body: Body, instruction: HloInstruction) -> Tree:
    """A custom call, as JAX writes it."""
    attributes = instruction.attributes
    config: dict[str, Attribute] = {"replica_groups": table(attributes.replica_groups.groups)}
    if attributes.channel_id is not None:
        config["channel_id"] = integer(attributes.channel_id)
    found: dict[str, Attribute] = {
        "call_target_name": "ragged_all_to_all",
        "backend_config": config,
        "api_version": INTEGER32.write(4),
    }
    return called(body, instruction, found)


# ---- tokens and queues


def _after_all(body: Body, instruction: HloInstruction) -> Tree:
    return body.main("stablehlo.after_all", instruction, body.all_leaves(instruction.operands))


def _infeed(body: Body, instruction: HloInstruction) -> Tree:
    attributes = {"infeed_config": instruction.attributes.infeed_config}
    return body.main("stablehlo.infeed", instruction, body.all_leaves(instruction.operands), attributes)


def _outfeed(body: Body, instruction: HloInstruction) -> Tree:
    attributes = {"outfeed_config": instruction.attributes.outfeed_config}
    return body.main("stablehlo.outfeed", instruction, body.all_leaves(instruction.operands), attributes)


_DEVICES, _TO_HOST, _FROM_HOST = 1, 2, 3
"""The types of a channel."""


def _channel(attributes: Any, host: int) -> dict[str, Attribute]:
    kind = host if attributes.is_host_transfer else _DEVICES
    return {
        "channel_handle": channel_handle(attributes.channel_id or 0, kind),
        "is_host_transfer": attributes.is_host_transfer,
    }


def _send(body: Body, instruction: HloInstruction) -> Tree:
    """The value is (data, context, token)."""
    data, _ = instruction.operands
    found = _channel(instruction.attributes, _TO_HOST)
    operands = body.all_leaves(instruction.operands)
    (token,) = body.emit("stablehlo.send", operands, [type_of(Shape.token())], found)
    return body.values[data], context(body), token


def _recv(body: Body, instruction: HloInstruction) -> Tree:
    """The value is (data, context, token)."""
    data, _, token = instruction.shape.elements
    types = [type_of(leaf) for leaf in (*leaf_shapes(data), token)]
    found = _channel(instruction.attributes, _FROM_HOST)
    results = body.emit("stablehlo.recv", body.all_leaves(instruction.operands), types, found)
    return tree_of(data, results[:-1]), context(body), results[-1]


def _send_done(body: Body, instruction: HloInstruction) -> Tree:
    value = body.values[instruction.operands[0]]
    assert isinstance(value, tuple)
    return value[2]


def _recv_done(body: Body, instruction: HloInstruction) -> Tree:
    value = body.values[instruction.operands[0]]
    assert isinstance(value, tuple)
    return value[0], value[2]


_PAIRS = ((Opcode.ALL_GATHER_START, Opcode.ALL_GATHER), (Opcode.COLLECTIVE_PERMUTE_START, Opcode.COLLECTIVE_PERMUTE))

RULES: dict[Opcode, Rule] = {
    Opcode.DYNAMIC_SLICE: _of_scalar(0),
    Opcode.DYNAMIC_UPDATE_SLICE: _of_scalar(1),
    Opcode.TOPK: _topk,
    Opcode.MAXIMUM: _extremum,
    Opcode.MINIMUM: _extremum,
    Opcode.CONVERT: _convert,
    Opcode.CONVOLUTION: _convolution,
    Opcode.SCALED_DOT: _expanded(scaled_dot),
    Opcode.STOCHASTIC_CONVERT: _expanded(stochastic_convert),
    Opcode.DYNAMIC_RESHAPE: _dynamic_reshape,
    Opcode.BITCAST: _bitcast,
    Opcode.RNG: _rng,
    Opcode.RNG_GET_AND_UPDATE_STATE: refuse("StableHLO has no access to the state of the process's random numbers"),
    Opcode.RAGGED_DOT: _ragged_dot,
    Opcode.ALL_TO_ALL: _all_to_all,
    Opcode.COLLECTIVE_PERMUTE: _collective_permute,
    Opcode.ALL_REDUCE_START: _start(Opcode.ALL_REDUCE, False),
    **{start: _start(opcode, True) for start, opcode in _PAIRS},
    Opcode.ALL_REDUCE_DONE: _same,
    Opcode.ALL_GATHER_DONE: _second,
    Opcode.COLLECTIVE_PERMUTE_DONE: _second,
    Opcode.RAGGED_ALL_TO_ALL: _ragged_all_to_all,
    Opcode.AFTER_ALL: _after_all,
    Opcode.INFEED: _infeed,
    Opcode.OUTFEED: _outfeed,
    Opcode.SEND: _send,
    Opcode.SEND_DONE: _send_done,
    Opcode.RECV: _recv,
    Opcode.RECV_DONE: _recv_done,
}
