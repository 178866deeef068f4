"""Indexing: x[1:, ::-2, None, ..., i] and x.at[...].set(y), as far as slices can express it.

Integers may be traced; slices, None, Ellipsis and boolean scalars are known while tracing. Out of bounds integers are
clamped when reading and ignored when writing, as in JAX, unless `mode` of a method of `x.at[...]` says otherwise.
Indices with arrays are in `advanced_indexing.py`; the slices beside them are applied here.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np

from .. import lax
from ..autodiff.placed_results import computed_in
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import SliceAttributes
from ..hlo.sizes import as_size, is_symbolic, larger, smaller
from ..hlo.support.loading import load
from ..hlo.support.records import dataclass
from ..hlo.support.tracebacks import boundaries
from ..lax.gather import out_of_bounds
from ..lax.indexing import GatherScatterMode, start_index
from ..tracer import dtypes
from ..tracer.arrays.array import (
    MAX_KEPT_ALIVE,
    Array,
    array_from_scalar,
    as_value,
    detached,
    is_absent,
    is_placed,
    rank_of,
    resolved,
)
from ..tracer.arrays.dslice import Slice
from ..tracer.arrays.indices import index_dtype, index_dtype_of
from ..tracer.arrays.operators import ArrayBase
from ..tracer.arrays.overlay import overlaid
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind, thread_state
from ..tracer.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    IndexKindError,
    NonConcreteBooleanIndexError,
    NonConcreteSliceError,
    OperandError,
)
from ..tracer.ops import convert, read_block, write_block
from ..tracer.settings.context import current_context
from ..tracer.sharding.partition_spec import PartitionSpec
from ..tracer.sharding.shardings import Sharding
from ..tracer.source import warn_user
from ..tracer.tracer import Tracer
from .advanced_indexing import (
    ArrayIndex,
    Scatter,
    check_static_index,
    gathered,
    index_of_nothing,
    is_array_index,
    is_flag,
    place_of_ellipsis,
    report_bounds,
    scattered,
    split_index,
)
from .array_creation import asarray
from .binary_ufuncs import divide, power
from .masked_updates import MaskIndex, is_traced_mask, mask_index
from .promotion import broadcast_to_shape, to_dtype
from .selections import Selection

_CLIP = GatherScatterMode.CLIP
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
        if self.count == 0:
            return larger(self.start, 0)  # type: ignore[no-any-return]  # backwards from the end of nothing is at -1
        return self.start if self.step > 0 else self.start + (self.count - 1) * self.step


@dataclass(frozen=True, slots=True)
class _Window:
    """`count` neighbours from an integer that the program computes."""

    start: Value
    count: int = 1


@dataclass(frozen=True, slots=True)
class _Index:
    """An index, with one entry for each dimension of the array: a range, or a window that the program places."""

    entries: tuple[_Range | _Window, ...]
    dropped: tuple[bool, ...]
    """True for dimensions indexed by an integer: they are not in the result."""
    result_shape: tuple[int, ...]
    """With the dimensions that None adds."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of the block of each dimension of the array."""
        return tuple([e.count for e in self.entries])

    @property
    def reversed_dimensions(self) -> list[int]:
        return [d for d, e in enumerate(self.entries) if isinstance(e, _Range) and e.step < 0]

    @property
    def strides(self) -> list[int]:
        return [abs(e.step) if isinstance(e, _Range) else 1 for e in self.entries]

    @property
    def is_dynamic(self) -> bool:
        return any(not isinstance(e, _Range) for e in self.entries)

    @property
    def has_steps(self) -> bool:
        return any(isinstance(e, _Range) and abs(e.step) != 1 for e in self.entries)


