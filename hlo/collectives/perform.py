"""One collective instruction, done by one device: from its attributes and operands to its results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ExecutionError
from ..opcode import Opcode
from ..ops.collective import CollectiveAttributes, CollectiveBroadcastAttributes
from . import operations
from .communicator import Communicator, Meeting, NDArray
from .groups import device_pairs, group_of
from .operations import Combine

_O = Opcode

def perform(
    device: Communicator,
    opcode: Opcode,
    attributes: CollectiveAttributes,
    operands: Sequence[NDArray],
    results: Sequence[NDArray],
    combine: Combine | None = None,
    name: str = "",
) -> None:
    """Do the collective `opcode` as `device`: fills `results`, arrays for the leaves of its result.

    `combine`: what `attributes.to_apply` means. `name`: of the instruction, for messages. ExecutionError if the device
    is in no group (a broadcast gives it zeros), or if sizes do not fit the number of devices; CollectiveError if the
    others do not come to it.
    """
    if opcode is _O.COLLECTIVE_PERMUTE:
        _permute(device, attributes, operands, results, name)
        return
    members = group_of(opcode, attributes, device.device, device.num_replicas, device.num_partitions)
    meeting = _meeting(opcode, attributes, operands, members or (), name)
    if members is None:
        if opcode is not _O.COLLECTIVE_BROADCAST:
            groups = attributes.replica_groups.text
            raise ExecutionError(f"{meeting}: device {device.device} is in none of the groups {groups}")
        for result in results:
            result[...] = np.zeros((), result.dtype)
        return
    _require_sizes(meeting, opcode, attributes, len(members), operands, results)
    if opcode is _O.ALL_REDUCE:
        assert combine is not None
        operations.all_reduce(device, meeting, members, operands, results, combine)
    elif opcode is _O.REDUCE_SCATTER:
        assert combine is not None and attributes.dimension is not None
        operations.reduce_scatter(device, meeting, members, operands, results, attributes.dimension, combine)
    elif opcode is _O.ALL_GATHER:
        assert attributes.dimension is not None
        operations.all_gather(device, meeting, members, operands, results, attributes.dimension)
    elif opcode is _O.ALL_TO_ALL and attributes.dimension is None:
        operations.all_to_all_of_tuple(device, meeting, members, operands, results)
    elif opcode is _O.ALL_TO_ALL:
        assert attributes.dimension is not None
        operations.all_to_all(device, meeting, members, operands[0], results[0], attributes.dimension)
    elif opcode is _O.RAGGED_ALL_TO_ALL:
        operations.ragged_all_to_all(device, meeting, members, operands, results[0])
    else:
        assert isinstance(attributes, CollectiveBroadcastAttributes), opcode
        roots = [0] * len(operands)
        if attributes.has_dynamic_root:
            *operands, chosen = operands
            roots = chosen.tolist()
        operations.collective_broadcast(device, meeting, members, operands, results, roots)


def _permute(
    device: Communicator, attributes: CollectiveAttributes, operands: Sequence[NDArray], results: Sequence[NDArray],
    name: str,
) -> None:  # fmt: skip
    pairs = device_pairs(attributes, device.num_replicas, device.num_partitions)
    members = tuple(sorted({k for pair in pairs for k in pair}))
    meeting = _meeting(_O.COLLECTIVE_PERMUTE, attributes, operands, members, name)
    if attributes.slice_sizes:
        operations.collective_permute_of_slices(device, meeting, pairs, operands, results, attributes.slice_sizes)
    else:
        operations.collective_permute(device, meeting, pairs, operands, results)


def _meeting(
    opcode: Opcode, attributes: CollectiveAttributes, operands: Sequence[NDArray], members: Sequence[int], name: str
) -> Meeting:
    detail = [f"{o.dtype}{list(o.shape)}" for o in operands]
    if attributes.channel_id is not None:
        detail.append(f"channel {attributes.channel_id}")
    if attributes.replica_groups.groups:
        detail.append(f"groups {attributes.replica_groups.text}")
    return Meeting(opcode.value, ", ".join(detail), name, tuple(members))


def _require_sizes(
    meeting: Meeting, opcode: Opcode, attributes: CollectiveAttributes, count: int, operands: Sequence[NDArray],
    results: Sequence[NDArray],
) -> None:  # fmt: skip
    """ExecutionError if the result's type shows another number of devices than there are in the group."""
    dimension = attributes.dimension
    if dimension is None:
        return
    for operand, result in zip(operands, results, strict=True):
        before, after = operand.shape[dimension], result.shape[dimension]
        fits = {
            _O.ALL_GATHER: after == before * count,
            _O.REDUCE_SCATTER: before == after * count,
            _O.ALL_TO_ALL: before == after and before % count == 0,
        }
        if not fits.get(opcode, True):
            group = "one device" if count == 1 else f"{count} devices"
            raise ExecutionError(f"{meeting} to {result.dtype}{list(result.shape)} does not fit a group of {group}")
