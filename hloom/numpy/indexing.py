"""Indexing as far as slices can express it: x[1:, ::-2, None, ..., i] and x.at[...].set(y).

Integers may be traced; slices, None, Ellipsis and boolean scalars are known while tracing. Out of bounds integers are
clamped when reading and ignored when writing, as in JAX. Indexing by arrays needs gather and scatter: UnsupportedError.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import lax
from ..hlo.tracebacks import boundaries
from ..lax.indexing import start_index
from ..tracer import dtypes
from ..tracer.array import MAX_KEPT_ALIVE, Array, array_from_scalar, as_value, detached
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, thread_state
from ..tracer.errors import (
    IndexKindError,
    NonConcreteBooleanIndexError,
    NonConcreteSliceError,
    OperandError,
    UnsupportedError,
)
from ..tracer.operators import ArrayBase
from ..tracer.ops import convert, read_block, write_block
from ..tracer.overlay import overlaid
from ..tracer.source import user_line
from ..tracer.tracer import Tracer
from .creation import asarray
from .promotion import broadcast_to_shape, to_dtype

_INDEX = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class _Range:
    """start, start + step, ...: `count` indices of one dimension."""

    start: int
    count: int
    step: int

    @property
    def low(self) -> int:
        """The smallest index."""
        return self.start if self.step > 0 or not self.count else self.start + (self.count - 1) * self.step


@dataclass(frozen=True, slots=True)
class _Index:
    """An index, with one entry for each dimension of the array: a range, or an integer that the program computes."""

    entries: tuple[_Range | Value, ...]
    dropped: tuple[bool, ...]
    """True for dimensions indexed by an integer: they are not in the result."""
    result_shape: tuple[int, ...]
    """With the dimensions that None adds."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of the block of each dimension of the array."""
        return tuple([e.count if isinstance(e, _Range) else 1 for e in self.entries])

    @property
    def reversed_dimensions(self) -> list[int]:
        return [d for d, e in enumerate(self.entries) if isinstance(e, _Range) and e.step < 0]

    @property
    def strides(self) -> list[int]:
        return [abs(e.step) if isinstance(e, _Range) else 1 for e in self.entries]

    @property
    def is_dynamic(self) -> bool:
        return any(not isinstance(e, _Range) for e in self.entries)


def parse_index(shape: tuple[int, ...], index: Any) -> _Index:
    """What an index means for an array of `shape`. IndexError, TypeError or UnsupportedError if it cannot be."""
    items = list(index) if isinstance(index, tuple) else [index]
    for item in items:
        _check(item)
    if any(map(_is_boolean, items)):
        return _with_booleans(shape, items)
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        raise IndexError(
            f"Too many indices: the array has {len(shape)} dimensions, but {used} were indexed\n  at {user_line()}"
        )
    ellipses = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError(f"an index can have one Ellipsis only, not {len(ellipses)}\n  at {user_line()}")
    place = ellipses[0] if ellipses else len(items)
    items[place : place + 1] = [slice(None)] * (len(shape) - used)
    entries: list[_Range | Value] = []
    dropped: list[bool] = []
    result: list[int] = []
    for item in items:
        if item is None:
            result.append(1)
            continue
        size = shape[len(entries)]
        entry = _entry(item, size)
        entries.append(entry)
        dropped.append(not isinstance(item, slice))
        if isinstance(item, slice):
            assert isinstance(entry, _Range)
            result.append(entry.count)
    return _Index(tuple(entries), tuple(dropped), tuple(result))


def _is_boolean(item: Any) -> bool:
    """True for a boolean without dimensions, whose value is known."""
    return isinstance(item, bool | np.bool_) or (
        isinstance(item, Array | np.ndarray) and item.dtype == np.bool_ and item.ndim == 0
    )


def _with_booleans(shape: tuple[int, ...], items: list[Any]) -> _Index:
    """Booleans take no dimension of the array. Together with all integers they make one new dimension of the result,
    of size 1 if all are true and else 0: where the first of them stands, or in front if other entries are between."""
    rest = parse_index(shape, tuple([item for item in items if not _is_boolean(item)]))
    joint = [k for k, item in enumerate(items) if not (item is None or item is Ellipsis or isinstance(item, slice))]
    place = 0
    if joint[-1] - joint[0] == len(joint) - 1:
        before = items[: joint[0]]
        used = sum(item is not None and item is not Ellipsis and not _is_boolean(item) for item in items)
        place = sum(len(shape) - used if item is Ellipsis else 1 for item in before)
    chosen = all(bool(item) for item in items if _is_boolean(item))
    result = (*rest.result_shape[:place], int(chosen), *rest.result_shape[place:])
    return _Index(rest.entries, rest.dropped, result)


