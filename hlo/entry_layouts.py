"""The layouts of a program's parameters and results, as its caller sees them."""

from __future__ import annotations

from dataclasses import replace

from .ir import HloModule
from .layout import row_major


def with_row_major_entry(module: HloModule) -> HloModule:
    """The module, with parameters and results in row-major order: for a backend that knows no other order there. The
    layouts do not change the result of a program."""
    parameters = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    return replace(
        module,
        entry_parameter_layouts=tuple(row_major(leaf.rank) for leaf in parameters),
        entry_result_layouts=tuple(row_major(leaf.rank) for leaf in module.entry.root.shape.leaves()),
    )
