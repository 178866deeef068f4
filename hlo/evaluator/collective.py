"""What collectives mean for a single device: replica 0 of partition 0.

Only the group of device 0 matters. A program with more devices in it cannot run here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ExecutionError
from ..opcode import Opcode
from ..ops.collective import CollectiveAttributes, CollectiveBroadcastAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray, Value


def _require_one_device(devices: tuple[int, ...], what: str) -> None:
    if devices and max(devices) > 0:
        raise ExecutionError(f"{what} among devices {list(devices)} needs {max(devices) + 1} replicas, there is one")


def _require_alone(attributes: CollectiveAttributes, what: str) -> None:
    """ExecutionError unless device 0 is alone in its group; without groups all devices are one group."""
    groups = attributes.replica_groups.groups
    if not groups:
        return
    own = next((group for group in groups if 0 in group), None)
    if own is None:
        raise ExecutionError(f"{what} in groups {attributes.replica_groups.text}: device 0 is in none of them")
    _require_one_device(own, what)


def _require_same_sizes(operands: tuple[NDArray, ...], shape: Shape, what: str) -> None:
    """ExecutionError if the result's type shows that more than one replica takes part."""
    for operand, result in zip(operands, shape.leaves(), strict=True):
        if operand.shape != result.dimensions:
            why = f"{what} of dimensions {list(operand.shape)} to {result} needs several replicas, there is one"
            raise ExecutionError(why)


def _one_or_tuple(operands: tuple[NDArray, ...]) -> Value:
    return operands[0] if len(operands) == 1 else operands


@EVALUATE.register(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START)
def _all_reduce(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    """A reduction over one device: its operand."""
    _require_alone(attributes, "an all-reduce")
    return _one_or_tuple(operands)


@EVALUATE.register(Opcode.ALL_GATHER)
def _all_gather(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    _require_alone(attributes, "an all-gather")
    _require_same_sizes(operands, shape, "an all-gather")
    return _one_or_tuple(operands)


@EVALUATE.register(Opcode.ALL_GATHER_START)
def _all_gather_start(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    return _one_or_tuple(operands), _all_gather(shape.elements[1], attributes, *operands)


@EVALUATE.register(Opcode.REDUCE_SCATTER)
def _reduce_scatter(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    _require_alone(attributes, "a reduce-scatter")
    _require_same_sizes(operands, shape, "a reduce-scatter")
    return _one_or_tuple(operands)


@EVALUATE.register(Opcode.ALL_TO_ALL)
def _all_to_all(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    """Device i gets part i of every device's operand; in the tuple form the parts are the operands."""
    _require_alone(attributes, "an all-to-all")
    if attributes.dimension is not None:
        return operands[0]
    if len(operands) > 1:
        raise ExecutionError(f"an all-to-all of {len(operands)} operands needs {len(operands)} replicas, there is one")
    return operands


@EVALUATE.register(Opcode.COLLECTIVE_BROADCAST)
def _collective_broadcast(shape: Shape, attributes: CollectiveBroadcastAttributes, *operands: NDArray) -> Value:
    """The first device of a group, or that of the given number, gives its value to the others; a device in no group
    gets zeros."""
    groups = attributes.replica_groups.groups
    if attributes.has_dynamic_root:
        operands, roots = operands[:-1], operands[-1]
        if roots.any():
            raise ExecutionError(f"a collective-broadcast from members {roots.tolist()} of a group: it has one, 0")
    own = next((group for group in groups if 0 in group), None)
    if groups and own is None:
        return _one_or_tuple(tuple([np.zeros_like(o) for o in operands]))
    _require_one_device(own or (), "a collective-broadcast")
    return _one_or_tuple(operands)


@EVALUATE.register(Opcode.COLLECTIVE_PERMUTE)
def _collective_permute(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    """A device to which none sends gets zeros."""
    if attributes.slice_sizes or any(isinstance(operand, tuple) for operand in operands):
        raise ExecutionError("a collective-permute of slices, in place, is not supported")
    devices = tuple([device for pair in attributes.source_target_pairs for device in pair])
    _require_one_device(devices, "a collective-permute")
    return _one_or_tuple(operands if devices else tuple([np.zeros_like(o) for o in operands]))


@EVALUATE.register(Opcode.COLLECTIVE_PERMUTE_START)
def _collective_permute_start(shape: Shape, attributes: CollectiveAttributes, *operands: NDArray) -> Value:
    contexts = [np.zeros((), np.uint32) for _ in shape.elements[2:]]
    return _one_or_tuple(operands), _collective_permute(shape, attributes, *operands), *contexts


@EVALUATE.register(Opcode.RAGGED_ALL_TO_ALL)
def _ragged_all_to_all(
    shape: Shape,
    attributes: CollectiveAttributes,
    data: NDArray,
    output: NDArray,
    input_offsets: NDArray,
    send_sizes: NDArray,
    output_offsets: NDArray,
    receive_sizes: NDArray,
) -> NDArray:
    """Copies row range i of `data` to `output`, from row `output_offsets[i]` on. ExecutionError for rows outside."""
    _require_alone(attributes, "a ragged-all-to-all")
    result = output.copy()
    for source, size, target in zip(input_offsets.tolist(), send_sizes.tolist(), output_offsets.tolist()):
        if min(source, size, target) < 0 or source + size > len(data) or target + size > len(result):
            raise ExecutionError(f"ragged-all-to-all of {size} rows from {source} to {target}: outside of the arrays")
        result[target : target + size] = data[source : source + size]
    return result


@EVALUATE.register(Opcode.ALL_REDUCE_DONE)
def _all_reduce_done(shape: Shape, attributes: Any, operand: Value) -> Value:
    return operand


@EVALUATE.register(Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE)
def _second_element(shape: Shape, attributes: Any, operand: tuple[Value, ...]) -> Value:
    return operand[1]


@EVALUATE.register(Opcode.PARTITION_ID, Opcode.REPLICA_ID)
def _zero(shape: Shape, attributes: Any) -> NDArray:
    return np.zeros((), np.uint32)
