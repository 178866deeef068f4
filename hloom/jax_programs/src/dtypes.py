"""jax._src.dtypes."""

from typing import Any as _Any

import numpy as _np
from numpy.typing import DTypeLike as _DTypeLike

from ...dtypes import canonicalize_dtype as _canonicalize_dtype
from ...namespaces import publish as _publish
from ...tracer import dtypes as _dtypes
from ...tracer.arrays.extended import ExtendedDType

__all__ = [
    "DType",
    "ExtendedDType",
    "default_complex_dtype",
    "default_float_dtype",
    "default_int_dtype",
    "default_uint_dtype",
    "is_weakly_typed",
    "lattice_result_type",
    "python_scalar_types",
    "safe_to_cast",
    "supports_inf",
    "to_complex_dtype",
    "to_floating_dtype",
    "to_inexact_dtype",
    "to_numeric_dtype",
]

DType = _np.dtype
"""The type of dtypes."""
python_scalar_types = frozenset({bool, int, float, complex})


def default_int_dtype() -> _np.dtype[_Any]:
    """int32, or int64 with x64."""
    return _canonicalize_dtype("int64")


def default_uint_dtype() -> _np.dtype[_Any]:
    """uint32, or uint64 with x64."""
    return _canonicalize_dtype("uint64")


def default_float_dtype() -> _np.dtype[_Any]:
    """float32, or float64 with x64."""
    return _canonicalize_dtype("float64")


def default_complex_dtype() -> _np.dtype[_Any]:
    """complex64, or complex128 with x64."""
    return _canonicalize_dtype("complex128")


def to_inexact_dtype(dtype: _DTypeLike) -> _np.dtype[_Any]:
    """The dtype itself if it is floating or complex; float64 for 64-bit integers, float32 for others."""
    return _dtypes.to_inexact(_np.dtype(dtype))


def to_floating_dtype(dtype: _DTypeLike) -> _np.dtype[_Any]:
    """The dtype of the real parts of `to_inexact_dtype`."""
    return _dtypes.real_of(to_inexact_dtype(dtype))


def to_complex_dtype(dtype: _DTypeLike) -> _np.dtype[_Any]:
    """The dtype itself if it is complex; complex128 for 64-bit numbers, complex64 for others."""
    return _dtypes.to_complex(_np.dtype(dtype))


def to_numeric_dtype(dtype: _DTypeLike) -> _np.dtype[_Any]:
    """int32 for booleans, the dtype itself for others."""
    return _np.dtype(_np.int32) if _np.dtype(dtype) == _np.bool_ else _np.dtype(dtype)


def supports_inf(dtype: _DTypeLike) -> bool:
    """Whether the dtype has an infinity: all floats of 16 bits and more do. JAX does not ask for those below 8 bits."""
    dtype = _np.dtype(dtype)
    without = ("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz")
    return _dtypes.is_inexact(dtype) and dtype.name not in without


def is_weakly_typed(x: _Any) -> bool:
    """Whether the dtype adapts to those of others."""
    return _dtypes.type_of(x)[1]


def lattice_result_type(*args: _Any) -> tuple[_np.dtype[_Any], bool]:
    """The dtype of several values together, and whether it adapts to those of others."""
    dtype, weak = _dtypes.result_type(*args, return_weak_type_flag=True)
    return dtype, weak


def safe_to_cast(input_dtype_or_value: _Any, output_dtype_or_value: _Any) -> bool:
    """Whether the second dtype has all values of the first, by the order in which dtypes are promoted."""
    dtype = _np.dtype(_dtypes.result_type(output_dtype_or_value))
    return bool(_dtypes.result_type(input_dtype_or_value, dtype) == dtype)


_publish(__name__)
