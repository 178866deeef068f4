"""Reading collectives that HLO has in another form; the others have rows in the table of ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import make_constant
from ..element_type import ElementType
from ..errors import UnsupportedError
from ..instruction import NO_ATTRIBUTES, HloInstruction
from ..mlir.tree import Operation
from ..opcode import Opcode
from ..ops.collective import CollectiveAttributes
from ..ops.elementwise import ComparisonDirection
from ..ops.movement import BroadcastAttributes, DynamicSliceAttributes, SliceAttributes
from ..shape import Shape
from .attribute_mappings import groups_of, read_channel
from .attributes import read_boolean, read_integer, read_table
from .instruction_builders import combination, compare, convert, reshape, splat, transpose
from .ops import OP_NAMED
from .scope import Rule, Scope
from .table_rules import by_table, made

Results = Sequence[HloInstruction]


def _all_to_all(scope: Scope, operation: Operation) -> Results:
    """HLO's cuts and joins along one dimension, and takes one array. If they are two, the pieces become a dimension of
    their own, which is exchanged and moved to where they are joined."""
    attributes = operation.attributes
    split, joined, count = (
        read_integer(attributes.get(name)) for name in ("split_dimension", "concat_dimension", "split_count")
    )
    groups = groups_of(read_table(attributes.get("replica_groups")))
    channel = read_channel(attributes.get("channel_handle"))
    found = []
    for operand in scope.operands(operation):
        sizes = operand.shape.dimensions
        if not (0 <= split < len(sizes) and 0 <= joined < len(sizes) and count > 0) or sizes[split] % count:
            what = f"cut into {count} along {split} and joined along {joined}"
            raise UnsupportedError(f"{operand.shape} cannot be {what}")
        exchange = CollectiveAttributes(groups, channel, dimension=split)
        if split == joined:
            found.append(scope.main(Opcode.ALL_TO_ALL, (operand,), exchange, operand.shape))
            continue
        block = sizes[split] // count
        pieces = reshape(scope, operand, (*sizes[:split], count, block, *sizes[split + 1 :]))
        moved = scope.main(Opcode.ALL_TO_ALL, (pieces,), exchange, pieces.shape)
        others = [d for d in range(len(sizes) + 1) if d != split]  # without the pieces, `d` of the operand is others[d]
        order = [*others[:joined], split, *others[joined:]]
        result = [block if d == split else size for d, size in enumerate(sizes)]
        result[joined] *= count
        found.append(reshape(scope, transpose(scope, moved, order), result))
    return found


def _cross_replica_sum(scope: Scope, operation: Operation) -> Results:
    operands = scope.operands(operation)
    groups = groups_of(read_table(operation.attributes.get("replica_groups")))
    attributes = CollectiveAttributes(groups, to_apply=combination(Opcode.ADD, operands[0].shape.element))
    return made(scope, operation, Opcode.ALL_REDUCE, operands, attributes)


def _collective_reduce(scope: Scope, operation: Operation) -> Results:
    """An all-reduce. Only the root of each group keeps the result, the others have zeros. The root is the first device
    of the group, or the one at the position that the last operand states."""
    attributes = {**operation.attributes}
    is_dynamic = read_boolean(attributes.pop("has_dynamic_root", False))
    attributes.pop("use_global_device_ids", None)
    operands = scope.operands(operation)
    arrays = operands[:-1] if is_dynamic else operands
    reduced = Operation(operation.name, [], operation.results, attributes, operation.regions)
    results = by_table(scope, reduced, OP_NAMED["stablehlo.all_reduce"], arrays)
    groups = read_table(attributes.get("replica_groups"))
    of_partitions = read_channel(attributes.get("channel_handle")) is not None
    number = scope.op(Opcode.PARTITION_ID if of_partitions else Opcode.REPLICA_ID)
    found = []
    for k, result in enumerate(results):
        place = _at(scope, operands[-1], k) if is_dynamic else None
        keeps = splat(scope, False, Shape.array(ElementType.PRED))
        for group in groups:
            root = _member(scope, group, place)
            keeps = scope.op(Opcode.OR, (keeps, compare(scope, ComparisonDirection.EQ, number, root)))
        zeros = splat(scope, 0, result.shape)
        spread = scope.op(
            Opcode.BROADCAST, (keeps,), BroadcastAttributes(()), Shape.array(ElementType.PRED, result.shape.dimensions)
        )  # fmt: skip
        found.append(scope.op(Opcode.SELECT, (spread, result, zeros)))
    return found


def _at(scope: Scope, vector: HloInstruction, k: int) -> HloInstruction:
    cut = scope.op(Opcode.SLICE, (vector,), SliceAttributes((k,), (k + 1,), (1,)))
    return reshape(scope, cut, ())


def _member(scope: Scope, group: Sequence[int], place: HloInstruction | None) -> HloInstruction:
    """The number of the device at a place of the group."""
    if place is None:
        return scope.add(make_constant(np.uint32(group[0])))
    members = scope.add(make_constant(np.array(group, np.uint32)))
    return reshape(scope, scope.op(Opcode.DYNAMIC_SLICE, (members, place), DynamicSliceAttributes((1,))), ())


def _collective_broadcast(scope: Scope, operation: Operation) -> Results:
    """The roots are s32."""
    operands = scope.operands(operation)
    if read_boolean(operation.attributes.get("has_dynamic_root", False)):
        operands = [*operands[:-1], convert(scope, operands[-1], ElementType.S32)]
    return by_table(scope, operation, OP_NAMED["stablehlo.collective_broadcast"], operands)


def _async_start(scope: Scope, operation: Operation) -> Results:
    """The region runs at once, and its result is the result of the operation."""
    (region,) = operation.regions
    scope.values.update(zip(region.block.arguments, scope.operands(operation), strict=True))
    return [scope.packed(scope.run(region.block))]


def _async_done(scope: Scope, operation: Operation) -> Results:
    (started,) = scope.operands(operation)
    return scope.unpacked(started, len(operation.results))


def _device_number(opcode: Opcode) -> Rule:
    return lambda scope, operation: [scope.main(opcode, (), NO_ATTRIBUTES, None)]


RULES: dict[str, Rule] = {
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.cross-replica-sum": _cross_replica_sum,
    "stablehlo.collective_reduce": _collective_reduce,
    "stablehlo.collective_broadcast": _collective_broadcast,
    "stablehlo.async_start": _async_start,
    "stablehlo.async_done": _async_done,
    "stablehlo.partition_id": _device_number(Opcode.PARTITION_ID),
    "stablehlo.replica_id": _device_number(Opcode.REPLICA_ID),
}
