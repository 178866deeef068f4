"""Where buffers of known size and lifetime lie in one arena.

Source of the idea: XLA's GlobalDecreasingSizeBestFitHeap (heap_simulator.cc).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Offsets = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Request:
    """`size` bytes, needed in the half-open interval [start, end)."""

    size: int
    start: int
    end: int


def place(requests: Sequence[Request], alignment: int) -> tuple[list[int], int]:
    """An offset for each request, multiples of `alignment`, and the size of the whole.

    Requests that are alive at the same time never overlap. The largest is placed first (ties: the longest lived, then
    the earliest), each in the tightest gap that takes it among those placed before, else at the top.
    """
    offsets = [0] * len(requests)
    order = sorted(
        (i for i, r in enumerate(requests) if r.size),
        key=lambda i: (-requests[i].size, requests[i].start - requests[i].end, requests[i].start, i),
    )
    starts, ends, lows, highs = (np.empty(len(order), np.int64) for _ in range(4))
    top = 0
    for count, i in enumerate(order):
        request = requests[i]
        size = -(-request.size // alignment) * alignment
        alive = (starts[:count] < request.end) & (ends[:count] > request.start)
        low, high = lows[:count][alive], highs[:count][alive]
        offset = _best_gap(low, high, size) if low.size else 0
        offsets[i] = offset
        starts[count], ends[count], lows[count], highs[count] = request.start, request.end, offset, offset + size
        top = max(top, offset + size)
    return offsets, top


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
