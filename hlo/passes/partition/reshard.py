"""From one sharding of an array to another: the steps, their costs, and their instructions.

A cut costs nothing, since the device has the elements already. Axes that move from one dimension to another are an
all-to-all. Two shardings with equal numbers of parts differ by a permutation. The remaining differences are gathered.
Source: GSPMD's PartitionedHlo::ReshardNoCache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ...ir import HloInstruction
from .axes import Axes, DeviceMesh, Spec
from .collectives import Cause, Collectives


class Step(NamedTuple):
    """One step: "cut", "all-gather", "all-to-all" or "permute"."""

    kind: str
    dimension: int = 0
    """The dimension that is cut or gathered."""
    target: int = 0
    """all-to-all: the dimension that is cut instead."""
    axes: Axes = ()
    pairs: tuple[tuple[int, int], ...] = ()
    """permute: (source, target)."""


def steps_between(mesh: DeviceMesh, source: Spec, target: Spec, own: Collection[int] = ()) -> list[Step]:
    """The steps from one spec to another, of arrays that devices along the axes `own` have each their own."""
    if source == target:
        return []
    if all(mesh.parts(a) == mesh.parts(b) for a, b in zip(source, target, strict=True)):
        return [Step("permute", pairs=_pairs(mesh, source, target, own))]
    return _Planner(mesh, source, target).plan()


class _Planner:
    def __init__(self, mesh: DeviceMesh, source: Spec, target: Spec) -> None:
        self.mesh, self.target = mesh, target
        self.now = list(source)
        self.steps: list[Step] = []

    def plan(self) -> list[Step]:
        self.cut()
        while self.move():
            self.cut()
        for d, axes in enumerate(self.now):
            kept = _common(axes, self.target[d])
            if kept < len(axes):
                self.steps.append(Step("all-gather", d, axes=axes[kept:]))
                self.now[d] = axes[:kept]
                self.cut()
        assert tuple(self.now) == self.target, f"{self.now} is not {self.target}"
        return self.steps

    def cut(self) -> None:
        """Cut dimensions along axes that are free, as far as the target goes on."""
        for d, wanted in enumerate(self.target):
            has = len(self.now[d])
            if wanted[:has] != self.now[d]:
                continue
            end = has
            used = {a for axes in self.now for a in axes}
            while end < len(wanted) and wanted[end] not in used:
                end += 1
            if end > has:
                self.steps.append(Step("cut", d, axes=wanted[has:end]))
                self.now[d] = wanted[:end]

    def move(self) -> bool:
        """One all-to-all, of as many axes as go from one dimension to another together."""
        for d, axes in enumerate(self.now):
            extra = len(axes) - _common(axes, self.target[d])
            for count in range(extra, 0, -1):
                for e, wanted in enumerate(self.target):
                    has = len(self.now[e])
                    if e != d and wanted[:has] == self.now[e] and wanted[has : has + count] == axes[-count:]:
                        self.steps.append(Step("all-to-all", d, e, axes[-count:]))
                        self.now[d], self.now[e] = axes[:-count], wanted[: has + count]
                        return True
        return False


def _common(a: Axes, b: Axes) -> int:
    """How many first axes are the same."""
    count = 0
    for x, y in zip(a, b):
        if x != y:
            break
        count += 1
    return count


def _pairs(mesh: DeviceMesh, source: Spec, target: Spec, own: Collection[int]) -> tuple[tuple[int, int], ...]:
    """The sender and receiver pairs: each device sends once and gets once; those that have their part already send to
    themselves. Each part is on as many devices before as after, so this is possible."""
    place = mesh.index(tuple(sorted(own)))
    has = list(zip(place, *(mesh.index(axes) for axes in source), strict=True))
    wants = list(zip(place, *(mesh.index(axes) for axes in target), strict=True))
    givers: dict[tuple[int, ...], list[int]] = {}
    for device, part in enumerate(has):
        if wants[device] != part:
            givers.setdefault(part, []).append(device)
    return tuple(
        [
            (device, device) if has[device] == part else (givers[part].pop(0), device)
            for device, part in enumerate(wants)
        ]
    )


def cost_of(mesh: DeviceMesh, steps: Sequence[Step], size: float) -> float:
    """The bytes that a device sends, with `size` bytes on each device before the first step."""
    sent = 0.0
    for step in steps:
        count = mesh.parts(step.axes)
        match step.kind:
            case "cut":
                size /= count
            case "all-gather":
                sent += size * (count - 1)
                size *= count
            case "all-to-all":
                sent += size * (count - 1) / count
            case _:
                sent += size
    return sent


def reshard(
    collectives: Collectives, scope: object, x: HloInstruction, source: Spec, target: Spec, cause: Cause,
    own: Collection[int] = (),
) -> HloInstruction:  # fmt: skip
    """The device's part in another sharding. `own`: as of `steps_between`."""
    for step in steps_between(collectives.mesh, source, target, own):
        match step.kind:
            case "cut":
                x = collectives.cut(scope, x, step.dimension, step.axes)
            case "all-gather":
                x = collectives.all_gather(x, step.dimension, step.axes, cause)
            case "all-to-all":
                x = collectives.all_to_all(x, step.dimension, step.target, step.axes, cause)
            case _:
                x = collectives.permute(x, step.pairs, cause)
    return x
