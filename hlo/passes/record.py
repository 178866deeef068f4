"""The record of each pass that ran: the entries of `compile().passes()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One pass of one compilation."""

    name: str
    milliseconds: float
    instructions_before: int
    instructions_after: int
    changed: bool
    rewrites: Mapping[str, int] = field(default_factory=dict)
    """How often each rule of the pass fired."""
    unsettled: tuple[str, ...] = ()
    """Rules (or passes without rules) that would go on: a limit stopped them."""
    applications: Sequence[Any] = ()
    """Each application of a rule, in order, if they were asked for: `str` shows one."""
