"""Rows of a program that are no fusion: `table.py` has their rules by opcode, `<family>.py` makes them."""

from __future__ import annotations

from . import (  # each registers its rules
    asynchronous,
    collective,
    convolution,
    custom_call,
    indexing,
    linalg,
    random,
    sort,
    window,
)
from .table import ROWS, RowContext, RowRule

__all__ = [
    "ROWS",
    "RowContext",
    "RowRule",
    "asynchronous",
    "collective",
    "convolution",
    "custom_call",
    "indexing",
    "linalg",
    "random",
    "sort",
    "window",
]
