"""Parts of references that are blocks: read as one dynamic-slice, written as one dynamic-update-slice.

An index is a block if it has integers, slices without steps, and `ds` without a stride, and a start that is traced. A
block that does not fit is moved inside, when it is read and when it is written, as JAX's references do; a negative
start counts from the end. All other indices mean what they mean for arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.support.records import dataclass
from .. import dtypes
from ..arrays.array import array_from_scalar
from ..arrays.dslice import Slice
from ..arrays.indices import as_index
from ..core import Value
from ..ops import add, compare, read_block, reshape, select, write_block
from ..tracer import Tracer

_INDEX = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of an array: its first element, its sizes, and the dimensions that its index drops."""

    starts: Sequence[Value]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    """The sizes of the dimensions that the result has."""

    def read(self, array: Value) -> Value:
        """The block."""
        found = read_block(array, self.starts, self.sizes)
        return found if self.kept == self.sizes else reshape(found, self.kept)

    def write(self, array: Value, new: Value) -> Value:
        """The array with other elements in the block."""
        return write_block(array, new if self.kept == self.sizes else reshape(new, self.sizes), self.starts)


def block_of(shape: tuple[int, ...], index: Any) -> Block | None:
    """The block that an index names in an array of `shape`; None if it is not one."""
    items = list(index) if isinstance(index, tuple) else [index]
    if not any(isinstance(getattr(i, "start", i), Tracer) for i in items):
        return None
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1 or len(items) - len(dots) > len(shape):
        return None
    place = dots[0] if dots else len(items)
    items[place : place + 1] = [slice(None)] * (len(shape) - len(items) + len(dots))
    entries = [_entry(item, size) for item, size in zip(items, shape, strict=True)]
    if any(e is None or e[1] > size for e, size in zip(entries, shape, strict=True)):
        return None
    known = [e for e in entries if e is not None]
    starts = [_start(start, size) for (start, _, _), size in zip(known, shape, strict=True)]
    return Block(starts, tuple([n for _, n, _ in known]), tuple([n for _, n, drops in known if not drops]))


def _entry(item: Any, size: int) -> tuple[Any, int, bool] | None:
    """The start and the size of an entry, and whether its dimension is dropped; None if it is no part of a block."""
    if isinstance(item, Slice):
        return (item.start, item.size, False) if item.stride == 1 and isinstance(item.size, int) else None
    if isinstance(item, slice):
        if any(isinstance(b, Tracer) for b in (item.start, item.stop, item.step)):
            return None
        start, stop, step = item.indices(size)
        return (start, max(0, stop - start), False) if step == 1 else None
    aval = getattr(item, "aval", None)
    if aval is not None:
        return (item, 1, True) if not aval.shape and dtypes.is_integer(aval.dtype) else None
    return (item, 1, True) if isinstance(item, int | np.integer) and not isinstance(item, bool) else None


def _start(start: Any, size: int) -> Value:
    if not isinstance(start, Tracer):
        known = int(start)
        return array_from_scalar(known + size if known < 0 else known, _INDEX)
    value = as_index(start, _INDEX)
    if dtypes.is_unsigned(start.aval.dtype):
        return value
    zero, end = (array_from_scalar(n, _INDEX) for n in (0, size))
    return select(compare(value, "LT", zero), add(value, end), value)


def check_index(shape: tuple[int, ...], index: Any) -> None:
    """ValueError for an index with too many entries, and for an integer, a slice or a block, known while tracing, that
    starts beyond the end of its dimension."""
    items = list(index) if isinstance(index, tuple) else [index]
    used = [i for i in items if not (i is None or i is Ellipsis or getattr(i, "dtype", None) == np.bool_)]
    shapes = [i.shape for i in used if hasattr(i, "dtype")]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Cannot broadcast shapes for indexing: {shapes}") from None
    if len(used) > len(shape):
        raise ValueError(f"`indices` must not be longer than `shape`: indices={index}, shape={shape}")
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1 or len(items) - len(dots) != len(used):
        return
    for k in dots:
        items[k : k + 1] = [slice(None)] * (len(shape) - len(used))
    for item, size in zip(items, shape, strict=False):
        if isinstance(item, slice):
            if any(isinstance(b, Tracer) for b in (item.start, item.stop, item.step)):
                continue
            start, _, step = item.indices(size)
            if step > 0 and start and start >= size:
                raise ValueError(f"Out of bound slice: start={start}, dim={size}.")
        elif isinstance(item, Slice):
            if not isinstance(item.size, int):
                continue
            if item.stride == 1 and item.size > size:
                raise ValueError(f"Out of bound slice: size={item.size}, dim={size}.")
            if not isinstance(item.start, int | np.integer):
                continue
            if item.start < 0:
                raise ValueError(
                    f"Out of bound slice: start={item.start}, dim={size}. A start that is known must not be negative."
                )
            last = item.start + (item.size - 1) * item.stride
            if item.start and item.start >= size:
                raise ValueError(f"Out of bound slice: start={item.start}, dim={size}.")
            if item.size and last >= size:
                raise ValueError(
                    f"Out of bound slice: start={item.start}, size={item.size}, stride={item.stride}, dim={size}."
                )
        elif isinstance(item, int | np.integer) and not isinstance(item, bool) and item and item >= size:
            raise ValueError(f"Out of bound indexer: idx={item}, dim={size}.")
