"""Batch normalisation: training, inference, gradient."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported(
    [
        Opcode.BATCH_NORM_TRAINING, Opcode.BATCH_NORM_INFERENCE, Opcode.BATCH_NORM_GRAD,
    ],
    "not written yet",
)  # fmt: skip
