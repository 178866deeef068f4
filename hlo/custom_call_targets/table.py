"""The table of built-in targets: name, types, and the file of the function."""

from __future__ import annotations

import re
from importlib import import_module

from ..element_type import ElementType
from ..support.records import dataclass
from .call import Call, Run, Target, match

_E = ElementType
_REAL, _COMPLEX = {"s": _E.F32, "d": _E.F64}, {"c": _E.C64, "z": _E.C128}

LAPACK: dict[str, tuple[str, str]] = {
    "potrf": ("factorize", "T[*,n,n] -> T[*,n,n], s32[*]"),
    "getrf": ("factorize", "T[*,m,n] -> T[*,m,n], s32[*,k], s32[*]"),
    "geqrf": ("factorize", "T[*,m,n] -> T[*,m,n], T[*,k]"),
    "geqp3": ("factorize", "T[*,m,n], s32[*,n] -> T[*,m,n], s32[*,n], T[*,k]"),
    "orgqr": ("factorize", "T[*,m,n], T[*,p] -> T[*,m,n]"),
    "ormqr": ("factorize", "T[*,r,c], T[*,p], T[*,m,n] -> T[*,m,n]"),
    "trsm": ("factorize", "T[*,a,a], T[*,m,n] -> T[*,m,n]"),
    "gtsv": ("factorize", "T[*,n], T[*,n], T[*,n], T[*,n,b] -> T[*,n], T[*,n], T[*,n], T[*,n,b], s32[*]"),
    "syevd": ("spectral", "T[*,n,n] -> T[*,n,n], R[*,n], s32[*]"),
    "sytrd": ("spectral", "T[*,n,n] -> T[*,n,n], R[*,n], R[*,h], T[*,h], s32[*]"),
    "gehrd": ("spectral", "T[*,n,n] -> T[*,n,n], T[*,h], s32[*]"),
    "gesdd": ("spectral", "T[*,m,n] -> T[*,m,n], R[*,k], T[*,m,u], T[*,v,n], s32[*]"),
    "gesvd": ("spectral", "T[*,m,n] -> T[*,m,n], R[*,k], T[*,m,u], T[*,v,n], s32[*]"),
    "geev": ("spectral", "T[*,n,n] -> T[*,n], T[*,n], C[*,n,n], C[*,n,n], s32[*]"),
    "gees": ("spectral", "T[*,n,n] -> T[*,n,n], T[*,n,n], T[*,n], T[*,n], s32[*], s32[*]"),
}
"""By LAPACK's name of the real routine: the file of its function, which has the same name, and its types."""
_COMPLEX_TYPES = {
    "geev": "T[*,n,n] -> T[*,n], T[*,n,n], T[*,n,n], s32[*]",
    "gees": "T[*,n,n] -> T[*,n,n], T[*,n,n], T[*,n], s32[*], s32[*]",
}
_COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One target: its types, or "" if its function checks them, and its element type; None: the first operand's."""

    module: str
    function: str
    signature: str = ""
    element_type: ElementType | None = None

    @property
    def is_batched(self) -> bool:
        """Whether all operands and results may have batch dimensions in front."""
        parts = re.findall(r"\[(.)", self.signature)
        return bool(parts) and set(parts) == {"*"}

    def bind(self, call: Call) -> Run:
        """The function that computes `call`. ShapeError (`custom-call_target`) if the target cannot be called so."""
        target: Target = getattr(import_module(f".{self.module}", __package__), self.function)
        call = self.typed(call)
        return target(call)

    def typed(self, call: Call) -> Call:
        """The call with its element type, sizes and batch. ShapeError if its types are not the target's."""
        if not self.signature:
            return call
        element_type = self.element_type
        if element_type is None:
            first = call.operands[0] if call.operands else None
            if first is None or first.is_tuple or first.element not in (*_REAL.values(), *_COMPLEX.values()):
                call.fail("its first operand must be an array of f32, f64, c64 or c128")
            element_type = first.element
        return match(call, self.signature, element_type)


