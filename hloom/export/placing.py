"""Exported functions over several devices: their shardings are over meshes without devices, and the arguments of a
call, or the current mesh, say which devices run the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation, HloInstruction, HloModule
from ..hlo.opcode import Opcode
from ..hlo.ops.collective import COLLECTIVES
from ..hlo.ops.custom_call import CustomCallAttributes
from ..hlo.passes.rewrite import calling, rewrite_computation
from ..hlo.sharding import HloSharding, unspecified_dims
from ..hlo.shardy import MESHES, SHARDING, NamedMesh, attribute, meshes_of, shardings_of
from ..hlo.text.mlir_dictionary import read_dictionary
from ..tracer.arrays.array import as_value, is_placed
from ..tracer.aval import ShapedArray
from ..tracer.sharding.current_mesh import current_device_mesh, current_mesh
from ..tracer.sharding.devices import devices
from ..tracer.sharding.hlo_shardings import GSPMDSharding, assignment_of, over_abstract_mesh
from ..tracer.sharding.mesh import EMPTY_ABSTRACT, AbstractMesh, Mesh
from ..tracer.sharding.partition_spec import PartitionSpec
from ..tracer.sharding.placement import placed
from ..tracer.sharding.shardings import NamedSharding, Sharding, SingleDeviceSharding
from ..tracer.sharding.shardy import WHOLE
from ..tracer.sharding.spmd import wrong_device_count
from ..tracer.tracer import Tracer
from .record import ExportedFunction


def abstract_sharding(sharding: Sharding | None, aval: Any) -> NamedSharding | None:
    """The sharding as files have it: over a mesh without devices."""
    if sharding is None:
        return None
    if isinstance(sharding, NamedSharding):
        return sharding.update(mesh=sharding.mesh.abstract_mesh)
    if isinstance(sharding, SingleDeviceSharding) or sharding.is_fully_replicated:
        return NamedSharding(EMPTY_ABSTRACT, PartitionSpec(*[None] * aval.ndim), memory_kind=sharding.memory_kind)
    if isinstance(sharding, GSPMDSharding):
        mesh = AbstractMesh(sharding.hlo.tile, [f"_axis_{d}" for d in range(len(sharding.hlo.tile))])
        names = [name if size > 1 else None for name, size in mesh.shape_tuple]
        found = NamedSharding(mesh, PartitionSpec(*names[: aval.ndim]), memory_kind=sharding.memory_kind)
        if over_abstract_mesh(found, len(names)) == sharding.hlo:
            return found
    raise UnsupportedError(f"export: {sharding} is over no mesh, and files have only shardings over meshes")


def text_of(sharding: NamedSharding | None, aval: Any) -> str:
    """The text of a sharding of an array's storage in HLO; devices count from 0 in the order of the mesh. "" for no
    sharding, and for one device."""
    if sharding is None or sharding.mesh.size <= 1:
        return ""
    return over_abstract_mesh(sharding, stored_rank(aval)).to_text()


def stored_rank(aval: Any) -> int:
    """How many dimensions an array's storage has."""
    return aval.storage.ndim if isinstance(aval, ShapedArray) else aval.ndim


def placed_leaves(exported: ExportedFunction, leaves: Sequence[Any]) -> list[Any]:
    """The leaves of a call's arguments, on the devices of the current mesh if they are on none."""
    mesh = current_mesh()
    if not isinstance(mesh, Mesh) or mesh.size != exported.nr_devices:
        return list(leaves)
    if any(isinstance(x, Tracer) or is_placed(x) for x in leaves):
        return list(leaves)
    found = []
    for leaf, sharding in zip(leaves, exported._in_named_shardings, strict=True):
        own = None if sharding is None else current_device_mesh(sharding.mesh.abstract_mesh)
        place = NamedSharding(mesh, PartitionSpec()) if own is None or sharding is None else sharding.update(mesh=own)
        found.append(placed(as_value(leaf), place, "a call of an exported function"))
    return found


