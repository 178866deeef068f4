"""jax._src.numpy.reductions."""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any

import numpy as _np

from ..util import canonicalize_axis as _canonicalize_axis

__all__ = ["Axis", "_reduction_dims"]

Axis = int | _Sequence[int] | None


def _reduction_dims(a: _Any, axis: Axis) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions of a reduction, from 0 on, twice; ValueError for one that is not there, or named twice."""
    rank = _np.ndim(a)
    axes = tuple(range(rank)) if axis is None else tuple(axis) if isinstance(axis, _Sequence | _np.ndarray) else (axis,)
    found = tuple(_canonicalize_axis(each, rank) for each in axes)
    if len(found) != len(set(found)):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return found, found
