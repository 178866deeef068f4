"""The work of one row of a program: the subject of its spans in a timeline."""

from __future__ import annotations

from collections.abc import Mapping

from ..support.records import dataclass
from .spans import Track


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One row of a program, done once."""

    program: str
    name: str
    op: str
    instruction: str
    opcode: str
    track: Track
    arguments: Mapping[str, object]
    bytes: int | None
    """None: not known, as where several rows are one instruction."""
    flops: int | None
    source: str
    element_type: str
    """The type of its computation, as the result's type says."""