def check_devices(exported: ExportedFunction, leaves: Sequence[Any]) -> None:
    """ValueError if the arguments of a call are on another number of devices than the function was exported for. Where
    the call is traced, that is known when the program is compiled."""
    count = len({d for x in leaves if is_placed(x) for d in x.sharding.device_set}) or 1
    if any(isinstance(x, Tracer) for x in leaves):
        count = exported.nr_devices if len(devices()) >= exported.nr_devices else len(devices())
    if count != exported.nr_devices:
        raise wrong_device_count(exported.fun_name, exported.nr_devices, count)


def device_order(exported: ExportedFunction, leaves: Sequence[Any]) -> tuple[int, ...]:
    """The devices of a call in the order of its arguments' mesh: for each, its number in the calling program, which
    counts devices by their ids. () is that very order, which is also taken where the arguments say none."""
    for leaf in leaves:
        value: Any = leaf.to_concrete_value() if isinstance(leaf, Tracer) else leaf
        if is_placed(value) and len(value.sharding.device_assignment) == exported.nr_devices:
            assignment = value.sharding.device_assignment
            numbers = {d: k for k, d in enumerate(assignment_of(assignment))}
            found = tuple([numbers[d] for d in assignment])
            return () if found == tuple(range(len(found))) else found
    return ()


def with_order(computation: HloComputation, order: Sequence[int]) -> HloComputation:
    """The program with other numbers of devices. UnsupportedError for one that names devices in its collectives."""
    if not order:
        return computation
    called = {c: with_order(c, order) for c in computation.callees}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode in _NUMBERED:
            raise UnsupportedError(
                f"an exported program with {old.opcode.value} runs on devices in the order of their ids: put the "
                "arguments on a mesh in that order"
            )
        text = dict(moved.annotations).get("sharding")
        if text is None:
            return calling(moved, called)
        others = tuple([(key, value) for key, value in moved.annotations if key != "sharding"])
        renamed = _renumbered(HloSharding.parse(text), order).to_text()
        frontend = tuple([(key, value) for key, value in moved.frontend_attributes if key != WHOLE])
        annotations = (*others, ("sharding", renamed))
        return replace(calling(moved, called), annotations=annotations, frontend_attributes=frontend)

    return rewrite_computation(computation, visit)


def with_whole_meshes(module: HloModule) -> HloComputation:
    """The program whose sharding constraints have their meshes with them, in place of the names that these have in its
    file: the program that calls it has other meshes."""
    meshes = meshes_of(module.frontend_attributes)
    if not meshes:
        return module.entry
    texts = dict(read_dictionary(dict(module.frontend_attributes)[MESHES]))
    return _with_whole_meshes(module.entry, meshes, texts)


def _with_whole_meshes(
    computation: HloComputation, meshes: Mapping[str, NamedMesh], texts: Mapping[str, str]
) -> HloComputation:
    called = {c: _with_whole_meshes(c, meshes, texts) for c in computation.callees}

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        moved = calling(moved, called)
        text = attribute(moved, SHARDING)
        if text is None or moved.opcode is not Opcode.CUSTOM_CALL or moved.attributes.custom_call_target != "Sharding":
            return moved
        is_open = [d for d, each in enumerate(shardings_of(text, meshes)[0].is_open) if each]
        others = tuple([(key, value) for key, value in moved.frontend_attributes if key != SHARDING])
        name, _, dimensions = text.partition("<@")[2].partition(", ")
        whole = texts[name] + dimensions.partition(">")[0]
        attributes = CustomCallAttributes("Sharding", unspecified_dims(is_open))
        return replace(moved, attributes=attributes, frontend_attributes=(*others, (WHOLE, whole)))

    return rewrite_computation(computation, visit)


_NUMBERED = COLLECTIVES | {Opcode.PARTITION_ID, Opcode.REPLICA_ID}


def _renumbered(sharding: HloSharding, order: Sequence[int]) -> HloSharding:
    devices = tuple([order[d] for d in sharding.devices])
    return replace(sharding, devices=devices, elements=tuple([_renumbered(e, order) for e in sharding.elements]))
