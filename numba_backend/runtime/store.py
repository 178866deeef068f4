"""The kernel store: from a kernel's source to the address of its code, compiling only what was never compiled before.

A kernel is looked up in memory, then on disk, then compiled. On disk, `<key>.o` is its object file (with a checksum
after the object's own bytes, which linkers and disassemblers ignore) and `<key>.py` its source for people. The key is
a hash of the source and of all else that decides the machine code, so entries never become stale, only unused.

The folder is `HLOOM_CACHE_DIR` ("" or "off": no disk), else `$XDG_CACHE_HOME/hloom` or `~/.cache/hloom`. Code is loaded
only from a folder that belongs to this user and that nobody else can write to. Whatever goes wrong with the disk,
kernels are compiled and work; a KernelStoreWarning says once what went wrong.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import importlib.util
import os
import stat
import threading
import time
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import compile as compiler
from .errors import KernelStoreWarning
from .kernel import KernelSource, digest
from .llvm_backend import load_objects, target_description

_MAGIC = b"hloom-1\n"
_TRAILER = hashlib.sha256().digest_size + len(_MAGIC)
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What a store did so far: kernels by where they came from; milliseconds that compiling and loading took."""

    compiled: int = 0
    loaded_from_disk: int = 0
    found_in_memory: int = 0
    compile_ms: float = 0.0
    load_ms: float = 0.0


def default_folder() -> Path | None:
    """The folder that the environment names; None when it says that there is no disk store."""
    named = os.environ.get("HLOOM_CACHE_DIR")
    if named is not None:
        return None if named in ("", "off") else Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    return Path(base, "hloom")


@functools.cache
def environment_description() -> str:
    """What a kernel's code depends on besides its text: the CPU, Numba's, llvmlite's and our own compiler's versions.

    Found without importing Numba: a process whose kernels are all stored never needs it.
    """
    folder = Path(__file__).parent
    compiler_files = ("kernel", "llvm_backend", "numba_frontend", "numba_internals", "one_pass", "machine")
    own = [folder / f"{name}.py" for name in compiler_files]
    own += [*sorted(folder.glob("dialect*.py")), *sorted(folder.glob("math/**/*.py"))]
    numba = importlib.util.find_spec("numba")
    if numba is None or numba.origin is None:
        raise ModuleNotFoundError("hloom compiles its kernels with Numba, which is not installed: pip install numba")
    version = Path(numba.origin).with_name("_version.py").read_text()
    return digest([target_description(), version, *(path.read_text() for path in own if path.exists())])


class KernelStore:
    """Kernels in memory and, when `folder` is not None, on disk. Safe for several threads and processes at once."""

    def __init__(self, folder: Path | str | None, max_bytes: int = 512 << 20) -> None:
        """`max_bytes` bounds the folder; beyond it, what has not been used for longest goes."""
        self._disk = None if folder is None else _Disk(Path(folder), max_bytes)
        self._addresses: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._statistics = StoreStatistics()
        _stores.add(self)

    @property
    def folder(self) -> Path | None:
        """Where entries lie on disk, if anywhere."""
        return None if self._disk is None else self._disk.folder

    @property
    def statistics(self) -> StoreStatistics:
        """Counts and times so far."""
        return self._statistics

    def get(self, kernel: KernelSource) -> int:
        """The address of the kernel's entry point."""
        return self.get_many([kernel])[0]

    def get_many(self, kernels: Sequence[KernelSource]) -> list[int]:
        """The addresses of the kernels' entry points; what is missing is loaded or compiled in one batch.

        Addresses stay valid until the process ends. Raises KernelCompilationError when a kernel does not compile.
        """
        known = self._addresses
        if any(kernel.identity not in known for kernel in kernels):
            missing = {kernel.identity: kernel for kernel in kernels}
            with self._lock:
                missing = {identity: kernel for identity, kernel in missing.items() if identity not in known}
                self._obtain(list(missing.values()))
            self._count(found_in_memory=len(kernels) - len(missing))
        else:
            self._count(found_in_memory=len(kernels))
        if self._disk is not None:
            self._disk.warn()
        return [known[kernel.identity] for kernel in kernels]

    def code_bytes(self, kernel: KernelSource) -> int:
        """The size of the object code of a kernel that this store has given out."""
        return self._sizes[kernel.identity]

    def key(self, kernel: KernelSource) -> str:
        """The name of the kernel's entry on disk."""
        return digest([kernel.identity, environment_description()])

    def _obtain(self, kernels: list[KernelSource]) -> None:
        started = time.perf_counter()
        absent = self._load_stored(kernels)
        loaded = time.perf_counter()
        self._count(loaded_from_disk=len(kernels) - len(absent), load_ms=(loaded - started) * 1e3)
        if not absent:
            return
        objects = compiler.compile_kernels(absent)
        self._load(absent, objects)
        if self._disk is not None:
            for kernel, code in zip(absent, objects):
                self._disk.write(self.key(kernel), kernel, code)
            self._disk.evict()
        self._count(compiled=len(absent), compile_ms=(time.perf_counter() - loaded) * 1e3)

    def _load_stored(self, kernels: list[KernelSource]) -> list[KernelSource]:
        """Load what is on disk; the rest is returned."""
        if self._disk is None:
            return kernels
        found: list[tuple[KernelSource, bytes]] = []
        absent: list[KernelSource] = []
        for kernel in kernels:
            code = self._disk.read(self.key(kernel))
            if code is None:
                absent.append(kernel)
            else:
                found.append((kernel, code))
        if found:
            self._load([kernel for kernel, _ in found], [code for _, code in found])
        return absent

    def _load(self, kernels: list[KernelSource], objects: list[bytes]) -> None:
        addresses = load_objects([(kernel.symbol, code) for kernel, code in zip(kernels, objects)])
        self._sizes.update((kernel.identity, len(code)) for kernel, code in zip(kernels, objects))
        self._addresses.update((kernel.identity, address) for kernel, address in zip(kernels, addresses))

    def _count(
        self, compiled: int = 0, loaded_from_disk: int = 0, found_in_memory: int = 0,
        compile_ms: float = 0.0, load_ms: float = 0.0,
    ) -> None:  # fmt: skip
        now = self._statistics
        self._statistics = replace(
            now,
            compiled=now.compiled + compiled,
            loaded_from_disk=now.loaded_from_disk + loaded_from_disk,
            found_in_memory=now.found_in_memory + found_in_memory,
            compile_ms=now.compile_ms + compile_ms,
            load_ms=now.load_ms + load_ms,
        )

    def _after_fork(self) -> None:
        self._lock = threading.Lock()


