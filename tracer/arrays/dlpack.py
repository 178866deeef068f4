"""DLPack capsules of bfloat16, which NumPy does not know: those of uint16, with another type code.

Source: dmlc/dlpack, include/dlpack/dlpack.h: DLManagedTensorVersioned, DLManagedTensor, DLTensor, DLDataTypeCode.
"""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

_UNSIGNED, _BFLOAT = 1, 4
"""Type codes."""

_TENSORS = {b"dltensor_versioned": 32, b"dltensor": 0}
"""Where the tensor begins in what a capsule points to, by the capsule's name."""

_CODE = 20
"""Where the type code is in a tensor: after its memory, device and number of dimensions."""

_is_valid, _pointer = ctypes.pythonapi.PyCapsule_IsValid, ctypes.pythonapi.PyCapsule_GetPointer
_is_valid.argtypes = _pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_pointer.restype = ctypes.c_void_p

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def capsule_of(array: np.ndarray[Any, Any], **options: Any) -> Any:
    """The capsule of an array, as NumPy's `__dlpack__` makes it. BufferError for dtypes that DLPack does not have."""
    if array.dtype != BFLOAT16:
        return array.__dlpack__(**options)
    capsule = array.view(np.uint16).__dlpack__(**options)
    _code_of(capsule).value = _BFLOAT
    return capsule


def array_of(external: Any) -> np.ndarray[Any, Any]:
    """NumPy's view of another library's array, by DLPack."""
    given = _AsNumbers(external)
    found: np.ndarray[Any, Any] = np.from_dlpack(given)
    return found.view(BFLOAT16) if given.is_bfloat else found


class _AsNumbers:
    """An array of another library, whose capsules NumPy can read."""

    is_bfloat = False

    def __init__(self, external: Any) -> None:
        self._external = external

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._external.__dlpack__(**options)
        code = _code_of(capsule)
        self.is_bfloat = code.value == _BFLOAT
        if self.is_bfloat:
            code.value = _UNSIGNED
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._external.__dlpack_device__()


def _code_of(capsule: Any) -> ctypes.c_uint8:
    name = next(name for name in _TENSORS if _is_valid(capsule, name))
    return ctypes.c_uint8.from_address(_pointer(capsule, name) + _TENSORS[name] + _CODE)
