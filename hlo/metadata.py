"""Where an instruction comes from. Alone in its file: the code that finds it is needed before any instruction."""

from __future__ import annotations

from .support.records import dataclass


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where an instruction comes from: XLA's OpMetadata."""

    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    others: tuple[tuple[str, str], ...] = ()
    """The other fields (op_type, source_column, scheduling_name, ...): key and text of the value."""


@dataclass(frozen=True, slots=True)
class PlacedMetadata(Metadata):
    """With the exact place in the user's program, which takes longer to find, and the order of recording."""

    column: int = 0
    function: str = ""
    order: int = 0

    def __str__(self) -> str:
        """As JAX writes it: ``file.py:3:8 (function)``; a column 0 is left out."""
        column = f":{self.column}" if self.column else ""
        return f"{self.source_file}:{self.source_line}{column} ({self.function})"


def line_of(metadata: Metadata | None) -> str:
    """The line of the user's program, as ``file.py:3``; "" if it is not known."""
    return f"{metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""
