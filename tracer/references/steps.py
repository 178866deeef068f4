"""Indices of references with blocks that are no slices: `ds` with a traced start or with the stride 0.

Such a block is an array of positions. NumPy joins arrays of an index, but a block is a dimension of its own, as a slice
is. So where there is a block beside another block, an array or an integer, the blocks are read first, one after the
other, and then the rest. An element that is written is named by its place in memory, which is read in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays.array import as_value
from ..arrays.dslice import Slice
from ..core import Value


def _plain(part: Any) -> Any:
    """An entry without Slice: an array of positions in its place, or a Python slice where the start is known."""
    if not isinstance(part, Slice):
        return part
    if isinstance(part.start, int | np.integer) and part.stride:
        return slice(int(part.start), int(part.start) + part.size * part.stride, part.stride)
    return as_value(np.arange(part.size, dtype=np.int32) * part.stride) + part.start


def steps_of(index: Any) -> list[Any]:
    """Indices without blocks, which one after the other read the elements at `index`. All but the last keep the number
    of dimensions."""
    if not isinstance(index, tuple):
        return [_plain(index)]
    entries = [_plain(part) for part in index]
    blocks = [k for k, part in enumerate(index) if isinstance(part, Slice) and not isinstance(entries[k], slice)]
    beside = [e for k, e in enumerate(entries) if k not in blocks and not (isinstance(e, slice) or e is Ellipsis)]
    if len(blocks) < 2 and not (blocks and beside):
        return [tuple(entries)]
    found: list[Any] = []
    for k in blocks:
        found.append((*_whole(index[:k]), entries[k], *_whole(index[k + 1 :])))
        entries[k] = slice(None)
    return [*found, tuple(entries)]


def _whole(part: Sequence[Any]) -> tuple[Any, ...]:
    """All of the dimensions that a part of an index is for."""
    found: list[Any] = []
    for entry in part:
        if entry is Ellipsis:
            found.append(entry)
        elif entry is not None:
            found += [slice(None)] * (entry.ndim if getattr(entry, "dtype", None) == np.bool_ else 1)
    return tuple(found)


def read(value: Value, index: Any) -> Value:
    """The elements at an index; positions out of range are moved inside."""
    for step in steps_of(index):
        value = value[step]
    return value


def update(value: Value, index: Any, new: Value, how: str) -> Value:
    """The array with other elements at an index. how: "set" or "add". Positions out of range are left out."""
    steps = steps_of(index)
    if len(steps) == 1:
        return getattr(value.at[steps[0]], how)(new)  # type: ignore[no-any-return]
    shape = value.aval.shape
    count = math.prod(shape)
    places = as_value(np.arange(count, dtype=np.int32).reshape(shape))
    for step in steps:
        places = places.at[step].get(mode="fill", fill_value=count)
    flat = value.reshape(-1).at[places]
    return getattr(flat, how)(new).reshape(shape)  # type: ignore[no-any-return]
