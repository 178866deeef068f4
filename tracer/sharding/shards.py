"""Arrays on several devices: cut into the shards of a sharding, and assembled from them.

A shard is a `DeviceBuffer`, one for each device of this process, in the order in which the sharding counts devices.
Devices of one process share its memory: those that hold the same part share a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...hlo.backend import DeviceBuffer
from ...hlo.element_type import element_type_of
from ...hlo.host_buffers import HostBuffer
from ...hlo.shape import Shape
from ...hlo.support.memory_pressure import allocating
from .devices import CpuDevice
from .shardings import Index, ManualSharding, NamedSharding, Shard, Sharding, SingleDeviceSharding

NDArray = np.ndarray[Any, Any]


def storage_index(index: Index, rank: int) -> Index:
    """The index of a part in the array that stores the elements, which may have further dimensions."""
    return (*index, *[slice(None)] * (rank - len(index)))


def cut(view: NDArray, sharding: Sharding, shape: Sequence[int]) -> list[DeviceBuffer]:
    """The shards of `view`, which stores an array of `shape`. Along unreduced axes the first devices have its elements,
    and the others zeros."""
    if isinstance(sharding, ManualSharding):
        raise AssertionError("an array whose devices have different values is never cut")
    made: dict[Any, DeviceBuffer] = {}
    found = []
    terms = terms_of(sharding)
    for device, index in sharding.addressable_devices_indices_map(tuple(shape)).items():
        is_zero = any(terms.get(device, ()))
        key = (*[(s.start, s.stop) for s in index], is_zero)
        buffer = made.get(key)
        if buffer is None:
            part = view[storage_index(index, view.ndim)]
            sizes = part.shape  # NumPy makes vectors of scalars
            part = allocating(np.zeros, sizes, part.dtype) if is_zero else allocating(np.ascontiguousarray, part)
            part = part.reshape(sizes)
            buffer = made[key] = HostBuffer(part, Shape.array(element_type_of(part.dtype), part.shape))
        found.append(buffer)
    return found


def terms_of(sharding: Sharding) -> Mapping[CpuDevice, tuple[int, ...]]:
    """For each device which of the terms it has that add up to the array, by its places along the unreduced axes;
    nothing for an array that is no sum."""
    if not isinstance(sharding, NamedSharding) or not (unreduced := sharding.spec.unreduced):
        return {}
    places = np.indices(sharding.mesh.axis_sizes).reshape(len(sharding.mesh.axis_sizes), -1)
    rows = [places[k] for k, a in enumerate(sharding.mesh.axis_names) if a in unreduced]
    return {d: tuple([int(r[n]) for r in rows]) for n, d in enumerate(sharding.device_assignment)}


def assembled(shards: Sequence[DeviceBuffer], sharding: Sharding, shape: Sequence[int], whole: Shape) -> NDArray:
    """The elements of an array of `shape` with a storage of type `whole`.

    Terms of a sum are added. RuntimeError if parts of it are on devices of other processes.
    """
    if isinstance(sharding, ManualSharding):
        raise RuntimeError(
            "each device has a value of its own here: it comes from within a function that shard_map maps, and has "
            "left it. Return it from the function, with out_specs that say how the values make up an array"
        )
    if sharding.is_fully_replicated and shards:
        return shards[0].__array__()
    if not sharding.is_fully_addressable:
        raise RuntimeError(
            "Fetching value for `hloom.Array` that spans non-addressable (non process local) devices is not possible. "
            "You can use `hloom.experimental.multihost_utils.process_allgather` to print the global array or use "
            "`.addressable_shards` method of hloom.Array to inspect the addressable shards of the global array."
        )
    terms = terms_of(sharding)
    result = allocating(np.zeros if terms else np.empty, whole.dimensions, whole.element.dtype)
    parts = sharding.devices_indices_map(tuple(shape)).items()
    written = set()
    for (device, index), shard in zip(parts, shards, strict=True):
        key = (*[(s.start, s.stop) for s in index], terms.get(device))
        if key not in written:
            if terms:
                result[storage_index(index, result.ndim)] += shard.__array__()
            else:
                result[storage_index(index, result.ndim)] = shard.__array__()
            written.add(key)
    result.flags.writeable = False
    return result


def distinct_parts(sharding: Sharding, shape: Sequence[int]) -> list[tuple[Any, Index, int]]:
    """Each device with the index of its part, and how many before it have the same."""
    seen: dict[Any, int] = {}
    found = []
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        key = tuple([(s.start, s.stop) for s in index])
        seen[key] = seen.get(key, -1) + 1
        found.append((device, index, seen[key]))
    return found


def shard_shape(sharding: Sharding, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the part on each device."""
    return shape if isinstance(sharding, ManualSharding) else sharding.shard_shape(shape)


def shards_of(
    sharding: Sharding, shape: Sequence[int], make: Callable[[DeviceBuffer, SingleDeviceSharding], Any],
    buffers: Sequence[DeviceBuffer],
) -> list[Shard]:
    """All shards; shards in other processes have no data. `make` makes an array of a buffer on a device."""
    own = dict(zip(sharding.addressable_assignment, buffers, strict=True))
    return [
        Shard(device, index, replica, make(own[device], SingleDeviceSharding(device)) if device in own else None)
        for device, index, replica in distinct_parts(sharding, shape)
    ]
