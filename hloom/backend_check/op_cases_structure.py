"""Op cases of random numbers, control flow and structure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..hlo import (
    HloComputation,
    HloInstruction,
    Literal,
    Opcode,
    Shape,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_tuple,
)
from ..hlo.ops.control_flow import CallAttributes, ConditionalAttributes, WhileAttributes
from ..hlo.ops.movement import BroadcastAttributes
from ..hlo.ops.random import RandomAlgorithm, RngBitGeneratorAttributes
from ..hlo.ops.structure import (
    ConstantAttributes,
    DomainAttributes,
    FusionAttributes,
    FusionKind,
    GetTupleElementAttributes,
)
from .computations import D, compare, computation, op
from .op_case import ALL, UNSIGNED, Array, E, O, OpCase, Operand, make_case, shape_of, sizes_of
from .op_values import any_value, finite, fixed, positive, small_integer


def _random() -> Iterator[OpCase]:
    attributes = RngBitGeneratorAttributes(RandomAlgorithm.THREEFRY)
    sizes = ((), (0,), (1,), (2,), (5,), (3, 5), (3, 4), (5, 3, 7), (3, 0), (2, 3))
    for t in UNSIGNED:
        for dims in sizes:
            result = Shape.tuple([shape_of(E.U64, (2,)), shape_of(t, dims)])
            note = t.value + "x".join(["", *map(str, dims)])
            yield make_case(O.RNG_BIT_GENERATOR, [Array(E.U64, (2,), finite)], result, attributes, note=note)


def _count_down_computations() -> tuple[HloComputation, HloComputation]:
    """While n > 0: n, x = n - 1, x * 1.5 + n."""
    state = Shape.tuple([shape_of(E.S32), shape_of(E.F32, (3,))])

    def vector_of(scalar: HloInstruction) -> HloInstruction:
        return make_instruction(O.BROADCAST, [scalar], BroadcastAttributes(()), shape_of(E.F32, (3,)))

    def body(state: HloInstruction) -> HloInstruction:
        counter, vector = (make_get_tuple_element(state, i) for i in range(2))
        addend = vector_of(make_instruction(O.CONVERT, [counter], shape=shape_of(E.F32)))
        scaled = op(O.MULTIPLY, vector, vector_of(make_constant(np.float32(1.5))))
        return make_tuple([op(O.SUBTRACT, counter, make_constant(np.int32(1))), op(O.ADD, scaled, addend)])

    zero = make_constant(np.int32(0))
    condition = computation("condition", lambda state: compare(D.GT, make_get_tuple_element(state, 0), zero), state)
    return condition, computation("body", body, state)


def _tuple_branch(opcode: Opcode, shape: Shape) -> HloComputation:
    """A computation on a tuple of two arrays that returns the tuple of one op on them."""

    def body(pair: HloInstruction) -> HloInstruction:
        return make_tuple([op(opcode, *(make_get_tuple_element(pair, i) for i in range(2)))])

    return computation(opcode.value, body, Shape.tuple([shape, shape]))


def _two_parameters(shape: Shape) -> HloComputation:
    """x, y -> x * y + y."""
    return computation("multiply_add", lambda x, y: op(O.ADD, op(O.MULTIPLY, x, y), y), shape, shape)


def _control_flow() -> Iterator[OpCase]:
    shape = shape_of(E.F32, (3, 5))
    pair = [Array(E.F32, (3, 5), positive), Array(E.F32, (3, 5), positive)]
    yield make_case(O.CALL, pair, shape, CallAttributes(_two_parameters(shape)), ulps=2)
    fusion = FusionAttributes(FusionKind.LOOP, _two_parameters(shape))
    yield make_case(O.FUSION, pair, shape, fusion, ulps=2)
    condition, body = _count_down_computations()
    state = (Array(E.S32, (), small_integer), Array(E.F32, (3,), positive))
    result = Shape.tuple([shape_of(E.S32), shape_of(E.F32, (3,))])
    yield make_case(O.WHILE, [state], result, WhileAttributes(condition, body), ulps=16)
    operand: Operand = (pair[0], pair[1])
    branches = tuple(_tuple_branch(o, shape) for o in (O.ADD, O.SUBTRACT, O.MAXIMUM))
    for index in range(-1, 4):
        kind = Array(E.S32, (), fixed(index))
        attributes = ConditionalAttributes(branches)
        yield make_case(O.CONDITIONAL, [kind, *[operand] * 3], Shape.tuple([shape]), attributes, note=str(index))
    for taken in (True, False):
        kind = Array(E.PRED, (), fixed(taken))
        attributes = ConditionalAttributes(branches[:2])
        yield make_case(O.CONDITIONAL, [kind, *[operand] * 2], Shape.tuple([shape]), attributes, note=str(taken))


def _structure() -> Iterator[OpCase]:
    for t in ALL:
        rng = np.random.default_rng(0)
        for dims in sizes_of(t, ALL, (23,)):
            literal = Literal(any_value(t, dims, 0, rng))
            note = t.value + "x".join(["", *map(str, dims)])
            yield make_case(O.CONSTANT, [], shape_of(t, dims), ConstantAttributes(literal), note=note)
        array = Array(t, (3, 5))
        yield make_case(O.PARAMETER, [array], array.shape)
        yield make_case(O.TUPLE, [array, Array(E.S32)], Shape.tuple([array.shape, shape_of(E.S32)]))
        yield make_case(O.OPT_BARRIER, [array], array.shape)
        element = GetTupleElementAttributes(1)
        yield make_case(O.GET_TUPLE_ELEMENT, [(Array(E.S32), array)], array.shape, element)
    domain = DomainAttributes('{kind="sharding", entry={maximal device=0}, exit={maximal device=0}}')
    yield make_case(O.DOMAIN, [Array(E.F32, (3,))], shape_of(E.F32, (3,)), domain)
    yield make_case(O.TUPLE, [], Shape.tuple([]))
    yield make_case(
        O.TUPLE,
        [(Array(E.F32, (2,)), Array(E.S32))],
        Shape.tuple([Shape.tuple([shape_of(E.F32, (2,)), shape_of(E.S32)])]),
    )
    pair: Operand = (Array(E.F32, (2,)), Array(E.S32, (0,)))
    shapes = Shape.tuple([shape_of(E.F32, (2,)), shape_of(E.S32, (0,))])
    yield make_case(O.OPT_BARRIER, [pair], shapes)
    yield make_case(O.GET_TUPLE_ELEMENT, [(pair, Array(E.PRED))], shapes, GetTupleElementAttributes(0))


def cases() -> Iterator[OpCase]:
    """The cases of all that is neither elementwise, movement, reduce nor dot."""
    yield from _random()
    yield from _control_flow()
    yield from _structure()
