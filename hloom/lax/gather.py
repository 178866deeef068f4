"""Gather and scatter: windows at computed indices, many at a time. Names and the meaning of arguments follow jax.lax.

An index is a vector along the last dimension of the indices. `GatherScatterMode` selects the treatment of windows that
do not fit into the array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..hlo.builder import make_computation, make_instruction, make_parameter
from ..hlo.element_type import ElementType, element_type_of
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ..hlo.shape import Shape
from ..hlo.support.loading import load
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.extended_ops import filled
from ..tracer.arrays.indices import clamped, gather_of, holding, where_fits
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind
from ..tracer.errors import OperandError, UnsupportedError
from ..tracer.ops import convert, full, last_of_two, reinterpret_weak
from ..tracer.recording import returns_element, trace_to_computation
from ..tracer.source import function_line
from .indexing import GatherScatterMode
from .instructions import add, lt, rem, select
from .movement import broadcasted_iota, canonical_axis, canonical_shape, concatenate, expand_dims, full_like, reshape


class GatherDimensionNumbers(NamedTuple):
    """Which dimensions of operand, indices and result correspond in a `gather`.

    The result has the operand's slices along `offset_dims`, without `collapsed_slice_dims` (slices of size 1) and
    batching dimensions; its other dimensions are the indices' dimensions. Component k of an index is a start along
    dimension ``start_index_map[k]``. Along `operand_batching_dims` the slice is where the index itself is, along
    `start_indices_batching_dims`.

    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.array([[1, 2], [3, 4], [5, 6]]), jnp.array([[2], [0]]), numbers, slice_sizes=(1, 2))
    Array([[5, 6],
           [1, 2]], dtype=int32)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimensions of operand, indices and updates correspond in a `scatter`: a `gather` backwards.

    The updates have windows of the operand along `update_window_dims`, without `inserted_window_dims` (of size 1) and
    batching dimensions; their other dimensions are the indices' dimensions.

    >>> numbers = lax.ScatterDimensionNumbers((1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_add(jnp.zeros((3, 2)), jnp.array([[2], [0]]), jnp.ones((2, 2)), numbers)
    Array([[1., 1.],
           [0., 0.],
           [1., 1.]], dtype=float32)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: GatherScatterMode | str | None = None,
    fill_value: Any = None,
) -> Value:
    """The slices of `slice_sizes` that begin at `start_indices`.

    A slice that does not fit is moved into the operand, or with mode "fill" consists of `fill_value` (by default NaN,
    the lowest signed or the highest unsigned integer, True). `unique_indices`: a promise that is not needed here.

    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.array([[1, 2], [3, 4], [5, 6]]), jnp.array([[2], [0]]), numbers, slice_sizes=(1, 2))
    Array([[5, 6],
           [1, 2]], dtype=int32)
    """
    x, indices = as_value(operand), as_value(start_indices)
    handled = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    offset, collapsed, index_map, batching, index_batching = map(tuple, dimension_numbers)
    attributes = GatherAttributes(
        offset, collapsed, index_map, _vector_dimension("gather", indices), canonical_shape(slice_sizes),
        batching, index_batching, bool(indices_are_sorted),
    )  # fmt: skip
    found = bind(Opcode.GATHER, (x, indices), attributes, weak_type=x.aval.weak_type)
    if handled is not GatherScatterMode.FILL_OR_DROP:
        return found
    chosen = where_fits(found, indices, x.aval.shape, attributes, lambda like: out_of_bounds(like, fill_value))
    return reinterpret_weak(chosen, x.aval.weak_type)


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Value:
    """src[idxs[0][k], idxs[1][k], ...] along `axes`, for each k, in front of the other dimensions.

    idxs: a vector of integers for each axis; they count on from the start where they are out of bounds.

    >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), [jnp.array([0, 1]), jnp.array([1, 0])], axes=(0, 1))
    Array([2, 3], dtype=int32)
    """
    x, places = as_value(src), [canonical_axis(axis, as_value(src).aval.ndim) for axis in axes]
    columns = []
    for index, axis in zip(map(as_value, idxs), places, strict=True):
        index = holding(index, x.aval.shape[axis])
        size = full_like(index, x.aval.shape[axis])
        rest = rem(index, size)
        columns.append(expand_dims(select(lt(rest, full_like(rest, 0)), add(rest, size), rest), [1]))
    rank = x.aval.ndim - len(places) + 1
    numbers = GatherDimensionNumbers(tuple(range(1, rank)), tuple(places), tuple(places))
    return gather(x, concatenate(columns, 1), numbers, [1 if d in places else n for d, n in enumerate(x.aval.shape)])


def out_of_bounds(like: Value, fill_value: Any) -> Value:
    """An array of the value that reads out of bounds return, by default NaN, the least signed or largest unsigned
    integer, or True.

    A key out of bounds has all bits of its words set.
    """
    dtype = like.aval.dtype
    if fill_value is not None:
        return full_like(like, fill_value)
    if dtypes.is_extended(dtype):
        return filled(np.iinfo(np.uint32).max, like.aval)
    if dtypes.is_inexact(dtype):
        return full_like(like, np.nan)
    if dtype == np.bool_:
        return full_like(like, True)
    low, high = element_type_of(dtype).limits
    return full_like(like, high if dtypes.is_unsigned(dtype) else low)


def _vector_dimension(name: str, indices: Value) -> int:
    if not indices.aval.ndim or not dtypes.is_integer(indices.aval.dtype):
        raise OperandError(
            f"lax.{name}: indices must be integers, an index along their last dimension, not "
            f"{indices.aval.str_short()}\n  indices[..., None] makes scalars vectors.",
            f"{name}_indices",
        )
    return indices.aval.ndim - 1


def _scatter(
    name: str, combiner: HloComputation, x: Value, scatter_indices: Any, updates: Value,
    dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
    mode: GatherScatterMode | str | None,
) -> Value:  # fmt: skip
    indices = as_value(scatter_indices)
    if updates.aval.weak_type:
        updates = convert(updates, x.aval.dtype, False)
    window, inserted, index_map, batching, index_batching = map(tuple, dimension_numbers)
    attributes = ScatterAttributes(
        window, inserted, index_map, _vector_dimension(name, indices), combiner, batching, index_batching,
        bool(indices_are_sorted), bool(unique_indices),
    )  # fmt: skip
    if GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP:
        # Binding checks the operands; nothing uses its result.
        bind(Opcode.SCATTER, (x, indices, updates), attributes)
        places = gather_of(attributes, x.aval.shape, updates.aval.shape)
        indices = clamped(indices, x.aval.shape, places)
        attributes = replace(attributes, unique_indices=False)
    return bind(Opcode.SCATTER, (x, indices, updates), attributes, weak_type=x.aval.weak_type)


@lru_cache(maxsize=256)
def _combiner(opcode: Opcode, element_type: ElementType) -> HloComputation:
    """The computation of an element and an update: `opcode` on both."""
    x, y = (make_parameter(k, Shape.array(element_type)) for k in range(2))
    return make_computation(f"{opcode.value}_{element_type.value}", make_instruction(opcode, (x, y)), (x, y))


def _by(opcode: Opcode | None, x: Value) -> HloComputation:
    element_type = element_type_of(x.aval.storage.dtype)
    if opcode is None:
        return last_of_two(element_type)
    if x.aval.is_extended:
        raise OperandError(
            f"{opcode.value} does not accept dtype {x.aval.dtype.name}: its elements are moved and replaced only",
            "scatter_c10",
        )
    return _combiner(opcode, element_type)


def _scatter_by(
    name: str, opcode: Opcode | None, operand: Any, scatter_indices: Any, updates: Any, *options: Any
) -> Value:
    x, u = as_value(operand), as_value(updates)
    return _scatter(name, _by(opcode, x), x, scatter_indices, u, *options)


def scatter(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
) -> Value:  # fmt: skip
    """The operand with windows replaced by `updates`; of several at one element the last remains.

    A window that does not fit is dropped, or with mode "clip" moved into the operand.

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter(jnp.zeros(4), jnp.array([[1], [3]]), jnp.array([5.0, 7.0]), numbers)
    Array([0., 5., 0., 7.], dtype=float32)
    """
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter_by("scatter", None, operand, scatter_indices, updates, *options)


def scatter_add(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
) -> Value:  # fmt: skip
    """The operand with `updates` added to windows of it. Modes: see `scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[1], [1]]), jnp.array([5.0, 7.0]), numbers)
    Array([ 0., 12.,  0.], dtype=float32)
    """
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter_by("scatter_add", Opcode.ADD, operand, scatter_indices, updates, *options)


def scatter_sub(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
) -> Value:  # fmt: skip
    """The operand with `updates` subtracted from windows of it. Modes: see `scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_sub(jnp.array([3, 3]), jnp.array([[1], [1]]), jnp.array([2, 5]), numbers)
    Array([ 3, -4], dtype=int32)
    """
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter_by("scatter_sub", Opcode.SUBTRACT, operand, scatter_indices, updates, *options)


def scatter_mul(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
) -> Value:  # fmt: skip
    """The operand with windows of it multiplied by `updates`. Modes: see `scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_mul(jnp.array([3, 3]), jnp.array([[1], [1]]), jnp.array([2, 5]), numbers)
    Array([ 3, 30], dtype=int32)
    """
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter_by("scatter_mul", Opcode.MULTIPLY, operand, scatter_indices, updates, *options)


def scatter_min(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
) -> Value:  # fmt: skip
    """The smaller ones of `updates` and windows of the operand. Modes: see `scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_min(jnp.array([3, 3]), jnp.array([[0], [1]]), jnp.array([1, 7]), numbers)
    Array([1, 3], dtype=int32)
    """
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter_by("scatter_min", Opcode.MINIMUM, operand, scatter_indices, updates, *options)


def scatter_max(
    operand: Any, scatter_indices: Any, updates: Any, dimension_numbers: ScatterDimensionNumbers, *,
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: GatherScatterMode | str | None = None,
) -> Value:  # fmt: skip
    """The larger ones of `updates` and windows of the operand. Modes: see `scatter`.

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_max(jnp.array([3, 3]), jnp.array([[0], [1]]), jnp.array([1, 7]), numbers)
    Array([3, 7], dtype=int32)
    """
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter_by("scatter_max", Opcode.MAXIMUM, operand, scatter_indices, updates, *options)


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: GatherScatterMode | str | None = None,
) -> Value:
    """The operand with `func`, a function of a scalar, applied to windows of it, as often as an index occurs.

    `update_shape`: the dimensions that updates would have. `func` may use constants only from outside, unless the
    operand's elements are keys: these are changed window by window, and `func` is applied to a batch of them (`vmap`).

    >>> numbers = lax.ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> lax.scatter_apply(jnp.array([1, 2, 3]), jnp.array([[0], [2]]), lambda x: -x, numbers, update_shape=(2,))
    Array([-1,  2, -3], dtype=int32)
    """
    x = as_value(operand)
    scalar = ShapedArray((), x.aval.dtype)
    if x.aval.is_extended:
        sizes = canonical_shape(update_shape)
        return _applied_to_keys(x, as_value(scatter_indices), func, dimension_numbers, sizes, mode)

    def apply(values: list[Value]) -> list[Value]:
        found = as_value(func(values[0]))
        if found.aval.shape:
            raise OperandError(
                f"scatter_apply: {function_line(func)} returns {found.aval.str_short()}, not a scalar", "scatter_c10"
            )
        return [convert(found, x.aval.dtype, False)]

    traced = trace_to_computation(apply, [scalar, scalar], getattr(func, "__name__", "func"))
    if traced.captured:
        raise UnsupportedError(
            f"scatter_apply: {function_line(func)} uses values from outside; it may use constants only"
        )
    unused = full(ShapedArray(canonical_shape(update_shape), x.aval.dtype), 0)
    options = (dimension_numbers, indices_are_sorted, unique_indices, mode)
    return _scatter("scatter_apply", returns_element(traced.computation), x, scatter_indices, unused, *options)


