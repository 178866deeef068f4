"""The C library of this process."""

from __future__ import annotations

import ctypes
import functools


@functools.cache
def libc_address(name: str) -> int:
    """The address of a function of the C library."""
    address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    assert address is not None
    return address
