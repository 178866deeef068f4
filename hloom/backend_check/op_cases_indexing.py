"""Op cases of gather and scatter: every element and index type once, then all forms of dimension numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..hlo import (
    ElementType,
    HloComputation,
    Opcode,
    Shape,
    make_constant,
    make_tuple,
)
from ..hlo.ops.indexing import GatherAttributes, ScatterAttributes
from .computations import argmax_computation, binary_computation, computation, op
from .op_case import ALL, FLOATS, INTEGERS, Array, Dimensions, E, O, OpCase, make_case, shape_of, without
from .op_values import NDArray, Values, any_value, finite, positive, small_floats, small_integer


def unique_indices(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    """Different integers, from one below zero."""
    return (rng.permutation(int(np.prod(dims))) - t.is_signed).astype(t.dtype).reshape(dims)


_GATHERS: dict[str, tuple[Dimensions, Dimensions, GatherAttributes]] = {
    "elements": ((9,), (6, 1), GatherAttributes((), (0,), (0,), 1, (1,))),
    "implicit-vector": ((9,), (6,), GatherAttributes((), (0,), (0,), 1, (1,))),
    "rows": ((9, 5), (6, 1), GatherAttributes((1,), (0,), (0,), 1, (1, 5))),
    "columns": ((5, 9), (6, 1), GatherAttributes((0,), (1,), (1,), 1, (5, 1))),
    "part-of-rows": ((9, 5), (6, 2), GatherAttributes((1,), (0,), (0, 1), 1, (1, 3))),
    "swapped-map": ((9, 5), (6, 2), GatherAttributes((1,), (0,), (1, 0), 1, (1, 3))),
    "points": ((9, 5), (6, 2), GatherAttributes((), (0, 1), (0, 1), 1, (1, 1))),
    "windows": ((9, 7), (4, 2), GatherAttributes((1, 2), (), (0, 1), 1, (3, 2))),
    "windows-first": ((9, 7), (4, 2), GatherAttributes((0, 1), (), (0, 1), 1, (3, 2))),
    "windows-around": ((9, 7), (4, 2, 3), GatherAttributes((0, 3), (), (0, 1), 1, (3, 2))),
    "vector-first": ((9, 7), (2, 4, 3), GatherAttributes((1,), (1,), (0, 1), 0, (3, 1))),
    "embedding": ((11, 2, 3), (2, 4, 1), GatherAttributes((2, 3), (0,), (0,), 2, (1, 2, 3))),
    "embedding-of-one": ((11, 6), (1, 1), GatherAttributes((1,), (0,), (0,), 1, (1, 6))),
    "slice": ((9, 7), (2,), GatherAttributes((0, 1), (), (0, 1), 0, (3, 2))),
    "scalar-index": ((9, 7), (), GatherAttributes((0,), (0,), (0,), 0, (1, 7))),
    "no-index": ((4, 3), (5, 0), GatherAttributes((1, 2), (), (), 1, (4, 3))),
    "ones-kept": ((9, 7), (4, 2), GatherAttributes((1, 2), (), (0, 1), 1, (1, 1))),
    "ones": ((1, 1, 3), (1, 2, 2), GatherAttributes((1,), (0, 1), (0, 1), 2, (1, 1, 3))),
    "whole": ((4, 5), (3, 2), GatherAttributes((1, 2), (), (0, 1), 1, (4, 5))),
    "middle": ((3, 9, 4), (6, 1), GatherAttributes((0, 2), (1,), (1,), 1, (3, 1, 4))),
    "batch": ((3, 9), (3, 4, 1), GatherAttributes((), (1,), (1,), 2, (1, 1), (0,), (0,))),
    "batch-implicit": ((3, 9), (3, 4), GatherAttributes((), (1,), (1,), 2, (1, 1), (0,), (0,))),
    "batch-rows": ((3, 9, 4), (5, 3, 1), GatherAttributes((2,), (1,), (1,), 2, (1, 1, 4), (0,), (1,))),
    "two-batches": ((2, 9, 3), (3, 4, 2, 1), GatherAttributes((), (1,), (1,), 3, (1, 1, 1), (0, 2), (2, 0))),
    "batch-vector-first": ((3, 9, 5), (2, 3, 4), GatherAttributes((1,), (1,), (1, 2), 0, (1, 1, 2), (0,), (1,))),
    "batch-of-one": ((1, 9), (1, 4, 1), GatherAttributes((), (1,), (1,), 2, (1, 1), (0,), (0,))),
    "no-indices": ((9, 5), (0, 1), GatherAttributes((1,), (0,), (0,), 1, (1, 5))),
    "empty-slices": ((9, 5), (3, 2), GatherAttributes((1,), (0,), (0, 1), 1, (1, 0))),
    "from-nothing": ((0,), (3, 1), GatherAttributes((), (0,), (0,), 1, (0,))),
    "nothing-from-some": ((5,), (3, 1), GatherAttributes((), (0,), (0,), 1, (0,))),
    "nothing-from-one": ((1,), (3, 1), GatherAttributes((), (0,), (0,), 1, (0,))),
    "nothing-of-a-batch": ((3, 9), (3, 4, 1), GatherAttributes((), (1,), (1,), 2, (0, 1), (0,), (0,))),
    "nothing-from-nothing": ((0, 4), (0, 1), GatherAttributes((1,), (0,), (0,), 1, (0, 4))),
    "nowhere-in-nothing": ((0,), (3, 0), GatherAttributes((), (0,), (), 1, (0,))),
    "rows-by-matrix": ((9, 2, 3), (4, 5, 1), GatherAttributes((2, 3), (0,), (0,), 2, (1, 2, 3))),
    "large": ((50, 33), (70, 1), GatherAttributes((1,), (0,), (0,), 1, (1, 33))),
    "in-order": ((9,), (6, 1), GatherAttributes((), (0,), (0,), 1, (1,), indices_are_sorted=True)),
}


def _gather_result(indices: Dimensions, g: GatherAttributes) -> list[int]:
    offsets = iter(without(g.slice_sizes, (*g.collapsed_slice_dims, *g.operand_batching_dims)))
    batch = iter(without(indices, (g.index_vector_dim,)))
    rank = len(g.offset_dims) + len(indices) - (g.index_vector_dim < len(indices))
    return [next(offsets) if d in g.offset_dims else next(batch) for d in range(rank)]


def _sorted_indices(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
    return np.sort(small_integer(t, dims, position, rng), axis=0)


def _gathers() -> Iterator[OpCase]:
    for name, (dims, index_dims, attributes) in _GATHERS.items():
        values: Values = _sorted_indices if attributes.indices_are_sorted else small_integer
        operands = [Array(E.F32, dims), Array(E.S32, index_dims, values)]
        result = shape_of(E.F32, _gather_result(index_dims, attributes))
        yield make_case(O.GATHER, operands, result, attributes, note=name)
    rows = GatherAttributes((1,), (0,), (0,), 1, (1, 3))
    for t in ALL:
        yield make_case(O.GATHER, [Array(t, (9, 3)), Array(E.S32, (6, 1), small_integer)], shape_of(t, (6, 3)), rows)
    for t in INTEGERS:
        for values, note in ((small_integer, t.value), (any_value, f"{t.value}-edges")):
            operands = [Array(E.F32, (300,)), Array(t, (20, 1), values)]
            elements = GatherAttributes((), (0,), (0,), 1, (1,))
            yield make_case(O.GATHER, operands, shape_of(E.F32, (20,)), elements, note=note)


def _keep_update(t: ElementType) -> HloComputation:
    return computation("second", lambda x, y: y, t, t)


_ADD = binary_computation(O.ADD, E.F32)
_SET = _keep_update(E.F32)
_KEEP = computation("first", lambda x, y: x, E.F32, E.F32)
_DECAY = computation("decay", lambda x, y: op(O.SUBTRACT, y, x), E.F32, E.F32)
"""Not commutative, so that the order of updates shows."""
_SEVEN = computation("seven", lambda x, y: make_constant(np.float32(7)), E.F32, E.F32)


def _sum_and_count() -> HloComputation:
    """(f32, s32) -> sums of both, with the parts exchanged in between."""
    return computation(
        "sums", lambda x, i, y, j: make_tuple([op(O.ADD, x, y), op(O.ADD, i, j)]), E.F32, E.S32, E.F32, E.S32
    )


def _scatter(
    update_window: Dimensions, inserted: Dimensions, index_map: Dimensions, vector: int, combiner: HloComputation,
    batching: tuple[Dimensions, Dimensions] = ((), ()), *, unique: bool = False, ordered: bool = False,
) -> ScatterAttributes:  # fmt: skip
    return ScatterAttributes(update_window, inserted, index_map, vector, combiner, *batching, ordered, unique)


_SCATTERS: dict[str, tuple[Dimensions, Dimensions, Dimensions, ScatterAttributes]] = {
    "add": ((9,), (16, 1), (16,), _scatter((), (0,), (0,), 1, _ADD)),
    "implicit-vector": ((9,), (16,), (16,), _scatter((), (0,), (0,), 1, _ADD)),
    "set": ((9,), (16, 1), (16,), _scatter((), (0,), (0,), 1, _SET)),
    "keep": ((9,), (16, 1), (16,), _scatter((), (0,), (0,), 1, _KEEP)),
    "constant": ((9,), (6, 1), (6,), _scatter((), (0,), (0,), 1, _SEVEN)),
    "order": ((9,), (16, 1), (16,), _scatter((), (0,), (0,), 1, _DECAY)),
    "unique": ((9,), (8, 1), (8,), _scatter((), (0,), (0,), 1, _ADD, unique=True)),
    "rows": ((9, 5), (16, 1), (16, 5), _scatter((1,), (0,), (0,), 1, _ADD)),
    "unique-rows": ((9, 5), (8, 1), (8, 5), _scatter((1,), (0,), (0,), 1, _SET, unique=True)),
    "columns": ((5, 9), (16, 1), (5, 16), _scatter((0,), (1,), (1,), 1, _ADD)),
    "part-of-rows": ((9, 5), (6, 2), (6, 3), _scatter((1,), (0,), (0, 1), 1, _ADD)),
    "swapped-map": ((9, 5), (6, 2), (6, 3), _scatter((1,), (0,), (1, 0), 1, _ADD)),
    "points": ((9, 5), (12, 2), (12,), _scatter((), (0, 1), (0, 1), 1, _ADD)),
    "windows": ((9, 7), (6, 2), (6, 3, 2), _scatter((1, 2), (), (0, 1), 1, _ADD)),
    "windows-order": ((9, 7), (6, 2), (6, 3, 2), _scatter((1, 2), (), (0, 1), 1, _DECAY)),
    "windows-first": ((9, 7), (6, 2), (3, 2, 6), _scatter((0, 1), (), (0, 1), 1, _SET)),
    "windows-around": ((9, 7), (4, 2, 3), (3, 4, 3, 2), _scatter((0, 3), (), (0, 1), 1, _ADD)),
    "vector-first": ((9, 7), (2, 4, 3), (4, 3, 3), _scatter((1,), (1,), (0, 1), 0, _ADD)),
    "embedding": ((11, 2, 3), (2, 4, 1), (2, 4, 2, 3), _scatter((2, 3), (0,), (0,), 2, _ADD)),
    "slice": ((9, 7), (2,), (3, 2), _scatter((0, 1), (), (0, 1), 0, _SET)),
    "scalar-index": ((9, 7), (), (7,), _scatter((0,), (0,), (0,), 0, _ADD)),
    "no-index": ((4, 3), (5, 0), (5, 4, 3), _scatter((1, 2), (), (), 1, _ADD)),
    "ones-kept": ((9, 7), (4, 2), (4, 1, 1), _scatter((1, 2), (), (0, 1), 1, _ADD)),
    "ones": ((1, 1, 3), (1, 2, 2), (1, 2, 3), _scatter((2,), (0, 1), (0, 1), 2, _ADD)),
    "whole": ((4, 5), (3, 2), (3, 4, 5), _scatter((1, 2), (), (0, 1), 1, _ADD)),
    "middle": ((3, 9, 4), (6, 1), (3, 6, 4), _scatter((0, 2), (1,), (1,), 1, _ADD)),
    "scalar": ((), (0,), (), _scatter((), (), (), 0, _ADD)),
    "scalars": ((), (5, 0), (5,), _scatter((), (), (), 1, _ADD)),
    "batch": ((3, 9), (3, 4, 1), (3, 4), _scatter((), (1,), (1,), 2, _ADD, ((0,), (0,)))),
    "batch-rows": ((3, 9, 4), (5, 3, 1), (5, 3, 4), _scatter((2,), (1,), (1,), 2, _ADD, ((0,), (1,)))),
    "two-batches": ((2, 9, 3), (3, 4, 2, 1), (3, 4, 2), _scatter((), (1,), (1,), 3, _ADD, ((0, 2), (2, 0)))),
    "batch-vector-first": ((3, 9, 5), (2, 3, 4), (3, 2, 4), _scatter((1,), (1,), (1, 2), 0, _ADD, ((0,), (1,)))),
    "no-indices": ((9, 5), (0, 1), (0, 5), _scatter((1,), (0,), (0,), 1, _ADD)),
    "empty-windows": ((9, 5), (3, 2), (3, 0), _scatter((1,), (0,), (0, 1), 1, _ADD)),
    "into-nothing": ((0,), (3, 1), (3,), _scatter((), (0,), (0,), 1, _ADD)),
    "nowhere-in-nothing": ((0,), (3, 0), (3,), _scatter((), (0,), (), 1, _ADD)),
    "large": ((50, 33), (70, 1), (70, 33), _scatter((1,), (0,), (0,), 1, _ADD)),
    "wide": ((50, 300), (70, 1), (70, 300), _scatter((1,), (0,), (0,), 1, _ADD)),
    "sorted": ((9,), (6, 1), (6,), _scatter((), (0,), (0,), 1, _ADD, ordered=True)),
}

_COMBINERS: dict[Opcode, tuple[ElementType, ...]] = {
    O.ADD: ALL,
    O.MULTIPLY: ALL,
    O.MAXIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.MINIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.OR: (E.PRED, *INTEGERS),
}


def _scatters() -> Iterator[OpCase]:
    for name, (dims, index_dims, update_dims, attributes) in _SCATTERS.items():
        values: Values = unique_indices if attributes.unique_indices else small_integer
        if attributes.indices_are_sorted:
            values = _sorted_indices
        operands = [Array(E.F32, dims, small_floats), Array(E.S32, index_dims, values)]
        operands.append(Array(E.F32, update_dims, small_floats))
        yield make_case(O.SCATTER, operands, shape_of(E.F32, dims), attributes, note=name)
    for t in ALL:
        rows = _scatter((1,), (0,), (0,), 1, _keep_update(t))
        indices = Array(E.S32, (6, 1), unique_indices)
        yield make_case(O.SCATTER, [Array(t, (4, 3)), indices, Array(t, (6, 3))], shape_of(t, (4, 3)), rows, note="set")
    for opcode, types in _COMBINERS.items():
        for t in types:
            attributes = _scatter((1,), (0,), (0,), 1, binary_computation(opcode, t))
            updates = Array(t, (16, 3), positive)
            operands = [Array(t, (9, 3), positive), Array(E.S32, (16, 1), small_integer), updates]
            ulps = 4 if t.is_complex else 0
            yield make_case(O.SCATTER, operands, shape_of(t, (9, 3)), attributes, ulps=ulps, note=opcode.value)
    for t in INTEGERS:
        for values, note in ((small_integer, t.value), (any_value, f"{t.value}-edges")):
            operands = [Array(E.F32, (300,), small_floats), Array(t, (20, 1), values)]
            operands.append(Array(E.F32, (20,), small_floats))
            elements = _scatter((), (0,), (0,), 1, _ADD)
            yield make_case(O.SCATTER, operands, shape_of(E.F32, (300,)), elements, note=note)
    several = [shape_of(E.F32, (9, 3)), shape_of(E.S32, (9, 3))]
    arrays = [Array(E.F32, (9, 3), small_floats), Array(E.S32, (9, 3), finite)]
    combined = [replace(x, dimensions=(16, 3)) for x in arrays]
    for combiner in (argmax_computation(E.F32, E.S32), _sum_and_count()):
        attributes = _scatter((1,), (0,), (0,), 1, combiner)
        operands = [*arrays, Array(E.S32, (16, 1), small_integer), *combined]
        yield make_case(O.SCATTER, operands, Shape.tuple(several), attributes, note=combiner.name)


def cases() -> Iterator[OpCase]:
    """The cases of gather and scatter."""
    yield from _gathers()
    yield from _scatters()