def _check(item: Any) -> None:
    """Refuse anything else than an integer, a slice, None, Ellipsis and a boolean scalar, and say why."""
    if item is None or item is Ellipsis or isinstance(item, slice) or _is_boolean(item):
        return
    if isinstance(item, str):
        raise TypeError(f"arrays cannot be indexed by strings: {item!r}\n  at {user_line()}")
    if isinstance(item, list):
        raise TypeError(
            f"Using a non-tuple sequence for multidimensional indexing is not allowed: {item!r}\n  at {user_line()}"
        )
    if isinstance(item, tuple):
        raise UnsupportedError(
            f"indexing by the sequence {item!r} needs gather, which this version does not have; integers, slices, None "
            f"and Ellipsis are supported\n  at {user_line()}"
        )
    if isinstance(item, ArrayBase | np.ndarray):
        if item.dtype == np.bool_ and isinstance(item, Tracer):
            raise NonConcreteBooleanIndexError(
                "the size of x[mask] depends on the mask's values, which are traced: use hloom.numpy.where(mask, x, 0) "
                f"or the like\n  at {user_line()}"
            )
        if item.ndim or item.dtype == np.bool_:
            raise UnsupportedError(
                f"indexing by an array of {item.dtype.name} with {item.ndim} dimensions needs gather, which this "
                f"version does not have; integers, slices, None and Ellipsis are supported\n  at {user_line()}"
            )
    elif not hasattr(item, "__index__"):
        raise IndexKindError(
            f"an index must be an integer, a slice, None or Ellipsis, not {item!r}\n  at {user_line()}"
        )
    if isinstance(item, ArrayBase | np.ndarray | np.generic) and item.dtype.kind not in "iu":
        raise TypeError(f"an index must have an integer type, not {item.dtype.name}\n  at {user_line()}")


def _entry(item: Any, size: int) -> _Range | Value:
    if isinstance(item, slice):
        for bound in (item.start, item.stop, item.step):
            if isinstance(bound, Tracer) and bound.to_concrete_value() is None:
                raise NonConcreteSliceError(
                    f"the bounds of a slice must be known while tracing, and {bound.aval.str_short()} is traced"
                    f"{bound._trace.described()}\n"
                    f"  at {user_line()}\n  Use hloom.lax.dynamic_slice_in_dim(x, start, size), of a constant size, or "
                    "make the bound static."
                )
        bounds = [None if v is None else operator.index(v) for v in (item.start, item.stop, item.step)]
        start, stop, step = slice(*bounds).indices(size)
        return _Range(start, len(range(start, stop, step)), step)
    if isinstance(item, Tracer) and item.to_concrete_value() is None:
        dtype = item.aval.dtype if item.aval.dtype.itemsize >= 4 else _INDEX
        return start_index(item, size, dtype)
    number = operator.index(item)
    return _Range(number + size if number < 0 else number, 1, 1)


def index_get(x: Any, index: Any) -> Value:
    """x[index]."""
    value = as_value(x)
    shape = value.aval.shape
    if _state.direct and isinstance(value, Array) and _is_basic(index):
        try:
            if value.aval.is_extended:
                return _key_get(value, index)
            found = value._view[index]
        except IndexError:
            pass  # too many indices, or an integer out of bounds: left to the general way
        else:
            view = np.asarray(found)
            if view is found and value._view.nbytes > MAX_KEPT_ALIVE:
                view = detached(view)
            return Array(ShapedArray(found.shape, value.aval.dtype, value.aval.weak_type), view)
    parsed = parse_index(shape, index)
    if any(d == 0 and dropped for d, dropped in zip(shape, parsed.dropped)):
        raise IndexError(f"an integer index into a dimension of size 0: shape {shape}\n  at {user_line()}")
    if 0 in parsed.result_shape:  # also where a boolean index is false
        return lax.full_like(value, 0, shape=parsed.result_shape)
    return lax.reshape(_block(value, _clamped(parsed, shape)), parsed.result_shape)


def _key_get(keys: Array, index: Any) -> Value:
    """A basic index, of whole elements of the storage; IndexError as NumPy raises it."""
    storage, rank = keys._storage, keys.aval.ndim
    items = index if type(index) is tuple else (index,)
    element = (slice(None),) * (storage.aval.ndim - rank)
    found = storage._view[(*items, *element) if Ellipsis in items else (*items, Ellipsis, *element)]
    words = Array(ShapedArray(found.shape, storage.aval.dtype), found)
    return overlaid(words, ShapedArray(found.shape[: found.ndim - len(element)], keys.aval.dtype))


