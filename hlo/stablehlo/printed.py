"""A program in StableHLO as an object: the result of `compiler_ir("stablehlo")`. Programs for JAX take its text."""

from __future__ import annotations

from ..ir import HloModule
from ..mlir.tree import Operation
from .from_hlo import stablehlo_of
from .text import write


class MlirModule:
    """A program in StableHLO. `str` is its text; `operation` is the tree (`hlo/mlir/tree.py`), a `builtin.module`."""

    def __init__(self, module: HloModule) -> None:
        self.operation: Operation = stablehlo_of(module)

    def to_text(self, *, locations: bool = False) -> str:
        """MLIR's text; `locations`: with the user's lines."""
        return write(self.operation, locations=locations)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<MlirModule {self.operation.attributes['sym_name']}>"
