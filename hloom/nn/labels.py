"""Functions of class labels. Names and semantics follow jax.nn."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..hlo.sizes import as_size
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.indices import holding
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.ops import convert
from ..tracer.tracer import Tracer


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Value:
    """1 at index x along a new axis of `num_classes`, else 0; all 0 for an x out of range.

    `axis` may be the name of a mapped axis of this size: each of its elements gets its own entry. x may be a list.

    >>> nn.one_hot(jnp.array([0, 2, 5]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    if isinstance(num_classes, Tracer):
        raise num_classes.unknown(
            "a Python integer was asked for in jax.nn.one_hot argument `num_classes`, which decides a shape",
            "Make it a static argument: hloom.jit(..., static_argnames=...).",
        )
    value = jnp.asarray(x)
    if not jnp.issubdtype(value.dtype, np.integer):
        warnings.warn(
            f"jax.nn.one_hot input should be integer-typed; got dtype={value.dtype}", DeprecationWarning, stacklevel=2
        )
    return _one_hot(value, as_size(num_classes), dtype=dtype, axis=axis)


@compound(static=("num_classes", "dtype", "axis"))
def _one_hot(value: Any, num_classes: int, *, dtype: Any, axis: Any) -> Value:
    found = dtypes.requested_dtype(dtypes.default_float() if dtype is None else dtype, "one_hot")
    if not isinstance(axis, int | np.integer):
        return _own_class(value, num_classes, axis, found)
    place = canonical_axis(int(axis), value.ndim + 1)
    shape = list(value.shape)
    shape.insert(place, num_classes)
    if value.dtype == np.bool_:
        value = convert(value, np.dtype(np.int32), False)
    elif dtypes.is_integer(value.dtype):
        value = holding(value, num_classes)
    index_dtype = value.dtype
    classes = lax.broadcasted_iota(index_dtype, shape, place)
    others = [d for d in range(len(shape)) if d != place]
    wanted = lax.broadcast_in_dim(convert(value, index_dtype, False), shape, others)
    return lax.convert_element_type(wanted == classes, found)


def _own_class(x: Value, num_classes: int, axis: Any, dtype: np.dtype[Any]) -> Value:
    """Of a mapped axis: whether x is the index of this element."""
    size = lax.axis_size(axis)
    if num_classes != size:
        raise ValueError(f"one_hot: num_classes must be the size of axis {axis!r}, but {num_classes} != {size}")
    return lax.convert_element_type(jnp.equal(x, lax.axis_index(axis)), dtype)
