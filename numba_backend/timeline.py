"""Timelines of programs: the recorder's events, row by row, become spans with names, bytes and the user's lines.

    kernels, products      a span in the thread that called the program, and one for each piece in each thread
    calls of libraries     and of Python, with the time for which they waited for the GIL
    waits                  for the pool's other threads; for Python, where a loop looks for interrupts
    copies                 that a program makes between its own buffers

It also counts memory: bytes in blocks that arrays and programs use, bytes kept for later, and the memory of the whole
process. `compiler.py` registers `SOURCE`, which imports this module when something is recorded; it imports no Numba.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from ..hlo.analyses.cost import cost_of, metadata_of
from ..hlo.analyses.traffic import traffic_of
from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.system import system
from ..hlo.timeline.spans import Kind, Recorder, Span, Track
from ..hlo.timeline.work import Work
from .dot import Strides, is_gemm, strides_of
from .runtime import memory, recorder
from .runtime.blas import Gemm
from .runtime.executor import Op
from .runtime.kernel import ELEMENT_BYTES
from .runtime.program import ON_PROGRAM, Program, programs

_TRACKS = {
    Op.KERNEL: Track.KERNELS,
    Op.NATIVE_LOOP: Track.KERNELS,
    Op.LONG: Track.KERNELS,
    Op.GEMM: Track.KERNELS,
    Op.CHAIN: Track.KERNELS,
    Op.COPY: Track.COPIES,
    Op.ZERO: Track.COPIES,
    Op.LOOP: Track.WAITS,
}
"""The tracks of rows; all others are calls of libraries or of Python."""
_NOTICEABLE = 500
"""Nanoseconds from which on a wait is shown."""
_SAMPLES = 20_000_000
"""Nanoseconds from one count of the memory to the next."""


class _Source:
    """Records programs during a recording."""

    def __init__(self) -> None:
        self._programs: list[Program] = []
        self._works: dict[int, Work] = {}
        self._sampled = 0
        self._is_on = False

    def start(self, into: Recorder) -> None:
        self._is_on = into.kernels
        if not self._is_on:
            return
        self._works.clear()
        self._programs = programs()
        ON_PROGRAM.append(self._programs.append)
        recorder.start(lambda: self._sample(into))

    def stop(self, into: Recorder) -> Iterable[Span]:
        if not self._is_on:
            return []
        recording = recorder.stop()
        ON_PROGRAM.remove(self._programs.append)
        self._sampled = 0
        self._sample(into)
        by_address = sorted(self._programs, key=lambda program: program.address)
        found = _Spans(by_address)
        spans = list(found.of(recording))
        spans += _waits_for_python(spans, into.spans)
        if recording.lost:
            into.notes["events that were lost"] = recording.lost
        if recording.sums:
            into.notes["events that came too fast, and are only in the sums"] = sum(
                n for n, _ in recording.sums.values()
            )
            into.sums = found.sums(recording)
        for thread in {span.thread for span in spans}:
            into.threads.setdefault(thread, "hloom worker")
        self._programs = []
        return spans

    def _sample(self, into: Recorder) -> None:
        """Count the memory, unless that was just done."""
        now = time.perf_counter_ns()
        if now - self._sampled < _SAMPLES:
            return
        self._sampled = now
        used, kept = memory.in_use()
        into.count("arrays and temporaries", used=used, **{"kept for later": kept})
        resident = system.resident_bytes()
        if resident:
            into.count("process", resident=resident)


class _Spans:
    """Makes spans of events."""

    def __init__(self, by_address: list[Program]) -> None:
        self._sorted = by_address
        self._addresses = [program.address for program in by_address]
        self._works: dict[int, Work | None] = {}
        self._counted: dict[Program, Counter[HloInstruction]] = {}

    def of(self, recording: recorder.Recording) -> Iterator[Span]:
        """All spans of a recording."""
        for thread, events in recording.events:
            last_piece: tuple[int, int] | None = None
            for address, began, ended, lo, hi in events.tolist():
                if address & 1:  # a piece of a row, before the row's own event
                    work = self.work(address - 1)
                    if work is not None:
                        about = {**work.arguments, "from": lo, "to": hi}
                        yield Span(Track.KERNELS, work.name, began, ended, thread, about, Kind.PIECE)
                        last_piece = (address - 1, ended)
                    continue
                work = self.work(address)
                if work is None:
                    continue
                yield Span(work.track, work.name, began, ended, thread, work.arguments, subject=work)
                if last_piece is not None and last_piece[0] == address:
                    waited = last_piece[1]
                    if ended - waited >= _NOTICEABLE and waited > began:
                        about = {"for": work.name}
                        yield Span(Track.WAITS, "wait for threads", waited, ended, thread, about)
                last_piece = None

    def sums(self, recording: recorder.Recording) -> list[tuple[Work, int, int]]:
        """(row, how often, nanoseconds) of the events that were not kept."""
        found = [(self.work(address), n, ns) for address, (n, ns) in recording.sums.items() if not address & 1]
        return [(work, n, ns) for work, n, ns in found if work is not None]

    def work(self, address: int) -> Work | None:
        """The row at an address; None if the program is gone, so that nothing is known about it."""
        if address not in self._works:
            place = bisect_right(self._addresses, address) - 1
            program = self._sorted[place] if place >= 0 else None
            if program is None or address >= program.address + program.nbytes:
                self._works[address] = None
            elif address == program.address:
                self._works[address] = Work(
                    program.title, program.title, "program", "", "", Track.PROGRAMS, {}, None, None, "", ""
                )
            else:
                self._works[address] = self._row(program, address)
        return self._works[address]

    def _row(self, program: Program, address: int) -> Work | None:
        row = program.row_at(address)
        if row is None:
            return None
        origin = row.origin
        nbytes: int | None = None
        flops: int | None = None
        name = str(row.shown[0]) if row.shown else row.op.name.lower()
        arguments: dict[str, object] = {"program": program.title}
        if row.op is Op.GEMM:
            gemm = _gemm_of(row.shown)
            nbytes, flops, name = _bytes_of(gemm), gemm.flop, _title(gemm.dtype, gemm)
            after = [str(name) for then, name in pairwise(row.shown) if then == "then"]
            for kernel, instruction in zip(after, row.after, strict=True):  # on each piece, as a part of it
                cost = cost_of(instruction)
                name += f" + {kernel}"
                nbytes += traffic_of(instruction)
                flops += cost["flops"] + cost["transcendentals"]
            if after:
                arguments["then"] = ", ".join(instruction.name for instruction in row.after)
        elif row.op is Op.CHAIN and origin is not None:
            parts = (origin, *row.after)
            name = " + ".join([name, *(str(name) for then, name in pairwise(row.shown) if then == "then")])
            costs = [cost_of(part) for part in parts]
            nbytes = sum(traffic_of(part) for part in parts)
            flops = sum(cost["flops"] + cost["transcendentals"] for cost in costs)
            arguments["then"] = ", ".join(part.name for part in row.after)
        elif row.op in (Op.COPY, Op.ZERO):
            nbytes = program.word(address, 3 if row.op is Op.COPY else 2) * (2 if row.op is Op.COPY else 1)
            name = row.op.name.lower()
        elif row.op is Op.LOOP:
            name = "look for interrupts"
        elif row.op is Op.PYTHON:
            name = _python_name(origin)
        if row.op in (Op.KERNEL, Op.NATIVE_LOOP, Op.LONG):
            arguments["kernel"] = name
        if origin is not None:
            arguments["instruction"] = origin.name
            if row.op not in (Op.GEMM, Op.CHAIN, Op.COPY, Op.ZERO, Op.LOOP) and self._rows_of(program)[origin] == 1:
                cost = cost_of(origin)
                nbytes = traffic_of(origin)
                flops = cost["flops"] + cost["transcendentals"]
                if origin.opcode is Opcode.DOT and is_gemm(origin):  # the same, whether a kernel or BLAS computes it
                    name = _title(_element_type(origin), strides_of(origin))
        if nbytes is not None:
            arguments["bytes"] = nbytes
        if flops is not None:
            arguments["flops"] = flops
        metadata = None if origin is None else metadata_of(origin)
        source = ""
        if metadata is not None:
            source = f"{metadata.source_file}:{metadata.source_line}"
            arguments.update(op_name=metadata.op_name, source=source)
        return Work(
            program.title, name, row.op.name.lower(), "" if origin is None else origin.name,
            "" if origin is None else origin.opcode.value, _TRACKS.get(row.op, Track.LIBRARIES), arguments,
            nbytes, flops, source, _element_type(_gemm_of(row.shown) if row.op is Op.GEMM else origin),
        )  # fmt: skip

    def _rows_of(self, program: Program) -> Counter[HloInstruction]:
        """How many rows that compute something each instruction has."""
        found = self._counted.get(program)
        if found is None:
            quiet = (Op.COPY, Op.ZERO, *_STEERING)
            found = Counter(row.origin for row in program.rows if row.origin is not None and row.op not in quiet)
            self._counted[program] = found
        return found


_STEERING = (Op.JUMP, Op.JUMP_IF_FALSE, Op.LOOP, Op.SWITCH, Op.END)


def works_of(program: Program) -> list[Work]:
    """The work of each row of a program, in order; rows that only choose the next row do none."""
    spans = _Spans([program])
    pairs = zip(program.rows, program.row_addresses(), strict=True)
    works = [spans.work(address) for row, address in pairs if row.op not in _STEERING]
    return [work for work in works if work is not None]


def _gemm_of(shown: Sequence[object]) -> Gemm:
    return next(part for part in shown if isinstance(part, Gemm))


def _bytes_of(gemm: Gemm) -> int:
    one = gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n * (2 if gemm.beta else 1)
    count = 1
    for dimension in gemm.batch:
        count *= dimension.count
    return one * count * ELEMENT_BYTES[gemm.dtype]


def _element_type(source: Any) -> str:
    if isinstance(source, Gemm):
        return source.dtype
    kinds = [] if source is None else [leaf.element_type for leaf in source.shape.leaves()]
    return str(kinds[0].value) if kinds and kinds[0] is not None else ""


def _title(element_type: str, product: Gemm | Strides) -> str:
    batch = "".join(f"{dimension.count}x" for dimension in product.batch)
    return f"{element_type}[{batch}{product.m}x{product.k}] @ [{product.k}x{product.n}]"


def _python_name(origin: HloInstruction | None) -> str:
    if origin is None:
        return "Python"
    if origin.opcode is Opcode.CUSTOM_CALL:
        return str(origin.attributes.custom_call_target)
    return str(origin.opcode.value)


def _waits_for_python(rows: Iterable[Span], reported: Iterable[Span]) -> Iterator[Span]:
    """How long calls of Python waited for the GIL: from the beginning of the row to the beginning of the function."""
    begun: dict[int, list[int]] = {}
    for span in reported:
        if span.track is Track.LIBRARIES:
            begun.setdefault(span.thread, []).append(span.start)
    for starts in begun.values():
        starts.sort()
    for row in rows:
        if row.track is Track.LIBRARIES and row.thread in begun:
            starts = begun[row.thread]
            place = bisect_right(starts, row.start)
            if place < len(starts) and row.start + _NOTICEABLE < starts[place] < row.end:
                about = {"for": row.name}
                yield Span(Track.WAITS, "wait for the GIL", row.start, starts[place], row.thread, about)


SOURCE = _Source()