_state = thread_state()


def _is_basic(index: Any) -> bool:
    """True for indices that mean the same to NumPy: integers, slices with integers, None and Ellipsis."""
    kind = type(index)
    if kind is int or index is None or index is Ellipsis:
        return True
    if kind is slice:
        return all(bound is None or type(bound) is int for bound in (index.start, index.stop, index.step))
    return kind is tuple and all(type(item) is not tuple and _is_basic(item) for item in index)


def _clamped(index: _Index, shape: tuple[int, ...]) -> _Index:
    """Constant integers moved into bounds."""
    entries = [
        _Range(min(max(e.start, 0), size - 1), 1, 1) if dropped and isinstance(e, _Range) else e
        for e, dropped, size in zip(index.entries, index.dropped, shape)
    ]
    return _Index(tuple(entries), index.dropped, index.result_shape)


def _block(x: Value, index: _Index) -> Value:
    """The elements that the index names, with all dimensions of the array."""
    if index.is_dynamic:
        if all(not isinstance(e, _Range) or e.step == 1 for e in index.entries):
            return read_block(x, _starts(index.entries), index.sizes)
        return _block(_block(x, _only_values(index, x.aval.shape)), _only_ranges(index))
    ranges = [e for e in index.entries if isinstance(e, _Range)]
    limits = [e.low + (e.count - 1) * abs(e.step) + 1 if e.count else e.low for e in ranges]
    return lax.rev(lax.slice(x, [e.low for e in ranges], limits, index.strides), index.reversed_dimensions)


def _starts(entries: tuple[_Range | Value, ...]) -> list[Value]:
    """Start indices as scalars of one dtype: int64 if one of them is 64 bits wide, else int32."""
    wide = any(not isinstance(e, _Range) and e.aval.dtype.itemsize == 8 for e in entries)
    dtype = np.dtype(np.int64 if wide else np.int32)
    return [array_from_scalar(e.start, dtype) if isinstance(e, _Range) else convert(e, dtype, False) for e in entries]


# ---- x.at[index].set(y)


@boundaries
class IndexUpdateHelper:
    """`x.at`: index it."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> IndexUpdate:
        return IndexUpdate(as_value(self._array), index)


@boundaries
class IndexUpdate:
    """`x.at[index]`: each method gives a copy of x in which the elements named by the index are changed.

    The extra arguments that JAX has (indices_are_sorted, unique_indices, mode, fill_value) are accepted; for
    slices they make no difference.
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Value, index: Any) -> None:
        self._array = array
        self._index = index

    def get(self, **options: Any) -> Value:
        """x[index]."""
        return index_get(self._array, self._index)

    def set(self, values: Any, **options: Any) -> Value:
        """x[index] = values."""
        return self._update(values, lambda old, new: new)

    def add(self, values: Any, **options: Any) -> Value:
        """x[index] += values."""
        return self._update(values, lax.add)

    def subtract(self, values: Any, **options: Any) -> Value:
        """x[index] -= values."""
        return self._update(values, lax.sub)

    def multiply(self, values: Any, **options: Any) -> Value:
        """x[index] *= values."""
        return self._update(values, lax.mul)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Value:
        """x[index] /= values; of integers, all of x as floats."""
        x = self._array
        if not dtypes.is_inexact(x.aval.dtype):
            divisors = IndexUpdate(lax.full_like(x, 1), self._index).multiply(values, **options)
            return x / divisors
        return self._update(values, lambda old, new: old / new)

    def power(self, values: Any, **options: Any) -> Value:
        """x[index] **= values."""
        return self._update(values, lambda old, new: old**new)

    def min(self, values: Any, **options: Any) -> Value:
        """x[index] = minimum(x[index], values)."""
        return self._update(values, lax.min)

    def max(self, values: Any, **options: Any) -> Value:
        """x[index] = maximum(x[index], values)."""
        return self._update(values, lax.max)

    def apply(self, function: Callable[[Any], Any], **options: Any) -> Value:
        """x[index] = function(x[index])."""
        x = self._array
        return self._update(0, lambda old, new: to_dtype(function(old), x.aval.dtype, False))

    def _update(self, values: Any, combine: Callable[[Value, Value], Value]) -> Value:
        x = self._array
        index = parse_index(x.aval.shape, self._index)
        new, combine = _in_one_dtype(x, values, combine)
        if new.aval.shape and lax.broadcast_shapes(new.aval.shape, index.result_shape) != index.result_shape:
            raise OperandError(
                f"x.at[...]: values of shape {new.aval.shape} do not broadcast to the shape of x[...], which is "
                f"{index.result_shape}\n  at {user_line()}",
                "at_shape",
            )
        new = broadcast_to_shape(new, index.result_shape)
        if 0 in index.result_shape or not _in_bounds(index, x.aval.shape):
            return x
        new = lax.reshape(new, index.sizes)
        return _changed(x, _forward(index), lax.rev(new, index.reversed_dimensions), combine)


