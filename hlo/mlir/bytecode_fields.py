"""How attributes and types are stored in bytecode: a code, and fields. A dialect is a table of both.

A `Coding` is used in both directions, so that a table says each layout once. The fields are those of MLIR's
DialectBytecodeReader and DialectBytecodeWriter (mlir/Bytecode/BytecodeImplementation.h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from .bytecode import Cursor, signed, varint
from .tree import DYNAMIC, IndexType, Location, Type

Field: TypeAlias = Literal[
    "attribute", "attributes", "optional", "pairs", "type", "types", "location", "locations", "string", "varint",
    "signed", "signeds", "sizes", "number", "double", "doubles", "blob", "optional after a flag", "text",
    "byte", "optional number",
]  # fmt: skip
"""`text`: an attribute that is a string. `number`: bits, as many as the type before it has. `sizes`: dimensions, which
may be DYNAMIC. `pairs`: a dictionary. `optional after a flag`: a number says whether an attribute follows. `byte` and
`optional number` are read only."""

_DYNAMIC_IN_BYTES = -1 << 63


@dataclass(frozen=True, slots=True)
class Coding:
    """`make` gives the object for the values of the fields, and `take` these values for the object. `since`: the first
    version of StableHLO that has it."""

    name: str
    code: int
    fields: tuple[Field, ...]
    make: Callable[..., Any]
    take: Callable[[Any], tuple[Any, ...]]
    since: tuple[int, int] = (0, 9)


class Dialect(Protocol):
    """A dialect's part of reading and writing."""

    name: str
    attributes: dict[int, Coding]
    types: dict[int, Coding]

    def attribute_coding(self, value: Any) -> Coding:
        """How an attribute is written; UnsupportedError if the dialect has no such attribute."""

    def type_coding(self, value: Any) -> Coding | None:
        """How a type is written, or None for an OtherType that is written as text; UnsupportedError if the dialect has
        no such type."""

    def properties(self, operation: str) -> tuple[tuple[str, bool], ...] | None:
        """The names of an operation's properties in the order of the bytes, and whether each may be missing; None for
        an unknown operation."""


class Source(Protocol):
    """What an entry refers to: other entries, by their numbers."""

    def attribute(self, index: int, at: int) -> Any:
        """The attribute with that number."""

    def type(self, index: int, at: int) -> Any:
        """The type with that number."""

    def location(self, index: int, at: int) -> Location | None:
        """The location with that number."""

    def string(self, index: int, at: int) -> str:
        """The string with that number."""


class Entry(Cursor):
    """The bytes of one attribute, type or set of properties."""

    __slots__ = ("source",)

    def __init__(self, data: bytes, at: int, end: int, source: Source) -> None:
        super().__init__(data, at, end)
        self.source = source

    def attribute(self) -> Any:
        """An attribute, by its number."""
        return self.source.attribute(self.varint(), self.at)

    def optional(self) -> Any:
        """An attribute, or None."""
        index, is_there = self.flagged()
        return self.source.attribute(index, self.at) if is_there else None

    def type(self) -> Any:
        """A type, by its number."""
        return self.source.type(self.varint(), self.at)

    def location(self) -> Location | None:
        """A location, by its number."""
        return self.source.location(self.varint(), self.at)

    def string(self) -> str:
        """A string, by its number."""
        return self.source.string(self.varint(), self.at)

    def blob(self) -> memoryview:
        """Bytes with their length before them, not copied."""
        size = self.varint()
        start = self.span(size)
        return memoryview(self.data)[start : start + size]

    def size(self) -> int:
        """The size of a dimension."""
        value = self.signed()
        return DYNAMIC if value == _DYNAMIC_IN_BYTES else value

    def text(self) -> str:
        """An attribute that is a string."""
        found = self.attribute()
        if not isinstance(found, str):
            raise self.error("an attribute is no string")
        return found

    def pair(self) -> tuple[str, Any]:
        """An item of a dictionary."""
        return self.text(), self.attribute()

    def number(self, type_: Type) -> int:
        """The bits of a number, without a sign."""
        width = number_width(type_)
        if width <= 8:
            return self.byte() & (1 << width) - 1
        return self.signed() & (1 << width) - 1

    def double(self) -> float:
        """A float of 64 bits."""
        return float(np.array(self.signed() & (1 << 64) - 1, np.uint64).view(np.float64))

    def after_flag(self) -> Any:
        """An attribute behind a number that is not zero, else None."""
        return self.attribute() if self.varint() else None

    def optional_number(self) -> int | None:
        """A number, or None."""
        value, is_there = self.flagged()
        return value if is_there else None

    def values(self, fields: tuple[Field, ...]) -> list[Any]:
        """The values of the fields."""
        found: list[Any] = []
        for field in fields:
            found.append(self.number(found[-1]) if field == "number" else _READ[field](self))
        return found


