"""Writing MLIR text: `write(module)` is the text that MLIR's own printer gives, and that `reader.py` reads back."""

from __future__ import annotations

from ..stablehlo.forms import FORMS
from ..stablehlo.records import RECORDS
from ..support.garbage import collecting_seldom
from .operation_writer import OperationWriter
from .tree import Operation


def write(module: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """The text of an operation and all that is in it, with a line end.

    `generic`: no operation is in a form of its own. `locations`: with `loc(...)`. UnsupportedError if something has no
    text in MLIR.
    """
    with collecting_seldom():
        return OperationWriter(FORMS, RECORDS, generic, locations).written(module)
