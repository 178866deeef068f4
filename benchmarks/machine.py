"""The machine on which the numbers were measured."""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("hloom", "jax", "numpy", "numba", "scipy", "torch")


def describe() -> dict[str, Any]:
    """The processor, the cores that this process may use, memory, system, and the versions of the peers."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": versions,
        "thread_settings": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS") or k == "XLA_FLAGS"},
    }


class Watch:
    """How much of the processors other processes have used since this object was made."""

    def __init__(self, peers: Callable[[], Iterable[int]] = tuple) -> None:
        """`peers()` are the processes that still run and belong to this one."""
        self._peers = peers
        self._began = time.perf_counter(), _busy_seconds(), self._own()

    def others(self) -> float:
        """From 0 to 1. Processes started by this one do not count as others once they have ended."""
        began, busy, own = self._began
        others = (_busy_seconds() - busy) - (self._own() - own)
        return max(0.0, others / (time.perf_counter() - began) / (os.cpu_count() or 1))

    def _own(self) -> float:
        return _own_seconds() + sum(map(_seconds_of, self._peers()))


def _seconds_of(process: int) -> float:
    """Seconds of work of another process; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _busy_seconds() -> float:
    """Seconds of work of all processors, in all processes and in the kernel; 0 where the system does not tell."""
    stat = Path("/proc/stat")
    fields = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]] if stat.exists() else [0] * 8
    user, nice, system, _idle, _waiting, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def line(machine: dict[str, Any]) -> str:
    """The same in one line."""
    known = dict(machine["versions"]) | machine.get("peers", {})
    versions = ", ".join(f"{name} {version}" for name, version in known.items())
    settings = ", ".join(f"{k}={v}" for k, v in machine["thread_settings"].items()) or f"all peers: {machine['cores']}"
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}; "
        f"Python {machine['python']}, {versions}; threads: {settings}"
    )


def _processor() -> str:
    for text in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if text.startswith("model name"):
            return text.partition(":")[2].strip()
    return platform.processor() or platform.machine()
