"""The dtypes by name, which also make arrays: ``float32(3)``. NumPy's abstract types. Constants."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..tracer.core import Value
from .array_creation import asarray


class ScalarType(type):
    """The class of `float32` and its like, which have no instances: a call makes an array without dimensions.

    Each is a dtype wherever NumPy or this library wants one, and equal to NumPy's type of that name.
    """

    dtype: np.dtype[Any]

    @property
    def __numpy_dtype__(cls) -> np.dtype[Any]:
        """The attribute that newer NumPys ask for."""
        return cls.dtype

    def __call__(cls, x: Any) -> Value:
        """`asarray(x)` of this dtype, for numbers, sequences, arrays and traced values."""
        return asarray(x, cls.dtype)

    def __eq__(cls, other: object) -> Any:
        return cls is other or cls.dtype.type == other

    def __ne__(cls, other: object) -> Any:
        return not cls == other

    def __hash__(cls) -> Any:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance: object) -> Any:
        return isinstance(instance, cls.dtype.type)


_FLOATS = {
    "bfloat16": "floats of 16 bits, 8 of them significant, up to 3.4e38",
    "float16": "floats of 16 bits, 11 of them significant, up to 65504",
    "float32": "floats of 32 bits, 24 of them significant, up to 3.4e38",
    "float64": "floats of 64 bits, 53 of them significant, up to 1.8e308",
    "complex64": "pairs of float32, the real and the imaginary part",
    "complex128": "pairs of float64, the real and the imaginary part",
    "float4_e2m1fn": "floats of 4 bits, up to 6, without infinity and NaN",
    "float6_e2m3fn": "floats of 6 bits, up to 7.5, without infinity and NaN",
    "float6_e3m2fn": "floats of 6 bits, up to 28, without infinity and NaN",
    "float8_e3m4": "floats of 8 bits, 5 of them significant, up to 15.5",
    "float8_e4m3": "floats of 8 bits, 4 of them significant, up to 240",
    "float8_e4m3fn": "floats of 8 bits, 4 of them significant, up to 448, without infinity",
    "float8_e4m3fnuz": "floats of 8 bits, 4 of them significant, up to 240, without infinity and -0",
    "float8_e4m3b11fnuz": "floats of 8 bits, 4 of them significant, up to 30, without infinity and -0",
    "float8_e5m2": "floats of 8 bits, 3 of them significant, up to 57344",
    "float8_e5m2fnuz": "floats of 8 bits, 3 of them significant, up to 57344, without infinity and -0",
    "float8_e8m0fnu": "powers of two from 2**-127 to 2**127, and NaN: scales of blocks of small floats",
}


def _scalar_type(scalar: type) -> ScalarType:
    found = ScalarType(scalar.__name__, (), {"dtype": np.dtype(scalar), "__doc__": _text(scalar.__name__)})
    found.__module__ = "hloom.numpy"
    return found


def _text(name: str) -> str:
    """The text of `help` for a dtype."""
    kind, digits = name.rstrip("0123456789"), name.lstrip("uint")
    if name == "bool":
        numbers = "truth values, of one byte"
    elif kind in ("int", "uint"):
        bits = int(digits)
        low, high = (0, 2**bits - 1) if kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        numbers = f"integers from {low} to {high}; results beyond wrap around"
    else:
        numbers = _FLOATS[name]
    first, example = f"The dtype of {numbers}.", f">>> jnp.zeros(3, jnp.{name}).dtype.name\n'{name}'"
    use = f"{name}(x) is an array of it, of what `asarray` takes; and it stands where a dtype is asked for."
    if name.startswith("float6_"):
        use, example = "XLA has no such type: no array can be made.", f">>> jnp.dtype(jnp.{name}).name\n'{name}'"
    elif digits == "64" or name in ("float64", "complex128"):
        use += " Without x64 it is\nnarrowed to half its width, with a warning."
        example = f">>> with hloom.enable_x64():\n...     jnp.zeros(3, jnp.{name}).dtype.name\n'{name}'"
        return f"{first}\n\n{use}\n\n>>> import hloom, hloom.numpy as jnp\n{example}\n"
    return f"{first}\n\n{use}\n\n>>> import hloom.numpy as jnp\n{example}\n"


bool: ScalarType = _scalar_type(np.bool_)
bool_: ScalarType = bool
int1: ScalarType = _scalar_type(ml_dtypes.int1)
int2: ScalarType = _scalar_type(ml_dtypes.int2)
int4: ScalarType = _scalar_type(ml_dtypes.int4)
int8: ScalarType = _scalar_type(np.int8)
int16: ScalarType = _scalar_type(np.int16)
int32: ScalarType = _scalar_type(np.int32)
int64: ScalarType = _scalar_type(np.int64)
uint1: ScalarType = _scalar_type(ml_dtypes.uint1)
uint2: ScalarType = _scalar_type(ml_dtypes.uint2)
uint4: ScalarType = _scalar_type(ml_dtypes.uint4)
uint8: ScalarType = _scalar_type(np.uint8)
uint16: ScalarType = _scalar_type(np.uint16)
uint32: ScalarType = _scalar_type(np.uint32)
uint64: ScalarType = _scalar_type(np.uint64)
float4_e2m1fn: ScalarType = _scalar_type(ml_dtypes.float4_e2m1fn)
float8_e3m4: ScalarType = _scalar_type(ml_dtypes.float8_e3m4)
float8_e4m3: ScalarType = _scalar_type(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz: ScalarType = _scalar_type(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: ScalarType = _scalar_type(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz: ScalarType = _scalar_type(ml_dtypes.float8_e4m3fnuz)
float8_e5m2: ScalarType = _scalar_type(ml_dtypes.float8_e5m2)
float8_e5m2fnuz: ScalarType = _scalar_type(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu: ScalarType = _scalar_type(ml_dtypes.float8_e8m0fnu)
bfloat16: ScalarType = _scalar_type(ml_dtypes.bfloat16)
float16: ScalarType = _scalar_type(np.float16)
float32: ScalarType = _scalar_type(np.float32)
float64: ScalarType = _scalar_type(np.float64)
complex64: ScalarType = _scalar_type(np.complex64)
complex128: ScalarType = _scalar_type(np.complex128)
float6_e2m3fn: ScalarType = _scalar_type(ml_dtypes.float6_e2m3fn)
float6_e3m2fn: ScalarType = _scalar_type(ml_dtypes.float6_e3m2fn)
"""Dtypes only: XLA has no such types, so that no array can be made of them."""
single: ScalarType = float32
double: ScalarType = float64
csingle: ScalarType = complex64
cdouble: ScalarType = complex128
int_: ScalarType = int64
uint: ScalarType = uint64
float_: ScalarType = float64
complex_: ScalarType = complex128
"""64-bit, and so narrowed with a warning unless x64 is on; Python's int, float and complex mean the default types."""
dtype, generic, number = np.dtype, np.generic, np.number
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
inexact, floating, complexfloating = np.inexact, np.floating, np.complexfloating
flexible, character, object_ = np.flexible, np.character, np.object_
ComplexWarning = np.exceptions.ComplexWarning

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf, nan = np.inf, np.nan
newaxis = None
