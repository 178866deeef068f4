"""Op cases of unusual control flow: loops with a state that is no tuple, many branches, calls of many operands, scans.
The usual forms are in op_cases_structure.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..hlo import (
    ElementType,
    HloComputation,
    HloInstruction,
    Opcode,
    Shape,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
)
from ..hlo.ops.control_flow import CallAttributes, ConditionalAttributes, ScanAttributes, WhileAttributes
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ..hlo.ops.reduce import ReduceAttributes
from .op_case import Array, OpCase, Operand, Token, make_case, shape_of
from .op_values import NDArray, Values, finite, positive, small_integer

E = ElementType
O = Opcode  # noqa: E741


def _fixed(value: int) -> Values:
    def values(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
        return np.full(dims, value, t.dtype)

    return values


def _below(limit: int) -> HloComputation:
    """s32 -> is it below `limit`?"""
    x = make_parameter(0, shape_of(E.S32), "x")
    less = CompareAttributes(ComparisonDirection.LT)
    return make_computation("below", make_instruction(O.COMPARE, [x, make_constant(np.int32(limit))], less), [x])


def _doubled() -> HloComputation:
    x = make_parameter(0, shape_of(E.S32), "x")
    return make_computation("doubled", make_instruction(O.ADD, [x, x]), [x])


def _loops() -> Iterator[OpCase]:
    attributes = WhileAttributes(_below(100), _doubled())
    for start in (3, 100, 2**31 - 1):
        yield make_case(O.WHILE, [Array(E.S32, (), _fixed(start))], shape_of(E.S32), attributes, note=str(start))
    yield _swapping_loop()


def _swapping_loop() -> OpCase:
    """State (n, ((x, y), ())): n - 1, and x and y change places, while n > 0."""
    vector = shape_of(E.F32, (3,))
    pair = Shape.tuple([vector, vector])
    shape = Shape.tuple([shape_of(E.S32), Shape.tuple([pair, Shape.tuple([])])])
    state = make_parameter(0, shape, "state")
    greater = CompareAttributes(ComparisonDirection.GT)
    counter = make_get_tuple_element(state, 0)
    condition = make_computation(
        "condition", make_instruction(O.COMPARE, [counter, make_constant(np.int32(0))], greater), [state]
    )
    state = make_parameter(0, shape, "state")
    less = make_instruction(O.SUBTRACT, [make_get_tuple_element(state, 0), make_constant(np.int32(1))])
    inner = make_get_tuple_element(state, 1)
    x, y = (make_get_tuple_element(make_get_tuple_element(inner, 0), k) for k in range(2))
    root = make_tuple([less, make_tuple([make_tuple([y, x]), make_get_tuple_element(inner, 1)])])
    attributes = WhileAttributes(condition, make_computation("body", root, [state]))
    vectors = (Array(E.F32, (3,)), Array(E.F32, (3,)))
    operand: Operand = (Array(E.S32, (), _fixed(5)), (vectors, ()))
    return make_case(O.WHILE, [operand], shape, attributes, note="nested")


def _added(number: int, size: int) -> HloComputation:
    """f32[size] -> the sum of its elements and `number`."""
    x = make_parameter(0, shape_of(E.F32, (size,)), "x")
    add = _adder()
    start = make_constant(np.float32(number))
    return make_computation(
        f"branch_{number}", make_instruction(O.REDUCE, [x, start], ReduceAttributes((0,), add)), [x]
    )


def _adder() -> HloComputation:
    x, y = make_parameter(0, shape_of(E.F32), "x"), make_parameter(1, shape_of(E.F32), "y")
    return make_computation("add", make_instruction(O.ADD, [x, y]), [x, y])


def _branches() -> Iterator[OpCase]:
    """From 1 to 7 branches with operands of different shapes."""
    for count in (1, 2, 3, 7):
        attributes = ConditionalAttributes(tuple(_added(k, k + 1) for k in range(count)))
        operands = [Array(E.F32, (k + 1,), small_integer) for k in range(count)]
        for index in sorted({-1, 0, count - 1, count, 2**31 - 1}):
            kind = Array(E.S32, (), _fixed(index))
            note = f"{count}-branches-{index}"
            yield make_case(O.CONDITIONAL, [kind, *operands], shape_of(E.F32), attributes, note=note)
    first, second = _tuple_or_array()
    vector = Array(E.F32, (2,))
    for taken in (0, 1):
        kind = Array(E.PRED, (), _fixed(taken))
        operands_of_both: Sequence[Operand] = [kind, (vector, Token()), vector]
        attributes = ConditionalAttributes((first, second))
        yield make_case(O.CONDITIONAL, operands_of_both, vector.shape, attributes, note=f"tuple-or-array-{taken}")


def _tuple_or_array() -> tuple[HloComputation, HloComputation]:
    """(x, token) -> x, and x -> -x."""
    vector = shape_of(E.F32, (2,))
    pair = make_parameter(0, Shape.tuple([vector, Shape.token()]), "pair")
    x = make_parameter(0, vector, "x")
    negated = make_computation("negated", make_instruction(O.NEGATE, [x]), [x])
    return make_computation("first", make_get_tuple_element(pair, 0), [pair]), negated


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
    x, carry = make_parameter(0, shape, "x"), make_parameter(1, shape, "carry")
    results: list[HloInstruction] = [make_instruction(o, [x, carry]) for o in (O.MULTIPLY, O.ADD)]
    return make_computation("step", make_tuple(results), [x, carry])


def _scans() -> Iterator[OpCase]:
    for dims, dimension in (((5,), 0), ((1,), 0), ((2, 4), 1), ((4, 2), 0)):
        for is_reverse in (False, True):
            attributes = ScanAttributes(dimension, _step(len(dims) == 2), is_reverse, False, 1)
            carry = (2,) if len(dims) == 2 else ()
            operands = [Array(E.F32, dims, positive), Array(E.F32, carry, positive)]
            result = Shape.tuple([shape_of(E.F32, dims), shape_of(E.F32, carry)])
            note = f"{dimension}-{'backwards' if is_reverse else 'forwards'}"
            yield make_case(O.SCAN, operands, result, attributes, ulps=4, note=note)
    x, y = make_parameter(0, shape_of(E.S32), "x"), make_parameter(1, shape_of(E.S32), "y")
    total = make_computation("total", make_instruction(O.ADD, [x, y]), [x, y])
    operands = [Array(E.S32, (6,), finite), Array(E.S32)]
    yield make_case(O.SCAN, operands, shape_of(E.S32), ScanAttributes(0, total), note="no-slices")
    negated = make_computation("negated", make_tuple([make_instruction(O.NEGATE, [x])]), [x])
    attributes = ScanAttributes(0, negated, num_carries=0)
    yield make_case(O.SCAN, operands[:1], Shape.tuple([shape_of(E.S32, (6,))]), attributes, note="no-carries")


def cases() -> Iterator[OpCase]:
    """The cases of the family."""
    yield from _loops()
    yield from _branches()
    yield from _calls()
    yield from _scans()
