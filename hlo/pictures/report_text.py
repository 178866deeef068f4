"""A layout report as tables: the contents of each memory space, then the buffers that waste most, with better
layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from ..analyses.layout_report import BufferUse, LayoutReport, SpaceTotal
from .facts import factor

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def report_text(report: LayoutReport, most: int | None = 20) -> str:
    """The report for people; of buffers the first `most`, or all for None."""
    return "\n".join(_lines(report, most)) + "\n"


def readable(size: int) -> str:
    """A number of bytes with four digits: 96 B, 512 KiB, 15.5 GiB."""
    value, unit = float(abs(size)), "B"
    for larger in _UNITS:
        if value < 1024:
            break
        value, unit = value / 1024, larger
    sign = "-" if size < 0 else ""
    return f"{sign}{value:.4g} {unit}" if value < 1000 else f"{sign}{value:.0f} {unit}"


def _lines(report: LayoutReport, most: int | None) -> Iterator[str]:
    count = len(report.buffers)
    how = report.target if report.target == "as written" else f"for target {report.target}"
    yield f"module {report.module}, {how}: {count:,} buffer{'s' * (count != 1)}"
    yield f"  {report.physical_bytes:,} bytes in memory, {report.logical_bytes:,} bytes of elements"
    if not report.buffers:
        return
    yield ""
    yield from _table(
        ("memory space", "buffers", "in memory", "elements", "factor", "at once"),
        [_space_row(s) for s in report.spaces],
        left={0},
    )
    shown = report.buffers if most is None else report.buffers[:most]
    yield ""
    yield from _buffer_table(report, shown)
    rest = report.buffers[len(shown) :]
    if rest:
        size, waste = sum(b.physical_bytes for b in rest), sum(b.wasted_bytes for b in rest)
        yield ""
        yield f"and {len(rest):,} more, {readable(size)} in memory, {readable(waste)} of it wasted (--all shows them)"
    if not any(b.shape.array_layout.tiles for b in report.buffers if b.shape is not None):
        yield ""
        yield "No array here is tiled, so none is padded. --target tpu shows what a TPU's layouts would take."
    if report.saved_bytes:
        yield ""
        yield f"The orders proposed would save {readable(report.saved_bytes)}, each taken by itself."


def _space_row(total: SpaceTotal) -> tuple[str, ...]:
    name = f"{total.name} S({total.space})" if total.name else f"S({total.space})"
    ratio = factor(total.physical_bytes / total.logical_bytes) if total.logical_bytes else "-"
    at_once = "" if total.peak is None else readable(total.peak)
    return (
        name, f"{total.buffers:,}", readable(total.physical_bytes), readable(total.logical_bytes), ratio, at_once,
    )  # fmt: skip


def _buffer_table(report: LayoutReport, buffers: tuple[BufferUse, ...]) -> Iterator[str]:
    """A line for each buffer, and one more for a better layout."""
    names = dict(report.names)
    titles = ("wasted", "in memory", "elements", "factor", "space", "shape", "buffer")
    rows = []
    for b in buffers:
        ratio = factor(b.factor) if b.logical_bytes else "-"
        space = names.get(b.space) or f"S({b.space})"
        sizes = (readable(b.wasted_bytes), readable(b.physical_bytes), readable(b.logical_bytes))
        shape = "" if b.shape is None else b.shape.to_text()
        rows.append((*sizes, ratio, space, shape, _label(b)))
    lines = list(_table(titles, rows, left={4, 5, 6}))
    margin = " " * (lines[0].index("space") + 2)
    yield lines[0]
    for line, b in zip(lines[1:], buffers, strict=True):
        yield line
        if b.better:
            saved, size = readable(b.better.saved), readable(b.better.byte_size)
            yield f"{margin}better: {b.better.layout} takes {size}, {saved} less"


def _label(buffer: BufferUse) -> str:
    """Its name, its purpose, and its line in the user's source."""
    parts = [buffer.name, buffer.where]
    if buffer.metadata and buffer.metadata.op_name not in ("", buffer.name):
        parts.append(buffer.metadata.op_name)
    if buffer.metadata and buffer.metadata.source_file:
        parts.append(f"{PurePath(buffer.metadata.source_file).name}:{buffer.metadata.source_line}")
    return ", ".join(parts)


def _table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]], left: set[int]) -> Iterator[str]:
    """Columns under their titles, those in `left` to the left; empty columns are left out."""
    kept = [k for k in range(len(titles)) if any(row[k] for row in rows)]
    widths = {k: max(len(titles[k]), *(len(row[k]) for row in rows)) for k in kept}
    for row in (titles, *rows):
        cells = [f"{row[k]:<{widths[k]}}" if k in left else f"{row[k]:>{widths[k]}}" for k in kept]
        yield "  " + "  ".join(cells).rstrip()
