"""Ops that move elements: broadcasts, reshapes, slices, and the like; gather, scatter, sort, top-k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType
from ..hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ..hlo.ops.movement import IotaAttributes
from ..hlo.ops.sort import SortAttributes
from ..lax.gather import GatherDimensionNumbers, ScatterDimensionNumbers
from ..tracer import dtypes, ops
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind, bind_multi
from ..tracer.recording import returns_element, trace_to_computation
from .atoms import Atom
from .evaluate import computation_of
from .primitives import primitive
from .rules import SHOWN, Body, Shown, as_hlo, define_as_hlo, show, show_as_hlo, shows


def broadcast_in_dim(operand: Atom, shape: Sequence[int], dimensions: Sequence[int]) -> Shown:
    """The equation."""
    params = {"shape": tuple(shape), "broadcast_dimensions": tuple(dimensions), "sharding": None}
    return Shown("broadcast_in_dim", [operand], params)


SHOWN[Opcode.BROADCAST] = lambda i, operands, body: broadcast_in_dim(
    operands[0], i.shape.dimensions, i.attributes.dimensions
)


@primitive("broadcast_in_dim")
def _bind_broadcast(
    x: Value, *sizes: Value, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> Value:
    if x.aval.size == math.prod(shape):  # it has new dimensions of size 1
        return ops.reshape(x, tuple(shape))
    kept = [k for k, (d, n) in enumerate(zip(broadcast_dimensions, x.aval.shape, strict=True)) if shape[d] == n]
    narrow = ops.reshape(x, [x.aval.shape[k] for k in kept])
    return ops.broadcast(narrow, tuple(shape), [broadcast_dimensions[k] for k in kept])


@SHOWN.register(Opcode.RESHAPE)
def _reshape(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """Dimensions of size 1 that come or go are shown as JAX writes them, other changes as a reshape."""
    before, after = i.operands[0].shape.dimensions, i.shape.dimensions
    if len(after) < len(before) and (gone := _inserted(after, before)) is not None:
        return Shown("squeeze", operands, {"dimensions": gone})
    if len(after) > len(before) and (new := _inserted(before, after)) is not None:
        return broadcast_in_dim(operands[0], after, [d for d in range(len(after)) if d not in new])
    return Shown("reshape", operands, {"new_sizes": after, "dimensions": None, "sharding": None})


def _inserted(small: Sequence[int], large: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of size 1 that `large` has more than `small`, from the end; None if they differ otherwise."""
    found, rest = [], list(small)
    for d in range(len(large) - 1, -1, -1):
        if rest and rest[-1] == large[d]:
            rest.pop()
        elif large[d] == 1:
            found.append(d)
        else:
            return None
    return None if rest else tuple(reversed(found))


@primitive("reshape")
def _bind_reshape(
    x: Value, *sizes: Value, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: None = None
) -> Value:
    return ops.reshape(x if dimensions is None else ops.transpose(x, tuple(dimensions)), tuple(new_sizes))


show(Opcode.TRANSPOSE, "transpose", lambda i: {"permutation": i.attributes.dimensions})
show(Opcode.REVERSE, "rev", lambda i: {"dimensions": i.attributes.dimensions})


@shows(Opcode.CONCATENATE, "concatenate", lambda i: {"dimension": i.attributes.dimension})
def _concatenate(*values: Value, dimension: int) -> Value:
    return ops.concatenate(values, dimension)


def _iota_params(i: HloInstruction) -> dict[str, Any]:
    params = {"dtype": i.shape.element.dtype, "shape": i.shape.dimensions, "dimension": i.attributes.iota_dimension}
    return {**params, "sharding": None}


@shows(Opcode.IOTA, "iota", _iota_params)
def _iota(*sizes: Value, dtype: Any, shape: Sequence[int], dimension: int, sharding: None = None) -> Value:
    declared = ops.array_shape(dtypes.requested_dtype(dtype, "iota"), tuple(shape))
    return bind(Opcode.IOTA, (), IotaAttributes(dimension), shape=declared)


def _pad_params(i: HloInstruction) -> dict[str, Any]:
    padding = i.attributes
    return {"padding_config": tuple(zip(padding.low, padding.high, padding.interior, strict=True))}


