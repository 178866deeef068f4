"""Reads an ELF object file: its machine, and its undefined symbols."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Elf:
    """An object file."""

    bits: int
    machine: int
    flags: int
    sections: dict[str, bytes]
    undefined: frozenset[str]
    defined: frozenset[str]
    """Names for others."""


def read_elf(data: bytes) -> Elf:
    """The object file in `data`, least significant byte first."""
    assert data[:4] == b"\x7fELF"
    assert data[5] == 1, "the least significant byte first"
    bits = 64 if data[4] == 2 else 32
    wide = bits == 64
    machine = struct.unpack_from("<H", data, 18)[0]
    flags = struct.unpack_from("<I", data, 48 if wide else 36)[0]
    start = struct.unpack_from("<Q" if wide else "<I", data, 40 if wide else 32)[0]
    size, count, names = struct.unpack_from("<HHH", data, 58 if wide else 46)
    heads = []
    for k in range(count):
        entry = struct.unpack_from("<IIQQQQIIQQ" if wide else "<IIIIIIIIII", data, start + k * size)
        name, kind, offset, length, link = entry[0], entry[1], entry[4], entry[5], entry[6]
        content = b"" if kind == 8 else data[offset : offset + length]
        heads.append((name, kind, content, link))
    texts = heads[names][2]
    sections = {_text(texts, name): content for name, _, content, _ in heads}
    undefined, defined = set(), set()
    for _, kind, content, link in heads:
        if kind != 2:
            continue
        form, step = ("<IBBHQQ", 24) if wide else ("<IIIBBH", 16)
        for place in range(step, len(content), step):
            entry = struct.unpack_from(form, content, place)
            name, info, section = (entry[0], entry[1], entry[3]) if wide else (entry[0], entry[3], entry[5])
            if section == 0:
                undefined.add(_text(heads[link][2], name))
            elif info >> 4:
                defined.add(_text(heads[link][2], name))
    return Elf(bits, machine, flags, sections, frozenset(undefined), frozenset(defined))


def _text(texts: bytes, start: int) -> str:
    return texts[start : texts.index(b"\0", start)].decode()
