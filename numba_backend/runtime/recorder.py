"""Record which row of a program ran when, and in which thread. recorder_code.py has the native code for it.

    start()                 from now on calls of programs take the executor that records
    recording = stop()      a `Recording`: the events, thread by thread

While it records, a thread of this process empties the rings every few milliseconds. It keeps the first million events
of a recording; of later ones, and of those that came while a ring was full, only how often each row ran and how long
that took. So sums are right, and the timeline has gaps.

A forked child does not record: what goes on there is another process's. Only one recording runs at a time.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.records import dataclass
from ...hlo.system import at_fork, system
from .executor import EXECUTOR, native_function
from .executor_hook import EXECUTE, HOOK, HOOK_WORD, hook_address
from .recorder_code import (
    BUFFER_WORDS,
    BUFFERS,
    CLOCK,
    EVENT_WORDS,
    EVENTS,
    FIRST,
    GENERATION,
    GET,
    HEAD,
    HEADER_WORDS,
    HOMELESS,
    KEY,
    LOST,
    NEXT,
    PIECE,
    PRODUCT_PIECE,
    RECORD,
    RECORD_EVENT,
    RECORD_PIECE,
    RECORD_PRODUCT_PIECE,
    SELF,
    SET,
    START,
    TABLE,
    TABLE_ROWS,
    TABLE_WORDS,
    TAIL,
    THREAD,
    recorded_executor,
)
from .store import default_store

MAX_EVENTS = 1_000_000
_PERIOD = 5e-3
"""Seconds from one look at the rings to the next."""

RECORDED_EXECUTOR = native_function("execute_recorded", recorded_executor(HOOK_WORD), 3)
RECORDER_FUNCTIONS = (RECORDED_EXECUTOR, RECORD_EVENT, RECORD_PIECE, RECORD_PRODUCT_PIECE)

NDArray = np.ndarray[Any, Any]


@dataclass(slots=True)
class Recording:
    """The events and counts of a recording."""

    events: list[tuple[int, NDArray]] = field(default_factory=list)
    """(thread, s64[n, 5]): for each event the row's address, when it began and ended, and the range of a piece. The
    events of a thread are in the order in which they ended."""
    count: int = 0
    sums: dict[int, list[int]] = field(default_factory=dict)
    """The events that were not kept: by the row's address, their number and their nanoseconds."""
    lost: int = 0
    """Events that are only counted, since there were too many threads, or too many rows while a ring was full."""

    def add(self, thread: int, events: NDArray) -> None:
        """Events of one thread."""
        if self.count < MAX_EVENTS:
            self.events.append((thread, events))
            self.count += len(events)
            return
        rows, which = np.unique(events[:, 0], return_inverse=True)
        times = np.bincount(which)
        spent = np.bincount(which, weights=(events[:, 2] - events[:, 1]).astype(np.float64))
        for row, number, nanoseconds in zip(rows.tolist(), times.tolist(), spent.tolist()):
            self.add_sum(row, number, int(nanoseconds))

    def add_sum(self, row: int, number: int, nanoseconds: int) -> None:
        """Events that are not kept."""
        known = self.sums.setdefault(row, [0, 0])
        known[0] += number
        known[1] += nanoseconds


class _Recorder:
    """The one of this process."""

    def __init__(self) -> None:
        self._lock = fork_lock(Order.POOL)
        self._hook = HOOK
        self._buffers: NDArray | None = None
        self._generation = 0
        self._recording: Recording | None = None
        self._ended = threading.Event()
        self._reader: threading.Thread | None = None

    def start(self, beside: Callable[[], object]) -> None:
        """Record from now on; `beside` is called every few milliseconds, in another thread. RuntimeError if a recording
        runs already."""
        with self._lock:
            if self._recording is not None:
                raise RuntimeError("programs are being recorded already")
            hook, _ = self._hook, hook_address()
            recorded, hook[RECORD], hook[PIECE], hook[PRODUCT_PIECE] = default_store().get_many(RECORDER_FUNCTIONS)
            if self._buffers is None:
                self._create()
            hook[START] = hook[NEXT]
            hook[HOMELESS] = 0
            self._recording = Recording()
            self._ended = threading.Event()
            self._reader = threading.Thread(
                target=self._read_again, args=(self._ended, beside), name="hloom-recorder", daemon=True
            )
            self._reader.start()
            self._generation += 1
            hook[GENERATION] = self._generation
            hook[EXECUTE] = recorded

    def stop(self) -> Recording:
        """End the recording; what was recorded. RuntimeError if none runs."""
        with self._lock:
            recording, reader = self._recording, self._reader
            if recording is None or reader is None:
                raise RuntimeError("programs are not being recorded")
            self._hook[EXECUTE] = default_store().get(EXECUTOR)
            self._hook[GENERATION] = 0
            self._ended.set()
            self._recording = self._reader = None
        reader.join()
        self._empty(recording)
        recording.lost += self._hook[HOMELESS]
        assert self._buffers is not None
        for number in self._owned():
            recording.lost += int(self._buffers[number, LOST])
            table = self._buffers[number, TABLE:HEADER_WORDS].reshape(TABLE_ROWS, TABLE_WORDS)
            for row, count, nanoseconds in table[table[:, 0] != 0].tolist():
                recording.add_sum(row, count, nanoseconds)
            self._buffers[number, THREAD] = 0
        system.drop_pages(self._hook[FIRST], self._buffers.nbytes)
        return recording

    def forget(self) -> None:
        """For a forked child."""
        self._hook[GENERATION] = 0
        if self._recording is not None:
            self._hook[EXECUTE] = default_store().get(EXECUTOR)
            self._recording = self._reader = None

    def _create(self) -> None:
        words = BUFFERS * BUFFER_WORDS
        address = system.sparse_pages(8 * words)
        if not address:
            raise MemoryError(f"the system has no {8 * words} bytes for a recording")
        key = system.new_thread_key()
        if key is None:
            raise MemoryError("the system has no key for what belongs to a thread")
        memory = (ctypes.c_int64 * words).from_address(address)
        self._buffers = np.frombuffer(memoryview(memory), np.int64).reshape(BUFFERS, BUFFER_WORDS)
        hook = self._hook
        hook[KEY], hook[FIRST] = key, address
        for word, service in ((CLOCK, "clock"), (GET, "get"), (SET, "set"), (SELF, "number")):
            hook[word] = system.native_address(service)

    def _read_again(self, ended: threading.Event, beside: Callable[[], object]) -> None:
        while not ended.wait(_PERIOD):
            recording = self._recording
            if recording is not None:
                self._empty(recording)
            beside()

    def _owned(self) -> list[int]:
        first, last = self._hook[START], self._hook[NEXT]
        return [number & (BUFFERS - 1) for number in range(first, min(last, first + BUFFERS))]

    def _empty(self, recording: Recording) -> None:
        buffers = self._buffers
        assert buffers is not None
        for number in self._owned():
            buffer = buffers[number]
            thread = int(buffer[THREAD])
            head, tail = int(buffer[HEAD]), int(buffer[TAIL])
            if not thread or head == tail:
                continue
            events = buffer[HEADER_WORDS:].reshape(EVENTS, EVENT_WORDS)
            first, last = tail & (EVENTS - 1), head & (EVENTS - 1)
            found = events[first:last].copy() if first < last else np.concatenate([events[first:], events[:last]])
            buffer[TAIL] = head
            recording.add(thread, found)


_recorder = _Recorder()
at_fork(after_in_child=_recorder.forget)


start, stop = _recorder.start, _recorder.stop
