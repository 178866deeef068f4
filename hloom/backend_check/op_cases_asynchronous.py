"""Op cases of tokens and of pairs of start and done. Ops that need a queue to hold something are tested in
test_host_queues.py."""

from __future__ import annotations

from collections.abc import Iterator

from ..hlo import Shape, make_instruction
from ..hlo.ir import HloComputation
from ..hlo.ops.asynchronous import AsyncAttributes
from ..hlo.ops.movement import ReverseAttributes
from .computations import computation
from .op_case import ALL, Array, E, O, OpCase, Operand, Token, make_case, shape_of

_TOKEN = Token()


def _reversed(shape: Shape) -> HloComputation:
    """The first dimension backwards: the body of an asynchronous call is one instruction beside its parameters."""
    backwards = ReverseAttributes((0,))
    return computation("reversed", lambda x: make_instruction(O.REVERSE, [x], backwards), shape)


def cases() -> Iterator[OpCase]:
    """The cases of the family."""
    yield make_case(O.AFTER_ALL, [], Shape.token())
    yield make_case(O.AFTER_ALL, [_TOKEN, _TOKEN], Shape.token())
    for t in ALL:
        array = Array(t, (5, 3))
        yield make_case(O.ADD_DEPENDENCY, [array, _TOKEN], array.shape)
        copied = Shape.tuple([array.shape, array.shape, shape_of(E.U32)])
        yield make_case(O.COPY_START, [array], copied)
        yield make_case(O.COPY_DONE, [(array, array, Array(E.U32))], array.shape)
        body = _reversed(array.shape)
        started: Operand = ((array,), array)
        pair = Shape.tuple([Shape.tuple([array.shape]), array.shape])
        yield make_case(O.ASYNC_START, [array], pair, AsyncAttributes(body))
        yield make_case(O.ASYNC_UPDATE, [started], pair, AsyncAttributes())
        yield make_case(O.ASYNC_DONE, [started], array.shape, AsyncAttributes())
    pair_of_arrays = (Array(E.F32, (2,)), (Array(E.S32), _TOKEN))
    shape = Shape.tuple([shape_of(E.F32, (2,)), Shape.tuple([shape_of(E.S32), Shape.token()])])
    yield make_case(O.ADD_DEPENDENCY, [pair_of_arrays, _TOKEN], shape)
