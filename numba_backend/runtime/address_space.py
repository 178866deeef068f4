"""A check for room in the address space, before a library that does not survive without it."""

from __future__ import annotations

import mmap


def check_address_space(nbytes: int, library: str) -> None:
    """MemoryError if the process may not map so many bytes more."""
    try:
        mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ).close()
    except OSError:
        raise MemoryError(f"{library} needs {nbytes >> 20} MiB of address space, and there is less") from None