def parse_index(shape: tuple[int, ...], index: Any, wrap: bool = True) -> _Index:
    """The meaning of an index for an array of `shape`. IndexError, TypeError or UnsupportedError if it cannot be.

    wrap: negative integers count from the end; else they are out of bounds.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    for item in items:
        _check(item)
    if any(map(is_flag, items)):
        return _with_booleans(shape, items, wrap)
    used = sum(item is not None and item is not Ellipsis for item in items)
    ellipses = place_of_ellipsis(shape, items, used)
    place = ellipses[0] if ellipses else len(items)
    items[place : place + 1] = [slice(None)] * (len(shape) - used)
    entries: list[_Range | _Window] = []
    dropped: list[bool] = []
    result: list[int] = []
    strict = current_context().check_static_indices
    for item in items:
        if item is None:
            result.append(1)
            continue
        size = shape[len(entries)]
        entry = _entry(item, size, wrap)
        if strict and isinstance(entry, _Range) and not isinstance(item, slice | Slice):
            check_static_index(item, entry.start, len(entries), size)
        entries.append(entry)
        dropped.append(not isinstance(item, slice | Slice))
        if not dropped[-1]:
            result.append(entry.count)
    found = _Index(tuple(entries), tuple(dropped), tuple(result))
    if current_context().looks_at_indices:
        _report_bounds(found, shape)
    return found


def _report_bounds(index: _Index, shape: tuple[int, ...]) -> None:
    """For checkify: clamping or dropping an integer out of bounds hides it from the operations."""
    from ..autodiff.checks import check_indices  # with it come transformations: only checkify needs them

    axes = [axis for axis, dropped in enumerate(index.dropped) if dropped]
    check_indices(shape, axes, [as_value(index.entries[axis].start) for axis in axes])


def _with_booleans(shape: tuple[int, ...], items: list[Any], wrap: bool) -> _Index:
    """Booleans take no dimension of the array. Together with all integers they make one new dimension of the result,
    of size 1 if all are true and else 0: where the first of them stands, or in front if other entries are between."""
    rest = parse_index(shape, tuple([item for item in items if not is_flag(item)]), wrap)
    joint = [
        k for k, item in enumerate(items) if not (item is None or item is Ellipsis or isinstance(item, slice | Slice))
    ]
    place = 0
    if joint[-1] - joint[0] == len(joint) - 1:
        before = items[: joint[0]]
        used = sum(item is not None and item is not Ellipsis and not is_flag(item) for item in items)
        place = sum(len(shape) - used if item is Ellipsis else 1 for item in before)
    chosen = all(bool(item) for item in items if is_flag(item))
    result = (*rest.result_shape[:place], int(chosen), *rest.result_shape[place:])
    return _Index(rest.entries, rest.dropped, result)


def _check(item: Any) -> None:
    """Refuse anything else than an integer, a slice, None, Ellipsis, a known boolean or an array, and say why."""
    if item is None or item is Ellipsis or isinstance(item, slice | Slice) or is_flag(item):
        return
    if isinstance(item, str):
        raise TypeError(f"JAX does not support string indexing, and neither does hloom: {item!r}. Use a dict of arrays")
    if isinstance(item, list):
        raise TypeError(
            f"Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[{_meant(item)}(seq)]` "
            f"instead of `arr[seq]`: {item!r}"
        )
    if isinstance(item, ArrayBase | np.ndarray):
        if item.dtype == np.bool_ and isinstance(item, Tracer):
            raise _unknown_size(item)
        if item.dtype == np.bool_:
            return
    elif not hasattr(item, "__index__"):
        raise IndexKindError(
            f"Indexer must have integer or boolean type, got indexer with type {type(item).__name__}: {item!r} (it "
            "may be a slice, None or Ellipsis, too)"
        )
    if isinstance(item, ArrayBase | np.ndarray | np.generic) and item.dtype.kind not in "iu":
        raise TypeError(f"Indexer must have integer or boolean type, got indexer with type {item.dtype.name}")


def _unknown_size(mask: Tracer) -> ConcretizationTypeError:
    return mask.unknown(
        "Array boolean indices must be concrete: the size of x[mask] depends on the mask's values",
        "Reductions of it work, such as hloom.numpy.sum(x[mask]), and functions of its single elements. Elsewhere use "
        "hloom.numpy.where(mask, x, 0) or the like.",
        NonConcreteBooleanIndexError,
    )


def _meant(items: list[Any]) -> str:
    """The kind of index that a list stands for: a tuple, if it has anything but integers and truth values in it."""
    return "tuple" if any(not isinstance(i, int | np.integer | np.bool_) for i in items) else "array"


def _window(item: Slice, size: int, wrap: bool) -> _Range | _Window:
    """A block: a range if its start is known and it fits."""
    if item.size > size:
        raise OperandError(f"{item} is larger than the dimension, of size {size}", "dslice_size")
    start = item.start
    if not isinstance(start, Tracer):
        start = operator.index(start)
        start += size if start < 0 and wrap else 0
        if 0 <= start <= size - item.size:
            return _Range(start, item.size, 1)
        outside = max(-1, min(start, size))  # any number out of bounds does
        return _Window(array_from_scalar(outside, index_dtype(size)), item.size)
    _check(start)
    return _computed(start, size, item.size, wrap)


def _computed(start: Value, size: int, count: int, wrap: bool) -> _Window:
    return _Window(start_index(start, size, index_dtype_of(start.aval.dtype, size), wrap), count)


def _entry(item: Any, size: int, wrap: bool) -> _Range | _Window:
    if isinstance(item, Slice):
        return _window(item, size, wrap)
    if isinstance(item, slice):
        for bound in (item.start, item.stop, item.step):
            if isinstance(bound, Tracer) and bound.to_concrete_value() is None:
                raise bound.unknown(
                    "Array slice indices must have static start/stop/step: the bounds of a slice must be known while "
                    "tracing",
                    "Use x[hloom.ds(start, size)] or hloom.lax.dynamic_slice_in_dim(x, start, size), of a constant "
                    "size, or make the bound static.",
                    NonConcreteSliceError,
                )
        bounds = [None if v is None else as_size(v) for v in (item.start, item.stop, item.step)]
        if any(map(is_symbolic, (size, *bounds))):
            return _Range(*load("..hlo.symbolic.slices", __package__).positions(slice(*bounds), size))
        start, stop, step = slice(*bounds).indices(size)
        return _Range(start, len(range(start, stop, step)), step)
    if isinstance(item, Tracer) and item.to_concrete_value() is None:
        return _computed(item, size, 1, wrap)
    number = as_size(item)
    return _Range(number + size if number < 0 and wrap else number, 1, 1)


def index_get(x: Any, index: Any) -> Value:
    """x[index]."""
    value = as_value(x)
    if _state.direct and isinstance(value, Array) and _is_basic(index) and not is_placed(value):
        if _is_put_off(value):
            return _put_off_part(value, index)
        try:
            if value.aval.is_extended:
                if current_context().debug_key_reuse:  # a slice is an operation
                    return _read(value, index, True, _CLIP, None)
                return _key_get(value, index)
            found = value._view[index]
        except IndexError:
            pass  # too many indices, or an integer out of bounds: left to the general way
        else:
            view = np.asarray(found)
            if view is found and value._view.nbytes > MAX_KEPT_ALIVE:
                view = detached(view)
            return Array(ShapedArray(found.shape, value.aval.dtype, value.aval.weak_type), view)
    return _read(value, index, True, _CLIP, None)


def _with_arrays(index: Any) -> Any:
    """The index with arrays instead of the objects that stand for them."""
    if type(index) is not tuple:
        return resolved(index)
    return tuple([resolved(item) for item in index]) if any(hasattr(i, "__jax_array__") for i in index) else index


def _items(index: Any) -> list[Any]:
    """The entries of an index; a tuple or a list in it is an array, of integers if it is empty."""
    if not isinstance(index, tuple):
        return [_spread_out(index)]
    return [_sequence(item) if isinstance(item, tuple | list) else _spread_out(item) for item in index]


def _spread_out(item: Any) -> Any:
    """A block with a stride as the array of its positions; anything else itself."""
    if not isinstance(item, Slice) or item.stride == 1:
        return item
    return as_value(np.arange(item.size, dtype=np.int32) * item.stride) + item.start


def _sequence(item: Any) -> Any:
    found = asarray(item)
    return found if found.aval.size else found.astype(_INDEX)


def _array_index(shape: tuple[int, ...], index: Any, wrap: bool) -> ArrayIndex | None:
    """An index that has arrays in it, or None."""
    items = _items(index)
    if not any(map(is_array_index, items)):
        return None
    for item in items:
        _check(item)
    found = split_index(shape, items)
    report_bounds(found, shape, wrap)
    if current_context().check_static_indices:
        for item, axis in zip(found.arrays, found.axes, strict=True):
            if isinstance(item, int | np.integer):
                start = int(item) + (shape[axis] if item < 0 and wrap else 0)
                check_static_index(item, start, axis, shape[axis])
    return found


def _read(x: Value, index: Any, wrap: bool, mode: GatherScatterMode, fill_value: Any) -> Value:
    """x[index]. A Selection takes the place of an array if the index has a mask that is not known."""
    try:
        index = _with_arrays(index)
    except ConcretizationTypeError as error:
        read = functools.partial(_read, x, wrap=wrap, mode=mode, fill_value=fill_value)
        return Selection.at(index, read, error)  # type: ignore[return-value]
    masked = _mask_index(x.aval.shape, index)
    if masked is not None and not x.aval.is_extended:
        block = _get(x, parse_index(x.aval.shape, masked.basic, wrap), mode, fill_value)
        mask: Any = masked.mask
        refusal = _unknown_size(mask)
        return Selection.of(block, masked.start, masked.place, mask, refusal)  # type: ignore[return-value]
    arrays = _array_index(x.aval.shape, index, wrap)
    if arrays is None:
        return _get(x, parse_index(x.aval.shape, index, wrap), mode, fill_value)
    return gathered(_block_of(x, arrays), arrays, wrap, mode, fill_value)


def _block_of(x: Value, index: ArrayIndex) -> Value:
    """The part that the slices of the index select."""
    return x if index.is_whole else _get(x, parse_index(x.aval.shape, index.basic), _CLIP, None)


def _get(x: Value, index: _Index, mode: GatherScatterMode, fill_value: Any) -> Value:
    """The elements at the index. Every integer is out of bounds of an empty dimension."""
    shape = x.aval.shape
    empty = [axis for axis, (size, dropped) in enumerate(zip(shape, index.dropped)) if dropped and not size]
    if empty:
        if mode is GatherScatterMode.FILL_OR_DROP:
            return out_of_bounds(lax.full_like(x, 0, shape=index.result_shape), fill_value)
        raise index_of_nothing(empty[0])
    if 0 in index.result_shape:  # also where a boolean index is false
        return lax.full_like(x, 0, shape=index.result_shape)
    found = lax.reshape(_block(x, _clamped(index, shape)), index.result_shape)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return found
    index = _decided(index, shape)
    if not _in_bounds(index, shape):
        return out_of_bounds(found, fill_value)
    inside = _dynamic_in_bounds(index, shape)
    return found if inside is None else lax.select(inside, found, out_of_bounds(found, fill_value))


def _check_fill(fill_value: Any) -> Any:
    """A fill value, which is a scalar; ValueError if it is not."""
    if rank_of(fill_value):
        raise ValueError("fill_value of x.at[...].get() must be a scalar")
    return fill_value


def _key_get(keys: Array, index: Any) -> Value:
    """A basic index, of whole elements of the storage; IndexError as NumPy raises it."""
    storage, rank = keys._storage, keys.aval.ndim
    items = index if type(index) is tuple else (index,)
    element = (slice(None),) * (storage.aval.ndim - rank)
    found = storage._view[(*items, *element) if Ellipsis in items else (*items, Ellipsis, *element)]
    words = Array(ShapedArray(found.shape, storage.aval.dtype), found)
    return overlaid(words, ShapedArray(found.shape[: found.ndim - len(element)], keys.aval.dtype))


_state = thread_state()


def _is_put_off(array: Array) -> bool:
    """Whether reading a part of the array is deferred. NumPy's view of a small array is done sooner."""
    return _state.recorder is not None and (is_absent(array) or array.nbytes > MAX_KEPT_ALIVE)


