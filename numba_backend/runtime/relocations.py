"""The processors for which object files are linked without LLVM (loader.py): their numbers in ELF, and relocations.

A relocation says how the place where something is used depends on where it is. Those here are distances, so that linked
code runs at every address that is a multiple of the processor's alignment. Any other one raises UnfamiliarError.

Sources: System V Application Binary Interface, AMD64 Architecture Processor Supplement, table 4.9; ELF for the Arm
64-bit Architecture (AAELF64), section "Relocation".
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ...hlo.support.records import dataclass


class UnfamiliarError(Exception):
    """The object contains something that only LLVM's loader can handle."""


@dataclass(frozen=True, slots=True)
class Processor:
    """What linking depends on."""

    elf_machine: int
    stub: bytes
    """A jump to the address in the eight bytes that follow it."""
    alignment: int
    """Linked code begins at a multiple of this."""
    calls: frozenset[int]
    """The relocations of calls, which may be of a function that the object does not define."""
    relocate: Callable[[bytearray, int, int, int], None]
    """`relocate(code, kind, place, target)` writes the instruction or the word at the offset `place` of the code, which
    refers to the offset `target`."""


def _x86_64(code: bytearray, kind: int, place: int, target: int) -> None:
    if kind not in (_R_X86_64_PC32, _R_X86_64_PLT32):
        raise UnfamiliarError
    struct.pack_into("<i", code, place, target - place)


_R_X86_64_PC32, _R_X86_64_PLT32 = 2, 4


def _aarch64(code: bytearray, kind: int, place: int, target: int) -> None:
    """Addresses of data are two instructions: ADRP has the distance between pages of 4 KiB, the next one the offset
    within the page, in units of what it loads or stores."""
    distance = target - place
    if kind == _R_AARCH64_PREL32:
        struct.pack_into("<i", code, place, distance)
    elif kind in _AARCH64_CALLS:
        if distance % 4 or not -(1 << 27) <= distance < 1 << 27:
            raise UnfamiliarError
        _insert(code, place, (distance >> 2) & 0x3FFFFFF, 0x3FFFFFF)
    elif kind == _R_AARCH64_ADR_PREL_PG_HI21:
        pages = (target >> 12) - (place >> 12)
        _insert(code, place, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5, 0x60FFFFE0)
    elif kind in _AARCH64_UNITS:
        offset, unit = target & 0xFFF, _AARCH64_UNITS[kind]
        if offset % (1 << unit):
            raise UnfamiliarError
        _insert(code, place, offset >> unit << 10, 0xFFF << 10)
    else:
        raise UnfamiliarError


_R_AARCH64_PREL32, _R_AARCH64_ADR_PREL_PG_HI21 = 261, 275
_AARCH64_CALLS = frozenset((282, 283))  # JUMP26, CALL26
_AARCH64_UNITS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""ADD_ABS_LO12_NC, then LDST8 to LDST128_ABS_LO12_NC: the logarithm of the unit."""


def _insert(code: bytearray, place: int, bits: int, mask: int) -> None:
    """Bits of an instruction of 32 bits."""
    (instruction,) = struct.unpack_from("<I", code, place)
    struct.pack_into("<I", code, place, instruction & ~mask | bits)


PROCESSORS = {
    "x86_64": Processor(62, b"\xff\x25\0\0\0\0", 64, frozenset((_R_X86_64_PLT32,)), _x86_64),
    # LDR X16, 8; BR X16
    "aarch64": Processor(183, bytes.fromhex("5000005800021fd6"), 4096, _AARCH64_CALLS, _aarch64),
}
"""By the name that Linux gives to the processor."""
