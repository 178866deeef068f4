"""Tables, as text for terminals and as HTML for notebooks: how passes, kernels, memory and costs print.

The cells of a table are text; a column of numbers is aligned to the right. Text of users (names of their functions) is
escaped in HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

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

    def to_html(self) -> str:
        """A `<table>`."""
        head = "".join(self._cell("th", k, cell) for k, cell in enumerate(self.headings))
        body = ["".join(self._cell("td", k, cell) for k, cell in enumerate(row)) for row in self.rows]
        rows = "".join(f"<tr>{cells}</tr>" for cells in body)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _cell(self, tag: str, column: int, text: str) -> str:
        side = "right" if column in self.numbers else "left"
        return f'<{tag} style="text-align: {side}">{escape(text)}</{tag}>'


def escape(text: str) -> str:
    """Text in which nothing is a tag. The standard library's module has a table of 2,000 entities: it is imported when
    something is shown in a notebook."""
    found: str = import_module("html").escape(text)
    return found


def preformatted(text: str) -> str:
    """Text as it is, in HTML."""
    return f"<pre>{escape(text)}</pre>"
