"""Where the time of a thread went: each nanosecond is counted once, for the innermost span in which it was."""

from __future__ import annotations

from collections.abc import Mapping

from .spans import Kind, Span, Track
from .timeline import Timeline

_CATEGORIES = {
    Track.TRACING: "tracing",
    Track.PASSES: "passes",
    Track.COMPILING: "compiling",
    Track.PROGRAMS: "dispatch",
    Track.KERNELS: "kernels and products",
    Track.LIBRARIES: "libraries and callbacks",
    Track.COPIES: "transfers and copies",
    Track.WAITS: "waits",
}
CATEGORIES = (
    "kernels and products", "libraries and callbacks", "transfers and copies", "waits", "dispatch", "tracing", "passes",
    "compiling", "Python",
)  # fmt: skip
"""Dispatch is the rest of the time in calls of jitted functions and of programs; Python is the time outside of all
spans."""


def _category(span: Span) -> str | None:
    """None for a span without information on the work."""
    if span.track is Track.PYTHON and span.kind is Kind.CALL:
        return "dispatch"
    if span.kind is Kind.PIECE:  # its row has a span in the thread that called the program
        return None
    return _CATEGORIES.get(span.track)


def account(timeline: Timeline, thread: int) -> Mapping[str, int]:
    """Nanoseconds by category; together they are the time that was recorded."""
    found = dict.fromkeys(CATEGORIES, 0)
    inside: list[tuple[int, str]] = []
    """(end, category) of the spans around the current one, outermost first."""
    total = 0
    for span in timeline.spans:
        category = _category(span) if span.thread == thread else None
        if category is None:
            continue
        while inside and inside[-1][0] <= span.start:
            inside.pop()
        end = min(span.end, inside[-1][0]) if inside else span.end
        duration = end - span.start
        if inside:
            found[inside[-1][1]] -= duration
        else:
            total += duration
        found[category] += duration
        inside.append((end, category))
    found["Python"] = timeline.nanoseconds - total
    return found


def busiest_thread(timeline: Timeline, main: int) -> int:
    """The main thread, if it did anything, else the one with the most time in programs."""
    spent: dict[int, int] = {}
    for span in timeline.spans:
        if span.track in (Track.PROGRAMS, Track.TRACING, Track.COMPILING):
            spent[span.thread] = spent.get(span.thread, 0) + span.end - span.start
    return main if main in spent or not spent else max(spent, key=lambda thread: spent[thread])
