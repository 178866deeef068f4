"""Violations of the shape rules of control flow, collectives, tokens and queues, and sizes as values.

Each has: the label, the opcode, the operands' types as text, the attributes, the declared type or None.
"""

from __future__ import annotations

import numpy as np
from hloom.hlo import (
    ElementType,
    Opcode,
    Shape,
    make_computation,
    make_constant,
    make_instruction,
    make_parameter,
    make_tuple,
)
from hloom.hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation
from hloom.hlo.ops.asynchronous import AsyncAttributes, ChannelAttributes, InfeedAttributes, OutfeedAttributes
from hloom.hlo.ops.collective import CollectiveAttributes, CollectiveBroadcastAttributes
from hloom.hlo.ops.control_flow import ScanAttributes
from hloom.hlo.ops.dynamic_size import DimensionAttributes
from hloom.hlo.replica_groups import ReplicaGroups

from hloom.backend_check.computations import binary_computation

O = Opcode  # noqa: E741
Violation = tuple[str, Opcode, list[str], Attributes, str | None]

_ADD = binary_computation(O.ADD, ElementType.F32)
_ALONE = ReplicaGroups(((0,),), "{{0}}")
_PAIR = ReplicaGroups(((0, 1),), "{{0,1}}")
_TWICE = ReplicaGroups(((0,), (0,)), "{{0},{0}}")
_NEGATIVE = ReplicaGroups(((-1,),), "{{-1}}")
_EMPTY = ReplicaGroups(((),), "{{}}")
_DYNAMIC = CollectiveBroadcastAttributes(_ALONE, has_dynamic_root=True)


def _negated(shape: str) -> HloComputation:
    x = make_parameter(0, Shape.parse(shape))
    return make_computation("negated", make_instruction(O.NEGATE, [x]), [x])


def _bad_reducer() -> HloComputation:
    x = make_parameter(0, Shape.parse("f32[]"))
    return make_computation("bad_reducer", x, [x])


def _step(returned: str) -> HloComputation:
    """(f32[], f32[]) -> zeros of the types `returned`."""
    parameters = [make_parameter(i, Shape.parse("f32[]")) for i in range(2)]
    zeros = [make_constant(np.zeros(s.dimensions, s.element.dtype)) for s in Shape.parse(returned).elements]
    return make_computation("step", make_tuple(zeros), parameters)


def _groups(
    groups: ReplicaGroups, dimension: int | None = None, to_apply: HloComputation | None = None
) -> CollectiveAttributes:
    return CollectiveAttributes(groups, dimension=dimension, to_apply=to_apply)


def _pairs(*pairs: tuple[int, int]) -> CollectiveAttributes:
    return CollectiveAttributes(source_target_pairs=pairs)