def _slice_params(i: HloInstruction) -> dict[str, Any]:
    where = i.attributes
    strides = where.strides if any(s != 1 for s in where.strides) else None
    return {"start_indices": where.start_indices, "limit_indices": where.limit_indices, "strides": strides}


show(Opcode.PAD, "pad", _pad_params)
show(Opcode.SLICE, "slice", _slice_params)


@shows(Opcode.DYNAMIC_SLICE, "dynamic_slice", lambda i: {"slice_sizes": i.attributes.dynamic_slice_sizes})
def _dynamic_slice(x: Value, *starts: Value, slice_sizes: Sequence[int]) -> Value:
    return ops.read_block(x, starts, tuple(slice_sizes))


@shows(Opcode.DYNAMIC_UPDATE_SLICE, "dynamic_update_slice")
def _dynamic_update_slice(x: Value, block: Value, *starts: Value) -> Value:
    return ops.write_block(x, block, starts)


@shows(Opcode.COPY, "copy")
def _copy(x: Value) -> Value:
    return bind(Opcode.COPY, (x,))


show_as_hlo(Opcode.BITCAST)


_MODE = "clip"
"""HLO's gather moves a slice that is outside of the array into it."""


def _has_last_index_vector(i: HloInstruction, indices: int) -> bool:
    return bool(i.attributes.index_vector_dim == i.operands[indices].shape.rank - 1)


