"""jax._src.dtypes."""

import numpy as _np
from numpy.typing import DTypeLike as _DTypeLike

from ...dtypes import TypePromotionError, canonicalize_dtype, extended, finfo, iinfo, issubdtype, result_type
from ...namespaces import publish as _publish
from ...tracer.arrays.extended import ExtendedDType

__all__ = [
    "DType",
    "ExtendedDType",
    "TypePromotionError",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "iinfo",
    "issubdtype",
    "result_type",
    "to_complex_dtype",
]

DType = _np.dtype
"""The type of dtypes."""


def to_complex_dtype(dtype: _DTypeLike) -> _np.dtype[_np.complexfloating]:
    """complex128 for float64 and complex128, complex64 for others."""
    return _np.dtype(_np.complex128 if _np.dtype(dtype) in (_np.float64, _np.complex128) else _np.complex64)


_publish(__name__)
