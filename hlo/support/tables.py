"""Tables: how passes, kernels, memory and costs print. `hloom/notebooks/` makes HTML of them.

The cells of a table are text; a column of numbers is aligned to the right.
"""

from __future__ import annotations

from collections.abc import Sequence

from .records import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under headings. `numbers`: the columns that are aligned to the right."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[int] = frozenset()

    def to_text(self) -> str:
        """The table in columns, two spaces between them; a line for the headings and for each row."""
        lines = [self.headings, *self.rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(self.headings))]
        return "\n".join("  ".join(self._cells(line, widths)).rstrip() for line in lines)

    def _cells(self, line: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [c.rjust(w) if k in self.numbers else c.ljust(w) for k, (c, w) in enumerate(zip(line, widths))]
