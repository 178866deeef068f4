"""Makes findings small: a case is replaced by a smaller one as long as that shows the same defect.

`Search` asks the worker, and counts time. `without_parts` is delta debugging (Zeller, Hildebrandt 2002) on any list:
lines, tokens, statements. How the cases of a kind are taken apart is in the file of the kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from .case import Case, Outcome, Verdict
from .worker import Worker

T = TypeVar("T")
Shows = Callable[[Case], bool]


class TimeIsUp(Exception):
    """Ends a search; the smallest case so far is taken."""


class Search:
    """Remembers the smallest case that shows a defect."""

    def __init__(self, worker: Worker, case: Case, outcome: Outcome, seconds: float) -> None:
        self._worker, self._end = worker, time.monotonic() + seconds
        self.case, self.outcome = case, outcome
        self.tried = 0

    def shows(self, case: Case) -> bool:
        """Does `case` show the defect? Then it is the smallest so far. TimeIsUp ends the search."""
        if time.monotonic() > self._end:
            raise TimeIsUp
        self.tried += 1
        outcome = self._worker.check(case)
        if outcome.verdict is Verdict.FOUND and outcome.signature == self.outcome.signature:
            self.case, self.outcome = case, outcome
            return True
        return False

    def run(self, minimised: Callable[[Case, Shows], Case]) -> None:
        """Let the kind take the case apart."""
        with suppress(TimeIsUp):
            minimised(self.case, self.shows)


def without_parts(parts: Sequence[T], holds: Callable[[list[T]], bool]) -> list[T]:
    """A short part of the list that still satisfies `holds`: no further piece of it can be left out.

    First halves are left out, then quarters, and so on down to single elements.
    """
    parts = list(parts)
    count = 2
    while parts:
        size = -(-len(parts) // count)
        for start in range(0, len(parts), size):
            fewer = parts[:start] + parts[start + size :]
            if holds(fewer):
                parts = fewer
                count = max(count - 1, 2)
                break
        else:
            if size == 1:
                break
            count = min(count * 2, len(parts))
    return parts


def fewer_options(case: Case, shows: Shows) -> Case:
    """The case without the options that do not matter."""

    def with_names(names: list[str]) -> Case:
        return case.but(options={name: case.options[name] for name in names})

    return with_names(without_parts(list(case.options), lambda names: shows(with_names(names))))
