"""Convolution."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.CONVOLUTION], "not written yet")
