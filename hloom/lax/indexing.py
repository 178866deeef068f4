"""Slices at computed indices: the start indices are values. They are clamped so that the slice fits.

Names and the meaning of arguments follow jax.lax.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from ..hlo.sizes import as_size, larger, largest, smaller
from ..tracer import dtypes
from ..tracer.arrays.array import array_from_scalar, as_value
from ..tracer.arrays.indices import as_index, index_dtype_of
from ..tracer.arrays.operators import ArrayBase
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import read_block, write_block
from .instructions import add, lt, select
from .movement import canonical_axis, canonical_shape, expand_dims, slice_in_dim, squeeze


class GatherScatterMode(Enum):
    """The treatment of indices out of bounds in `x.at[...]`: see `hloom.numpy.indexing.IndexUpdate`.

    >>> x = jnp.array([1.0, 2.0])
    >>> x.at[5].get(mode=lax.GatherScatterMode.CLIP), x.at[5].get(mode="fill")
    (Array(2., dtype=float32), Array(nan, dtype=float32))
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    @staticmethod
    def from_any(s: GatherScatterMode | str | None) -> GatherScatterMode:
        """A mode by its name; "drop" is "fill", and so is None. ValueError for other names."""
        if isinstance(s, GatherScatterMode):
            return s
        if s is None or s == "drop":
            return GatherScatterMode.FILL_OR_DROP
        try:
            return GatherScatterMode(s)
        except ValueError:
            known = ", ".join(repr(name) for name in ("clip", "fill", "drop", "promise_in_bounds"))
            raise ValueError(f"Unknown gather mode {s!r}: it is one of {known}") from None


Negative: TypeAlias = "bool | Sequence[bool]"
"""Whether negative start indices count from the end (in each dimension); otherwise they are clamped to 0."""


def dynamic_slice(
    operand: Any, start_indices: Any, slice_sizes: Sequence[int], *, allow_negative_indices: Negative = True
) -> Value:
    """The block of `slice_sizes` that begins at `start_indices` (one integer scalar a dimension, or a vector).

    Start indices have one integer dtype; Python integers have the default one. OperandError otherwise.

    >>> lax.dynamic_slice(jnp.arange(12).reshape(3, 4), (1, 2), (2, 2))
    Array([[ 6,  7],
           [10, 11]], dtype=int32)
    """
    x = as_value(operand)
    starts = _start_indices("dynamic_slice", x, start_indices, allow_negative_indices)
    return read_block(x, starts, canonical_shape(slice_sizes))


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: Negative = True
) -> Value:
    """The operand with the block at `start_indices` replaced by `update`, of the same dtype and rank.

    >>> lax.dynamic_update_slice(jnp.zeros(5), jnp.array([1.0, 2.0]), (3,))
    Array([0., 0., 0., 1., 2.], dtype=float32)
    """
    x, block = as_value(operand), as_value(update)
    if not x.aval.shape and not block.aval.shape:
        start_indices = ()
    return write_block(x, block, _start_indices("dynamic_update_slice", x, start_indices, allow_negative_indices))


def _along(x: Value, start: Any, axis: int) -> list[Any]:
    """Start indices that are 0 except along `axis`."""
    zero = np.zeros((), as_value(start).aval.dtype)[()]
    return [start if d == axis else zero for d in range(x.aval.ndim)]


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Value:
    """`slice_size` elements from `start_index` along one axis.

    >>> hloom.jit(lambda x, k: lax.dynamic_slice_in_dim(x, k, 2))(jnp.arange(5), 3)
    Array([3, 4], dtype=int32)
    """
    x = as_value(operand)
    axis = canonical_axis(axis, x.aval.ndim)
    sizes = list(x.aval.shape)
    sizes[axis] = as_size(slice_size)
    starts = _along(x, start_index, axis)
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Value:
    """The element at `index` along one axis.

    >>> lax.dynamic_index_in_dim(jnp.array([[1, 2], [3, 4]]), 1, axis=1, keepdims=False)
    Array([2, 4], dtype=int32)
    """
    found = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return found if keepdims else squeeze(found, [axis])


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Value:
    """The operand with the elements from `start_index` along one axis replaced by `update`.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros((2, 3)), jnp.ones((2, 1)), 1, axis=1)
    Array([[0., 1., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    x = as_value(operand)
    axis = canonical_axis(axis, x.aval.ndim)
    starts = _along(x, start_index, axis)
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Value:
    """The operand with the element at `index` along one axis replaced by `update` (with or without that axis).

    >>> lax.dynamic_update_index_in_dim(jnp.zeros((2, 3)), jnp.ones(2), 1, axis=1)
    Array([[0., 1., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    x, block = as_value(operand), as_value(update)
    axis = canonical_axis(axis, x.aval.ndim)
    if block.aval.ndim < x.aval.ndim:
        block = expand_dims(block, [axis])
    return dynamic_update_slice_in_dim(x, block, index, axis, allow_negative_indices=allow_negative_indices)


def _start_indices(name: str, x: Value, starts: Any, negative: Negative) -> list[Value]:
    """Start indices as scalars of one integer dtype."""
    if isinstance(starts, ArrayBase | np.ndarray):
        vector = as_value(starts)
        if vector.aval.ndim != 1:
            raise OperandError(
                f"start indices must be scalars or one vector, not {vector.aval.str_short()}", "dynamic-slice_c3"
            )
        starts = [squeeze(slice_in_dim(vector, k, k + 1), [0]) for k in range(vector.aval.shape[0])]
    if len(starts) != x.aval.ndim:
        raise OperandError(
            f"dynamic slice of {x.aval.str_short()}: {len(starts)} start indices for {x.aval.ndim} dimensions; give "
            "one for each",
            "dynamic-slice_c2",
        )
    if not starts:
        return []
    numbers = bool | int | float | complex | np.generic
    found = [dtypes.type_of(s if isinstance(s, numbers) else as_value(s))[0] for s in starts]
    dtype = found[0]
    if not dtypes.is_integer(dtype) or any(d is not dtype for d in found):
        names, own = ", ".join(d.name for d in found), dtypes.default_int().name
        raise OperandError(
            f"index arguments to {name} must be integers of the same type, got {names}\n  Python integers are {own}. "
            f"Convert the others, as in hloom.numpy.{own}(i).",
            "dynamic-slice_c3",
        )
    from_end = [negative] * len(starts) if isinstance(negative, bool) else list(negative)
    if len(from_end) != len(starts):
        raise OperandError(
            f"allow_negative_indices has {len(from_end)} entries for {len(starts)} dimensions", "dynamic-slice_c2"
        )
    dtype = index_dtype_of(dtype, largest(x.aval.shape))
    return [start_index(i, size, dtype, n) for i, size, n in zip(starts, x.aval.shape, from_end, strict=True)]


def start_index(start: Any, size: int, dtype: np.dtype[Any], from_end: bool = True) -> Value:
    """Indices into a dimension in `dtype`, a signed type that holds `size`; where they are negative and `from_end`,
    they are counted from the end. Numbers beyond the type are its largest, which is out of bounds, too."""
    if isinstance(start, int | np.integer):
        number = int(start) + size if start < 0 and from_end else int(start)
        return array_from_scalar(larger(0, smaller(number, size)), dtype)
    given = as_value(start)
    index = as_index(given, dtype)
    if dtypes.is_unsigned(given.aval.dtype) or not from_end:
        return index
    zero, end = (array_from_scalar(n, dtype) for n in (0, size))
    return select(lt(index, zero), add(index, end), index)
