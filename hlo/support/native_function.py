"""Native code that custom calls run: an address, and an object that keeps the code alive."""

from __future__ import annotations

from typing import ClassVar

from .records import dataclass


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A C function `void(void* out, void** in)`, perhaps with further arguments (`ffi/status.py`).

    `in` holds the address of each operand's array; a tuple operand is passed as its leaves. `out` is the address of the
    result's array; for a tuple, the address of an array of its leaves' addresses.
    """

    address: int
    owner: object
    is_typed: ClassVar[bool] = False
    """Whether it is a handler of XLA's typed FFI instead (`ffi/handlers.py`)."""
