"""Shardings of a traced program as Shardy's attributes, for programs that are written in StableHLO.

    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"x", "y"}]> : tensor<8x8xf32>

The traced HLO has XLA's text of each constraint, and `hlo/stablehlo` writes a constraint for the frontend attributes
that are added here. Source: docs/sdy_dialect.md of Shardy; how JAX writes them: jax/_src/named_sharding.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.passes.rewrite import calling, rewrite_computation
from ...hlo.shardy import MESHES, SHARDING, attribute
from ...hlo.stablehlo.discardable_attributes import ONE_VALUE, PER_VALUE
from ..core import call_of
from .calls import CONSTRAINT
from .hlo_shardings import open_dimensions
from .mesh import AbstractMesh
from .partition_spec import axes_of
from .shardings import NamedSharding
from .spmd import SHARDINGS

WHOLE = "hloom.sdy"
"""The frontend attribute of a sharding call of an exported program: `whole_text`. The program around it gives the mesh
a name when it is written."""


def whole_text(sharding: Any, rank: int) -> str:
    """A sharding with its mesh, whose devices count from 0: ``#sdy.mesh<["x"=2]>[{"x"}, {}]``. "" for one device, and
    where nothing is said."""
    if not isinstance(sharding, NamedSharding) or sharding.mesh.size <= 1:
        return ""
    return _mesh_text(sharding.mesh) + _dimensions(sharding, rank)


def _mesh_text(mesh: Any, device_ids: str = "") -> str:
    axes = ", ".join([f"{_quoted(name)}={size}" for name, size in mesh.shape_tuple])
    return f"#sdy.mesh<[{axes}]{device_ids}>"


def _dimensions(sharding: NamedSharding, rank: int) -> str:
    is_open = open_dimensions(sharding)
    entries = (*sharding.spec.partitions, *[None] * rank)[:rank]
    each = [
        "{?}" if d in is_open else f"{{{', '.join([_quoted(axis) for axis in axes_of(entry)])}}}"
        for d, entry in enumerate(entries)
    ]
    return f"[{', '.join(each)}]"


class ShardyMeshes:
    """The meshes of a program, each with a name: @mesh, @mesh_0, @mesh_1 and so on."""

    def __init__(self, are_abstract: bool = False) -> None:
        """are_abstract: devices count from 0 in the order of each mesh."""
        self._are_abstract = are_abstract
        self._names: dict[str, str] = {}

    def sharding(self, sharding: Any, rank: int) -> str:
        """The attribute of an argument or a result of `rank` dimensions: ``#sdy.sharding<@mesh, [{"x"}, {}]>``. "" for
        one device, and where nothing is said."""
        return self._text(sharding, rank, ONE_VALUE + "{}")

    def of_results(self, sharding: Any, rank: int) -> str:
        """The frontend attribute of an instruction with one result."""
        return self._text(sharding, rank, PER_VALUE)

    def _text(self, sharding: Any, rank: int, form: str) -> str:
        if not isinstance(sharding, NamedSharding) or sharding.mesh.size <= 1:
            return ""
        mesh = _mesh_text(sharding.mesh, self._device_ids(sharding.mesh))
        return form.format(f"<@{self._name(mesh)}, {_dimensions(sharding, rank)}>")

    def of_whole(self, text: str) -> str:
        """The frontend attribute of an instruction with one result, from a `whole_text`."""
        mesh, _, dimensions = text.partition(">[")
        return PER_VALUE.format(f"<@{self._name(mesh + '>')}, [{dimensions}>")

    def _name(self, text: str) -> str:
        count = len(self._names)
        return self._names.setdefault(text, f"mesh_{count - 1}" if count else "mesh")

    def _device_ids(self, mesh: Any) -> str:
        """The places of the devices among those of the mesh by id, if they are not in order."""
        if self._are_abstract or isinstance(mesh, AbstractMesh):
            return ""
        ids = [device.id for device in mesh.devices.flat]
        places = [sorted(ids).index(k) for k in ids]
        return "" if places == sorted(places) else f", device_ids=[{', '.join(map(str, places))}]"

    @property
    def devices(self) -> int:
        """How many devices the meshes have; at least 1."""
        sizes = [[int(size) for size in re.findall(r"=(\d+)", text.partition("]")[0])] for text in self._names]
        return max([math.prod(each) for each in sizes], default=1)

    def declare(self, module: HloModule) -> HloModule:
        """The module with the meshes that have names."""
        if not self._names:
            return module
        listed = ", ".join([f"{name} = {text}" for text, name in self._names.items()])
        return replace(module, frontend_attributes=(*module.frontend_attributes, (MESHES, f"{{{listed}}}")))


def _quoted(name: Any) -> str:
    return f'"{name}"'


def has_shardy_form(module: HloModule, shardings: Sequence[Any]) -> bool:
    """Whether all shardings of a program are over meshes, and it has no border of a shard_map: Shardy has another form
    for borders than HLO. `shardings`: of its arguments and results; None says nothing."""
    instructions = list(module.instructions())
    stated = {i: call_of(i.attributes) for i in instructions if i.opcode is Opcode.CALL}
    stated = {i: call for i, call in stated.items() if call.primitive in SHARDINGS}
    constraints = [call.params for call in stated.values() if call.primitive is CONSTRAINT]
    bodies = {i.attributes.to_apply for i in stated}
    written = [i for i in instructions if i.opcode is Opcode.CUSTOM_CALL and _states(i)]
    if len(constraints) < len(stated) or len(written) > len(bodies):
        return False
    return all(s is None or s.num_devices == 1 or _is_named(s) for s in (*shardings, *constraints))


def _is_named(sharding: Any) -> bool:
    """Whether the axes that divide the dimensions tell all of it: it has a mesh, and no unreduced axes."""
    return isinstance(sharding, NamedSharding) and not sharding.spec.unreduced


def _states(instruction: HloInstruction) -> bool:
    """Whether it states a sharding in XLA's words alone."""
    return any(key == "sharding" for key, _ in instruction.annotations) and attribute(instruction, WHOLE) is None