_ASYNCHRONOUS: list[Violation] = [
    ("add-dependency_c1", O.ADD_DEPENDENCY, ["f32[2]", "f32[2]"], NO_ATTRIBUTES, None),
    ("add-dependency_c1", O.ADD_DEPENDENCY, ["f32[2]", "()"], NO_ATTRIBUTES, None),
    ("after-all_c1", O.AFTER_ALL, ["token[]", "f32[]"], NO_ATTRIBUTES, None),
    ("async-start_c1", O.ASYNC_START, ["f32[2]"], AsyncAttributes(), None),
    ("async-start_c2", O.ASYNC_START, ["f32[2]"], AsyncAttributes(_negated("f32[3]")), None),
    ("async-start_c3", O.ASYNC_START, ["f32[2]"], AsyncAttributes(_negated("f32[2]")), "(f32[2], f32[2])"),
    ("async-start_c3", O.ASYNC_START, ["f32[2]"], AsyncAttributes(_negated("f32[2]")), "f32[2]"),
    ("async-update_c1", O.ASYNC_UPDATE, ["(f32[2], f32[2])"], AsyncAttributes(), None),
    ("async-done_c1", O.ASYNC_DONE, ["f32[2]"], AsyncAttributes(), None),
    ("async-done_c1", O.ASYNC_DONE, ["((f32[2]))"], AsyncAttributes(), None),
    ("copy-start_c1", O.COPY_START, ["(f32[2])"], NO_ATTRIBUTES, None),
    ("copy-done_c1", O.COPY_DONE, ["(f32[2], f32[3], u32[])"], NO_ATTRIBUTES, None),
    ("copy-done_c1", O.COPY_DONE, ["(f32[2], f32[2], s32[])"], NO_ATTRIBUTES, None),
    ("infeed_c1", O.INFEED, ["f32[2]"], InfeedAttributes(), "(f32[2], token[])"),
    ("infeed_c2", O.INFEED, ["token[]"], InfeedAttributes(), "(f32[2], f32[2])"),
    ("infeed_c2", O.INFEED, ["token[]"], InfeedAttributes(), None),
    ("outfeed_c1", O.OUTFEED, ["f32[2]", "f32[2]"], OutfeedAttributes(), None),
    ("outfeed_c2", O.OUTFEED, ["f32[2]", "token[]"], OutfeedAttributes(Shape.parse("f32[3]")), None),
    ("send_c1", O.SEND, ["f32[2]", "f32[2]"], ChannelAttributes(1), None),
    ("send-done_c1", O.SEND_DONE, ["(f32[2], u32[], u32[])"], ChannelAttributes(1), None),
    ("recv_c1", O.RECV, ["f32[2]"], ChannelAttributes(1), "(f32[2], u32[], token[])"),
    ("recv_c2", O.RECV, ["token[]"], ChannelAttributes(1), "(f32[2], token[])"),
    ("recv_c2", O.RECV, ["token[]"], ChannelAttributes(1), None),
    ("recv-done_c1", O.RECV_DONE, ["(f32[2], s32[], token[])"], ChannelAttributes(1), None),
]

_RAGGED = ["s32[2]"] * 4

