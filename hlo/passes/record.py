"""The record of each pass that ran: the entries of `compile().passes()`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ..notebooks import in_notebooks
from ..support.records import dataclass
from ..support.tables import Table


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
    applications: Sequence[Any] = field(default=(), repr=False)
    """Each application of a rule, in order, if they were asked for: `str` shows one."""


class PassRecords(tuple[PassRecord, ...]):
    """The records of a compilation, in order. They print as a table."""

    __slots__ = ()

    def table(self) -> Table:
        """A row for each pass, and one for all: milliseconds, instructions before and after, rules that fired."""
        rows = [
            (
                record.name,
                f"{record.milliseconds:.2f}",
                f"{record.instructions_before} -> {record.instructions_after}" if record.changed else "no change",
                ", ".join(
                    [
                        *(f"{name} x{count}" for name, count in sorted(record.rewrites.items())),
                        *([f"NOT SETTLED: {', '.join(record.unsettled)}"] if record.unsettled else []),
                    ]
                ),
            )
            for record in self
        ]
        if self:
            first, last = self[0].instructions_before, self[-1].instructions_after
            rows.append(("all", f"{sum(r.milliseconds for r in self):.2f}", f"{first} -> {last}", ""))
        return Table(("pass", "ms", "instructions", "rules"), rows, frozenset({1, 2}))

    def __str__(self) -> str:
        return self.table().to_text()

    __repr__ = __str__

    _repr_html_ = in_notebooks
