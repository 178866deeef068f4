"""jax._src.typing: names for annotations."""

from collections.abc import Sequence as _Sequence
from enum import IntEnum as _IntEnum
from types import EllipsisType
from typing import Any as _Any
from typing import Protocol as _Protocol
from typing import runtime_checkable as _runtime_checkable

import numpy as _np

from ... import Array as _Array

__all__ = [
    "AnyInt",
    "DLDeviceType",
    "DType",
    "DeprecatedArg",
    "DimSize",
    "DuckTypedArray",
    "EllipsisType",
    "ExtendedDType",
    "Index",
    "Shape",
    "StaticIndex",
    "StaticScalar",
    "SupportsDType",
    "SupportsNdim",
    "SupportsShape",
    "SupportsSize",
]

DType = _np.dtype
ExtendedDType = _Any
DimSize = int | _Any
Shape = _Sequence[DimSize]
StaticScalar = _np.bool_ | _np.number | bool | int | float | complex
AnyInt = int | _np.integer
StaticIndex = AnyInt | slice | EllipsisType
Index = StaticIndex | None | _Sequence[AnyInt] | _Array | _np.ndarray


@_runtime_checkable
class SupportsDType(_Protocol):
    """An object with a dtype."""

    @property
    def dtype(self, /) -> _np.dtype[_Any]: ...


class SupportsShape(_Protocol):
    """An object with a shape."""

    @property
    def shape(self, /) -> tuple[int, ...]: ...


class SupportsSize(_Protocol):
    """An object with a size."""

    @property
    def size(self, /) -> int: ...


class SupportsNdim(_Protocol):
    """An object with a number of dimensions."""

    @property
    def ndim(self, /) -> int: ...


class DuckTypedArray(SupportsDType, SupportsShape, _Protocol):
    """An object with a dtype and a shape."""


class DeprecatedArg:
    """The default of a parameter that should not be given any more."""

    def __repr__(self) -> str:
        return "Deprecated"


class DLDeviceType(_IntEnum):
    """Kinds of devices in DLPack."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLROCM = 10
