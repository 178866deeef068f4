"""Derivatives of gather and scatter.

A gather clamps its start indices, a scatter drops the windows that do not fit. So the transpose of a gather is a
scatter at clamped indices, and the transpose of a scatter is a gather with zeros for the dropped windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...hlo.builder import make_computation, make_parameter
from ...hlo.element_type import ElementType, element_type_of
from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ...hlo.shape import Shape
from ...hlo.sizes import smaller
from ...tracer.arrays.indices import clamped, fits, gather_of, index_dtype, iota, scatter_of, starts, where_fits
from ...tracer.aval import ShapedArray
from ...tracer.control_flow.scan import scan
from ...tracer.core import Value, bind, bind_multi
from ...tracer.ops import (
    broadcast,
    compare,
    convert,
    div,
    full,
    full_like,
    mul,
    neg,
    read_block,
    reshape,
    scalar,
    scalar_reducer,
    select,
    slice_,
    transpose,
    write_block,
    zeros,
)
from ..batches import Axis, all_with_batch
from ..jvp import FlatFunction, jvp_flat, moving_mask
from ..linearize import LINEARIZE, Linearized, linearized
from ..tangents import Linear, Operand, Tangent, Zero, instantiate
from .computations import apply_to_arrays, reducer_opcode
from .declared import raised
from .linear import linear
from .tables import ADD_TO, BATCH, JVP, TRANSPOSE

_O = Opcode

# --- gather

linear(_O.GATHER)


@TRANSPOSE.register(_O.GATHER)
def _gather_transpose(ct: Value, operands: Sequence[Operand], attributes: GatherAttributes, shape: Shape) -> Any:
    """A scatter into zeros, which adds the cotangent at the same indices."""
    return [_add_gathered(None, ct, operands, attributes, shape), None]


def _add_gathered(
    before: Value | None, ct: Value, operands: Sequence[Operand], attributes: GatherAttributes, shape: Shape
) -> Value:
    """The cotangent added at the indices, clamped in the same way."""
    array, indices = operands
    assert not isinstance(indices, Linear), "indices are integers: they have no tangents"
    if before is None:
        before = zeros(array.aval)
    left_out = (*attributes.collapsed_slice_dims, *attributes.operand_batching_dims)
    if any(attributes.slice_sizes[d] == 0 for d in left_out):
        return before  # slices of no elements: the result has nothing of the array
    indices = clamped(indices, array.aval.shape, attributes)
    return bind(_O.SCATTER, (before, indices, ct), scatter_of(attributes, _adder(ct.aval.dtype)))


ADD_TO[_O.GATHER] = _add_gathered


def _adder(dtype: np.dtype[Any]) -> HloComputation:
    return scalar_reducer(_O.ADD, element_type_of(dtype))


# --- scatter


def _gather_scattered(
    x: Value, indices: Value, updates: Sequence[int], attributes: ScatterAttributes, fill: float = 0
) -> Value:
    """The windows of `x` that receive updates of dimensions `updates`; `fill` for updates that are dropped."""
    sizes = x.aval.shape
    if any(u > 0 for u in updates) and 0 in sizes:
        return broadcast(scalar(fill, x.aval.dtype), updates, ())
    gather = gather_of(attributes, sizes, updates)
    found = bind(_O.GATHER, (x, indices), gather)
    return where_fits(found, indices, sizes, gather, lambda like: full_like(like, fill))


def _kind(attributes: ScatterAttributes) -> Opcode | str:
    """The combiner of a scatter into one array: an opcode, "update" for the update itself, "keep" for the element of
    the array, or "other"."""
    combiner = attributes.to_apply
    root = combiner.root
    if len(combiner.parameters) != 2:
        return "other"
    if root in combiner.parameters:
        return "update" if root is combiner.parameters[1] else "keep"
    if root.opcode is _O.SUBTRACT and root.operands == combiner.parameters:
        return _O.SUBTRACT
    opcode = reducer_opcode(combiner)
    return opcode if opcode in (_O.ADD, _O.MULTIPLY, _O.MAXIMUM, _O.MINIMUM) else "other"


@JVP.register(_O.SCATTER)
def _scatter_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ScatterAttributes, shape: Shape
) -> Any:
    """By the combiner. Addition and replacement: a scatter of the tangents. Extremes: the mean of the tangents of
    all values that are the extremum. Any other: its own derivative, one update after the other where indices
    repeat."""
    if _has_any_combiner(primals, tangents, attributes):
        results, moved = _several(primals, tangents, attributes)
        return (results, moved) if shape.is_tuple else (results[0], moved[0])
    (x, indices, updates), (t, _, t_updates) = primals, tangents
    kind = _kind(attributes)
    ans = bind(_O.SCATTER, primals, attributes)
    if kind is _O.ADD or kind is _O.SUBTRACT:
        if isinstance(t_updates, Zero):
            return ans, t
        added = t_updates if kind is _O.ADD else neg(t_updates)
        return ans, bind(_O.SCATTER, (instantiate(t), indices, added), _combined_by(attributes, _O.ADD, x))
    if kind == "update":
        return ans, bind(_O.SCATTER, (instantiate(t), indices, instantiate(t_updates)), attributes)
    if kind == "keep":
        return ans, t
    if kind is _O.MULTIPLY:
        return ans, bind(_O.SCATTER, (instantiate(t), indices, updates), attributes)
    return ans, _extremum_tangent(ans, primals, tangents, attributes)


def _has_any_combiner(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ScatterAttributes) -> bool:
    """Whether only the rule of the meaning holds."""
    if len(primals) != 3:
        return True
    kind = _kind(attributes)
    if kind is _O.MULTIPLY:
        return not isinstance(tangents[2], Zero)
    if kind in (_O.MAXIMUM, _O.MINIMUM):
        return primals[0].aval.dtype.kind == "c"
    return kind not in (_O.ADD, _O.SUBTRACT, "update", "keep")


def _combined_by(attributes: ScatterAttributes, opcode: Opcode, like: Value) -> ScatterAttributes:
    return replace(attributes, to_apply=scalar_reducer(opcode, element_type_of(like.aval.dtype)))


def _extremum_tangent(
    ans: Value, primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ScatterAttributes
) -> Tangent:
    """The mean of the tangents of all values that are the extremum: the array's own element and updates."""
    x, indices, updates = primals
    adding = _combined_by(attributes, _O.ADD, x)
    winner = _gather_scattered(ans, indices, updates.aval.shape, attributes)
    hits = convert(compare(updates, "EQ", winner), x.aval.dtype)
    kept = convert(compare(x, "EQ", ans), x.aval.dtype)
    count = bind(_O.SCATTER, (kept, indices, hits), adding)
    none = compare(count, "EQ", zeros(count.aval))  # where the result is NaN
    kept, count = (select(none, full_like(count, 1), v) for v in (kept, count))
    t, t_updates = tangents[0], tangents[2]
    found: Tangent = Zero(ans.aval) if isinstance(t, Zero) else mul(t, kept)
    if not isinstance(t_updates, Zero):
        found = bind(_O.SCATTER, (instantiate(found), indices, mul(t_updates, hits)), adding)
    return found if isinstance(found, Zero) else div(found, count)


