"""Sizes of dimensions as values; on arrays of static shape."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.GET_DIMENSION_SIZE, Opcode.SET_DIMENSION_SIZE, Opcode.DYNAMIC_RESHAPE], "not written yet")
