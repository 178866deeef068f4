"""MLIR's bytecode: numbers of the container, and its primitives read from bytes and written to bytes.

A file is a magic number, a version, the name of the producer, and sections. Source: MLIR's bytecode format
(mlir.llvm.org/docs/BytecodeFormat), versions 0 to 6. Nothing here knows a dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from ..errors import BytecodeError

T = TypeVar("T")

MAGIC = b"ML\xefR"
NEWEST = 6
"""The last version of the format."""

# Features of the format, by the version that added them.
HAS_DIALECT_VERSIONS = 1
HAS_ISOLATED_SECTIONS = 2
"""Regions of operations that use no value from outside are sections of their own."""
HAS_USE_LISTS = 3
HAS_SHORT_ARGUMENTS = 4
"""Arguments of a block without a location omit it, and the names of operations are counted."""
HAS_PROPERTIES = 5


class Section(IntEnum):
    """The kinds of sections."""

    STRINGS = 0
    DIALECTS = 1
    ATTRIBUTES = 2
    OFFSETS = 3
    OPERATIONS = 4
    RESOURCES = 5
    RESOURCE_OFFSETS = 6
    DIALECT_VERSION = 7
    PROPERTIES = 8


class Has:
    """Bits of a number that says which parts an encoded operation has."""

    ATTRIBUTES = 1
    RESULTS = 2
    OPERANDS = 4
    SUCCESSORS = 8
    REGIONS = 16
    USE_LISTS = 32
    PROPERTIES = 64


_ALIGNED = 0x80
"""The bit of a section's kind that says that an alignment follows the length."""


class Cursor:
    """A part of the bytes, read from the start to the end. Every read is checked against the end."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    @property
    def is_empty(self) -> bool:
        """All bytes are read."""
        return self.at >= self.end

    def error(self, message: str) -> BytecodeError:
        """The error to raise for the bytes at the current place."""
        return BytecodeError(message, self.at)

    def byte(self) -> int:
        """One byte."""
        if self.at >= self.end:
            raise self.error("unexpected end of the data")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        """A number of up to 64 bits. The zeros at the low end of its first byte count the bytes that follow it."""
        at = self.at
        if at >= self.end:
            raise self.error("unexpected end of the data")
        first = self.data[at]
        if first & 1:
            self.at = at + 1
            return first >> 1
        more = (first & -first).bit_length() - 1 if first else 8
        stop = at + 1 + more
        if stop > self.end:
            raise self.error("unexpected end of the data in a number")
        self.at = stop
        if not first:
            return int.from_bytes(self.data[at + 1 : stop], "little")
        return int.from_bytes(self.data[at:stop], "little") >> (more + 1)

    def signed(self) -> int:
        """A number of 64 bits with a sign, which is in its lowest bit."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def flagged(self) -> tuple[int, bool]:
        """A number with a flag in its lowest bit."""
        value = self.varint()
        return value >> 1, bool(value & 1)

    def span(self, size: int) -> int:
        """The place of the next `size` bytes, which are skipped."""
        start = self.at
        if size > self.end - start:
            raise self.error(f"{size} bytes are announced, and {self.end - start} are there")
        self.at = start + size
        return start

    def part(self, size: int) -> Cursor:
        """The next `size` bytes."""
        start = self.span(size)
        return Cursor(self.data, start, start + size)

    def count(self, what: str) -> int:
        """The length of a list. Each element takes at least one byte."""
        size = self.varint()
        if size > self.end - self.at:
            raise self.error(f"{size} {what} are announced, and {self.end - self.at} bytes are there")
        return size

    def list(self, element: Callable[[], T]) -> list[T]:
        """A list with its length before it."""
        return [element() for _ in range(self.count("elements"))]

    def terminated(self) -> bytes:
        """The bytes up to a zero byte."""
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            raise self.error("a string has no end")
        found = self.data[self.at : stop]
        self.at = stop + 1
        return found

    def section(self) -> tuple[int, Cursor]:
        """The kind of the next section, and its contents."""
        kind = self.byte()
        size = self.varint()
        if kind & _ALIGNED:
            alignment = self.varint()
            if alignment == 0 or alignment & (alignment - 1) or alignment > _MOST_ALIGNED:
                raise self.error(f"{alignment} is no alignment")
            self.span(-self.at % alignment)
        return kind & ~_ALIGNED, self.part(size)


_MOST_ALIGNED = 1 << 20


def varint(value: int) -> bytes:
    """`value` as `Cursor.varint` reads it."""
    if value < 1 << 7:
        return bytes((value << 1 | 1,))
    size = -(-value.bit_length() // 7)
    if size > 8:
        return b"\0" + value.to_bytes(8, "little")
    return ((value << 1 | 1) << (size - 1)).to_bytes(size, "little")


def signed(value: int) -> bytes:
    """`value`, of 64 bits with a sign, as `Cursor.signed` reads it."""
    return varint((value << 1 ^ value >> 63) & (1 << 64) - 1)


def flagged(value: int, flag: bool) -> bytes:
    """`value` as `Cursor.flagged` reads it."""
    return varint(value << 1 | flag)


def section(kind: Section, pieces: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """`pieces` as a section. Large constants are never copied: the file is joined once."""
    return [bytes((kind,)), varint(sum(map(len, pieces))), *pieces]
