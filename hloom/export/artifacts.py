"""StableHLO's portable artifacts, as operations and as programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..hlo.mlir.tree import Operation
from ..hlo.stablehlo.text import write
from ..hlo.stablehlo.vhlo import read_bytecode, write_bytecode

if TYPE_CHECKING:
    from .record import ExportedFunction

def module_of(exported: ExportedFunction) -> Operation:
    """The program as an operation `builtin.module`."""
    return read_bytecode(exported.mlir_module_serialized)


def bytes_of(module: Operation) -> bytes:
    """The portable artifact, of the oldest version of StableHLO that has all that the program uses."""
    return write_bytecode(module)


def text_of(module: Operation) -> str:
    """The program's text, with the lines of the user's program that its operations come from."""
    return write(module, locations=True)
