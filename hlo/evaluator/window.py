"""What slides a window over an array: reduce-window and select-and-scatter."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER], "not written yet")
