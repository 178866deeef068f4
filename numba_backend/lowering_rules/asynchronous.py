"""Rows of queues to and from the host: Python calls that put and take arrays. A token has no bytes, so no row.

All backends share the queues of `hlo/host_queues.py`. A row that waits lets other threads run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.host_queues import HOST_QUEUES, INFEED, OUTFEED, channel
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.value_tree import leaves_of, value_of
from .host import NDArray, host_row
from .table import LoweringContext, register


@register(Opcode.INFEED, how="Python: takes from the process's queue")
def _infeed(context: LoweringContext, instruction: HloInstruction) -> None:
    data = instruction.shape.elements[0]

    def take(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        _fill(results, HOST_QUEUES.take(INFEED, data, instruction.name))

    if any(data.leaves()):
        host_row(context, instruction, take)


@register(Opcode.OUTFEED, how="Python: puts into the process's queue")
def _outfeed(context: LoweringContext, instruction: HloInstruction) -> None:
    data = instruction.operands[0].shape

    def put(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        HOST_QUEUES.put(OUTFEED, value_of(data, iter(operands)))

    host_row(context, instruction, put)


@register(Opcode.SEND, how="Python: puts into the channel's queue")
def _send(context: LoweringContext, instruction: HloInstruction) -> None:
    """The result is (data, context, token). The data in it are never read, but its buffer must hold them."""
    data, name = instruction.operands[0].shape, channel(instruction.attributes.channel_id)

    def put(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        HOST_QUEUES.put(name, value_of(data, iter(operands)))
        for source, target in zip(operands, results[:-1], strict=True):
            target[...] = source
        results[-1][...] = 0

    host_row(context, instruction, put)


@register(Opcode.RECV, how="Python: begins, the done takes")
def _recv(context: LoweringContext, instruction: HloInstruction) -> None:
    """The context holds the channel for recv-done, which takes the data from the queue."""
    number = (instruction.attributes.channel_id or 0) % 2**32

    def begin(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        for target in results[:-1]:
            target[...] = np.zeros((), target.dtype)
        results[-1][...] = number

    host_row(context, instruction, begin)


@register(Opcode.RECV_DONE, how="Python: takes from the channel's queue")
def _recv_done(context: LoweringContext, instruction: HloInstruction) -> None:
    data = instruction.shape.elements[0]

    def take(operands: Sequence[NDArray], results: Sequence[NDArray]) -> None:
        _fill(results, HOST_QUEUES.take(channel(int(operands[-1])), data, instruction.name))

    host_row(context, instruction, take)


@register(Opcode.SEND_DONE, how="no code: the send has put")
def _send_done(context: LoweringContext, instruction: HloInstruction) -> None:
    """Nothing to do: the data are in the queue already."""


def _fill(results: Sequence[NDArray], value: Any) -> None:
    for target, source in zip(results, leaves_of(value), strict=True):
        target[...] = source
