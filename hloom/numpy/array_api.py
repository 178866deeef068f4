"""The attributes that the array API standard requires of a namespace: its version, its dtypes, devices and abilities.

https://data-apis.org/array-api/2024.12/. `docs/array_api.md` says where this namespace differs from the standard.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..hlo.support.tracebacks import boundaries
from ..tracer import dtypes
from ..tracer.errors import OperandError
from ..tracer.settings.context import current_context
from ..tracer.sharding.devices import devices
from .logic import isdtype

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the standard that the namespace follows."""
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


def array_namespace(api_version: str | None = None) -> Any:
    """`hloom.numpy`, if it has this version of the standard; else ValueError."""
    if api_version is not None and api_version not in VERSIONS:
        raise OperandError(
            f"{api_version!r} is not a version of the array API standard that hloom.numpy has: {', '.join(VERSIONS)}",
            "api_version",
        )
    return sys.modules[__package__]


@boundaries
class ArrayNamespaceInfo:
    """The result of `hloom.numpy.__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """Features that depend on values: a mask is an index outside of jit, and shapes may depend on data there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Any:
        """The device on which arrays are made."""
        return self.devices()[0]

    def devices(self) -> list[Any]:
        """All devices: the CPU."""
        return list(devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of arrays that are made without one; they depend on the setting x64."""
        self._check(device)
        real, whole = dtypes.default_float(), dtypes.default_int()
        return {
            "real floating": real,
            "complex floating": dtypes.to_complex(real),
            "integral": whole,
            "indexing": whole,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes, or the dtypes of a kind (see `isdtype`); 64-bit dtypes only with the setting x64."""
        self._check(device)
        x64 = current_context().enable_x64
        found = {name: np.dtype(name) for name in _DTYPES}
        if not x64:
            found = {n: d for n, d in found.items() if dtypes.canonical_dtype(d) == d}
        return {n: d for n, d in found.items() if kind is None or isdtype(d, kind)}

    def _check(self, device: Any) -> None:
        if device is not None and device not in self.devices():
            raise ValueError(f"{device!r} is not a device: {self.devices()}")


def namespace_info() -> ArrayNamespaceInfo:
    """The answers of this namespace to questions of the array API standard: dtypes, devices, abilities."""
    return ArrayNamespaceInfo()
