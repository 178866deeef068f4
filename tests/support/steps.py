"""Counts of steps: a measure of work that is the same on every machine, busy or not.

A step is an event of `sys.settrace`: a line that is run, or another iteration of a loop or comprehension in a line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

_ROOT = f"{Path(__file__).resolve().parents[2]}/"


class Steps:
    """The steps of this thread, by the file of the library or of Python in which they are."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._traces: dict[str, Callable[[FrameType, str, Any], Any]] = {}

    def by_file(self) -> dict[str, int]:
        return {file.removeprefix(_ROOT).removeprefix("hloom/"): count for file, (count,) in self._counts.items()}

    def total(self) -> int:
        return sum(count for (count,) in self._counts.values())

    def _trace_of(self, file: str) -> Callable[[FrameType, str, Any], Any]:
        count = self._counts[file] = [0]

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            count[0] += 1
            return step

        return step

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        found = self._traces.get(file)
        if found is None:
            found = self._traces[file] = self._trace_of(file)
        return found

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            yield
        finally:
            sys.settrace(before)


def steps_of(work: Callable[[], object]) -> int:
    """The steps that a call takes in this thread."""
    steps = Steps()
    with steps.counting():
        work()
    return steps.total()
