"""MLIR text of the dialects that are known here: `read(text)` is a tree of operations, `write(module)` its text."""

from __future__ import annotations

from ..mlir.operation_reader import OperationReader
from ..mlir.operation_writer import OperationWriter
from ..mlir.tree import Operation
from ..support.garbage import collecting_seldom
from .assembly_formats import ASSEMBLY_FORMATS
from .records import RECORDS


def read(text: str, file: str = "<mlir>") -> Operation:
    """The `builtin.module` that `text` describes; `file` is named in messages. Operations outside of a module are put
    into one.

    HloParseError for text that breaks the grammar, UnsupportedError for types and operations that cannot be read.
    """
    with collecting_seldom():
        return OperationReader(text, file, ASSEMBLY_FORMATS, RECORDS).module()


def write(module: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """The text of an operation and all that is in it, with a line end, as MLIR's own printer gives it.

    `generic`: no operation is in a form of its own. `locations`: with `loc(...)`. UnsupportedError if something has no
    text in MLIR.
    """
    with collecting_seldom():
        return OperationWriter(ASSEMBLY_FORMATS, RECORDS, generic, locations).written(module)
