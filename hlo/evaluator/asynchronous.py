"""The semantics of tokens, of pairs of start and done, and of queues here: everything happens at its start, one after
the other.

A token's value is the empty tuple. Only a recv takes its value at its done, so that a program can send to itself in
between.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..host_queues import HOST_QUEUES, INFEED, OUTFEED, channel
from ..opcode import Opcode
from ..ops.asynchronous import AsyncAttributes, ChannelAttributes
from ..shape import Shape
from .table import EVALUATE, NDArray, Value, interpret

_TOKEN: Value = ()


@EVALUATE.register(Opcode.AFTER_ALL)
def _after_all(shape: Shape, attributes: Any, *tokens: Value) -> Value:
    return _TOKEN


@EVALUATE.register(Opcode.ADD_DEPENDENCY)
def _add_dependency(shape: Shape, attributes: Any, operand: Value, token: Value) -> Value:
    return operand


@EVALUATE.register(Opcode.ASYNC_START)
def _async_start(shape: Shape, attributes: AsyncAttributes, *operands: Value) -> Value:
    assert attributes.calls is not None
    contexts = tuple(_zeros(s) for s in shape.elements[2:])
    return (operands, interpret(attributes.calls, operands), *contexts)


@EVALUATE.register(Opcode.ASYNC_UPDATE)
def _async_update(shape: Shape, attributes: Any, started: Value) -> Value:
    return started


@EVALUATE.register(Opcode.ASYNC_DONE)
def _async_done(shape: Shape, attributes: Any, started: tuple[Value, ...]) -> Value:
    return started[1]


@EVALUATE.register(Opcode.COPY_START)
def _copy_start(shape: Shape, attributes: Any, operand: NDArray) -> Value:
    return operand, operand, np.zeros((), np.uint32)


@EVALUATE.register(Opcode.COPY_DONE)
def _copy_done(shape: Shape, attributes: Any, started: tuple[Value, ...]) -> Value:
    return started[0]


@EVALUATE.register(Opcode.INFEED)
def _infeed(shape: Shape, attributes: Any, token: Value) -> Value:
    """Data without arrays, `()`, is not read from the queue."""
    data = shape.elements[0]
    return (HOST_QUEUES.take(INFEED, data) if any(data.leaves()) else _zeros(data)), _TOKEN


@EVALUATE.register(Opcode.OUTFEED)
def _outfeed(shape: Shape, attributes: Any, data: Value, token: Value) -> Value:
    HOST_QUEUES.put(OUTFEED, data)
    return _TOKEN


@EVALUATE.register(Opcode.SEND)
def _send(shape: Shape, attributes: ChannelAttributes, data: Value, token: Value) -> Value:
    HOST_QUEUES.put(channel(attributes.channel_id), data)
    return data, np.zeros((), np.uint32), _TOKEN


@EVALUATE.register(Opcode.SEND_DONE)
def _send_done(shape: Shape, attributes: Any, sent: Value) -> Value:
    return _TOKEN


@EVALUATE.register(Opcode.RECV)
def _recv(shape: Shape, attributes: ChannelAttributes, token: Value) -> Value:
    """The context holds the channel, so that the done knows it."""
    context = np.asarray((attributes.channel_id or 0) % 2**32, np.uint32)
    return _zeros(shape.elements[0]), context, _TOKEN


@EVALUATE.register(Opcode.RECV_DONE)
def _recv_done(shape: Shape, attributes: Any, received: tuple[Any, ...]) -> Value:
    return HOST_QUEUES.take(channel(int(received[1])), shape.elements[0]), _TOKEN


def _zeros(shape: Shape) -> Value:
    if shape.tuple_shapes is None:
        return np.zeros(shape.dimensions, shape.element.dtype)
    return tuple([_zeros(s) for s in shape.tuple_shapes])
