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
SIZE_OFFSET = object.__basicsize__
"""Where a tuple, a list and a dictionary have the number of their parts."""
PARTS_OFFSET = tuple.__basicsize__
"""Where a tuple has its parts; since Python 3.14 its hash is before them."""
LIST_OFFSET = SIZE_OFFSET + _WORD
"""Where a list has the address of its parts."""
ROOM_OFFSET = LIST_OFFSET + _WORD
"""Where a list has the number of parts for which it has memory."""
DIGITS_OFFSET = SIZE_OFFSET + _WORD
"""Where an integer has its digits, of 30 bits in 32."""
CALL_OFFSET = 16 * _WORD
"""Where a class has the address of the function that calls its objects (`tp_call` of PyTypeObject)."""

BASE_OFFSET = 32 * _WORD
"""Where a class has the address of the class whose memory its objects extend (`tp_base`)."""
FINALIZE_OFFSET = 49 * _WORD
"""Where a class has the address of the function that runs before its objects are freed (`tp_finalize`)."""


def word_at(address: int) -> int:
    """The word of memory at an address."""
    return ctypes.c_size_t.from_address(address).value


def slot_offset(kind: type, name: str) -> int:
    """The distance of a slot from the beginning of an object of the class, in bytes."""
    descriptor: Any = next(vars(base)[name] for base in kind.__mro__ if name in vars(base))
    return word_at(word_at(id(descriptor) + _MEMBER) + _DISTANCE)


TWO_DIGITS = word_at(id(1 << 59) + SIZE_OFFSET)
"""The word at `SIZE_OFFSET` of all positive integers that have two digits: their sign and how many there are."""


class _Probe:
    __slots__ = ("first", "second")
    second: object


class _Called:
    def __call__(self) -> None: ...


class _CalledToo:
    def __call__(self) -> None: ...


class _Finalized:
    def __del__(self) -> None: ...


class _FinalizedToo(_Probe):
    __slots__ = ()

    def __del__(self) -> None: ...


def _are_counts_as_expected() -> bool:
    content = object()
    several = [content] * 3  # 4 references with the name here
    return ctypes.c_int32.from_address(id(content)).value == 4 == len(several) + 1


def _are_containers_as_expected() -> bool:
    parts = object(), object()
    pair, several = id(parts), [*parts]
    first = word_at(id(several) + LIST_OFFSET)
    counts = {word_at(known + SIZE_OFFSET) for known in (pair, id(several), id(dict.fromkeys(parts)))}
    found = [word_at(start + k * _WORD) for start in (pair + PARTS_OFFSET, first) for k in range(2)]
    return counts == {2} and found == [*map(id, parts)] * 2 and 2 <= word_at(id(several) + ROOM_OFFSET) <= 8


def _are_integers_as_expected() -> bool:
    numbers = (1 << 59) + 3, (5 << 30) + 7
    digits = [word_at(id(number) + DIGITS_OFFSET) for number in numbers]
    sizes = {word_at(id(number) + SIZE_OFFSET) for number in numbers}
    others = {word_at(id(number) + SIZE_OFFSET) for number in (7, -numbers[0], 1 << 60)}
    return digits == [(1 << 61) + 3, (5 << 32) + 7] and sizes == {TWO_DIGITS} and TWO_DIGITS not in others


def _are_calls_as_expected() -> bool:
    calls = {word_at(id(kind) + CALL_OFFSET) for kind in (_Called, _CalledToo)}
    return len(calls) == 1 and 0 not in calls and word_at(id(_Probe) + CALL_OFFSET) == 0


def _are_finalizers_as_expected() -> bool:
    ends = {word_at(id(kind) + FINALIZE_OFFSET) for kind in (_Finalized, _FinalizedToo)}
    has_none = word_at(id(_Probe) + FINALIZE_OFFSET) == 0
    return len(ends) == 1 and 0 not in ends and has_none and word_at(id(_FinalizedToo) + BASE_OFFSET) == id(_Probe)


def _is_as_expected() -> bool:
    if object.__basicsize__ != 2 * _WORD:  # a build without the GIL: the head of an object is longer
        return False
    probe, content = _Probe(), object()
    probe.second = content
    offset = slot_offset(_Probe, "second")
    is_inside = object.__basicsize__ <= offset < _Probe.__basicsize__
    is_slot = is_inside and word_at(id(probe) + offset) == id(content)
    is_type = word_at(id(probe) + TYPE_OFFSET) == id(_Probe)
    if not (is_slot and is_type):
        return False
    are_parts = _are_counts_as_expected() and _are_containers_as_expected() and _are_integers_as_expected()
    return are_parts and _are_calls_as_expected() and _are_finalizers_as_expected()


HAS_SLOTS = _is_as_expected()
"""Whether `slot_offset` and the offsets are right, and objects begin with the 32 low bits of their count of references:
then machine code may read objects while it has the GIL."""
