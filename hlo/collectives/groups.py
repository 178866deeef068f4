"""Which devices do a collective together: from its attributes, for a number of replicas and partitions.

A device's number is replica * num_partitions + partition. The order within a group is the order of ranks.
Source: XLA's GetCollectiveOpGroupMode and GetParticipatingDevicesGroups.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from ..errors import ExecutionError
from ..opcode import Opcode
from ..replica_groups import ReplicaGroups


class CollectiveGroupMode(Enum):
    """The meaning of the numbers in `replica_groups` and `source_target_pairs`."""

    CROSS_REPLICA = "cross_replica"
    """Replicas; the devices of each partition are groups of their own."""
    CROSS_PARTITION = "cross_partition"
    """Partitions; the devices of each replica are groups of their own."""
    CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
    """Replicas; all their partitions are one group."""
    FLATTENED_ID = "flattened_id"
    """Devices."""


class _Attributes(Protocol):
    @property
    def replica_groups(self) -> ReplicaGroups: ...
    @property
    def source_target_pairs(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def channel_id(self) -> int | None: ...
    @property
    def use_global_device_ids(self) -> bool: ...


_HAS_GLOBAL_IDS = frozenset(
    {Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.REDUCE_SCATTER}
)
"""For these, a channel without `use_global_device_ids` means replicas with all their partitions; for the others it
means partitions."""


def collective_group_mode(opcode: Opcode, attributes: _Attributes) -> CollectiveGroupMode:
    """The mode of a collective. ExecutionError if it has global ids but no channel.

    >>> from hloom.hlo.ops.collective import CollectiveAttributes
    >>> collective_group_mode(Opcode.ALL_TO_ALL, CollectiveAttributes(channel_id=1))
    <CollectiveGroupMode.CROSS_PARTITION: 'cross_partition'>
    """
    if attributes.channel_id is None:
        if attributes.use_global_device_ids:
            raise ExecutionError(f"{opcode.value} with use_global_device_ids=true needs a channel_id")
        return CollectiveGroupMode.CROSS_REPLICA
    if attributes.use_global_device_ids:
        return CollectiveGroupMode.FLATTENED_ID
    if opcode in _HAS_GLOBAL_IDS:
        return CollectiveGroupMode.CROSS_REPLICA_AND_PARTITION
    return CollectiveGroupMode.CROSS_PARTITION


def device_groups(
    opcode: Opcode, attributes: _Attributes, num_replicas: int, num_partitions: int
) -> tuple[tuple[int, ...], ...]:
    """The groups of devices; each device is in at most one. Without `replica_groups` all devices that the mode joins
    are one group.

    ExecutionError if a group names a device that does not exist.

    >>> from hloom.hlo.ops.collective import CollectiveAttributes
    >>> device_groups(Opcode.ALL_TO_ALL, CollectiveAttributes(channel_id=1), 2, 3)
    ((0, 1, 2), (3, 4, 5))
    """
    mode = collective_group_mode(opcode, attributes)
    count = _count(mode, num_replicas, num_partitions)
    groups = attributes.replica_groups.groups or (tuple(range(count)),)
    _require(opcode, mode, {k for group in groups for k in group}, count)
    if mode is CollectiveGroupMode.FLATTENED_ID:
        return groups
    if mode is CollectiveGroupMode.CROSS_REPLICA_AND_PARTITION:
        return tuple(
            tuple(replica * num_partitions + p for replica in group for p in range(num_partitions)) for group in groups
        )
    spread = _spread(mode, num_replicas, num_partitions)
    return tuple(tuple(devices[k] for k in group) for devices in spread for group in groups)


def group_of(
    opcode: Opcode, attributes: _Attributes, device: int, num_replicas: int, num_partitions: int
) -> tuple[int, ...] | None:
    """The group of a device, as devices; None if it is in none. ExecutionError if it names one that does not exist; the
    other groups are not checked.

    >>> from hloom.hlo.ops.collective import CollectiveAttributes
    >>> group_of(Opcode.ALL_TO_ALL, CollectiveAttributes(channel_id=1), 4, 2, 3)
    (3, 4, 5)
    """
    mode = collective_group_mode(opcode, attributes)
    replica, partition = divmod(device, num_partitions)
    own = {CollectiveGroupMode.FLATTENED_ID: device, CollectiveGroupMode.CROSS_PARTITION: partition}.get(mode, replica)
    count = _count(mode, num_replicas, num_partitions)
    groups = attributes.replica_groups.groups or (tuple(range(count)),)
    group = next((g for g in groups if own in g), None)
    if group is None:
        return None
    _require(opcode, mode, set(group), count)
    if mode is CollectiveGroupMode.FLATTENED_ID:
        return group
    if mode is CollectiveGroupMode.CROSS_PARTITION:
        return tuple(replica * num_partitions + k for k in group)
    if mode is CollectiveGroupMode.CROSS_REPLICA:
        return tuple(k * num_partitions + partition for k in group)
    return tuple(k * num_partitions + p for k in group for p in range(num_partitions))


def device_pairs(
    attributes: _Attributes, num_replicas: int, num_partitions: int
) -> tuple[tuple[int, int], ...]:
    """(source, target) of a collective-permute, as devices. ExecutionError if a pair names one that does not exist.

    >>> from hloom.hlo.ops.collective import CollectiveAttributes
    >>> device_pairs(CollectiveAttributes(source_target_pairs=((0, 1),)), 2, 2)
    ((0, 2), (1, 3))
    """
    opcode = Opcode.COLLECTIVE_PERMUTE
    mode = collective_group_mode(opcode, attributes)
    pairs = attributes.source_target_pairs
    _require(opcode, mode, {k for pair in pairs for k in pair}, _count(mode, num_replicas, num_partitions))
    if mode is CollectiveGroupMode.FLATTENED_ID:
        return pairs
    spread = _spread(mode, num_replicas, num_partitions)
    return tuple((devices[source], devices[target]) for devices in spread for source, target in pairs)


def _count(mode: CollectiveGroupMode, num_replicas: int, num_partitions: int) -> int:
    """How many numbers the mode has."""
    if mode is CollectiveGroupMode.FLATTENED_ID:
        return num_replicas * num_partitions
    return num_partitions if mode is CollectiveGroupMode.CROSS_PARTITION else num_replicas


def _spread(mode: CollectiveGroupMode, num_replicas: int, num_partitions: int) -> list[range]:
    """The devices that the mode's numbers stand for: of each partition the replicas, or of each replica the
    partitions."""
    total = num_replicas * num_partitions
    if mode is CollectiveGroupMode.CROSS_REPLICA:
        return [range(partition, total, num_partitions) for partition in range(num_partitions)]
    return [range(first, first + num_partitions) for first in range(0, total, num_partitions)]


def _require(opcode: Opcode, mode: CollectiveGroupMode, numbers: set[int], count: int) -> None:
    largest = max(numbers, default=0)
    if largest < count:
        return
    kinds = {CollectiveGroupMode.CROSS_PARTITION: "partition", CollectiveGroupMode.FLATTENED_ID: "device"}
    kind = kinds.get(mode, "replica")
    there = "there is one" if count == 1 else f"there are {count}"
    raise ExecutionError(f"{opcode.value} among {kind}s up to {largest} needs {largest + 1} {kind}s, {there}")