def _applied_to_keys(
    x: Value,
    indices: Value,
    func: Callable[[Any], Any],
    numbers: ScatterDimensionNumbers,
    update_shape: tuple[int, ...],
    mode: GatherScatterMode | str | None,
) -> Value:
    """`scatter_apply` where HLO's scatter cannot say it: its computation changes words, and a key is several. A loop
    over the indices reads a window of keys, applies `func`, and writes it back; a window that does not fit is dropped
    where it is written."""
    batched, axes = tuple(numbers.operand_batching_dims), tuple(numbers.scatter_indices_batching_dims)
    places = indices.aval.shape[:-1]
    columns = [broadcasted_iota(indices.aval.dtype, (*places, 1), axis) for axis in axes]
    rows: Any = concatenate([indices, *columns], len(places)) if columns else indices
    rows = reshape(rows, (math.prod(places), rows.aval.shape[-1]))
    window = tuple(numbers.update_window_dims)
    inserted = tuple(sorted((*numbers.inserted_window_dims, *batched)))
    starts = (*numbers.scatter_dims_to_operand_dims, *batched)
    sizes = iter([update_shape[d] for d in window])
    slice_sizes = [1 if d in inserted else next(sizes) for d in range(x.aval.ndim)]
    kept = tuple(range(len(window)))
    reads = GatherDimensionNumbers(kept, inserted, starts)
    writes = ScatterDimensionNumbers(kept, inserted, starts)

    vmap = load("..autodiff.vmap", __package__).vmap  # with it come all transformations

    def step(keys: Any, row: Any) -> Any:
        old: Any = gather(keys, row, reads, slice_sizes, mode="clip")
        new = as_value(vmap(func)(reshape(old, (math.prod(old.aval.shape),))))
        if new.aval.dtype != x.aval.dtype or new.aval.ndim != 1:
            raise OperandError(
                f"scatter_apply: {function_line(func)} returns {new.aval.str_short()} for a batch of elements, not "
                f"{x.aval.dtype.name} scalars",
                "scatter_c10",
            )
        return scatter(keys, row, reshape(new, old.aval.shape), writes, mode=mode), None

    scan = load("..tracer.control_flow.scan", __package__).scan
    return x if 0 in update_shape else scan(step, x, rows)[0]