def _put_off_part(x: Array, index: Any) -> Value:
    """x[index] as operations on the whole of x. A basic index is interpreted once for each shape."""
    if x.aval.is_extended or 0 in x.aval.shape or current_context().check_static_indices:
        return _read(x, index, True, _CLIP, None)
    items = index if type(index) is tuple else (index,)
    form = tuple([(i.start, i.stop, i.step) if type(i) is slice else i for i in items])
    part, backwards, shape = _part(x.aval.shape, form)
    weak = x.aval.weak_type
    found: Value = x if part is None else bind(Opcode.SLICE, (x,), part, weak_type=weak)
    if backwards:
        found = lax.rev(found, backwards)
    return found if found.aval.shape == shape else lax.reshape(found, shape)


@functools.lru_cache(maxsize=4096)
def _part(shape: tuple[int, ...], form: Any) -> tuple[SliceAttributes | None, tuple[int, ...], tuple[int, ...]]:
    """The slice (None: all), the dimensions that are reversed then, and the shape at last."""
    index = _clamped(parse_index(shape, tuple([slice(*i) if type(i) is tuple else i for i in form])), shape)
    ranges = [e for e in index.entries if isinstance(e, _Range)]
    limits = tuple([e.low + (e.count - 1) * abs(e.step) + 1 if e.count else e.low for e in ranges])
    starts, strides = tuple([e.low for e in ranges]), tuple(index.strides)
    is_whole = limits == shape and not any(starts) and {*strides} <= {1}
    part = None if is_whole else SliceAttributes(starts, limits, strides)
    return part, tuple(index.reversed_dimensions), index.result_shape


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
        _Range(smaller(larger(e.start, 0), size - 1), 1, 1) if dropped and isinstance(e, _Range) else e
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
    if any(is_symbolic(n) for e in ranges for n in (e.start, e.count, e.step)):
        return _symbolic_block(x, ranges)
    limits = [e.low + (e.count - 1) * abs(e.step) + 1 if e.count else e.low for e in ranges]
    return lax.rev(lax.slice(x, [e.low for e in ranges], limits, index.strides), index.reversed_dimensions)


