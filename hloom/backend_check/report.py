"""The findings of a check of a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from ..hlo.support.records import dataclass
from ..hlo.support.tables import Table

State = Literal["passed", "refused", "failed"]
STATES: tuple[State, State, State] = ("passed", "refused", "failed")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check. `refused`: the backend raised UnsupportedError, which is allowed, and `text` is its message."""

    part: str
    name: str
    state: State
    text: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one backend, in order. `print` shows the numbers, then the failures, then the refusals.

    >>> from hloom.backend_check.report import Outcome, Report
    >>> print(Report("mine", (Outcome("ops", "add-f32x3", "passed"), Outcome("ops", "fft-c64x8", "refused", "no fft"))))
    part  passed  refused  failed
    ops        1        1       0
    <BLANKLINE>
    refused:
      1x fft-c64x8: no fft
    """

    backend: str
    outcomes: Sequence[Outcome]

    @property
    def is_good(self) -> bool:
        """True if nothing failed. A backend may refuse cases."""
        return not self.of("failed")

    def of(self, state: State) -> list[Outcome]:
        """The checks that ended so."""
        return [outcome for outcome in self.outcomes if outcome.state == state]

    def table(self) -> Table:
        """A row for each part: how many checks passed, were refused, failed."""
        counts = Counter((outcome.part, outcome.state) for outcome in self.outcomes)
        rows = [
            (part, *(str(counts[part, state]) for state in STATES))
            for part in dict.fromkeys(outcome.part for outcome in self.outcomes)
        ]
        return Table(("part", *STATES), rows, frozenset({1, 2, 3}))

    def __str__(self) -> str:
        lines = [self.table().to_text()]
        for state in STATES[:0:-1]:
            if found := self.of(state):
                first: dict[str, Outcome] = {}
                for outcome in found:
                    first.setdefault(_reason(outcome), outcome)
                counts = Counter(map(_reason, found))
                lines += ["", f"{state}:", *(f"  {counts[r]}x {o.name}: {o.text}" for r, o in first.items())]
        return "\n".join(lines)


def _reason(outcome: Outcome) -> str:
    """A text that is equal for two outcomes with the same reason: the text without the names and numbers of one
    program."""
    return "".join(c for c in outcome.text if not c.isdigit())
