"""Link one relocatable object of WebAssembly into a module that a browser loads.

    (module
      (memory (export "memory") 5)
      (global $stack (mut i32) (i32.const 262144))
      (global (export "args") i32 (i32.const 262208))
      (func (export "run") (result i32) ...)
      (data (i32.const 262144) "..."))

It has only the functions and data that the exports reach. Memory begins with the stack, so that a stack that is too
small leaves memory and traps, and nothing is at address 0. Then come data, and then memory that is zero at the start,
which takes no bytes in the file. Gaps have five bytes in object files; here numbers are as short as they can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from . import wasm_object as wasm
from .wasm_object import LinkError, Piece, Relocation, Symbol, WasmObject, read_object

STACK_BYTES = 1 << 18
_PAGE = 1 << 16
_STACK_POINTER = "__stack_pointer"
_I32, _FUNCREF = 0x7F, 0x70
_ADDRESSES = frozenset((wasm.MEMORY_ADDR_LEB, wasm.MEMORY_ADDR_SLEB, wasm.MEMORY_ADDR_I32))
_TABLE_PLACES = frozenset((wasm.TABLE_INDEX_SLEB, wasm.TABLE_INDEX_I32))
_FIXED = frozenset((wasm.MEMORY_ADDR_I32, wasm.TABLE_INDEX_I32))
_SIGNED = frozenset((wasm.MEMORY_ADDR_SLEB, wasm.TABLE_INDEX_SLEB))


def link(code: bytes, exports: Sequence[str], stack_bytes: int = STACK_BYTES) -> bytes:
    """The module of an object file. `exports`: names of functions, and of data; the address of exported data becomes a
    constant. The memory is exported too, as "memory".

    LinkError for names that do not exist, and for functions that the object imports.
    """
    return _Module(read_object(code), exports, stack_bytes).binary()


class _Module:
    def __init__(self, source: WasmObject, exports: Sequence[str], stack_bytes: int) -> None:
        self._source = source
        self._exports = [_defined(source, name) for name in exports]
        self._imported = source.imported(wasm.FUNCTIONS)
        self._code_gaps = _by_piece(source.bodies, source.code_relocations)
        self._data_gaps = _by_piece(source.segments, source.data_relocations)
        self._bodies: set[int] = set()
        self._segments: set[int] = set()
        self._in_table: dict[int, int] = {}
        """The place of each body in the table, if its address is taken. Places begin at 1: a null pointer is 0."""
        self._uses_table = self._uses_stack = False
        self._reach()
        self._functions = {body: number for number, body in enumerate(sorted(self._bodies))}
        used = dict.fromkeys(source.types[source.function_types[body]] for body in self._functions)
        used.update(dict.fromkeys(source.types[g.index] for g in self._gaps() if g.kind == wasm.TYPE_INDEX_LEB))
        self._types = {type_: number for number, type_ in enumerate(used)}
        self._stack_bytes = -(-stack_bytes // 16) * 16
        self._addresses, self._end = self._placed()

    # What is needed

    def _reach(self) -> None:
        left = list(self._exports)
        while left:
            symbol = left.pop()
            for gap in self._gaps_of(symbol):
                if gap.kind == wasm.TYPE_INDEX_LEB:
                    continue
                target = self._source.symbols[gap.index]
                if gap.kind in _TABLE_PLACES:
                    self._in_table.setdefault(self._body(target), len(self._in_table) + 1)
                left.append(target)

    def _gaps_of(self, symbol: Symbol) -> Iterable[Relocation]:
        """The gaps of the body or data that a symbol names, if this is the first reference to it."""
        if symbol.kind == wasm.TABLE_SYMBOL:
            self._uses_table = True
            return ()
        if symbol.kind == wasm.GLOBAL_SYMBOL:
            if symbol.name != _STACK_POINTER:
                raise LinkError(f"the object takes the global {symbol.name!r} from elsewhere")
            self._uses_stack = True
            return ()
        if symbol.kind == wasm.FUNCTION_SYMBOL:
            seen, number, gaps = self._bodies, self._body(symbol), self._code_gaps
        elif symbol.is_defined:
            seen, number, gaps = self._segments, symbol.index, self._data_gaps
        else:
            raise LinkError(f"the object takes the data {symbol.name!r} from elsewhere")
        if number in seen:
            return ()
        seen.add(number)
        return gaps.get(number, ())

    def _body(self, symbol: Symbol) -> int:
        if not symbol.is_defined:
            raise LinkError(
                f"the program calls {symbol.name}, of C's library, which WebAssembly does not have by itself; link the "
                "object file with a C library for WebAssembly"
            )
        return symbol.index - len(self._imported)

    def _gaps(self) -> Iterable[Relocation]:
        for body in self._functions:
            yield from self._code_gaps.get(body, ())

    # Where it is

    def _placed(self) -> tuple[dict[int, int], int]:
        """The address of each segment, those that are not zero first, and the end of all."""
        place, found = self._stack_bytes, {}
        for segment in sorted(self._segments, key=lambda k: (self._is_zero(k), k)):
            piece = self._source.segments[segment]
            place = -(-place // piece.alignment) * piece.alignment
            found[segment] = place
            place += len(piece.content)
        return found, place

    def _is_zero(self, segment: int) -> bool:
        return segment not in self._data_gaps and not any(self._source.segments[segment].content)

    def _address(self, symbol: Symbol) -> int:
        return self._addresses[symbol.index] + symbol.offset

    def _value(self, gap: Relocation) -> int:
        """The number that belongs into a gap."""
        if gap.kind == wasm.TYPE_INDEX_LEB:
            return self._types[self._source.types[gap.index]]
        symbol = self._source.symbols[gap.index]
        if gap.kind in _ADDRESSES and symbol.kind == wasm.DATA_SYMBOL:
            return (self._address(symbol) + gap.addend) % 2**32
        if gap.kind in _TABLE_PLACES:
            return self._in_table[self._body(symbol)]
        if gap.kind == wasm.FUNCTION_INDEX_LEB:
            return self._functions[self._body(symbol)]
        if gap.kind == wasm.GLOBAL_INDEX_LEB and symbol.kind == wasm.GLOBAL_SYMBOL:
            return 0
        if gap.kind == wasm.TABLE_NUMBER_LEB:
            return 0
        raise LinkError(f"a relocation of kind {gap.kind} against {symbol.name!r} is not linked")

    def _filled(self, piece: Piece, gaps: Iterable[Relocation]) -> bytes:
        """A piece with its gaps filled."""
        parts, place = [], 0
        for gap in sorted(gaps, key=lambda g: g.offset):
            start, value = gap.offset - piece.start, self._value(gap)
            parts.append(piece.content[place:start])
            if gap.kind in _FIXED:
                parts.append(value.to_bytes(4, "little"))
                place = start + 4
                continue
            signed = value - 2**32 if value >= 2**31 else value
            parts.append(sleb(signed) if gap.kind in _SIGNED else uleb(value))
            place = start + 5
        return b"".join([*parts, piece.content[place:]])

    # How it is written

    def binary(self) -> bytes:
        """The module, section by section."""
        source = self._source
        kinds = [uleb(self._types[source.types[source.function_types[body]]]) for body in self._functions]
        sections = [(wasm.TYPE, list(self._types)), (wasm.FUNCTION, kinds)]
        elements = []
        if self._in_table or self._uses_table:
            count = uleb(len(self._in_table) + 1)
            sections.append((wasm.TABLE, [bytes((_FUNCREF, 1)) + count + count]))
            numbers = [uleb(self._functions[body]) for body in self._in_table]
            elements = [b"\0" + _constant(1) + _vector(numbers)]
        sections.append((wasm.MEMORY, [b"\0" + uleb(-(-self._end // _PAGE))]))
        pointers, exported = self._globals_and_exports()
        sections += [(wasm.GLOBAL, pointers), (wasm.EXPORT, exported), (wasm.ELEMENT, elements)]
        bodies = [self._filled(source.bodies[k], self._code_gaps.get(k, ())) for k in self._functions]
        sections.append((wasm.CODE, [uleb(len(body)) + body for body in bodies]))
        segments = []
        for segment, address in self._addresses.items():
            if not self._is_zero(segment):
                content = self._filled(source.segments[segment], self._data_gaps.get(segment, ()))
                segments.append(b"\0" + _constant(address) + uleb(len(content)) + content)
        sections.append((wasm.DATA, segments))
        return wasm.MAGIC + b"".join(_section(number, items) for number, items in sections if items)

    def _globals_and_exports(self) -> tuple[list[bytes], list[bytes]]:
        pointers = [bytes((_I32, 1)) + _constant(self._stack_bytes)] if self._uses_stack else []
        exported = [_text("memory") + bytes((wasm.MEMORIES,)) + uleb(0)]
        for symbol in self._exports:
            if symbol.kind == wasm.FUNCTION_SYMBOL:
                kind, number = wasm.FUNCTIONS, self._functions[self._body(symbol)]
            else:
                kind, number = wasm.GLOBALS, len(pointers)
                pointers.append(bytes((_I32, 0)) + _constant(self._address(symbol)))
            exported.append(_text(symbol.name) + bytes((kind,)) + uleb(number))
        return pointers, exported


def _defined(source: WasmObject, name: str) -> Symbol:
    for symbol in source.symbols:
        if symbol.name == name and symbol.is_defined and symbol.kind in (wasm.FUNCTION_SYMBOL, wasm.DATA_SYMBOL):
            return symbol
    raise LinkError(f"the object defines no {name!r}")


def _by_piece(pieces: Sequence[Piece], gaps: Sequence[Relocation]) -> Mapping[int, list[Relocation]]:
    """The gaps of each piece. Both lists are in the order of places."""
    found: dict[int, list[Relocation]] = {}
    number = 0
    for gap in sorted(gaps, key=lambda g: g.offset):
        while gap.offset >= pieces[number].start + len(pieces[number].content):
            number += 1
        found.setdefault(number, []).append(gap)
    return found


def uleb(value: int) -> bytes:
    """A number in LEB128."""
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def sleb(value: int) -> bytes:
    """A number with a sign in LEB128."""
    parts = []
    while not -64 <= value < 64:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value & 0x7F])


def _constant(value: int) -> bytes:
    """The expression of an i32."""
    return b"\x41" + sleb(value - 2**32 if value >= 2**31 else value) + b"\x0b"


def _text(name: str) -> bytes:
    encoded = name.encode()
    return uleb(len(encoded)) + encoded


def _vector(items: Sequence[bytes]) -> bytes:
    return uleb(len(items)) + b"".join(items)


def _section(number: int, items: Sequence[bytes]) -> bytes:
    content = _vector(items)
    return bytes((number,)) + uleb(len(content)) + content