def shardy_form(
    module: HloModule, ins: Sequence[Any], outs: Sequence[Any]
) -> tuple[HloModule, list[str], list[str]] | None:
    """The program with its meshes and the constraints along their axes, and the attributes of its arguments and its
    results. None if it has no such form, or is for one device. ins, outs: their shardings; None says nothing."""
    if not has_shardy_form(module, (*ins, *outs)):
        return None
    meshes = ShardyMeshes()
    stated = with_constraints(module, meshes)
    arguments = [meshes.sharding(s, p.shape.rank) for s, p in zip(ins, module.entry.parameters, strict=False)]
    results = [meshes.sharding(s, leaf.rank) for s, leaf in zip(outs, module.entry.root.shape.elements, strict=True)]
    made = meshes.declare(stated)
    if made is module:
        return None
    return replace(made, num_partitions=meshes.devices), arguments, results


def with_constraints(module: HloModule, meshes: ShardyMeshes) -> HloModule:
    """The module whose sharding constraints name the axes of meshes."""
    entry = _marked(module.entry, meshes)
    return module if entry is module.entry else replace(module, entry=entry)


def _marked(computation: HloComputation, meshes: ShardyMeshes) -> HloComputation:
    called = {c: _marked(c, meshes) for c in computation.callees}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        moved = calling(moved, called)
        whole = attribute(moved, WHOLE)
        if whole is not None:
            return _with_text(moved, meshes.of_whole(whole))
        if old.opcode is not Opcode.CALL:
            return moved
        call = call_of(old.attributes)
        text = meshes.of_results(call.params, old.operands[0].shape.rank) if call.primitive is CONSTRAINT else ""
        if not text:
            return moved
        stated = _stated(old.attributes.to_apply, text)
        return replace(moved, attributes=replace(moved.attributes, to_apply=stated))

    return rewrite_computation(computation, visit)


def _stated(constraint: HloComputation, text: str) -> HloComputation:
    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        return _with_text(moved, text) if old.opcode is Opcode.CUSTOM_CALL else moved

    return rewrite_computation(constraint, visit)


def _with_text(call: HloInstruction, text: str) -> HloInstruction:
    others = tuple([(key, value) for key, value in call.frontend_attributes if key != WHOLE])
    return replace(call, frontend_attributes=(*others, (SHARDING, text)))
