"""The indices of gathers and scatters: where their windows begin, clamped so that these fit, or tested whether they do.

A gather clamps its indices, a scatter drops the windows that do not fit. Derivatives and `hloom.lax` need both of both.

An index counts by its value, not by its type: `holding` and `as_index` give it a type in which it can be compared and
counted with sizes of dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...hlo.element_type import element_type_of
from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ...hlo.ops.movement import IotaAttributes
from ...hlo.sizes import is_symbolic, smaller
from ..aval import ShapedArray
from ..core import Value, bind
from ..dtypes import default_int
from ..ops import (
    array_shape,
    broadcast,
    clamp,
    compare,
    concatenate,
    convert,
    full_like,
    reduce_with,
    reshape,
    scalar,
    select,
    slice_,
    zeros,
)

_O = Opcode


def iota(dtype: np.dtype[Any], sizes: Sequence[int], d: int) -> Value:
    """Each element is its index along dimension `d`."""
    return bind(_O.IOTA, (), IotaAttributes(d), shape=array_shape(dtype, sizes))


def index_dtype(largest: int) -> np.dtype[Any]:
    """The integer type of indices up to `largest`."""
    if is_symbolic(largest):
        return default_int()
    return _S32 if largest < 1 << 31 else _S64


_S32, _S64 = np.dtype(np.int32), np.dtype(np.int64)


def holding(index: Value, size: int) -> Value:
    """The index, of any integer type, in one that holds all its values and `size`: itself, or a signed one."""
    if is_symbolic(size):
        return convert(index, default_int(), False)
    if element_type_of(index.aval.dtype).limits[1] >= size:
        return index
    return convert(index, index_dtype(size), False)


def index_dtype_of(given: np.dtype[Any], size: int) -> np.dtype[Any]:
    """The signed type for indices of type `given` into a dimension of `size`: see `as_index`."""
    return np.dtype(np.int64) if given.itemsize == 8 else index_dtype(size)


def as_index(index: Value, dtype: np.dtype[Any]) -> Value:
    """The index in a signed type. A number beyond that type is its largest or smallest: no dimension has a place there
    either, as it is of a type from `index_dtype`."""
    own, wanted = (element_type_of(d).limits for d in (index.aval.dtype, dtype))
    if own[0] < wanted[0]:
        index = clamp(scalar(wanted[0], index.aval.dtype), index, scalar(wanted[1], index.aval.dtype))
    elif own[1] > wanted[1]:
        index = bind(_O.MINIMUM, (index, full_like(index, wanted[1])))
    return convert(index, dtype, False)


def take_along(x: Value, indices: Value, d: int) -> Value:
    """For each index the element of `x` at that place of dimension `d`; the other dimensions are the same in both."""
    rank = len(x.aval.shape)
    if 0 in indices.aval.shape:  # a gather's window of size 1 does not fit into an empty array
        return zeros(ShapedArray(indices.aval.shape, x.aval.dtype))
    others = tuple(k for k in range(rank) if k != d)
    return bind(_O.GATHER, (x, indices), GatherAttributes((), (d,), (d,), rank, (1,) * rank, others, others))


def take_elements(x: Value, places: Value) -> Value:
    """The elements of a vector at `places`, of the dimensions of `places`."""
    return bind(_O.GATHER, (x, places), GatherAttributes((), (0,), (0,), len(places.aval.shape), (1,)))


def scatter_of(g: GatherAttributes, combiner: HloComputation) -> ScatterAttributes:
    """The scatter that puts windows where the gather takes them from."""
    return ScatterAttributes(
        g.offset_dims, g.collapsed_slice_dims, g.start_index_map, g.index_vector_dim, combiner,
        g.operand_batching_dims, g.start_indices_batching_dims, g.indices_are_sorted,
    )  # fmt: skip


def gather_of(s: ScatterAttributes, array: Sequence[int], updates: Sequence[int]) -> GatherAttributes:
    """The gather that takes windows from where the scatter puts them. `array`, `updates`: dimensions."""
    window = iter(s.update_window_dims)
    left_out = (*s.inserted_window_dims, *s.input_batching_dims)
    sizes = tuple(smaller(1, size) if d in left_out else updates[next(window)] for d, size in enumerate(array))
    return GatherAttributes(
        s.update_window_dims, s.inserted_window_dims, s.scatter_dims_to_operand_dims, s.index_vector_dim, sizes,
        s.input_batching_dims, s.scatter_indices_batching_dims, s.indices_are_sorted,
    )  # fmt: skip


def _last_starts(sizes: Sequence[int], attributes: GatherAttributes, dtype: np.dtype[Any]) -> list[int]:
    """For each component of an index the last start at which the window fits, or the largest that `dtype` holds."""
    limit = int(element_type_of(dtype).limits[1])
    found = [sizes[d] - attributes.slice_sizes[d] for d in attributes.start_index_map]
    return [n if is_symbolic(n) else min(n, limit) for n in found]


def _components(indices: Value, values: Sequence[int], d: int) -> Value:
    """`values` along the index vector's dimension d, for all indices; a scalar where all are equal."""
    dtype = indices.aval.dtype
    if len(set(values)) == 1:
        return scalar(values[0], dtype)
    each = concatenate([broadcast(scalar(v, dtype), (1,), ()) for v in values], 0)
    return broadcast(each, indices.aval.shape, (d,))


