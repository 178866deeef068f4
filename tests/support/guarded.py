"""Compiles a module and runs it in memory where every buffer ends, or begins, at a page that may not be accessed.

Inputs, results, and each buffer of the arena are in separate regions between two inaccessible pages; an access outside,
even a read, ends the process. The rest of a buffer's own pages holds a pattern that must not change, and inputs that
were not donated must not change either.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from hloom.hlo.buffers.assignment import (
    Allocation,
    AllocationKind,
    BufferAssignment,
    BufferCopy,
    BufferSlice,
    assign_buffers,
)
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.passes.manager import PassOptions
from hloom.hlo.physical_array import from_physical, to_physical
from hloom.hlo.shape import Shape
from hloom.hlo.target import Target
from hloom.hlo.targets import target_named
from hloom.numba_backend import lowering
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline

NDArray = np.ndarray[Any, Any]

PAGE = mmap.PAGESIZE
GUARD = 16 * PAGE
"""Inaccessible bytes between regions: an access outside by less than this is noticed."""
_PATTERN = 0xA5
_PROT_NONE, _PROT_READ_WRITE = 0, 3

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
)  # fmt: skip
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)


@contextmanager
def small_pieces(nanoseconds: float = 0.1) -> Iterator[None]:
    """Kernels lowered inside are cut into the smallest pieces there are, so that even tiny ones use all threads."""
    before = lowering.PIECE_NANOSECONDS
    lowering.PIECE_NANOSECONDS = nanoseconds  # type: ignore[assignment]
    try:
        yield
    finally:
        lowering.PIECE_NANOSECONDS = before


class GuardedProgram:
    """A compiled module with an arena that is spread out, so that each of its buffers has guards."""

    def __init__(
        self,
        module: HloModule,
        donated: Sequence[int] = (),
        options: PassOptions | None = None,
        at_end: bool = True,
        target: str | Target = "cpu",
        pattern: int = _PATTERN,
    ) -> None:
        """`at_end`: buffers end where their page ends; else they begin where it begins. `pattern`: a byte; what buffers
        hold, and the bytes around them, before the program runs."""
        target = target_named(target)
        bodies = FusedComputations()
        self.module, _ = pipeline(target, bodies).run(module, options)
        self.at_end = at_end
        self.pattern = pattern
        assignment = assign_buffers(self.module, bodies.can_share, fast_memory=target.fast_memory)
        self.arenas = assignment.arenas
        """Before they are spread."""
        self.donated = {s.allocation.index for s in assignment.outputs if s.allocation.kind is AllocationKind.PARAMETER}
        self.assignment, self.regions = _spread(assignment, at_end)
        self.lowered = lowering.lower(self.assignment, bodies)
        scratch = self.lowered.arena_size - self.assignment.arena_size
        if scratch:  # one region for all scratch memory, behind the buffers
            self.regions.append((self.assignment.arena_size, scratch))

    def run(self, arguments: Sequence[NDArray]) -> list[NDArray]:
        """The results. AssertionError if memory around a buffer, or an input, has changed."""
        assignment = self.assignment
        shapes = [leaf for p in self.module.entry.parameters for leaf in p.shape.leaves()]
        results = list(self.module.entry.root.shape.leaves())
        given = [_bytes(a, s, self.pattern) for a, s in zip(arguments, shapes, strict=True)]
        blocks = [_Block(s.byte_size, self.at_end, self.pattern) for s in (*shapes, *results)]
        arena = _Memory(self.regions, self.lowered.arena_size, self.pattern)
        try:
            for block, content in zip(blocks, given, strict=False):
                block.bytes[:] = content
            bases = [b.address for b in blocks] + [arena.address]
            self.lowered.program.run(bases[: self.lowered.program.bases])
            for k, (block, content) in enumerate(zip(blocks, given, strict=False)):
                if k not in self.donated:
                    assert (block.bytes == content).all(), f"input {k} has changed"
            for memory in (*(b.memory for b in blocks), arena):
                memory.check()
            found = []
            for k, shape in enumerate(results):
                place = assignment.outputs[k].allocation
                block = blocks[place.index if place.kind is AllocationKind.PARAMETER else len(shapes) + k]
                found.append(from_physical(block.bytes.copy(), shape))
            return found
        finally:
            for memory in (*(b.memory for b in blocks), arena):
                memory.close()


def _bytes(array: NDArray, shape: Shape, pattern: int) -> NDArray:
    """The buffer that holds an array; padding has the pattern's bits."""
    ones = np.full(array.nbytes, 0xFF, np.uint8).view(shape.element.dtype).reshape(array.shape)
    mask = to_physical(ones, shape).view(np.uint8)
    held: NDArray = to_physical(array, shape).view(np.uint8) & mask | np.uint8(pattern) & ~mask
    return held


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


