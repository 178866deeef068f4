"""A profile of the memory that arrays hold, in the format of pprof: a protocol buffer, compressed by gzip.

Source: `profile.proto` of pprof. A sample is a type of arrays; its values are how many there are and their bytes. (JAX
says where each was made; hloom does not keep that.) Only fields that are needed are written: numbers as varints, texts
and messages with their lengths.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterable, Mapping

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS, _TIME, _DEFAULT = 1, 2, 4, 5, 6, 9, 14
"""Fields of Profile."""


def memory_profile(arrays: Mapping[str, tuple[int, int]]) -> bytes:
    """`arrays`: by a name of their type how many there are, and their bytes together."""
    texts: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    body = b""
    for kind, unit in (("allocations", "count"), ("space", "bytes")):
        body += _message(_SAMPLE_TYPE, _number(1, text(kind)) + _number(2, text(unit)))
    label = _number(1, text("kind")) + _number(2, text("buffer"))
    for number, (name, (count, nbytes)) in enumerate(arrays.items(), 1):
        values = _packed(1, [number]) + _packed(2, [count, nbytes])
        body += _message(_SAMPLE, values + _message(3, label))
        body += _message(_LOCATION, _number(1, number) + _message(4, _number(1, number)))
        body += _message(_FUNCTION, _number(1, number) + _number(2, text(name)))
    body += _number(_TIME, time.time_ns()) + _number(_DEFAULT, text("space"))
    strings = b"".join(_message(_STRINGS, value.encode("utf-8", "backslashreplace")) for value in texts)
    return gzip.compress(body + strings)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))