def clamped(indices: Value, sizes: Sequence[int], attributes: GatherAttributes) -> Value:
    """The indices as the gather uses them: every window fits into the array, of dimensions `sizes`."""
    last = _last_starts(sizes, attributes, indices.aval.dtype)
    if not last:
        return indices
    highest = _components(indices, last, attributes.index_vector_dim)
    lowest = scalar(0, indices.aval.dtype)
    return clamp(lowest if not highest.aval.shape else broadcast(lowest, indices.aval.shape, ()), indices, highest)


def fits(indices: Value, sizes: Sequence[int], attributes: GatherAttributes) -> Value | None:
    """For each index whether its window fits into the array, of dimensions `sizes`. None: all do, for all values."""
    last = _last_starts(sizes, attributes, indices.aval.dtype)
    if not last:
        return None
    d = attributes.index_vector_dim
    highest = _components(indices, last, d)
    if not highest.aval.shape:
        highest = broadcast(highest, indices.aval.shape, ())
    inside = bind(_O.AND, (compare(indices, "GE", zeros(indices.aval)), compare(indices, "LE", highest)))
    if d < len(indices.aval.shape):
        inside = reduce_with(_O.AND, inside, scalar(True, np.dtype(np.bool_)), [d])
    return inside


def where_fits(
    found: Value, indices: Value, sizes: Sequence[int], attributes: GatherAttributes, fill: Callable[[Value], Value]
) -> Value:
    """The result of a gather from an array of dimensions `sizes`; windows that do not fit are taken from
    `fill(found)`."""
    inside = fits(indices, sizes, attributes)
    if inside is None:
        return found
    shape = found.aval.shape
    batch = [d for d in range(len(shape)) if d not in attributes.offset_dims]
    return select(broadcast(inside, shape, batch), found, fill(found))


def starts(indices: Value, attributes: ScatterAttributes, rank: int) -> Value:
    """The start of each index's window in all dimensions of the array: one row for each index."""
    d = attributes.index_vector_dim
    if d == len(indices.aval.shape):
        indices = reshape(indices, (*indices.aval.shape, 1))
    batch = tuple(size for k, size in enumerate(indices.aval.shape) if k != d)
    column = ShapedArray((math.prod(batch), 1), np.dtype(np.int64))
    found = [zeros(column)] * rank
    for k, dimension in enumerate(attributes.scatter_dims_to_operand_dims):
        limits = [k + 1 if e == d else size for e, size in enumerate(indices.aval.shape)]
        component = slice_(indices, [k if e == d else 0 for e in range(len(limits))], limits)
        found[dimension] = reshape(convert(component, column.dtype), column.shape)
    for dimension, e in zip(attributes.input_batching_dims, attributes.scatter_indices_batching_dims, strict=True):
        found[dimension] = reshape(iota(column.dtype, batch, e - (e > d)), column.shape)
    return concatenate(found, 1) if found else zeros(ShapedArray((math.prod(batch), 0), column.dtype))
