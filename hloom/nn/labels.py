"""Functions of class labels. Source for names and meaning: jax.nn."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import lax
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert

__all__ = ["one_hot"]


@compound(static=("num_classes", "dtype", "axis"))
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Value:
    """1 at index x along a new axis of `num_classes`, else 0; all 0 for an x out of range."""
    value = as_value(x)
    found = dtypes.requested_dtype(dtypes.default_float() if dtype is None else dtype, "one_hot")
    place = canonical_axis(axis, value.ndim + 1)
    shape = list(value.shape)
    shape.insert(place, num_classes)
    index_dtype = value.dtype if value.dtype != np.bool_ else np.dtype(np.int32)
    classes = lax.broadcasted_iota(index_dtype, shape, place)
    others = [d for d in range(len(shape)) if d != place]
    wanted = lax.broadcast_in_dim(convert(value, index_dtype, False), shape, others)
    return lax.convert_element_type(wanted == classes, found)
