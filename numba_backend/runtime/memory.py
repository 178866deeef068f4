"""Blocks of memory for outputs and arenas, recycled, so that programs do not pay for fresh pages each time.

The first use of a fresh page is a page fault: 0.25 us for each 4 KiB, more than it takes to compute the contents. So
when the last reference to a block dies, the block goes into a bin for its size class, and the next allocation of that
class takes it from there. Memory comes from the system in pages, with huge pages for blocks of several MiB where it has
them; reused memory is not zeroed.

Blocks of up to 32 KiB are cut from slabs and stay with the process; larger blocks are kept up to `set_pool_limit` bytes
altogether, and the rest is given back to the system. When the system has no more memory, all unused blocks are given
back, and slabs in which no block is used.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.memory_pressure import on_pressure
from ...hlo.system import system

_SMALL = 32 << 10
_SLAB = 256 << 10
HUGE_PAGE = 2 << 20
_DEFAULT_LIMIT = 1 << 30

_free_pages = system.free_pages


class Memory:
    """`nbytes` bytes of uninitialised memory at `address`, a multiple of 64, as long as the object lives.

    Classes whose objects own such memory are derived from this one: one object for a result, and not two.
    """

    __slots__ = ("__weakref__", "_free", "address", "nbytes")
    address: int
    nbytes: int
    _free: list[int]
    """The bin for the address when the object dies. (`allocate` sets the attributes: an __init__ would double its
    time.)"""

    def __del__(self) -> None:
        try:  # noqa: SIM105  # `suppress` takes longer than the rest
            self._free.append(self.address)
        except AttributeError:  # an interrupt came before `allocate` had set them
            pass

    def read_only(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """A row-major array over the first bytes that can never become writeable; ValueError if there are too few
        bytes."""
        count = dtype.itemsize * math.prod(shape)
        if count > self.nbytes:
            raise ValueError(f"{dtype}{list(shape)} does not lie within {self.nbytes} bytes")
        memory = _bytes_at(count)(self.address)
        memory.owner = self  # the array keeps `memory` alive
        # Half as long as NumPy's array interface; `ndarray(buffer=...)` would look behind the memoryview.
        vector: np.ndarray = np.frombuffer(memoryview(memory).toreadonly(), dtype)
        return vector if len(shape) == 1 else vector.reshape(shape)


class LargeMemory(Memory):
    """Memory that is kept after the object's death only if it fits under the limit."""

    __slots__ = ("_size",)
    _size: int

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing() or not hasattr(self, "address"):  # without an address: an interrupt came before it was set
            return
        if _large.gave(self._size):
            self._free.append(self.address)
        else:
            _free_pages(self.address, self._size)


@functools.lru_cache(maxsize=512)
def _bytes_at(count: int) -> Callable[[int], Any]:
    """A function from an address to an object that offers the `count` bytes there."""
    return (ctypes.c_uint8 * count).from_address


class _Large:
    """The bins of large blocks, the bytes in them, and the limit of these bytes.

    The lock guards only the count. Addresses move by list.append and list.pop, which are atomic, because `__del__` may
    run whenever an object is allocated, even in the middle of `allocate`.
    """

    def __init__(self) -> None:
        self.lock = fork_lock(Order.MEMORY)
        self.bins: dict[int, list[int]] = {}
        self.bytes = 0
        self.mapped = 0
        """Bytes of all large blocks, used or not."""
        self.limit = _DEFAULT_LIMIT

    def gave(self, size: int) -> bool:
        with self.lock:
            if self.bytes + size > self.limit:
                self.mapped -= size
                return False
            self.bytes += size
            return True

    def take(self, size: int, free: list[int]) -> int:
        """An address from `free`, the bin of that size; 0 when it is empty."""
        try:
            address = free.pop()
        except IndexError:
            return 0
        with self.lock:
            self.bytes -= size
        return address

    def clear(self) -> int:
        """Give all unused blocks back; returns the number of bytes."""
        released = 0
        for size, free in list(self.bins.items()):
            while address := self.take(size, free):
                _free_pages(address, size)
                released += size
        with self.lock:
            self.mapped -= released
        return released

    def fresh(self, size: int) -> int:
        """An address of new memory."""
        address = _fresh_pages(size)
        with self.lock:
            self.mapped += size
        return address


def _fresh_pages(size: int) -> int:
    """`size` bytes (a multiple of the page size) from the system; MemoryError when it has none, even after all unused
    blocks were given back.

    Blocks of several huge pages start at one, so that the system can use them.
    """
    huge = size >= 2 * HUGE_PAGE
    address = _mapped(size, huge)
    if not address and release_unused():
        address = _mapped(size, huge)
    if not address:
        raise MemoryError(f"the system has no {size} bytes")
    return address


def _mapped(size: int, huge: bool) -> int:
    return (system.fresh_huge_pages(size, HUGE_PAGE) if huge else 0) or system.fresh_pages(size)


def size_class(nbytes: int) -> int:
    """The size to allocate for `nbytes`: four classes to each power of two, at least 64, whole pages when large."""
    if nbytes <= 256:
        return max(64, (nbytes + 63) & -64)
    unit = 1 << ((nbytes - 1).bit_length() - 3)
    if nbytes > _SMALL:
        unit = max(unit, mmap.PAGESIZE)
    return (nbytes + unit - 1) & -unit


