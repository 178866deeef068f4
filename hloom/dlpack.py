"""`hloom.dlpack`: arrays from other libraries without a copy, with the names of jax.dlpack."""

from typing import Any as _Any

import numpy as _np

from .namespaces import publish as _publish
from .numpy.array_creation import from_dlpack as _from_dlpack
from .tracer.arrays.dlpack import BFLOAT16 as _BFLOAT16

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: _Any, device: _Any = None, copy: bool | None = None) -> _Any:
    """The array of another library (NumPy, PyTorch, ...), by DLPack: the same memory, unless `copy`.

    >>> import hloom, numpy as np
    >>> hloom.dlpack.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: _Any) -> bool:
    """Whether arrays of a dtype can be given to other libraries: NumPy's numbers and booleans can, and bfloat16.

    >>> hloom.dlpack.is_supported_dtype(jnp.float32), hloom.dlpack.is_supported_dtype(jnp.float8_e5m2)
    (True, False)
    """
    if dtype is None:
        raise TypeError("is_supported_dtype: a dtype is needed, not None")
    found = _np.dtype(dtype)
    return found == _BFLOAT16 or (found.kind in "biufc" and found.isbuiltin == 1)


_publish(__name__)
