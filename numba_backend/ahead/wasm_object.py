"""Read relocatable WebAssembly, as LLVM writes it, for `wasm_linker.py`.

The code and the data of an object file have gaps. A custom section "linking" names its functions, data and globals, and
sections "reloc.CODE" and "reloc.DATA" list the places where the number of a function or an address belongs. The format:
https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md
"""

from __future__ import annotations

from dataclasses import field

from ...hlo.errors import HloError
from ...hlo.support.records import dataclass

MAGIC = b"\0asm\x01\0\0\0"
TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT, ELEMENT, CODE, DATA = 1, 2, 3, 4, 5, 6, 7, 9, 10, 11
_CUSTOM, _DATA_COUNT = 0, 12
FUNCTIONS, TABLES, MEMORIES, GLOBALS = 0, 1, 2, 3
"""The kinds of imports and exports."""

FUNCTION_SYMBOL, DATA_SYMBOL, GLOBAL_SYMBOL, SECTION_SYMBOL, TABLE_SYMBOL = 0, 1, 2, 3, 5
_UNDEFINED, _EXPLICIT_NAME = 0x10, 0x40
_SEGMENTS, _SYMBOLS = 5, 8

FUNCTION_INDEX_LEB, TABLE_INDEX_SLEB, TABLE_INDEX_I32, MEMORY_ADDR_LEB, MEMORY_ADDR_SLEB, MEMORY_ADDR_I32 = range(6)
TYPE_INDEX_LEB, GLOBAL_INDEX_LEB, TABLE_NUMBER_LEB = 6, 7, 20
_WITH_ADDEND = frozenset((MEMORY_ADDR_LEB, MEMORY_ADDR_SLEB, MEMORY_ADDR_I32))
_KNOWN = frozenset((*range(8), TABLE_NUMBER_LEB))


class LinkError(HloError, ValueError):
    """Object code that does not become a module."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """A gap: its place in the payload of its section, and the symbol or type that supplies a number or an address."""

    kind: int
    offset: int
    index: int
    addend: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name. `index` counts functions, globals or tables, imports first; for data it counts segments, with an
    offset."""

    kind: int
    name: str
    is_defined: bool
    index: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A function body or a data segment: its bytes, and where they begin in the payload of their section."""

    start: int
    content: bytes
    alignment: int = 1


@dataclass(slots=True)
class WasmObject:
    """An object file."""

    types: list[bytes] = field(default_factory=list)
    imports: list[tuple[int, str]] = field(default_factory=list)
    """Kind and name of each."""
    function_types: list[int] = field(default_factory=list)
    """The type of each function that is defined."""
    bodies: list[Piece] = field(default_factory=list)
    segments: list[Piece] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    code_relocations: list[Relocation] = field(default_factory=list)
    data_relocations: list[Relocation] = field(default_factory=list)

    def imported(self, kind: int) -> list[str]:
        """The names of the imports of a kind, in the order of their numbers."""
        return [name for number, name in self.imports if number == kind]


class Reader:
    """Reads numbers, names and bytes, from the first to the last."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    @property
    def at_end(self) -> bool:
        """True if all is read."""
        return self.place >= len(self.data)

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if self.place + count > len(self.data):
            raise LinkError(f"the object file ends after {len(self.data)} bytes, in the middle of something")
        self.place += count
        return self.data[self.place - count : self.place]

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def unsigned(self) -> int:
        """A number in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def signed(self) -> int:
        """A number with a sign in LEB128."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if byte & 0x40 else value

    def name(self) -> str:
        """A text with its length before it."""
        return self.take(self.unsigned()).decode()


def read_object(data: bytes) -> WasmObject:
    """The object file in `data`. LinkError for other files, and for parts that LLVM does not write for one program."""
    if not data.startswith(MAGIC):
        raise LinkError("no object file of WebAssembly: it begins otherwise")
    found = WasmObject()
    reader = Reader(data)
    reader.take(len(MAGIC))
    sections: list[int] = []
    while not reader.at_end:
        number = reader.byte()
        content = Reader(reader.take(reader.unsigned()))
        sections.append(number)
        if number == _CUSTOM:
            _custom(found, content, sections)
        elif number in _READ:
            _READ[number](found, content)
        elif number not in (_DATA_COUNT, ELEMENT):  # which functions are in a table is said by relocations too
            raise LinkError(f"it has a section of kind {number}: it is a module, and no object file")
    if not found.symbols:
        raise LinkError("it has no symbols: it is a module, and no object file")
    return found


