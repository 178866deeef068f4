"""Sums, products and extrema over segments of an array; `hloom.ops` offers them. Names follow jax.ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..autodiff.placed_results import computed_in
from ..hlo.errors import UnsupportedError
from ..hlo.sizes import as_size
from ..lax.gather import ScatterDimensionNumbers
from ..lax.indexing import GatherScatterMode
from ..numpy.promotion import check_arraylike
from ..tracer import dtypes
from ..tracer.arrays.array import Array, as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError


def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Value:  # fmt: skip
    """The sum of the rows of `data` in each segment: [num_segments, ...].

    >>> hloom.ops.segment_sum(hloom.numpy.arange(5), hloom.numpy.array([0, 0, 1, 1, 2]))
    Array([1, 5, 4], dtype=int32)

    Args:
      segment_ids: the segment of each row, an integer; rows of negative or too large ones are left out.
      num_segments: how many; by default one more than the largest id, which must then be concrete.
      indices_are_sorted, unique_indices: promises about `segment_ids`, which are not needed here.
      bucket_size: of so many rows each a result is computed; the results are then combined, which keeps rounding
        errors of long sums small.
      mode: what to do with ids out of range, as in `lax.scatter`; by default they are left out.
      out_sharding: where the result is. Along unreduced axes, which must divide the rows, each device sums its own
        rows.
    """
    return _segments("segment_sum", data, segment_ids, num_segments, bucket_size, mode, out_sharding)


def segment_prod(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Value:  # fmt: skip
    """The product of the rows of `data` in each segment, 1 for a segment without rows. Arguments: see `segment_sum`.

    >>> hloom.ops.segment_prod(jnp.array([5, 2, 7]), jnp.array([0, 0, 1]), num_segments=3)
    Array([10,  7,  1], dtype=int32)
    """
    return _segments("segment_prod", data, segment_ids, num_segments, bucket_size, mode, out_sharding)


def segment_max(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Value:  # fmt: skip
    """The largest rows of `data` in each segment, the smallest number for one without: -inf, or the least integer.

    Arguments: see `segment_sum`.

    >>> hloom.ops.segment_max(jnp.array([5, 1, 7]), jnp.array([0, 0, 1]), num_segments=2)
    Array([5, 7], dtype=int32)
    """
    return _segments("segment_max", data, segment_ids, num_segments, bucket_size, mode, out_sharding)


def segment_min(
    data: Any, segment_ids: Any, num_segments: int | None = None, indices_are_sorted: bool = False,
    unique_indices: bool = False, bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Value:  # fmt: skip
    """The smallest rows of `data` in each segment, the largest number for one without: inf, or the largest integer.

    Arguments: see `segment_sum`.

    >>> hloom.ops.segment_min(jnp.array([5, 1, 7]), jnp.array([0, 0, 1]), num_segments=2)
    Array([1, 7], dtype=int32)
    """
    return _segments("segment_min", data, segment_ids, num_segments, bucket_size, mode, out_sharding)


_SCATTER: dict[str, Callable[..., Value]] = {
    "segment_sum": lax.scatter_add,
    "segment_prod": lax.scatter_mul,
    "segment_max": lax.scatter_max,
    "segment_min": lax.scatter_min,
}
_COMBINE: dict[str, Callable[..., Value]] = {
    "segment_sum": jnp.sum,
    "segment_prod": jnp.prod,
    "segment_max": jnp.max,
    "segment_min": jnp.min,
}


def _segments(
    name: str, data: Any, ids: Any, count: Any, bucket_size: int | None, mode: Any, out_sharding: Any
) -> Value:
    check_arraylike(name, data, ids)
    if count is None:
        count = _largest(name, ids) + 1
    count = as_size(count)
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, not {count}")
    if getattr(getattr(out_sharding, "spec", out_sharding), "unreduced", None) and name != "segment_sum":
        raise UnsupportedError(f"{name} with unreduced axes in out_sharding: devices have terms of sums only")

    def compute(values: Any, segments: Any) -> Value:
        return _computed(values, segments, name, count, bucket_size, mode)

    return computed_in(out_sharding, name, compute, data, ids, is_scattered=True)


def _largest(name: str, ids: Any) -> int:
    value = as_value(ids)
    if not isinstance(value, Array):
        raise OperandError(
            f"{name}: num_segments must be given where segment_ids are traced: the result's size cannot depend on "
            "values",
            name,
        )
    return int(np.max(np.asarray(value)))


@compound(static=("name", "count", "bucket_size", "mode"))
def _computed(data: Any, ids: Any, name: str, count: int, bucket_size: int | None, mode: Any) -> Value:
    values, segments = as_value(data), as_value(ids)
    rank = segments.aval.ndim
    if not values.aval.shape:  # one number for all rows
        values = lax.broadcast_in_dim(values, segments.aval.shape, ())
    if not dtypes.is_integer(segments.aval.dtype) or values.aval.shape[:rank] != segments.aval.shape:
        raise OperandError(
            f"{name}: segment_ids must be integers, one for each row of data, not {segments.aval.str_short()} for "
            f"{values.aval.str_short()}",
            name,
        )
    mode = GatherScatterMode.FILL_OR_DROP if mode is None else mode
    rest, indices = values.aval.shape[rank:], lax.expand_dims(segments, [rank])
    window = tuple(range(rank, values.aval.ndim))
    start = _identity(name, values.aval.dtype)
    if bucket_size is None:
        numbers = ScatterDimensionNumbers(window, (0,), (0,))
        return _SCATTER[name](lax.full((count, *rest), start, values.aval.dtype), indices, values, numbers, mode=mode)
    if rank != 1:
        raise OperandError(f"{name}: with bucket_size segment_ids must be a vector", name)
    size = segments.aval.shape[0]
    buckets = lax.div(lax.iota(segments.aval.dtype, size), lax.full_like(segments, bucket_size))
    both = lax.concatenate([lax.expand_dims(buckets, [1]), indices], 1)
    initial = lax.full((-(-size // bucket_size), count, *rest), start, values.aval.dtype)
    numbers = ScatterDimensionNumbers(window, (0, 1), (0, 1))
    partial = _SCATTER[name](initial, both, values, numbers, mode=mode)
    return lax.convert_element_type(_COMBINE[name](partial, axis=0), values.aval.dtype)


def _identity(name: str, dtype: np.dtype[Any]) -> Any:
    """The result for a segment without rows."""
    if name in ("segment_sum", "segment_prod"):
        return int(name == "segment_prod")
    is_max = name == "segment_max"
    if dtype == np.bool_:
        return not is_max
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        return int(info.min if is_max else info.max)
    return -np.inf if is_max else np.inf
