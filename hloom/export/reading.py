"""Exported functions from bytes that this library or JAX has written, in the schema's versions 2 to 12.

A file is data. Reading it executes no code but the functions that the user has registered for containers. Source:
jax/_src/export/serialization.py.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..hlo.errors import UnsupportedError
from ..random.implementations import implementation
from ..tracer.aval import Float0Type, ShapedArray
from ..tracer.sharding.mesh import AbstractDevice, AbstractMesh, AxisType
from ..tracer.sharding.partition_spec import PartitionSpec
from ..tracer.sharding.shardings import NamedSharding, spec_of_axes
from . import schema
from .checks import DisabledSafetyCheck
from .effects import effects_named
from .exported import Exported
from .flatbuffer import read
from .schema import SCHEMA
from .sizes import SizeReader
from .trees import read_tree

T = TypeVar("T", bound=Hashable)
Table = Mapping[str, Any]

_GENERATORS = {number: name for name, number in schema.KEYS.items()}
_ELEMENTS = {number: element for element, number in schema.ELEMENTS.items()}
_AXIS_TYPES = {number: kind for kind, number in schema.AXIS_TYPES.items()}


def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported function of `Exported.serialize`, of this library or of JAX. ValueError for bytes that are none;
    NotImplementedError for effects whose classes are not registered (`mlir.lowerable_effects`).

    >>> exported = hloom.export.export(hloom.jit(lambda x: x + 1))(jnp.ones(3))
    >>> hloom.export.deserialize(exported.serialize()).fun_name
    '<lambda>'
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize takes the bytes of `Exported.serialize`, not {type(blob).__name__}")
    try:
        return _read(read(SCHEMA, "Exported", bytes(blob)))
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError(f"deserialize: the bytes are no exported function, or damaged: {error!r}") from error


def _read(found: Table) -> Exported:
    sizes = SizeReader()
    meshes = [_read_mesh(m) for m in found["unique_abstract_meshes"] or ()]
    places = [_read_sharding(s, meshes) for s in found["unique_named_shardings"] or ()]
    types = [_read_aval(a, sizes) for a in found["unique_avals"] or ()]

    def shardings(which: str) -> tuple[NamedSharding | None, ...]:
        numbers = found[f"{which}_shardings_idxs"]
        if numbers:
            return tuple([_at([None, *places], n) for n in numbers])
        return tuple([_read_place(s, meshes) for s in found[f"{which}_shardings"] or ()])

    def avals(which: str, over: Sequence[NamedSharding | None]) -> tuple[Any, ...]:
        numbers = found[f"{which}_avals_idxs"]
        plain = [_at(types, n) for n in numbers or ()] or [
            _read_aval(a, sizes) for a in found[f"{which}_avals"] or ()
        ]
        divisions = over or [None] * len(plain)
        if len(divisions) != len(plain):
            raise ValueError(f"the file has {len(divisions)} shardings for {len(plain)} {which}_avals")
        return tuple([_divided(a, s) for a, s in zip(plain, divisions, strict=True)])

    ins, outs = shardings("in"), shardings("out")
    in_avals, out_avals = avals("in", ins), avals("out", outs)
    module = found["mlir_module_serialized"]
    if module is None or found["in_tree"] is None or found["out_tree"] is None:
        raise ValueError("deserialize: the bytes have no program, or no structure of its arguments and results")
    vjp = found["vjp"]
    backward = None if vjp is None else _read(vjp)
    kept = found["module_kept_var_idx"] or ()
    if list(kept) != sorted({*kept}) or any(k >= len(in_avals) for k in kept):
        raise ValueError(f"the file says that the program takes the arguments {kept} of {len(in_avals)}")
    return Exported(
        fun_name=found["function_name"] or "",
        in_tree=read_tree(found["in_tree"], _leaves(in_avals)),
        in_avals=in_avals,
        out_tree=read_tree(found["out_tree"], _leaves(out_avals)),
        out_avals=out_avals,
        _has_named_shardings=True,
        _in_named_shardings=ins or (None,) * len(in_avals),
        _out_named_shardings=outs or (None,) * len(out_avals),
        in_shardings_hlo=(None,) * len(in_avals),
        out_shardings_hlo=(None,) * len(out_avals),
        nr_devices=found["nr_devices"] or found["nr_devices_short"],
        platforms=tuple(found["platforms"] or ()),
        ordered_effects=effects_named([e["type_name"] or "" for e in found["ordered_effects"] or ()]),
        unordered_effects=effects_named([e["type_name"] or "" for e in found["unordered_effects"] or ()]),
        disabled_safety_checks=tuple([_read_check(check) for check in found["disabled_checks"] or ()]),
        mlir_module_serialized=module,
        calling_convention_version=found["calling_convention_version"],
        module_kept_var_idx=tuple(kept),
        uses_global_constants=found["uses_global_constants"],
        _get_vjp=None if backward is None else lambda _: backward,
    )


def _leaves(avals: Sequence[Any]) -> list[Any]:
    """Stand-ins for arrays of these types: a Float0Type would be a container itself."""
    return [ShapedArray(a.shape, np.bool_) if isinstance(a, Float0Type) else a for a in avals]


def _at(found: Sequence[T], number: int) -> T:
    if number >= len(found):
        raise ValueError(f"the file refers to object {number} of a list of {len(found)}")
    return found[number]


def _read_aval(found: Table, sizes: SizeReader) -> Any:
    shape, number = sizes.shape(found["shape"] or ()), found["dtype"]
    if number == schema.FLOAT0:
        return Float0Type(shape)
    if number in _GENERATORS:
        return ShapedArray(shape, implementation(_GENERATORS[number]).dtype)
    if number not in _ELEMENTS:
        raise ValueError(f"the file has a dtype of number {number}, which its format does not have")
    return ShapedArray(shape, _ELEMENTS[number].dtype)


def _divided(aval: Any, sharding: NamedSharding | None) -> Any:
    return aval if sharding is None or isinstance(aval, Float0Type) else aval.divided(sharding)


def _read_mesh(found: Table) -> AbstractMesh:
    names, sizes = found["axis_names"] or (), found["axis_sizes"] or ()
    types = tuple([_AXIS_TYPES.get(t, AxisType.Auto) for t in found["axis_types"] or ()])
    device = found["abstract_device"]
    if device is not None:
        kind = device["device_kind"] or ""
        device = AbstractDevice(kind, device["num_cores"], device["platform"] or _platform_of(kind))
    return AbstractMesh(tuple(sizes), tuple(names), types or None, abstract_device=device)


def _platform_of(device_kind: str) -> str:
    """Of a file from before May 2026."""
    kind = device_kind.lower()
    return "cpu" if "cpu" in kind else "tpu" if "tpu" in kind else "gpu"


def _read_sharding(found: Table, meshes: Sequence[AbstractMesh]) -> NamedSharding:
    mesh = _at(meshes, found["abstract_mesh_idx"]) if meshes else _read_mesh(found["mesh"])
    spec = found["spec"]
    entries = [entry["axes"] or () for entry in spec["partitions"] or ()]
    partitions = spec_of_axes(entries).partitions
    sets = {name: frozenset(spec[name] or ()) for name in ("reduced", "unreduced")}
    return NamedSharding(mesh, PartitionSpec(*partitions, **sets), memory_kind=found["memory_kind"])


def _read_place(found: Table, meshes: Sequence[AbstractMesh]) -> NamedSharding | None:
    """An argument's sharding in a file from before April 2026."""
    if found["named_sharding"] is not None:
        return _read_sharding(found["named_sharding"], meshes)
    if found["hlo_sharding_proto"]:
        raise UnsupportedError(
            "the file says how arrays are divided over devices in XLA's own form, which JAX has not written since "
            "January 2026: export the function again"
        )
    return None


def _read_check(found: Table) -> DisabledSafetyCheck:
    if found["kind"] == schema.PLATFORM:
        return DisabledSafetyCheck.platform()
    if found["kind"] == schema.CUSTOM_CALL:
        return DisabledSafetyCheck.custom_call(found["custom_call_target"] or "")
    raise ValueError(f"Cannot deserialize DisabledSafetyCheck with unknown kind: {found['kind']}")
