"""A timeline in numbers: each kernel, product and call of a library, sorted by time, and where all time went.

A row is compared with the machine's speed (`MachineSpeed`). Bytes are those that shapes say must move, once for each
call (`hlo/analyses/traffic.py`); data that is still in a cache moves faster than memory, so more than 100 % of the
memory's bandwidth is possible. Operations are counted as in `cost_analysis`; each transcendental one counts as one.
Names come from users and from files: in tables they are escaped, as terminals act on some characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from ..notebooks import in_notebooks
from ..support.records import dataclass
from ..support.tables import Table
from ..text.escape import escape
from .accounting import account, busiest_thread
from .spans import Kind, Track
from .timeline import Timeline

_ROWS = (Track.KERNELS, Track.LIBRARIES, Track.COPIES)


@dataclass(frozen=True, slots=True)
class MachineSpeed:
    """The speeds that this machine reached in the measurement."""

    bytes_per_second: float
    """a[i] = b[i] + c * d[i] over arrays that no cache holds, on all threads: 3 x 8 bytes an element."""
    flops_per_second: Mapping[str, float]
    """Of products of large matrices, on all threads, by element type: "f32" and "f64"."""
    threads: int


@dataclass(slots=True)
class Line:
    """The sums of one row of a program over all its calls."""

    name: str
    program: str
    instruction: str
    source: str
    """The user's line, ``file:line``; "" if it is not known."""
    element_type: str
    calls: int = 0
    nanoseconds: int = 0
    bytes: int | None = 0
    """In all calls; None if it is not known."""
    flops: int | None = 0
    subject: Any = field(default=None, repr=False, compare=False)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 1e9

    def add(self, calls: int, nanoseconds: int, nbytes: int | None, flops: int | None) -> None:
        """More calls."""
        self.calls += calls
        self.nanoseconds += nanoseconds
        self.bytes = None if self.bytes is None or nbytes is None else self.bytes + calls * nbytes
        self.flops = None if self.flops is None or flops is None else self.flops + calls * flops


@dataclass(frozen=True, slots=True)
class Summary:
    """`lines`: by time, the longest first. `accounts`: seconds of the main thread by category. `calls`: of annotated
    steps, jitted functions and Python functions, by kind: (name, how many, nanoseconds)."""

    seconds: float
    lines: Sequence[Line]
    accounts: Mapping[str, float]
    calls: Mapping[str, Sequence[tuple[str, int, int]]]
    speed: MachineSpeed | None
    notes: Mapping[str, object]

    def to_text(self, top: int = 20) -> str:
        """Tables for people; at most `top` rows of each."""
        written = [f"{table.to_text()}\n{said}".rstrip("\n") if table else said for table, said in self.parts(top)]
        return "\n\n".join(written)

    def parts(self, top: int = 20) -> Iterator[tuple[Table | None, str]]:
        """Tables and sentences, in order: a table with how many rows it leaves out, or None with a sentence."""
        yield None, f"{self.seconds:.3f} s were recorded"
        rows = [(name, _time(s), _share(s, self.seconds)) for name, s in self.accounts.items() if s >= 0.5e-6]
        rows.sort(key=lambda row: -self.accounts[row[0]])
        yield Table(("main thread", "time", "share"), rows, frozenset({1, 2})), ""
        for title, calls in self.calls.items():
            if calls:
                lines = [
                    (escape(name), f"{n:,}", _time(s), _time(s / n), _share(s, self.seconds))
                    for name, n, s in [(name, n, ns / 1e9) for name, n, ns in calls[:top]]
                ]
                table = Table((title, "calls", "total", "mean", "share"), lines, frozenset({1, 2, 3, 4}))
                yield table, _more(len(calls) - top)
        if self.lines:
            yield self.table(top), _more(len(self.lines) - top)
        if self.speed is not None:
            peaks = ", ".join(f"{flops / 1e9:.0f} GFLOP/s of {t}" for t, flops in self.speed.flops_per_second.items())
            yield (
                None,
                f"100 % are {self.speed.bytes_per_second / 1e9:.1f} GB/s from memory (measured: a = b + c * d over "
                f"large arrays) and {peaks} (measured: products of large matrices), on {self.speed.threads} threads",
            )
        for name, value in self.notes.items():
            yield None, f"{name}: {value}"

    _repr_html_ = in_notebooks

    def table(self, top: int = 20) -> Table:
        """The `top` rows that took longest."""
        rows = []
        for line in self.lines[:top]:
            s = line.seconds
            bandwidth = None if not line.bytes or not s else line.bytes / s
            flops = None if not line.flops or not s else line.flops / s
            of_memory = of_peak = None
            if self.speed is not None:
                of_memory = bandwidth and bandwidth / self.speed.bytes_per_second
                of_peak = flops and flops / self.peak(line)
            rows.append(
                (
                    escape(line.name), f"{line.calls:,}", _time(s), _time(s / line.calls), _share(s, self.seconds),
                    _number(line.bytes and line.bytes / line.calls), _giga(bandwidth), _percent(of_memory),
                    _number(line.flops and line.flops / line.calls), _giga(flops), _percent(of_peak),
                    escape(_short(line.source)),
                )
            )  # fmt: skip
        headings = (
            "kernel, product or call", "calls", "total", "mean", "share", "bytes", "GB/s", "of memory", "flops",
            "GFLOP/s", "of peak", "line",
        )  # fmt: skip
        return Table(headings, rows, frozenset(range(1, 11)))

    def peak(self, line: Line) -> float:
        """The machine's operations a second for the type that a row computes in."""
        assert self.speed is not None
        wide = line.element_type in ("f64", "c128", "s64", "u64")
        return self.speed.flops_per_second["f64" if wide else "f32"]

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        lines = []
        for line in self.lines:
            seconds = line.seconds
            one: dict[str, Any] = {
                "name": line.name, "program": line.program, "instruction": line.instruction, "source": line.source,
                "calls": line.calls, "seconds": seconds, "share": seconds / self.seconds if self.seconds else 0.0,
                "bytes": line.bytes, "flops": line.flops,
            }  # fmt: skip
            if self.speed is not None and seconds:
                if line.bytes is not None:
                    one["share_of_bandwidth"] = line.bytes / seconds / self.speed.bytes_per_second
                if line.flops is not None:
                    one["share_of_peak"] = line.flops / seconds / self.peak(line)
            lines.append(one)
        called = {
            f"{title.replace(' ', '_')}s": [{"name": name, "calls": n, "seconds": ns / 1e9} for name, n, ns in calls]
            for title, calls in self.calls.items()
        }
        return {
            "seconds": self.seconds, "main_thread": dict(self.accounts), **called, "rows": lines,
            "machine": None if self.speed is None else asdict(self.speed),
            "notes": dict(self.notes),
        }  # fmt: skip


