"""Reading MLIR text: `read(text)` is a tree of operations. Source: MLIR's language reference."""

from __future__ import annotations

from ..stablehlo.forms import FORMS
from ..stablehlo.records import RECORDS
from ..support.garbage import collecting_seldom
from .operation_reader import OperationReader
from .tree import Operation


def read(text: str, file: str = "<mlir>") -> Operation:
    """The `builtin.module` that `text` describes; `file` is named in messages. Operations outside of a module are put
    into one.

    HloParseError for text that breaks the grammar, UnsupportedError for types and operations that cannot be read.
    """
    with collecting_seldom():
        return OperationReader(text, file, FORMS, RECORDS).module()
