"""Rows of a program that are no fusion: `table.py` has their rules by opcode, `<family>.py` makes them."""

from __future__ import annotations

from . import custom_call, linalg
from .table import ROWS, RowContext, RowRule

_FAMILIES = (custom_call, linalg)  # each registers its rules
__all__ = ["ROWS", "RowContext", "RowRule"]
