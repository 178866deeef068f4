"""Op cases of unusual control flow: loops with a state that is no tuple, many branches, calls of many operands, scans.
The usual forms are in op_cases_structure.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..hlo import (
    HloComputation,
    HloInstruction,
    Shape,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
)
from ..hlo.ops.control_flow import CallAttributes, ConditionalAttributes, ScanAttributes, WhileAttributes
from ..hlo.ops.reduce import ReduceAttributes
from .computations import D, binary_computation, compare, computation, op
from .op_case import Array, E, O, OpCase, Operand, Token, make_case, shape_of
from .op_values import finite, fixed, positive, small_integer


def _below(limit: int) -> HloComputation:
    """s32 -> is it below `limit`?"""
    return computation("below", lambda x: compare(D.LT, x, make_constant(np.int32(limit))), E.S32)


def _loops() -> Iterator[OpCase]:
    attributes = WhileAttributes(_below(100), computation("doubled", lambda x: op(O.ADD, x, x), E.S32))
    for start in (3, 100, 2**31 - 1):
        yield make_case(O.WHILE, [Array(E.S32, (), fixed(start))], shape_of(E.S32), attributes, note=str(start))
    yield _swapping_loop()


def _swapping_loop() -> OpCase:
    """State (n, ((x, y), ())): n - 1, and x and y change places, while n > 0."""
    vector = shape_of(E.F32, (3,))
    pair = Shape.tuple([vector, vector])
    shape = Shape.tuple([shape_of(E.S32), Shape.tuple([pair, Shape.tuple([])])])

    def body(state: HloInstruction) -> HloInstruction:
        less = op(O.SUBTRACT, make_get_tuple_element(state, 0), make_constant(np.int32(1)))
        inner = make_get_tuple_element(state, 1)
        x, y = (make_get_tuple_element(make_get_tuple_element(inner, 0), k) for k in range(2))
        return make_tuple([less, make_tuple([make_tuple([y, x]), make_get_tuple_element(inner, 1)])])

    zero = make_constant(np.int32(0))
    condition = computation("condition", lambda state: compare(D.GT, make_get_tuple_element(state, 0), zero), shape)
    attributes = WhileAttributes(condition, computation("body", body, shape))
    vectors = (Array(E.F32, (3,)), Array(E.F32, (3,)))
    operand: Operand = (Array(E.S32, (), fixed(5)), (vectors, ()))
    return make_case(O.WHILE, [operand], shape, attributes, note="nested")


def _added(number: int, size: int) -> HloComputation:
    """f32[size] -> the sum of its elements and `number`."""
    add, start = binary_computation(O.ADD, E.F32), make_constant(np.float32(number))
    total = ReduceAttributes((0,), add)
    return computation(
        f"branch_{number}", lambda x: make_instruction(O.REDUCE, [x, start], total), shape_of(E.F32, (size,))
    )


def _branches() -> Iterator[OpCase]:
    """From 1 to 7 branches with operands of different shapes."""
    for count in (1, 2, 3, 7):
        attributes = ConditionalAttributes(tuple(_added(k, k + 1) for k in range(count)))
        operands = [Array(E.F32, (k + 1,), small_integer) for k in range(count)]
        for index in sorted({-1, 0, count - 1, count, 2**31 - 1}):
            kind = Array(E.S32, (), fixed(index))
            note = f"{count}-branches-{index}"
            yield make_case(O.CONDITIONAL, [kind, *operands], shape_of(E.F32), attributes, note=note)
    first, second = _tuple_or_array()
    vector = Array(E.F32, (2,))
    for taken in (0, 1):
        kind = Array(E.PRED, (), fixed(taken))
        operands_of_both: Sequence[Operand] = [kind, (vector, Token()), vector]
        attributes = ConditionalAttributes((first, second))
        yield make_case(O.CONDITIONAL, operands_of_both, vector.shape, attributes, note=f"tuple-or-array-{taken}")


def _tuple_or_array() -> tuple[HloComputation, HloComputation]:
    """(x, token) -> x, and x -> -x."""
    vector = shape_of(E.F32, (2,))
    pair = Shape.tuple([vector, Shape.token()])
    first = computation("first", lambda pair: make_get_tuple_element(pair, 0), pair)
    return first, computation("negated", lambda x: op(O.NEGATE, x), vector)


def _calls() -> Iterator[OpCase]:
    constant = make_computation("constant", make_constant(np.arange(3, dtype=np.int32)))
    yield make_case(O.CALL, [], shape_of(E.S32, (3,)), CallAttributes(constant))
    parameters = [make_parameter(i, shape_of(E.S32, (2,)), f"x{i}") for i in range(28)]
    chosen = make_computation("chosen", make_instruction(O.SUBTRACT, [parameters[27], parameters[3]]), parameters)
    operands = [Array(E.S32, (2,), small_integer)] * 28
    yield make_case(O.CALL, operands, shape_of(E.S32, (2,)), CallAttributes(chosen), note="28")
    second = make_computation("second", parameters[1], parameters[:2])
    yield make_case(O.CALL, operands[:2], shape_of(E.S32, (2,)), CallAttributes(second), note="second")


def _step(rank_1: bool) -> HloComputation:
    """(x, carry) -> (x * carry, x + carry), on scalars or vectors of 2."""
    shape = shape_of(E.F32, (2,) if rank_1 else ())

    def body(x: HloInstruction, carry: HloInstruction) -> HloInstruction:
        return make_tuple([op(O.MULTIPLY, x, carry), op(O.ADD, x, carry)])

    return computation("step", body, shape, shape)


def _scans() -> Iterator[OpCase]:
    for dims, dimension in (((5,), 0), ((1,), 0), ((2, 4), 1), ((4, 2), 0)):
        for is_reverse in (False, True):
            attributes = ScanAttributes(dimension, _step(len(dims) == 2), is_reverse, False, 1)
            carry = (2,) if len(dims) == 2 else ()
            operands = [Array(E.F32, dims, positive), Array(E.F32, carry, positive)]
            result = Shape.tuple([shape_of(E.F32, dims), shape_of(E.F32, carry)])
            note = f"{dimension}-{'backwards' if is_reverse else 'forwards'}"
            yield make_case(O.SCAN, operands, result, attributes, ulps=4, note=note)
    total = computation("total", lambda x, y: op(O.ADD, x, y), E.S32, E.S32)
    operands = [Array(E.S32, (6,), finite), Array(E.S32)]
    yield make_case(O.SCAN, operands, shape_of(E.S32), ScanAttributes(0, total), note="no-slices")
    negated = computation("negated", lambda x: make_tuple([op(O.NEGATE, x)]), E.S32)
    attributes = ScanAttributes(0, negated, num_carries=0)
    yield make_case(O.SCAN, operands[:1], Shape.tuple([shape_of(E.S32, (6,))]), attributes, note="no-carries")


def cases() -> Iterator[OpCase]:
    """The cases of the family."""
    yield from _loops()
    yield from _branches()
    yield from _calls()
    yield from _scans()