SYSTEMS = {
    "lu_solve": "T[*,n,n], T[*,n,n], s32[*,n], T[*,n,b] -> T[*,n,b]",
    "solve": "T[*,n,n], T[*,n,b] -> T[*,n,b]",
    "inverse": "T[*,n,n] -> T[*,n,n]",
    "determinant": "T[*,n,n] -> T[*]",
}
"""Of `hloom.` and the name of a function in linear_systems.py: its types."""


def _built_in() -> dict[str, BuiltIn]:
    table = {}
    for routine, (module, signature) in LAPACK.items():
        for letter, element_type in _REAL.items():
            table[f"lapack_{letter}{routine}_ffi"] = BuiltIn(module, routine, signature, element_type)
        for letter, element_type in _COMPLEX.items():
            name = _COMPLEX_NAMES.get(routine, routine)
            types = _COMPLEX_TYPES.get(routine, signature)
            table[f"lapack_{letter}{name}_ffi"] = BuiltIn(module, routine, types, element_type)
    table["tridiagonal_solve_perturbed_ffi"] = BuiltIn(
        "composed", "tridiagonal_solve_perturbed", "T[*,n], T[*,n], T[*,n], T[*,n,b] -> T[*,n,b]"
    )
    table["cpu_csr_sparse_dense_ffi"] = BuiltIn("composed", "csr_times_dense")
    table["Qr"] = BuiltIn("composed", "qr", LAPACK["geqrf"][1])
    table["Eigh"] = BuiltIn("composed", "eigh", "T[*,n,n] -> T[*,n,n], R[*,n]")
    table["LuDecomposition"] = BuiltIn("composed", "lu_decomposition", "T[*,m,n] -> T[*,m,n], s32[*,k], s32[*,m]")
    table["ProductOfElementaryHouseholderReflectors"] = BuiltIn("composed", "householder_product", LAPACK["orgqr"][1])
    for function, signature in SYSTEMS.items():
        table[f"hloom.{function}"] = BuiltIn("linear_systems", function, signature)
    for name in ("TopK", "mhlo.topk"):
        table[name] = BuiltIn("ordering", "topk")
    table["hloom.trace"] = BuiltIn("trace", "trace")
    for name in UNWRITTEN:
        table[name] = BuiltIn("annotations", "unwritten")
    table["hloom.progress"] = BuiltIn("annotations", "identity")  # a program that was read from text shows no bar
    table["dce_sink"] = BuiltIn("annotations", "identity")  # it stays: the computation of its operand must not vanish
    for name in IDENTITIES:
        table[name] = BuiltIn("annotations", "identity")
    return table


ZEROED = ("AllocateBuffer", "CreateBuffer")
"""XLA's targets with results that are uninitialised memory: in a program that is given they are zeros."""

UNWRITTEN = (*ZEROED, "hloom.unwritten")
"""Targets with results that are uninitialised memory."""

IDENTITIES = (
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape", "xla.sdy.ShardingGroup",
    "xla.sdy.PropagationBarrier", "annotate_device_placement", "LayoutConstraint", "MoveToHost", "MoveToDevice",
    "Pin", "Unpin", "InspectSharding", "ShardBarrierFrom", "ShardBarrierTo",
)  # fmt: skip
"""Targets that annotate their operands and return them: on one device there is nothing else to do."""

BUILT_IN: dict[str, BuiltIn] = _built_in()

CALLBACK_TARGET = "xla_ffi_python_cpu_callback"
"""XLA's name for a call of a Python function that exists only in the process that lowered the program."""
_CALLBACKS = (
    CALLBACK_TARGET, "xla_ffi_partitioned_python_cpu_callback", "xla_python_cpu_callback",
    "xla_ffi_python_gpu_callback", "xla_ffi_partitioned_python_gpu_callback", "xla_python_gpu_callback",
    "tf.call_tf_function",
)  # fmt: skip
_CALLBACK = "it calls a Python function of the process that lowered the program, which the program's text does not hold"

UNAVAILABLE: dict[str, str] = {
    **dict.fromkeys(_CALLBACKS, _CALLBACK),
    "tpu_custom_call": "its code is for TPUs",
    "mosaic_gpu_v2": "its code is for GPUs",
}
"""Targets that are known and cannot be run from text, and why."""
