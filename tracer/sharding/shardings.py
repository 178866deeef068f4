"""Shardings: which part of an array lies on which device. Told apart, compared and printed as JAX does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ...hlo.library import set_module
from ...hlo.notebooks import in_notebooks
from ...hlo.support.tracebacks import boundaries, hide
from .devices import MEMORY_KINDS, CpuDevice, check_device, default_device, process_index
from .mesh import AbstractMesh, AxisType, Mesh
from .partition_spec import UNCONSTRAINED, PartitionSpec, axes_of

Index = tuple[slice, ...]
NONE: frozenset[Any] = frozenset()


class IndivisibleError(ValueError):
    """A dimension cannot be divided into as many equal parts as a sharding says."""


class DuplicateSpecError(Exception):
    """A PartitionSpec names an axis of the mesh twice."""


class Unspecified:
    """The value of `in_shardings` and `out_shardings` where none was given."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = Unspecified()


class Sharding:
    """Which part of an array lies on which device. Made as a NamedSharding or a SingleDeviceSharding.

    >>> isinstance(jnp.zeros(3).sharding, sharding.Sharding)
    True
    """

    __slots__ = ("__weakref__", "_memory_kind")
    _memory_kind: str | None

    @property
    def device_assignment(self) -> tuple[CpuDevice, ...]:
        """The devices that hold parts, in the order in which programs count them."""
        raise NotImplementedError(f"{type(self).__name__} has no devices")

    @property
    def device_set(self) -> set[CpuDevice]:
        """The devices that hold parts."""
        return set(self.device_assignment)

    @property
    def addressable_assignment(self) -> list[CpuDevice]:
        """The devices of this process that hold parts, in order."""
        here = process_index()
        return [d for d in self.device_assignment if d.process_index == here]

    @property
    def _addressable_device_assignment(self) -> tuple[CpuDevice, ...]:
        """JAX's name, which libraries for checkpoints read."""
        return tuple(self.addressable_assignment)

    @property
    def addressable_devices(self) -> set[CpuDevice]:
        """The devices of this process that hold parts."""
        return set(self.addressable_assignment)

    @property
    def num_devices(self) -> int:
        return len(self.device_set)

    @property
    def has_addressable_devices(self) -> bool:
        return bool(self.addressable_assignment)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are of this process."""
        here = process_index()
        return all(d.process_index == here for d in self.device_assignment)

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
        """The part of the array that each device has, as slices. ValueError if an array of this shape cannot be sharded
        so."""
        self.shard_shape(global_shape)
        return dict.fromkeys(self.device_assignment, (slice(None),) * len(global_shape))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[CpuDevice, Index]:
        """The same for the devices of this process."""
        here = process_index()
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if d.process_index == here}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both put the same parts of an array of `ndim` dimensions on the same devices."""
        return (
            self.parts(ndim) == other.parts(ndim)
            and self.memory_kind == other.memory_kind
            and _division(self, ndim) == _division(other, ndim)
        )

    _repr_html_ = in_notebooks


def _division(sharding: Sharding, ndim: int) -> Any:
    """The devices, each with its part of an array of `ndim` dimensions that is cut into parts of one element."""
    sums = (sharding.spec.unreduced, sharding.spec.reduced) if isinstance(sharding, NamedSharding) else (NONE, NONE)
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        return sharding.mesh, [axes_of(e) for e in sharding.spec.partitions[:ndim]], sums  # type: ignore[attr-defined]
    found = sharding.devices_indices_map(sharding.parts(ndim))
    return {d: tuple([(s.start, s.stop) for s in index]) for d, index in found.items()}, sums


def _checked_kind(kind: str | None) -> str | None:
    if kind is not None and kind not in MEMORY_KINDS:
        known = ", ".join(MEMORY_KINDS)
        raise ValueError(f"Could not find memory addressable by device cpu: memory kind {kind!r}; there are {known}")
    return kind


