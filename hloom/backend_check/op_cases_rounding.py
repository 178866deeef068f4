"""Op cases of reduce-precision, stochastic-convert and map."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..hlo import (
    ElementType,
    HloComputation,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
)
from ..hlo.ops.control_flow import CallAttributes, WhileAttributes
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection, MapAttributes, ReducePrecisionAttributes
from .op_case import FLOATS, OTHER_SIZES, SIGNED, SUBNORMAL, UNARY_SIZE, Array, E, O, OpCase, make_case, shape_of
from .op_values import any_value, near_integer, subnormal


def _reduce_precision() -> Iterator[OpCase]:
    for t in (*FLOATS, E.F8E5M2, E.F8E4M3FN):
        for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (1, 0), (11, 52), (2, 40)):
            attributes = ReducePrecisionAttributes(exponent, mantissa)
            note = f"e{exponent}m{mantissa}"
            yield make_case(O.REDUCE_PRECISION, [Array(t, (11, 17))], shape_of(t, (11, 17)), attributes, note=note)
        if not t.is_small:
            attributes = ReducePrecisionAttributes(5, 3)
            values = Array(t, (37,), subnormal)
            yield make_case(O.REDUCE_PRECISION, [values], shape_of(t, (37,)), attributes, note=SUBNORMAL)
    for dims in OTHER_SIZES:
        attributes = ReducePrecisionAttributes(5, 10)
        yield make_case(O.REDUCE_PRECISION, [Array(E.F32, dims)], shape_of(E.F32, dims), attributes)


def _stochastic_convert() -> Iterator[OpCase]:
    for t in FLOATS:
        bits = ElementType(f"u{t.bit_width}")
        for target in (*SIGNED, E.S4):
            for dims in ((11, 17), (0,), ()) if t is E.F32 and target is E.S8 else ((11, 17),):
                operands = [Array(t, dims, near_integer), Array(bits, dims, any_value)]
                yield make_case(O.STOCHASTIC_CONVERT, operands, shape_of(target, dims), note=target.value)


def _mixed() -> HloComputation:
    """select(x * 2.5 + i < 2.5, x, i as a float)"""
    x, i = make_parameter(0, shape_of(E.F32)), make_parameter(1, shape_of(E.S32))
    factor = make_constant(np.float32(2.5))
    wide = make_instruction(O.CONVERT, (i,), shape=shape_of(E.F32))
    total = make_instruction(O.ADD, (make_instruction(O.MULTIPLY, (x, factor)), wide))
    less = make_instruction(O.COMPARE, (total, factor), CompareAttributes(ComparisonDirection.LT))
    root = make_instruction(O.SELECT, (less, x, wide))
    return make_computation("mixed", root, [x, i])


def _nested() -> HloComputation:
    """-|x|, by a call and a map of a scalar."""
    x = make_parameter(0, shape_of(E.F32))
    magnitude = make_computation("magnitude", make_instruction(O.ABS, (x,)), [x])
    y = make_parameter(0, shape_of(E.F32))
    negated = make_computation("negated", make_instruction(O.NEGATE, (y,)), [y])
    z = make_parameter(0, shape_of(E.F32))
    called = make_instruction(O.CALL, (z,), CallAttributes(magnitude))
    return make_computation("nested", make_instruction(O.MAP, (called,), MapAttributes((), negated)), [z])


def _constant() -> HloComputation:
    x = make_parameter(0, shape_of(E.F32))
    return make_computation("seven", make_constant(np.int32(7)), [x])


def _looping() -> HloComputation:
    """x doubled i times, for i up to 9."""
    state = make_parameter(0, shape_of(E.S32)), make_parameter(1, shape_of(E.F32))
    limit, one = make_constant(np.int32(9)), make_constant(np.int32(1))
    first = make_instruction(O.TUPLE, (make_instruction(O.MINIMUM, (state[0], limit)), state[1]))

    part = make_get_tuple_element

    given = make_parameter(0, first.shape)
    below = make_instruction(O.SUBTRACT, (part(given, 0), one))
    doubled = make_instruction(O.ADD, (part(given, 1), part(given, 1)))
    body = make_computation("double", make_instruction(O.TUPLE, (below, doubled)), [given])
    tested = make_parameter(0, first.shape)
    greater = CompareAttributes(ComparisonDirection.GT)
    test = make_instruction(O.COMPARE, (part(tested, 0), make_constant(np.int32(0))), greater)
    condition = make_computation("positive", test, [tested])
    loop = make_instruction(O.WHILE, (first,), WhileAttributes(condition, body))
    return make_computation("looping", part(loop, 1), state)


def _map() -> Iterator[OpCase]:
    for dims in (UNARY_SIZE, *OTHER_SIZES):
        every = tuple(range(len(dims)))
        pair = [Array(E.F32, dims), Array(E.S32, dims)]
        yield make_case(O.MAP, pair, shape_of(E.F32, dims), MapAttributes(every, _mixed()), note="mixed")
        attributes = MapAttributes(every, _looping())
        yield make_case(O.MAP, pair[::-1], shape_of(E.F32, dims), attributes, note="looping")
    every = (0, 1, 2)
    operand = [Array(E.F32, UNARY_SIZE)]
    yield make_case(O.MAP, operand, shape_of(E.F32, UNARY_SIZE), MapAttributes(every, _nested()), note="nested")
    yield make_case(O.MAP, operand, shape_of(E.S32, UNARY_SIZE), MapAttributes(every, _constant()), note="constant")


def cases() -> Iterator[OpCase]:
    """The cases of these ops."""
    for family in (_reduce_precision, _stochastic_convert, _map):
        yield from family()