_READ: dict[str, Callable[[Entry], Any]] = {
    "attribute": Entry.attribute,
    "attributes": lambda entry: tuple(entry.list(entry.attribute)),
    "optional": Entry.optional,
    "optional after a flag": Entry.after_flag,
    "text": Entry.text,
    "pairs": lambda entry: dict(entry.list(entry.pair)),
    "type": Entry.type,
    "types": lambda entry: tuple(entry.list(entry.type)),
    "location": Entry.location,
    "locations": lambda entry: tuple(entry.list(entry.location)),
    "string": Entry.string,
    "varint": Entry.varint,
    "signed": Entry.signed,
    "signeds": lambda entry: tuple(entry.list(entry.signed)),
    "sizes": lambda entry: tuple(entry.list(entry.size)),
    "double": Entry.double,
    "doubles": lambda entry: tuple(entry.list(entry.double)),
    "blob": Entry.blob,
    "byte": Entry.byte,
    "optional number": Entry.optional_number,
}


def number_width(type_: Any) -> int:
    """The bits of an integer or a float of a type; UnsupportedError for a type without numbers."""
    if isinstance(type_, IndexType):
        return 64
    if isinstance(type_, ElementType) and not type_.is_complex:
        return type_.bit_width
    raise UnsupportedError(f"an attribute that is a number of type {type_}")


class Sink(Protocol):
    """Gives numbers to entries, and knows the dialect whose entry is being written."""

    def attribute(self, value: Any) -> Reference:
        """The entry of an attribute."""

    def type(self, value: Any) -> Reference:
        """The entry of a type."""

    def location(self, value: Location | None) -> Reference:
        """The entry of a location."""

    def string(self, value: str) -> int:
        """The number of a string."""


class Reference:
    """An attribute or a type of a file that is being written. Its number is known when all are."""

    __slots__ = ("dialect", "is_text", "number", "pieces", "uses")

    def __init__(self, dialect: str, pieces: tuple[Piece, ...], is_text: bool = False) -> None:
        self.dialect, self.pieces, self.is_text = dialect, pieces, is_text
        self.number = self.uses = 0


@dataclass(frozen=True, slots=True)
class Flagged:
    """A reference that is written with a flag, because it may be missing."""

    reference: Reference


Piece: TypeAlias = "bytes | memoryview | Reference | Flagged"


def pieces_of(coding: Coding, value: Any, sink: Sink) -> list[Piece]:
    """The bytes of an attribute or a type, with references to others."""
    pieces: list[Piece] = [varint(coding.code)]
    values = coding.take(value)
    for k, field in enumerate(coding.fields):
        if field == "number":
            pieces.append(_number(values[k], values[k - 1]))
        else:
            pieces.extend(_WRITE[field](values[k], sink))
    return pieces


def _number(value: int, type_: Type) -> bytes:
    width = number_width(type_)
    bits = value & (1 << width) - 1
    if width <= 8:
        return bytes((bits,))
    return signed(bits - (1 << 64) if bits >> 63 else bits)


def _double(value: float) -> bytes:
    return signed(int(np.float64(value).view(np.int64)))


def _size(value: int) -> bytes:
    return signed(_DYNAMIC_IN_BYTES if value == DYNAMIC else value)


def _list(element: Callable[[Any, Sink], list[Piece]]) -> Callable[[Any, Sink], list[Piece]]:
    def write(values: Any, sink: Sink) -> list[Piece]:
        return [varint(len(values)), *(piece for value in values for piece in element(value, sink))]

    return write


_WRITE: dict[str, Callable[[Any, Sink], list[Piece]]] = {
    "attribute": lambda value, sink: [sink.attribute(value)],
    "text": lambda value, sink: [sink.attribute(value)],
    "attributes": _list(lambda value, sink: [sink.attribute(value)]),
    "optional": lambda value, sink: [varint(0) if value is None else Flagged(sink.attribute(value))],
    "optional after a flag": lambda value, sink: [varint(0)] if value is None else [varint(1), sink.attribute(value)],
    "pairs": lambda value, sink: _list(lambda item, sink: [sink.attribute(item[0]), sink.attribute(item[1])])(
        sorted(value.items()), sink
    ),
    "type": lambda value, sink: [sink.type(value)],
    "types": _list(lambda value, sink: [sink.type(value)]),
    "location": lambda value, sink: [sink.location(value)],
    "locations": _list(lambda value, sink: [sink.location(value)]),
    "string": lambda value, sink: [varint(sink.string(value))],
    "varint": lambda value, sink: [varint(value)],
    "signed": lambda value, sink: [signed(value)],
    "signeds": _list(lambda value, sink: [signed(value)]),
    "sizes": _list(lambda value, sink: [_size(value)]),
    "double": lambda value, sink: [_double(value)],
    "doubles": _list(lambda value, sink: [_double(value)]),
    "blob": lambda value, sink: [varint(len(value)), value],
}
