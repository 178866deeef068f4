"""The custom calls that an exported program may contain: JAX keeps their meaning from version to version.

Source: "Compatibility guarantees for custom calls" in JAX's documentation of export, and the targets that JAX lists.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from ..hlo.custom_call_targets.table import LAPACK
from ..hlo.mlir.tree import Operation, operations


class DisabledSafetyCheck:
    """A check that an export, or a call of an exported function, leaves out. `platform` and `custom_call` make one.

    >>> hloom.export.DisabledSafetyCheck.platform()
    platform
    """

    __slots__ = ("_text",)

    def __init__(self, _impl: str) -> None:
        self._text = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """The function may be called on another platform than those it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """The program may have custom calls of this target; of any, for "ALL".

        >>> hloom.export.DisabledSafetyCheck.custom_call("my_target").is_custom_call()
        'my_target'
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The target of the custom calls that it allows; None if it is another check."""
        match = re.match(r"custom_call:(.+)$", self._text)
        return match.group(1) if match else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text


_COMPLEX = {"orgqr": "ungqr", "syevd": "heevd", "sytrd": "hetrd"}
_CPU = [r for r in LAPACK if r not in ("geqp3", "ormqr", "gesvd")]
_STABLE = frozenset({
    *(f"lapack_{letter}{_COMPLEX.get(r, r) if letter in 'cz' else r}_ffi" for r in _CPU for letter in "sdcz"),
    "cu_lu_pivots_to_permutation", "cusolver_getrf_ffi", "hip_lu_pivots_to_permutation", "hipsolver_getrf_ffi",
    "cusolver_geqrf_ffi", "cusolver_orgqr_ffi", "hipsolver_geqrf_ffi", "hipsolver_orgqr_ffi",
    "cusolver_potrf_ffi", "hipsolver_potrf_ffi", "cusolver_syevd_ffi", "hipsolver_syevd_ffi",
    "cusolver_gesvd_ffi", "cusolver_gesvdj_ffi", "hipsolver_gesvd_ffi", "hipsolver_gesvdj_ffi", "hipsolver_gesdd_ffi",
    "cusolver_sytrd_ffi", "hipsolver_sytrd_ffi", "cusparse_gtsv2_ffi", "cu_threefry2x32_ffi", "hip_threefry2x32_ffi",
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
    "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "LuDecomposition", "ApproxTopK",
    "stablehlo.dynamic_approx_top_k", "tf.call_tf_function", "tpu_custom_call", "AllocateBuffer", "mosaic_gpu_v2",
    "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator", "stablehlo.dynamic_top_k",
    "shape_assertion",
})  # fmt: skip


def _is_stable(target: str, allowed: Set[str | None]) -> bool:
    """XLA reads operations of MHLO that are written as custom calls."""
    return target in _STABLE or target in allowed or target.startswith("mhlo.")


def check_custom_calls(module: Operation, disabled: Sequence[DisabledSafetyCheck]) -> None:
    """ValueError for custom calls of targets that may change from version to version, unless checks are disabled."""
    allowed = {check.is_custom_call() for check in disabled}
    if "ALL" in allowed:
        return
    found = [
        str(o.attributes["call_target_name"])
        for o in operations(module)
        if o.name == "stablehlo.custom_call" and not _is_stable(str(o.attributes["call_target_name"]), allowed)
    ]
    if found:
        listed = "\n".join([f"stablehlo.custom_call @{target}" for target in dict.fromkeys(found)])
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility guarantees. Examples are:\n"
            f"{listed}\n  disabled_checks=[export.DisabledSafetyCheck.custom_call(TARGET)] allows one."
        )
