"""The interface to the operating system, with what Python itself has on every system.

Texts are statements and expressions in the language of the runtime's native functions
(`numba_backend/runtime/machine.py`): systems have the same services under other names and with other arguments.
"""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar


class System(ABC):
    """An operating system. Sizes are in bytes, addresses are integers, and address 0 stands for none."""

    name: ClassVar[str]
    loads_images: ClassVar[bool] = False
    """Object files are ELF, and memory that was written can be made executable: `numba_backend/runtime/loader.py` then
    loads code without LLVM."""
    object_format: ClassVar[str] = ""
    """What LLVM's triple of this process lacks to name the format of code that its loader takes: "-elf", or nothing."""
    native_names: ClassVar[Mapping[str, str]]
    """The functions that native code calls by address: `lock`, `unlock`, `wait`, `signal` of a mutex and a condition
    variable, `yield`, `nap`, `clock`, `self` (the thread's number that `threading.get_ident` has), `get` and `set` a
    thread's own word, `number` (the thread's number in the system's tools)."""

    # ---- processors

    def scheduled_on(self) -> Sequence[int]:
        """The numbers of the CPUs on which the threads of this process may run."""
        return range(os.cpu_count() or 1)

    def scheduled_cpus(self) -> int:
        """On how many CPUs the threads of this process may run."""
        return len(self.scheduled_on())

    def available_cpus(self) -> int:
        """How many CPUs this process may use: as many, unless it is allowed less of their time."""
        return self.scheduled_cpus()

    def cpu_description(self) -> str | None:
        """The CPU's instruction sets, in the system's words; None where the system does not tell.

        If two CPUs have the same words, LLVM would describe them in the same way; but these words can be read without
        LLVM.
        """
        return None

    def cache_sizes(self) -> Mapping[str, int]:
        """The sizes of the data caches by level, "1" to "3"; those that the system does not tell are missing."""
        return {}

    # ---- processes

    def resident_bytes(self) -> int:
        """The memory that this process occupies now; 0 where the system does not tell."""
        return 0

    # ---- files

    @abstractmethod
    def cache_folder(self) -> str | None:
        """The folder in which programs of this user keep data that they can make again; None if there is none."""

    read_flags: ClassVar[int]
    """For `os.open`: read a plain file, and neither follow a link nor wait for a pipe."""
    write_flags: ClassVar[int]
    """For `os.open`: make a new file, and fail if there is anything with its name."""
    locks_open_files: ClassVar[bool] = False
    """A file that another process has open can be neither replaced nor removed: a PermissionError says so."""

    @abstractmethod
    def is_private(self, path: str | os.PathLike[str], status: os.stat_result) -> bool:
        """True if a file or folder belongs to this user, and no other user can write to it."""

    @abstractmethod
    def exposed_parent(self, folder: str | os.PathLike[str]) -> str | None:
        """The first folder above `folder`, with links resolved, that a user other than this one and the administrator
        could change; None if there is none."""

    # ---- terminals

    def colours_terminal(self) -> bool:
        """Make the terminal of the standard output obey ANSI's codes of colours; False if it cannot."""
        return True

    # ---- functions of C

    @abstractmethod
    def c_library(self) -> Any:
        """The C library of this process, for ctypes."""

    @functools.cache  # noqa: B019 - there is one system
    def c_address(self, name: str) -> int:
        """The address of a function of the C library."""
        ctypes = import_module("ctypes")
        address = ctypes.cast(getattr(self.c_library(), name), ctypes.c_void_p).value
        assert address is not None
        return int(address)

    def has_c_function(self, name: str) -> bool:
        """True if the C library has a function of this name."""
        return hasattr(self.c_library(), name)

    def library_of(self, extension: str) -> str:
        """The shared library in which functions are found that an extension module of NumPy or SciPy links: the module
        itself, where a look into a library is one into those that it depends on."""
        return extension

    def native_address(self, service: str) -> int:
        """The address of a function of `native_names`, by its service."""
        return self.c_address(self.native_names[service])

    # ---- memory

    @abstractmethod
    def fresh_pages(self, size: int) -> int:
        """The address of `size` fresh bytes of zeros at the start of a page; 0 if the system has none."""

    def fresh_huge_pages(self, size: int, huge: int) -> int:
        """The same at a multiple of `huge`, to be backed by pages of that size; 0 where that cannot be had."""
        return 0

    def sparse_pages(self, size: int) -> int:
        """The same. The caller will use little of the memory."""
        return self.fresh_pages(size)

    @abstractmethod
    def free_pages(self, address: int, size: int) -> None:
        """Give back all `size` bytes of one call of the functions above."""

    @abstractmethod
    def drop_pages(self, address: int, size: int) -> None:
        """Give back the memory of whole pages, but not their addresses. Their contents are undefined then."""

    @abstractmethod
    def has_address_space(self, size: int) -> bool:
        """True if the process could map so many bytes more."""

    def check_address_space(self, size: int, library: str) -> None:
        """MemoryError if the process may not map so many bytes more: before a library that does not survive that."""
        if not self.has_address_space(size):
            raise MemoryError(f"{library} needs {size >> 20} MiB of address space, and there is less")

    def make_executable(self, address: int, size: int) -> bool:
        """Make pages executable, and no longer writable; False if the system refuses. Where `loads_images`."""
        raise NotImplementedError(f"code is loaded by LLVM on {self.name}")

    def unwinding(self, function: str) -> Callable[[int], object]:
        """`__register_frame` or `__deregister_frame` of the library that unwinds stacks. Where `loads_images`."""
        raise NotImplementedError(f"code is loaded by LLVM on {self.name}")

    # ---- threads

    @abstractmethod
    def start_thread(self, function: int, argument: int) -> bool:
        """Start a thread of the system in native code, which Python does not know and which handles no signals; False
        if the system refuses."""

    @abstractmethod
    def interrupt_thread(self, ident: int) -> None:
        """Send SIGINT to a thread of Python; after a fork."""

    @abstractmethod
    def new_thread_key(self) -> int | None:
        """A key for a word that each thread has for itself, 0 at first; None if there is no key left."""

    @abstractmethod
    def prepare_waiting(self, mutex: int, condition: int) -> None:
        """Make a mutex of zeros in 128 bytes, and a condition variable of zeros in 64 bytes, ready for use."""

    nap_words: ClassVar[tuple[int, int]]
    """Two words of memory that the text of a nap may refer to."""

    @abstractmethod
    def wait_text(self, wait: str, condition: str, mutex: str) -> str:
        """Wait for a condition variable; it may return early."""

    @abstractmethod
    def nap_text(self, nap: str, words: str) -> str:
        """Sleep for about 50 us, or as short as the system can. `words`: the address of `nap_words`."""

    @abstractmethod
    def clock_text(self, clock: str, words: str) -> str:
        """Read the clock of `time.perf_counter_ns` into two words of memory."""

    @abstractmethod
    def nanoseconds_text(self, words: str) -> str:
        """The nanoseconds of the clock that `clock_text` read."""

    @abstractmethod
    def thread_number_text(self, number: str, into: str) -> str:
        """Store the thread's number in the system's tools, which is not 0, in a word of memory."""

    def description(self) -> str:
        """The system, its version and the processor's architecture, for people."""
        return " ".join((_platform().system(), _platform().release(), architecture()))


def _platform() -> Any:
    return import_module("platform")  # which imports subprocess: half as much as all of hloom


def architecture() -> str:
    """The kind of processor, by the system's name."""
    name: str = _platform().machine()
    return name
