"""Are all sizes of a program numbers? Some analyses, and every compilation, need that."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import UnsupportedError
from ..ir import HloInstruction
from ..sizes import is_symbolic


def check_known_sizes(instructions: Iterable[HloInstruction], action: str) -> None:
    """UnsupportedError, which says that `action` needs them, if a size of the instructions is symbolic."""
    for i in instructions:
        if any(is_symbolic(d) for leaf in i.shape.leaves() for d in leaf.dimensions):
            raise UnsupportedError(
                f"{action}: {i.name or i.opcode.value} has the shape {i.shape}, whose sizes are not known; lower "
                "the function for arrays of known sizes"
            )