Combine = Callable[[Value, Value], Value]


def _in_one_dtype(x: Value, values: Any, combine: Combine) -> tuple[Value, Combine]:
    """The values as an array, and `combine` with a result of x's dtype.

    Values of a dtype that does not promote to x's (floats into integers) are combined in the common dtype and then
    cut to x's: a FutureWarning, as JAX will refuse them. TypePromotionError if there is no common dtype.
    """
    given = values if isinstance(values, ArrayBase | bool | int | float | complex) else asarray(values)
    own = x.aval.dtype
    kind = dtypes.type_of(given)
    common, _ = dtypes.promote([dtypes.type_of(x), kind])
    if common is own:
        return to_dtype(given, own, False), combine
    warnings.warn(
        f"x.at[...]: values of {kind[0].name} are converted to {own.name}, the dtype of x, which cannot hold "
        f"all of them: later versions of JAX refuse this. Convert them, as in values.astype({own.name!r}), or x.\n"
        f"  at {user_line()}",
        FutureWarning,
        stacklevel=4,
    )
    return to_dtype(given, common, False), (
        lambda old, new: convert(combine(convert(old, common, False), new), own, False)
    )


def _changed(x: Value, index: _Index, new: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """x with combine(old, new) at a forward index; `new` has all dimensions of the array."""
    if any(s != 1 for s in index.strides):
        if index.is_dynamic:  # the block that the integers choose, changed and written back
            row_index = _only_values(index, x.aval.shape)
            return _changed(x, row_index, new, lambda row, n: _changed(row, _only_ranges(index), n, combine))
        return _masked(x, index, new, combine)
    old = _block(x, index)
    block = combine(old, new)
    inside = _dynamic_in_bounds(index, x.aval.shape)
    if inside is not None:
        block = lax.select(inside, block, old)
    return write_block(x, block, _starts(index.entries))


def _masked(x: Value, index: _Index, new: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """For steps other than 1: the new elements spread over the array by padding, and chosen by a mask."""
    config = []
    for e, size in zip(index.entries, x.aval.shape, strict=True):
        assert isinstance(e, _Range)
        config.append((e.start, size - 1 - (e.start + (e.count - 1) * e.step), e.step - 1))
    mask = lax.pad(lax.full(index.sizes, True, np.bool_), np.False_, config)
    return lax.select(mask, combine(x, lax.pad(new, lax.full_like(new, 0, shape=()), config)), x)


def _only_values(index: _Index, shape: tuple[int, ...]) -> _Index:
    """The index with ranges replaced by whole dimensions."""
    entries = [_Range(0, size, 1) if isinstance(e, _Range) else e for e, size in zip(index.entries, shape)]
    return _Index(tuple(entries), index.dropped, index.result_shape)


def _only_ranges(index: _Index) -> _Index:
    """The index into what `_only_values` leaves: computed integers have become 0."""
    entries = [e if isinstance(e, _Range) else _Range(0, 1, 1) for e in index.entries]
    return _Index(tuple(entries), index.dropped, index.result_shape)


def _in_bounds(index: _Index, shape: tuple[int, ...]) -> bool:
    return all(
        not (dropped and isinstance(e, _Range)) or 0 <= e.start < size
        for e, dropped, size in zip(index.entries, index.dropped, shape)
    )


def _dynamic_in_bounds(index: _Index, shape: tuple[int, ...]) -> Value | None:
    """Whether all computed integers are in bounds; None if there are none."""
    result: Value | None = None
    for e, size in zip(index.entries, shape):
        if not isinstance(e, _Range):
            inside = (e >= 0) & (e < size)
            result = inside if result is None else result & inside
    return result


def _forward(index: _Index) -> _Index:
    """The same block, each dimension counted upwards."""
    entries = [_Range(e.low, e.count, abs(e.step)) if isinstance(e, _Range) else e for e in index.entries]
    return _Index(tuple(entries), index.dropped, index.result_shape)
