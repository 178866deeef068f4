"""Rules that lower operations outside of fusions to rows: the instructions of a program (`runtime/program.py`).

`table.py` has the rules by opcode, `<family>.py` implements them. A family's file is loaded when a program first needs
it; most programs need none.
"""

from __future__ import annotations

from importlib import import_module

from ...hlo.opcode import Opcode
from ...hlo.ops import spec_of
from .table import HOW, LOWERING_RULES, OUTPUT_ROWS, SHARE, LoweringContext, LoweringRule, OutputRowsRule, ShareRule

__all__ = [
    "FAMILIES", "HOW", "LOWERING_RULES", "LoweringContext", "LoweringRule", "load_all", "lowering_rule",
    "output_rows_rule", "share_rule",
]  # fmt: skip

FAMILIES = (
    "asynchronous", "collective", "convolution", "custom_call", "indexing", "linalg", "random", "sort", "window",
)  # fmt: skip
"""The families with rules; each is the name of a file."""


def lowering_rule(opcode: Opcode) -> LoweringRule | None:
    """The rule that lowers `opcode`, or None if this package has none."""
    family = spec_of(opcode).family
    if family in FAMILIES:
        import_module(f".{family}", __name__)
    return LOWERING_RULES.get(opcode)


def share_rule(opcode: Opcode) -> ShareRule | None:
    """The rule that decides which results of `opcode` may be written over which operands; None: none may."""
    lowering_rule(opcode)
    return SHARE.get(opcode)


def output_rows_rule(opcode: Opcode) -> OutputRowsRule | None:
    """The rule that cuts the result of `opcode` for instructions that follow row by row; None: nothing follows."""
    lowering_rule(opcode)
    return OUTPUT_ROWS.get(opcode)


def load_all() -> None:
    """Load the rules of all families into `LOWERING_RULES`, for code that lists them."""
    for family in FAMILIES:
        import_module(f".{family}", __name__)