class _Memory:
    """Mapped memory: only the pages of the given (offset, size) parts can be accessed."""

    def __init__(self, parts: Sequence[tuple[int, int]], size: int, pattern: int) -> None:
        self.parts = parts
        self._pattern = pattern
        self._size = _pages(size) + GUARD
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.address: int = _libc.mmap(None, self._size, _PROT_NONE, flags, -1, 0)
        assert self.address not in (None, ctypes.c_void_p(-1).value), "no memory for guarded buffers"
        for offset, count in parts:
            first, last = offset // PAGE * PAGE, _pages(offset + count)
            assert _libc.mprotect(self.address + first, last - first, _PROT_READ_WRITE) == 0
            self.bytes(first, last - first)[:] = pattern

    def bytes(self, offset: int, count: int) -> NDArray:
        """A view; it must be gone before `close`."""
        return np.frombuffer((ctypes.c_uint8 * count).from_address(self.address + offset), np.uint8)

    def check(self) -> None:
        """AssertionError unless the rest of the parts' pages is as it was."""
        for offset, count in self.parts:
            first, last = offset // PAGE * PAGE, _pages(offset + count)
            for start, stop in ((first, offset), (offset + count, last)):
                if start < stop:
                    assert (self.bytes(start, stop - start) == self._pattern).all(), f"written outside of {count} bytes"

    def close(self) -> None:
        _libc.munmap(self.address, self._size)


class _Block:
    """One buffer in memory of its own."""

    def __init__(self, size: int, at_end: bool, pattern: int) -> None:
        offset = GUARD + ((_pages(size) - size) if at_end else 0)
        self.memory = _Memory([(offset, size)] if size else [], offset + size, pattern)
        self.address = self.memory.address + offset
        self._place = (offset, size)

    @property
    def bytes(self) -> NDArray:
        return self.memory.bytes(*self._place) if self._place[1] else np.zeros(0, np.uint8)


def _spread(assignment: BufferAssignment, at_end: bool) -> tuple[BufferAssignment, list[tuple[int, int]]]:
    """The same assignment with every buffer of the arena between guards, and where in the arena these lie."""
    slices = {s for leaves in assignment.slices.values() for s in leaves}
    slices |= {s for copy in assignment.copies for s in (copy.source, copy.target)}
    moved: dict[BufferSlice, BufferSlice] = {}
    position = GUARD
    regions: list[tuple[int, int]] = []
    arena = [s for s in slices if s.allocation.kind is AllocationKind.ARENA]
    for old in sorted(arena, key=lambda s: (s.allocation.index, s.offset, s.size)):
        offset = position + ((_pages(old.size) - old.size) if at_end else 0)
        if old.size:
            regions.append((offset, old.size))
        moved[old] = BufferSlice(old.allocation, offset, old.size)
        position += _pages(old.size) + GUARD
    total = Allocation(AllocationKind.ARENA, 0, position)
    moved = {old: BufferSlice(total, new.offset, new.size) for old, new in moved.items()}

    def place(old: BufferSlice) -> BufferSlice:
        return moved.get(old, old)

    def copies(old: tuple[BufferCopy, ...]) -> tuple[BufferCopy, ...]:
        return tuple(BufferCopy(place(c.source), place(c.target)) for c in old)

    spread: dict[HloInstruction, tuple[BufferSlice, ...]] = {
        i: tuple(map(place, leaves)) for i, leaves in assignment.slices.items()
    }
    return (
        replace(
            assignment,
            slices=spread,
            arenas=(total,),
            before={i: copies(c) for i, c in assignment.before.items()},
            at_end={c: copies(moves) for c, moves in assignment.at_end.items()},
        ),
        regions,
    )
