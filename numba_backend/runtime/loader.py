"""Load object files into memory, ready to be called; without LLVM where possible.

LLVM's own loader needs LLVM in the process, and loading LLVM takes longer than many programs run. But the objects that
LLVM makes of kernels are simple: code and constants, code that refers to constants by their distance, and at most calls
of memcpy and similar functions. So when a kernel has been compiled, `link` places its sections one after the other and
resolves the distances. The result, an `Image`, can be copied to any address and called there; the store keeps it beside
the object. Loading is then a copy into memory that is made executable (and no longer writable).

On a system without ELF, for a processor that relocations.py does not have, and for an object with anything else in it,
there is no image, and LLVM loads the object.

A caller of loaded code holds its `Code`. The memory is freed when no `Code` in it is held any more.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from ...hlo.support.memory_pressure import allocating
from ...hlo.support.records import dataclass
from ...hlo.system import system
from .relocations import PROCESSORS, Processor, UnfamiliarError

PROCESSOR = PROCESSORS.get(platform.machine()) if sys.maxsize > 2**32 else None
"""This processor, if objects for it can be linked here."""
LINKS = system.loads_images and PROCESSOR is not None
"""True where images are made and loaded."""

# ELF, as the System V ABI defines it.
_HEADER = struct.Struct("<16x2xH20xQ10xHHH")  # machine; section table: offset, size of an entry, length, names
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_PROGBITS, _SYMTAB, _RELA, _X86_64_UNWIND, _ALLOCATED, _UNDEFINED = 1, 2, 4, 0x70000001, 2, 0
_UNWIND = ".eh_frame"

_STUB_BYTES = 16
_PACKED = struct.Struct("<QQQQ")
_LENGTHS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Image:
    """Machine code that runs at any address.

    `code` ends in one stub for each function of the C library that it calls, `externals`; loading fills in their
    addresses. `entry` is the offset of the kernel. `frames`, if not 0, is the offset of the tables for unwinding the
    stack. (At exit Python ends daemon threads by unwinding, and they may be in code that has called Python.)
    """

    code: bytes
    entry: int
    frames: int
    externals: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """The image as bytes, for the store."""
        names = "\n".join(self.externals).encode()
        return _PACKED.pack(self.entry, self.frames, len(self.code), len(names)) + self.code + names

    @staticmethod
    def from_bytes(data: bytes) -> Image:
        """The image from the bytes of `to_bytes`."""
        entry, frames, code, names = _PACKED.unpack_from(data)
        middle = _PACKED.size + code
        listed = data[middle : middle + names].decode()
        return Image(data[_PACKED.size : middle], entry, frames, tuple(listed.split("\n") if listed else ()))


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled kernel: its object file, and its image, if there is one."""

    object_code: bytes
    image: Image | None

    def to_bytes(self) -> bytes:
        """Object, image, and their lengths."""
        image = b"" if self.image is None else self.image.to_bytes()
        return self.object_code + image + _LENGTHS.pack(len(self.object_code), len(image))

    @staticmethod
    def from_bytes(data: bytes) -> Entry:
        """The entry from the bytes of `to_bytes`."""
        code, image = _LENGTHS.unpack_from(data, len(data) - _LENGTHS.size)
        return Entry(data[:code], Image.from_bytes(data[code : code + image]) if image else None)


