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
