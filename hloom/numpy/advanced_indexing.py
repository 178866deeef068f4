"""The part of indexing that slices cannot express: x[i, j] with arrays of integers and masks, by gather and scatter.

An index is split in two. Its slices and None are applied first and give a block; then the arrays choose in the block.
NumPy's rules hold: all arrays and integers are broadcast together, and their dimensions are in the result where the
first of them stands, or in front if slices, None or Ellipsis are between them. A mask means the arrays of its nonzero
places, so its values must be known; a boolean scalar is a mask of no dimensions, which has one place or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..hlo.sizes import is_symbolic, largest
from ..hlo.support.records import dataclass
from ..lax.gather import out_of_bounds
from ..lax.indexing import GatherScatterMode, start_index
from ..tracer.arrays.array import Array, as_value, shape_of
from ..tracer.arrays.dslice import Slice
from ..tracer.arrays.indices import index_dtype
from ..tracer.arrays.operators import ArrayBase
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.settings.context import current_context
from ..tracer.tracer import Tracer
from .promotion import broadcast_to_shape


def check_static_index(item: Any, start: int, axis: int, size: int) -> None:
    """IndexError, with the setting jax_check_static_indices: a known integer is out of bounds."""
    if not 0 <= start < size:
        raise IndexError(f"index {item} out of bounds for axis {axis} with size {size}")


def is_array_index(item: Any) -> bool:
    """True for an entry of an index that has dimensions itself."""
    return isinstance(item, ArrayBase | np.ndarray) and item.ndim > 0


def is_flag(item: Any) -> bool:
    """True for a boolean without dimensions and with a known value."""
    return isinstance(item, bool | np.bool_) or (
        isinstance(item, Array | np.ndarray) and item.dtype == np.bool_ and item.ndim == 0
    )


@dataclass(frozen=True, slots=True)
class ArrayIndex:
    """An index with arrays, for an array of known shape."""

    basic: tuple[Any, ...]
    """The index that gives the block: slices and None; all of each dimension that an array indexes."""
    dimensions: tuple[int, ...]
    """Of the block: those that arrays index."""
    axes: tuple[int, ...]
    """The same dimensions in the array itself."""
    arrays: tuple[Any, ...]
    """Arrays and integers, one for each of them."""
    joint: tuple[int, ...]
    """The shape that they broadcast to."""
    place: int
    """Where its dimensions are in the result."""

    @property
    def is_whole(self) -> bool:
        """True if the block is the array itself."""
        return all(isinstance(item, slice) and item == slice(None) for item in self.basic)

    def result_shape(self, block: tuple[int, ...]) -> tuple[int, ...]:
        others = [size for d, size in enumerate(block) if d not in self.dimensions]
        return (*others[: self.place], *self.joint, *others[self.place :])

    def window_dimensions(self, rank: int) -> tuple[int, ...]:
        """The dimensions of the result that are the block's own, for a block of `rank`."""
        total = rank - len(self.dimensions) + len(self.joint)
        return tuple([d for d in range(total) if not self.place <= d < self.place + len(self.joint)])


def split_index(shape: tuple[int, ...], items: list[Any]) -> ArrayIndex:
    """The meaning of an index with arrays for an array of `shape`. IndexError or OperandError if it cannot be."""
    used = sum(_dimensions_of(item) for item in items)
    ellipses = place_of_ellipsis(shape, items, used)
    basic: list[Any] = []
    dimensions: list[int] = []
    axes: list[int] = []
    arrays: list[Any] = []
    flags: list[tuple[int, ...]] = []  # the shapes that boolean scalars are broadcast with: one place, or none
    chosen: list[int] = []  # places in the index, to see whether they are adjacent
    first: int | None = None  # the dimension of the block where the first of them stands
    axis = 0
    for k, item in enumerate(items if ellipses else [*items, Ellipsis]):
        if item is None:
            basic.append(None)
        elif item is Ellipsis or isinstance(item, slice | Slice):
            count = len(shape) - used if item is Ellipsis else 1
            basic += [slice(None)] * count if item is Ellipsis else [item]
            axis += count
        else:
            chosen.append(k)
            first = len(basic) if first is None else first
            if is_flag(item):
                flags.append((int(item),))
                continue
            for array in _integers(item, shape, axis):
                dimensions.append(len(basic))
                axes.append(axis)
                arrays.append(array)
                basic.append(slice(None))
                axis += 1
    try:
        joint = lax.broadcast_shapes(*[shape_of(array) for array in arrays], *flags)
    except OperandError:
        shapes = ", ".join(map(str, [*map(np.shape, arrays), *flags]))
        raise OperandError(
            f"the arrays of an index must broadcast together, but their shapes are {shapes}", "index_shapes"
        ) from None
    adjacent = chosen[-1] - chosen[0] == len(chosen) - 1
    place = first if adjacent and first is not None else 0
    return ArrayIndex(tuple(basic), tuple(dimensions), tuple(axes), tuple(arrays), joint, place)


def place_of_ellipsis(shape: tuple[int, ...], items: list[Any], used: int) -> list[int]:
    """Where in an index the Ellipsis is, if it has one. IndexError for several, or if more than all dimensions of the
    array are `used`."""
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed: give at most one index "
            "for each dimension"
        )
    ellipses = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"an index can have one Ellipsis only, not {len(ellipses)}")
    return ellipses


