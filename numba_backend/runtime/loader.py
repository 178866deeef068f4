"""Load object files into memory, ready to be called; without LLVM where possible.

LLVM's own loader needs LLVM in the process, and loading LLVM takes longer than many programs run. But the objects that
LLVM makes of kernels are simple: code and constants, code that refers to constants by their distance, and at most calls
of memcpy and similar functions. So when a kernel has been compiled, `link` places its sections one after the other and
resolves the distances. The result, an `Image`, can be copied to any address and called there; the store keeps it beside
the object. Loading is then a copy into memory that is made executable (and no longer writable).

On other systems than Linux on x86-64, and for an object with anything else in it, there is no image, and LLVM loads the
object.

A caller of loaded code holds its `Code`. The memory is freed when no `Code` in it is held any more.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ...hlo.support.memory_pressure import allocating
from ...hlo.support.records import dataclass
from .libc import libc_address, mapped, unmap

LINKS = sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 2**32
"""True where images are made and loaded."""

# ELF, as the System V ABI and its AMD64 supplement define it.
_HEADER = struct.Struct("<16x2xH20xQ10xHH2x")  # machine; section table: offset, size of an entry, length
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_X86_64 = 62
_PROGBITS, _SYMTAB, _RELA, _UNWIND, _ALLOCATED, _UNDEFINED = 1, 2, 4, 0x70000001, 2, 0
_R_PC32, _R_PLT32 = 2, 4

_STUB = b"\xff\x25\0\0\0\0"  # jmp *(the eight bytes that follow)
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
        self.address = address
        self.object_bytes = object_bytes
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
        _unwinding("__register_frame")(frames)
        self.frames.append(frames)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if finalizing() or not hasattr(self, "address"):  # without an address: there was no memory
            return
        for frames in self.frames:
            _unwinding("__deregister_frame")(frames)
        unmap(self.address, self.size)


@functools.cache
def _unwinding(name: str) -> Any:
    # With the GIL, so that no fork happens inside, where a lock is held.
    function = ctypes.PyDLL("libgcc_s.so.1")[name]
    function.argtypes, function.restype = [ctypes.c_void_p], None
    return function


def load_images(images: Sequence[Image]) -> list[Code]:
    """Load images into this process, into memory that they share."""
    starts: list[int] = []
    block = bytearray()
    for image in images:
        block += bytes(-len(block) % 64)
        starts.append(len(block))
        block += image.code
        for index, name in enumerate(image.externals):
            slot = len(block) - _STUB_BYTES * (len(image.externals) - index) + len(_STUB)
            block[slot : slot + 8] = libc_address(name).to_bytes(8, "little")
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


def link(symbol: str, code: bytes) -> Image | None:
    """The image of an object file that defines `symbol`; None if LLVM must load the object."""
    try:
        return _Object(code).link(symbol) if LINKS else None
    except _Unfamiliar:
        return None


class _Unfamiliar(Exception):
    """The object contains something that only LLVM's loader can handle."""


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

    def __init__(self, code: bytes) -> None:
        self._code = code
        if code[:6] != b"\x7fELF\x02\x01":
            raise _Unfamiliar
        machine, table, size, count = _HEADER.unpack_from(code)
        if machine != _X86_64 or size != _SECTION.size:
            raise _Unfamiliar
        self._sections = [_Section(*_SECTION.unpack_from(code, table + size * index)) for index in range(count)]
        (symbols,) = (section for section in self._sections if section.kind == _SYMTAB)
        names = self._sections[symbols.link].offset
        self._symbols: list[_Symbol] = []
        for at in range(symbols.offset, symbols.offset + symbols.size, _SYMBOL.size):
            name, _, _, section, value, _ = _SYMBOL.unpack_from(code, at)
            text = code[names + name : code.index(b"\0", names + name)].decode()
            self._symbols.append(_Symbol(text, section, value))

    def link(self, symbol: str) -> Image:
        block = bytearray()
        places: dict[int, int] = {}
        frames = 0
        for index, section in enumerate(self._sections):
            if section.flags & _ALLOCATED and section.size:
                if section.kind not in (_PROGBITS, _UNWIND) or section.alignment > 64:
                    raise _Unfamiliar
                block += bytes(-len(block) % max(section.alignment, 1))
                places[index] = len(block)
                block += self._code[section.offset : section.offset + section.size]
                if section.kind == _UNWIND:
                    frames = len(block) - section.size
                    block += bytes(4)  # the end of the list
        block += bytes(-len(block) % _STUB_BYTES)
        externals = [item.name for item in self._symbols[1:] if item.section == _UNDEFINED]
        if not all(hasattr(ctypes.CDLL(None), name) for name in externals):
            raise _Unfamiliar
        stubs = {name: len(block) + _STUB_BYTES * index for index, name in enumerate(externals)}
        block += _STUB.ljust(_STUB_BYTES, b"\0") * len(externals)
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
        if kind == _R_PLT32 and symbol.section == _UNDEFINED:
            target = stubs[symbol.name]
        elif kind in (_R_PC32, _R_PLT32) and symbol.section in places:
            target = places[symbol.section] + symbol.value
        else:
            raise _Unfamiliar
        struct.pack_into("<i", block, start + offset, target + addend - (start + offset))


def _executable(code: bytes) -> int:
    """A copy of `code` that can be executed."""
    size = max(len(code), 1)
    address = allocating(_fresh, size)
    ctypes.memmove(address, code, len(code))
    if _protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise PermissionError("this system does not let memory be made executable")
    return address


def _fresh(size: int) -> int:
    address = mapped(size)
    if not address:
        raise MemoryError(f"the system has no {size} bytes for code")
    return address


_protect = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(libc_address("mprotect"))
