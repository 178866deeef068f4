"""`x.at[mask].set(values)` where the mask's values are not known: a choice between old and new elements.

How many elements a traced mask names is not known, so x[mask] has no shape; but the changed array has one. Values that
broadcast to x[mask] whatever its size is need no more than a `where`. Values with an entry for each true element go to
these in order, as in NumPy: the entry of an element is the number of true ones before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..hlo.support.records import dataclass
from ..tracer.arrays.dslice import Slice
from ..tracer.arrays.indices import index_dtype
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.tracer import Tracer
from .advanced_indexing import is_array_index, place_of_ellipsis
from .promotion import broadcast_to_shape


def is_traced_mask(item: Any) -> bool:
    """True for an entry of an index that is a boolean array whose values are not known."""
    return isinstance(item, Tracer) and item.dtype == np.bool_


@dataclass(frozen=True, slots=True)
class MaskIndex:
    """An index with one mask, beside integers, slices, None and Ellipsis."""

    mask: Value
    basic: tuple[Any, ...]
    """The index of the block that the mask chooses from: without it, all of its dimensions."""
    start: int
    """Where the mask's dimensions are in the block."""
    place: int
    """Where the dimension of the chosen elements is in x[index], among the other dimensions."""

    def spread(self, block: tuple[int, ...], values: Value, is_selected: bool) -> tuple[Value, Value]:
        """The value for each element of the block, of shape `block`, and which of them are to be changed. OperandError
        if the values do not broadcast to x[index].

        is_selected: the values are those of a Selection, with an entry for each element of the mask.
        """
        own, rank = self.mask.aval.shape, self.mask.aval.ndim
        others = (*block[: self.start], *block[self.start + rank :])
        shape, after = values.aval.shape, len(others) - self.place
        cut = max(len(shape) - after, 0)
        outer, inner = shape[: max(cut - 1, 0)], shape[cut:]
        middle: tuple[int, ...] = (1,) * rank
        mask = self.mask
        if is_selected:
            middle = own
        elif cut and shape[cut - 1] != 1:
            values, mask = self._entries(values, cut - 1)
            middle = own
        fits = len(outer) <= self.place and all(
            n in (1, size)
            for sizes, found in ((others[: self.place], outer), (others[self.place :], inner))
            for n, size in zip(reversed(found), reversed(sizes), strict=False)
        )
        if not fits:
            sizes = ", ".join([*map(str, others[: self.place]), "n", *map(str, others[self.place :])])
            raise OperandError(
                f"x.at[...]: values of shape {shape} do not broadcast to the shape of x[...], which is ({sizes}), "
                "where the mask has n true elements",
                "at_shape",
            )
        padded = [*(1,) * (self.place - len(outer)), *outer, *middle, *(1,) * (after - len(inner)), *inner]
        found = lax.reshape(values, padded)
        if self.place != self.start:
            order = [d for d in range(len(padded)) if not self.place <= d < self.place + rank]
            order[self.start : self.start] = range(self.place, self.place + rank)
            found = lax.transpose(found, order)
        mask = lax.broadcast_in_dim(mask, block, range(self.start, self.start + rank))
        return broadcast_to_shape(found, block), mask

    def _entries(self, values: Value, d: int) -> tuple[Value, Value]:
        """The entry of each element of the mask along dimension d of the values, and the mask without those elements
        that have none. There must be fewer entries than elements: OperandError."""
        own, count = self.mask.aval.shape, values.aval.shape[d]
        size = math.prod(own)
        if count >= size:
            raise OperandError(
                f"x.at[mask]: {count} values for the true elements of a traced mask of {size}: their number must be "
                "that of the true elements, as in NumPy. Use where(mask, values, x) if each element of the mask has a "
                "value",
                "at_shape",
            )
        flat = lax.reshape(self.mask, (size,))
        entry = lax.cumsum(lax.convert_element_type(flat, index_dtype(size))) - 1
        inside = lax.reshape(lax.bitwise_and(flat, entry < count), own)
        if not count:
            shape = (*values.aval.shape[:d], size, *values.aval.shape[d + 1 :])
            return lax.full_like(values, 0, shape=shape), inside
        at = lax.clamp(lax.full_like(entry, 0, shape=()), entry, lax.full_like(entry, count - 1, shape=()))
        return _taken(values, at, d), inside


def _taken(values: Value, at: Value, d: int) -> Value:
    """The entries `at` of dimension d."""
    shape = values.aval.shape
    offsets = tuple([k for k in range(len(shape)) if k != d])
    numbers = lax.GatherDimensionNumbers(offsets, (d,), (d,))
    sizes = [1 if k == d else n for k, n in enumerate(shape)]
    return lax.gather(values, lax.expand_dims(at, [1]), numbers, sizes, mode="promise_in_bounds")


def mask_index(shape: tuple[int, ...], items: list[Any]) -> MaskIndex | None:
    """The meaning of an index with a traced mask; None if it has none, or has further arrays. IndexError if it does not
    fit an array of `shape`."""
    places = [k for k, item in enumerate(items) if is_traced_mask(item)]
    if len(places) != 1 or any(is_array_index(item) for k, item in enumerate(items) if k not in places):
        return None
    (at,) = places
    mask = items[at]
    rank = mask.aval.ndim
    basic = (*items[:at], *[slice(None)] * rank, *items[at + 1 :])
    used = sum(item is not None and item is not Ellipsis for item in basic)
    ellipses = place_of_ellipsis(shape, list(basic), used)
    rest = len(shape) - used
    before = items[:at]
    axis = sum(rest if item is Ellipsis else item is not None for item in before)
    if mask.aval.shape != shape[axis : axis + rank]:
        raise IndexError(
            f"boolean index did not match shape of indexed array: the mask has shape {mask.aval.shape}, and the "
            f"dimensions from {axis} on are {shape[axis : axis + rank]}: they must be equal"
        )
    if rest and not ellipses:
        basic = (*basic, Ellipsis)
    start = sum(rest if item is Ellipsis else _adds_one(item) for item in before)
    joint = [k for k, item in enumerate(items) if k == at or not (item is Ellipsis or _adds_one(item))]
    adjacent = joint[-1] - joint[0] == len(joint) - 1
    return MaskIndex(mask, basic, start, start if adjacent else 0)


def _adds_one(item: Any) -> bool:
    """Whether an entry of an index, other than Ellipsis, is a dimension of the result of its own."""
    return item is None or isinstance(item, slice | Slice)