def _symbolic_block(x: Value, ranges: list[_Range]) -> Value:
    """The block of ranges with symbolic numbers, one dimension after the other: slices where these are known to be in
    bounds, for all sizes, else elements at computed indices."""
    for d, e in enumerate(ranges):
        size = x.aval.shape[d]
        if (e.start, e.count, e.step) == (0, size, 1):
            continue
        if e.step == 1 and _lies_in(e.start, e.count, size):
            x = lax.slice_in_dim(x, e.start, e.start + e.count, 1, d)
        elif (e.start, e.count, e.step) == (size - 1, size, -1):
            x = lax.rev(x, (d,))
        else:
            places = as_value(e.start) + as_value(e.step) * lax.iota(dtypes.default_int(), e.count)
            whole = (slice(None),) * x.aval.ndim
            x = gathered(x, ArrayIndex(whole, (d,), (d,), (places,), (e.count,), d), False, _CLIP, None)
    return x


def _lies_in(start: Any, count: Any, size: Any) -> bool:
    """Whether `count` elements from `start` are known to be elements of a dimension of `size`."""
    try:
        return bool(start >= 0 and start + count <= size)
    except InconclusiveDimensionOperation:
        return False


def _starts(entries: tuple[_Range | _Window, ...]) -> list[Value]:
    """Start indices as scalars of one dtype: int64 if one of them is 64 bits wide or beyond int32, else int32."""
    dtype = index_dtype(max([e.low for e in entries if isinstance(e, _Range)], default=0))
    if any(isinstance(e, _Window) and e.start.aval.dtype.itemsize == 8 for e in entries):
        dtype = np.dtype(np.int64)
    return [
        array_from_scalar(e.start, dtype) if isinstance(e, _Range) else convert(e.start, dtype, False) for e in entries
    ]


