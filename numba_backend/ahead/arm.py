"""Add the build attributes of 32-bit Arm to object files: LLVM leaves them out, and linkers ask for them.

The attributes of an object file say how it passes floating-point arguments. LLVM writes that only with an option that
llvmlite does not have, and without it linkers refuse to put the file beside others for hard floats::

    a.o uses VFP register arguments, b.o does not

The format: Addenda to, and Errata in, the ABI for the Arm Architecture, section "Build attributes".
"""

from __future__ import annotations

import struct

_ATTRIBUTES = 0x70000003
"""The type of the section."""
_HALF_FORMAT, _FLOAT_ARGUMENTS = 38, 28
_IN_REGISTERS = 1
_TEXTS = frozenset((4, 5, 67))


def with_float_arguments(code: bytes) -> bytes:
    """The object file with an attribute that says: floating-point arguments are in registers of the floating-point
    unit. It takes the place of one that is not needed, the format of 16-bit numbers."""
    start, count = struct.unpack_from("<I", code, 32)[0], struct.unpack_from("<H", code, 48)[0]
    for k in range(count):
        kind, _, _, offset, size = struct.unpack_from("<IIIII", code, start + 40 * k + 4)
        if kind == _ATTRIBUTES:
            place = _place_of(code[offset : offset + size], _HALF_FORMAT)
            if place is not None:
                place += offset
                return code[:place] + bytes((_FLOAT_ARGUMENTS, _IN_REGISTERS)) + code[place + 2 :]
    return code


def _place_of(attributes: bytes, wanted: int) -> int | None:
    """Where a tag is: after the version, the length and name of the vendor's part, and the head of the file's part."""
    place = attributes.index(b"aeabi\0") + len(b"aeabi\0") + 5
    while place < len(attributes):
        tag = attributes[place]
        if tag == wanted:
            return place
        place += 1
        if tag in _TEXTS:
            place = attributes.index(0, place)
        else:
            while attributes[place] & 0x80:
                place += 1
        place += 1
    return None
