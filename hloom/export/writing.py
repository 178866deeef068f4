"""Exported functions as bytes: JAX's flatbuffer (`schema.py`) around a portable artifact of StableHLO.

For older readers types and shardings are written twice, as JAX does: in place, and as indices into a list. Source:
jax/_src/export/serialization.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..hlo.element_type import element_type_of
from ..hlo.errors import UnsupportedError
from ..random.implementations import KeyDType
from ..tracer.aval import FLOAT0
from ..tracer.sharding.mesh import AbstractMesh
from ..tracer.sharding.partition_spec import PartitionSpec, axes_of
from ..tracer.sharding.shardings import NamedSharding
from . import schema
from .checks import DisabledSafetyCheck
from .effects import name_of
from .flatbuffer import write
from .record import ExportedFunction
from .schema import SCHEMA
from .trees import written_tree

Table = Mapping[str, Any]


def serialize(exported: ExportedFunction, vjp_order: int = 0) -> bytearray:
    """The bytes of an exported function and of `vjp_order` derivatives. ValueError, TypeError for containers that a
    file cannot name, NotImplementedError for such effects."""
    return bytearray(write(SCHEMA, "Exported", _written(exported, vjp_order)))


def _written(e: ExportedFunction, vjp_order: int) -> Table:
    if vjp_order > 0 and not e.has_vjp():
        raise ValueError("serialization of an Exported that does not have vjps of high-enough order")
    shardings = [*e._in_named_shardings, *e._out_named_shardings]
    avals = list(dict.fromkeys([_type_key(a) for a in (*e.in_avals, *e.out_avals)]))
    places = list(dict.fromkeys([s for s in shardings if s is not None]))
    meshes = list(dict.fromkeys([s.mesh.abstract_mesh for s in places]))

    def place(sharding: NamedSharding) -> Table:
        mesh = sharding.mesh.abstract_mesh
        return {
            "mesh": _written_mesh(mesh),
            "spec": _written_spec(sharding.spec),
            "memory_kind": sharding.memory_kind,
            "abstract_mesh_idx": meshes.index(mesh),
        }

    def places_of(found: Iterable[NamedSharding | None]) -> list[Table]:
        return [{"named_sharding": None if s is None else place(s)} for s in found]

    def numbers(found: Iterable[NamedSharding | None]) -> list[int]:
        return [0 if s is None else 1 + places.index(s) for s in found]

    return {
        "serialization_version": schema.VERSION,
        "function_name": e.fun_name,
        "in_tree": written_tree(e.in_tree),
        "in_avals": [_written_aval(_type_key(a)) for a in e.in_avals],
        "out_tree": written_tree(e.out_tree),
        "out_avals": [_written_aval(_type_key(a)) for a in e.out_avals],
        "nr_devices": e.nr_devices,
        "in_shardings": places_of(e._in_named_shardings),
        "out_shardings": places_of(e._out_named_shardings),
        "platforms": list(e.platforms),
        "ordered_effects": [{"type_name": name_of(effect)} for effect in e.ordered_effects],
        "unordered_effects": [{"type_name": name_of(effect)} for effect in e.unordered_effects],
        "disabled_checks": [_written_check(check) for check in e.disabled_safety_checks],
        "mlir_module_serialized": e.mlir_module_serialized,
        "calling_convention_version": e.calling_convention_version,
        "module_kept_var_idx": list(e.module_kept_var_idx),
        "uses_global_constants": e.uses_global_constants,
        "vjp": _written(e.vjp(), vjp_order - 1) if vjp_order > 0 else None,
        "unique_avals": [_written_aval(key) for key in avals],
        "unique_abstract_meshes": [_written_mesh(m) for m in meshes],
        "unique_named_shardings": [place(s) for s in places],
        "in_avals_idxs": [avals.index(_type_key(a)) for a in e.in_avals],
        "out_avals_idxs": [avals.index(_type_key(a)) for a in e.out_avals],
        "in_shardings_idxs": numbers(e._in_named_shardings),
        "out_shardings_idxs": numbers(e._out_named_shardings),
    }


def _type_key(aval: Any) -> tuple[tuple[str, ...], int]:
    """A type as a file has it: its sizes, and the number of its dtype."""
    return tuple([str(size) for size in aval.shape]), _dtype_number(aval.dtype)


def _dtype_number(dtype: Any) -> int:
    if dtype == FLOAT0:
        return schema.FLOAT0
    if isinstance(dtype, KeyDType):
        number = schema.KEYS.get(dtype.impl.name)
    else:
        number = schema.ELEMENTS.get(element_type_of(dtype))
    if number is None:
        raise UnsupportedError(f"JAX's format for exported functions has no dtype {dtype}")
    return number


def _written_aval(key: tuple[tuple[str, ...], int]) -> Table:
    sizes, number = key
    return {"shape": list(sizes), "dtype": number, "memory_space": schema.DEVICE}


def _written_mesh(mesh: AbstractMesh) -> Table:
    device = mesh.abstract_device
    return {
        "axis_sizes": list(mesh.axis_sizes),
        "axis_names": list(mesh.axis_names),
        "axis_types": bytes([schema.AXIS_TYPES[t] for t in mesh.axis_types]),
        "abstract_device": device
        and {"device_kind": device.device_kind, "num_cores": device.num_cores, "platform": device.platform},
    }


def _written_spec(spec: PartitionSpec) -> Table:
    return {
        "partitions": [{"axes": list(axes_of(entry))} for entry in spec.partitions],
        "reduced": sorted(spec.reduced),
        "unreduced": sorted(spec.unreduced),
    }


def _written_check(check: DisabledSafetyCheck) -> Table:
    if check == DisabledSafetyCheck.platform():
        return {"kind": schema.PLATFORM}
    target = check.is_custom_call()
    if target is None:
        raise NotImplementedError(f"serializing DisabledSafetyCheck: {check}")
    return {"kind": schema.CUSTOM_CALL, "custom_call_target": target}
