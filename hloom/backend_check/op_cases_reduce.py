"""Op cases of reduce and dot, and their reducers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ..hlo import (
    ElementType,
    Opcode,
    Shape,
)
from ..hlo.ops.dot import DotAttributes
from ..hlo.ops.reduce import ReduceAttributes
from .computations import argmax_computation, binary_computation, log_add_exp_computation
from .op_case import ALL, FLOATS, INTEGERS, Array, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, Values, any_value, finite, positive, small_floats

_REDUCERS: dict[Opcode, tuple[ElementType, ...]] = {
    O.ADD: ALL,
    O.MULTIPLY: ALL,
    O.MAXIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.MINIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.AND: (E.PRED, *INTEGERS),
    O.OR: (E.PRED, *INTEGERS),
    O.XOR: (E.PRED, *INTEGERS),
}


def _identity(opcode: Opcode) -> Values:
    """The value that `opcode` leaves alone: XLA may use a reduction's init value never, once or several times."""

    def values(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
        if opcode in (O.MAXIMUM, O.MINIMUM) and t is not E.PRED:
            low, high = (-np.inf, np.inf) if t.is_floating else (np.iinfo(t.dtype).min, np.iinfo(t.dtype).max)
            return np.full(dims, low if opcode is O.MAXIMUM else high, t.dtype)
        if opcode is O.AND:
            return np.invert(np.zeros(dims, t.dtype))
        return np.full(dims, opcode in (O.MULTIPLY, O.MINIMUM), t.dtype)

    return values


_REDUCE_SIZES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((3, 4), ()),
    ((0,), (0,)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
    ((1,), (0,)),
    ((1, 5, 1), (0, 2)),
    ((37,), (0,)),
    ((5, 7), (0,)),
    ((5, 7), (0, 1)),
    ((2, 3, 4, 5), (1, 3)),
    ((2, 3, 4, 5), (0, 2)),
    ((2, 3, 4, 5), (2, 1)),
    ((1000, 3), (0,)),
    ((3, 1000), (1,)),
)


def without(dims: Sequence[int], removed: Sequence[int]) -> list[int]:
    return [n for d, n in enumerate(dims) if d not in removed]


def _reduce() -> Iterator[OpCase]:
    for opcode, types in _REDUCERS.items():
        for t in types:
            values = any_value if opcode in (O.MAXIMUM, O.MINIMUM) else positive
            ulps = 8 if opcode in (O.ADD, O.MULTIPLY) and t.is_inexact else 0
            reducer = binary_computation(opcode, t, swapped=t in (E.S16, E.F64))
            operands = [Array(t, (3, 5, 7), values), Array(t, (), _identity(opcode))]
            attributes = ReduceAttributes((1,), reducer)
            result = shape_of(t, (3, 7))
            yield make_case(O.REDUCE, operands, result, attributes, ulps=ulps, signed_zeros=False, note=opcode.value)
    for (dims, reduced), opcode in product(_REDUCE_SIZES, (O.ADD, O.MAXIMUM)):
        operands = [Array(E.F32, dims, positive), Array(E.F32, (), _identity(opcode))]
        attributes = ReduceAttributes(reduced, binary_computation(opcode, E.F32))
        result = shape_of(E.F32, without(dims, reduced))
        ulps = 64 if opcode is O.ADD else 0
        note = f"{opcode.value}-over-{'.'.join(map(str, reduced))}"
        yield make_case(O.REDUCE, operands, result, attributes, ulps=ulps, signed_zeros=False, note=note)
    for dims, reduced in _REDUCE_SIZES:
        results = [shape_of(E.F32, without(dims, reduced)), shape_of(E.S32, without(dims, reduced))]
        lowest = _identity(O.MAXIMUM)
        inits = [Array(E.F32, (), lowest), Array(E.S32, (), _identity(O.MINIMUM))]
        arrays = [Array(E.F32, dims, small_floats), Array(E.S32, dims, finite), *inits]
        attributes = ReduceAttributes(reduced, argmax_computation(E.F32, E.S32))
        note = f"argmax-over-{'.'.join(map(str, reduced))}"
        yield make_case(O.REDUCE, arrays, Shape.tuple(results), attributes, note=note)
        log_add_exp = ReduceAttributes(reduced, log_add_exp_computation(E.F32))
        note = f"logaddexp-over-{'.'.join(map(str, reduced))}"
        operands = [Array(E.F32, dims, positive), Array(E.F32, (), lowest)]
        yield make_case(O.REDUCE, operands, results[0], log_add_exp, ulps=64, note=note)


def _dot_case(
    types: tuple[ElementType, ElementType, ElementType],
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    contracting: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> OpCase:
    result = [lhs[d] for d in batch[0]]
    result += without(lhs, (*batch[0], *contracting[0])) + without(rhs, (*batch[1], *contracting[1]))
    values = finite if types[0].is_integral or types[0] is E.PRED else positive
    operands = [Array(types[0], lhs, values), Array(types[1], rhs, values)]
    terms = math.prod(lhs[d] for d in contracting[0])
    ulps = 4 + terms if types[2].is_inexact else 0
    attributes = DotAttributes(*batch, *contracting)
    note = f"{types[2].value}-{contracting}-{batch}".replace(" ", "")
    return make_case(O.DOT, operands, shape_of(types[2], result), attributes, ulps=ulps, note=note)


def _dot() -> Iterator[OpCase]:
    for t in ALL:
        yield _dot_case((t, t, t), (3, 5), (5, 4), ((1,), (0,)))
    for t, wider in [
        (E.F16, E.F32),
        (E.BF16, E.F32),
        (E.F32, E.F64),
        (E.S8, E.S32),
        (E.U8, E.U32),
        (E.S32, E.S64),
        (E.C64, E.C128),
        (E.PRED, E.S32),
        (E.S8, E.F32),
        (E.S32, E.S8),
        (E.F32, E.BF16),
    ]:
        yield _dot_case((t, t, wider), (3, 5), (5, 4), ((1,), (0,)))
    for lhs_type, rhs_type, wider in [(E.S8, E.U8, E.S32), (E.BF16, E.F32, E.F32), (E.F32, E.C64, E.C64)]:
        yield _dot_case((lhs_type, rhs_type, wider), (3, 5), (5, 4), ((1,), (0,)))
    f32 = (E.F32, E.F32, E.F32)
    for lhs, rhs, contracting, batch in [
        ((), (), ((), ()), ((), ())),
        ((7,), (7,), ((0,), (0,)), ((), ())),
        ((3,), (4,), ((), ()), ((), ())),
        ((3, 7), (7,), ((1,), (0,)), ((), ())),
        ((7,), (7, 4), ((0,), (0,)), ((), ())),
        ((7, 3), (7, 4), ((0,), (0,)), ((), ())),
        ((3, 7), (4, 7), ((1,), (1,)), ((), ())),
        ((7, 3), (4, 7), ((0,), (1,)), ((), ())),
        ((2, 3, 7), (2, 7, 4), ((2,), (1,)), ((0,), (0,))),
        ((3, 2, 7), (4, 7, 2), ((2,), (1,)), ((1,), (2,))),
        ((2, 3, 4, 5), (5, 4, 2, 6), ((2, 3), (1, 0)), ((0,), (2,))),
        ((2, 3, 5), (3, 2), ((), ()), ((1, 0), (0, 1))),
        ((0, 5), (5, 4), ((1,), (0,)), ((), ())),
        ((3, 0), (0, 4), ((1,), (0,)), ((), ())),
        ((1, 1), (1, 1), ((1,), (0,)), ((), ())),
        ((0, 3, 5), (0, 5, 4), ((2,), (1,)), ((0,), (0,))),
        ((33, 65), (65, 17), ((1,), (0,)), ((), ())),
    ]:
        yield _dot_case(f32, lhs, rhs, contracting, batch)


def cases() -> Iterator[OpCase]:
    """The cases of reduce and dot."""
    yield from _reduce()
    yield from _dot()
