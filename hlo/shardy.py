"""The text in which newer versions of JAX state shardings: axes of a named mesh, as Shardy's attributes.

A module has `xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}` among its frontend attributes, and an instruction
`xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"x\\"}, {}]>"`: dimension 0 is cut along the axis x. `{?}` leaves a
dimension to the partitioner. Most instructions also have XLA's `sharding=`; the borders of a shard_map do not. Source:
Shardy's attributes (docs/sdy_dialect.md), and its export to StableHLO (round_trip_common).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .instruction import HloInstruction
from .sharding import HloSharding, ShardingError
from .support.records import dataclass
from .text.scanner import pattern

MESHES, SHARDING = "xla.sdy.meshes", "xla.sdy.sharding"
IN_SHARDINGS, OUT_SHARDINGS = "xla.sdy.in_shardings", "xla.sdy.out_shardings"
MANUAL_AXES = "xla.sdy.manual_axes"
GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"


@dataclass(frozen=True, slots=True)
class NamedMesh:
    """Axes with names and sizes, and the device at each place, row-major."""

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]

    @property
    def all_axes(self) -> frozenset[str]:
        """The names of the axes along which there are several devices."""
        return frozenset([name for name, size in self.axes if size > 1])


@dataclass(frozen=True, slots=True)
class AxisSharding:
    """A sharding, and which dimensions it leaves open."""

    sharding: HloSharding
    is_open: tuple[bool, ...]


_MESH = r"([A-Za-z_][\w.\-]*)\s*=\s*#sdy\.mesh<\[([^\]]*)\](?:\s*,\s*device_ids\s*=\s*\[([0-9, ]*)\])?\s*>"
_AXIS = r'"([^"]*)"\s*=\s*([0-9]{1,9})'
_VALUE = (
    r"<\s*@([A-Za-z_][\w.\-]*)\s*,\s*\[((?:\{[^{}]*\}(?:p[0-9]+)?[,\s]*)*)\]"
    r"(?:\s*,\s*replicated=\{[^}]*\})?\s*>"
)
_MOST_DEVICES = 1 << 20
_DIMENSION = r"\{([^{}]*)\}"
_NAMED = r'"([^"]*)"(?::\(([0-9]{1,9})\)([0-9]{1,9}))?|(\?)'


def meshes_of(frontend_attributes: tuple[tuple[str, str], ...]) -> dict[str, NamedMesh]:
    """The meshes that a module declares. ShardingError if their text is malformed."""
    text = dict(frontend_attributes).get(MESHES, "")
    found = {}
    for match in pattern(_MESH).finditer(text):
        axes = tuple([(name, int(size)) for name, size in pattern(_AXIS).findall(match.group(2))])
        count = math.prod(size for _, size in axes)
        if count > _MOST_DEVICES:
            raise ShardingError(f"the mesh {match.group()!r} has more than {_MOST_DEVICES:,} devices")
        listed = match.group(3)
        devices = tuple(map(int, listed.split(","))) if listed and listed.strip() else tuple(range(count))
        if sorted(devices) != list(range(count)):
            raise ShardingError(f"the mesh {match.group()!r} must name each of its {count} devices once")
        found[match.group(1)] = NamedMesh(axes, devices)
    return found


def shardings_of(text: str, meshes: Mapping[str, NamedMesh]) -> list[AxisSharding]:
    """The shardings in the text of an attribute, one for each value. ShardingError for an unknown mesh or axis."""
    found = []
    for match in pattern(_VALUE).finditer(text):
        mesh = meshes.get(match.group(1))
        if mesh is None:
            raise ShardingError(
                f"the sharding {text!r} is of a mesh that the module does not declare: {match.group(1)}"
            )
        found.append(_of_dimensions(text, mesh, pattern(_DIMENSION).findall(match.group(2))))
    if "unreduced=" in text:
        raise ShardingError(f"the sharding {text!r} is of terms that devices have of a sum: these cannot be read")
    if not found:
        raise ShardingError(f"the sharding {text!r} is malformed: #sdy.sharding<@mesh, [{{...}}, ...]> is expected")
    return found


def _of_dimensions(text: str, mesh: NamedMesh, dimensions: list[str]) -> AxisSharding:
    """Digits of the place in the mesh: (size, stride) of each axis, or of a part of it."""
    strides = {}
    stride = 1
    for name, size in reversed(mesh.axes):
        strides[name] = (size, stride)
        stride *= size
    tile, digits, is_open = [], [], []
    for each in dimensions:
        parts, opened = 1, False
        for match in pattern(_NAMED).finditer(each):
            name, before, part, mark = match.groups()
            if mark:
                opened = True
                continue
            if name not in strides:
                raise ShardingError(f"the sharding {text!r} names the axis {name!r}, which its mesh does not have")
            whole, step = strides[name]
            if part is not None:  # `before` counts the numbers of the slower part
                step, whole = step * whole // (int(before) * int(part)), int(part)
            digits.append((whole, step))
            parts *= whole
        tile.append(parts)
        is_open.append(opened)
    places = [0]
    for size, step in digits:
        places = [base + k * step for base in places for k in range(size)]
    groups: dict[int, list[int]] = {place: [] for place in places}
    for place, device in enumerate(mesh.devices):
        own = sum(place // step % size * step for size, step in digits)
        groups[own].append(device)
    devices = [device for place in places for device in groups[place]]
    copies = len(devices) // max(math.prod(tile), 1)
    return AxisSharding(HloSharding.from_tiles(tile, devices, copies), tuple(is_open))


def attribute(instruction: HloInstruction, key: str) -> str | None:
    """The text of one frontend attribute."""
    return next((text for name, text in instruction.frontend_attributes if name == key), None)
