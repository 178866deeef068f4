"""Linux: CPU lists of the scheduler and of control groups, /proc and /sys, huge pages, ELF objects.

Sources: the manual pages sched_setaffinity(2), madvise(2), gettid(2), proc(5); the kernel's documents cgroup-v2 and
ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

from .interface import architecture
from .posix import Posix


class Linux(Posix):
    """Linux, with glibc or another C library."""

    name: ClassVar[str] = "linux"
    loads_images: ClassVar[bool] = True
    native_names: ClassVar[Mapping[str, str]] = {**Posix.native_names, "number": "gettid"}

    def scheduled_on(self) -> Sequence[int]:
        """By the affinity mask, which batch systems and MPI's launchers set."""
        return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else super().scheduled_on()

    def available_cpus(self) -> int:
        """By the affinity mask and the quotas of the control groups, as they were when first asked for."""
        return max(1, min([self.scheduled_cpus(), *map(math.ceil, self._quotas())]))

    @functools.cache  # noqa: B019 - there is one system
    def _quotas(self) -> Sequence[float]:
        return tuple(cpu_quotas("/proc/self/cgroup", "/sys/fs/cgroup"))

    def cpu_description(self) -> str | None:
        """Of /proc/cpuinfo: the first processor's lines that say what it can do."""
        try:
            with open("/proc/cpuinfo", "rb") as file:
                first = file.read(1 << 14).decode(errors="replace").partition("\n\n")[0]
        except OSError:
            return None
        fields = (line.partition(":") for line in first.splitlines())
        found = [f"{name.strip()}: {value.strip()}" for name, _, value in fields if name.strip() in _IDENTIFYING]
        return "\n".join([architecture(), *found]) if found else None

    def cache_sizes(self) -> Mapping[str, int]:
        """Of the first processor."""
        return caches_of("/sys/devices/system/cpu/cpu0/cache")

    def resident_bytes(self) -> int:
        """The second number of statm, in pages."""
        try:
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * int(import_module("mmap").PAGESIZE)
        except OSError:
            return 0

    def fresh_huge_pages(self, size: int, huge: int) -> int:
        """Transparent huge pages: a map that is larger by one, whose ends are given back."""
        start = self.fresh_pages(size + huge)
        if not start:
            return 0
        address = (start + huge - 1) & -huge
        if address > start:
            self.free_pages(start, address - start)
        if start + huge > address:
            self.free_pages(address + size, start + huge - address)
        self._advise(address, size, "MADV_HUGEPAGE")
        return address

    def make_executable(self, address: int, size: int) -> bool:
        """Linux makes the caches of instructions and data agree when a page becomes executable, on ARM too."""
        mmap = import_module("mmap")
        protect = self._function("mprotect", "int", "void_p", "size_t", "int")
        return not protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC)

    @functools.cache  # noqa: B019 - there is one system
    def unwinding(self, function: str) -> Callable[[int], object]:
        """Of libgcc; with the GIL, so that no fork happens inside, where a lock is held."""
        ctypes = import_module("ctypes")
        found: Any = ctypes.PyDLL("libgcc_s.so.1")[function]
        found.argtypes, found.restype = [ctypes.c_void_p], None
        return found  # type: ignore[no-any-return]

    def thread_number_text(self, number: str, into: str) -> str:
        """`gettid()`, an int."""
        return f"atomic_store({into}, call0({number}) & 0xffffffff)"


_IDENTIFYING = (
    "vendor_id", "cpu family", "model", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features", "isa", "uarch",
)  # fmt: skip


def cpu_quotas(groups: str, mounted: str) -> Iterator[float]:
    """The CPUs' time that the control groups of a process may use, and those above them: 1.5 is one CPU and a half.

    groups: the file that lists its groups. mounted: where their folders are. Version 2 has one hierarchy, whose line
    begins with "0::"; version 1 has one for each controller. In a container the folders of a group may be missing, or
    be the root.
    """
    for line in _lines(groups):
        _, controllers, group = line.split(":", 2)
        old = "cpu" in controllers.split(",")
        if controllers and not old:
            continue
        folder = os.path.join(mounted, "cpu") if old else mounted
        parts = list(filter(None, group.split("/")))
        for depth in range(len(parts), -1, -1):
            place = os.path.join(folder, *parts[:depth])
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if old else ("cpu.max",)
            numbers = [word for name in names for word in " ".join(_lines(os.path.join(place, name))).split()]
            if len(numbers) == 2 and numbers[0].isdecimal() and numbers[1].isdecimal():  # neither "max" nor -1
                yield int(numbers[0]) / max(1, int(numbers[1]))


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []


def caches_of(folder: str) -> Mapping[str, int]:
    """The sizes of the data caches by level, as Linux lists them in a folder; {} where it does not."""
    found: dict[str, int] = {}
    for index in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        try:
            kind, level, size = (_word(os.path.join(folder, index, name)) for name in ("type", "level", "size"))
            if kind != "Instruction":
                found[level] = int(size.removesuffix("K")) << 10
        except (OSError, ValueError):
            continue
    return found


def _word(path: str) -> str:
    with open(path) as file:
        return file.read().strip()
