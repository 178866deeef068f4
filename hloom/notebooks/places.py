"""Views of meshes and shardings: devices in a grid, and the part of an array that each one has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from ..hlo.pictures.grid import NO_BOX, Box, grid_figure
from ..hlo.support.tables import Table
from ..tracer.sharding.devices import CpuDevice
from ..tracer.sharding.mesh import AbstractMesh, Mesh
from ..tracer.sharding.partition_spec import axes_of
from ..tracer.sharding.shardings import Index, ManualSharding, NamedSharding, Sharding
from .page import Html, facts, figure, page, table, title

_MOST = 1024
"""Boxes in a figure."""
_GRIDS = 8
"""Grids of a mesh with more than two axes."""
_ROWS = 64
"""Devices in a table."""


# ---- meshes


def mesh_view(mesh: Mesh | AbstractMesh) -> Iterator[Html]:
    """A mesh: its axes, and its devices in a grid, where it has some."""
    yield title(type(mesh).__name__, "", _count(mesh.size, "device"))
    if mesh.axis_names:
        types = dict(mesh.name_to_type)
        rows = [(str(name), str(size), types[name].name) for name, size in mesh.shape_tuple]
        yield table(Table(("axis", "size", "type"), rows, frozenset({1})))
    if isinstance(mesh, AbstractMesh):
        device = mesh.abstract_device
        yield facts(("devices", "any" if device is None else f"any {device.device_kind}"))
    elif 0 < mesh.size <= _MOST:
        yield from _grids(mesh)


def _grids(mesh: Mesh) -> Iterator[Html]:
    """A grid of the last two axes, for each place along those before."""
    names, sizes = [str(name) for name in mesh.axis_names], mesh.axis_sizes
    outer = max(len(names) - 2, 0)
    places = list(product(*[range(size) for size in sizes[:outer]]))
    for place in places[:_GRIDS]:
        devices = mesh.devices[place].reshape(-1, sizes[-1])
        boxes = [[Box(f"{d.platform.upper()} {d.id}", d.id) for d in row] for row in devices]
        down = names[outer] if len(names) - outer == 2 else ""
        where = ", ".join(f"{name} = {at}" for name, at in zip(names, place))
        if where:
            yield facts(("where", where))
        yield figure(grid_figure(boxes, f"Devices of {mesh}", down, names[-1]))
    if len(places) > _GRIDS:
        yield facts(("and", f"{len(places) - _GRIDS} more grids"))


# ---- shardings


Held = Mapping[CpuDevice, Index]
"""The part of an array that each device has."""


def boxes_of(held: Held) -> list[list[Box]]:
    """The parts of an array of one or two dimensions, in rows and columns; each names the devices that have it."""
    holders: dict[tuple[int, int], list[int]] = {}
    for device, index in held.items():
        row, column = (0, index[0]) if len(index) == 1 else (index[0].start or 0, index[1])
        holders.setdefault((row, column.start or 0), []).append(device.id)
    rows, columns = (sorted({place[k] for place in holders}) for k in (0, 1))
    return [[_box(holders.get((row, column))) for column in columns] for row in rows]


def _box(ids: Sequence[int] | None) -> Box:
    return NO_BOX if ids is None else Box("CPU " + ",".join(map(str, sorted(ids))), min(ids))


def sharding_html(sharding: Sharding, shape: Sequence[int]) -> str:
    """The picture that `hloom.debug.visualize_sharding` shows in a notebook: an array of one or two dimensions."""
    part = " x ".join(map(str, sharding.shard_shape(tuple(shape))))
    about = f"{' x '.join(map(str, shape))}, on each device {part}"
    held = sharding.devices_indices_map(tuple(shape))
    return page([title(type(sharding).__name__, "", about), *_figure(held, ["rows", "columns"][-len(shape) :])])


def sharding_view(sharding: Sharding) -> Iterator[Html]:
    """A sharding: its mesh and spec, a picture of the parts of an array, and a table of the devices."""
    yield title(type(sharding).__name__, "", _about(sharding))
    if isinstance(sharding, NamedSharding):
        yield facts(("spec", str(sharding.spec)), ("memory", sharding.memory_kind or ""))
        if isinstance(sharding.mesh, AbstractMesh):
            yield from mesh_view(sharding.mesh)
            return
    if isinstance(sharding, ManualSharding):
        yield facts(("each device has", "an array of its own"))
        yield from mesh_view(sharding.mesh)
        return
    parts = sharding.parts(_rank(sharding))
    held = sharding.devices_indices_map(parts)  # of an array with one element in each part
    divided = [d for d, count in enumerate(parts) if count > 1]
    if len(divided) <= 2:
        shown = divided if len(divided) == 2 else [0, 1] if divided == [0] and len(parts) > 1 else divided or [0]
        names = [f"dimension {d}{_axes(sharding, d)}" for d in shown]
        yield from _figure({device: tuple([index[d] for d in shown]) for device, index in held.items()}, names)
    if len(held) > 1:
        yield table(_devices(held, parts))


def _about(sharding: Sharding) -> str:
    if sharding.is_fully_replicated and sharding.num_devices > 1:
        return f"each of {sharding.num_devices} devices has the whole array"
    return _count(sharding.num_devices, "device")


def _rank(sharding: Sharding) -> int:
    """The dimensions that it speaks of."""
    if isinstance(sharding, NamedSharding):
        return max(len(sharding.spec.partitions), 1)
    return next((n for n in (1, 2, 3, 4, 5, 6) if math.prod(sharding.parts(n)) == sharding.num_devices), 1)


def _axes(sharding: Sharding, dimension: int) -> str:
    """The axes of the mesh that divide a dimension, if there is one: `` (x)``."""
    entries = sharding.spec.partitions if isinstance(sharding, NamedSharding) else ()
    axes = axes_of(entries[dimension]) if dimension < len(entries) else ()
    return f" ({', '.join(map(str, axes))})" if axes else ""


def _figure(held: Held, names: Sequence[str]) -> Iterator[Html]:
    boxes = boxes_of(held)
    if sum(map(len, boxes)) <= _MOST:
        down = names[0] if len(names) == 2 else ""
        yield figure(grid_figure(boxes, "The part of an array on each device", down, names[-1] if names else ""))


def _devices(held: Held, parts: Sequence[int]) -> Table:
    """A row for each device: its part of each dimension."""
    rows = []
    for device, index in list(held.items())[:_ROWS]:
        cells = ["all" if n == 1 else f"{(s.start or 0) + 1} of {n}" for s, n in zip(index, parts)]
        rows.append((f"{device.platform.upper()} {device.id}", *cells))
    if len(held) > _ROWS:
        rows.append((f"{len(held) - _ROWS} more", *[""] * len(parts)))
    return Table(("device", *[f"dimension {d}" for d in range(len(parts))]), rows)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
