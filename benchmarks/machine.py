"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("hloom", "jax", "jaxlib", "numpy", "numba", "scipy", "torch")


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


def line(machine: dict[str, Any]) -> str:
    """The same in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
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
