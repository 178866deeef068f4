"""The rows of operations that are not fused. A row is an instruction of a program's table (`runtime/program.py`).

`table.py` has the rules by opcode, `<family>.py` implements them. A family's file is loaded when a program first needs
it; most programs need none.
"""

from __future__ import annotations

from importlib import import_module

from ...hlo.opcode import Opcode
from ...hlo.ops import spec_of
from .table import HOW, OUTPUT_ROWS, ROWS, SHARE, OutputRowsRule, RowContext, RowRule, ShareRule

__all__ = [
    "FAMILIES", "HOW", "ROWS", "RowContext", "RowRule", "load_all", "output_rows_rule", "row_rule", "share_rule",
]  # fmt: skip

FAMILIES = (
    "asynchronous", "collective", "convolution", "custom_call", "indexing", "linalg", "random", "sort", "window",
)  # fmt: skip
"""The families with rows; each is the name of a file."""


def row_rule(opcode: Opcode) -> RowRule | None:
    """The rule that makes the rows of `opcode`, or None if `rows` has none."""
    family = spec_of(opcode).family
    if family in FAMILIES:
        import_module(f".{family}", __name__)
    return ROWS.get(opcode)


def share_rule(opcode: Opcode) -> ShareRule | None:
    """The rule that says which results of `opcode` may be written over which operands; None: none may."""
    row_rule(opcode)
    return SHARE.get(opcode)


def output_rows_rule(opcode: Opcode) -> OutputRowsRule | None:
    """The rule that says how the result of `opcode` is cut for what follows row by row; None: nothing follows."""
    row_rule(opcode)
    return OUTPUT_ROWS.get(opcode)


def load_all() -> None:
    """Load the rules of all families into `ROWS`, for code that lists them."""
    for family in FAMILIES:
        import_module(f".{family}", __name__)
