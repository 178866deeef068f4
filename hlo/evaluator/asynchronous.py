"""Tokens, pairs of start and done, queues to and from the host."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported(
    [
        Opcode.ADD_DEPENDENCY, Opcode.AFTER_ALL, Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE,
        Opcode.COPY_START, Opcode.COPY_DONE, Opcode.INFEED, Opcode.OUTFEED, Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV,
        Opcode.RECV_DONE,
    ],
    "not written yet",
)  # fmt: skip
