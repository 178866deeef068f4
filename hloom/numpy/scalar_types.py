"""The dtypes by name: NumPy's scalar types, and ml_dtypes' where NumPy has none. Constants."""

from __future__ import annotations

import ml_dtypes
import numpy as np

__all__ = [
    "bfloat16",
    "bool",
    "bool_",
    "complex64",
    "complex128",
    "complex_",
    "complexfloating",
    "dtype",
    "e",
    "euler_gamma",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "float_",
    "floating",
    "generic",
    "inexact",
    "inf",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "integer",
    "nan",
    "newaxis",
    "number",
    "pi",
    "signedinteger",
    "uint",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsignedinteger",
]

bool = bool_ = np.bool_
int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
float16, float32, float64 = np.float16, np.float32, np.float64
bfloat16 = ml_dtypes.bfloat16
float4_e2m1fn, float8_e3m4, float8_e4m3 = ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e3m4, ml_dtypes.float8_e4m3
float8_e4m3b11fnuz, float8_e4m3fn = ml_dtypes.float8_e4m3b11fnuz, ml_dtypes.float8_e4m3fn
float8_e4m3fnuz, float8_e5m2 = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2
float8_e5m2fnuz, float8_e8m0fnu = ml_dtypes.float8_e5m2fnuz, ml_dtypes.float8_e8m0fnu
int2, int4, uint2, uint4 = ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4
complex64, complex128 = np.complex64, np.complex128
int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128
"""The default types: 32-bit unless x64 is on, like all 64-bit types."""
dtype, generic, number = np.dtype, np.generic, np.number
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf, nan = np.inf, np.nan
newaxis = None
