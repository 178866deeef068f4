"""Run hloom on Linux as if the system lacked something, or were another one: `install(name)` before hloom is imported.

As a plugin, `HLOOM_TESTS_LACK=affinity python -m pytest -p support.lacking ...` with the folder of tests in PYTHONPATH.
"macos" and "windows" are hloom's own files for these systems, with models of the systems' functions: `systems/*.c`.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
import mmap
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 - all that looks at sys.platform is imported before it changes
import numpy as np  # noqa: F401
import optree  # noqa: F401

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent / "hloom" / "hlo" / "system"
SYSTEM = "hloom.hlo.system"


MODELS: list[Any] = []
"""The models in this process, whose `model_calls` counts calls."""


def _system(platform: str = "linux") -> Any:
    """hloom's module of systems, as it is on a platform. hloom itself is not imported for it."""
    assert SYSTEM not in sys.modules, "hloom is imported already"
    spec = importlib.util.spec_from_file_location(SYSTEM, PACKAGE / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[SYSTEM] = module
    before, sys.platform = sys.platform, platform
    try:
        spec.loader.exec_module(module)
        assert module.system
    finally:
        sys.platform = before
    return module


def _file(name: str) -> Any:
    """One of hloom's files for systems."""
    return importlib.import_module(f"{SYSTEM}.{name}")


def _without(module: Any, *names: str) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _no_files() -> None:
    """Nothing in /proc and /sys can be opened."""
    _system()
    linux, listed = _file("linux"), os.path.isdir

    def refuse(path: str, *arguments: Any) -> Any:
        if path.startswith(("/proc", "/sys")):
            raise FileNotFoundError(path)
        return open(path, *arguments)

    linux.open = refuse
    linux.os.path.isdir = lambda path: not str(path).startswith("/sys") and listed(path)


def _set(name: str, value: Any) -> Callable[[], None]:
    """Another attribute of the class of this system."""

    def apply() -> None:
        _system()
        setattr(_file("linux").Linux, name, value)

    return apply


def _no_forks() -> None:
    _without(os, "fork", "forkpty", "register_at_fork")
    _system()


def _no_modes() -> None:
    _without(os, "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")
    _system()


def model(name: str) -> Any:
    """The compiled model of a system; FileNotFoundError without a compiler of C."""
    source = HERE / "systems" / f"{name}.c"
    library = Path(os.environ["HLOOM_TESTS_MODELS"], f"{name}.so")
    if not library.exists():
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise FileNotFoundError("no compiler of C")
        made = library.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-pthread", "-o", made, source], check=True, timeout=60)
        made.replace(library)
    MODELS.append(ctypes.CDLL(str(library)))
    return MODELS[-1]


def _windows() -> None:
    library = model("windows")
    ctypes.WinDLL = lambda name: library  # type: ignore[attr-defined]
    _without(os, "fork", "forkpty", "register_at_fork", "geteuid", "getuid", "sched_getaffinity")
    _without(signal, "alarm", "setitimer", "pthread_kill", "SIGALRM", "SIGUSR1", "SIGUSR2")
    os.environ["LOCALAPPDATA"] = os.path.expanduser("~/AppData/Local")
    _system("win32")
    windows, process = _file("windows").Windows, ctypes.CDLL(None)
    windows.c_library = lambda self: process


def _macos() -> None:
    library, pages = model("darwin"), 1 << 14
    _without(os, "sched_getaffinity")
    _without(mmap, "MAP_NORESERVE", "MADV_HUGEPAGE")
    mmap.PAGESIZE = pages
    _system("darwin")
    darwin = _file("darwin").Darwin
    known = darwin.c_address

    def address(self: Any, name: str) -> int:
        function = getattr(library, name, None)
        return known(self, name) if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0

    darwin.c_address = functools.cache(address)
    darwin.clock = time.CLOCK_MONOTONIC  # which perf_counter_ns reads here


LACKING: dict[str, Callable[[], None]] = {
    "affinity": lambda: (_without(os, "sched_getaffinity"), _system())[0],
    "files of the system": _no_files,
    "huge pages": _set("fresh_huge_pages", lambda self, size, huge: 0),
    "advice about memory": lambda: (_without(mmap, "MADV_HUGEPAGE", "MADV_DONTNEED", "MAP_NORESERVE"), _system())[0],
    "images": _set("loads_images", False),
    "threads": _set("start_thread", lambda self, function, argument: False),
    "forks": _no_forks,
    "modes of open": _no_modes,
    "a cache folder": _set("cache_folder", lambda self: None),
    "macos": _macos,
    "windows": _windows,
}
"""What a system may lack, and how Linux comes to lack it."""


def install(name: str) -> None:
    """From now on the system lacks something."""
    LACKING[name]()


if "HLOOM_TESTS_LACK" in os.environ:
    for plugin in importlib.metadata.entry_points(group="pytest11"):
        plugin.load()  # that of platformdirs wants os.getuid wherever the process began on Linux
    install(os.environ["HLOOM_TESTS_LACK"])
