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


def line_of(metadata: Metadata | None) -> str:
    """The line of the user's program, as ``file.py:3``; "" if it is not known."""
    return f"{metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""