def _several(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ScatterAttributes
) -> tuple[list[Value], list[Tangent]]:
    """Any combiner."""
    return jvp_flat(_meaning(primals, attributes), *_without_indices(primals, tangents))


def _without_indices(*operands: Sequence[Any]) -> list[list[Any]]:
    count = len(operands[0]) // 2
    return [[*of_all[:count], *of_all[count + 1 :]] for of_all in operands]


def _meaning(primals: Sequence[Value], attributes: ScatterAttributes) -> FlatFunction:
    """A scatter in other ops, as a function of arrays and updates: where no element is updated twice, gather, combine,
    and scatter the results. Else a loop."""
    count = len(primals) // 2
    indices = primals[count]

    def combined(values: list[Value]) -> list[Value]:
        arrays, updates = values[:count], values[count:]
        if not attributes.unique_indices:
            return _in_sequence(arrays, indices, updates, attributes)
        sizes = updates[0].aval.shape
        before = [_gather_scattered(x, indices, sizes, attributes) for x in arrays]
        after = apply_to_arrays(attributes.to_apply, [*before, *updates])
        return [
            bind(_O.SCATTER, (x, indices, a), replace(attributes, to_apply=update_computation(x.aval.hlo.element)))
            for x, a in zip(arrays, after, strict=True)
        ]

    return combined


