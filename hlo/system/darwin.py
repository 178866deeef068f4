"""macOS: sysctl for processors, ~/Library/Caches, a clock and thread numbers of its own; no huge pages, no images.

Machine code is Mach-O, its symbols begin with an underscore, and memory for code is made by MAP_JIT and a switch of
each thread: LLVM's loader does all three. So every kernel is loaded by LLVM.

Sources: Apple's manual pages sysctl(3), proc_pidinfo (libproc.h), pthread_threadid_np (pthread.h); "Determining system
capabilities" and "Porting just-in-time compilers to Apple silicon" in Apple's developer documentation.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar

from .interface import architecture
from .posix import Posix


class Darwin(Posix):
    """macOS, on processors of Apple and of Intel."""

    name: ClassVar[str] = "darwin"
    native_names: ClassVar[Mapping[str, str]] = {**Posix.native_names, "number": "pthread_threadid_np"}
    clock: ClassVar[int] = getattr(time, "CLOCK_UPTIME_RAW", 8)  # perf_counter_ns reads mach_absolute_time

    def cpu_description(self) -> str | None:
        """The names of the processor and its features, in Linux' words where there are two for one thing."""
        brand = self._text("machdep.cpu.brand_string")
        if not brand:
            return None
        features = " ".join(self._text(f"machdep.cpu.{name}") for name in ("features", "leaf7_features")).lower()
        words = [architecture(), brand, *(_LINUX_WORDS.get(word, word) for word in features.split())]
        if self._number("hw.optional.AdvSIMD") or architecture() == "arm64":
            words.append("asimd")
        return " ".join(words)

    def cache_sizes(self) -> Mapping[str, int]:
        """Of the fast cores, where there are two kinds."""
        found = {}
        for level, names in {"1": ("l1d",), "2": ("l2",), "3": ("l3",)}.items():
            for name in names:
                prefixes = ("hw.perflevel0.", "hw.")
                size = next((n for n in (self._number(f"{p}{name}cachesize") for p in prefixes) if n), 0)
                if size:
                    found[level] = size
        return found

    def resident_bytes(self) -> int:
        """The second word of proc_taskinfo."""
        ctypes = import_module("ctypes")
        buffer = ctypes.create_string_buffer(_TASK_INFO_BYTES)
        read = self._function("proc_pidinfo", "int", "int", "int", "uint64", "void_p", "int")
        count = read(os.getpid(), _PROC_PIDTASKINFO, 0, ctypes.addressof(buffer), _TASK_INFO_BYTES)
        return struct.unpack_from("<QQ", buffer)[1] if count == _TASK_INFO_BYTES else 0

    def cache_folder(self) -> str | None:
        """$XDG_CACHE_HOME if it is set, else ~/Library/Caches."""
        if os.path.isabs(os.environ.get("XDG_CACHE_HOME", "")):
            return super().cache_folder()
        home = os.path.expanduser("~")
        return os.path.join(home, "Library", "Caches") if os.path.isabs(home) else None

    def thread_number_text(self, number: str, into: str) -> str:
        """`pthread_threadid_np(NULL, into)`, which stores 64 bits."""
        return f"call2({number}, 0, {into})"

    def _sysctl(self, name: str) -> bytes:
        """The value under a name; empty if there is none."""
        ctypes = import_module("ctypes")
        read = self._function("sysctlbyname", "int", "char_p", "void_p", "void_p", "void_p", "size_t")
        size = ctypes.c_size_t(4096)
        buffer = ctypes.create_string_buffer(size.value)
        failed = read(name.encode(), ctypes.addressof(buffer), ctypes.addressof(size), None, 0)
        return b"" if failed else buffer.raw[: size.value]

    def _text(self, name: str) -> str:
        return self._sysctl(name).rstrip(b"\0").decode(errors="replace")

    def _number(self, name: str) -> int:
        return int.from_bytes(self._sysctl(name), "little")


_PROC_PIDTASKINFO, _TASK_INFO_BYTES = 4, 96
_LINUX_WORDS = {"avx1.0": "avx", "rdrand": "rdrand", "sse4.1": "sse4_1", "sse4.2": "sse4_2"}
