"""The CPUs of this process: their number and kind."""

from __future__ import annotations

import math
import os
import platform


def available_cpus() -> int:
    """How many CPUs this process may use, by its affinity mask and the quota of its control group."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return count
    return count if quota == "max" else max(1, min(count, math.ceil(int(quota) / int(period))))


_IDENTIFYING = (
    "vendor_id", "cpu family", "model", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features", "isa", "uarch",
)  # fmt: skip


def cpu_description() -> str | None:
    """The CPU's instruction sets, in the system's words; None where the system does not tell.

    If two CPUs have the same words, LLVM would describe them in the same way; but these words can be read without LLVM.
    """
    try:
        with open("/proc/cpuinfo", "rb") as file:
            first = file.read(1 << 14).decode(errors="replace").partition("\n\n")[0]
    except OSError:
        return None
    fields = (line.partition(":") for line in first.splitlines())
    found = [f"{name.strip()}: {value.strip()}" for name, _, value in fields if name.strip() in _IDENTIFYING]
    return "\n".join([platform.machine(), *found]) if found else None
