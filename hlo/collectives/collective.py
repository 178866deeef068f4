"""One collective instruction, done by one device: from its attributes and operands to its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import ExecutionError
from ..opcode import Opcode
from ..ops.collective import CollectiveAttributes, CollectiveBroadcastAttributes
from ..shape import Shape
from . import operations
from .communicator import Communicator, Meeting, NDArray
from .groups import device_pairs, group_of
from .operations import Combine

_O = Opcode

class Collective:
    """A collective instruction, as seen by one device.

    `combine`: the function that `attributes.to_apply` computes. `name`: of the instruction, for messages.
    """

    def __init__(
        self, opcode: Opcode, attributes: CollectiveAttributes, operands: Sequence[Shape],
        combine: Combine | None = None, name: str = "",
    ) -> None:  # fmt: skip
        self._opcode, self._attributes, self._combine = opcode, attributes, combine
        self._name, self._detail = name, _detail(attributes, operands)
        self._known: dict[tuple[int, int, int], _Part | None] = {}

    def __call__(self, device: Communicator, operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        """Do it as `device`, with arrays for the leaves of the operands: fills those for the leaves of the result.

        ExecutionError if the device is in no group (a broadcast gives it zeros), or if sizes do not fit the number of
        devices; CollectiveError if the others do not come to it.
        """
        key = (device.device, device.num_replicas, device.num_partitions)
        if key not in self._known:
            self._known[key] = self._part(device, operands, results)
        part = self._known[key]
        if part is None:
            for result in results:
                result[...] = np.zeros((), result.dtype)
        else:
            self._do(device, part, operands, results)

    def _part(
        self, device: Communicator, operands: Sequence[NDArray], results: Sequence[NDArray]
    ) -> _Part | None:
        """With whom; None if the device has no partner and gets zeros."""
        opcode, attributes = self._opcode, self._attributes
        if opcode is _O.COLLECTIVE_PERMUTE:
            pairs = device_pairs(attributes, device.num_replicas, device.num_partitions)
            return _Part(self._meeting(tuple(sorted({k for pair in pairs for k in pair}))), pairs)
        members = group_of(opcode, attributes, device.device, device.num_replicas, device.num_partitions)
        meeting = self._meeting(members or ())
        if members is None:
            if opcode is _O.COLLECTIVE_BROADCAST:
                return None
            groups = attributes.replica_groups.text
            raise ExecutionError(f"{meeting}: device {device.device} is in none of the groups {groups}")
        _require_sizes(meeting, opcode, attributes, len(members), operands, results)
        return _Part(meeting, (), members)

    def _meeting(self, members: tuple[int, ...]) -> Meeting:
        return Meeting(self._opcode.value, self._detail, self._name, members)

    def _do(self, device: Communicator, part: _Part, operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        opcode, attributes, combine = self._opcode, self._attributes, self._combine
        meeting, pairs, members = part
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
        elif opcode is _O.COLLECTIVE_PERMUTE and attributes.slice_sizes:
            operations.collective_permute_of_slices(device, meeting, pairs, operands, results, attributes.slice_sizes)
        elif opcode is _O.COLLECTIVE_PERMUTE:
            operations.collective_permute(device, meeting, pairs, operands, results)
        else:
            assert isinstance(attributes, CollectiveBroadcastAttributes), opcode
            roots = [0] * len(operands)
            if attributes.has_dynamic_root:
                *operands, chosen = operands
                roots = chosen.tolist()
            operations.collective_broadcast(device, meeting, members, operands, results, roots)


class _Part(NamedTuple):
    """The part of one device in a collective."""

    meeting: Meeting
    pairs: tuple[tuple[int, int], ...] = ()
    members: tuple[int, ...] = ()


def _detail(attributes: CollectiveAttributes, operands: Sequence[Shape]) -> str:
    detail = [f"{leaf.element.value}{list(leaf.dimensions)}" for o in operands for leaf in o.leaves()]
    if attributes.channel_id is not None:
        detail.append(f"channel {attributes.channel_id}")
    if attributes.replica_groups.groups:
        detail.append(f"groups {attributes.replica_groups.text}")
    return ", ".join(detail)


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
