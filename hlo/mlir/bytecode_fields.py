"""How attributes and types are stored in bytecode: a code, and fields. A dialect is a table of both.

A `Coding` is used in both directions, so that a table says each layout once. The fields are those of MLIR's
DialectBytecodeReader and DialectBytecodeWriter (mlir/Bytecode/BytecodeImplementation.h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from .bytecode import Cursor, flagged, signed, varint
from .tree import DYNAMIC, IndexType, Location, Type

Field: TypeAlias = str
"""The name of a kind of field, see `KINDS`."""

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
    """Finds the entries that an entry refers to, by their numbers."""

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
        self.source: Source = source

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

    def text(self) -> str:
        """An attribute that is a string."""
        found = self.attribute()
        if not isinstance(found, str):
            raise self.error("an attribute is no string")
        return found

    def number(self) -> tuple[Type, int]:
        """A type, and a number of so many bits, without a sign."""
        type_ = self.type()
        width = number_width(type_)
        bits = self.byte() if width <= 8 else self.signed()
        return type_, bits & (1 << width) - 1

    def values(self, fields: tuple[Field, ...]) -> list[Any]:
        """The values of the fields."""
        return [KINDS[field].read(self) for field in fields]


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
    for field, each in zip(coding.fields, coding.take(value), strict=True):
        pieces += KINDS[field].write(each, sink)
    return pieces


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of field: how its value is read from an entry, and how it is written."""

    read: Callable[[Entry], Any]
    write: Callable[[Any, Sink], list[Piece]]


def _several(kind: Kind) -> Kind:
    """A list, with its length before it."""

    def write(values: Any, sink: Sink) -> list[Piece]:
        return [varint(len(values)), *(piece for value in values for piece in kind.write(value, sink))]

    return Kind(lambda entry: tuple(entry.list(partial(kind.read, entry))), write)


def _number(value: tuple[Type, int], sink: Sink) -> list[Piece]:
    type_, number = value
    width = number_width(type_)
    bits = number & (1 << width) - 1
    data = bytes((bits,)) if width <= 8 else signed(bits - (1 << 64) if bits >> 63 else bits)
    return [sink.type(type_), data]


def _read_size(entry: Entry) -> int:
    value = entry.signed()
    return DYNAMIC if value == _DYNAMIC_IN_BYTES else value


def _read_double(entry: Entry) -> float:
    return float(np.array(entry.signed() & (1 << 64) - 1, np.uint64).view(np.float64))


def _read_optional_number(entry: Entry) -> int | None:
    value, is_there = entry.flagged()
    return value if is_there else None


_ATTRIBUTE = Kind(Entry.attribute, lambda value, sink: [sink.attribute(value)])
_TYPE = Kind(Entry.type, lambda value, sink: [sink.type(value)])
_LOCATION = Kind(Entry.location, lambda value, sink: [sink.location(value)])
_SIGNED = Kind(Entry.signed, lambda value, sink: [signed(value)])
_SIZE = Kind(_read_size, lambda value, sink: [signed(_DYNAMIC_IN_BYTES if value == DYNAMIC else value)])
_DOUBLE = Kind(_read_double, lambda value, sink: [signed(int(np.float64(value).view(np.int64)))])
_ITEMS = _several(
    Kind(lambda entry: (entry.text(), entry.attribute()), lambda item, sink: [*map(sink.attribute, item)])
)

KINDS: dict[Field, Kind] = {
    "attribute": _ATTRIBUTE,
    "attributes": _several(_ATTRIBUTE),
    "optional": Kind(
        Entry.optional, lambda value, sink: [varint(0) if value is None else Flagged(sink.attribute(value))]
    ),
    "optional after a flag": Kind(
        lambda entry: entry.attribute() if entry.varint() else None,
        lambda value, sink: [varint(0)] if value is None else [varint(1), sink.attribute(value)],
    ),
    "text": Kind(Entry.text, _ATTRIBUTE.write),
    "pairs": Kind(
        lambda entry: dict(_ITEMS.read(entry)), lambda value, sink: _ITEMS.write(sorted(value.items()), sink)
    ),
    "type": _TYPE,
    "types": _several(_TYPE),
    "location": _LOCATION,
    "locations": _several(_LOCATION),
    "string": Kind(Entry.string, lambda value, sink: [varint(sink.string(value))]),
    "varint": Kind(Entry.varint, lambda value, sink: [varint(value)]),
    "signed": _SIGNED,
    "signeds": _several(_SIGNED),
    "sizes": _several(_SIZE),
    "number": Kind(Entry.number, _number),
    "double": _DOUBLE,
    "doubles": _several(_DOUBLE),
    "blob": Kind(Entry.blob, lambda value, sink: [varint(len(value)), value]),
    "byte": Kind(Entry.byte, lambda value, sink: [bytes((value,))]),
    "optional number": Kind(
        _read_optional_number, lambda value, sink: [varint(0) if value is None else flagged(value, True)]
    ),
}
"""`text`: an attribute that is a string. `number`: a type, and as many bits as it has. `sizes`: dimensions, which may
be DYNAMIC. `pairs`: a dictionary. `optional after a flag`: a number says whether an attribute follows."""
