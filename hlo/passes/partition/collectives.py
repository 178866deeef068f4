"""The instructions that exchange and cut the parts of devices, and the record of each.

Groups are lists of device numbers along axes of the mesh, as XLA writes them: with a channel and, where XLA's parser
takes it, use_global_device_ids. If devices act differently, each looks up its data in a table by its partition-id.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from ...builder import make_constant, make_instruction
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops.collective import CollectiveAttributes, CollectiveBroadcastAttributes
from ...ops.movement import DynamicSliceAttributes
from ...replica_groups import ReplicaGroups
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import reshape, transpose
from .axes import Axes, DeviceMesh
from .records import PartitionRecord


@dataclass(slots=True)
class Cause:
    """The instruction of the whole-array program that an inserted instruction serves, and the reason."""

    instruction: HloInstruction
    why: str = ""


@dataclass(slots=True)
class Collectives:
    """Makes the instructions of one module; `records` describes the data that each one moves."""

    mesh: DeviceMesh
    records: list[PartitionRecord] = field(default_factory=list)
    channels: int = 0
    places: dict[tuple[object, Axes, int], HloInstruction] = field(default_factory=dict)
    """The offsets that were made: by scope, axes and size."""

    def channel(self) -> int:
        self.channels += 1
        return self.channels

    def groups(self, axes: Axes) -> ReplicaGroups:
        return _groups(self.mesh.groups(axes))

    def record(self, cause: Cause, kind: str, devices: int, moved: float, shape: Shape) -> None:
        """One line: `moved` are the bytes that each device sends."""
        i = cause.instruction
        self.records.append(PartitionRecord(i.name, i.opcode.value, kind, devices, int(moved), str(shape), cause.why))

    def offset(self, scope: object, axes: Axes, size: int) -> HloInstruction:
        """Where the device's part begins, s32[], in a dimension cut along `axes` into parts of this size."""
        key = (scope, axes, size)
        found = self.places.get(key)
        if found is None:
            starts = np.array(self.mesh.index(axes), np.int64) * size
            wide = math.prod([size, self.mesh.parts(axes)]) >= 1 << 31
            found = self.places[key] = self.looked_up(starts.astype(np.int64 if wide else np.int32))
        return found

    def looked_up(self, table: np.ndarray[tuple[int], np.dtype[np.int64 | np.int32]]) -> HloInstruction:
        """The device's own entry of a table, as a scalar."""
        device = make_instruction(Opcode.PARTITION_ID)
        one = make_instruction(
            Opcode.DYNAMIC_SLICE, (make_constant(np.array(table)), device), DynamicSliceAttributes((1,))
        )
        return reshape(one, ())

    def cut(self, scope: object, x: HloInstruction, d: int, axes: Axes) -> HloInstruction:
        """The device's part of dimension d."""
        size = x.shape.dimensions[d] // self.mesh.parts(axes)
        start = self.offset(scope, axes, size)
        zero = make_constant(np.array(0, start.shape.element.dtype))
        starts = [start if k == d else zero for k in range(x.shape.rank)]
        sizes = tuple([size if k == d else n for k, n in enumerate(x.shape.dimensions)])
        return make_instruction(Opcode.DYNAMIC_SLICE, (x, *starts), DynamicSliceAttributes(sizes))

    def all_gather(self, x: HloInstruction, d: int, axes: Axes, cause: Cause) -> HloInstruction:
        """All parts of dimension d."""
        count = self.mesh.parts(axes)
        attributes = CollectiveAttributes(self.groups(axes), self.channel(), True, dimension=d)
        self.record(cause, "all-gather", count, x.shape.byte_size * (count - 1), x.shape)
        return make_instruction(Opcode.ALL_GATHER, (x,), attributes)

    def all_reduce(self, x: HloInstruction, axes: Axes, reducer: HloComputation, cause: Cause) -> HloInstruction:
        """The terms of all devices of a group, combined."""
        count = self.mesh.parts(axes)
        attributes = CollectiveAttributes(self.groups(axes), self.channel(), True, to_apply=reducer)
        self.record(cause, "all-reduce", count, 2 * x.shape.byte_size * (count - 1) / count, x.shape)
        return make_instruction(Opcode.ALL_REDUCE, (x,), attributes)

    def reduce_scatter(
        self, x: HloInstruction, d: int, axes: Axes, reducer: HloComputation, cause: Cause
    ) -> HloInstruction:
        """The device's part, along dimension d, of all terms combined."""
        count = self.mesh.parts(axes)
        attributes = CollectiveAttributes(self.groups(axes), self.channel(), True, dimension=d, to_apply=reducer)
        self.record(cause, "reduce-scatter", count, x.shape.byte_size * (count - 1) / count, x.shape)
        return make_instruction(Opcode.REDUCE_SCATTER, (x,), attributes)

    def all_to_all(self, x: HloInstruction, gathered: int, cut: int, axes: Axes, cause: Cause) -> HloInstruction:
        """Dimension `gathered` becomes whole, dimension `cut` is cut along the same axes."""
        count, sizes = self.mesh.parts(axes), x.shape.dimensions
        self.record(cause, "all-to-all", count, x.shape.byte_size * (count - 1) / count, x.shape)
        parted = reshape(x, (*sizes[:cut], count, sizes[cut] // count, *sizes[cut + 1 :]))
        attributes = CollectiveAttributes(self.groups(axes), self.channel(), dimension=cut)
        sent = make_instruction(Opcode.ALL_TO_ALL, (parted,), attributes)
        rest = [k for k in range(sent.shape.rank) if k != cut]  # numbers of the old dimensions in `sent`
        where = rest.index(rest[gathered])
        order = [*rest[:where], cut, *rest[where:]]
        moved = transpose(sent, order)
        return reshape(
            moved,
            [n * count if k == gathered else n // count if k == cut else n for k, n in enumerate(sizes)],
        )

    def permute(self, x: HloInstruction, pairs: Sequence[tuple[int, int]], cause: Cause) -> HloInstruction:
        """Each device gets the part of another one: (source, target)."""
        moving = any(a != b for a, b in pairs)
        self.record(cause, "collective-permute", len(pairs), x.shape.byte_size * moving, x.shape)
        attributes = CollectiveAttributes(channel_id=self.channel(), source_target_pairs=tuple(pairs))
        return make_instruction(Opcode.COLLECTIVE_PERMUTE, (x,), attributes)

    def of_first_device(self, x: HloInstruction, axes: Axes, cause: Cause) -> HloInstruction:
        """The value of the first device along `axes`, on all devices along them."""
        groups = tuple([tuple(sorted(group)) for group in self.groups(axes).groups])
        attributes = CollectiveBroadcastAttributes(_groups(groups), self.channel())
        self.record(cause, "collective-broadcast", len(groups[0]), x.shape.byte_size, x.shape)
        return make_instruction(Opcode.COLLECTIVE_BROADCAST, (x,), attributes)


def _groups(groups: tuple[tuple[int, ...], ...]) -> ReplicaGroups:
    texts = [f"{{{','.join(map(str, group))}}}" for group in groups]
    return ReplicaGroups(groups, f"{{{','.join(texts)}}}")