# ---- x.at[index].set(y)

Mode = GatherScatterMode | str | None


class Options(TypedDict, total=False):
    """The options of all methods of `x.at[index]` besides `mode`."""

    indices_are_sorted: bool
    unique_indices: bool
    wrap_negative_indices: bool
    out_sharding: Any


def _wraps(options: Options) -> bool:
    """Whether negative integers count from the end; TypeError for an option that does not exist."""
    for name in options:
        if name not in Options.__annotations__:
            known = ", ".join(("mode", *Options.__annotations__))
            raise TypeError(f"x.at[...]: unexpected option {name!r}; known: {known}")
    place = options.get("out_sharding")
    if place is not None and not isinstance(place, Sharding | PartitionSpec):
        raise TypeError(f"x.at[...]: out_sharding must be a sharding or a PartitionSpec, not {place!r}")
    return options.get("wrap_negative_indices", True)


@boundaries
class IndexUpdateHelper:
    """`x.at`: index it, as in ``x.at[2].set(0)``; see the class of `x.at[index]`, `IndexUpdate`.

    >>> import hloom.numpy as jnp
    >>> x = jnp.arange(4)
    >>> x.at[1:3].set(0)
    Array([0, 0, 0, 3], dtype=int32)
    """

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> IndexUpdate:
        return IndexUpdate(as_value(self._array), index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self._array!r})"


