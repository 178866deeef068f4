"""A finished recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from ..support.records import dataclass
from .spans import Count, Kind, Recorder, Span, Track


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events that were recorded between two times, in nanoseconds."""

    started: int
    ended: int
    spans: Sequence[Span]
    """In the order of their beginnings; of two that begin together the longer one is first."""
    counts: Sequence[Count] = ()
    threads: Mapping[int, str] = field(default_factory=dict)
    sums: Sequence[tuple[Any, int, int]] = ()
    """(subject, how often, nanoseconds) of spans that were too many to keep."""
    notes: Mapping[str, object] = field(default_factory=dict)

    @property
    def nanoseconds(self) -> int:
        """How long it was recorded."""
        return self.ended - self.started


_NOTHING: Mapping[str, object] = {}


def timeline_of(recorder: Recorder, ended: int) -> Timeline:
    """The timeline of a recorder that has been stopped; spans outside of its time are cut off."""
    recorder.spans += [
        Span(Track.PYTHON, name, start, end, thread, _NOTHING, Kind.CALL) for name, start, end, thread in recorder.calls
    ]
    spans = [
        span if span.start >= recorder.started and span.end <= ended
        else span._replace(start=max(span.start, recorder.started), end=min(span.end, ended))
        for span in recorder.spans
        if span.end > recorder.started and span.start < ended
    ]  # fmt: skip
    spans.sort(key=lambda span: (span.start, -span.end))
    _put_into_lanes(spans, recorder.threads)
    counts = [count._replace(time=min(max(count.time, recorder.started), ended)) for count in recorder.counts]
    return Timeline(recorder.started, ended, spans, counts, recorder.threads, recorder.sums, recorder.notes)


_LANES = 1 << 40
"""The number of the first lane: threads have smaller ones."""


def _put_into_lanes(spans: list[Span], threads: dict[int, str]) -> None:
    """Compilations run in threads that live as long as one batch. So that each does not need a row, spans that do not
    overlap share a lane. `spans` are in order."""
    lanes: list[int] = []
    lane_of: dict[int, int] = {}
    ends: dict[int, int] = {}
    for span in spans:
        if _is_brief(span, threads):
            ends[span.thread] = max(ends.get(span.thread, 0), span.end)
    for place, span in enumerate(spans):
        if not _is_brief(span, threads):
            continue
        if span.thread not in lane_of:
            free = next((k for k, end in enumerate(lanes) if end <= span.start), len(lanes))
            lanes[free : free + 1] = [ends[span.thread]]
            lane_of[span.thread] = _LANES + free
            threads[_LANES + free] = f"compiler {free + 1}"
        spans[place] = span._replace(thread=lane_of[span.thread])


def _is_brief(span: Span, threads: Mapping[int, str]) -> bool:
    return span.track is Track.COMPILING and threads.get(span.thread, "").startswith("hloom")
