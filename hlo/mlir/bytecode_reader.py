"""MLIR bytecode -> operations, as the file has them: `vhlo.add_v1`, not `stablehlo.add`.

`read_file` reads the container; the tables of the dialects (`bytecode_fields.Dialect`) say what attributes, types and
properties are. Attributes and types are read when something refers to them. A file of n bytes needs memory and time in
proportion to n, whatever numbers are in it. Source: MLIR's bytecode format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BytecodeError, HloError, HloParseError, UnsupportedError
from .attribute_reader import read_attribute, read_type
from .bytecode import (
    HAS_DIALECT_VERSIONS,
    HAS_ISOLATED_SECTIONS,
    HAS_PROPERTIES,
    HAS_SHORT_ARGUMENTS,
    HAS_USE_LISTS,
    MAGIC,
    NEWEST,
    Cursor,
    Has,
    Section,
)
from .bytecode_fields import Coding, Dialect, Entry
from .bytecode_locations import Locations
from .tree import Attribute, Block, Location, Operation, Region, Type, Value

_DEEPEST_ATTRIBUTE = 30
_DEEPEST_REGION = 40
"""Nested deeper, a file is refused: reading is recursive."""


def read_file(data: bytes, dialects: Mapping[str, Dialect]) -> Operation:
    """The only operation at the top of a file. BytecodeError, with the offset, if the bytes are damaged;
    UnsupportedError for a version, a dialect, a type or an operation that is not known."""
    cursor = Cursor(data, 0, len(data))
    if data[: len(MAGIC)] != MAGIC:
        raise cursor.error("this is no MLIR bytecode")
    cursor.at = len(MAGIC)
    version = cursor.varint()
    if version > NEWEST:
        raise UnsupportedError(f"MLIR bytecode of version {version}")
    cursor.terminated()
    sections: dict[int, Cursor] = {}
    while not cursor.is_empty:
        kind, contents = cursor.section()
        if sections.setdefault(kind, contents) is not contents:
            raise cursor.error(f"there are two sections of kind {kind}")
    for needed in (Section.STRINGS, Section.DIALECTS, Section.ATTRIBUTES, Section.OFFSETS, Section.OPERATIONS):
        if needed not in sections:
            raise cursor.error(f"there is no section of {needed.name.lower()}")
    tables = _Tables(version, sections, dialects)
    return _Operations(tables, version).top(sections[Section.OPERATIONS])


def producer_of(data: bytes) -> str:
    """The producer that a file names, e.g. "StableHLO_v1.0.0"; BytecodeError if it is no MLIR bytecode."""
    cursor = Cursor(data, 0, len(data))
    if data[: len(MAGIC)] != MAGIC:
        raise cursor.error("this is no MLIR bytecode")
    cursor.at = len(MAGIC)
    cursor.varint()
    return cursor.terminated().decode("utf-8", "replace")


class _Pool:
    """All attributes, or all types, of a file. An item is read at its first use."""

    def __init__(self) -> None:
        self.places: list[tuple[str, bool, int, int]] = []
        """Of each: its dialect, whether it is encoded and not text, and where it starts and stops."""
        self.read: dict[int, Any] = {}
        self.pending: set[int] = set()


class _Tables:
    """Strings, names of operations, attributes, types and properties: a `Source`."""

    def __init__(self, version: int, sections: dict[int, Cursor], dialects: Mapping[str, Dialect]) -> None:
        self.data = sections[Section.STRINGS].data
        self._dialects = dialects
        self._strings = _string_places(sections[Section.STRINGS])
        self._known: dict[int, str] = {}
        self._depth = 0
        names = sections[Section.DIALECTS]
        self.dialect_names = [self._dialect_name(names, version) for _ in range(names.count("dialects"))]
        self.operations = self._operation_names(names, version)
        self._attributes, self._types = _Pool(), _Pool()
        self._fill(sections[Section.OFFSETS], sections[Section.ATTRIBUTES])
        self._locations = Locations(self._builtin)
        self._properties = _property_places(sections.get(Section.PROPERTIES))

    def string(self, index: int, at: int) -> str:
        """A string. Bytes that are no UTF-8 become lone surrogates, and are written as they were."""
        found = self._known.get(index)
        if found is None:
            if index >= len(self._strings):
                raise BytecodeError(f"there is no string {index}", at)
            start, stop = self._strings[index]
            found = self._known[index] = self.data[start:stop].decode("utf-8", "surrogateescape")
        return found

    def attribute(self, index: int, at: int) -> Any:
        """The attribute with that number."""
        return self._item(self._attributes, index, at, "attribute")

    def type(self, index: int, at: int) -> Any:
        """The type with that number."""
        return self._item(self._types, index, at, "type")

    def location(self, index: int, at: int) -> Location | None:
        """The location with that number; None if it is unknown."""
        return self._locations.read(index, at)

    def _builtin(self, index: int, at: int) -> Entry | None:
        """The bytes of an attribute of the builtin dialect; None for another one."""
        if index >= len(self._attributes.places):
            raise BytecodeError(f"there is no location {index}", at)
        dialect, is_encoded, start, stop = self._attributes.places[index]
        return Entry(self.data, start, stop, self) if dialect == "builtin" and is_encoded else None

    def _dialect_name(self, names: Cursor, version: int) -> str:
        if version < HAS_DIALECT_VERSIONS:
            return self.string(names.varint(), names.at)
        index, has_version = names.flagged()
        if has_version:
            names.section()
        return self.string(index, names.at)

    def _operation_names(self, names: Cursor, version: int) -> list[tuple[str, bool]]:
        """The full name of each operation, and whether the writer knew it."""
        if version >= HAS_SHORT_ARGUMENTS:
            names.varint()
        found = []
        while not names.is_empty:
            dialect = self._dialect(names)
            for _ in range(names.count("names")):
                index, is_registered = names.flagged() if version >= HAS_PROPERTIES else (names.varint(), True)
                found.append((f"{dialect}.{self.string(index, names.at)}", is_registered))
        return found

    def _dialect(self, cursor: Cursor) -> str:
        index = cursor.varint()
        if index >= len(self.dialect_names):
            raise cursor.error(f"there is no dialect {index}")
        return self.dialect_names[index]

    def _fill(self, offsets: Cursor, contents: Cursor) -> None:
        """Notes where each attribute and type is."""
        counts = offsets.varint(), offsets.varint()
        for pool, count in zip((self._attributes, self._types), counts):
            while len(pool.places) < count:
                dialect = self._dialect(offsets)
                for _ in range(offsets.count("offsets")):
                    size, is_encoded = offsets.flagged()
                    start = contents.span(size)
                    pool.places.append((dialect, is_encoded, start, start + size))

    def _item(self, pool: _Pool, index: int, at: int, what: str) -> Any:
        if index in pool.read:
            return pool.read[index]
        if index >= len(pool.places):
            raise BytecodeError(f"there is no {what} {index}", at)
        if index in pool.pending:
            raise BytecodeError(f"{what} {index} contains itself", at)
        if self._depth >= _DEEPEST_ATTRIBUTE:
            raise UnsupportedError(f"attributes nested more than {_DEEPEST_ATTRIBUTE} deep")
        pool.pending.add(index)
        self._depth += 1
        dialect, is_encoded, start, stop = pool.places[index]
        entry = Entry(self.data, start, stop, self)
        if is_encoded:
            found = self._decoded(dialect, what, entry)
        else:
            found = _from_text(dialect, what, entry)
        self._depth -= 1
        pool.read[index] = found
        return found

    def _decoded(self, dialect: str, what: str, entry: Entry) -> Any:
        known = self._dialects.get(dialect)
        if known is None:
            raise UnsupportedError(f"an encoded {what} of the dialect {dialect!r}")
        table: dict[int, Coding] = known.attributes if what == "attribute" else known.types
        code = entry.varint()
        coding = table.get(code)
        if coding is None:
            raise UnsupportedError(f"the {what} with code {code} of the dialect {dialect!r}")
        start = entry.at
        try:
            return coding.make(*entry.values(coding.fields))
        except HloError:
            raise
        except (ValueError, TypeError, AttributeError) as error:  # a part of it is of another kind
            raise BytecodeError(f"no {coding.name}: {error}", start) from None

    def properties(self, index: int, name: str, is_registered: bool, at: int) -> dict[str, Attribute]:
        """The attributes that are stored as the properties of an operation."""
        if index >= len(self._properties):
            raise BytecodeError(f"there are no properties {index}", at)
        entry = Entry(self.data, *self._properties[index], self)
        if not is_registered:
            return _dictionary(entry.attribute(), entry)
        known = self._dialects.get(name.partition(".")[0])
        fields = known.properties(name) if known is not None else None
        if fields is None:
            raise UnsupportedError(f"the operation {name} in bytecode")
        found = {}
        for field, may_miss in fields:
            value = entry.optional() if may_miss else entry.attribute()
            if value is not None:
                found[field] = value
        return found


def _string_places(section: Cursor) -> list[tuple[int, int]]:
    """Where each string starts and stops. Their lengths, with the zero byte at the end, are stored from the last."""
    sizes = [section.varint() for _ in range(section.count("strings"))]
    found = []
    for size in reversed(sizes):
        start = section.span(size)
        if not size:
            raise section.error("a string has no end")
        found.append((start, start + size - 1))
    return found


def _property_places(section: Cursor | None) -> list[tuple[int, int]]:
    if section is None:
        return []
    found = []
    for _ in range(section.count("properties")):
        size = section.varint()
        start = section.span(size)
        found.append((start, start + size))
    return found


def _from_text(dialect: str, what: str, entry: Entry) -> Attribute | Type:
    """An attribute or a type that is stored as text, because its dialect has no encoding."""
    start = entry.at
    text = entry.terminated().decode("utf-8", "surrogateescape")
    try:
        return read_type(text) if what == "type" else read_attribute(text)
    except HloParseError as error:
        raise BytecodeError(f"{what} of {dialect}, {text[:80]!r}: {error.message}", start) from None


def _dictionary(value: Any, entry: Cursor) -> dict[str, Attribute]:
    if not isinstance(value, dict):
        raise entry.error("the attributes of an operation are no dictionary")
    return value


class _Operations:
    """Operations, blocks and regions. A value is known by its number, which counts from the region that is isolated."""

    def __init__(self, tables: _Tables, version: int) -> None:
        self._tables, self._version = tables, version
        self._values: list[Value | None] = []
        """Those that the current operation may use. None: a region announces the value, and does not define it yet."""
        self._announced = 0
        self._depth = 0
        self._left = 16 * len(tables.data)
        """How many attributes operations may still have. They share dictionaries: many could have one that is large."""

    def top(self, cursor: Cursor) -> Operation:
        """The operation of the section."""
        count, has_arguments = cursor.flagged()
        if count != 1 or has_arguments:
            raise cursor.error(f"there are {count} operations, not one module")
        return self._operation(cursor, [0])

    def _operation(self, cursor: Cursor, next_value: list[int]) -> Operation:
        """An operation. Its results get the next numbers of the region, which `next_value` counts."""
        tables, start = self._tables, cursor.at
        index = cursor.varint()
        if index >= len(tables.operations):
            raise cursor.error(f"there is no operation {index}")
        name, is_registered = tables.operations[index]
        has = cursor.byte()
        location = tables.location(cursor.varint(), cursor.at)
        attributes: dict[str, Attribute] = {}
        if has & Has.ATTRIBUTES:
            self._add(attributes, _dictionary(tables.attribute(cursor.varint(), cursor.at), cursor), cursor)
        if has & Has.PROPERTIES:
            self._add(attributes, tables.properties(cursor.varint(), name, is_registered, cursor.at), cursor)
        types = (
            [tables.type(cursor.varint(), cursor.at) for _ in range(cursor.count("results"))]
            if has & Has.RESULTS else []
        )  # fmt: skip
        operands = [self._use(cursor) for _ in range(cursor.count("operands"))] if has & Has.OPERANDS else []
        if has & Has.SUCCESSORS:
            raise UnsupportedError(f"{name} jumps to another block")
        if has & Has.USE_LISTS:
            self._skip_use_lists(cursor, len(types))
        operation = Operation(name, operands, [Value(type_) for type_ in types], attributes, [], location, start)
        if has & Has.REGIONS:
            self._regions(cursor, operation)
        self._define(operation.results, next_value, cursor)  # not before: its regions may not use them
        return operation

    def _add(self, attributes: dict[str, Attribute], more: dict[str, Attribute], cursor: Cursor) -> None:
        self._left -= len(more)
        if self._left < 0:
            raise cursor.error("the operations have more attributes than a file of this size needs")
        attributes.update(more)

    def _regions(self, cursor: Cursor, operation: Operation) -> None:
        count, is_isolated = cursor.flagged()
        if self._depth >= _DEEPEST_REGION:
            raise UnsupportedError(f"regions nested more than {_DEEPEST_REGION} deep")
        self._depth += 1
        outer = self._values
        if is_isolated:
            self._values = []
            if self._version >= HAS_ISOLATED_SECTIONS:
                kind, cursor = cursor.section()
                if kind != Section.OPERATIONS:
                    raise cursor.error(f"a section of kind {kind} has no operations")
        if count > cursor.end - cursor.at:
            raise cursor.error(f"{count} regions are announced, and {cursor.end - cursor.at} bytes are there")
        operation.regions = [self._region(cursor) for _ in range(count)]
        self._values = outer
        self._depth -= 1

    def _region(self, cursor: Cursor) -> Region:
        blocks = cursor.count("blocks")
        if not blocks:
            return Region()
        count, base = cursor.varint(), len(self._values)
        # each value that is announced and not yet defined needs a byte of the rest of the file
        self._announced += count
        if self._announced > len(cursor.data) - cursor.at:
            raise cursor.error(f"{count} values are announced, and {len(cursor.data) - cursor.at} bytes are there")
        self._values.extend([None] * count)
        next_value = [base]
        region = Region([self._block(cursor, next_value) for _ in range(blocks)])
        self._announced -= base + count - next_value[0]
        del self._values[base:]
        return region

    def _block(self, cursor: Cursor, next_value: list[int]) -> Block:
        count, has_arguments = cursor.flagged()
        block = Block()
        if has_arguments:
            for _ in range(cursor.count("arguments")):
                self._argument(cursor, block)
            self._define(block.arguments, next_value, cursor)
            if self._version >= HAS_USE_LISTS and cursor.byte() & Has.USE_LISTS:
                self._skip_use_lists(cursor, len(block.arguments))
            if not any(block.argument_locations):
                block.argument_locations.clear()
        if count > cursor.end - cursor.at:
            raise cursor.error(f"{count} operations are announced, and {cursor.end - cursor.at} bytes are there")
        block.operations = [self._operation(cursor, next_value) for _ in range(count)]
        return block

    def _argument(self, cursor: Cursor, block: Block) -> None:
        has_location = True
        if self._version >= HAS_SHORT_ARGUMENTS:
            index, has_location = cursor.flagged()
        else:
            index = cursor.varint()
        block.arguments.append(Value(self._tables.type(index, cursor.at)))
        block.argument_locations.append(self._tables.location(cursor.varint(), cursor.at) if has_location else None)

    def _use(self, cursor: Cursor) -> Value:
        index = cursor.varint()
        found = self._values[index] if index < len(self._values) else None
        if found is None:
            raise cursor.error(f"value {index} is used before an operation defines it")
        return found

    def _define(self, values: list[Value], next_value: list[int], cursor: Cursor) -> None:
        start = next_value[0]
        if start + len(values) > len(self._values):
            if values:
                raise cursor.error("a region defines more values than it announces")
            return
        self._values[start : start + len(values)] = values
        next_value[0] += len(values)
        self._announced -= len(values)

    def _skip_use_lists(self, cursor: Cursor, values: int) -> None:
        """The order in which a compiler meets the uses of values has no meaning here."""
        for _ in range(1 if values == 1 else cursor.count("lists")):
            if values != 1:
                cursor.varint()
            size, _ = cursor.flagged()
            if size > cursor.end - cursor.at:
                raise cursor.error(f"{size} uses are announced, and {cursor.end - cursor.at} bytes are there")
            for _ in range(size):
                cursor.varint()
