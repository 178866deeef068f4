"""The flatbuffer schema of exported programs, version 12, as JAX declares it in `jax/_src/export/serialization.fbs`.

Readers of every version skip the fields that they do not know, and older files lack the newer fields.
"""

from __future__ import annotations

from ..hlo.element_type import ElementType as E
from ..tracer.sharding.mesh import AxisType
from .flatbuffer import schema

VERSION = 11
"""The version that is written; 12 adds the version of JAX that wrote a file, for messages."""

SCHEMA = schema(
    {
        "PyTreeDef": "kind:byte children:[PyTreeDef] children_names:[string] custom_name:string custom_auxdata:[byte]",
        "AbstractDevice": "device_kind:string num_cores:uint32? platform:string",
        "AbstractMesh": (
            "axis_sizes:[uint32] axis_names:[string] axis_types:[byte] abstract_device:AbstractDevice"
        ),
        "PartitionSpecOneAxis": "axes:[string]",
        "PartitionSpec": "partitions:[PartitionSpecOneAxis] reduced:[string] unreduced:[string]",
        "NamedSharding": "mesh:AbstractMesh spec:PartitionSpec memory_kind:string abstract_mesh_idx:uint32",
        "AbstractValue": "kind:byte shape:[string] dtype:byte memory_space:byte",
        "Sharding": "kind:byte hlo_sharding_proto:[byte] named_sharding:NamedSharding",
        "Effect": "type_name:string",
        "DisabledSafetyCheck": "kind:byte custom_call_target:string",
        "Exported": (
            "serialization_version:uint16 function_name:string "
            "in_tree:PyTreeDef in_avals:[AbstractValue] out_tree:PyTreeDef out_avals:[AbstractValue] "
            "nr_devices_short:short in_shardings:[Sharding] out_shardings:[Sharding] platforms:[string] "
            "ordered_effects:[Effect] unordered_effects:[Effect] disabled_checks:[DisabledSafetyCheck] "
            "mlir_module_serialized:[byte] calling_convention_version:uint16 module_kept_var_idx:[uint16] "
            "uses_global_constants:bool vjp:Exported nr_devices:uint32 "
            "unique_avals:[AbstractValue] unique_abstract_meshes:[AbstractMesh] unique_named_shardings:[NamedSharding] "
            "in_avals_idxs:[uint32] out_avals_idxs:[uint32] in_shardings_idxs:[uint32] out_shardings_idxs:[uint32] "
            "jax_version:string"
        ),
    }
)

LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)
"""Kinds of PyTreeDef."""
PLATFORM, CUSTOM_CALL = range(2)
"""Kinds of DisabledSafetyCheck."""
DEVICE, HOST = 1, 2
"""Memory spaces; 0 where a file says nothing."""
AXIS_TYPES = {AxisType.Auto: 1, AxisType.Explicit: 2, AxisType.Manual: 3}

ELEMENTS = {
    E.PRED: 0, E.S8: 1, E.S16: 2, E.S32: 3, E.S64: 4, E.U8: 5, E.U16: 6, E.U32: 7, E.U64: 8, E.F16: 9, E.F32: 10,
    E.F64: 11, E.C64: 12, E.C128: 13, E.BF16: 14, E.S4: 15, E.U4: 16, E.F8E4M3B11FNUZ: 17, E.F8E4M3FN: 18,
    E.F8E4M3FNUZ: 19, E.F8E5M2: 20, E.F8E5M2FNUZ: 21, E.F8E4M3: 23, E.F8E3M4: 24, E.F8E8M0FNU: 25, E.F4E2M1FN: 26,
}  # fmt: skip
"""The number of each element type."""
FLOAT0 = 22
KEYS = {"threefry2x32": 27, "rbg": 28, "unsafe_rbg": 29}
"""The number of each kind of random key, by its generator's name."""
