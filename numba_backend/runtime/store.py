"""The kernel store: gives the address of a kernel's code from its source; compiles only kernels never compiled before.

A kernel is looked up in memory, then on disk (store_disk.py), then compiled; functions of the runtime come with the
package (native_code.py). Its key is a hash of its source and of everything else that decides the machine code, so
entries never become stale, only unused.

In memory a kernel's code lives as long as a program uses it. Code that none uses is kept for a while, up to
`MAX_UNUSED_CODE` bytes, because a function that is jitted again has the same kernels.

The folder is `HLOOM_CACHE_DIR` ("" or "off": no disk), else `$XDG_CACHE_HOME/hloom` or `~/.cache/hloom`. Code is loaded
only from files that belong to this user, in a folder that no other user can change: store_disk.py says what is trusted.
If anything fails with the disk, kernels are compiled and work; a KernelStoreWarning says once what failed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import time
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path  # at once: a fork waits for imports of our own modules only
from typing import TYPE_CHECKING, cast

from ...hlo.support.forking import Order, fork_lock
from ...hlo.support.lazy import lazy_property
from ...hlo.support.memory_pressure import on_pressure
from ...hlo.support.once import once
from ...hlo.support.records import dataclass
from ...hlo.support.snapshots import snapshot
from ...hlo.system import system
from ...hlo.timeline.spans import Track, spanning
from ..cpus import cpu_description
from ..machine import MACHINE_VARIABLE
from . import compile as compiler
from .installation import compiler_digest, installation, is_unchanged
from .kernel import KernelSource, StoredKernel, digest
from .loader import Code, Entry, link, load_images, load_objects
from .native_code import delivered
from .uninterrupted import uninterrupted

if TYPE_CHECKING:
    from .store_disk import Disk

PROGRAM, DIGEST, TUNING, SPEED = ".program", ".digest", ".tuning", ".speed"
"""The ends of files' names."""

_lock = fork_lock(Order.STORE)
"""Held by the thread that loads or compiles kernels, in any store: a fork waits for it. It is reentrant, since the end
of an object may run Python, and with it a program, in the middle of compiling."""

MAX_UNUSED_CODE = 16 << 20
"""Bytes of object code that a store keeps in memory, whether a program uses it or not: the code used last."""


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Numbers of kernels by where they came from; milliseconds spent on compiling and loading."""

    compiled: int = 0
    delivered: int = 0
    """Functions of the runtime and kernels that came with the package."""
    loaded_from_disk: int = 0
    found_in_memory: int = 0
    compile_ms: float = 0.0
    load_ms: float = 0.0


def default_folder() -> str | None:
    """The folder that the environment names; None when the environment switches the disk off."""
    named = os.environ.get("HLOOM_CACHE_DIR")
    if named is not None:
        return None if named in ("", "off") else os.path.join(os.getcwd(), os.path.expanduser(named))
    base = system.cache_folder()
    return None if base is None else os.path.join(base, "hloom")


@functools.cache
def environment_description() -> str:
    """Machine code depends on this besides its text and our own compiler: the machine, Numba's and llvmlite's versions.

    Neither Numba nor LLVM is imported for it: a process whose kernels are all stored never needs them.
    """
    cpu = cpu_description()
    if cpu is None:
        cpu = import_module(".llvm_backend", __package__).target_description()
    return digest([cpu, os.environ.get(MACHINE_VARIABLE, ""), version_of("numba"), version_of("llvmlite")])


def version_of(package: str, file: str = "_version.py") -> str:
    """The text of a package's file with its version, read without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"hloom compiles its kernels with {package}, which is missing: pip install {package}")
    with open(os.path.join(os.path.dirname(spec.origin), file), encoding="utf-8") as text:
        return text.read()


class _NotStored(Exception):
    """A kernel that is known by its identity alone is not in the store."""


