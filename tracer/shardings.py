"""Shardings: which part of an array lies on which device. There is one device, and all of every array lies there.

They are still told apart, compared and printed as JAX does, since programs ask for the sharding that they gave.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .devices import CPU, MEMORY_KINDS, CpuDevice, check_device
from .mesh import AbstractMesh, AxisType, Mesh
from .partition_spec import UNCONSTRAINED, PartitionSpec, axes_of

__all__ = [
    "UNSPECIFIED",
    "DuplicateSpecError",
    "IndivisibleError",
    "NamedSharding",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "make_single_device_sharding",
]

Index = tuple[slice, ...]


class IndivisibleError(ValueError):
    """A dimension cannot be divided into as many equal parts as a sharding says."""


class DuplicateSpecError(Exception):
    """A PartitionSpec names an axis of the mesh twice."""


class Unspecified:
    """What `in_shardings` and `out_shardings` are where nothing was given."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = Unspecified()


class Sharding:
    """Which part of an array lies on which device. Made as a NamedSharding or a SingleDeviceSharding.

    >>> from hloom import numpy as jnp, sharding
    >>> isinstance(jnp.zeros(3).sharding, sharding.Sharding)
    True
    """

    __slots__ = ("__weakref__", "_memory_kind")
    _memory_kind: str | None

    @property
    def device_set(self) -> set[CpuDevice]:
        """The devices that hold parts."""
        return {CPU}

    @property
    def addressable_devices(self) -> set[CpuDevice]:
        """The devices of this process that hold parts."""
        return self.device_set

    @property
    def num_devices(self) -> int:
        return len(self.device_set)

    @property
    def has_addressable_devices(self) -> bool:
        return True

    @property
    def is_fully_addressable(self) -> bool:
        """True: all devices are of this process."""
        return bool(self.device_set)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has the whole array."""
        return True

    @property
    def memory_kind(self) -> str | None:
        return self._memory_kind

    def with_memory_kind(self, kind: str) -> Sharding:
        """The same sharding with another kind of memory."""
        raise NotImplementedError(f"{type(self).__name__} has no kind of memory")

    def parts(self, ndim: int) -> tuple[int, ...]:
        """Into how many parts each dimension is divided."""
        return (1,) * ndim

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError if an array of this shape cannot be sharded so."""

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part on each device. `IndivisibleError` (a ValueError) if parts would not be equal."""
        shape = tuple(global_shape)
        parts = self.parts(len(shape))
        for d, (size, count) in enumerate(zip(shape, parts, strict=True)):
            if size % count:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {d} is partitioned {count} times, but the dimension size "
                    f"is {size} (full shape: {shape}, per-dimension tiling factors: {parts} should evenly divide the "
                    "shape)"
                )
        return tuple([size // count for size, count in zip(shape, parts, strict=True)])

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[CpuDevice, Index]:
        """The part of the array that each device has, as slices."""
        self.shard_shape(global_shape)
        return dict.fromkeys(self.device_set, (slice(None),) * len(global_shape))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[CpuDevice, Index]:
        """The same for the devices of this process."""
        return self.devices_indices_map(global_shape)

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of an array of `ndim` dimensions on the same devices."""
        return (
            self.parts(ndim) == other.parts(ndim)
            and self.memory_kind == other.memory_kind
            and _devices_of(self) == _devices_of(other)
        )


def _devices_of(sharding: Sharding) -> Any:
    return sharding.mesh if isinstance(getattr(sharding, "mesh", None), AbstractMesh) else sharding.device_set  # type: ignore[attr-defined]


def _checked_kind(kind: str | None) -> str | None:
    if kind is not None and kind not in MEMORY_KINDS:
        known = ", ".join(MEMORY_KINDS)
        raise ValueError(f"Could not find memory addressable by device cpu: memory kind {kind!r}; there are {known}")
    return kind


