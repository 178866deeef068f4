"""Long tables in parts: one test checks several cases.

A test of its own takes some milliseconds to collect, to send to a worker and to report, also in runs without it. That
is longer than many a case takes, so a slow table of thousands of cases is cut into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import pytest
from hloom.hlo.errors import HloError

Case = TypeVar("Case")


def parts(cases: Sequence[Case], size: int, name: Callable[[Case], str]) -> list[object]:
    """The parameters of a table of parts: lists of `size` cases, the last one shorter. The first case names a part."""
    return [pytest.param(cases[k : k + size], id=name(cases[k])) for k in range(0, len(cases), size)]


def assert_each(cases: Iterable[Case], check: Callable[[Case], None], name: Callable[[Case], str]) -> None:
    """Check all cases. AssertionError names each one that fails, or raises an HloError, and says why."""
    failures = []
    for case in cases:
        try:
            check(case)
        except (AssertionError, HloError) as error:
            failures.append(f"{name(case)}: {error}")
    assert not failures, "\n".join(failures)