class SingleDeviceSharding(Sharding):
    """All of an array on one device.

    >>> hloom.sharding.SingleDeviceSharding(hloom.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    __slots__ = ("_device",)
    _device: CpuDevice

    @property
    def device_assignment(self) -> tuple[CpuDevice, ...]:
        return (self._device,)

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = check_device(device, "SingleDeviceSharding")
        self._memory_kind = "device" if memory_kind is None else _checked_kind(memory_kind)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and other._device is self._device
            and other._memory_kind == self._memory_kind
        )

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device, self._memory_kind))

    def __reduce__(self) -> tuple[Any, ...]:
        return make_single_device_sharding, (self._device, self._memory_kind)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self._memory_kind})"


def make_single_device_sharding(device: Any, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding that puts all of an array on `device`.

    >>> sharding.make_single_device_sharding(hloom.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """An array divided over a mesh: `spec` names, for each dimension, the axes of `mesh` that divide it.

    >>> mesh = hloom.make_mesh((1,), ("x",))
    >>> hloom.NamedSharding(mesh, hloom.P("x")).shard_shape((4, 2))
    (4, 2)
    """

    __slots__ = ("_hash", "mesh", "spec")

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, Mesh | AbstractMesh):
            raise TypeError(f"NamedSharding: mesh must be a Mesh or an AbstractMesh, not {mesh!r}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding: spec must be a PartitionSpec (hloom.P), not {spec!r}")
        self.mesh: Mesh | AbstractMesh = mesh
        self.spec: PartitionSpec = spec
        on_device = isinstance(mesh, Mesh) and memory_kind is None
        try:
            self._memory_kind = "device" if on_device else _checked_kind(memory_kind)
            _check_spec(mesh, spec)
        except BaseException as error:
            hide(error)
            raise
        self._hash = hash((mesh, spec, self._memory_kind))

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"NamedSharding is immutable: use update(...) to change {name}")
        object.__setattr__(self, name, value)

    @property
    def device_assignment(self) -> tuple[CpuDevice, ...]:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("device_set is not implemented for `hloom.sharding.AbstractMesh`.")
        return tuple(self.mesh.devices.flat)

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        return math.prod([self.mesh.shape[a] for a in (*self.spec.axes(), *self.spec.unreduced)]) == 1

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh that divide no dimension."""
        return frozenset(self.mesh.axis_names) - {*self.spec.axes()} - self.spec.unreduced - self.spec.reduced

    def parts(self, ndim: int) -> tuple[int, ...]:
        counts = [math.prod([self.mesh.shape[a] for a in axes_of(entry)]) for entry in self.spec.partitions]
        return (*counts[:ndim], *[1] * (ndim - len(counts)))

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[CpuDevice, Index]:
        shape = self.shard_shape(global_shape)
        ranks = dict(zip(self.mesh.axis_names, np.indices(self.mesh.axis_sizes), strict=True))
        found: list[list[slice]] = [[] for _ in self.device_assignment]
        entries = (*self.spec.partitions, *[None] * (len(shape) - len(self.spec.partitions)))
        for size, entry in zip(shape, entries, strict=False):  # a storage may have further dimensions
            part = np.zeros(self.mesh.axis_sizes, int)
            for axis in axes_of(entry):
                part = part * self.mesh.shape[axis] + ranks[axis]
            is_divided = math.prod([self.mesh.shape[a] for a in axes_of(entry)]) > 1
            for index, k in zip(found, part.flat, strict=True):
                index.append(slice(int(k) * size, (int(k) + 1) * size) if is_divided else slice(None))
        return {d: tuple(index) for d, index in zip(self.device_assignment, found, strict=True)}

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
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(NamedSharding, memory_kind=self._memory_kind), (self.mesh, self.spec)

    def __repr__(self) -> str:
        kind = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


def undivided(rank: int, mesh: AbstractMesh) -> NamedSharding:
    """The sharding of a type of `rank` dimensions of which `mesh` divides none."""
    return NamedSharding(mesh, PartitionSpec(*[None] * rank))


