"""Derivatives of reduce-window and select-and-scatter.

A sum over windows is linear, and its transpose is such a sum too. Where an op chooses an element of each window, the
flat index of the chosen one is computed first: tangents are then gathered from there, or scattered to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...hlo.errors import UnsupportedError
from ...hlo.opcode import Opcode
from ...hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ...hlo.ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from ...hlo.shape import Shape
from ...hlo.window import Window, WindowDimension, dilated, is_plain
from ...tracer.arrays.indices import index_dtype, iota, take_elements
from ...tracer.aval import ShapedArray
from ...tracer.core import Value, bind, bind_multi, eval_computation
from ...tracer.ops import (
    add,
    broadcast,
    compare,
    full_like,
    mul,
    pad,
    reshape,
    scalar,
    select,
    sum_all,
    zeros,
)
from ...tracer.recording import trace_to_computation
from ..batches import Axis
from ..batching import batch_flat
from ..jvp import FlatFunction, jvp_flat, moving_mask
from ..linearize import LINEARIZE, Linearized, linearized
from ..tangents import Linear, Operand, Tangent, Zero, instantiate
from .computations import apply_to_arrays, in_other_ops, reduce_in_halves, reducer_opcode
from .declared import aligned
from .tables import BATCH, JVP, TRANSPOSE

_O = Opcode


@JVP.register(_O.REDUCE_WINDOW)
def _reduce_window_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ReduceWindowAttributes, shape: Shape
) -> Any:
    """A sum: the sums of the tangents. An extreme: the tangent of the first extreme of each window. Any other
    reducer: the derivative of its applications, in halves."""
    if len(primals) != 2:
        results = bind_multi(_O.REDUCE_WINDOW, primals, attributes)
        return results, jvp_flat(lambda values: _in_halves(values, attributes, shape), primals, tangents)[1]
    (x, _), (t, t_init) = primals, tangents
    opcode = reducer_opcode(attributes.to_apply)
    ans = bind(_O.REDUCE_WINDOW, primals, attributes)
    if opcode is _O.ADD:
        start = instantiate(t_init)
        if isinstance(t, Zero):
            return ans, broadcast(start, shape.dimensions, ())
        return ans, bind(_O.REDUCE_WINDOW, (t, start), attributes)
    if opcode in (_O.MAXIMUM, _O.MINIMUM) and x.aval.dtype.kind != "c":
        chosen = _chosen(x, primals[1], attributes.window, opcode)
        return ans, _take_chosen(t, t_init, chosen)
    _, (tangent,) = jvp_flat(lambda values: _in_halves(values, attributes, shape), primals, tangents)
    return ans, tangent


@TRANSPOSE.register(_O.REDUCE_WINDOW)
def _reduce_window_transpose(
    ct: Any, operands: Sequence[Operand], attributes: ReduceWindowAttributes, shape: Shape
) -> Any:
    """Of sums alone: sums of the cotangent over the windows that each element was in."""
    if len(operands) != 2 or reducer_opcode(attributes.to_apply) is not _O.ADD:
        raise UnsupportedError("only a reduce-window by add is linear and can be transposed")
    x, init = operands
    to_array = None
    if isinstance(x, Linear):
        back = transposed_window(attributes.window, x.aval.shape, shape.dimensions)
        back = tuple(replace(w, reversed=False) for w in back)  # a sum has no direction
        zero = scalar(0, ct.aval.dtype)
        attributes = ReduceWindowAttributes(back, attributes.to_apply)
        to_array = zeros(x.aval) if 0 in shape.dimensions else bind(_O.REDUCE_WINDOW, (ct, zero), attributes)
    return [to_array, sum_all(ct) if isinstance(init, Linear) else None]


def transposed_window(window: Window, sizes: Sequence[int], places: Sequence[int]) -> Window:
    """The window that takes each of the `places` of `window` back to the elements, out of `sizes`, that it read.

    Strides become holes between the places, and holes between the elements become strides.
    """
    return tuple(_transposed(w, size, count) for w, size, count in zip(window, sizes, places, strict=True))


def _transposed(w: WindowDimension, size: int, count: int) -> WindowDimension:
    reach = (w.size - 1) * w.window_dilation
    low = reach - w.padding_low
    high = dilated(size, w.base_dilation) + reach - low - dilated(count, w.stride)
    return WindowDimension(w.size, w.base_dilation, low, high, w.stride, w.window_dilation, not w.reversed)


# --- the chosen element of each window


def _chosen(x: Value, init: Value, window: Window, opcode: Opcode) -> Value:
    """The flat index in x of the first extremum in each window; -1 where the init value is not exceeded."""
    direction = "GE" if opcode is _O.MAXIMUM else "LE"

    def keeps(values: list[Value]) -> Value:
        best, _, other, _ = values
        return bind(_O.OR, (compare(best, direction, other), compare(best, "NE", best)))  # a NaN remains

    return _reduced_with_index(x, init, window, keeps, "chosen")


def _selected(x: Value, attributes: SelectAndScatterAttributes) -> Value:
    """The flat index in x of the element that each window of a select-and-scatter selects; -1 if it has none."""

    def keeps(values: list[Value]) -> Value:
        best, its_index, other, _ = values
        (preferred,) = eval_computation(attributes.select, [best, other])
        return bind(_O.AND, (compare(its_index, "GE", zeros(its_index.aval)), preferred))

    return _reduced_with_index(x, scalar(0, x.aval.dtype), attributes.window, keeps, attributes.select.name)


def _reduced_with_index(x: Value, init: Value, window: Window, keeps: Any, name: str) -> Value:
    """The indices that remain of (value, flat index) pairs: keeps([value, index, next value, next index]) says whether
    the first pair remains. It begins with (init, -1)."""
    size = x.aval.size
    dtype = index_dtype(size)

    def better(values: list[Value]) -> list[Value]:
        first = keeps(values)
        return [select(first, values[0], values[2]), select(first, values[1], values[3])]

    types = [ShapedArray((), x.aval.dtype), ShapedArray((), dtype)]
    reducer = trace_to_computation(better, [*types, *types], f"{name}_with_index").computation
    places = reshape(iota(dtype, (size,), 0), x.aval.shape)
    attributes = ReduceWindowAttributes(window, reducer)
    return bind_multi(_O.REDUCE_WINDOW, (x, places, init, scalar(-1, dtype)), attributes)[1]


def _take_chosen(t: Tangent, t_init: Tangent, chosen: Value) -> Tangent:
    """The tangents of the chosen elements."""
    of_init = broadcast(instantiate(t_init), chosen.aval.shape, ())
    if isinstance(t, Zero) or not t.aval.size:
        return of_init
    found = take_elements(reshape(t, (t.aval.size,)), chosen)
    return select(compare(chosen, "LT", zeros(chosen.aval)), of_init, found)


# --- any reducer


def _in_halves(values: Sequence[Value], attributes: ReduceWindowAttributes, shape: Shape) -> list[Value]:
    """The windows written out along further dimensions, and reduced along these.

    A hole (padding, dilation) takes no part: a flag goes with each element, and the reducer combines two of them only
    where both are there.
    """
    count = len(values) // 2
    arrays, inits = list(values[:count]), values[count:]
    reducer, window = attributes.to_apply, attributes.window
    sizes = next(shape.leaves()).dimensions
    starts = [broadcast(init, sizes, ()) for init in inits]
    if 0 in sizes:
        return starts
    if not all(is_plain(w) for w in window):
        arrays.append(broadcast(scalar(True, np.dtype(np.bool_)), arrays[0].aval.shape, ()))
    arrays = [_with_holes(a, window) for a in arrays]

    def combine(first: list[Value], second: list[Value]) -> list[Value]:
        both = apply_to_arrays(reducer, [*first[:count], *second[:count]])
        if len(first) == count:
            return both
        (here,), (there,) = first[count:], second[count:]
        one = [select(here, a, b) for a, b in zip(first, second[:count])]
        either = bind(_O.OR, (here, there))
        together = bind(_O.AND, (here, there))
        return [*(select(together, b, o) for b, o in zip(both, one, strict=True)), either]

    for d, (w, places) in enumerate(zip(window, sizes, strict=True)):
        if w.size > 1 or places != arrays[0].aval.shape[d]:
            arrays = [_written_out(a, d, w, places) for a in arrays]
            arrays = [_without(a, d + 1) for a in reduce_in_halves(arrays, d + 1, combine)]
    if len(arrays) > count:
        starts.append(full_like(arrays[count], True))
    return combine(starts, arrays)[:count]


def _with_holes(x: Value, window: Window) -> Value:
    low, high = [w.padding_low for w in window], [w.padding_high for w in window]
    return pad(x, scalar(0, x.aval.dtype), low, high, [w.base_dilation - 1 for w in window])


def _written_out(x: Value, d: int, w: WindowDimension, places: int) -> Value:
    """x with dimension d as two: the places of the window, and the elements of the window at each."""
    sizes = x.aval.shape
    dtype = index_dtype(sizes[d])
    both = (places, w.size)
    first, offset = (
        mul(iota(dtype, both, k), broadcast(scalar(step, dtype), both, ()))
        for k, step in enumerate((w.stride, w.window_dilation))
    )
    offsets = tuple(k if k < d else k + 1 for k in range(len(sizes)) if k != d)
    slices = tuple(1 if k == d else size for k, size in enumerate(sizes))
    return bind(_O.GATHER, (x, add(first, offset)), GatherAttributes(offsets, (d,), (d,), 2, slices))


def _without(x: Value, d: int) -> Value:
    """x without dimension d, which has one element."""
    return reshape(x, [size for k, size in enumerate(x.aval.shape) if k != d])


# --- select-and-scatter


@JVP.register(_O.SELECT_AND_SCATTER)
def _select_and_scatter_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: SelectAndScatterAttributes, shape: Shape
) -> Any:
    """The selection does not move: the source is scattered to the same elements."""
    ans = bind(_O.SELECT_AND_SCATTER, primals, attributes)
    if isinstance(tangents[1], Zero) and isinstance(tangents[2], Zero):
        return ans, Zero(ans.aval)
    return ans, jvp_flat(_scattered(primals[0], attributes), primals[1:], tangents[1:])[1][0]


def _scattered(x: Value, attributes: SelectAndScatterAttributes) -> FlatFunction:
    """A select-and-scatter as a function of source and init value."""
    targets = _selected(x, attributes)
    into = ScatterAttributes((), (0,), (0,), len(targets.aval.shape), attributes.scatter)

    def scattered(values: list[Value]) -> list[Value]:
        source, init = values
        flat = broadcast(init, (x.aval.size,), ())
        return [reshape(bind(_O.SCATTER, (flat, targets, source), into), x.aval.shape)]

    return scattered


def _linearize_select_and_scatter(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: SelectAndScatterAttributes, shape: Shape
) -> Linearized | None:
    """As for a scatter in which the order may matter."""
    moving = moving_mask(tangents[1:])
    if reducer_opcode(attributes.scatter) is _O.ADD or not any(moving):
        return None
    found = linearized(_scattered(primals[0], attributes), primals[1:], moving, "select_and_scatter")
    unused = 0 if isinstance(tangents[0], Zero) else 1
    return replace(found, record=lambda linear, directions: found.record(linear, directions[unused:]))


LINEARIZE[_O.SELECT_AND_SCATTER] = _linearize_select_and_scatter
in_other_ops(_O.SELECT_AND_SCATTER, "its tangent is a scatter to the selected elements")


# --- batching


@BATCH.register(_O.SELECT_AND_SCATTER)
def _select_and_scatter_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: SelectAndScatterAttributes, shape: Shape
) -> tuple[Any, Any]:
    """With an init value for each element, a scatter into these."""
    if not batched[2]:
        return aligned(_O.SELECT_AND_SCATTER, axis, operands, batched, attributes, shape)
    (found,), (is_batched,) = batch_flat(
        lambda values: _scattered(values[0], attributes)(values[1:]), axis, operands, batched
    )
    return found, is_batched
