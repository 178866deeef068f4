"""The axes of a mesh within a function that `shard_map` maps: which devices do a collective together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache

import numpy as np

from ...hlo.replica_groups import ReplicaGroups
from ...hlo.sharding import HloSharding
from ...hlo.support.records import dataclass
from ..settings.context import current_context
from .hlo_shardings import assignment_of, manual_hlo
from .mesh import Mesh
from .partition_spec import PartitionSpec
from .shardings import NamedSharding


@dataclass(frozen=True, slots=True)
class ManualAxes:
    """The mesh of a `shard_map`, and which of its axes the function knows."""

    mesh: Mesh
    tracks: bool = True
    """Whether types say along which axes values vary (`check_vma`)."""
    names: tuple[Hashable, ...] | None = None
    """The axes that the function and those around it know; None: all of the mesh's."""

    @property
    def axes(self) -> tuple[Hashable, ...]:
        """The axes along which each device has values of its own."""
        return self.mesh.axis_names if self.names is None else self.names

    @property
    def region(self) -> HloSharding | None:
        """How a scalar there is divided: which devices have one of their own. None if all have."""
        found = manual_hlo(NamedSharding(self.mesh, PartitionSpec()), 0, self.axes)
        return None if found.is_manual else found

    def owns(self, axes: Sequence[Hashable]) -> bool:
        """Whether the function knows all of the axes."""
        return all(a in self.axes for a in axes)

    def groups(self, axes: Sequence[Hashable], places: Sequence[Sequence[int]] = ()) -> ReplicaGroups:
        """The devices that have the same place along all other axes; in the order of `axes`, the last one fastest.
        `places`: divided further, by their place along the axes."""
        rows = _numbers(self.mesh, tuple(axes))
        if places:
            return _written([row[list(group)] for group in places for row in rows])
        return _written(rows)

    def pairs(self, axis: Hashable, permutation: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Pairs of places along an axis as pairs of devices."""
        return tuple([(int(row[s]), int(row[t])) for row in _numbers(self.mesh, (axis,)) for s, t in permutation])

    def places(self, axis: Hashable) -> list[int]:
        """The place along an axis of each device, by its number."""
        found = [0] * self.mesh.size
        for row in _numbers(self.mesh, (axis,)):
            for place, number in enumerate(row):
                found[int(number)] = place
        return found


def _written(rows: Iterable[Iterable[int]]) -> ReplicaGroups:
    groups = tuple([tuple([int(n) for n in row]) for row in rows])
    text = ",".join(["{" + ",".join(map(str, g)) + "}" for g in groups])
    return ReplicaGroups(groups, "{" + text + "}")


@lru_cache(maxsize=256)
def _numbers(mesh: Mesh, axes: tuple[Hashable, ...]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The numbers of devices in programs over the mesh: a row for each group over `axes`."""
    numbers = {d: k for k, d in enumerate(assignment_of(mesh.devices.flat))}
    grid = np.array([numbers[d] for d in mesh.devices.flat], np.int64).reshape(mesh.axis_sizes)
    inner = [mesh.axis_names.index(a) for a in axes]
    outer = [d for d in range(grid.ndim) if d not in inner]
    return grid.transpose([*outer, *inner]).reshape(-1, math.prod([mesh.axis_sizes[d] for d in inner]))


def current_manual_axes() -> ManualAxes | None:
    """The manual axes of the function that is traced; None outside of a `shard_map` over several devices."""
    found: ManualAxes | None = current_context().manual_axes
    return found
