"""StableHLO in and out: `parse(text)` is an HloModule, `to_text(module)` the text that JAX prints for it.

An MLIR tree (`hlo/mlir/tree.py`) of StableHLO's ops and an HloModule become one another, in both directions.

    ops.py             which op is which opcode, and which attributes are which fields: the table of both directions
    attributes.py      attributes and the values of fields; attribute_mappings.py, discardable_attributes.py
    types.py           types and shapes
    structure.py       how many operands, results and regions each op has
    to_hlo.py          a tree as HLO; scope.py: regions; table_rules.py: the ops of the table; reading_*.py: the others
    refine.py          sizes that are written `?` and follow from constants
    from_hlo.py        HLO as a tree; body.py: computations; writing_*.py: opcodes that the table does not have
    text.py            a tree as text, and text as a tree
    assembly_formats.py  how each op is written as text; directives.py, region_directives.py, records.py: elements with
                       a syntax of their own
    vhlo.py            portable bytecode as a tree, and a tree as portable bytecode; vhlo_*.py: its tables

Source: https://openxla.org/stablehlo/spec, and the definitions of its dialects (StablehloOps.td, ChloOps.td).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import HloError, ShapeError, UnsupportedError
from ..support.loading import load
from ..text.scanner import Scanner, pattern

if TYPE_CHECKING:
    from ..ir import HloModule
    from ..mlir.tree import Operation

__all__ = ["is_bytecode", "is_text", "parse", "parse_bytecode", "to_bytecode", "to_text"]

_BEGINNING = (
    r"(?:\s|//[^\n]*)*+(?:module\s*(?:@|attributes\b|\{)|(?:builtin\.module|func\.func|sdy\.mesh)\b|[#!]\w+\s*=|\"builtin)"
)


def is_text(text: str) -> bool:
    """Whether a text begins as MLIR does, and HLO does not.

    >>> is_text("module @m {}"), is_text("HloModule m")
    (True, False)
    """
    return pattern(_BEGINNING).match(text) is not None


def is_bytecode(data: bytes) -> bool:
    """Whether data begin as MLIR's bytecode does."""
    return data.startswith(b"ML\xefR")


def parse(text: str, file: str = "<stablehlo>") -> HloModule:
    """The module of a program in StableHLO. Its entry is the function `main`, or the only public function.

    text: MLIR text with operations of the dialects stablehlo, chlo, func and sdy. Operations outside of a module are
    put into one. `file` is named in messages.

    HloParseError names the place of text that breaks the grammar, or an op's rule; its `label` is the rule.
    UnsupportedError names an operation, a type or a size that HLO does not have, with its place.

    >>> module = parse('''
    ... func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    ...   %0 = stablehlo.add %x, %x : tensor<2xf32>
    ...   return %0 : tensor<2xf32>
    ... }''')
    >>> module.entry.root
    <add = f32[2] add(x, x)>
    """
    tree = load(".text", __name__).read(text, file)
    try:
        return _module_of(tree)
    except HloError as error:
        operation: Operation = error.operation or tree
        label = error.label if isinstance(error, ShapeError) else "syntax"
        message = str(error)
        placed = Scanner(text, file).error(message, operation.position, label)
        if isinstance(error, UnsupportedError):
            raise UnsupportedError(f"{file}:{placed.line}:{placed.column}: {message}") from None
        raise placed from None


def parse_bytecode(data: bytes) -> HloModule:
    """The module of a portable artifact of StableHLO 0.9 to 1.20: MLIR bytecode, as `jax.export` and StableHLO's tools
    write it.

    BytecodeError, a HloParseError, for damaged bytes; UnsupportedError and ShapeError as in `parse`, without a place.
    """
    return _module_of(load(".vhlo", __name__).read_bytecode(data))


def _module_of(tree: Operation) -> HloModule:
    module: HloModule = load(".to_hlo", __name__).hlo_of(tree)
    return module


def to_text(module: HloModule, *, generic: bool = False, locations: bool = False) -> str:
    """The module as StableHLO, as MLIR prints it.

    generic: every operation in MLIR's generic form. locations: with the names and places of instructions.
    UnsupportedError names an instruction that StableHLO does not have.
    """
    tree = load(".from_hlo", __name__).stablehlo_of(module)
    text: str = load(".text", __name__).write(tree, generic=generic, locations=locations)
    return text


def to_bytecode(module: HloModule, version: str = "") -> bytes:
    """The module as a portable artifact. version: of StableHLO, e.g. "1.8.0"; "" for the oldest stable one that has all
    that the program uses, so that most readers can read it.

    UnsupportedError names an instruction that StableHLO, or that version of it, does not have.
    """
    tree = load(".portable", __name__).portable_of(module)
    data: bytes = load(".vhlo", __name__).write_bytecode(tree, version)
    return data
