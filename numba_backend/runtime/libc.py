"""The C library of this process, and memory from the system."""

from __future__ import annotations

import ctypes
import functools
import mmap


@functools.cache
def libc_address(name: str) -> int:
    """The address of a function of the C library."""
    address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    assert address is not None
    return address


_map = ctypes.CFUNCTYPE(
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64
)(libc_address("mmap"))
unmap = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(libc_address("munmap"))


def mapped(size: int) -> int:
    """The address of `size` fresh bytes; 0 if the system has none."""
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = _map(None, size, protection, flags, -1, 0)
    return 0 if start is None or start == ctypes.c_void_p(-1).value else int(start)


def check_address_space(nbytes: int, library: str) -> None:
    """MemoryError if the process may not map so many bytes more: before a library that does not survive that."""
    try:
        mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ).close()
    except OSError:
        raise MemoryError(f"{library} needs {nbytes >> 20} MiB of address space, and there is less") from None
