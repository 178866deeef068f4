"""How many CPUs there are for this process."""

from __future__ import annotations

import math
import os


def available_cpus() -> int:
    """How many CPUs this process may use: its affinity mask, and the quota of its control group."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return count
    return count if quota == "max" else max(1, min(count, math.ceil(int(quota) / int(period))))
