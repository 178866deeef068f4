"""What is kept about each pass that ran: the rows of `compile().passes()`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One pass of one compilation."""

    name: str
    milliseconds: float
    instructions_before: int
    instructions_after: int
    changed: bool