def _small_bins() -> list[list[int]]:
    """The bin for each multiple of 64 bytes; multiples in one size class share a bin."""
    bins: dict[int, list[int]] = {}
    return [bins.setdefault(size_class(nbytes), []) for nbytes in range(0, _SMALL + 1, 64)]


_large = _Large()
_bins = _small_bins()


def allocate(nbytes: int) -> Memory:
    """A block of `nbytes` bytes (0 is fine), uninitialised. Raises MemoryError, or ValueError for a negative size."""
    if not 0 <= nbytes <= _SMALL:
        return _allocate_large(nbytes, LargeMemory)
    free = _bins[(nbytes + 63) >> 6]
    try:
        address = free.pop()
    except IndexError:
        address = _fresh_small(nbytes, free)
    block = Memory()
    block.address = address
    block.nbytes = nbytes
    block._free = free
    return block


L = TypeVar("L", bound=LargeMemory)


def allocator(nbytes: int, small: type[Any], large: type[Any], shape: object) -> Callable[[], Any]:
    """A function that makes objects with `nbytes` bytes and the attribute `shape`. They are of the class `small`, which
    is derived from `Memory`, or `large`, from `LargeMemory`. It does the least that it can."""
    if not 0 <= nbytes <= _SMALL:

        def take_large() -> Any:
            memory = _allocate_large(nbytes, large)
            memory.shape = shape
            return memory

        return take_large
    free = _bins[(nbytes + 63) >> 6]
    pop = free.pop
    new: Any = small.__new__

    def take() -> Any:
        try:
            address = pop()
        except IndexError:
            address = _fresh_small(nbytes, free)
        memory = new(small)
        memory._free = free
        memory.address = address
        memory.nbytes = nbytes
        memory.shape = shape
        return memory

    return take


def small_bin(nbytes: int) -> list[int] | None:
    """The bin of blocks for so many bytes, which are addresses; None if the blocks are large."""
    return _bins[(nbytes + 63) >> 6] if 0 <= nbytes <= _SMALL else None


def with_memory(nbytes: int, run: Callable[[list[int]], None]) -> Callable[[list[int]], None]:
    """`run`, with the address of `nbytes` bytes, more than 0, at the end of its list: they are its own until it
    returns. A small block has no object around it, which would take longer than some programs."""
    if nbytes > _SMALL:

        def run_in_large(bases: list[int]) -> None:
            block = allocate(nbytes)
            bases.append(block.address)
            run(bases)

        return run_in_large
    free = _bins[(nbytes + 63) >> 6]
    pop, push = free.pop, free.append

    def run_in_small(bases: list[int]) -> None:
        try:
            address = pop()
        except IndexError:
            address = _fresh_small(nbytes, free)
        bases.append(address)
        try:
            run(bases)
        finally:
            push(address)

    return run_in_small


@functools.lru_cache(4096)
def _large_bin(nbytes: int) -> tuple[int, list[int]]:
    size = size_class(nbytes)
    return size, _large.bins.setdefault(size, [])


def _allocate_large(nbytes: int, kind: type[L]) -> L:
    if nbytes < 0:
        raise ValueError(f"a block cannot have {nbytes} bytes")
    size, free = _large_bin(nbytes)
    address = _large.take(size, free) or _large.fresh(size)
    memory = kind.__new__(kind)
    memory._size = size
    memory._free = free
    memory.address = address
    memory.nbytes = nbytes
    return memory


def _fresh_small(nbytes: int, free: list[int]) -> int:
    """Cut a slab into blocks of the size class; one is returned, the others go to the bin."""
    size = size_class(nbytes)
    slab = _fresh_pages(_SLAB)
    _slabs.setdefault(size, []).append(slab)
    free.extend(range(slab + size, slab + _SLAB - size + 1, size))
    return slab


_slabs: dict[int, list[int]] = {}
"""Where the slabs of each size class begin."""


def _release_slabs() -> int:
    """Give back the slabs in which no block is used; returns the number of bytes.

    Meanwhile other threads may take blocks and give some back: the addresses that are looked at are out of the bins.
    """
    released = 0
    for size, starts in list(_slabs.items()):
        free = _bins[size >> 6]
        unused: set[int] = set()
        while free:
            try:
                unused.add(free.pop())
            except IndexError:
                break
        for slab in list(starts):
            blocks = range(slab, slab + _SLAB - size + 1, size)
            if unused.issuperset(blocks):
                unused.difference_update(blocks)
                starts.remove(slab)
                _free_pages(slab, _SLAB)
                released += _SLAB
        free.extend(unused)
    return released


def set_pool_limit(nbytes: int) -> None:
    """Keep at most this many bytes of unused large blocks; bytes beyond that are given back now."""
    if nbytes < 0:
        raise ValueError(f"the limit must not be negative, got {nbytes}")
    _large.limit = nbytes
    if _large.bytes > nbytes:
        release_unused()


def release_unused() -> int:
    """Give all unused large blocks back to the system, and slabs without a used block; returns the number of bytes."""
    return _large.clear() + _release_slabs()


on_pressure(release_unused)


def in_use() -> tuple[int, int]:
    """Bytes of blocks in use, and of blocks that are kept for later; other threads may change both."""
    used, kept = _large.mapped - _large.bytes, _large.bytes
    for size, starts in list(_slabs.items()):
        free = len(_bins[size >> 6]) * size
        kept += free
        used += len(starts) * (_SLAB // size) * size - free
    return max(used, 0), kept