@boundaries
class IndexUpdate:
    """`x.at[index]`: each method gives a copy of x in which the elements named by the index are changed.

    Options, for all methods:

    mode: the treatment of integers out of bounds. "clip": moved into bounds. "drop" or "fill": nothing is written
        there, and `fill_value` is read. "promise_in_bounds": as "clip" when reading, as "drop" when writing. Or a
        `hloom.lax.GatherScatterMode`. By default reading clips, writing drops.
    wrap_negative_indices: False makes negative integers out of bounds.
    indices_are_sorted, unique_indices: promises of the user about indices that are arrays. Without effect here.

    >>> x = jnp.zeros(3)
    >>> x.at[1].set(5), x.at[jnp.array([0, 0])].add(1)
    (Array([0., 5., 0.], dtype=float32), Array([2., 0., 0.], dtype=float32))
    """

    __slots__ = ("_array", "_index")

    def __init__(self, array: Value, index: Any) -> None:
        self._array = array
        self._index = _with_arrays(index)

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self._array!r}, {self._index!r})"

    def get(self, *, mode: Mode = None, fill_value: Any = None, **options: Unpack[Options]) -> Value:
        """x[index], with a choice of the value for an index out of bounds: `mode`, see the class.

        `fill_value`: the value for places out of bounds in mode "fill" (by default NaN, the least signed or largest
        unsigned integer, True). x[index] itself clips.

        >>> import hloom.numpy as jnp
        >>> x = jnp.array([1.0, 2.0, 3.0])
        >>> x.at[jnp.array([0, 7])].get(mode="fill"), x[jnp.array([0, 7])]
        (Array([ 1., nan], dtype=float32), Array([1., 3.], dtype=float32))
        """
        found = _CLIP if mode is None else GatherScatterMode.from_any(mode)
        fill_value = None if fill_value is None else _check_fill(fill_value)
        wraps = _wraps(options)
        return computed_in(
            options.get("out_sharding"), ".at.get", lambda: _read(self._array, self._index, wraps, found, fill_value)
        )

    def set(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] = values: a copy, which costs nothing under jit where x is not used any more.

        Values broadcast to the shape of x[index] and are converted to x's dtype. Where an element is named several
        times, one of its values is kept.

        >>> import hloom.numpy as jnp
        >>> x = jnp.array([[1, 2], [3, 4]])
        >>> x.at[:, 0].set(0)
        Array([[0, 2],
               [0, 4]], dtype=int32)
        >>> x.at[x > 2].set(-1)
        Array([[ 1,  2],
               [-1, -1]], dtype=int32)

        Under jit a mask may be traced, for all methods. Values with an entry for each true element go to these in
        order; if there are too few, the other elements stay as they are.
        """
        return self._update(values, _SET, mode, options)

    def add(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] += values; where an element is named several times, all its values are added, unlike in
        NumPy.

        >>> import hloom.numpy as jnp
        >>> jnp.zeros(3).at[jnp.array([0, 2, 2])].add(jnp.array([1, 10, 100]))
        Array([  1.,   0., 110.], dtype=float32)
        """
        return self._update(values, _ADD, mode, options)

    def subtract(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] -= values; where an element is named several times, all its values are subtracted.

        >>> import hloom.numpy as jnp
        >>> jnp.array([5, 5, 5]).at[1:].subtract(2)
        Array([5, 3, 3], dtype=int32)
        """
        return self._update(values, _SUB, mode, options)

    def multiply(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] *= values; where an element is named several times, it is multiplied by all. `mul` is the
        same.

        >>> import hloom.numpy as jnp
        >>> jnp.array([1, 2, 3]).at[-1].multiply(10)
        Array([ 1,  2, 30], dtype=int32)
        """
        return self._update(values, _MUL, mode, options)

    mul = multiply

    def divide(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] /= values. Integers become floats everywhere, so that all elements have one dtype.

        >>> import hloom.numpy as jnp
        >>> jnp.array([2, 4, 6]).at[0].divide(4)
        Array([0.5, 4. , 6. ], dtype=float32)
        """
        if self._has_arrays() or not dtypes.is_inexact(self._array.aval.dtype):
            return divide(self._array, self._beside_ones(values, mode, options))
        return self._update(self._converted(values), _Operation(lax.div), mode, options)

    def power(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] **= values. Booleans become integers everywhere.

        >>> import hloom.numpy as jnp
        >>> jnp.array([2, 3, 4]).at[1:].power(2)
        Array([ 2,  9, 16], dtype=int32)
        """
        if self._has_arrays() or self._array.aval.dtype.kind == "b":
            return power(self._array, self._beside_ones(values, mode, options))
        return self._update(self._converted(values), _Operation(power), mode, options)

    def _converted(self, values: Any) -> Value:
        return convert(_in_one_dtype(self._array, values, lax.mul)[0], self._array.aval.dtype, False)

    def _beside_ones(self, values: Any, mode: Mode, options: Options) -> Value:
        """Values of x's dtype at the index, and 1 at all other places; their product where an element is named several
        times."""
        ones = lax.full_like(self._array, 1)
        update = IndexUpdate(ones, self._index)
        write = update.multiply if self._has_arrays() else update.set
        return write(self._converted(values), mode=mode, **options)

    def _has_arrays(self) -> bool:
        return any(map(is_array_index, _items(self._index)))

    def min(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] = minimum(x[index], values): of all its values, where an element is named several times.

        >>> import hloom.numpy as jnp
        >>> jnp.array([5, 5, 5]).at[jnp.array([0, 0, 2])].min(jnp.array([3, 4, 9]))
        Array([3, 5, 5], dtype=int32)
        """
        return self._update(values, _MIN, mode, options)

    def max(self, values: Any, *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] = maximum(x[index], values): of all its values, where an element is named several times.

        >>> import hloom.numpy as jnp
        >>> jnp.array([5, 5, 5]).at[jnp.array([0, 0, 2])].max(jnp.array([7, 9, 3]))
        Array([9, 5, 5], dtype=int32)
        """
        return self._update(values, _MAX, mode, options)

    def apply(self, func: Callable[[Any], Any], *, mode: Mode = None, **options: Unpack[Options]) -> Value:
        """x with x[index] = func(x[index]); the function takes arrays or single elements, and must work on both.

        >>> import hloom.numpy as jnp
        >>> jnp.array([1.0, 4.0, 9.0]).at[1:].apply(jnp.sqrt)
        Array([1., 2., 3.], dtype=float32)
        """

        def scatter(x: Value, indices: Value, new: Value, numbers: Any, mode: Mode) -> Value:
            return lax.scatter_apply(x, indices, func, numbers, update_shape=new.aval.shape, mode=mode)

        operation = _Operation(lambda old, new: func(old), scatter)
        return self._update(lax.full_like(self._array, 0, shape=()), operation, mode, options)

    def _update(self, values: Any, operation: _Operation, mode: Mode, options: Options) -> Value:
        """The values are promoted with x, combined with its elements, and the results get x's dtype."""
        if options.get("out_sharding") is not None:
            place = options.pop("out_sharding")
            return computed_in(place, ".at.update", lambda: self._update(values, operation, mode, options))
        x, wrap = self._array, _wraps(options)
        masked = _mask_index(x.aval.shape, self._index)
        is_selected = masked is not None and isinstance(values, Selection)
        if masked is not None and is_selected:
            values = values.at_mask(masked.mask)
        arrays = None if masked is not None else _array_index(x.aval.shape, self._index, wrap)
        if arrays is not None:
            assert operation.scatter is not None
            return _scatter(x, arrays, values, operation.scatter, mode, wrap)
        clips = GatherScatterMode.from_any(mode) is _CLIP
        index = parse_index(x.aval.shape, self._index if masked is None else masked.basic, wrap)
        new, combine = _in_one_dtype(x, values, operation.combine)
        if 0 in index.result_shape:
            return x
        if masked is None:
            new = _at_shape(new, index.result_shape)
        else:
            new, mask = masked.spread(index.result_shape, new, is_selected)
            combine = _where(lax.reshape(mask, index.sizes), combine)
        if clips:
            index = _clamped(index, x.aval.shape)
        else:
            index = _decided(index, x.aval.shape)
        if 0 in x.aval.shape or not _in_bounds(index, x.aval.shape):
            return x
        new = lax.reshape(new, index.sizes)
        return _changed(x, _forward(index), lax.rev(new, index.reversed_dimensions), combine, clips)