def whole_mesh(mesh: Mesh, rank: int) -> NamedSharding:
    """The place of an array of `rank` dimensions on all devices of a mesh, as JAX writes it."""
    return NamedSharding(mesh, PartitionSpec(*[None] * rank if mesh.are_all_axes_explicit else ()))


@lru_cache(maxsize=4096)
def explicit_part(sharding: Sharding, rank: int) -> NamedSharding | None:
    """The part of a sharding that types of `rank` dimensions keep: the Explicit axes. None if it says nothing of
    them."""
    if not isinstance(sharding, NamedSharding):
        return None
    mesh, spec = sharding.mesh.abstract_mesh, sharding.spec
    explicit = mesh.explicit_axes
    kept = [tuple([a for a in axes_of(e) if a in explicit]) for e in spec.partitions[:rank]]
    if not any(kept) and not spec.unreduced and not spec.reduced:
        return None
    return NamedSharding(mesh, spec_of_axes([*kept, *[()] * (rank - len(kept))], spec.unreduced, spec.reduced))


def spec_of_axes(
    division: Sequence[Sequence[Any]], unreduced: frozenset[Any] = NONE, reduced: frozenset[Any] = NONE
) -> PartitionSpec:
    """The spec with these axes for each dimension."""
    entries = [None if not a else a[0] if len(a) == 1 else tuple(a) for a in division]
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


def _check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    check_duplicates(spec, "NamedSharding spec")
    for axis in spec.axes():
        if axis not in mesh.axis_names:
            raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}. Use its axes.")
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


class ManualSharding(Sharding):
    """Each device of a mesh has an array of its own, of the type that the array says: a value from within a function
    that `shard_map` maps, which derivatives hand from one program to the next. Users do not meet it."""

    __slots__ = ("mesh", "names")

    def __init__(self, mesh: Mesh, names: tuple[Any, ...] | None = None) -> None:
        self.mesh: Mesh = mesh
        self.names: tuple[Any, ...] = mesh.axis_names if names is None else names
        """The axes along which they have arrays of their own; devices along the others share one."""
        self._memory_kind = "device"

    @property
    def device_assignment(self) -> tuple[CpuDevice, ...]:
        return tuple(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManualSharding) and self.mesh is other.mesh and self.names == other.names

    def __hash__(self) -> int:
        return hash((ManualSharding, self.mesh, self.names))

    def __repr__(self) -> str:
        return f"ManualSharding(mesh={self.mesh}, names={self.names})"


def default_sharding() -> SingleDeviceSharding:
    """The place of arrays that have not been placed explicitly."""
    device = default_device()
    found = _DEFAULTS.get(device)
    return found if found is not None else _DEFAULTS.setdefault(device, SingleDeviceSharding(device))


_DEFAULTS: dict[CpuDevice, SingleDeviceSharding] = {}


class Shard:
    """The part of an array on one device. `data`: an array on that device; None if the device is not of this process.

    >>> (shard,) = jnp.ones((2, 3)).addressable_shards
    >>> shard.device, shard.data.shape
    (CpuDevice(id=0), (2, 3))
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: CpuDevice, index: Index, replica_id: int, data: Any) -> None:
        self.device: CpuDevice = device
        self.index: Index = index
        """Where the part is in the array."""
        self.replica_id: int = replica_id
        """How many devices before this one, in the sharding's order, have the same part."""
        self.data = data

    def __repr__(self) -> str:
        shown = f"device={self.device!r}, index={self.index}, replica_id={self.replica_id}"
        return f"Shard({shown}, data={self.data})" if self.data is not None else f"Shard({shown})"


set_module("sharding", NamedSharding, Sharding, SingleDeviceSharding)


for _kind in (Sharding, SingleDeviceSharding, NamedSharding):
    boundaries(_kind, *[n for n in ("devices_indices_map", "shard_shape", "with_memory_kind") if n in vars(_kind)])