_COLLECTIVE: list[Violation] = [
    ("all-gather_c1", O.ALL_GATHER, ["(f32[2])"], _groups(_ALONE, 0), None),
    ("all-gather_c1", O.ALL_GATHER, [], _groups(_ALONE, 0), None),
    ("all-gather_c2", O.ALL_GATHER, ["f32[2]"], _groups(_ALONE, 1), None),
    ("all-gather_c3", O.ALL_GATHER, ["f32[2]"], _groups(_TWICE, 0), None),
    ("all-gather_c4", O.ALL_GATHER, ["f32[2]"], _groups(ReplicaGroups(), 0), "f32[3]"),
    ("all-gather_c4", O.ALL_GATHER, ["f32[2]"], _groups(ReplicaGroups(), 0), None),
    ("all-gather-start_c1", O.ALL_GATHER_START, [], _groups(_ALONE, 0), None),
    ("all-gather-start_c2", O.ALL_GATHER_START, ["f32[2]"], _groups(_ALONE), None),
    ("all-gather-start_c3", O.ALL_GATHER_START, ["f32[2]"], _groups(_NEGATIVE, 0), None),
    ("all-gather-start_c4", O.ALL_GATHER_START, ["f32[2]"], _groups(ReplicaGroups(), 0), "(f32[2], f32[3])"),
    ("all-gather-start_c5", O.ALL_GATHER_START, ["f32[2]"], _groups(_ALONE, 0), "f32[2]"),
    ("all-gather-done_c1", O.ALL_GATHER_DONE, ["f32[2]"], NO_ATTRIBUTES, None),
    ("all-reduce_c1", O.ALL_REDUCE, ["(f32[2])"], _groups(_ALONE, to_apply=_ADD), None),
    ("all-reduce_c2", O.ALL_REDUCE, ["f32[2]"], _groups(_ALONE, to_apply=_bad_reducer()), None),
    ("all-reduce_c2", O.ALL_REDUCE, ["f32[2]"], _groups(_ALONE), None),
    ("all-reduce_c3", O.ALL_REDUCE, ["f32[2]"], _groups(_EMPTY, to_apply=_ADD), None),
    ("all-reduce-start_c1", O.ALL_REDUCE_START, [], _groups(_ALONE, to_apply=_ADD), None),
    ("all-reduce-start_c3", O.ALL_REDUCE_START, ["f32[2]"], _groups(_TWICE, to_apply=_ADD), None),
    ("all-to-all_c1", O.ALL_TO_ALL, ["(f32[2])"], _groups(_ALONE, 0), None),
    ("all-to-all_c2", O.ALL_TO_ALL, ["f32[2]"], _groups(_ALONE, 1), None),
    ("all-to-all_c2", O.ALL_TO_ALL, ["f32[3]"], _groups(_PAIR, 0), None),
    ("all-to-all_c2", O.ALL_TO_ALL, ["f32[2]", "f32[2]"], _groups(_PAIR, 0), None),
    ("all-to-all_c3", O.ALL_TO_ALL, ["f32[2]"], _groups(_TWICE, 0), None),
    ("all-to-all_c4", O.ALL_TO_ALL, ["f32[2]"], _groups(_PAIR), None),
    ("all-to-all_c4", O.ALL_TO_ALL, ["f32[2]", "f32[3]"], _groups(_PAIR), None),
    ("collective-broadcast_c1", O.COLLECTIVE_BROADCAST, [], CollectiveBroadcastAttributes(_ALONE), None),
    ("collective-broadcast_c2", O.COLLECTIVE_BROADCAST, ["f32[2]"], CollectiveBroadcastAttributes(_TWICE), None),
    ("collective-broadcast_c3", O.COLLECTIVE_BROADCAST, ["s32[1]"], _DYNAMIC, None),
    ("collective-broadcast_c3", O.COLLECTIVE_BROADCAST, ["f32[2]", "u32[1]"], _DYNAMIC, None),
    ("collective-broadcast_c3", O.COLLECTIVE_BROADCAST, ["f32[2]", "f32[2]", "s32[1]"], _DYNAMIC, None),
    ("collective-permute_c1", O.COLLECTIVE_PERMUTE, ["(f32[2])"], _pairs((0, 0)), None),
    ("collective-permute_c1", O.COLLECTIVE_PERMUTE, ["f32[2]", "f32[2]", "(s32[])"], _pairs((0, 0)), None),
    ("collective-permute_c2", O.COLLECTIVE_PERMUTE, ["f32[2]"], _pairs((0, 0), (1, 0)), None),
    ("collective-permute_c2", O.COLLECTIVE_PERMUTE, ["f32[2]"], _pairs((-1, 0)), None),
    ("collective-permute-start_c1", O.COLLECTIVE_PERMUTE_START, [], _pairs((0, 0)), None),
    ("collective-permute-start_c2", O.COLLECTIVE_PERMUTE_START, ["f32[2]"], _pairs((0, 0), (1, 0)), None),
    ("collective-permute-start_c3", O.COLLECTIVE_PERMUTE_START, ["f32[2]"], _pairs((0, 0)), "(f32[2], f32[3])"),
    ("collective-permute-start_c3", O.COLLECTIVE_PERMUTE_START, ["f32[2]"], _pairs(), "(f32[2], f32[2], s32[])"),
    ("collective-permute-done_c1", O.COLLECTIVE_PERMUTE_DONE, ["(f32[2])"], NO_ATTRIBUTES, None),
    ("ragged-all-to-all_c1", O.RAGGED_ALL_TO_ALL, ["f32[4]", "f32[4]"], _groups(_ALONE), None),
    ("ragged-all-to-all_c2", O.RAGGED_ALL_TO_ALL, ["f32[4]", "f16[4]", *_RAGGED], _groups(_ALONE), None),
    ("ragged-all-to-all_c2", O.RAGGED_ALL_TO_ALL, ["f32[4,2]", "f32[4,3]", *_RAGGED], _groups(_ALONE), None),
    ("ragged-all-to-all_c3", O.RAGGED_ALL_TO_ALL, ["f32[4]", "f32[4]", "s64[2]", *_RAGGED[1:]], _groups(_ALONE), None),
    ("ragged-all-to-all_c4", O.RAGGED_ALL_TO_ALL, ["f32[4]", "f32[4]", *_RAGGED], _groups(_TWICE), None),
    ("reduce-scatter_c1", O.REDUCE_SCATTER, [], _groups(_ALONE, 0, _ADD), None),
    ("reduce-scatter_c2", O.REDUCE_SCATTER, ["f32[2]"], _groups(_ALONE, 1, _ADD), None),
    ("reduce-scatter_c3", O.REDUCE_SCATTER, ["f32[2]"], _groups(_TWICE, 0, _ADD), None),
    ("reduce-scatter_c4", O.REDUCE_SCATTER, ["f32[3]"], _groups(_PAIR, 0, _ADD), None),
    ("reduce-scatter_c5", O.REDUCE_SCATTER, ["f32[2]"], _groups(_ALONE, 0, _bad_reducer()), None),
]

