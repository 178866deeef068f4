"""Questions about arrays that are answered while tracing: sizes and kinds, never values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .promotion import canonical_axes

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


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or of those along one axis or several axes. ValueError for an axis that is none."""
    sizes = shape(a)
    return math.prod([sizes[d] for d in canonical_axes(axis, len(sizes))])


def isscalar(element: Any) -> bool:
    """True for numbers and arrays without dimensions."""
    return bool(np.isscalar(element)) or (hasattr(element, "ndim") and element.ndim == 0)


def iscomplexobj(x: Any) -> bool:
    """True if the dtype of an array, a number or a sequence is complex."""
    if x is None:
        return False
    try:
        dtype = x.dtype
    except AttributeError:
        dtype = np.asarray(x).dtype
    return bool(dtype.kind == "c")


def isrealobj(x: Any) -> bool:
    """True if the dtype is not complex."""
    return not iscomplexobj(x)
