"""Shardings of users as shardings of HLO, and back.

HLO counts the devices of a program from 0, in the order of their ids: that order is the program's device assignment,
for any order of meshes over the same devices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np

from ...hlo.sharding import HloSharding
from .devices import CpuDevice
from .mesh import AbstractMesh, AxisType, Mesh
from .partition_spec import UNCONSTRAINED, PartitionSpec, axes_of
from .shardings import Index, ManualSharding, NamedSharding, Sharding

Assignment = tuple[CpuDevice, ...]


def assignment_of(devices: Iterable[CpuDevice]) -> Assignment:
    """The devices in the order in which programs over them count."""
    return tuple(sorted(set(devices), key=lambda d: d.id))


class GSPMDSharding(Sharding):
    """An array divided as an HLO sharding says, where no axes of a mesh say the same."""

    __slots__ = ("_assignment", "hlo")

    def __init__(self, assignment: Assignment, hlo: HloSharding) -> None:
        self._assignment = assignment
        self.hlo: HloSharding = hlo
        self._memory_kind = "device"

    @property
    def device_assignment(self) -> Assignment:
        return self._assignment

    @property
    def is_fully_replicated(self) -> bool:
        return self.hlo.is_replicated

    def parts(self, ndim: int) -> tuple[int, ...]:
        return tuple(self.hlo.tile[:ndim]) if self.hlo.is_tiled else (1,) * ndim

    def devices_indices_map(self, global_shape: Sequence[int]) -> Mapping[CpuDevice, Index]:
        shape = tuple(global_shape)
        self.shard_shape(shape)
        rank = len(self.hlo.tile) if self.hlo.is_tiled else len(shape)
        sizes = (*shape, *[1] * (rank - len(shape)))
        found = {}
        for number, device in enumerate(self._assignment):
            index = self.hlo.part(number, sizes) if self.hlo.is_tiled else (slice(None),) * len(shape)
            divided = zip(index[: len(shape)], self.parts(len(shape)), strict=True)
            found[device] = tuple([s if n > 1 else slice(None) for s, n in divided])
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GSPMDSharding) and (other._assignment, other.hlo) == (self._assignment, self.hlo)

    def __hash__(self) -> int:
        return hash((self._assignment, self.hlo))

    def __repr__(self) -> str:
        return f"GSPMDSharding({self.hlo.to_text()})"


def to_hlo(sharding: Sharding, rank: int, assignment: Assignment) -> HloSharding:
    """The sharding of an array of `rank` dimensions, for a program over the devices of `assignment`."""
    if isinstance(sharding, ManualSharding):
        return manual_hlo(NamedSharding(sharding.mesh, PartitionSpec()), rank, sharding.names, assignment)
    if isinstance(sharding, GSPMDSharding):
        return sharding.hlo
    if not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, AbstractMesh):
        return HloSharding.replicate()
    return _of_axes(sharding.mesh, _axes_by_dimension(sharding, rank), (), assignment)


def over_abstract_mesh(sharding: NamedSharding, rank: int) -> HloSharding:
    """The sharding of an array of `rank` dimensions over the devices 0, 1, 2, ... in the order of the mesh."""
    return _of_axes(sharding.mesh.abstract_mesh, _axes_by_dimension(sharding, rank), (), ())


def _axes_by_dimension(sharding: NamedSharding, rank: int) -> list[Sequence[Any]]:
    entries = [() if e is UNCONSTRAINED else axes_of(e) for e in sharding.spec.partitions]
    return [*entries, *[()] * (rank - len(entries))]


def _of_axes(
    mesh: Mesh | AbstractMesh, by_dimension: Sequence[Sequence[Any]], manual: Sequence[Any], assignment: Assignment
) -> HloSharding:
    def size(axes: Sequence[Any]) -> int:
        return math.prod([mesh.shape[a] for a in axes])

    used = [a for axes in by_dimension for a in axes]
    rest = [a for a in mesh.axis_names if a not in used and a not in manual]
    numbers = {d: k for k, d in enumerate(assignment)}
    places = range(mesh.size) if isinstance(mesh, AbstractMesh) else [numbers[d] for d in mesh.devices.flat]
    grid = np.array(places).reshape(mesh.axis_sizes)
    order = grid.transpose([mesh.axis_names.index(a) for a in (*used, *manual, *rest)])
    devices = [int(n) for n in order.flat]
    return HloSharding.from_tiles([size(axes) for axes in by_dimension], devices, size(rest), size(manual))


def manual_hlo(
    sharding: NamedSharding, rank: int, names: Sequence[Any], assignment: Assignment | None = None
) -> HloSharding:
    """The sharding of an array of `rank` dimensions that devices along the axes `names` have each their own, and that
    is divided along the others. If these have one device: manual."""
    mesh = sharding.mesh
    assert isinstance(mesh, Mesh), f"{mesh} has no devices"
    if math.prod([mesh.shape[a] for a in names]) == mesh.size:
        return HloSharding.manual()
    entries = [[a for a in axes_of(e) if a not in names] for e in sharding.spec.partitions]
    own = [a for a in mesh.axis_names if a in names]
    by_dimension = [*entries, *[[]] * (rank - len(entries))]
    return _of_axes(mesh, by_dimension, own, assignment or assignment_of(mesh.devices.flat))


def open_dimensions(sharding: Sharding) -> list[int]:
    """The dimensions that the compiler may divide as it likes."""
    spec = getattr(sharding, "spec", ())
    return [d for d, e in enumerate(getattr(spec, "partitions", ())) if e is UNCONSTRAINED]


def from_hlo(hlo: HloSharding, rank: int, assignment: Assignment, meshes: Sequence[Mesh]) -> Sharding:
    """A sharding of users that says the same for an array of `rank` dimensions: over the first of `meshes` (of these
    devices) with axes that fit."""
    if hlo.is_manual:
        return ManualSharding(meshes[0] if meshes else _line(assignment))
    if hlo.is_partly_manual:
        return _manual_from_hlo(hlo, rank, assignment, meshes)
    if hlo.is_replicated:
        return NamedSharding(meshes[0] if meshes else _line(assignment), PartitionSpec())
    for mesh in meshes:
        for spec in _specs(hlo.tile[:rank], mesh):
            candidate = NamedSharding(mesh, spec)
            if to_hlo(candidate, len(hlo.tile), assignment) == hlo:
                return candidate
    return GSPMDSharding(assignment, hlo)


def _manual_from_hlo(hlo: HloSharding, rank: int, assignment: Assignment, meshes: Sequence[Mesh]) -> ManualSharding:
    for mesh in meshes:
        for count in range(len(mesh.axis_names)):
            for names in combinations(mesh.axis_names, count):
                found = ManualSharding(mesh, names)
                if to_hlo(found, rank, assignment) == hlo:
                    return found
    raise AssertionError(f"{hlo} is of no mesh of the program")


def _line(assignment: Assignment) -> Mesh:
    return Mesh(np.array(assignment, dtype=object), ("_",), (AxisType.Auto,))


def _specs(tile: Sequence[int], mesh: Mesh) -> Iterator[PartitionSpec]:
    """The specs that divide dimensions into so many parts."""

    def extend(d: int, free: tuple[Any, ...], entries: tuple[Any, ...]) -> Iterator[PartitionSpec]:
        if d == len(tile):
            while entries and entries[-1] is None:
                entries = entries[:-1]
            yield PartitionSpec(*entries)
            return
        if tile[d] == 1:
            yield from extend(d + 1, free, (*entries, None))
            return
        for count in range(1, len(free) + 1):
            for axes in permutations(free, count):
                if math.prod([mesh.shape[a] for a in axes]) == tile[d]:
                    left = tuple([a for a in free if a not in axes])
                    yield from extend(d + 1, left, (*entries, axes[0] if count == 1 else axes))

    return extend(0, tuple([a for a in mesh.axis_names if mesh.shape[a] > 1]), ())
