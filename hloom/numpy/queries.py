"""Questions about arrays that are answered while tracing: sizes and kinds, never values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer import dtypes

__all__ = [
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "ndim",
    "shape",
    "size",
]


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of all dimensions."""
    return a.shape if hasattr(a, "shape") else np.shape(a)


def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the size along an axis."""
    sizes = shape(a)
    return int(np.prod(sizes, dtype=np.int64)) if axis is None else sizes[axis]


def isscalar(element: Any) -> bool:
    """True for numbers and arrays without dimensions."""
    return bool(np.isscalar(element)) or (hasattr(element, "ndim") and element.ndim == 0)


def iscomplexobj(x: Any) -> bool:
    """True if the dtype is complex."""
    return dtypes.is_complex(dtypes.type_of(x)[0])


def isrealobj(x: Any) -> bool:
    """True if the dtype is not complex."""
    return not iscomplexobj(x)
