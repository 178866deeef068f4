"""The report on a program's memory: every buffer's offset and times, its padding, and the reason for its memory.

`BufferAssignment.report()` makes one. It is data first; `to_text` is the text of `memory_analysis()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ..shape import Shape
from ..support.records import dataclass
from ..target import MemorySpace
from .allocation import Allocation, AllocationKind, BufferCopy, BufferSlice
from .heap import Request, peak


@dataclass(frozen=True, slots=True)
class MemoryMapRow:
    """One buffer: its memory, the first and last schedule position at which it is needed, and its values."""

    slice: BufferSlice
    first: int
    last: int
    holders: tuple[str, ...]
    shape: Shape | None = None
    """The shape of its first value, with the layout; all have the same size. None for scratch memory of copies."""
    logical_bytes: int = 0
    """Bytes of the elements of the largest value in it, without padding."""
    reason: str = ""
    """Why it is not in fast memory, if there is one."""

    @property
    def space(self) -> int:
        """The memory space."""
        if self.slice.allocation.kind is AllocationKind.ARENA:
            return self.slice.allocation.index
        return 0 if self.shape is None else self.shape.array_layout.memory_space

    @property
    def physical_bytes(self) -> int:
        """Bytes that it takes."""
        return self.slice.size


@dataclass(frozen=True, slots=True)
class SpaceUse:
    """The use of one memory space by a program, with arguments, results and constants."""

    number: int
    name: str
    """For example VMEM; empty if the target has no name for it."""
    limit: int | None
    """Bytes of the memory; None: not known, or unlimited."""
    buffers: int
    logical_bytes: int
    physical_bytes: int
    """Bytes of all buffers together, as if none shared memory over time."""
    arena_bytes: int
    """Bytes of its arena."""
    arena_peak: int
    """The most bytes that buffers in its arena need at once. The rest of the arena is lost in gaps."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Every buffer of a program, and the contents of each memory space."""

    module: str
    rows: tuple[MemoryMapRow, ...]
    """By allocation and offset."""
    spaces: tuple[SpaceUse, ...]
    """By number."""
    copies: tuple[str, ...]
    """Copies that could not be saved, in words."""
    schedule: Mapping[int, str] = field(default_factory=dict, repr=False)
    """By schedule position: the instruction that runs then, if it computes something."""

    @staticmethod
    def of(
        module: str,
        rows: tuple[MemoryMapRow, ...],
        arenas: Sequence[Allocation],
        fast: MemorySpace | None,
        copies: Iterable[tuple[str, Sequence[BufferCopy]]],
        schedule: Mapping[int, str],
    ) -> MemoryReport:
        """The report of an assignment. `fast`: the memory space with a limit that was kept; `copies`: where, and
        which; `schedule`: see the field."""
        numbers = {row.space for row in rows} | {arena.index for arena in arenas}
        if fast is not None:
            numbers.add(fast.number)
        spaces = tuple(_space_use(rows, arenas, fast, number) for number in sorted(numbers))
        in_words = (f"  {where}: {copy.target} <- {copy.source}" for where, found in copies for copy in found)
        return MemoryReport(module, rows, spaces, tuple(in_words), schedule)

    def space(self, number: int) -> SpaceUse | None:
        """The use of a memory space; None if it is empty and the target does not have it."""
        return next((s for s in self.spaces if s.number == number), None)

    def to_text(self) -> str:
        """The memory map: for each kind of memory its buffers with their values and times, then the copies."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield f"memory map of {self.module}"
        if len(self.spaces) > 1:
            yield from self._space_lines()
        for kind in AllocationKind:
            indices = [0]
            if kind is AllocationKind.ARENA:
                indices = sorted({r.slice.allocation.index for r in self.rows if r.slice.allocation.kind is kind})
            for index in indices:
                yield from self._kind_lines(kind, index)
        if self.copies:
            yield ""
            yield "copies"
            yield from self.copies

    def _space_lines(self) -> Iterator[str]:
        yield ""
        yield "memory spaces"
        yield f"  {'':<10} {'buffers':>8} {'bytes':>16} {'padding':>8} {'arena':>16} {'peak':>16} {'limit':>16}"
        for s in self.spaces:
            name = f"{s.name} S({s.number})" if s.name else f"S({s.number})"
            padding = f"{100 * (1 - s.logical_bytes / s.physical_bytes):.0f} %" if s.physical_bytes else "-"
            limit = "-" if s.limit is None else f"{s.limit:,}"
            yield (
                f"  {name:<10} {s.buffers:>8,} {s.physical_bytes:>16,} {padding:>8} {s.arena_bytes:>16,} "
                f"{s.arena_peak:>16,} {limit:>16}"
            )

    def _kind_lines(self, kind: AllocationKind, index: int) -> Iterator[str]:
        in_arena = kind is AllocationKind.ARENA
        rows = [
            r
            for r in self.rows
            if r.slice.allocation.kind is kind and (not in_arena or r.slice.allocation.index == index)
        ]
        if not rows:
            return
        if in_arena:
            title, size = str(rows[0].slice.allocation), rows[0].slice.allocation.size
        else:
            title, size = f"{kind.value}s", sum({r.slice.allocation.index: r.slice.size for r in rows}.values())
        yield ""
        yield title
        yield f"  {len(rows)} buffers, {size:,} bytes"
        yield f"  {'at':>12} {'bytes':>14}  {'needed':<13} holds"
        for row in rows:
            where = row.slice.offset if in_arena else row.slice.allocation.index
            needed = f"{row.first}-{row.last}"
            why = f"  ({row.reason})" if in_arena and row.reason else ""
            yield f"  {where:>12,} {row.slice.size:>14,}  {needed:<13} {', '.join(row.holders)}{why}"


def _space_use(
    all_rows: Sequence[MemoryMapRow], arenas: Sequence[Allocation], fast: MemorySpace | None, number: int
) -> SpaceUse:
    rows = [r for r in all_rows if r.space == number]
    in_arena = [r for r in rows if r.slice.allocation.kind is AllocationKind.ARENA]
    known = fast is not None and fast.number == number
    return SpaceUse(
        number,
        fast.name if fast is not None and known else "HBM" if number == 0 and fast is not None else "",
        fast.size if fast is not None and known else None,
        len(rows),
        sum(r.logical_bytes for r in rows),
        sum(r.physical_bytes for r in rows),
        sum(a.size for a in arenas if a.index == number),
        peak(Request(r.physical_bytes, r.first, r.last + 1) for r in in_arena),
    )
