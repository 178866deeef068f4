"""The element types of HLO and their NumPy counterparts.

Source: XLA's PrimitiveType (xla_data.proto). A type that XLA has and this table lacks is refused with its name; it is
never replaced by a similar one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from .errors import UnsupportedElementTypeError


class ElementType(Enum):
    """An element type; the value is its name in HLO text."""

    PRED = "pred"
    S1 = "s1"
    S2 = "s2"
    S4 = "s4"
    S8 = "s8"
    S16 = "s16"
    S32 = "s32"
    S64 = "s64"
    U1 = "u1"
    U2 = "u2"
    U4 = "u4"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F4E2M1FN = "f4e2m1fn"
    F8E3M4 = "f8e3m4"
    F8E4M3 = "f8e4m3"
    F8E4M3B11FNUZ = "f8e4m3b11fnuz"
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0FNU = "f8e8m0fnu"
    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    C64 = "c64"
    C128 = "c128"

    # Enum's own __hash__ hashes the member's name on every call; identity is enough and much faster.
    __hash__: ClassVar[Callable[[object], int]] = object.__hash__
    if not TYPE_CHECKING:  # Enum's own property calls functions of Python
        value = property(attrgetter("_value_"))

    dtype: np.dtype[Any]
    """The NumPy dtype that stores one element."""
    byte_width: int
    """Bytes of one element in a dense buffer. A type of less than a byte takes one byte, as in ml_dtypes."""
    bit_width: int
    """Bits of one element's value: 1 for PRED."""
    is_small: bool
    """True for floats of a byte or less and integers of less than a byte: such elements are only stored and converted;
    arithmetic uses a wider type."""
    is_floating: bool
    is_complex: bool
    is_integral: bool
    """True for signed and unsigned integers; PRED is not an integer."""
    is_signed: bool
    """True for signed integers, floats and complex numbers."""

    @property
    def is_inexact(self) -> bool:
        """True for real and complex floating-point types: those that have derivatives."""
        return self.is_floating or self.is_complex

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest number of an integer type."""
        assert self.is_integral, f"{self.value} is no integer type"
        if self.is_signed:
            return -1 << (self.bit_width - 1), (1 << (self.bit_width - 1)) - 1
        return 0, (1 << self.bit_width) - 1

    @property
    def real(self) -> ElementType:
        """The type of the real part: F32 for C64, F64 for C128, itself for all others."""
        return _REAL_PART.get(self, self)

    def __repr__(self) -> str:
        return self.name


_DTYPES: dict[ElementType, DTypeLike] = {
    ElementType.PRED: np.bool_,
    ElementType.S1: ml_dtypes.int1,
    ElementType.S2: ml_dtypes.int2,
    ElementType.S4: ml_dtypes.int4,
    ElementType.S8: np.int8,
    ElementType.S16: np.int16,
    ElementType.S32: np.int32,
    ElementType.S64: np.int64,
    ElementType.U1: ml_dtypes.uint1,
    ElementType.U2: ml_dtypes.uint2,
    ElementType.U4: ml_dtypes.uint4,
    ElementType.U8: np.uint8,
    ElementType.U16: np.uint16,
    ElementType.U32: np.uint32,
    ElementType.U64: np.uint64,
    ElementType.F4E2M1FN: ml_dtypes.float4_e2m1fn,
    ElementType.F8E3M4: ml_dtypes.float8_e3m4,
    ElementType.F8E4M3: ml_dtypes.float8_e4m3,
    ElementType.F8E4M3B11FNUZ: ml_dtypes.float8_e4m3b11fnuz,
    ElementType.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    ElementType.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    ElementType.F8E5M2: ml_dtypes.float8_e5m2,
    ElementType.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    ElementType.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
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
    _type.is_floating = _type.value[0] in "fb"
    _type.is_complex = _type.value in ("c64", "c128")
    _type.is_integral = _type.value[0] in "su"
    _type.is_signed = _type.value[0] in "sfbc"
    _digits = re.match(r"[a-z]+([0-9]*)", _type.value)
    _type.bit_width = int(_digits[1]) if _digits and _digits[1] else 1
    _type.is_small = (_type.bit_width < 8 and _type.is_integral) or (_type.bit_width <= 8 and _type.is_floating)

_BY_DTYPE: dict[np.dtype[Any], ElementType] = {t.dtype: t for t in ElementType}
_BY_NAME: dict[str, ElementType] = {t.value: t for t in ElementType}


def element_type_of(dtype: DTypeLike) -> ElementType:
    """The element type that stores `dtype`; UnsupportedElementTypeError for strings, objects, dates and the like.

    >>> from hloom import hlo
    >>> hlo.element_type_of("bfloat16"), hlo.element_type_of(bool)
    (BF16, PRED)
    """
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
