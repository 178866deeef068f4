"""The element types of HLO and their NumPy counterparts.

Source: XLA's PrimitiveType (xla_data.proto). A type that XLA has and this table lacks is refused by name,
never mapped to a neighbour.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from .errors import UnsupportedElementTypeError


class ElementType(Enum):
    """An element type; the value is its name in HLO text."""

    PRED = "pred"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    # Enum's own __hash__ hashes the member's name on every call; identity is enough and much faster.
    __hash__ = object.__hash__

    dtype: np.dtype[Any]
    """The NumPy dtype that stores one element."""
    byte_width: int
    """Bytes of one element in a dense buffer."""
    is_floating: bool
    is_complex: bool
    is_integral: bool
    """True for signed and unsigned integers; PRED is not an integer."""
    is_signed: bool
    """True for signed integers, floats and complex numbers."""

    @property
    def bit_width(self) -> int:
        """Bits of one element's value: 1 for PRED, else 8 * byte_width."""
        return 1 if self is ElementType.PRED else 8 * self.byte_width

    @property
    def is_inexact(self) -> bool:
        """True for real and complex floating-point types: those that have derivatives."""
        return self.is_floating or self.is_complex

    @property
    def real(self) -> ElementType:
        """The type of the real part: F32 for C64, F64 for C128, itself for all others."""
        return _REAL_PART.get(self, self)

    def __repr__(self) -> str:
        return self.name


_DTYPES: dict[ElementType, DTypeLike] = {
    ElementType.PRED: np.bool_,
    ElementType.S8: np.int8,
    ElementType.S16: np.int16,
    ElementType.S32: np.int32,
    ElementType.S64: np.int64,
    ElementType.U8: np.uint8,
    ElementType.U16: np.uint16,
    ElementType.U32: np.uint32,
    ElementType.U64: np.uint64,
    ElementType.F16: np.float16,
    ElementType.BF16: ml_dtypes.bfloat16,
    ElementType.F32: np.float32,
    ElementType.F64: np.float64,
    ElementType.C64: np.complex64,
    ElementType.C128: np.complex128,
}
_REAL_PART = {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}

for _type, _dtype in _DTYPES.items():
    _type.dtype = np.dtype(_dtype)
    _type.byte_width = _type.dtype.itemsize
    _type.is_floating = _type.value in ("f16", "bf16", "f32", "f64")
    _type.is_complex = _type.value in ("c64", "c128")
    _type.is_integral = _type.value[0] in "su"
    _type.is_signed = _type.value[0] in "sfbc"

_BY_DTYPE: dict[np.dtype[Any], ElementType] = {t.dtype: t for t in ElementType}
_BY_NAME: dict[str, ElementType] = {t.value: t for t in ElementType}


def element_type_of(dtype: DTypeLike) -> ElementType:
    """The element type that stores `dtype`; UnsupportedElementTypeError for strings, objects, dates and the like."""
    resolved = np.dtype(dtype)
    found = _BY_DTYPE.get(resolved) or _BY_DTYPE.get(resolved.newbyteorder("="))
    if found is None:
        raise UnsupportedElementTypeError(
            f"dtype {resolved} has no HLO element type; supported are {', '.join(str(t.dtype) for t in ElementType)}"
        )
    return found


def element_type_named(name: str) -> ElementType | None:
    """The element type that HLO text calls `name`, or None."""
    return _BY_NAME.get(name)