def summarize(timeline: Timeline, main_thread: int, speed: MachineSpeed | None = None) -> Summary:
    """The summary of a timeline; `main_thread`: the number of the thread that the time is accounted for."""
    lines: dict[tuple[str, ...], Line] = {}
    calls: dict[str, dict[str, list[int]]] = {"step": {}, "jitted function": {}, "Python function": {}}
    titles = {Kind.CALL: "jitted function", Kind.FUNCTION: "Python function"}
    for span in timeline.spans:
        if span.subject is not None and span.track in _ROWS:
            _line(lines, span.subject).add(1, span.end - span.start, span.subject.bytes, span.subject.flops)
        elif span.kind in titles or span.track is Track.STEPS:
            known = calls[titles.get(span.kind, "step")].setdefault(span.name, [0, 0])
            known[0] += 1
            known[1] += span.end - span.start
    for work, number, nanoseconds in timeline.sums:
        if work.track in _ROWS:
            _line(lines, work).add(number, nanoseconds, work.bytes, work.flops)
    thread = busiest_thread(timeline, main_thread)
    accounts = {name: spent / 1e9 for name, spent in account(timeline, thread).items()}
    return Summary(
        timeline.nanoseconds / 1e9, sorted(lines.values(), key=lambda line: -line.nanoseconds), accounts,
        {title: _by_time(known) for title, known in calls.items()}, speed, timeline.notes,
    )  # fmt: skip


def _line(lines: dict[tuple[str, ...], Line], work: Any) -> Line:
    key = (work.program, work.instruction, work.name, work.source)
    found = lines.get(key)
    if found is None:
        found = lines[key] = Line(
            work.name, work.program, work.instruction, work.source, work.element_type, subject=work
        )
    return found


def _by_time(calls: Mapping[str, Sequence[int]]) -> list[tuple[str, int, int]]:
    return sorted(((name, n, ns) for name, (n, ns) in calls.items()), key=lambda call: -call[2])


def _more(count: int) -> str:
    return f"({count} more)" if count > 0 else ""


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def _percent(share: float | None) -> str:
    return "" if not share else f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


def _giga(rate: float | None) -> str:
    return "" if not rate else f"{rate / 1e9:.1f}" if rate >= 1e8 else f"{rate / 1e9:.3f}"


def _number(count: float | None) -> str:
    """A count with a unit: 1.5 M."""
    if not count:
        return ""
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f}"


def _short(source: str) -> str:
    """The last folder and the file of a line, of Windows, too."""
    return "/".join(re.split(r"[\\/]", source)[-2:])
