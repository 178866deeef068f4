"""Programs in Shardy's form with shard_maps over some axes of the mesh: the same with XLA's borders and with regions.

In Shardy's form, a border names its axes, and the code between borders is a called computation; its own borders name
only further axes. Here each border says which devices have arrays of their own, and so do the collectives within, and
the computation is called as any other. A shard_map over all axes does not change: it is one device's own program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...builder import make_get_tuple_element, make_tuple, with_unique_names
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.custom_call import CustomCallAttributes
from ...shape import Shape
from ...sharding import HloSharding, ShardingError, unspecified_dims
from ...shardy import (
    GLOBAL_TO_LOCAL,
    IN_SHARDINGS,
    LOCAL_TO_GLOBAL,
    MANUAL_AXES,
    OUT_SHARDINGS,
    AxisSharding,
    NamedMesh,
    attribute,
    meshes_of,
    shardings_of,
)
from ...support.records import dataclass
from ..rewrite import calling, rewrite_computation
from .prepare import BODIES, OF_DEVICES, REGION, target_of

__all__ = ["with_regions"]

Names = frozenset[str]
NO_NAMES: Names = frozenset()


def with_regions(module: HloModule) -> HloModule:
    """The module with the regions of its shard_maps over some axes; itself if it has none."""
    meshes = meshes_of(module.frontend_attributes)
    taken = [attribute(i, MANUAL_AXES) for i in module.instructions() if i.frontend_attributes]
    if not any(text is not None and not any(m.all_axes <= _names(text) for m in meshes.values()) for text in taken):
        return module
    (mesh,) = meshes.values() if len(meshes) == 1 else (None,)
    if mesh is None:
        raise ShardingError(f"{module.name} has shard_maps over some axes, and several meshes: {', '.join(meshes)}")
    entry = _Regions(mesh, meshes).within(module.entry, NO_NAMES)
    return with_unique_names(replace(module, entry=entry))


def _names(text: str) -> Names:
    return frozenset(re.findall(r'"([^"]*)"', text))


@dataclass(slots=True)
class _Regions:
    mesh: NamedMesh
    meshes: Mapping[str, NamedMesh]
    made: dict[tuple[HloComputation, Names], HloComputation] = field(default_factory=dict)

    def within(self, computation: HloComputation, around: Names) -> HloComputation:
        """The computation within shard_maps that take the axes `around`."""
        found = self.made.get((computation, around))
        if found is not None:
            return found
        bodies = self.bodies(computation)

        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            target = target_of(old)
            if target in (GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL):
                return self.border(old, moved, around)
            if old.opcode in OF_DEVICES:
                reducers = {c: rewrite_computation(c, _unconstrained) for c in old.called_computations()}
                return self.marked(calling(moved, reducers), around)
            inner = around | bodies.get(old, NO_NAMES)
            if self.takes_all(inner):
                return moved
            return calling(moved, {c: self.within(c, inner) for c in old.called_computations()})

        changed = rewrite_computation(computation, visit)
        if around and changed.name.startswith(BODIES):
            changed = HloComputation(f"region_of_{changed.name}", changed.instructions, changed.root)
        self.made[computation, around] = changed
        return changed

    def bodies(self, computation: HloComputation) -> dict[HloInstruction, Names]:
        """The axes that the calls of a computation take which lie between borders."""
        found: dict[HloInstruction, Names] = {}
        for i in computation.instructions:
            if target_of(i) == LOCAL_TO_GLOBAL:
                for o in i.operands:
                    call = o.operands[0] if o.opcode is Opcode.GET_TUPLE_ELEMENT else o
                    if call.opcode is Opcode.CALL:
                        found[call] = _names(_needed(i, MANUAL_AXES))
        return found

    def takes_all(self, names: Names) -> bool:
        return self.mesh.all_axes <= names

    def marked(self, instruction: HloInstruction, names: Names) -> HloInstruction:
        """The instruction in the region of these axes."""
        if not names or self.takes_all(names):
            return instruction
        text = self.region(names).to_text()
        return replace(instruction, frontend_attributes=(*instruction.frontend_attributes, (REGION, text)))

    def region(self, names: Names) -> HloSharding:
        """Which devices have arrays of their own."""
        own = [0]
        for name, size in self.mesh.axes:
            own = [n * size + k if name in names else n for n in own for k in range(size)]
        devices = sorted(range(len(own)), key=lambda place: (own[place], place))
        count = len(set(own))
        return HloSharding.from_tiles((), [self.mesh.devices[p] for p in devices], len(own) // count, count)

    def border(self, old: HloInstruction, moved: HloInstruction, around: Names) -> HloInstruction:
        """XLA's form of a border: an array at a time, between constraints."""
        begins = target_of(old) == GLOBAL_TO_LOCAL
        inner = around | _names(_needed(old, MANUAL_AXES))
        if self.takes_all(inner) and not around:
            return moved
        stated = shardings_of(_needed(old, IN_SHARDINGS if begins else OUT_SHARDINGS), self.meshes)
        given = [x for o in moved.operands for x in _leaves(o)]
        shapes = list(old.shape.leaves())
        if len(stated) == 1 and len(shapes) > 1:
            stated = stated * len(shapes)
        if not len(given) == len(shapes) == len(stated):
            counts = f"{len(given)} arrays, {len(shapes)} results and {len(stated)} shardings"
            raise ShardingError(f"{old.name} has {counts}")
        crossed = [self.crossed(x, s, k, begins, inner, around) for x, s, k in zip(given, shapes, stated, strict=True)]
        return make_tuple(crossed) if old.shape.is_tuple else crossed[0]

    def crossed(
        self, x: HloInstruction, shape: Shape, stated: AxisSharding, begins: bool, inner: Names, around: Names
    ) -> HloInstruction:
        whole = stated.sharding.to_text()
        is_open = [d for d, opened in enumerate(stated.is_open) if opened]
        if begins:
            x = _call("Sharding", x, x.shape, whole, is_open)
            part = "{manual}" if self.takes_all(inner) else None
            return self.marked(_call("SPMDFullToShardShape", x, shape, part), inner)
        return self.marked(_call("SPMDShardToFullShape", x, shape, whole, is_open), around)


def _unconstrained(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
    """Values that a reducer computes from scalars are not divided."""
    return moved.operands[0] if target_of(old) == "Sharding" else moved


def _call(
    target: str, x: HloInstruction, shape: Shape, sharding: str | None, is_open: Sequence[int] = ()
) -> HloInstruction:
    attributes = CustomCallAttributes(target, unspecified_dims(is_open))
    stated = () if sharding is None else (("sharding", sharding),)
    return HloInstruction(Opcode.CUSTOM_CALL, shape, (x,), attributes, annotations=stated)


def _leaves(x: HloInstruction) -> list[HloInstruction]:
    if not x.shape.is_tuple:
        return [x]
    return [leaf for k in range(len(x.shape.elements)) for leaf in _leaves(make_get_tuple_element(x, k))]


def _needed(instruction: HloInstruction, key: str) -> str:
    text = attribute(instruction, key)
    if text is None:
        raise ShardingError(f"{instruction.name}, {target_of(instruction)}, does not state {key}")
    return text