def _dimensions_of(item: Any) -> int:
    """How many dimensions of the array an entry takes."""
    if item is None or item is Ellipsis or is_flag(item):
        return 0
    is_mask = isinstance(item, ArrayBase | np.ndarray) and item.dtype == np.bool_
    return int(item.ndim) if is_mask else 1


def _integers(item: Any, shape: tuple[int, ...], axis: int) -> tuple[Any, ...]:
    """An integer or an array of integers itself; for a mask, the places where it is true."""
    if isinstance(item, ArrayBase | np.ndarray) and item.dtype == np.bool_:
        mask, sizes = np.asarray(item), shape[axis : axis + item.ndim]
        if len(sizes) != mask.ndim or any(m not in (0, size) for m, size in zip(mask.shape, sizes)):
            raise IndexError(
                f"boolean index did not match shape of indexed array: the mask has shape {mask.shape}, and the "
                f"dimensions from {axis} on are {sizes}: they must be equal"
            )
        return tuple(np.nonzero(mask))
    return (item,)


def gathered(block: Value, index: ArrayIndex, wrap: bool, mode: GatherScatterMode, fill_value: Any) -> Value:
    """The elements of the block that the arrays choose."""
    shape = block.aval.shape
    result = index.result_shape(shape)
    empty = [axis for d, axis in zip(index.dimensions, index.axes, strict=True) if shape[d] == 0]
    if empty and 0 not in index.joint:  # every integer is out of bounds of an empty dimension
        if mode is GatherScatterMode.FILL_OR_DROP:
            return out_of_bounds(lax.full_like(block, 0, shape=result), fill_value)
        raise index_of_nothing(empty[0])
    if 0 in result:
        return lax.full_like(block, 0, shape=result)
    numbers = lax.GatherDimensionNumbers(
        index.window_dimensions(len(shape)), index.dimensions, index.dimensions
    )  # fmt: skip
    sizes = [1 if d in index.dimensions else size for d, size in enumerate(shape)]
    return lax.gather(block, _starts(index, shape, wrap), numbers, sizes, mode=mode, fill_value=fill_value)


Scatter = Callable[..., Value]


def scattered(
    block: Value, index: ArrayIndex, new: Value, scatter: Scatter, wrap: bool, mode: GatherScatterMode | str | None
) -> Value:
    """The block with `new`, of the shape of the result, at the places that the arrays select."""
    shape = block.aval.shape
    if 0 in new.aval.shape or 0 in shape:
        return block
    numbers = lax.ScatterDimensionNumbers(
        index.window_dimensions(len(shape)), index.dimensions, index.dimensions
    )  # fmt: skip
    return scatter(block, _starts(index, shape, wrap), new, numbers, mode=mode)


def index_of_nothing(axis: int) -> IndexError:
    """The error of an integer that reads along an empty dimension."""
    return IndexError(f"index is out of bounds for axis {axis} with size 0")


def _starts(index: ArrayIndex, shape: tuple[int, ...], wrap: bool) -> Value:
    """The arrays, counted from 0, as vectors along a new last dimension."""
    dtype = index_dtype(largest([shape[d] for d in index.dimensions]))
    if any(isinstance(a, Tracer) and a.aval.dtype.itemsize == 8 for a in index.arrays):
        dtype = np.dtype(np.int64)
    columns = [
        _counted(array, shape[d], dtype, wrap) for array, d in zip(index.arrays, index.dimensions, strict=True)
    ]  # fmt: skip
    if not any(isinstance(column, Tracer) for column in columns):
        return as_value(np.stack([np.broadcast_to(column, index.joint) for column in columns], axis=-1))
    values = [broadcast_to_shape(as_value(column), index.joint) for column in columns]
    return lax.concatenate([lax.expand_dims(value, [len(index.joint)]) for value in values], len(index.joint))


def _counted(array: Any, size: int, dtype: np.dtype[Any], wrap: bool) -> Any:
    """Indices as a tracer, or as a NumPy array where they are known."""
    if isinstance(array, Tracer) or is_symbolic(size):
        return start_index(array, size, dtype, wrap)
    known = np.asarray(array)
    if known.dtype.itemsize < dtype.itemsize:
        known = known.astype(dtype)
    limit = np.iinfo(dtype)
    if known.dtype.kind == "i" and wrap:
        known = np.where(known < 0, known + size, known)
    return np.clip(known, limit.min if known.dtype.kind == "i" else 0, limit.max).astype(dtype)


def report_bounds(index: ArrayIndex, shape: tuple[int, ...], wrap: bool) -> None:
    """For checkify: the indices of each dimension must be inside."""
    if not current_context().looks_at_indices or 0 in index.joint:
        return
    from ..autodiff.checks import check_indices  # with it come transformations: only checkify needs them

    every = zip(index.arrays, index.axes, strict=True)
    counted = [as_value(_counted(array, shape[axis], index_dtype(shape[axis]), wrap)) for array, axis in every]
    check_indices(shape, index.axes, [broadcast_to_shape(values, index.joint) for values in counted])
