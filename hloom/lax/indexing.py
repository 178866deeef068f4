"""Slices at computed indices: the start indices are values. They are clamped so that the slice fits.

Source for names and argument meaning: jax.lax.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..tracer import dtypes
from ..tracer.array import array_from_scalar, as_value
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.operators import ArrayBase
from ..tracer.ops import convert, read_block, write_block
from ..tracer.source import user_line
from .elementwise import add, lt, select
from .movement import canonical_axis, canonical_shape, expand_dims, slice_in_dim, squeeze

__all__ = [
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
]


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Value:
    """The block of `slice_sizes` that begins at `start_indices` (one integer scalar a dimension, or a vector)."""
    x = as_value(operand)
    return read_block(x, _start_indices(x, start_indices), canonical_shape(slice_sizes))


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Value:
    """The operand with the block at `start_indices` replaced by `update`, of the same dtype and rank."""
    x, block = as_value(operand), as_value(update)
    if not x.aval.shape and not block.aval.shape:
        start_indices = ()
    return write_block(x, block, _start_indices(x, start_indices))


def _along(x: Value, start: Any, axis: int) -> list[Any]:
    """Start indices that are 0 except along `axis`."""
    zero = np.zeros((), as_value(start).aval.dtype)[()]
    return [start if d == axis else zero for d in range(x.aval.ndim)]


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Value:
    """`slice_size` elements from `start_index` along one axis."""
    x = as_value(operand)
    axis = canonical_axis(axis, x.aval.ndim)
    sizes = list(x.aval.shape)
    sizes[axis] = operator.index(slice_size)
    return dynamic_slice(x, _along(x, start_index, axis), sizes)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Value:
    """The element at `index` along one axis."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else squeeze(found, [axis])


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Value:
    """The operand with the elements from `start_index` along one axis replaced by `update`."""
    x = as_value(operand)
    axis = canonical_axis(axis, x.aval.ndim)
    return dynamic_update_slice(x, update, _along(x, start_index, axis))


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Value:
    """The operand with the element at `index` along one axis replaced by `update` (with or without that axis)."""
    x, block = as_value(operand), as_value(update)
    axis = canonical_axis(axis, x.aval.ndim)
    if block.aval.ndim < x.aval.ndim:
        block = expand_dims(block, [axis])
    return dynamic_update_slice_in_dim(x, block, index, axis)


def _start_indices(x: Value, starts: Any) -> list[Value]:
    """Start indices as scalars of one integer dtype; negative ones count from the end."""
    if isinstance(starts, ArrayBase | np.ndarray):
        vector = as_value(starts)
        if vector.aval.ndim != 1:
            raise OperandError(
                f"start indices must be scalars or one vector, not {vector.aval.str_short()}\n  at {user_line()}",
                "dynamic-slice_c3",
            )
        starts = [squeeze(slice_in_dim(vector, k, k + 1), [0]) for k in range(vector.aval.shape[0])]
    if len(starts) != x.aval.ndim:
        raise OperandError(
            f"dynamic slice of {x.aval.str_short()}: {len(starts)} start indices for {x.aval.ndim} dimensions\n"
            f"  at {user_line()}",
            "dynamic-slice_c2",
        )
    if not starts:
        return []
    dtype = dtypes.result_type(*starts)
    if not dtypes.is_integer(dtype):
        raise OperandError(f"start indices must be integers, not {dtype.name}\n  at {user_line()}", "dynamic-slice_c3")
    return [start_index(start, size, dtype) for start, size in zip(starts, x.aval.shape, strict=True)]


def start_index(start: Any, size: int, dtype: np.dtype[Any]) -> Value:
    """An index into a dimension as a scalar of `dtype`, counted from the end where it is negative."""
    if isinstance(start, int | np.integer):
        number = int(start) + size if start < 0 else int(start)
        return array_from_scalar(builtins.max(0, builtins.min(number, size)), dtype)
    index = convert(as_value(start), dtype, False)
    if dtype.kind == "u":
        return index
    zero, end = (array_from_scalar(n, dtype) for n in (0, size))
    return select(lt(index, zero), add(index, end), index)