_DYNAMIC_SIZE: list[Violation] = [
    ("get-dimension-size_c1", O.GET_DIMENSION_SIZE, ["f32[2]"], DimensionAttributes(1), None),
    ("get-dimension-size_c1", O.GET_DIMENSION_SIZE, ["(f32[2])"], DimensionAttributes(0), None),
    ("get-dimension-size_c2", O.GET_DIMENSION_SIZE, ["s8[2147483648]"], DimensionAttributes(0), None),
    ("set-dimension-size_c1", O.SET_DIMENSION_SIZE, ["f32[2]", "s32[]"], DimensionAttributes(-1), None),
    ("set-dimension-size_c2", O.SET_DIMENSION_SIZE, ["f32[2]", "s64[]"], DimensionAttributes(0), None),
    ("dynamic-reshape_c1", O.DYNAMIC_RESHAPE, ["f32[6]", "s32[]"], NO_ATTRIBUTES, None),
    ("dynamic-reshape_c1", O.DYNAMIC_RESHAPE, ["f32[6]", "s32[]"], NO_ATTRIBUTES, "f32[5]"),
    ("dynamic-reshape_c1", O.DYNAMIC_RESHAPE, ["f32[6]", "s32[]"], NO_ATTRIBUTES, "f16[6]"),
    ("dynamic-reshape_c2", O.DYNAMIC_RESHAPE, ["f32[6]", "s32[]"], NO_ATTRIBUTES, "f32[2,3]"),
]

_SCAN: list[Violation] = [
    ("scan_c1", O.SCAN, ["f32[2]"], ScanAttributes(0, _step("(f32[], f32[])"), num_carries=2), None),
    ("scan_c2", O.SCAN, ["f32[2]", "f32[]"], ScanAttributes(1, _step("(f32[], f32[])")), None),
    ("scan_c2", O.SCAN, ["f32[2]", "f32[3]"], ScanAttributes(0, _step("(f32[], f32[])"), num_carries=0), None),
    ("scan_c3", O.SCAN, ["f32[2,2]", "f32[]"], ScanAttributes(0, _step("(f32[], f32[])")), None),
    ("scan_c4", O.SCAN, ["f32[2]", "f32[]"], ScanAttributes(0, _step("(f32[], s32[])")), None),
    ("scan_c4", O.SCAN, ["f32[2]", "f32[]"], ScanAttributes(0, _step("()")), None),
    ("scan_c5", O.SCAN, ["f32[]", "f32[]"], ScanAttributes(0, _step("(f32[], f32[])"), num_carries=2), None),
]

STRUCTURE_VIOLATIONS: list[Violation] = [*_ASYNCHRONOUS, *_COLLECTIVE, *_DYNAMIC_SIZE, *_SCAN]
