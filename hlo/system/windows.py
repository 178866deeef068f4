"""Windows: threads, memory and clocks of kernel32, the C library ucrtbase, %LOCALAPPDATA%; no forks, no images.

Machine code is ELF: LLVM's loader takes no other here. Programs compiled ahead of time are COFF, as linkers ask for. A
`long` has 32 bits, so no type here depends on it.

Sources: Microsoft's reference of the Win32 API: "Synchronization functions" (SRW locks, condition variables), "Process
and thread functions", VirtualAlloc, QueryPerformanceCounter, GetLogicalProcessorInformation, GetProcessMemoryInfo,
SetConsoleMode.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from .interface import System, architecture

_COMMIT, _RESERVE, _RELEASE, _RESET, _NO_ACCESS, _READ_WRITE = 0x1000, 0x2000, 0x8000, 0x80000, 1, 4
_NO_INDEX = 0xFFFFFFFF
_OUTPUT, _ANSI_CODES = 0xFFFFFFF5, 4  # STD_OUTPUT_HANDLE is -11
_CACHE, _INSTRUCTIONS = 2, 1  # LOGICAL_PROCESSOR_RELATIONSHIP, PROCESSOR_CACHE_TYPE
_PROCESSOR = struct.Struct("<QIxxxxBBHIIxxxx")  # the mask, the relationship; level, associativity, line, size, type
_COUNTERS = struct.Struct("<IIQQQQQQQQ")


class Windows(System):
    """Windows 8 and later, of 64 bits."""

    name: ClassVar[str] = "windows"
    object_format: ClassVar[str] = "-elf"
    native_names: ClassVar[Mapping[str, str]] = {
        "lock": "AcquireSRWLockExclusive", "unlock": "ReleaseSRWLockExclusive", "wait": "SleepConditionVariableSRW",
        "signal": "WakeConditionVariable", "yield": "SwitchToThread", "nap": "Sleep",
        "clock": "QueryPerformanceCounter", "self": "GetCurrentThreadId", "get": "TlsGetValue", "set": "TlsSetValue",
        "number": "GetCurrentThreadId",
    }  # fmt: skip
    nap_words: ClassVar[tuple[int, int]] = (0, 0)
    read_flags: ClassVar[int] = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOINHERIT"))
    write_flags: ClassVar[int] = (
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOINHERIT"))
    )
    locks_open_files: ClassVar[bool] = True

    # ---- processors

    def cache_sizes(self) -> Mapping[str, int]:
        """Of all processors, the smallest of each level."""
        ctypes = import_module("ctypes")
        read = self._function("GetLogicalProcessorInformation", "int", "void_p", "void_p")
        size = ctypes.c_uint32(0)
        read(None, ctypes.addressof(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        if not read(ctypes.addressof(buffer), ctypes.addressof(size)):
            return {}
        found: dict[str, int] = {}
        whole = size.value - size.value % _PROCESSOR.size
        for _, relation, level, _, _, nbytes, kind in _PROCESSOR.iter_unpack(buffer.raw[:whole]):
            if relation == _CACHE and kind != _INSTRUCTIONS:
                found[str(level)] = min(nbytes, found.get(str(level), nbytes))
        return found

    # ---- processes

    def resident_bytes(self) -> int:
        """The working set."""
        ctypes = import_module("ctypes")
        buffer = ctypes.create_string_buffer(_COUNTERS.size)
        process = self._function("GetCurrentProcess", "void_p")()
        read = self._function("K32GetProcessMemoryInfo", "int", "void_p", "void_p", "uint32")
        return _COUNTERS.unpack(buffer.raw)[3] if read(process, ctypes.addressof(buffer), _COUNTERS.size) else 0

    # ---- files

    def cache_folder(self) -> str | None:
        """%LOCALAPPDATA%, which belongs to the user and does not move between machines."""
        found = os.environ.get("LOCALAPPDATA", "")
        return found if os.path.isabs(found) else None

    def is_private(self, path: str | os.PathLike[str], status: os.stat_result) -> bool:
        """True in the user's profile, since Windows keeps other users out of it. Modes say nothing about them."""
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return False
        home, place = os.path.realpath(home), os.path.realpath(path)
        return place == home or place.startswith(home.rstrip(os.sep) + os.sep)

    def exposed_parent(self, folder: str | os.PathLike[str]) -> str | None:
        """`is_private` looks at the whole path."""
        return None

    # ---- terminals

    def colours_terminal(self) -> bool:
        """By a mode of the console, ENABLE_VIRTUAL_TERMINAL_PROCESSING, which old ones lack."""
        ctypes = import_module("ctypes")
        console = self._function("GetStdHandle", "void_p", "uint32")(_OUTPUT)
        mode = ctypes.c_uint32(0)
        if not self._function("GetConsoleMode", "int", "void_p", "void_p")(console, ctypes.addressof(mode)):
            return False
        return bool(self._function("SetConsoleMode", "int", "void_p", "uint32")(console, mode.value | _ANSI_CODES))

    # ---- functions of C

    @functools.cache  # noqa: B019 - there is one system
    def c_library(self) -> Any:
        """The universal C runtime."""
        return import_module("ctypes").CDLL("ucrtbase")

    def library_of(self, extension: str) -> str:
        """OpenBLAS in the folder numpy.libs or scipy.libs: here a look into a library is one into it alone."""
        folder = f"{os.path.dirname(os.path.dirname(extension))}.libs"
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        found = [name for name in names if "openblas" in name and name.endswith(".dll")]
        return os.path.join(folder, found[0]) if found else extension

    @functools.cache  # noqa: B019 - there is one system
    def _kernel(self) -> Any:
        """The functions of the system."""
        return getattr(import_module("ctypes"), "WinDLL")("kernel32")  # noqa: B009 - not in ctypes of other systems

    def native_address(self, service: str) -> int:
        """In kernel32."""
        ctypes = import_module("ctypes")
        return int(ctypes.cast(getattr(self._kernel(), self.native_names[service]), ctypes.c_void_p).value)

    @functools.cache  # noqa: B019 - there is one system
    def _function(self, name: str, result: str, *arguments: str) -> Any:
        """A function of kernel32, with the names of ctypes' types."""
        ctypes = import_module("ctypes")
        function = getattr(self._kernel(), name)
        function.restype, *function.argtypes = (getattr(ctypes, f"c_{name}") for name in (result, *arguments))
        return function

    # ---- memory

    def _allocate(self, size: int, how: int, access: int) -> int:
        function = self._function("VirtualAlloc", "void_p", "void_p", "size_t", "uint32", "uint32")
        return int(function(None, size, how, access) or 0)

    def fresh_pages(self, size: int) -> int:
        """Memory that counts as used from the start."""
        return self._allocate(size, _RESERVE | _COMMIT, _READ_WRITE)

    def free_pages(self, address: int, size: int) -> None:
        """The whole of it: Windows takes no part back."""
        self._function("VirtualFree", "int", "void_p", "size_t", "uint32")(address, 0, _RELEASE)

    def drop_pages(self, address: int, size: int) -> None:
        """By MEM_RESET."""
        function = self._function("VirtualAlloc", "void_p", "void_p", "size_t", "uint32", "uint32")
        function(address, size, _RESET, _READ_WRITE)

    def has_address_space(self, size: int) -> bool:
        """Tries it, by addresses without memory."""
        address = self._allocate(size, _RESERVE, _NO_ACCESS)
        if address:
            self.free_pages(address, size)
        return bool(address)

    # ---- threads

    def start_thread(self, function: int, argument: int) -> bool:
        """A thread whose handle is closed at once. Signals are no matter of threads here."""
        start = self._function("CreateThread", "void_p", "void_p", "size_t", "void_p", "void_p", "uint32", "void_p")
        handle = start(None, 0, function, argument, 0, None)
        if not handle:
            return False
        self._function("CloseHandle", "int", "void_p")(handle)
        return True

    def interrupt_thread(self, ident: int) -> None:
        """There are no forks, after which this would be needed."""
        raise NotImplementedError("there are no forks on Windows")

    def new_thread_key(self) -> int | None:
        """An index of thread-local storage."""
        key = self._function("TlsAlloc", "uint32")()
        return None if key == _NO_INDEX else int(key)

    def prepare_waiting(self, mutex: int, condition: int) -> None:
        """Zeros are ready for use: SRWLOCK_INIT and CONDITION_VARIABLE_INIT."""

    def wait_text(self, wait: str, condition: str, mutex: str) -> str:
        """`SleepConditionVariableSRW(condition, mutex, INFINITE, 0)`."""
        return f"call4({wait}, {condition}, {mutex}, 0xffffffff, 0)"

    def nap_text(self, nap: str, words: str) -> str:
        """`Sleep(1)`: a millisecond."""
        return f"call1({nap}, 1)"

    def clock_text(self, clock: str, words: str) -> str:
        """`QueryPerformanceCounter(words)`."""
        return f"call1({clock}, {words})"

    def nanoseconds_text(self, words: str) -> str:
        """Whole seconds and the rest apart: the product of a count and 10^9 has more than 64 bits after minutes."""
        rate = self._ticks_per_second()
        seconds = f"quotient(load({words}), {rate})"
        rest = f"(load({words}) - {seconds} * {rate})"
        return f"{seconds} * 1000000000 + quotient({rest} * 1000000000, {rate})"

    @functools.cache  # noqa: B019 - there is one system
    def _ticks_per_second(self) -> int:
        ctypes = import_module("ctypes")
        rate = ctypes.c_int64(0)
        self._function("QueryPerformanceFrequency", "int", "void_p")(ctypes.addressof(rate))
        return int(rate.value)

    def thread_number_text(self, number: str, into: str) -> str:
        """`GetCurrentThreadId()`, of 32 bits."""
        return f"atomic_store({into}, call0({number}) & 0xffffffff)"

    def description(self) -> str:
        """With the edition's number."""
        return " ".join(("Windows", import_module("platform").version(), architecture()))
