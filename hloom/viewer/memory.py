"""The buffers of a program over time, as the page draws them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from ..hlo.buffers.allocation import AllocationKind
from ..hlo.buffers.report import MemoryMapRow, MemoryReport

_KINDS = {
    AllocationKind.PARAMETER: "argument",
    AllocationKind.OUTPUT: "result",
    AllocationKind.CONSTANT: "constant",
    AllocationKind.ARENA: "arena",
}


def buffers_of(report: MemoryReport | None, ids: Mapping[str, int]) -> dict[str, Any]:
    """`buffers`, `arenas` and `schedule` of the page. `ids`: of the last stage's instructions, by name.

    The schedule has only positions at which something is computed, so positions are counted anew.
    """
    if report is None:
        return {"buffers": [], "arenas": [], "schedule": []}
    positions = sorted(position for position, name in report.schedule.items() if name in ids)
    names = {space.number: space.name or (f"S({space.number})" if space.number else "") for space in report.spaces}
    return {
        "buffers": [_buffer(row, names, positions, ids) for row in report.rows],
        "arenas": [
            {"space": names[s.number], "size": s.arena_bytes, "peak": s.arena_peak, "limit": s.limit}
            for s in report.spaces
            if s.arena_bytes
        ],
        "schedule": [ids[report.schedule[position]] for position in positions],
    }


def _buffer(
    row: MemoryMapRow, names: Mapping[int, str], positions: Sequence[int], ids: Mapping[str, int]
) -> dict[str, Any]:
    last = max(len(positions) - 1, 0)
    first = min(bisect_left(positions, row.first), last)
    kind = row.slice.allocation.kind
    return {
        "memory": _KINDS[kind],
        "space": names.get(row.space, ""),
        "offset": row.slice.offset,
        "size": row.physical_bytes,
        "logical": row.logical_bytes,
        "first": first,
        "last": max(first, bisect_right(positions, row.last) - 1),
        "values": [_value(holder, ids) for holder in row.holders],
        "reason": row.reason,
    }


def _value(holder: str, ids: Mapping[str, int]) -> int | str:
    """The id of the instruction that a buffer holds, or an element of: `fusion` or `fusion{1}`."""
    found = ids.get(holder, ids.get(holder.partition("{")[0]))
    return holder if found is None else found