class SingleDeviceSharding(Sharding):
    """All of an array on one device.

    >>> import hloom
    >>> hloom.sharding.SingleDeviceSharding(hloom.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    __slots__ = ("_device",)

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = check_device(device, "SingleDeviceSharding")
        self._memory_kind = "device" if memory_kind is None else _checked_kind(memory_kind)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and other._memory_kind == self._memory_kind

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._memory_kind))

    def __reduce__(self) -> tuple[Any, ...]:
        return make_single_device_sharding, (self._device, self._memory_kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"


def make_single_device_sharding(device: Any, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding that puts all of an array on `device`.

    >>> import hloom
    >>> from hloom import sharding
    >>> sharding.make_single_device_sharding(hloom.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """An array divided over a mesh: `spec` names, for each dimension, the axes of `mesh` that divide it.

    >>> import hloom
    >>> mesh = hloom.make_mesh((1,), ("x",))
    >>> hloom.NamedSharding(mesh, hloom.P("x")).shard_shape((4, 2))
    (4, 2)
    """

    __slots__ = ("mesh", "spec")

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(f"NamedSharding: mesh must be a Mesh or an AbstractMesh, not {mesh!r}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding: spec must be a PartitionSpec (hloom.P), not {spec!r}")
        self.mesh = mesh
        self.spec = spec
        on_device = isinstance(mesh, Mesh) and memory_kind is None
        self._memory_kind = "device" if on_device else _checked_kind(memory_kind)
        _check_spec(mesh, spec)

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"NamedSharding is immutable: use update(...) to change {name}")
        object.__setattr__(self, name, value)

    @property
    def device_set(self) -> set[CpuDevice]:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("device_set is not implemented for `hloom.sharding.AbstractMesh`.")
        return set(self.mesh.devices.flat)

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        return math.prod([self.mesh.shape[a] for a in self.spec.axes()]) == 1

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh that divide no dimension."""
        return frozenset(self.mesh.axis_names) - {*self.spec.axes()} - self.spec.unreduced - self.spec.reduced

    def parts(self, ndim: int) -> tuple[int, ...]:
        counts = [math.prod([self.mesh.shape[a] for a in axes_of(entry)]) for entry in self.spec.partitions]
        return (*counts[:ndim], *[1] * (ndim - len(counts)))

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        self.spec.check_rank(tuple(aval_shape), f"Sharding {self}")

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return self.update(memory_kind=kind)

    def update(self, **changes: Any) -> NamedSharding:
        """The sharding with another mesh, spec or kind of memory."""
        given = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind, **changes}
        spec = given.pop("spec")
        spec = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        return NamedSharding(given.pop("mesh"), spec, **given)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NamedSharding)
            and self.mesh is other.mesh
            and self.spec is other.spec
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec, self._memory_kind))

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.mesh, self.spec, self._memory_kind)

    def __repr__(self) -> str:
        kind = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


def undivided(rank: int) -> NamedSharding:
    """The sharding of a type of `rank` dimensions: no dimension is divided, over no mesh."""
    return NamedSharding(AbstractMesh((), ()), PartitionSpec(*[None] * rank))


def _named(mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


def _check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    check_duplicates(spec, "NamedSharding spec")
    for axis in spec.axes():
        if axis not in mesh.axis_names:
            raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}.")
    if UNCONSTRAINED in spec.partitions and AxisType.Auto not in mesh.axis_types:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh axis_types: "
            f"{mesh.axis_types}"
        )
    for name, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for axis in axes:
            if axis not in mesh.axis_names:
                raise ValueError(f"{name} axes {axis} is not found in {mesh.axis_names=}. Got {spec}")
            if mesh.name_to_type[axis] is not AxisType.Explicit:
                raise ValueError(
                    f"{name} axes can only refer to mesh axes that is of type `Explicit`. Got {set(axes)} and mesh: "
                    f"{mesh}"
                )


def check_duplicates(spec: PartitionSpec, what: str) -> None:
    """`DuplicateSpecError` if the spec names an axis twice."""
    axes = spec.axes()
    twice = sorted({str(a) for a in axes if axes.count(a) > 1})
    if twice:
        raise DuplicateSpecError(
            f"A single {what} specification can map every mesh axis to at most one positional dimension, but {spec} "
            f"has duplicate entries for {', '.join([f'`{a}`' for a in twice])}"
        )


DEFAULT = SingleDeviceSharding(CPU)
"""Where arrays are that nobody has put elsewhere."""


class Shard:
    """The part of an array on one device: the whole of it.

    >>> import hloom.numpy as jnp
    >>> (shard,) = jnp.ones((2, 3)).addressable_shards
    >>> shard.device, shard.data.shape
    (CpuDevice(id=0), (2, 3))
    """

    __slots__ = ("_array", "data")

    def __init__(self, array: Any, data: Any) -> None:
        self._array = array
        self.data = data

    device = CPU
    replica_id = 0

    @property
    def index(self) -> Index:
        """Where the part is in the array."""
        return (slice(None),) * len(self._array.shape)

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id=0, data={self.data})"


_HOME = f"{__name__.partition('.')[0]}.sharding"
for _class in (NamedSharding, Sharding, SingleDeviceSharding):
    _class.__module__ = _HOME
