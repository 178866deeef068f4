"""What systems with POSIX share, and a system of that kind that hloom knows no more about.

Source: POSIX.1-2017, "System Interfaces": pthreads, mmap, clock_gettime. The rules for files are those of ssh for keys.
"""

from __future__ import annotations

import functools
import os
import signal
import stat
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from .interface import System

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FAILED = 2**64 - 1
"""The address that mmap returns when it fails, -1."""


class Posix(System):
    """A system with POSIX's threads, memory maps and clocks."""

    name: ClassVar[str] = "posix"
    native_names: ClassVar[Mapping[str, str]] = {
        "lock": "pthread_mutex_lock", "unlock": "pthread_mutex_unlock", "wait": "pthread_cond_wait",
        "signal": "pthread_cond_signal", "yield": "sched_yield", "nap": "nanosleep", "clock": "clock_gettime",
        "self": "pthread_self", "get": "pthread_getspecific", "set": "pthread_setspecific", "number": "pthread_self",
    }  # fmt: skip
    clock: ClassVar[int] = getattr(time, "CLOCK_MONOTONIC", 0)
    """The clock of `time.perf_counter_ns`, in the C library's numbering."""
    nap_words: ClassVar[tuple[int, int]] = (0, 50_000)  # a timespec: seconds, then nanoseconds

    # ---- files

    def cache_folder(self) -> str | None:
        """$XDG_CACHE_HOME, or ~/.cache."""
        base = os.environ.get("XDG_CACHE_HOME", "")
        if os.path.isabs(base):
            return base
        home = os.path.expanduser("~")
        return os.path.join(home, ".cache") if os.path.isabs(home) else None

    # By name, since Windows, where this file is tested, lacks some of them.
    read_flags: ClassVar[int] = os.O_RDONLY | sum(
        getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
    )
    write_flags: ClassVar[int] = (
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC"))
    )

    def is_private(self, path: str | os.PathLike[str], status: os.stat_result) -> bool:
        """By its owner and mode."""
        return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE

    def exposed_parent(self, folder: str | os.PathLike[str]) -> str | None:
        """By owners and modes. A sticky folder protects what is in it; a group of this user alone is this user."""
        place = os.path.realpath(folder)
        while (parent := os.path.dirname(place)) != place:
            place = parent
            status = os.stat(parent)
            mode = status.st_mode
            others_write = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not is_own_group(status.st_gid))
            if status.st_uid not in (0, os.geteuid()) or (others_write and not mode & stat.S_ISVTX):
                return parent
        return None

    # ---- functions of C

    @functools.cache  # noqa: B019 - there is one system
    def c_library(self) -> Any:
        """All libraries of the process, the C library among them."""
        return import_module("ctypes").CDLL(None)

    @functools.cache  # noqa: B019 - there is one system
    def _function(self, name: str, result: str, *arguments: str) -> Any:
        """A function of the C library, with the names of ctypes' types."""
        ctypes = import_module("ctypes")
        types = [getattr(ctypes, f"c_{name}") for name in (result, *arguments)]
        return ctypes.CFUNCTYPE(*types)(self.c_address(name))

    # ---- memory

    def fresh_pages(self, size: int) -> int:
        """Private memory without a file."""
        return self._map(size)

    def sparse_pages(self, size: int) -> int:
        """Not reserved, where the system knows this."""
        return self._map(size, getattr(import_module("mmap"), "MAP_NORESERVE", 0))

    def _map(self, size: int, more: int = 0) -> int:
        mmap = import_module("mmap")
        protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | more
        function = self._function("mmap", "void_p", "void_p", "size_t", "int", "int", "int", "int64")
        start = function(None, size, protection, flags, -1, 0)
        return 0 if start is None or start == _FAILED else int(start)

    def free_pages(self, address: int, size: int) -> None:
        """By munmap, which also takes a part of a map."""
        self._function("munmap", "int", "void_p", "size_t")(address, size)

    def drop_pages(self, address: int, size: int) -> None:
        """By madvise; on Linux they are zeros then."""
        self._advise(address, size, "MADV_DONTNEED")

    def _advise(self, address: int, size: int, advice: str) -> None:
        word = getattr(import_module("mmap"), advice, None)
        if word is not None:
            self._function("madvise", "int", "void_p", "size_t", "int")(address, size, word)

    def has_address_space(self, size: int) -> bool:
        """Tries it, without write access: such memory does not count as used."""
        mmap = import_module("mmap")
        try:
            mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ).close()
        except OSError:
            return False
        return True

    # ---- threads

    def start_thread(self, function: int, argument: int) -> bool:
        """A detached thread with all signals blocked."""
        ctypes, library = import_module("ctypes"), self.c_library()
        thread = ctypes.c_void_p()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        try:  # setting the mask may run a signal's handler, which may raise
            signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
            failed = library.pthread_create(
                ctypes.byref(thread), None, ctypes.c_void_p(function), ctypes.c_void_p(argument)
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if failed:
            return False
        library.pthread_detach(thread)
        return True

    def interrupt_thread(self, ident: int) -> None:
        """The signal also ends a system call that waits."""
        signal.pthread_kill(ident, signal.SIGINT)

    def new_thread_key(self) -> int | None:
        """The key is an unsigned int or an unsigned long."""
        ctypes = import_module("ctypes")
        key = ctypes.c_size_t()
        return None if self.c_library().pthread_key_create(ctypes.byref(key), None) else int(key.value)

    def prepare_waiting(self, mutex: int, condition: int) -> None:
        """With the attributes that POSIX has by default."""
        ctypes, library = import_module("ctypes"), self.c_library()
        library.pthread_mutex_init(ctypes.c_void_p(mutex), None)
        library.pthread_cond_init(ctypes.c_void_p(condition), None)

    def wait_text(self, wait: str, condition: str, mutex: str) -> str:
        """`pthread_cond_wait(condition, mutex)`."""
        return f"call2({wait}, {condition}, {mutex})"

    def nap_text(self, nap: str, words: str) -> str:
        """`nanosleep(words, NULL)`."""
        return f"call2({nap}, {words}, 0)"

    def clock_text(self, clock: str, words: str) -> str:
        """`clock_gettime(number, words)`."""
        return f"call2({clock}, {self.clock}, {words})"

    def nanoseconds_text(self, words: str) -> str:
        """Of a timespec."""
        return f"load({words}) * 1000000000 + load({words} + 8)"

    def thread_number_text(self, number: str, into: str) -> str:
        """`pthread_self()`."""
        return f"atomic_store({into}, call0({number}))"


def is_own_group(number: int) -> bool:
    """Is this user the only member of the group? Many systems give each user a group with the user's name, and let it
    write to the user's files."""
    grp, pwd = import_module("grp"), import_module("pwd")
    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    own = user.pw_gid == number and group.gr_name == user.pw_name
    return own and all(member == user.pw_name for member in group.gr_mem)
