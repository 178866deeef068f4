"""Bars of loops that run in compiled programs.

A program reports a loop by calls of a `LoopEvent`, a function that its custom calls hold (`hloom.progress` in their
text): one before the loop, one in its body, one after it. The body's is called once an iteration; where the pass
`split-progress` has cut the loop into chunks, once a chunk, and its result says how long the next chunk may be. So a
bar costs a few microseconds for each twentieth of a second, however short an iteration is.

Bars are those of the thread that runs the program. If an exception ends it, `guarded` closes them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from .progress import REDRAWN, draw, erase, is_shown
from .shared_value import SharedValue

T = TypeVar("T")

TARGET = "hloom.progress"
"""The target of the custom calls."""
LOOP_DELAY = 0.25
"""Seconds after which the bar of a loop is shown: short loops show none."""
CHUNK_SECONDS = 0.05
"""A chunk of iterations should take this long."""
GROWTH = 64
"""A chunk has at most this many times the iterations of the one before it."""
MOST = (1 << 31) - 1
"""The largest number of iterations of a chunk. A loop that shows nothing has this one."""


class LoopProgress(SharedValue):
    """The bar of a loop in a user's program. `every`: updates come after multiples of so many
    iterations."""

    def __init__(self, title: str, total: int | None = None, every: int = 1) -> None:
        self.title, self.total, self.every = title, total, every
        self.tick, self.end = LoopEvent(self._tick, self), LoopEvent(self._end)
        self._derivative: LoopProgress | None = None

    def begin(self, length: int | None) -> LoopEvent:
        """The event before a loop of so many iterations; None: that is not known."""
        total = length if self.total is None else self.total
        return LoopEvent(lambda _: self._begin(total))

    def of_derivative(self) -> LoopProgress:
        """The bar of the loop that computes a derivative of this one, of any order."""
        if self._derivative is None:
            made = self._derivative = LoopProgress(f"{self.title} (derivative)", self.total, self.every)
            made._derivative = made
        return self._derivative

    def _begin(self, total: int | None) -> int:
        _thread.open.append((self, Bar(self.title, total, self.every) if is_shown() else None))
        return 0

    def _tick(self, count: int) -> int:
        for loop, bar in reversed(_thread.open):
            if loop is self:
                return MOST if bar is None else bar.advance(count)
        return MOST  # a loop that a transformation repeats without its beginning

    def _end(self, _: int) -> int:
        for place in reversed(range(len(_thread.open))):
            if _thread.open[place][0] is self:
                close_after(place)
                break
        return 0


class LoopEvent(SharedValue):
    """A function of a custom call: takes the number of iterations since the last event, and returns how many may run
    until the next one. `loop`: where it is called in the body of a loop, the bar of that loop."""

    def __init__(self, act: Callable[[int], int], loop: LoopProgress | None = None) -> None:
        self.act, self.loop = act, loop

    def __call__(self, count: Any) -> Any:
        """For backends that call it as any function of a custom call: on arrays s32[]."""
        return np.int32(self.act(int(count)))


class Bar:
    """One run of a loop."""

    def __init__(self, title: str, total: int | None, every: int) -> None:
        self.title, self.total, self.every = title, total, every
        self.count = 0
        self._began = self._last = time.monotonic()
        self._due = self._began + LOOP_DELAY
        self._bar: Any = None

    def advance(self, count: int) -> int:
        """So many more iterations are done; returns how many may be done until the next call."""
        self.count += count
        now = time.monotonic()
        took, self._last = now - self._last, now
        if now >= self._due:
            self._due = now + REDRAWN
            if self._bar is None:
                self._bar = draw(self.title, self._began, total=self.total, leave=None)
            self._bar.n = self.count
            self._bar.refresh()
        wanted = int(count * min(GROWTH, CHUNK_SECONDS / max(took, 1e-9)))
        return min(MOST, max(1, wanted // self.every) * self.every)

    def close(self) -> None:
        """The loop has ended."""
        if self._bar is not None:
            self._bar.n = self.count
            self._bar.refresh()
            erase(self._bar)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: list[tuple[LoopProgress, Bar | None]] = []


_thread = _Thread()


def close_after(place: int) -> None:
    """Close the bars of this thread's loops from the one at `place` on, the innermost first."""
    while len(_thread.open) > place:
        _, bar = _thread.open.pop()
        if bar is not None:
            bar.close()


def guarded(run: Callable[..., T]) -> Callable[..., T]:
    """The function, which closes the bars that it has opened if it raises an exception."""

    def guard(*args: Any) -> T:
        place = len(_thread.open)
        try:
            return run(*args)
        except BaseException:
            close_after(place)
            raise

    return guard


def iterated(items: Iterable[T], title: str, total: int | None, every: int) -> Iterator[T]:
    """The items of a loop of Python, with a bar."""
    bar = Bar(title, total, every)
    waiting = 0
    try:
        for item in items:
            yield item
            waiting += 1
            if waiting >= every:
                bar.advance(waiting)
                waiting = 0
    finally:
        bar.count += waiting
        bar.close()


def length_of(items: Iterable[Any]) -> int | None:
    """How many items there are, where the object says so."""
    try:
        return len(items)  # type: ignore[arg-type]
    except TypeError:
        return None