def _linearize_scatter(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ScatterAttributes, shape: Shape
) -> Linearized | None:
    """The loop of a scatter with an order that matters has a part for the primals and one for the tangents."""
    if attributes.unique_indices or not _has_any_combiner(primals, tangents, attributes):
        return None
    values, moves = _without_indices(primals, tangents)
    return linearized(_meaning(primals, attributes), values, moving_mask(moves), "scatter")


LINEARIZE[_O.SCATTER] = _linearize_scatter


def _in_sequence(
    arrays: list[Value], indices: Value, updates: list[Value], attributes: ScatterAttributes
) -> list[Value]:
    """A scatter as a loop over its indices: each iteration combines one window of every array with its update."""
    sizes, window = arrays[0].aval.shape, attributes.update_window_dims
    if 0 in sizes or not updates[0].aval.size:
        return arrays
    gather = gather_of(attributes, sizes, updates[0].aval.shape)
    order = [*(d for d in range(len(updates[0].aval.shape)) if d not in window), *window]
    places = starts(clamped(indices, sizes, gather), attributes, len(sizes))
    count = places.aval.shape[0]
    rows = [reshape(transpose(u, order), (count, *gather.slice_sizes)) for u in updates]
    inside = fits(indices, sizes, gather)
    inside = full(ShapedArray((count,), np.dtype(np.bool_)), True) if inside is None else reshape(inside, (count,))

    def step(carry: list[Value], xs: Any) -> tuple[list[Value], None]:
        start, is_inside, *update = xs
        at = [reshape(slice_(start, [d], [d + 1]), ()) for d in range(len(sizes))]
        before = [read_block(x, at, gather.slice_sizes) if sizes else x for x in carry]
        after = apply_to_arrays(attributes.to_apply, [*before, *update])
        chosen = [select(is_inside, a, b) for a, b in zip(after, before, strict=True)]
        return [write_block(x, c, at) if sizes else c for x, c in zip(carry, chosen, strict=True)], None

    results, _ = scan(step, arrays, (places, inside, *rows))
    return list(results)


@lru_cache
def update_computation(element_type: ElementType) -> HloComputation:
    """The combiner of a scatter that replaces elements by updates."""
    shape = Shape.array(element_type)
    x, y = make_parameter(0, shape, "x"), make_parameter(1, shape, "y")
    return make_computation(f"update_{element_type.value}", y, (x, y))


@TRANSPOSE.register(_O.SCATTER)
def _scatter_transpose(ct: Any, operands: Sequence[Operand], attributes: ScatterAttributes, shape: Shape) -> Any:
    """For the updates: a gather of the cotangent. For the array: the cotangent, with zeros where it was
    overwritten."""
    kind = _kind(attributes)
    assert len(operands) == 3, f"a linear program has a scatter by {attributes.to_apply.name}"
    x, indices, updates = operands
    assert not isinstance(indices, Linear), "indices are integers: they have no tangents"
    if kind is _O.MULTIPLY:
        if isinstance(updates, Linear):
            raise TypeError("a scatter that multiplies by values that depend on the tangents is not linear")
        return [bind(_O.SCATTER, (ct, indices, updates), attributes), None, None]
    sizes = updates.aval.shape
    to_array = ct if isinstance(x, Linear) else None
    to_updates = _gather_scattered(ct, indices, sizes, attributes) if isinstance(updates, Linear) else None
    if kind is _O.ADD:
        return [to_array, None, to_updates]
    assert kind == "update", f"a linear program has a scatter by {kind}"
    if to_array is not None:
        to_array = bind(_O.SCATTER, (ct, indices, zeros(updates.aval)), attributes)
    if to_updates is not None and not attributes.unique_indices:
        last = _is_last(indices, ct.aval.shape, sizes, attributes)
        to_updates = select(last, to_updates, zeros(to_updates.aval))
    return [to_array, None, to_updates]


