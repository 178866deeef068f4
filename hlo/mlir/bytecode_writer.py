"""Operations, as a file has them, -> MLIR bytecode.

`write_file` numbers what the operations refer to, the most used first so that most numbers take one byte, and writes
the sections. Equal attributes and types are stored once. Source: MLIR's bytecode format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import UnsupportedError
from .builtin_bytecode import LOCATIONS
from .bytecode import (
    HAS_DIALECT_VERSIONS,
    HAS_ISOLATED_SECTIONS,
    HAS_PROPERTIES,
    HAS_SHORT_ARGUMENTS,
    HAS_USE_LISTS,
    MAGIC,
    Has,
    Section,
    flagged,
    section,
    varint,
)
from .bytecode_fields import Dialect, Flagged, Piece, Reference, pieces_of
from .tree import Block, Location, Opaque, Operation, Region, Value

_LARGE = 1 << 12
"""Bytes of a constant that is not looked up among the others: comparing it costs more than it saves."""


def write_file(top: Operation, dialects: Mapping[str, Dialect], version: int, producer: str) -> bytes:
    """`top`, which uses no value from outside, in a version of the format. UnsupportedError for an attribute or a type
    that its dialect cannot write."""
    names = _Names(dialects)
    operations = _Operations(names, version)
    operations.number(top)
    names.finish()
    operations.write_top(top)
    pieces: list[bytes | memoryview] = [MAGIC, varint(version), producer.encode(), b"\0"]
    pieces += section(Section.DIALECTS, names.dialect_section(version))
    offsets, contents = names.entry_sections()
    pieces += section(Section.OFFSETS, offsets)
    pieces += section(Section.ATTRIBUTES, contents)
    pieces += section(Section.OPERATIONS, operations.pieces)
    pieces += section(Section.STRINGS, names.string_section())
    if version >= HAS_PROPERTIES:
        pieces += section(Section.PROPERTIES, operations.property_section())
    return b"".join(pieces)


class _Names:
    """The tables of a file: strings, dialects, names of operations, attributes and types."""

    def __init__(self, dialects: Mapping[str, Dialect]) -> None:
        self._dialects = dialects
        self._strings: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """Of the dialects."""
        self._entries: dict[Any, Reference] = {}
        self._attributes: list[Reference] = []
        self._types: list[Reference] = []
        self._operations: dict[str, int] = {}
        """How often each is used; later, its number."""
        self._made: dict[Any, Reference] = {}
        self._locations: dict[Location | None, Reference] = {}

    def string(self, value: str) -> int:
        """The number of a string."""
        return self._strings.setdefault(value, len(self._strings))

    def _dialect(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def operation(self, name: str) -> None:
        """Counts a use of an operation's name."""
        self._operations[name] = self._operations.get(name, 0) + 1

    def operation_number(self, name: str) -> int:
        """The number of an operation's name."""
        return self._operations[name]

    def attribute(self, value: Any, dialect: str) -> Reference:
        """The entry of an attribute, in the encoding of a dialect."""
        return self._kept(self._attribute, value, dialect)

    def type(self, value: Any, dialect: str) -> Reference:
        """The entry of a type, in the encoding of a dialect."""
        return self._kept(self._type, value, dialect)

    def _kept(self, make: Callable[[Any, str], Reference], value: Any, dialect: str) -> Reference:
        """The entry that `make` makes for a value, once for equal values."""
        key = make, type(value), value, dialect
        try:
            found = self._made.get(key)
        except TypeError:  # dictionaries and records have no hash
            return make(value, dialect)
        if found is None:
            found = self._made[key] = make(value, dialect)
        else:
            found.uses += 1
        return found

    def _attribute(self, value: Any, dialect: str) -> Reference:
        if isinstance(value, Opaque):
            return self._add(self._attributes, "attribute", value.dialect, [_terminated(value.text)], is_text=True)
        coding = self._dialects[dialect].attribute_coding(value)
        return self._add(self._attributes, "attribute", dialect, pieces_of(coding, value, _Sink(self, dialect)))

    def _type(self, value: Any, dialect: str) -> Reference:
        coding = self._dialects[dialect].type_coding(value)
        if coding is None:
            name = value.text[1:].partition(".")[0] if value.text.startswith("!") else "builtin"
            return self._add(self._types, "type", name, [_terminated(value.text)], is_text=True)
        return self._add(self._types, "type", dialect, pieces_of(coding, value, _Sink(self, dialect)))

    def location(self, value: Location | None) -> Reference:
        """The entry of a location."""
        found = self._locations.get(value)
        if found is None:
            kind = "unknown" if value is None else "name" if value.name else "file" if value.file else "unknown"
            pieces = pieces_of(LOCATIONS[kind], value, _Sink(self, "builtin"))
            found = self._locations[value] = self._add(self._attributes, "attribute", "builtin", pieces)
        else:
            found.uses += 1
        return found

    def _add(
        self, table: list[Reference], what: str, dialect: str, pieces: list[Piece], is_text: bool = False
    ) -> Reference:
        found = Reference(dialect, tuple(pieces), is_text)
        if not any(isinstance(piece, memoryview) and len(piece) > _LARGE for piece in pieces):
            key = what, dialect, is_text, tuple([bytes(p) if isinstance(p, memoryview) else p for p in pieces])
            found = self._entries.setdefault(key, found)
        if not found.uses:
            self._dialect(dialect)
            table.append(found)
        found.uses += 1
        return found

    def finish(self) -> None:
        """Number all entries: dialect by dialect, the most used first."""
        for table in (self._attributes, self._types):
            table.sort(key=lambda entry: (self._numbers[entry.dialect], -entry.uses))
            for number, entry in enumerate(table):
                entry.number = number
        dialects = {name: self._dialect(name.partition(".")[0]) for name in self._operations}
        by_use = sorted(dialects, key=lambda name: (dialects[name], -self._operations[name]))
        self._operations = {name: number for number, name in enumerate(by_use)}

    def dialect_section(self, version: int) -> list[bytes | memoryview]:
        """The names of dialects and operations."""
        names = [self.string(name) for name in self._numbers]
        pieces: list[bytes | memoryview] = [varint(len(names))]
        pieces += [flagged(name, False) if version >= HAS_DIALECT_VERSIONS else varint(name) for name in names]
        if version >= HAS_SHORT_ARGUMENTS:
            pieces.append(varint(len(self._operations)))
        groups: dict[str, list[int]] = {}
        for each in self._operations:
            dialect, _, name = each.partition(".")
            groups.setdefault(dialect, []).append(self.string(name))
        for dialect, listed in groups.items():
            pieces += [varint(self._numbers[dialect]), varint(len(listed))]
            pieces += [flagged(name, True) if version >= HAS_PROPERTIES else varint(name) for name in listed]
        return pieces

    def entry_sections(self) -> tuple[list[bytes | memoryview], list[bytes | memoryview]]:
        """The sizes of attributes and types, and their bytes."""
        offsets: list[bytes | memoryview] = [varint(len(self._attributes)), varint(len(self._types))]
        contents: list[bytes | memoryview] = []
        for table in (self._attributes, self._types):
            groups: dict[str, list[Reference]] = {}
            for entry in table:
                groups.setdefault(entry.dialect, []).append(entry)
            for dialect, entries in groups.items():
                offsets += [varint(self._numbers[dialect]), varint(len(entries))]
                for entry in entries:
                    resolved = resolve(entry.pieces)
                    offsets.append(flagged(sum(map(len, resolved)), not entry.is_text))
                    contents += resolved
        return offsets, contents

    def string_section(self) -> list[bytes | memoryview]:
        """All strings, and before them their lengths, the last one first."""
        encoded = [text.encode("utf-8", "surrogateescape") + b"\0" for text in self._strings]
        return [varint(len(encoded)), *(varint(len(text)) for text in reversed(encoded)), *encoded]

    def home(self, operation: Operation) -> str:
        """The dialect in which attributes and types of an operation are encoded."""
        dialect = operation.name.partition(".")[0]
        return dialect if dialect in self._dialects else "builtin"

    def other(self, home: str) -> str:
        """The dialect that a cast from `home` leads to: from the builtin one to the file's own, or back."""
        return next(name for name in self._dialects if name != "builtin") if home == "builtin" else "builtin"

    def fields(self, operation: Operation) -> tuple[tuple[str, bool], ...]:
        """The names of an operation's properties, and whether each may be missing."""
        dialect = operation.name.partition(".")[0]
        fields = self._dialects[dialect].properties(operation.name) if dialect in self._dialects else ()
        if operation.name == CAST:
            return ()
        if fields is None:
            raise UnsupportedError(f"the operation {operation.name} in bytecode")
        return fields

    def properties(self, operation: Operation, fields: tuple[tuple[str, bool], ...]) -> tuple[Piece, ...]:
        """The attributes that are properties of an operation."""
        pieces: list[Piece] = []
        for name, may_miss in fields:
            value = operation.attributes.get(name)
            if value is not None:
                entry = self.attribute(value, self.home(operation))
                pieces.append(Flagged(entry) if may_miss else entry)
            elif may_miss:
                pieces.append(varint(0))
            else:
                raise UnsupportedError(f"{operation.name} without its attribute {name}")
        return tuple(pieces)

    def dictionary(self, operation: Operation, names: Iterable[str]) -> Reference | None:
        """Attributes of an operation as a dictionary of the builtin dialect, with values of the operation's own; None
        if there are none."""
        listed = sorted(names)
        if not listed:
            return None
        pieces: list[Piece] = [varint(_DICTIONARY), varint(len(listed))]
        for name in listed:
            value = self.attribute(operation.attributes[name], self.home(operation))
            pieces += [self.attribute(name, "builtin"), value]
        return self._add(self._attributes, "attribute", "builtin", pieces)