class KernelStore:
    """Kernels in memory and, when `folder` is not None, on disk. Safe for several threads and processes at once."""

    def __init__(self, folder: Path | str | None, max_bytes: int = 512 << 20) -> None:
        """`max_bytes` limits the folder; above it, the entries unused for longest are deleted."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._codes: weakref.WeakValueDictionary[str, Code] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[str, Code] = OrderedDict()
        self._recent_bytes = 0
        self._staying: dict[str, int] = {}
        self._statistics = StoreStatistics()
        _stores.add(self)

    @property
    def folder(self) -> Path | None:
        """The folder on disk, if any."""
        return None if self._folder is None else Path(self._folder)

    @lazy_property
    def _disk(self) -> Disk | None:
        """The folder; None if its entries cannot be distinguished from entries of another version of this library."""
        if self._folder is None or installation() is None:
            return None
        disk: Disk = import_module(".store_disk", __package__).Disk(self.folder, self._max_bytes)
        return disk

    @lazy_property
    def _environment(self) -> str:
        """A digest of all that a kernel's code depends on besides its text."""
        disk, state = self._disk, installation()
        if disk is None or state is None:
            return digest([environment_description(), compiler_digest()])
        key = digest(["compiler", state])
        compiler = disk.read_data(key, DIGEST)
        if compiler is None:
            compiler = compiler_digest().encode()
            disk.write_data(key, DIGEST, compiler)
        return digest([environment_description(), compiler.decode()])

    @property
    def statistics(self) -> StoreStatistics:
        """Counts and times so far."""
        return self._statistics

    def get(self, kernel: KernelSource) -> int:
        """The address of the kernel's entry point; see `get_many`."""
        return self.get_many([kernel])[0]

    def get_many(self, kernels: Sequence[KernelSource]) -> list[int]:
        """The addresses of the kernels' entry points, valid until the process ends: for functions of the runtime."""
        staying = self._staying
        if not all(kernel.identity in staying for kernel in kernels):
            for kernel, code in zip(kernels, self.codes(kernels)):
                if kernel.identity not in staying:
                    code.stay()
                    staying[kernel.identity] = code.address
        else:
            self._count(found_in_memory=len(kernels))
        return [staying[kernel.identity] for kernel in kernels]

    def codes(self, kernels: Sequence[KernelSource | StoredKernel]) -> list[Code]:
        """The kernels' code; missing kernels are loaded or compiled in one batch. It is valid as long as the caller
        holds it. Raises KernelCompilationError when a kernel does not compile.
        """
        found = {kernel.identity: self._codes.get(kernel.identity) for kernel in kernels}
        absent = 0
        if None in found.values():
            absent = uninterrupted(lambda _: self._complete(found, kernels), _lock)
        self._count(found_in_memory=len(kernels) - absent)
        codes = cast(dict[str, Code], found)
        self._keep(codes)
        disk = self.__dict__.get("_disk")  # it has problems only if it was needed
        if disk is not None:
            disk.warn()
        return [codes[kernel.identity] for kernel in kernels]

    def _complete(self, found: dict[str, Code | None], kernels: Sequence[KernelSource | StoredKernel]) -> int:
        """Obtain the codes that are None in `found`, with `_lock` held; returns how many were not in memory."""
        missing: dict[str, KernelSource | StoredKernel] = {}
        for kernel in kernels:
            if found[kernel.identity] is None:  # perhaps another thread has just made it
                found[kernel.identity] = self._codes.get(kernel.identity)
                if found[kernel.identity] is None:
                    missing[kernel.identity] = kernel
        found.update(self._obtain(list(missing.values())))
        return len(missing)

    def stored_codes(self, kernels: Sequence[KernelSource | StoredKernel]) -> list[Code] | None:
        """As `codes`, also for kernels that are known by identity alone; None if the store lacks one of them."""
        try:
            return self.codes(kernels)
        except _NotStored:
            return None

    def data(self, key: str, end: str) -> bytes | None:
        """The bytes that `keep` kept under a key and the end of a file's name; None if there are none that can be
        trusted."""
        if self._disk is None:
            return None
        found = self._disk.read_data(key, end)
        self._disk.warn()
        return found

    def keep(self, key: str, end: str, data: bytes) -> None:
        """Keep bytes on disk, if there is a folder that can be written to."""
        if self._disk is not None and is_unchanged():
            self._disk.write_data(key, end, data)
            self._disk.warn()

    def keep_program(self, key: str, block: bytes) -> None:
        """Keep a program, as stored_programs.py writes it."""
        self.keep(key, PROGRAM, block)

    def release_unused(self) -> int:
        """Give back the memory of code that no program uses; returns how many bytes of object code were kept."""
        kept = self._recent_bytes
        self._recent.clear()
        self._recent_bytes = 0
        return kept

    def _keep(self, codes: dict[str, Code]) -> None:
        """These codes were used last. (No lock: another thread may drop all of them at any time, for want of memory,
        even this one. Then the count is a little wrong, until the next time.)"""
        recent = self._recent
        for identity, code in codes.items():
            if recent.pop(identity, None) is None:
                self._recent_bytes += code.object_bytes
            recent[identity] = code
        while self._recent_bytes > MAX_UNUSED_CODE and recent:
            with suppress(KeyError):
                self._recent_bytes -= recent.popitem(last=False)[1].object_bytes
        if not recent:
            self._recent_bytes = 0

    def key(self, kernel: KernelSource | StoredKernel) -> str:
        """The name of the kernel's entry on disk."""
        return digest([kernel.identity, self._environment])

    def _obtain(self, kernels: list[KernelSource | StoredKernel]) -> dict[str, Code]:
        """The codes of kernels that are not in memory."""
        started = time.perf_counter()
        images = {kernel.identity: delivered(kernel) for kernel in kernels}
        others = [kernel for kernel in kernels if images[kernel.identity] is None]
        own = [kernel for kernel in kernels if images[kernel.identity] is not None]
        codes = self._load(own, [Entry(b"", images[kernel.identity]) for kernel in own])
        stored, absent = self._load_stored(others)
        codes.update(stored)
        loaded = time.perf_counter()
        self._count(delivered=len(own), loaded_from_disk=len(stored), load_ms=(loaded - started) * 1e3)
        if not absent:
            return codes
        sources = [kernel for kernel in absent if isinstance(kernel, KernelSource)]
        if len(sources) < len(absent):
            raise _NotStored
        objects = compiler.compile_kernels(sources)
        entries = [Entry(code, link(kernel.symbol, code)) for kernel, code in zip(sources, objects)]
        codes.update(self._load(sources, entries))
        if self._disk is not None and is_unchanged():
            for kernel, entry in zip(sources, entries):
                self._disk.write(self.key(kernel), kernel, entry)
            self._disk.evict()
        self._count(compiled=len(absent), compile_ms=(time.perf_counter() - loaded) * 1e3)
        return codes

    def _load_stored(
        self, kernels: list[KernelSource | StoredKernel]
    ) -> tuple[dict[str, Code], list[KernelSource | StoredKernel]]:
        """The codes of the kernels that are on disk, and the other kernels."""
        if not kernels or self._disk is None:
            return {}, kernels
        found: list[KernelSource | StoredKernel] = []
        entries: list[Entry] = []
        absent: list[KernelSource | StoredKernel] = []
        for kernel in kernels:
            with spanning(Track.COMPILING, f"read {kernel.name} from the store"):
                entry = self._disk.read(self.key(kernel))
            if entry is None:
                absent.append(kernel)
            else:
                found.append(kernel)
                entries.append(entry)
        return self._load(found, entries), absent

    def _load(self, kernels: Sequence[KernelSource | StoredKernel], entries: list[Entry]) -> dict[str, Code]:
        """Functions of the runtime stay loaded; so they share no memory with kernels."""
        codes: dict[str, Code] = {}
        for convention in ("native", "kernel"):
            both = [(k, entry) for k, entry in zip(kernels, entries) if k.convention == convention]
            placed = [(kernel, entry.image) for kernel, entry in both if entry.image is not None]
            others = [(kernel, entry.object_code) for kernel, entry in both if entry.image is None]
            with spanning(Track.COMPILING, f"load code of {len(both)} kernels", detail=2 if both else 4):
                if placed:
                    loaded = load_images([image for _, image in placed])
                    codes.update((kernel.identity, code) for (kernel, _), code in zip(placed, loaded))
                if others:
                    loaded = load_objects([(kernel.symbol, code) for kernel, code in others])
                    codes.update((kernel.identity, code) for (kernel, _), code in zip(others, loaded))
        self._codes.update(codes)
        return codes

    def _count(self, **more: float) -> None:
        now = self._statistics
        self._statistics = replace(now, **{name: getattr(now, name) + number for name, number in more.items()})


@once
def default_store() -> KernelStore:
    """The process's store, in the folder that the environment names when it is first needed."""
    return KernelStore(default_folder())


_stores: weakref.WeakSet[KernelStore] = weakref.WeakSet()


def _release_unused() -> int:
    return sum([store.release_unused() for store in snapshot(_stores)])


on_pressure(_release_unused)