@SHOWN.register(Opcode.GATHER)
def _gather(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    if not _has_last_index_vector(i, 1):
        return as_hlo(i, operands, body)
    numbers = GatherDimensionNumbers(
        *(a.offset_dims, a.collapsed_slice_dims, a.start_index_map),
        *(a.operand_batching_dims, a.start_indices_batching_dims),
    )
    params = {"dimension_numbers": numbers, "slice_sizes": a.slice_sizes, "indices_are_sorted": a.indices_are_sorted}
    return Shown("gather", operands, {**params, "unique_indices": False, "mode": _MODE, "fill_value": None})


@primitive("gather")
def _bind_gather(
    x: Value, indices: Value, *, dimension_numbers: Any, slice_sizes: Sequence[int], indices_are_sorted: bool = False,
    unique_indices: bool = False, mode: Any = _MODE, fill_value: Any = None,
) -> Value:  # fmt: skip
    n = dimension_numbers
    attributes = GatherAttributes(
        *(tuple(n.offset_dims), tuple(n.collapsed_slice_dims), tuple(n.start_index_map), indices.aval.ndim - 1),
        *(tuple(slice_sizes), tuple(n.operand_batching_dims), tuple(n.start_indices_batching_dims)),
        indices_are_sorted,
    )
    return bind(Opcode.GATHER, (x, indices), attributes, weak_type=x.aval.weak_type)


_SCATTERS = {
    Opcode.ADD: "scatter-add", Opcode.MULTIPLY: "scatter-mul", Opcode.MAXIMUM: "scatter-max",
    Opcode.MINIMUM: "scatter-min", Opcode.SUBTRACT: "scatter-sub",
}


@SHOWN.register(Opcode.SCATTER)
def _scatter(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    name = _scatter_name(a.to_apply) if len(operands) == 3 and _has_last_index_vector(i, 1) else None
    if name is None:
        return as_hlo(i, operands, body)
    numbers = ScatterDimensionNumbers(
        *(a.update_window_dims, a.inserted_window_dims, a.scatter_dims_to_operand_dims),
        *(a.input_batching_dims, a.scatter_indices_batching_dims),
    )
    update = None if name == "scatter" else body.nested(a.to_apply)
    flags = {"indices_are_sorted": a.indices_are_sorted, "unique_indices": a.unique_indices}
    params = {"dimension_numbers": numbers, **flags, "mode": "drop", "update_consts": (), "update_jaxpr": update}
    return Shown(name, operands, params)


def _scatter_name(update: HloComputation) -> str | None:
    root, parameters = update.root, update.parameters
    if root is parameters[1]:
        return "scatter"
    is_symmetric = root.opcode is not Opcode.SUBTRACT
    is_of_both = root.operands == parameters or (is_symmetric and root.operands == parameters[::-1])
    return _SCATTERS.get(root.opcode) if is_of_both else None


def _define_scatter(name: str, opcode: Opcode | None) -> None:
    @primitive(name)
    def apply(
        x: Value, indices: Value, updates: Value, *, dimension_numbers: Any, indices_are_sorted: bool = False,
        unique_indices: bool = False, mode: Any = "drop", update_jaxpr: Any = None, update_consts: Sequence[Any] = (),
    ) -> Value:  # fmt: skip
        def update(pair: list[Value]) -> list[Value]:
            return [pair[1] if opcode is None else bind(opcode, pair)]

        element = ShapedArray((), x.aval.dtype)
        computation = returns_element(trace_to_computation(update, [element, element], name).computation)
        n = dimension_numbers
        attributes = ScatterAttributes(
            *(tuple(n.update_window_dims), tuple(n.inserted_window_dims), tuple(n.scatter_dims_to_operand_dims)),
            *(indices.aval.ndim - 1, computation, tuple(n.operand_batching_dims)),
            *(tuple(n.scatter_indices_batching_dims), indices_are_sorted, unique_indices),
        )
        return bind(Opcode.SCATTER, (x, indices, updates), attributes, weak_type=x.aval.weak_type)


_define_scatter("scatter", None)
for _opcode, _name in _SCATTERS.items():
    _define_scatter(_name, _opcode)


# ---- sorting


@SHOWN.register(Opcode.SORT)
def _sort(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    params: dict[str, Any] = {"dimension": a.dimension, "is_stable": a.is_stable}
    if _is_ascending(a.to_apply):
        return Shown("sort", operands, {**params, "num_keys": 1})
    return Shown("sort", operands, {**params, "num_keys": 1, "comparator": body.nested(a.to_apply)})


def _is_ascending(comparator: HloComputation) -> bool:
    """By the first operand, in the total order of floats, or in the only order of integers."""
    root = comparator.root
    if root.opcode is not Opcode.COMPARE or root.operands != comparator.parameters[:2]:
        return False
    a = root.attributes
    is_total = not root.operands[0].shape.element.is_inexact or a.type is ComparisonType.TOTALORDER
    return a.direction is ComparisonDirection.LT and is_total


@primitive("sort", multiple_results=True)
def _bind_sort(
    *values: Value, dimension: int, is_stable: bool = True, num_keys: int = 1, comparator: Any = None
) -> list[Value]:
    def precedes(pairs: list[Value]) -> list[Value]:
        """Lexicographic: from the last key to the first, a key decides unless its elements are equal."""
        result = None
        for k in range(num_keys - 1, -1, -1):
            x, y = pairs[2 * k : 2 * k + 2]
            less = bind(Opcode.COMPARE, (x, y), _order(x, ComparisonDirection.LT))
            if result is not None:
                equal = bind(Opcode.COMPARE, (x, y), _order(x, ComparisonDirection.EQ))
                result = bind(Opcode.OR, (less, bind(Opcode.AND, (equal, result))))
            else:
                result = less
        assert result is not None, "a sort has a key"
        return [result]

    if comparator is None:
        elements = [ShapedArray((), v.aval.dtype) for v in values for _ in range(2)]
        computation = returns_element(trace_to_computation(precedes, elements, "comparator").computation)
    else:
        computation = computation_of(comparator)
    attributes = SortAttributes(dimension, computation, is_stable)
    return bind_multi(Opcode.SORT, values, attributes) if values[1:] else [bind(Opcode.SORT, values, attributes)]


def _order(x: Value, direction: ComparisonDirection) -> CompareAttributes:
    is_float = x.aval.dtype.kind not in "biu"
    return CompareAttributes(direction, ComparisonType.TOTALORDER if is_float else None)


@SHOWN.register(Opcode.TOPK)
def _top_k(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    if not i.attributes.largest:
        return as_hlo(i, operands, body)
    return Shown("top_k", operands, {"k": i.attributes.k, "axis": i.operands[0].shape.rank - 1})


define_as_hlo(Opcode.GATHER, Opcode.SCATTER, Opcode.TOPK)