def _types(found: WasmObject, reader: Reader) -> None:
    for _ in range(reader.unsigned()):
        start = reader.place
        if reader.byte() != 0x60:
            raise LinkError("a type that is no function's")
        for _ in range(2):
            reader.take(reader.unsigned())
        found.types.append(reader.data[start : reader.place])


def _imports(found: WasmObject, reader: Reader) -> None:
    for _ in range(reader.unsigned()):
        _, name, kind = reader.name(), reader.name(), reader.byte()
        if kind == FUNCTIONS:
            reader.unsigned()
        elif kind == GLOBALS:
            reader.take(2)
        elif kind in (TABLES, MEMORIES):
            if kind == TABLES:
                reader.byte()
            has_maximum = reader.byte() & 1
            for _ in range(1 + has_maximum):
                reader.unsigned()
        else:
            raise LinkError(f"an import of kind {kind} is not linked")
        found.imports.append((kind, name))


def _functions(found: WasmObject, reader: Reader) -> None:
    found.function_types = [reader.unsigned() for _ in range(reader.unsigned())]


def _bodies(found: WasmObject, reader: Reader) -> None:
    for _ in range(reader.unsigned()):
        size = reader.unsigned()
        found.bodies.append(Piece(reader.place, reader.take(size)))


def _segments(found: WasmObject, reader: Reader) -> None:
    for _ in range(reader.unsigned()):
        if reader.unsigned() != 0 or reader.byte() != 0x41:
            raise LinkError("a data segment without an address of its own")
        reader.signed()
        reader.byte()
        size = reader.unsigned()
        found.segments.append(Piece(reader.place, reader.take(size)))


_READ = {TYPE: _types, IMPORT: _imports, FUNCTION: _functions, CODE: _bodies, DATA: _segments}


def _custom(found: WasmObject, reader: Reader, sections: list[int]) -> None:
    name = reader.name()
    if name == "linking":
        if reader.unsigned() != 2:
            raise LinkError("the linking section has another version than 2")
        while not reader.at_end:
            part = reader.byte()
            content = Reader(reader.take(reader.unsigned()))
            if part == _SEGMENTS:
                _segment_infos(found, content)
            elif part == _SYMBOLS:
                found.symbols = [_symbol(found, content) for _ in range(content.unsigned())]
            else:
                raise LinkError(f"part {part} of the linking section (constructors, or groups) is not linked")
    elif name.startswith("reloc."):
        section = sections[reader.unsigned()]
        relocations = [_relocation(reader) for _ in range(reader.unsigned())]
        if section == CODE:
            found.code_relocations = relocations
        elif section == DATA:
            found.data_relocations = relocations


def _segment_infos(found: WasmObject, reader: Reader) -> None:
    for number in range(reader.unsigned()):
        reader.name()
        alignment = 1 << reader.unsigned()
        if reader.unsigned() & 2:
            raise LinkError("data of one thread is not linked")
        piece = found.segments[number]
        found.segments[number] = Piece(piece.start, piece.content, alignment)


def _symbol(found: WasmObject, reader: Reader) -> Symbol:
    kind, flags = reader.byte(), reader.unsigned()
    is_defined = not flags & _UNDEFINED
    if kind == DATA_SYMBOL:
        name = reader.name()
        if not is_defined:
            return Symbol(kind, name, False)
        segment, offset = reader.unsigned(), reader.unsigned()
        reader.unsigned()
        return Symbol(kind, name, True, segment, offset)
    index = reader.unsigned()
    if kind == SECTION_SYMBOL:
        return Symbol(kind, "", True, index)
    if is_defined or flags & _EXPLICIT_NAME:
        return Symbol(kind, reader.name(), is_defined, index)
    space = {FUNCTION_SYMBOL: FUNCTIONS, GLOBAL_SYMBOL: GLOBALS, TABLE_SYMBOL: TABLES}.get(kind)
    if space is None:
        raise LinkError(f"a symbol of kind {kind} is not linked")
    return Symbol(kind, found.imported(space)[index], False, index)


def _relocation(reader: Reader) -> Relocation:
    kind = reader.byte()
    if kind not in _KNOWN:
        raise LinkError(f"a relocation of kind {kind} is not linked; compile without position-independent code")
    offset, index = reader.unsigned(), reader.unsigned()
    return Relocation(kind, offset, index, reader.signed() if kind in _WITH_ADDEND else 0)
