"""The kernel store: gives the address of a kernel's code from its source; compiles only kernels never compiled before.

A kernel is looked up in memory, then on disk (store_disk.py), then compiled. Its key is a hash of its source and of
everything else that decides the machine code, so entries never become stale, only unused.

The folder is `HLOOM_CACHE_DIR` ("" or "off": no disk), else `$XDG_CACHE_HOME/hloom` or `~/.cache/hloom`. Code is loaded
only from files that belong to this user, in a folder that nobody else can change: store_disk.py says what is trusted.
If anything fails with the disk, kernels are compiled and work; a KernelStoreWarning says once what failed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from ...hlo.forking import Order, fork_lock
from . import compile as compiler
from .cpus import cpu_description
from .kernel import KernelSource, digest
from .loader import link, load_images, load_objects
from .store_disk import Disk, Entry

_lock = fork_lock(Order.STORE)
"""Held by the thread that loads or compiles kernels, in any store: a fork waits for it. It is reentrant, since a signal
or the end of an object may run Python, and with it a program, in the middle of compiling."""


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Numbers of kernels by where they came from; milliseconds spent on compiling and loading."""

    compiled: int = 0
    loaded_from_disk: int = 0
    found_in_memory: int = 0
    compile_ms: float = 0.0
    load_ms: float = 0.0


def default_folder() -> Path | None:
    """The folder that the environment names; None when the environment switches the disk off."""
    named = os.environ.get("HLOOM_CACHE_DIR")
    if named is not None:
        return None if named in ("", "off") else Path(os.path.expanduser(named)).absolute()
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

    Neither Numba nor LLVM is imported for it: a process whose kernels are all stored never needs them.
    """
    folder = Path(__file__).parent
    compiler_files = ("kernel", "llvm_backend", "numba_frontend", "numba_internals", "one_pass", "machine")
    own = [folder / f"{name}.py" for name in (*compiler_files, "loader", "store_disk")]
    own += [*sorted(folder.glob("dialect*.py")), *sorted(folder.glob("math/**/*.py"))]
    cpu = cpu_description()
    if cpu is None:
        cpu = import_module(".llvm_backend", __package__).target_description()
    return digest([cpu, _version_of("numba"), _version_of("llvmlite"), *(path.read_text() for path in own)])


def _version_of(package: str) -> str:
    """The text of a package's `_version.py`, read without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"hloom compiles its kernels with {package}, which is missing: pip install {package}")
    return Path(spec.origin).with_name("_version.py").read_text()


class KernelStore:
    """Kernels in memory and, when `folder` is not None, on disk. Safe for several threads and processes at once."""

    def __init__(self, folder: Path | str | None, max_bytes: int = 512 << 20) -> None:
        """`max_bytes` limits the folder; above it, the entries unused for longest are deleted."""
        self._disk = None if folder is None else Disk(Path(folder), max_bytes)
        self._addresses: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._statistics = StoreStatistics()

    @property
    def folder(self) -> Path | None:
        """The folder on disk, if any."""
        return None if self._disk is None else self._disk.folder

    @property
    def statistics(self) -> StoreStatistics:
        """Counts and times so far."""
        return self._statistics

    def get(self, kernel: KernelSource) -> int:
        """The address of the kernel's entry point."""
        return self.get_many([kernel])[0]

    def get_many(self, kernels: Sequence[KernelSource]) -> list[int]:
        """The addresses of the kernels' entry points; missing kernels are loaded or compiled in one batch.

        Addresses stay valid until the process ends. Raises KernelCompilationError when a kernel does not compile.
        """
        known = self._addresses
        if any(kernel.identity not in known for kernel in kernels):
            missing = {kernel.identity: kernel for kernel in kernels}
            with _lock:
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
        entries = [Entry(code, link(kernel.symbol, code)) for kernel, code in zip(absent, objects)]
        self._load(absent, entries)
        if self._disk is not None:
            for kernel, entry in zip(absent, entries):
                self._disk.write(self.key(kernel), kernel, entry)
            self._disk.evict()
        self._count(compiled=len(absent), compile_ms=(time.perf_counter() - loaded) * 1e3)

    def _load_stored(self, kernels: list[KernelSource]) -> list[KernelSource]:
        """Load the kernels that are on disk; returns the others."""
        if self._disk is None:
            return kernels
        found: list[KernelSource] = []
        entries: list[Entry] = []
        absent: list[KernelSource] = []
        for kernel in kernels:
            entry = self._disk.read(self.key(kernel))
            if entry is None:
                absent.append(kernel)
            else:
                found.append(kernel)
                entries.append(entry)
        self._load(found, entries)
        return absent

    def _load(self, kernels: list[KernelSource], entries: list[Entry]) -> None:
        self._sizes.update((kernel.identity, len(entry.object_code)) for kernel, entry in zip(kernels, entries))
        both = list(zip(kernels, entries))
        placed = [(kernel, entry.image) for kernel, entry in both if entry.image is not None]
        others = [(kernel, entry.object_code) for kernel, entry in both if entry.image is None]
        if placed:
            self._learn(placed, load_images([image for _, image in placed]))
        if others:
            self._learn(others, load_objects([(kernel.symbol, code) for kernel, code in others]))

    def _learn(self, kernels: Iterable[tuple[KernelSource, object]], addresses: list[int]) -> None:
        self._addresses.update((kernel.identity, address) for (kernel, _), address in zip(kernels, addresses))

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


@functools.cache
def default_store() -> KernelStore:
    """The process's store, in the folder that the environment names when it is first needed."""
    return KernelStore(default_folder())
