"""Between replicas and devices: reductions, gathers, permutations, who am I."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported(
    [
        Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_TO_ALL,
        Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START,
        Opcode.RAGGED_ALL_TO_ALL, Opcode.REDUCE_SCATTER, Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE,
        Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.PARTITION_ID, Opcode.REPLICA_ID,
    ],
    "not written yet",
)  # fmt: skip
