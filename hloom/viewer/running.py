"""Times of a program's rows: the program runs while a timeline is recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from ..hlo.support.records import dataclass
from ..hlo.timeline.summary import Line, MachineSpeed, Summary, summarize
from ..hlo.timeline.timeline import Timeline
from ..tracer.profiling.timeline import ProfileOptions, Session

Key = tuple[str, str, str]
"""The name, the instruction and the user's line of a row."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one program's rows."""

    calls: int
    runs: int
    """Calls, on each device that ran it in this process."""
    seconds: float
    """Of one run."""
    lines: Mapping[Key, Line]
    """The sums of all runs."""
    summary: Summary
    speed: MachineSpeed | None

    @property
    def machine(self) -> str:
        """The speeds that the rows are compared with."""
        if self.speed is None:
            return ""
        flops = ", ".join(f"{n / 1e9:.0f} GFLOP/s of {t}" for t, n in self.speed.flops_per_second.items())
        return f"{self.speed.bytes_per_second / 1e9:.1f} GB/s, {flops}"


def times_of_runs(run: Callable[[], object], calls: int, program: str) -> Times:
    """Call `run` once to warm up, then `calls` times. `program`: the module's name."""
    run()
    session = Session(ProfileOptions())
    session.start()
    try:
        for _ in range(calls):
            run()
    finally:
        timeline = session.stop()
    return times_in(timeline, program, calls)


def times_in(timeline: Timeline, program: str, calls: int | None = None) -> Times:
    """The times of one program in a timeline. `calls`: how often it ran; None: as the timeline says."""
    speed = None
    if any(span.subject is not None for span in timeline.spans):
        from ..numba_backend.machine_speed import machine_speed

        speed = machine_speed()
    summary = summarize(timeline, os.getpid(), speed)
    lines = {(line.name, line.instruction, line.source): line for line in summary.lines if line.program == program}
    ran = [s for s in timeline.spans if s.subject is not None and s.subject.op == "program" and s.name == program]
    runs = len(ran) or calls or 1
    spent = sum(s.end - s.start for s in ran) / 1e9 if ran else sum(line.seconds for line in lines.values())
    return Times(calls or runs, runs, spent / runs, lines, summary, speed)


def slowest(summary: Summary, programs: Sequence[str]) -> str | None:
    """The program whose rows took most of the time; None if none of them ran."""
    spent = dict.fromkeys(programs, 0)
    for line in summary.lines:
        if line.program in spent:
            spent[line.program] += line.nanoseconds
    found = max(spent, key=spent.__getitem__, default=None)
    return found if found is not None and spent[found] else None