class Code:
    """Machine code in this process: the address of its entry, as long as the object lives."""

    __slots__ = ("__weakref__", "_memory", "address", "object_bytes")

    def __init__(self, address: int, memory: object, object_bytes: int) -> None:
        """`memory`: the owner of the code, and perhaps of the code of others. `object_bytes`: of the object file."""
        self.address: int = address
        self.object_bytes: int = object_bytes
        self._memory = memory

    def stay(self) -> None:
        """Never give the memory back, not even when the process ends: threads that sleep in it are not woken."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


class _Mapping:
    """Pages that hold the code of some images, and the tables for unwinding that were registered for them."""

    __slots__ = ("address", "frames", "size")

    def __init__(self, code: bytes) -> None:
        self.frames: list[int] = []
        self.size = max(len(code), 1)
        self.address = _executable(code)

    def register(self, frames: int) -> None:
        system.unwinding("__register_frame")(frames)
        self.frames.append(frames)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing() or not hasattr(self, "address"):  # without an address: there was no memory
            return
        for frames in self.frames:
            system.unwinding("__deregister_frame")(frames)
        system.free_pages(self.address, self.size)


def load_images(images: Sequence[Image]) -> list[Code]:
    """Load images into this process, into memory that they share."""
    assert PROCESSOR is not None
    starts: list[int] = []
    block = bytearray()
    for image in images:
        block += bytes(-len(block) % PROCESSOR.alignment)
        starts.append(len(block))
        block += image.code
        for index, name in enumerate(image.externals):
            slot = len(block) - _STUB_BYTES * (len(image.externals) - index) + len(PROCESSOR.stub)
            block[slot : slot + 8] = system.c_address(name).to_bytes(8, "little")
    mapping = _Mapping(bytes(block))
    base = mapping.address
    for image, start in zip(images, starts):
        if image.frames:
            mapping.register(base + start + image.frames)
    return [Code(base + start + image.entry, mapping, len(image.code)) for start, image in zip(starts, images)]


def load_objects(objects: Sequence[tuple[str, bytes]]) -> list[Code]:
    """Load object files [(symbol, code), ...] with LLVM, into memory that they share."""
    engine, addresses = import_module(".llvm_backend", __package__).load_objects(list(objects))
    return [Code(address, engine, len(code)) for (_, code), address in zip(objects, addresses)]


def link(symbol: str, code: bytes, processor: Processor | None = PROCESSOR if LINKS else None) -> Image | None:
    """The image of an object file that defines `symbol`; None if LLVM must load the object. `processor`: it is for this
    one; None: for one that cannot be linked."""
    try:
        return None if processor is None else _Object(code, processor).link(symbol)
    except UnfamiliarError:
        return None


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int


class _Object:
    """A parsed object file."""

    def __init__(self, code: bytes, processor: Processor) -> None:
        self._code = code
        self._processor = processor
        if code[:6] != b"\x7fELF\x02\x01":
            raise UnfamiliarError
        machine, table, size, count, texts = _HEADER.unpack_from(code)
        if machine != processor.elf_machine or size != _SECTION.size:
            raise UnfamiliarError
        self._sections = [_Section(*_SECTION.unpack_from(code, table + size * index)) for index in range(count)]
        (symbols,) = (section for section in self._sections if section.kind == _SYMTAB)
        self._texts = self._sections[texts].offset
        names = self._sections[symbols.link].offset
        self._symbols: list[_Symbol] = []
        for at in range(symbols.offset, symbols.offset + symbols.size, _SYMBOL.size):
            name, _, _, section, value, _ = _SYMBOL.unpack_from(code, at)
            self._symbols.append(_Symbol(self._text(names + name), section, value))

    def _text(self, start: int) -> str:
        return self._code[start : self._code.index(b"\0", start)].decode()

    def link(self, symbol: str) -> Image:
        block = bytearray()
        places: dict[int, int] = {}
        frames = 0
        for index, section in enumerate(self._sections):
            if section.flags & _ALLOCATED and section.size:
                if section.kind not in (_PROGBITS, _X86_64_UNWIND) or section.alignment > self._processor.alignment:
                    raise UnfamiliarError
                block += bytes(-len(block) % max(section.alignment, 1))
                places[index] = len(block)
                block += self._code[section.offset : section.offset + section.size]
                if self._text(self._texts + section.name) == _UNWIND:
                    frames = len(block) - section.size
                    block += bytes(4)  # the end of the list
        block += bytes(-len(block) % _STUB_BYTES)
        externals = [item.name for item in self._symbols[1:] if item.section == _UNDEFINED]
        unknown = [name for name in externals if not system.has_c_function(name)]
        if unknown:
            missing = import_module(".llvm_backend", __package__).missing_functions(unknown)
            if missing:
                raise RuntimeError(f"the code of {symbol} calls {', '.join(missing)}, which this process does not have")
            raise UnfamiliarError
        stubs = {name: len(block) + _STUB_BYTES * index for index, name in enumerate(externals)}
        block += self._processor.stub.ljust(_STUB_BYTES, b"\0") * len(externals)
        for section in self._sections:
            if section.kind == _RELA and section.info in places:
                for at in range(section.offset, section.offset + section.size, _RELOCATION.size):
                    self._relocate(block, places, stubs, places[section.info], at)
        for item in self._symbols:
            if item.name == symbol and item.section in places:
                return Image(bytes(block), places[item.section] + item.value, frames, tuple(externals))
        raise RuntimeError(f"the object file does not define {symbol}")

    def _relocate(self, block: bytearray, places: dict[int, int], stubs: dict[str, int], start: int, at: int) -> None:
        """Writes the distances between the places of use and the referenced data or functions."""
        offset, kind, index, addend = _RELOCATION.unpack_from(self._code, at)
        symbol = self._symbols[index]
        if kind in self._processor.calls and symbol.section == _UNDEFINED:
            target = stubs[symbol.name]
        elif symbol.section in places:
            target = places[symbol.section] + symbol.value
        else:
            raise UnfamiliarError
        self._processor.relocate(block, kind, start + offset, target + addend)


def _executable(code: bytes) -> int:
    """A copy of `code` that can be executed."""
    size = max(len(code), 1)
    address = allocating(_fresh, size)
    ctypes.memmove(address, code, len(code))
    if not system.make_executable(address, size):
        raise PermissionError("this system does not let memory be made executable")
    return address


def _fresh(size: int) -> int:
    address = system.fresh_pages(size)
    if not address:
        raise MemoryError(f"the system has no {size} bytes for code")
    return address