class _Disk:
    """The folder. Nothing here raises for what the disk does; problems are collected and told by `warn`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._state = "unknown"  # then "usable", "readable" or "refused"
        self._untold: list[str] = []
        self._written_bytes = 0

    def read(self, key: str) -> bytes | None:
        """The object code under `key`; None when there is none, or none to be trusted."""
        if not self._usable():
            return None
        path = self.folder / f"{key}.o"
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(f"the stored kernel {path} could not be read ({error}); compiled it again")
            return None
        code = data[:-_TRAILER]
        if data[-_TRAILER:] != _seal(key, code):
            self._problem(f"the stored kernel {path} is damaged; compiled it again")
            return None
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)
        return code

    def write(self, key: str, kernel: KernelSource, code: bytes) -> None:
        """Store an entry: whole or not at all, also under the eyes of other processes."""
        if not self._usable() or self._state == "readable":
            return
        header = f"# {kernel.convention} {kernel.name}({kernel.signature})\n# {target_description()}\n"
        try:
            self._replace(f"{key}.py", (header + kernel.source).encode())
            self._replace(f"{key}.o", code + _seal(key, code))
        except OSError as error:
            self._state = "readable"
            what = "is full" if error.errno == errno.ENOSPC else f"cannot be written to ({error})"
            self._problem(f"the kernel store {self.folder} {what}; new kernels are kept in memory only")

    def evict(self) -> None:
        """Once enough has been written, delete what was used longest ago, down to three quarters of the bound."""
        if self._written_bytes < self._max_bytes // 8:
            return
        self._written_bytes = 0
        try:
            entries = []
            for entry in os.scandir(self.folder):
                if entry.name.endswith((".o", ".py", ".tmp")):
                    status = entry.stat(follow_symlinks=False)
                    entries.append((status.st_mtime, status.st_size, entry.path))
        except OSError:
            return
        total = sum(size for _, size, _ in entries)
        if total <= self._max_bytes:
            return
        for _, size, path in sorted(entries):
            if total <= self._max_bytes * 3 // 4:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size

    def warn(self) -> None:
        """Tell what went wrong since the last time."""
        while self._untold:
            warnings.warn(self._untold.pop(0), KernelStoreWarning, stacklevel=4)

    def _problem(self, message: str) -> None:
        self._untold.append(message)

    def _usable(self) -> bool:
        if self._state == "unknown":
            self._state = self._examine()
        return self._state != "refused"

    def _examine(self) -> str:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.stat(self.folder)
        except OSError as error:
            self._problem(f"the kernel store {self.folder} cannot be used ({error}); kernels are kept in memory only")
            return "refused"
        if not stat.S_ISDIR(status.st_mode):
            self._problem(f"the kernel store {self.folder} is not a folder; kernels are kept in memory only")
            return "refused"
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self._problem(
                f"the kernel store {self.folder} belongs to another user or is writable by others, so code from it is "
                "not trusted; kernels are kept in memory only. Make it yours with mode 0700, or set HLOOM_CACHE_DIR"
            )
            return "refused"
        return "usable"

    def _replace(self, name: str, data: bytes) -> None:
        temporary = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, self.folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._written_bytes += len(data)


def _seal(key: str, code: bytes) -> bytes:
    """What follows the object code in its file: proof that these bytes were stored, whole, under this key."""
    return hashlib.sha256(key.encode() + code).digest() + _MAGIC


@functools.cache
def default_store() -> KernelStore:
    """The process's store, in the folder that the environment names when it is first needed."""
    return KernelStore(default_folder())


_stores: weakref.WeakSet[KernelStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_stores):
        store._after_fork()


os.register_at_fork(after_in_child=_after_fork)
