"""C files to functions of this process, through the system's C compiler."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hloom.errors import HloError, UnsupportedError

FLAGS = ("-std=c11", "-O2", "-ftree-vectorize", "-march=native", "-ffp-contract=off", "-fwrapv", "-fno-math-errno",
         "-fno-trapping-math", "-w", "-fPIC", "-shared")  # fmt: skip
"""Floating point as the program says: products and sums are rounded one by one, and nothing is reordered. GCC 12 takes
ten times as long with -O3, for products of matrices that take twice as long."""

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
"""int32_t run(const void *const *arguments, void *const *results, void *temporary, const void *parallel)"""


class CompilerError(HloError):
    """The C compiler refused a file: a defect of this backend, or a compiler that does not know C11."""


def c_compiler() -> list[str]:
    """The command: $CC, or the first of cc, gcc and clang. UnsupportedError if there is none."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        raise UnsupportedError("the backend 'c' needs a C compiler: install gcc or clang, or name one in CC")
    return [found]


class Library:
    """One function of one C file. The file and the library are in a folder that disappears with the process."""

    def __init__(self, path: Path, symbol: str) -> None:
        self.code_bytes = path.stat().st_size
        self._library = ctypes.CDLL(str(path))
        self.run: Any = FUNCTION((symbol, self._library))


class Builder:
    """Builds each text once; all texts of one call at the same time. Safe to use from several threads."""

    def __init__(self, symbol: str) -> None:
        """`symbol`: the function that each text defines."""
        self._symbol = symbol
        self._known: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()
        self._count = 0
        self._folder = tempfile.TemporaryDirectory(prefix="hloom-c-")

    def build(self, texts: Sequence[str]) -> list[Library]:
        """The library of each text. CompilerError if the compiler refuses one."""
        with self._lock:
            known = {text: self._known.get(text) for text in dict.fromkeys(texts)}
            missing = [text for text, library in known.items() if library is None]
            with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
                known.update(zip(missing, pool.map(self._compile, missing, self._names(len(missing))), strict=True))
            found = [library for library in map(known.__getitem__, texts) if library is not None]
            self._known.update(zip(texts, found, strict=True))
            return found

    def _names(self, count: int) -> list[Path]:
        first, self._count = self._count, self._count + count
        return [Path(self._folder.name) / f"program{number}.c" for number in range(first, self._count)]

    def _compile(self, text: str, source: Path) -> Library:
        source.write_text(text)
        target = source.with_suffix(".so")
        command = [*c_compiler(), *FLAGS, "-o", str(target), str(source), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CompilerError(f"{shlex.join(command)}\n{done.stderr[-2000:]}")
        library = Library(target, self._symbol)
        target.unlink()  # the process keeps the mapped file
        source.unlink()
        return library
