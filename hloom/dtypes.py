"""`hloom.dtypes`: dtypes and questions about them, with the names of jax.dtypes."""

from typing import Any as _Any

import numpy as _np
from numpy.typing import DTypeLike as _DTypeLike

from .autodiff.tangents import float0
from .namespaces import publish as _publish
from .tracer.arrays.extended import extended, prng_key
from .tracer.dtypes import bfloat16 as _bfloat16
from .tracer.dtypes import canonical_dtype as _canonical_dtype
from .tracer.dtypes import finfo, iinfo, issubdtype, result_type
from .tracer.errors import TypePromotionError

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

bfloat16 = _bfloat16.type
"""The scalar type of bfloat16 numbers."""


def canonicalize_dtype(dtype: _DTypeLike, allow_extended_dtype: bool = False) -> _np.dtype[_Any]:
    """The dtype that an array of this dtype gets: 64-bit ones are narrowed unless x64 is on.

    ValueError for an extended dtype, such as a key type, unless `allow_extended_dtype`.

    >>> hloom.dtypes.canonicalize_dtype("float64"), hloom.dtypes.canonicalize_dtype(int)
    (dtype('float32'), dtype('int32'))
    """
    if isinstance(dtype, _np.dtype) and dtype == float0:
        return float0
    found = _canonical_dtype(dtype)
    if issubdtype(found, extended) and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype was given the extended dtype {found} without allow_extended_dtype=True")
    return found


def itemsize_bits(dtype: _DTypeLike) -> int:
    """The number of bits of an element: 4 for int4, 8 for booleans.

    ValueError for anything but a dtype of numbers.

        >>> hloom.dtypes.itemsize_bits("int4"), hloom.dtypes.itemsize_bits("complex64")
        (4, 64)
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    if issubdtype(dtype, _np.bool_):
        return 8
    if not issubdtype(dtype, _np.number):
        raise ValueError(f"itemsize_bits: {dtype!r} is no dtype of numbers")
    bits = 8 * int(_np.dtype(dtype).itemsize)
    return bits if bits > 8 else int((iinfo if issubdtype(dtype, _np.integer) else finfo)(dtype).bits)


def scalar_type_of(x: _Any) -> type:
    """The Python type of the numbers of an array: bool, int, float or complex.

        >>> hloom.dtypes.scalar_type_of(hloom.numpy.zeros(3, "bfloat16"))
        <class 'float'>
    """
    dtype = x if isinstance(x, _np.dtype) else _type_of(x)
    for kind, scalar in _SCALARS.items():
        if issubdtype(dtype, kind):
            return scalar
    raise TypeError(f"Invalid scalar value {x}")


def _type_of(x: _Any) -> _Any:
    """The dtype of a value, or the dtype that a type or a name stands for."""
    if isinstance(x, type | str):
        return _np.dtype(x)
    found = getattr(x, "dtype", None)
    return _np.asarray(x).dtype if found is None else found


_SCALARS = {_np.bool_: bool, _np.integer: int, _np.floating: float, _np.complexfloating: complex}

_publish(__name__)
