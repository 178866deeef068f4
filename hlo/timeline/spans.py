"""Spans of time, which every layer reports here during a recording.

    if RECORDERS: ...                                        true during a recording
    with spanning(Track.COPIES, "device_put", bytes=4096):   the block is recorded as a span

Without a recorder, a report costs a test of an empty list. Native code cannot report by itself, so it is a `Source`: it
is started and stopped with the recorder and hands over its spans at the end.

Times are nanoseconds of `time.perf_counter_ns`. A span belongs to the thread that it ran in, by the number that the
system gives it.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from ..system import at_fork


class Track(enum.Enum):
    """The groups of rows of a timeline, in their order from top to bottom; each thread has a row in each group."""

    STEPS = "Steps"
    PYTHON = "Python"
    TRACING = "Tracing"
    PASSES = "Passes"
    COMPILING = "Compiling"
    PROGRAMS = "Programs"
    KERNELS = "Kernels and products"
    LIBRARIES = "Libraries and callbacks"
    COPIES = "Copies"
    WAITS = "Waits"


class Kind(enum.Enum):
    """The kind of a span, for tracks that hold several kinds."""

    PLAIN = "span"
    ANNOTATION = "annotation"
    CALL = "jitted call"
    FUNCTION = "Python function"
    EVENT = "monitoring event"
    PIECE = "piece"
    """A thread's share of a row of a program, which has a span of its own."""


class Span(NamedTuple):
    """Something that began and ended."""

    track: Track
    name: str
    start: int
    end: int
    thread: int
    arguments: Mapping[str, object]
    kind: Kind = Kind.PLAIN
    subject: Any = None
    """For a row of a program: the row; sums are made by it. One object for all its spans."""


class Count(NamedTuple):
    """A number at a time, for example bytes in use."""

    name: str
    time: int
    values: Mapping[str, float]


class Source(Protocol):
    """An object that makes its own records, and hands over its spans when a recording ends."""

    def start(self, recorder: Recorder) -> None:
        """Record from now on. It may report to the recorder, too."""

    def stop(self, recorder: Recorder) -> Iterable[Span]:
        """End, and return the recorded spans."""


class _OfThread(threading.local):
    """Data of a thread that every report needs: its number, since Python asks the system for it."""

    def __init__(self, recorder: Recorder) -> None:
        self.number: int = threading.get_native_id()
        recorder.threads[self.number] = _name_of_this_thread()


class Recorder:
    """Takes reports from any thread. `detail`: 0 to 3, as `ProfileOptions.host_tracer_level`."""

    def __init__(self, detail: int = 2, kernels: bool = True) -> None:
        self.detail = detail
        self.kernels = kernels
        """Whether rows of programs are recorded."""
        self.started: int = time.perf_counter_ns()
        self.spans: list[Span] = []
        self.calls: list[tuple[str, int, int, int]] = []
        """(name, start, end, thread) of calls of jitted functions: spans that cost little to add."""
        self.counts: list[Count] = []
        self.threads: dict[int, str] = {}
        """Names of threads by their numbers."""
        self.sums: list[tuple[Any, int, int]] = []
        """(subject, how often, nanoseconds) of spans that were too many to keep."""
        self.own: _OfThread = _OfThread(self)
        self.notes: dict[str, object] = {}
        """Further facts about the recording."""

    def add(
        self, track: Track, name: str, start: int, end: int, arguments: Mapping[str, object] | None = None,
        kind: Kind = Kind.PLAIN,
    ) -> None:  # fmt: skip
        """A span of this thread."""
        self.spans.append(Span(track, name, start, end, self.own.number, arguments or _NOTHING, kind))

    def count(self, name: str, **values: float) -> None:
        """Numbers as they are now."""
        self.counts.append(Count(name, time.perf_counter_ns(), values))


def _name_of_this_thread() -> str:
    """As `threading.current_thread()`, which would make an object for a thread that is not Python's, and keep it."""
    own = threading.get_ident()
    return next((thread.name for thread in threading.enumerate() if thread.ident == own), "hloom compiler")


_NOTHING: Mapping[str, object] = {}
RECORDERS: list[Recorder] = []
"""The recorder, during a recording: never more than one."""
_SOURCES: list[Source] = []
_started: list[Source] = []


def register_source(source: Source) -> None:
    """Let a source take part in all later recordings, and in the current one."""
    _SOURCES.append(source)
    for recorder in RECORDERS:
        source.start(recorder)
        _started.append(source)


def start(recorder: Recorder) -> None:
    """Report to `recorder` from now on. Only one at a time: the caller sees to that."""
    assert not RECORDERS, "there is a recorder already"
    try:
        for source in _SOURCES:
            source.start(recorder)
            _started.append(source)
    except BaseException:
        while _started:
            _started.pop().stop(recorder)
        raise
    recorder.started = time.perf_counter_ns()
    RECORDERS.append(recorder)


def stop(recorder: Recorder) -> int:
    """End; the spans of all sources are with the recorder then. When it ended, in nanoseconds."""
    ended = time.perf_counter_ns()
    RECORDERS.remove(recorder)
    while _started:
        recorder.spans += _started.pop().stop(recorder)
    recorder.threads.update({t.native_id: t.name for t in threading.enumerate() if t.native_id is not None})
    return ended


def forget() -> None:
    """For a forked child: its time is not on the parent's timeline."""
    RECORDERS.clear()
    _started.clear()


at_fork(after_in_child=forget)


@contextmanager
def spanning(track: Track, name: str, detail: int = 2, **arguments: object) -> Iterator[None]:
    """Record the block as a span, if a recorder is active at this level of detail or a higher one."""
    recorder = next(iter(RECORDERS), None)  # another thread may end the recording at any time
    if recorder is None or recorder.detail < detail:
        yield
        return
    started = time.perf_counter_ns()
    try:
        yield
    finally:
        recorder.add(track, name, started, time.perf_counter_ns(), arguments)
