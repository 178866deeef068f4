"""`hloom.dtypes`: dtypes and questions about them, with the names of jax.dtypes."""

from typing import Any as _Any

import numpy as _np
from numpy.typing import DTypeLike as _DTypeLike

from .autodiff.tangents import float0
from .namespaces import publish as _publish
from .tracer.dtypes import bfloat16 as _bfloat16
from .tracer.dtypes import canonical_dtype as _canonical_dtype
from .tracer.dtypes import finfo, iinfo, issubdtype, result_type
from .tracer.errors import TypePromotionError
from .tracer.extended import extended, prng_key

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "prng_key",
    "result_type",
]

bfloat16 = _bfloat16.type
"""The scalar type of bfloat16 numbers."""


def canonicalize_dtype(dtype: _DTypeLike, allow_extended_dtype: bool = False) -> _np.dtype[_Any]:
    """The dtype that an array of this dtype gets: 64-bit ones are narrowed unless x64 is on.

    ValueError for an extended dtype, such as that of keys, unless `allow_extended_dtype`.
    """
    found = _canonical_dtype(dtype)
    if issubdtype(found, extended) and not allow_extended_dtype:
        raise ValueError(f"canonicalize_dtype was given the extended dtype {found} without allow_extended_dtype=True")
    return found

_publish(__name__)
