"""Profiles in a program or a notebook: a recorded block, and where its time went (`hloom.profiler.profile`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .hlo.notebooks import in_notebooks
from .hlo.timeline.summary import Summary, summarize
from .hlo.timeline.timeline import Timeline
from .hlo.timeline.trace_file import write_trace
from .tracer.profiling.timeline import ProfileOptions, Session


def summary_of(timeline: Timeline, measure_again: bool = False) -> Summary:
    """The summary of a timeline, beside the speed of this machine, which is measured if that was not done before."""
    speed = None
    if any(span.subject is not None for span in timeline.spans):
        from .numba_backend.machine_speed import (
            machine_speed,  # imported late: a timeline without kernels needs no speed
        )

        speed = machine_speed(measure_again)
    return summarize(timeline, os.getpid(), speed)


class Profile:
    """A recorded block. It prints as tables: where the main thread's time went, the jitted functions, the kernels.

    >>> with profiler.profile() as recorded:
    ...     y = hloom.jit(jnp.sin)(jnp.ones(3))
    >>> recorded.timeline.nanoseconds > 0
    True
    """

    def __init__(self) -> None:
        self._timeline: Timeline | None = None
        self._summary: Summary | None = None

    @property
    def timeline(self) -> Timeline:
        """The events. RuntimeError in the block, which is not over."""
        if self._timeline is None:
            raise RuntimeError("the profile is still being recorded: look at it after the block")
        return self._timeline

    def summary(self) -> Summary:
        """The sums over the block: for each kernel, jitted function and annotated step. RuntimeError in the block.

        >>> with profiler.profile() as recorded:
        ...     y = hloom.jit(jnp.sin)(jnp.ones(3))
        >>> [name for name, calls, nanoseconds in recorded.summary().calls["jitted function"]]
        ['sin']
        """
        if self._summary is None:
            self._summary = summary_of(self.timeline)
        return self._summary

    def write(self, path: str | Path) -> None:
        """Write the timeline for ui.perfetto.dev; compressed if the name ends in ".gz". RuntimeError in the block."""
        write_trace(self.timeline, path)

    def __str__(self) -> str:
        return "<Profile, recording>" if self._timeline is None else self.summary().to_text()

    __repr__ = __str__

    def _repr_html_(self) -> str | None:
        return None if self._timeline is None else in_notebooks(self.summary())


@contextmanager
def profile(profiler_options: ProfileOptions | None = None) -> Iterator[Profile]:
    """Record the events in the block. After it, the object shows where the time went: as text, and in a notebook.

    profiler_options: how much is recorded. RuntimeError if a profile is being recorded.

    >>> from hloom import numpy as jnp, profiler
    >>> with profiler.profile() as recorded:
    ...     x = jnp.arange(1000.0).sum()
    >>> str(recorded).splitlines()[2].split()
    ['main', 'thread', 'time', 'share']
    """
    session = Session(ProfileOptions() if profiler_options is None else profiler_options)
    recorded = Profile()
    session.start()
    try:
        yield recorded
    finally:
        if session.is_on:  # not in a child that the block has forked
            recorded._timeline = session.stop()
