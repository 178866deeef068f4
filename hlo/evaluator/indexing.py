"""Gather and scatter: slices taken from, and put into, places that are computed."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.GATHER, Opcode.SCATTER], "not written yet")
