"""Private names of JAX about meshes and shardings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hloom.hlo.sharding import HloSharding
from hloom.tracer.sharding.hlo_shardings import GSPMDSharding, assignment_of, to_hlo
from hloom.tracer.sharding.shardings import Sharding

import hloom


def _to_hlo(self: Sharding, ndim: int) -> HloSharding:
    return to_hlo(self, ndim, assignment_of(self.device_set))


def _of_devices(devices: Sequence[Any], sharding: HloSharding) -> GSPMDSharding:
    return GSPMDSharding(tuple(devices), sharding)


def _indices(sharding: Sharding, *shapes: Any) -> Mapping[Any, Any]:
    first, *others = [sharding.devices_indices_map(tuple(shape)) for shape in shapes]
    if any(other != first for other in others):
        raise ValueError("the shapes are divided in several ways")
    return first


def _replicated(devices: Sequence[Any]) -> Any:
    return hloom.NamedSharding(hloom.sharding.Mesh(np.array(devices), ("devices",)), hloom.P("devices"))


def _device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Shards, one for each device, as one array with a first axis for the devices."""
    if not isinstance(shards, Sequence):
        raise TypeError(f"device_put_sharded `shards` input must be a sequence; got {type(shards)}")
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")

    def put(*values: Any) -> Any:
        return hloom.device_put(hloom.numpy.stack([hloom.numpy.asarray(v) for v in values]), _replicated(devices))

    return hloom.tree.map(put, *shards)


def _device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """A value once for each device, as one array with a first axis for the devices."""
    if not isinstance(devices, Sequence) or not devices:
        raise ValueError("`devices` argument to `device_put_replicated must be a non-empty sequence.")
    return hloom.tree.map(lambda leaf: _device_put_sharded([leaf] * len(devices), devices), x)


def _axes_of_dimensions(mapping: Mapping[str, int]) -> Any:
    if not mapping:
        return hloom.P()
    entries: list[Any] = []
    for dimension in range(max(mapping.values()) + 1):
        axes = tuple(axis for axis, place in mapping.items() if place == dimension)
        entries.append(axes[0] if len(axes) == 1 else axes or None)
    return hloom.P(*entries)


PRIVATE: dict[tuple[str, str], Any] = {
    ("api", "device_put_replicated"): _device_put_replicated,
    ("api", "device_put_sharded"): _device_put_sharded,
    ("op_shardings", "are_hlo_shardings_equal"): HloSharding.__eq__,
    ("op_shardings", "is_hlo_sharding_replicated"): lambda sharding: sharding.is_replicated,
    ("sharding", "IndivisibleError"): ValueError,
    ("sharding", "common_devices_indices_map"): _indices,
    ("sharding_impls", "GSPMDSharding"): _of_devices,
    ("sharding_impls", "array_mapping_to_axis_resources"): _axes_of_dimensions,
}

METHODS: list[tuple[type, str, Any]] = [
    (Sharding, "_device_assignment", property(lambda self: self.device_assignment)),
    (Sharding, "_to_xla_hlo_sharding", _to_hlo),
]
