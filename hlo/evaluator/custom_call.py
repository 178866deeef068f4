"""custom-call: code that has a name only."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.CUSTOM_CALL], "not written yet")
