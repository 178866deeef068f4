"""Sorting by a comparator, and the k largest."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.SORT, Opcode.TOPK], "not written yet")
