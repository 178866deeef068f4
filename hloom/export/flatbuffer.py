"""Flatbuffers by a table: objects of a schema as nested dictionaries, read and written.

A schema gives the fields of each table, in order, each with its type: a number, a `string`, another table, or a vector
of these in brackets. `?` marks a number that may be missing. Of a vector of bytes the value is `bytes`.

    schema({"Point": "x:uint32 y:uint32 names:[string] parent:Point"})

A dictionary from `read` has all fields: a number that the buffer lacks is 0, another missing field is None. Source: the
format's description at flatbuffers.dev/internals. All numbers are little-endian, and offsets of 32 bits are relative to
their own place.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

_NUMBERS = {"bool": "?", "byte": "b", "ubyte": "B", "short": "h", "uint16": "H", "uint32": "I"}
_MAX_DEPTH = 200
"""Tables in tables: JAX's own reader ends at Python's limit for recursion."""


class Field(NamedTuple):
    """A field of a table: a number of `code`, or a reference to an object of `kind`."""

    name: str
    kind: str
    code: str
    is_optional: bool

    @property
    def size(self) -> int:
        """Bytes in the table."""
        return struct.calcsize(self.code or "I")


Schema: TypeAlias = Mapping[str, Sequence[Field]]


def schema(tables: Mapping[str, str]) -> Schema:
    """The tables' fields."""
    return {name: [_field(word) for word in text.split()] for name, text in tables.items()}


def _field(word: str) -> Field:
    name, kind = word.rstrip("?").split(":")
    return Field(name, kind, _NUMBERS.get(kind, ""), word[-1] == "?")


# ---- writing


def write(tables: Schema, table: str, value: Mapping[str, Any]) -> bytes:
    """The flatbuffer with an object of type `table` as its root. A field that is None or missing is left out."""
    writer = _Writer(tables)
    writer.out += bytes(4)
    writer.refer(0, writer.table(table, value))
    writer.align(4)
    return bytes(writer.out)


class _Writer:
    """Each object is followed by those that it refers to: offsets may not be negative."""

    def __init__(self, tables: Schema) -> None:
        self.tables = tables
        self.out = bytearray()
        self.layouts: dict[bytes, int] = {}
        """Where the lists of fields' offsets are ("vtables"): tables with the same fields share one."""

    def align(self, size: int) -> None:
        self.out += bytes(-len(self.out) % size)

    def refer(self, place: int, target: int) -> None:
        """Write the offset to `target`."""
        struct.pack_into("<I", self.out, place, target - place)

    def table(self, name: str, value: Mapping[str, Any]) -> int:
        fields = self.tables[name]
        unknown = value.keys() - {f.name for f in fields}
        assert not unknown, f"{name} has no fields {unknown}"
        places, size = [0] * len(fields), 4
        given = [(k, f, value.get(f.name)) for k, f in enumerate(fields)]
        there = [(k, f, v) for k, f, v in given if v is not None and (v or f.is_optional or not f.code)]
        for k, field, _ in sorted(there, key=lambda entry: -entry[1].size):
            size += -size % field.size
            places[k], size = size, size + field.size
        count = max([k + 1 for k, p in enumerate(places) if p], default=0)
        layout = struct.pack(f"<{2 + count}H", 4 + 2 * count, size, *places[:count])
        if layout not in self.layouts:
            self.align(2)
            self.layouts[layout] = len(self.out)
            self.out += layout
        self.align(4)
        start = len(self.out)
        self.out += bytes(size)
        struct.pack_into("<i", self.out, start, start - self.layouts[layout])
        for k, field, v in there:
            if field.code:
                struct.pack_into(f"<{field.code}", self.out, start + places[k], v)
            else:
                self.refer(start + places[k], self.object(field.kind, v))
        return start

    def object(self, kind: str, value: Any) -> int:
        """Write a value that tables and vectors refer to; returns its place."""
        if kind in self.tables:
            return self.table(kind, value)
        self.align(4)
        start = len(self.out)
        if kind == "string":
            text = value.encode()
            self.out += struct.pack("<I", len(text)) + text + b"\0"
            return start
        element, count = kind.strip("[]"), len(value)
        self.out += struct.pack("<I", count)
        if code := _NUMBERS.get(element):
            self.out += bytes(value) if code in "bB" else struct.pack(f"<{count}{code}", *value)
            return start
        self.out += bytes(4 * count)
        for k, v in enumerate(value):
            self.refer(start + 4 + 4 * k, self.object(element, v))
        return start


# ---- reading


def read(tables: Schema, table: str, data: bytes) -> dict[str, Any]:
    """The root of a flatbuffer, an object of type `table`. ValueError for bytes that are no such flatbuffer."""
    reader = _Reader(tables, bytes(data))
    return reader.table(table, reader.target(0), 0)


class _Reader:
    def __init__(self, tables: Schema, data: bytes) -> None:
        self.tables = tables
        self.data = data
        self.left = 16 * len(data)
        """How many elements may still be read. Offsets can lead to one object many times, and its copies would fill the
        memory."""

    def refuse(self, at: int, why: str) -> NoReturn:
        raise ValueError(f"these bytes are no flatbuffer of this schema: at offset {at} of {len(self.data)}, {why}")

    def number(self, code: str, at: int) -> int:
        if not 0 <= at <= len(self.data) - struct.calcsize(code):
            self.refuse(at, "a number is outside of the data")
        value: int = struct.unpack_from(f"<{code}", self.data, at)[0]
        return value

    def target(self, at: int) -> int:
        """The place that the offset at `at` leads to."""
        return at + self.number("I", at)

    def spend(self, count: int, at: int) -> None:
        self.left -= count
        if self.left < 0:
            self.refuse(at, "it refers to the same objects too often")

    def table(self, name: str, at: int, depth: int) -> dict[str, Any]:
        if depth > _MAX_DEPTH:
            self.refuse(at, f"tables are nested over {_MAX_DEPTH} deep")
        layout = at - self.number("i", at)
        size = self.number("H", layout)
        if size < 4 or size % 2:
            self.refuse(layout, f"a list of fields of {size} bytes is none")
        count = (size - 4) // 2
        found: dict[str, Any] = {}
        self.spend(1 + len(self.tables[name]), at)
        for k, field in enumerate(self.tables[name]):
            place = self.number("H", layout + 4 + 2 * k) if k < count else 0
            if field.code:
                missing = None if field.is_optional else False if field.code == "?" else 0
                found[field.name] = self.number(field.code, at + place) if place else missing
            else:
                found[field.name] = self.object(field.kind, self.target(at + place), depth + 1) if place else None
        return found

    def object(self, kind: str, at: int, depth: int) -> Any:
        if kind in self.tables:
            return self.table(kind, at, depth)
        count, element = self.number("I", at), kind.strip("[]")
        size = 1 if kind == "string" else struct.calcsize(_NUMBERS.get(element, "I"))
        start = at + 4
        if start + count * size > len(self.data):
            self.refuse(at, f"{count} elements are more than the data have")
        self.spend(count, at)
        if kind == "string":
            try:
                return self.data[start : start + count].decode()
            except UnicodeDecodeError:
                self.refuse(start, "a string is not UTF-8")
        if code := _NUMBERS.get(element):
            if code in "bB":
                return self.data[start : start + count]
            return struct.unpack_from(f"<{count}{code}", self.data, start)
        return [self.object(element, self.target(start + 4 * k), depth) for k in range(count)]
