"""Where the slots of an object are in its memory: for machine code, which reads and writes them without a call.

A class with `__slots__` has a member descriptor for each slot, and the descriptor has the slot's distance from the
beginning of the object (PyMemberDescrObject and PyMemberDef in CPython's headers). `HAS_SLOTS` says whether this Python
is as expected. Without the GIL it is not: there another thread may empty a slot while it is read.
"""

from __future__ import annotations

import ctypes
from typing import Any

_WORD = ctypes.sizeof(ctypes.c_void_p)
TYPE_OFFSET = object.__basicsize__ - _WORD
"""Where an object has the address of its type."""
_MEMBER = object.__basicsize__ + 3 * _WORD
"""Where a member descriptor has the address of the member's description: after its class and two names."""
_DISTANCE = 2 * _WORD
"""Where the description has the slot's distance: after the name and the type."""


def word_at(address: int) -> int:
    """The word of memory at an address."""
    return ctypes.c_size_t.from_address(address).value


def slot_offset(kind: type, name: str) -> int:
    """The distance of a slot from the beginning of an object of the class, in bytes."""
    descriptor: Any = next(vars(base)[name] for base in kind.__mro__ if name in vars(base))
    return word_at(word_at(id(descriptor) + _MEMBER) + _DISTANCE)


class _Probe:
    __slots__ = ("first", "second")
    second: object


def _is_as_expected() -> bool:
    if object.__basicsize__ != 2 * _WORD:  # a build without the GIL: the head of an object is longer
        return False
    probe, content = _Probe(), object()
    probe.second = content
    offset = slot_offset(_Probe, "second")
    is_inside = object.__basicsize__ <= offset < _Probe.__basicsize__
    return is_inside and word_at(id(probe) + offset) == id(content) and word_at(id(probe) + TYPE_OFFSET) == id(_Probe)


HAS_SLOTS = _is_as_expected()
"""Whether `slot_offset` is right, and machine code may read slots while it has the GIL."""