_DICTIONARY = 1
CAST = "builtin.unrealized_conversion_cast"
"""It changes between a type of the builtin dialect and the same one of another."""


class _Sink:
    """The parts of an entry are entries of its dialect."""

    def __init__(self, names: _Names, dialect: str) -> None:
        self._names, self._dialect = names, dialect

    def attribute(self, value: Any) -> Reference:
        return self._names.attribute(value, self._dialect)

    def type(self, value: Any) -> Reference:
        return self._names.type(value, self._dialect)

    def location(self, value: Location | None) -> Reference:
        return self._names.location(value)

    def string(self, value: str) -> int:
        return self._names.string(value)


def _terminated(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape") + b"\0"


def resolve(pieces: Iterable[Piece]) -> list[bytes | memoryview]:
    """The bytes of pieces, when references have their numbers."""
    found: list[bytes | memoryview] = []
    for piece in pieces:
        if isinstance(piece, Reference):
            found.append(varint(piece.number))
        elif isinstance(piece, Flagged):
            found.append(flagged(piece.reference.number, True))
        else:
            found.append(piece)
    return found


def _arguments(block: Block) -> Iterable[tuple[Value, Location | None]]:
    return zip(block.arguments, block.argument_locations or [None] * len(block.arguments))


class _Operations:
    """Two walks over the operations: one that finds what they refer to, and one that writes them."""

    def __init__(self, names: _Names, version: int) -> None:
        self._names, self._version = names, version
        self._parts: dict[int, tuple[Reference, Reference | None, tuple[Piece, ...], list[Reference]]] = {}
        """Of an operation: location, dictionary, properties and types of results."""
        self._arguments: dict[int, list[tuple[Reference, Reference]]] = {}
        """Of a block: the type and the location of each argument."""
        self._homes: dict[int, str] = {}
        """Of a value: the dialect in which its type is encoded."""
        self._properties: dict[bytes, int] = {}
        self._values: dict[int, int] = {}
        self.pieces: list[bytes | memoryview] = []

    def number(self, operation: Operation) -> None:
        """Finds the entries for an operation and all that is in it."""
        names = self._names
        home = names.home(operation)
        if operation.name == CAST:
            home = names.other(self._homes[id(operation.operands[0])])
        self._homes.update((id(value), home) for value in operation.results)
        names.operation(operation.name)
        fields = names.fields(operation) if self._version >= HAS_PROPERTIES else ()
        dictionary = names.dictionary(operation, operation.attributes.keys() - {name for name, _ in fields})
        types = [names.type(value.type, home) for value in operation.results]
        location = names.location(operation.location)
        self._parts[id(operation)] = location, dictionary, names.properties(operation, fields), types
        for region in operation.regions:
            for block in region.blocks:
                self._homes.update((id(value), home) for value in block.arguments)
                self._arguments[id(block)] = [
                    (names.type(value.type, home), names.location(place)) for value, place in _arguments(block)
                ]
                for each in block.operations:
                    self.number(each)

    def write_top(self, operation: Operation) -> None:
        """The contents of the section: a block without arguments that has one operation."""
        self.pieces.append(flagged(1, False))
        self._write(operation, self.pieces)

    def property_section(self) -> list[bytes | memoryview]:
        """Each set of properties, with its length before it."""
        pieces: list[bytes | memoryview] = [varint(len(self._properties))]
        for each in self._properties:
            pieces += [varint(len(each)), each]
        return pieces

    def _write(self, operation: Operation, out: list[bytes | memoryview], base: int = 0) -> None:
        location, dictionary, properties, types = self._parts[id(operation)]
        has = 0
        body = [varint(location.number)]
        if dictionary is not None:
            has |= Has.ATTRIBUTES
            body.append(varint(dictionary.number))
        if properties:
            has |= Has.PROPERTIES
            stored = b"".join(resolve(properties))
            body.append(varint(self._properties.setdefault(stored, len(self._properties))))
        if types:
            has |= Has.RESULTS
            body.append(varint(len(types)))
            body += [varint(entry.number) for entry in types]
        if operation.operands:
            has |= Has.OPERANDS
            body.append(varint(len(operation.operands)))
            body += [varint(self._number_of(value, operation)) for value in operation.operands]
        if operation.regions:
            has |= Has.REGIONS
        out.append(varint(self._names.operation_number(operation.name)) + bytes((has,)) + b"".join(body))
        if operation.regions:
            is_isolated = operation.name == "builtin.module"
            out.append(flagged(len(operation.regions), is_isolated))
            if is_isolated and self._version >= HAS_ISOLATED_SECTIONS:
                inner: list[bytes | memoryview] = []
                for region in operation.regions:
                    self._write_region(region, inner, 0)
                out += section(Section.OPERATIONS, inner)
            else:
                for region in operation.regions:
                    self._write_region(region, out, 0 if is_isolated else base)

    def _number_of(self, value: Value, operation: Operation) -> int:
        number = self._values.get(id(value))
        if number is None:
            raise UnsupportedError(f"{operation.name} uses a value that no operation around it defines")
        return number

    def _write_region(self, region: Region, out: list[bytes | memoryview], base: int) -> None:
        """Number all values of a region before the values of its inner regions."""
        out.append(varint(len(region.blocks)))
        if not region.blocks:
            return
        count = base
        for block in region.blocks:
            for value in (*block.arguments, *(result for each in block.operations for result in each.results)):
                self._values[id(value)] = count
                count += 1
        out.append(varint(count - base))
        for block in region.blocks:
            self._write_block(block, out, count)

    def _write_block(self, block: Block, out: list[bytes | memoryview], base: int) -> None:
        out.append(flagged(len(block.operations), bool(block.arguments)))
        if block.arguments:
            out.append(varint(len(block.arguments)))
            for (type_, location), (_, place) in zip(self._arguments[id(block)], _arguments(block)):
                if self._version < HAS_SHORT_ARGUMENTS:
                    out += [varint(type_.number), varint(location.number)]
                elif place is None:
                    out.append(flagged(type_.number, False))
                else:
                    out += [flagged(type_.number, True), varint(location.number)]
            if self._version >= HAS_USE_LISTS:
                out.append(b"\0")
        for operation in block.operations:
            self._write(operation, out, base)
