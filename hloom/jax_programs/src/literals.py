"""jax._src.literals."""

from typing import Any as _Any

import numpy as _np

__all__ = ["TypedNdArray"]


class TypedNdArray(_np.ndarray[_Any, _np.dtype[_Any]]):
    """A NumPy array that JAX gives its own types to while it traces. Arrays that are traced here are no such ones."""
