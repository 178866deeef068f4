"""Programs in which every value states how the Explicit axes of a mesh divide it, as types say.

The partitioner may divide a value as it likes if nothing is stated. It must not if each device has a term of the value
(`terms.py`). JAX states the type of each operation's result in its StableHLO; `stated_text` does so for
programs that are written as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...hlo.builder import make_call, make_get_tuple_element, make_tuple
from ...hlo.instruction import HloComputation, HloInstruction
from ...hlo.ir import HloModule
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, spec_of
from ...hlo.passes.rewrite import rewrite_computation
from ...hlo.shardy import MESHES, SHARDING
from ..aval import ShapedArray
from ..core import call_of
from .borders import stated_as
from .calls import CONSTRAINT, FULL_TO_SHARD, PARTIAL_SUM, SHARD_TO_FULL
from .division import AnyMesh, Division, division_of
from .divisions import Program, divisions_of_places, mesh_of
from .hlo_shardings import assignment_of, over_abstract_mesh, to_hlo
from .mesh import AbstractMesh, AxisType, Mesh
from .shardings import Sharding
from .spmd import SHARDINGS

_CARRIED = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CALL})
"""Instructions whose results are stated where they are made, or not at all."""
_BY_COMPUTATIONS = frozenset({Opcode.CALL, Opcode.WHILE, Opcode.PARAMETER})
"""Instructions with elements that are stated within them."""


def stated(module: HloModule, places: Sequence[Sharding | None], mesh: Mesh) -> HloModule:
    """The program for the partitioner, if its arguments are in `places`."""
    stating = _Stating(mesh, is_text=False)
    entry = stating.computation(module.entry, divisions_of_places(module.entry, places, mesh))
    return replace(module, entry=entry)


def stated_text(module: HloModule, types: Sequence[ShapedArray], current: AbstractMesh) -> HloModule:
    """The program for its text, with the axes of the mesh by name; `types`: of the arguments; `current`: the mesh if
    the program names none. The program itself if that has no Explicit axes."""
    mesh = mesh_of(types, module.entry.instructions) or current
    if not mesh.explicit_axes:
        return module
    given = [division_of(t) for t in types]
    stating = _Stating(mesh, is_text=True)
    entry = stating.computation(module.entry, given)
    named = [
        replace(p, frontend_attributes=((SHARDING, f"#sdy.sharding{stating.axes_text(d)}"),))
        for p, d in zip(entry.parameters, given, strict=True)
    ]
    parameters = dict(zip(entry.parameters, named, strict=True))
    entry = rewrite_computation(entry, lambda old, moved: parameters.get(old, moved))
    results = stating.program.of_computation(module.entry, given)
    if entry.root.opcode is Opcode.TUPLE and len(results) == len(entry.root.operands):
        texts = ", ".join([stating.axes_text(d) for d in results])
        root = replace(make_tuple(entry.root.operands), frontend_attributes=((SHARDING, f"{_PER_VALUE}[{texts}]>"),))
        entry = HloComputation(entry.name, (*entry.instructions[:-1], root), root)
    sizes = ", ".join([f'"{name}"={size}' for name, size in mesh.shape_tuple])
    meshes = (MESHES, f"{{mesh = #sdy.mesh<[{sizes}]>}}")
    marks = (*module.frontend_attributes, meshes)
    return replace(module, entry=entry, frontend_attributes=marks, num_partitions=mesh.size)


_PER_VALUE = "#sdy.sharding_per_value<"


class _Stating:
    """States the divisions of one program's values over a mesh. is_text: for a text, with the axes by name."""

    def __init__(self, mesh: AnyMesh, is_text: bool) -> None:
        self.mesh, self.is_text = mesh, is_text
        self.program = Program(mesh, False)
        self._known: dict[Any, HloComputation] = {}

    def computation(self, computation: HloComputation, leaves: Sequence[Division]) -> HloComputation:
        """The computation for operands that are divided so."""
        key = computation, tuple(leaves)
        if key not in self._known:
            self._known[key] = self._stated(computation, leaves)
        return self._known[key]

    def _stated(self, computation: HloComputation, leaves: Sequence[Division]) -> HloComputation:
        env = self.program.within(computation, leaves)
        inside = _within_borders(computation)
        wanted = self._of_users(computation, env) if self.is_text else {}

        def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
            if old in inside:
                return moved
            given = [f for o in old.operands for f in env[o]]
            if old.opcode is Opcode.CALL and self.is_text:
                call = call_of(old.attributes)
                if call.primitive is CONSTRAINT:
                    return make_tuple([self._stating(moved.operands[0], env[old][0])])
                if call.primitive is PARTIAL_SUM:
                    total = make_get_tuple_element(make_call(call.params, moved.operands), 0)
                    return make_tuple([self._stating(total, env[old][0])])
            moved = self._with_computations(old, moved, given, env[old])
            if not old.shape.is_array or not self._states(old):
                return moved
            (found,) = env[old]
            found = wanted.get(old, found)
            return moved if found.is_free and not self.is_text else self._stating(moved, found)

        return rewrite_computation(computation, visit)

    def _with_computations(
        self, old: HloInstruction, moved: HloInstruction, given: Sequence[Division], found: Sequence[Division]
    ) -> HloInstruction:
        """The instruction with the computations that it calls, which state their values."""
        attributes = old.attributes
        match old.opcode:
            case Opcode.CALL if call_of(attributes).primitive not in SHARDINGS:
                attributes = replace(attributes, to_apply=self.computation(attributes.to_apply, given))
            case Opcode.WHILE:
                body, condition = (self.computation(c, found) for c in (attributes.body, attributes.condition))
                attributes = replace(attributes, body=body, condition=condition)
            case Opcode.CONDITIONAL:
                state = given[1 : 1 + (len(given) - 1) // max(len(old.operands) - 1, 1)]
                branches = tuple([self.computation(c, state) for c in attributes.branch_computations])
                attributes = replace(attributes, branch_computations=branches)
            case _:
                return moved
        return replace(moved, attributes=attributes)

    def _states(self, i: HloInstruction) -> bool:
        if i.opcode is Opcode.GET_TUPLE_ELEMENT:
            return i.operands[0].opcode not in _BY_COMPUTATIONS
        return i.opcode not in _CARRIED

    def _of_users(
        self, computation: HloComputation, env: dict[HloInstruction, list[Division]]
    ) -> dict[HloInstruction, Division]:
        """The divisions of arrays that are made of a scalar, where they are used: JAX has no instruction for them."""
        found: dict[HloInstruction, Division] = {}
        for i in computation.instructions:
            for o in i.operands if spec_of(i.opcode).traits & Trait.ELEMENTWISE else ():
                if o.opcode is Opcode.BROADCAST and env[o][0].is_free and o.shape.rank == i.shape.rank:
                    found.setdefault(o, env[i][0])
        return found

    def _stating(self, x: HloInstruction, found: Division) -> HloInstruction:
        sharding = found.sharding(self.mesh)
        rank = x.shape.rank
        if isinstance(self.mesh, Mesh):
            text = to_hlo(sharding, rank, assignment_of(sharding.device_set)).to_text()
        else:
            text = over_abstract_mesh(sharding, rank).to_text()
        is_open = [d for d, axes in enumerate(found.axes) if not axes] if self._has_auto else []
        made = stated_as("Sharding", x, x.shape, text, is_open)
        return replace(made, frontend_attributes=self.named(found)) if self.is_text else made

    @property
    def _has_auto(self) -> bool:
        return AxisType.Auto in self.mesh.axis_types

    # ---- text

    def named(self, found: Division) -> tuple[tuple[str, str], ...]:
        """The frontend attribute that names the axes."""
        return ((SHARDING, f"{_PER_VALUE}[{self.axes_text(found)}]>"),)

    def axes_text(self, found: Division) -> str:
        """``<@mesh, [{"x"}, {}], unreduced={"y"}>``."""
        def listed(axes: Sequence[Any]) -> str:
            return ", ".join([f'"{a}"' for a in axes])

        nothing = "?" if self._has_auto else ""
        entries = ", ".join([f"{{{listed(axes) or nothing}}}" for axes in found.axes])
        unreduced = [a for a in self.mesh.axis_names if a in found.unreduced]
        return f"<@mesh, [{entries}]{f', unreduced={{{listed(unreduced)}}}' if unreduced else ''}>"


def _within_borders(computation: HloComputation) -> set[HloInstruction]:
    """The instructions between the borders of a `shard_map`, with the borders."""
    inside: set[HloInstruction] = set()
    for i in computation.instructions:
        primitive = call_of(i.attributes).primitive if i.opcode is Opcode.CALL else None
        before = any(o in inside for o in i.operands)
        if primitive is FULL_TO_SHARD or (before and primitive is not SHARD_TO_FULL):
            inside.add(i)
    return inside
