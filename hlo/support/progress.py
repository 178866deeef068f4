"""Progress of long work: one line of the terminal that says what is done, how much of it, and since when.

    with working("compile step") as work:        nothing is shown in the first two seconds
        work.stage("passes")
        work.stage("kernels", total=30)
        work.advance()

Work shows nothing where stderr is no terminal (and Python runs in no notebook), where the setting `hloom_progress_bars`
is off, and within other work of the same thread, which is shown already. Then `working` gives an object that does
nothing. tqdm draws the line, and is imported when the first one is drawn. The line disappears at the end, by an
exception too.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, Self

from ..text.escape import escape

DELAY = 2.0
"""Seconds of work before its line is shown."""
REDRAWN = 0.1
"""Seconds between two drawings of a line."""

_COUNTED = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} {unit} [{elapsed}]"
_UNCOUNTED = "{desc} [{elapsed}]"


class _Switch:
    """Whether users want progress: the settings set `is_on`, since each thread may see another value."""

    is_on: Callable[[], bool] = staticmethod(lambda: True)


SWITCH = _Switch()


def is_shown() -> bool:
    """Whether this thread may draw: the setting is on, and stderr is a terminal or the output of a notebook."""
    if not SWITCH.is_on():
        return False
    try:
        return "ipykernel" in sys.modules or sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no stderr, or it is closed
        return False


@cache
def bar_class() -> Any:
    """The class of tqdm for where Python runs. It has no thread that watches it, and no lock of several processes: a
    process with bars may fork."""
    made: Any = type("Bar", (_tqdm().tqdm,), {"monitor_interval": 0, "_lock": threading.RLock()})
    return made


def _tqdm() -> Any:
    if "ipykernel" in sys.modules:
        import tqdm.notebook as notebook

        if getattr(notebook, "IProgress", None) is not None:  # else ipywidgets is missing: the notebook shows text
            return notebook
    import tqdm as plain

    return plain


BARS: set[Any] = set()
"""The bars that are on the terminal."""


@contextmanager
def _cleared() -> Iterator[None]:
    root, real = logging.getLogger(), (sys.stdout, sys.stderr)
    shared = _Written()
    sys.stdout, sys.stderr = proxies = tuple(_Output(each, shared) for each in real)
    streams = dict(zip(real, proxies))
    handlers = [h for h in root.handlers if isinstance(h, logging.StreamHandler) and h.stream in real]
    for handler in handlers:
        handler.stream = streams[handler.stream]
    try:
        yield
    finally:
        for handler in handlers:
            handler.stream = handler.stream.real
        for name, before, proxy in zip(("stdout", "stderr"), real, proxies):
            if getattr(sys, name) is proxy:
                setattr(sys, name, before)
        if shared.is_cleared:
            for bar in list(BARS):
                bar.refresh()


class _Written:
    """Whether the bars made room for something that was written."""

    is_cleared = False


class _Output:
    """A stream that removes the bars from the terminal before the first text is written."""

    def __init__(self, real: Any, shared: _Written) -> None:
        self.real, self._shared = real, shared

    def write(self, text: str) -> int:
        if text and not self._shared.is_cleared:
            self._shared.is_cleared = True
            for bar in list(BARS):
                bar.clear()
        written: int = self.real.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def cleared() -> AbstractContextManager[Any]:
    """Within this block, users' code may write to stdout, to stderr and to handlers of the root logger: bars are drawn
    again below its text."""
    return _cleared() if BARS else _NOTHING


_NOTHING = nullcontext()


def draw(title: str, began: float, **options: Any) -> Any:
    """A new bar of tqdm with the time since `began`, by `time.monotonic`. The title is one line of visible text."""
    bar = bar_class()(desc=_one_line(title), file=sys.stderr, dynamic_ncols=True, mininterval=REDRAWN, **options)
    bar.start_t -= time.monotonic() - began
    BARS.add(bar)
    return bar


def _one_line(title: str) -> str:
    return escape(title) if not title.isprintable() else title


def erase(bar: Any) -> None:
    """Close a bar; it stays on the terminal if it was made with `leave`."""
    BARS.discard(bar)
    bar.close()


class Progress:
    """Work that may be shown. Threads that do parts of it may share it."""

    def __init__(self, title: str, total: int | None = None, unit: str = "", delay: float | None = None) -> None:
        self._title, self._stage = title, ""
        self._total, self._count, self._unit = total, 0, unit
        self._began = time.monotonic()
        self._due = self._began + (DELAY if delay is None else delay)
        self._bar: Any = None
        self._lock = threading.RLock()
        self._outer: Progress = SILENT

    def __enter__(self) -> Self:
        self._outer, _thread.work = _thread.work, self
        return self

    def __exit__(self, *_: object) -> None:
        _thread.work = self._outer
        with self._lock:
            self._due = float("inf")
            if self._bar is not None:
                erase(self._bar)

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """The next stage begins. `total`: of how many parts it consists."""
        with self._lock:
            self._stage, self._total, self._count, self._unit = name, total, 0, unit
            self.refresh()

    def advance(self, count: int = 1, name: str | None = None) -> None:
        """So many more parts are done. `name`: the part that comes next."""
        with self._lock:
            self._count += count
            self._stage = self._stage if name is None else name
            self.refresh()

    def reach(self, count: int, name: str) -> None:
        """So many parts are done, and the one called `name` comes next."""
        with self._lock:
            self._count, self._stage = count, name
            self.refresh()

    def refresh(self) -> None:
        """Draw the line, if it is time."""
        now = time.monotonic()
        if now < self._due:
            return
        with self._lock:
            self._due = now + REDRAWN
            title = f"{self._title}: {self._stage}" if self._stage else self._title
            counted = {"total": self._total, "unit": self._unit}
            if self._bar is None:
                self._bar = draw(title, self._began, leave=False, bar_format=_UNCOUNTED, **counted)
            bar = self._bar
            bar.bar_format = _UNCOUNTED if self._total is None else _COUNTED
            bar.total, bar.n, bar.unit = self._total, self._count, self._unit
            bar.set_description_str(_one_line(title), refresh=False)
            bar.refresh()


class _Silent(Progress):
    """Work that is not shown."""

    def __init__(self) -> None:
        """It has no state."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was drawn."""

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Nothing."""

    def advance(self, count: int = 1, name: str | None = None) -> None:
        """Nothing."""

    def reach(self, count: int, name: str) -> None:
        """Nothing."""

    def refresh(self) -> None:
        """Nothing."""


SILENT = _Silent()


class _Thread(threading.local):
    work: Progress = SILENT


_thread = _Thread()


def working(title: str, total: int | None = None, unit: str = "", delay: float | None = None) -> Progress:
    """Work that begins in a `with` block now. Its line is shown after `delay` seconds, by default `DELAY`."""
    if _thread.work is not SILENT or not is_shown():
        return SILENT
    return Progress(title, total, unit, delay)


def current() -> Progress:
    """The work of this thread."""
    return _thread.work


def join(work: Progress) -> None:
    """This thread, a new one, does a part of the work of another thread."""
    _thread.work = work