def _is_last(indices: Value, array: Sequence[int], updates: Sequence[int], attributes: ScatterAttributes) -> Value:
    """For each update whether it remains in the array: no later one replaces it. A scatter of numbers of the windows
    finds out."""
    window = attributes.update_window_dims
    batch = [d for d in range(len(updates)) if d not in window]
    sizes = [updates[d] for d in batch]
    dtype = index_dtype(math.prod(sizes))
    numbers = broadcast(reshape(iota(dtype, [math.prod(sizes)], 0), sizes), updates, batch)
    nobody = broadcast(scalar(-1, dtype), array, ())
    by_number = replace(attributes, to_apply=update_computation(element_type_of(dtype)))
    winner = bind(_O.SCATTER, (nobody, indices, numbers), by_number)
    return compare(_gather_scattered(winner, indices, updates, attributes, -1), "EQ", numbers)


# --- batching


@BATCH.register(_O.GATHER)
def _gather_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], a: GatherAttributes, shape: Shape
) -> tuple[Value, bool]:
    """A batch of arrays: slices have all of it. A batch of indices: more indices. Both: a batching dimension."""
    of_array, of_indices = batched
    whole, index_dims = axis.size, (0, *raised(a.start_indices_batching_dims))
    new = replace(a, offset_dims=raised(a.offset_dims))
    if of_array:
        new = replace(
            new,
            collapsed_slice_dims=raised(a.collapsed_slice_dims),
            start_index_map=raised(a.start_index_map),
            operand_batching_dims=raised(a.operand_batching_dims),
            slice_sizes=(whole, *a.slice_sizes),
        )
    if of_indices:
        new = replace(
            new,
            index_vector_dim=a.index_vector_dim + 1,
            start_indices_batching_dims=index_dims[1:],
            indices_are_sorted=False,
        )
    if of_array and of_indices:
        new = replace(
            new,
            operand_batching_dims=(0, *new.operand_batching_dims),
            start_indices_batching_dims=index_dims,
            slice_sizes=(smaller(whole, 1), *a.slice_sizes),
        )
    elif of_array:
        new = replace(new, offset_dims=(0, *new.offset_dims))
    return bind(_O.GATHER, operands, new), True


@BATCH.register(_O.SCATTER)
def _scatter_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], a: ScatterAttributes, shape: Shape
) -> tuple[Any, Any]:
    """A batch of arrays and updates: windows have all of it. With a batch of indices, a batching dimension."""
    count = len(operands) // 2
    given = all_with_batch(axis, operands, batched)
    given[count] = operands[count]
    new = replace(
        a,
        update_window_dims=raised(a.update_window_dims),
        inserted_window_dims=raised(a.inserted_window_dims),
        scatter_dims_to_operand_dims=raised(a.scatter_dims_to_operand_dims),
        input_batching_dims=raised(a.input_batching_dims),
    )
    if batched[count]:
        new = replace(
            new,
            index_vector_dim=a.index_vector_dim + 1,
            input_batching_dims=(0, *new.input_batching_dims),
            scatter_indices_batching_dims=(0, *raised(a.scatter_indices_batching_dims)),
            indices_are_sorted=False,
        )
    else:
        new = replace(new, update_window_dims=(0, *new.update_window_dims))
    if not shape.is_tuple:
        return bind(_O.SCATTER, given, new), True
    return bind_multi(_O.SCATTER, given, new), [True] * count