def _mask_index(shape: tuple[int, ...], index: Any) -> MaskIndex | None:
    """An index that has a traced mask in it, or None."""
    items = _items(index)
    return mask_index(shape, items) if any(map(is_traced_mask, items)) else None


def _where(mask: Value, combine: Combine) -> Combine:
    """`combine` for the elements of a mask; others stay as they are."""
    return lambda old, new: lax.select(mask, combine(old, new), old)


def _at_shape(new: Value, shape: tuple[int, ...]) -> Value:
    """Values for x[index], broadcast to its shape; OperandError if they do not fit. Values for an index that names no
    element may have any shape, as in JAX."""
    if new.aval.shape and lax.broadcast_shapes(new.aval.shape, shape) != shape:
        raise OperandError(
            f"x.at[...]: values of shape {new.aval.shape} do not broadcast to the shape of x[...], which is {shape}",
            "at_shape",
        )
    return broadcast_to_shape(new, shape)


Combine = Callable[[Value, Value], Value]


@dataclass(frozen=True, slots=True)
class _Operation:
    """How new values are combined with old ones: one after the other, and where arrays name the elements."""

    combine: Combine
    scatter: Scatter | None = None


_SET = _Operation(lambda old, new: new, lax.scatter)
_ADD = _Operation(lax.add, lax.scatter_add)
_SUB = _Operation(lax.sub, lax.scatter_sub)
_MUL = _Operation(lax.mul, lax.scatter_mul)
_MIN = _Operation(lax.min, lax.scatter_min)
_MAX = _Operation(lax.max, lax.scatter_max)


def _scatter(x: Value, index: ArrayIndex, values: Any, scatter: Scatter, mode: Mode, wrap: bool) -> Value:
    """The block that the slices leave, with the values in it, written back."""
    own, weak = x.aval.dtype, x.aval.weak_type
    new, _ = _in_one_dtype(x, values, lax.add)
    block = _block_of(x, index)
    shape = index.result_shape(block.aval.shape)
    if 0 in shape:
        return x
    new = _at_shape(new, shape)
    changed = scattered(convert(block, new.aval.dtype, weak), index, new, scatter, wrap, mode)
    changed = convert(changed, own, weak)
    if index.is_whole:
        return changed
    place = parse_index(x.aval.shape, index.basic)
    if 0 in place.result_shape:
        return x
    changed = lax.rev(lax.reshape(changed, place.sizes), place.reversed_dimensions)
    return _changed(x, _forward(place), changed, _SET.combine, False)


