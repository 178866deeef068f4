"""A program in StableHLO as an object: the result of `compiler_ir("stablehlo")`. Programs for JAX take its text."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import HloModule
from ..mlir.tree import Operation
from .discardable_attributes import add_shardings
from .from_hlo import stablehlo_of
from .text import write


class MlirModule:
    """A program in StableHLO. `str` is its text; `operation` is the tree (`hlo/mlir/tree.py`), a `builtin.module`.

    arguments, results: the shardings of main's, as `add_shardings` takes them.
    """

    def __init__(self, module: HloModule, arguments: Sequence[str] = (), results: Sequence[str] = ()) -> None:
        self.operation: Operation = stablehlo_of(module)
        if any((*arguments, *results)):
            functions = self.operation.regions[0].block.operations
            main = next(f for f in functions if f.attributes["sym_name"] == "main")
            add_shardings(main, arguments, results)

    def to_text(self, *, locations: bool = False) -> str:
        """MLIR's text; `locations`: with the user's lines."""
        return write(self.operation, locations=locations)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<MlirModule {self.operation.attributes['sym_name']}>"
