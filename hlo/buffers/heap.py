"""The offsets of buffers of known size and lifetime in one piece of memory.

Source of the idea: XLA's GlobalDecreasingSizeBestFitHeap (heap_simulator.cc).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..support.records import dataclass

Offsets = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Request:
    """`size` bytes, needed in the half-open interval [start, end)."""

    size: int
    start: int
    end: int


class Heap:
    """Places requests one after the other: each at the bottom of the smallest gap that fits, otherwise at the top.

    Requests that are alive at the same time never overlap. Offsets are multiples of `alignment`.
    """

    def __init__(self, alignment: int, limit: int | None = None) -> None:
        """`limit`: the most bytes."""
        self.alignment = alignment
        self.limit = limit
        self.size = 0
        """Bytes used so far: the highest end of a request."""
        self._count = 0
        self._starts, self._ends, self._lows, self._highs = (np.empty(64, np.int64) for _ in range(4))

    def add(self, request: Request) -> int | None:
        """Place a request and return its offset; None, without a change, if there is no room for it."""
        size = -(-request.size // self.alignment) * self.alignment
        if self.limit is not None and size > self.limit:
            return None
        n = self._count
        alive = (self._starts[:n] < request.end) & (self._ends[:n] > request.start)
        low, high = self._lows[:n][alive], self._highs[:n][alive]
        offset = _best_gap(low, high, size) if low.size else 0
        if self.limit is not None and offset + size > self.limit:
            return None
        if n == len(self._starts):
            self._starts, self._ends, self._lows, self._highs = (
                np.concatenate([a, np.empty_like(a)]) for a in (self._starts, self._ends, self._lows, self._highs)
            )
        self._starts[n], self._ends[n] = request.start, request.end
        self._lows[n], self._highs[n] = offset, offset + size
        self._count = n + 1
        self.size = max(self.size, offset + size)
        return offset

    def has_room_for(self, requests: Sequence[Request], limit: int) -> bool:
        """Could `add_all` place them below `limit`?"""
        count, size, own_limit = self._count, self.size, self.limit
        self.limit = limit
        found = self.add_all(requests)
        self._count, self.size, self.limit = count, size, own_limit
        return found is not None

    def add_all(self, requests: Sequence[Request]) -> list[int] | None:
        """Place several requests; return their offsets, or None, without a change, if there is no room for all."""
        count, size = self._count, self.size
        offsets: list[int] = []
        for request in requests:
            offset = self.add(request)
            if offset is None:
                self._count, self.size = count, size
                return None
            offsets.append(offset)
        return offsets


def place(requests: Sequence[Request], alignment: int) -> tuple[list[int], int]:
    """An offset for each request, a multiple of `alignment`, and the total size.

    The largest is placed first (ties: the longest lived, then the earliest). Empty ones get 0.
    """
    offsets = [0] * len(requests)
    order = sorted(
        (i for i, r in enumerate(requests) if r.size),
        key=lambda i: (-requests[i].size, requests[i].start - requests[i].end, requests[i].start, i),
    )
    heap = Heap(alignment)
    for i in order:
        offset = heap.add(requests[i])
        assert offset is not None
        offsets[i] = offset
    return offsets, heap.size


def peak(requests: Iterable[Request]) -> int:
    """The most bytes that are needed at once: no heap is smaller."""
    changes: dict[int, int] = {}
    for request in requests:
        changes[request.start] = changes.get(request.start, 0) + request.size
        changes[request.end] = changes.get(request.end, 0) - request.size
    now = most = 0
    for _, change in sorted(changes.items()):
        now += change
        most = max(most, now)
    return most


def _best_gap(low: Offsets, high: Offsets, size: int) -> int:
    """The start of the tightest gap of at least `size` between the ranges [low, high); their top if there is none."""
    by_start = np.argsort(low, kind="stable")
    gap_ends = low[by_start]
    covered = np.maximum.accumulate(high[by_start])
    gap_starts = np.empty_like(gap_ends)
    gap_starts[0] = 0
    gap_starts[1:] = covered[:-1]
    gaps = gap_ends - gap_starts
    fitting = np.flatnonzero(gaps >= size)
    if fitting.size:
        return int(gap_starts[fitting[np.argmin(gaps[fitting])]])
    return int(covered[-1])