def _in_one_dtype(x: Value, values: Any, combine: Combine) -> tuple[Value, Combine]:
    """The values as an array, and `combine` with a result of x's dtype.

    Values of a dtype that does not promote to x's (floats into integers) are combined in the common dtype and then
    cut to x's: a FutureWarning, as JAX will refuse them. TypePromotionError if there is no common dtype.
    """
    given = values if isinstance(values, ArrayBase | bool | int | float | complex) else asarray(values)
    own, weak = x.aval.dtype, x.aval.weak_type
    if type(given) is int and dtypes.is_integer(own) and not _fits(given, dtypes.default_int()) and _fits(given, own):
        given = array_from_scalar(given, own)
    kind = dtypes.type_of(given)
    common, _ = dtypes.promote([dtypes.type_of(x), kind])
    if common is not own:
        warn_user(
            f"x.at[...]: scatter inputs have incompatible types: values of {kind[0].name} are converted to {own.name}, "
            "the dtype of x, which cannot hold "
            f"all of them: later versions of JAX refuse this. Convert them, as in values.astype({own.name!r}), or x.",
            FutureWarning,
        )
    return to_dtype(given, common, False), (
        lambda old, new: convert(combine(convert(old, common, False), new), own, weak)
    )


def _fits(number: int, dtype: np.dtype[Any]) -> bool:
    info = dtypes.iinfo(dtype)
    return bool(info.min <= number <= info.max)


def _changed(x: Value, index: _Index, new: Value, combine: Combine, clips: bool) -> Value:
    """x with combine(old, new) at a forward index; `new` has all dimensions of the array."""
    if index.has_steps:
        if index.is_dynamic:  # the block that the integers choose, changed and written back
            row_index = _only_values(index, x.aval.shape)
            only_ranges = _only_ranges(index)
            return _changed(x, row_index, new, lambda row, n: _spread(row, only_ranges, n, combine), clips)
        return _spread(x, index, new, combine)
    old = _block(x, index)
    block = combine(old, new)
    inside = None if clips else _dynamic_in_bounds(index, x.aval.shape)
    if inside is not None:
        block = lax.select(inside, block, old)
    return write_block(x, block, _starts(index.entries))


def _spread(x: Value, index: _Index, new: Value, combine: Callable[[Value, Value], Value]) -> Value:
    """For steps other than 1: the changed elements spread over the array by padding, and chosen by a mask."""
    config = []
    for e, size in zip(index.entries, x.aval.shape, strict=True):
        assert isinstance(e, _Range)
        config.append((e.start, size - 1 - (e.start + (e.count - 1) * e.step), e.step - 1))
    mask = lax.pad(lax.full(index.sizes, True, np.bool_), np.False_, config)
    block = combine(_block(x, index), new)
    return lax.select(mask, lax.pad(block, lax.full_like(block, 0, shape=()), config), x)


def _only_values(index: _Index, shape: tuple[int, ...]) -> _Index:
    """The index with ranges replaced by whole dimensions."""
    entries = [_Range(0, size, 1) if isinstance(e, _Range) else e for e, size in zip(index.entries, shape)]
    return _Index(tuple(entries), index.dropped, index.result_shape)


def _only_ranges(index: _Index) -> _Index:
    """The index into the result of `_only_values`: computed integers have become 0."""
    entries = [e if isinstance(e, _Range) else _Range(0, e.count, 1) for e in index.entries]
    return _Index(tuple(entries), index.dropped, index.result_shape)


def _decided(index: _Index, shape: tuple[int, ...]) -> _Index:
    """The index, with integers that symbolic sizes may or may not exceed as ones that the program compares."""
    entries = [
        _Window(as_value(e.start))
        if dropped and isinstance(e, _Range) and is_symbolic(size) and not _lies_in(e.start, e.count, size)
        else e
        for e, dropped, size in zip(index.entries, index.dropped, shape, strict=True)
    ]
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
            inside = (e.start >= 0) & (e.start <= size - e.count)
            result = inside if result is None else result & inside
    return result


def _forward(index: _Index) -> _Index:
    """The same block, each dimension counted upwards."""
    entries = [_Range(e.low, e.count, abs(e.step)) if isinstance(e, _Range) else e for e in index.entries]
    return _Index(tuple(entries), index.dropped, index.result_shape)
