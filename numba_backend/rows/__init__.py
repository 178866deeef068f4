"""Rows of a program that are no fusion: `table.py` has their rules by opcode, `<family>.py` makes them."""

from __future__ import annotations

from . import (  # each registers its rules
    asynchronous,
    collective,
    custom_call,
    indexing,
    linalg,
    sort,
)
from .table import ROWS, RowContext, RowRule

__all__ = [
    "ROWS",
    "RowContext",
    "RowRule",
    "asynchronous",
    "collective",
    "custom_call",
    "indexing",
    "linalg",
    "sort",
]
