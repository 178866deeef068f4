"""Buffers over time: a picture of a program's memory, from the report on its buffers (`hlo/buffers/report.py`).

Each kind of memory is a panel. A buffer is a rectangle: from left to right the part of the schedule in which it is
needed, from top to bottom its bytes. So buffers below each other are there at the same time, and those beside each
other reuse the same bytes. The white part of a rectangle is padding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..buffers.allocation import AllocationKind
from ..buffers.report import MemoryMapRow, MemoryReport
from ..support.records import dataclass
from . import palette
from .drawing import Drawing, Line, Rectangle, Text, text_width

_WIDTH, _EDGE = 720.0, 1.5
_SIZE = 11.0
"""Of texts."""
_ROW, _ARENA = 20.0, 220.0
"""How high a panel is for each of its buffers, and at most."""
_MOST = 400
"""Rectangles of a panel; the largest buffers are drawn."""
_OUTSIDE = "currentColor"
"""The colour of text beside rectangles: that of the page."""
_TITLES = {
    AllocationKind.PARAMETER: "arguments",
    AllocationKind.OUTPUT: "results",
    AllocationKind.CONSTANT: "constants",
    AllocationKind.ARENA: "temporaries, in one arena",
}


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    size: int
    buffers: Sequence[tuple[int, MemoryMapRow]]
    """Each with the byte at which it begins."""


def memory_figure(report: MemoryReport) -> Drawing:
    """The figure of a program's memory. A program without buffers has an empty one."""
    end = max((max(row.first, row.last) for row in report.rows), default=0) + 1  # no step needs an unused argument
    items: list[Rectangle | Line | Text] = []
    y = _EDGE
    for panel in _panels(report):
        items.append(Text(_EDGE, y + 8, panel.title, _SIZE, _OUTSIDE, "start", bold=True))
        left_out = len(panel.buffers) - _MOST
        if left_out > 0:
            items.append(Text(_WIDTH, y + 8, f"{left_out:,} smaller ones are not drawn", _SIZE, _OUTSIDE, "end"))
        height = min(max(_ROW * len(panel.buffers), _ROW), _ARENA)
        y += 20
        items += _boxes(panel, y, height, end)
        y += height + 14
    if report.rows:
        items.append(Line(_EDGE, y - 4, _WIDTH, y - 4, _OUTSIDE, 0.6))
        items.append(Text(_EDGE, y + 8, "step 0 of the schedule", _SIZE, _OUTSIDE, "start"))
        items.append(Text(_WIDTH, y + 8, f"step {end - 1:,}", _SIZE, _OUTSIDE, "end"))
        y += 20
    return Drawing(_WIDTH + _EDGE, math.ceil(y), f"Memory of {report.module} over time", "none", items)


def _panels(report: MemoryReport) -> Iterator[_Panel]:
    """One for each kind of memory that has buffers; one for each arena."""
    groups: dict[tuple[AllocationKind, int], list[MemoryMapRow]] = {}
    for row in report.rows:
        allocation = row.slice.allocation
        space = allocation.index if allocation.kind is AllocationKind.ARENA else 0
        groups.setdefault((allocation.kind, space), []).append(row)
    for (kind, space), rows in groups.items():
        begins, size = {}, 0
        for allocation in dict.fromkeys(row.slice.allocation for row in rows):
            begins[allocation] = size
            size += allocation.size
        name = _TITLES[kind] + (f" S({space})" if space else "")
        count = f"{len(rows)} buffer{'' if len(rows) == 1 else 's'}"
        buffers = [(begins[row.slice.allocation] + row.slice.offset, row) for row in rows]
        yield _Panel(f"{name}: {count} in {size:,} bytes", size, buffers)


def _boxes(panel: _Panel, top: float, height: float, end: int) -> Iterator[Rectangle | Text]:
    drawn = sorted(panel.buffers, key=lambda buffer: -buffer[1].physical_bytes)[:_MOST]
    per_step, per_byte = (_WIDTH - _EDGE) / end, height / max(panel.size, 1)
    for number, (begin, row) in enumerate(sorted(drawn, key=lambda buffer: (buffer[0], buffer[1].first))):
        x, y = _EDGE + row.first * per_step, top + begin * per_byte
        wide, high = max(row.last + 1 - row.first, 1) * per_step, max(row.physical_bytes * per_byte, 1.0)
        colour = palette.TILES[number % len(palette.TILES)]
        yield Rectangle(x, y, wide, high, colour, palette.FAINT, 0.6, about=_about(row))
        padding = 1 - row.logical_bytes / row.physical_bytes if row.physical_bytes and row.logical_bytes else 0.0
        if padding > 0:
            yield Rectangle(x, y + high * (1 - padding), wide, high * padding, palette.PADDING, palette.FAINT, 0.4)
        name = ", ".join(row.holders)
        room = int((wide - 8) / text_width("0", _SIZE))
        if high >= _SIZE + 2 and room > 3 and name:
            shown = name if len(name) <= room else f"{name[: room - 1]}…"
            yield Text(x + 5, y + high / 2, shown, _SIZE, palette.INK, "start")


def _about(row: MemoryMapRow) -> str:
    """The lines that are shown beside the mouse."""
    what = ", ".join(row.holders)
    shape = f"\n{row.shape}" if row.shape is not None else ""
    padding = row.physical_bytes - row.logical_bytes if row.logical_bytes else 0
    lost = f", {padding:,} of them padding" if padding else ""
    why = f"\n{row.reason}" if row.reason else ""
    where = f"at {row.slice.offset:,} of {row.slice.allocation}, steps {row.first} to {row.last}"
    return f"{what}{shape}\n{row.physical_bytes:,} bytes{lost}\n{where}{why}"
