"""Processes that share a store while another one damages it; run by test_soak.py.

    python -m support.soak_store work FOLDER SECONDS SEED        use the store, with a new store object each time
    python -m support.soak_store damage FOLDER SECONDS SEED      put other things in the place of its files
    python -m support.soak_store network FOLDER SECONDS SEED     use it with errors of a network file system

A worker gets kernels from the store and runs them: for any files in the folder, results are right, and nothing but a
KernelStoreWarning is said. It prints how many kernels it compiled, how many it loaded, and the number of warnings.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from hloom.numba_backend.runtime.errors import KernelStoreWarning
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
from hloom.numba_backend.runtime.store import KernelStore

KERNELS = 12


def kernel(number: int) -> KernelSource:
    source = f"def k(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = x[i] * 2 + {number}\n"
    return KernelSource("k", source, (Parameter("pointer", "f32"),))


def work(folder: Path, end: float, random: Random) -> None:
    warnings.simplefilter("error")
    warnings.simplefilter("always", KernelStoreWarning)
    compiled = loaded = told = 0
    while time.monotonic() < end:
        store = KernelStore(folder, max_bytes=random.choice((20_000, 1 << 20)))
        numbers = random.sample(range(KERNELS), 3)
        builder = ProgramBuilder()
        for number in numbers:
            builder.kernel(kernel(number), [pointer(0)], 100)
        with warnings.catch_warnings(record=True) as warned:
            program = builder.build(store)
        unexpected = [w for w in warned if not issubclass(w.category, KernelStoreWarning)]
        assert not unexpected, unexpected
        told += len(warned)
        x = np.arange(100, dtype=np.float32)
        expected = x.copy()
        for number in numbers:
            expected = expected * 2 + number
        program.run([x.ctypes.data])
        np.testing.assert_array_equal(x, expected)
        compiled += store.statistics.compiled
        loaded += store.statistics.loaded_from_disk
    print(compiled, loaded, told)


ERRORS = (errno.ESTALE, errno.ENOENT, errno.EIO, errno.ETIMEDOUT, errno.ENOLCK)


def network(folder: Path, end: float, random: Random) -> None:
    """One call of twenty that concerns the folder fails; a file may have got its name all the same."""

    renaming = os.replace

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            fails = random.random() < 0.05 and str(arguments[0]).startswith(str(folder))
            done = real is renaming and random.random() < 0.5
            code = random.choice(ERRORS)
            if fails and not done:
                raise OSError(code, os.strerror(code))
            found = real(*arguments, **options)
            if fails:
                raise OSError(code, os.strerror(code))
            return found

        return call

    for name in ("open", "replace", "stat", "utime", "unlink", "scandir"):
        setattr(os, name, failing(getattr(os, name)))
    work(folder, end, random)


def truncate(path: Path, random: Random) -> None:
    with open(path, "r+b") as file:
        file.truncate(random.randrange(path.stat().st_size + 1))


def flip(path: Path, random: Random) -> None:
    with open(path, "r+b") as file:
        at = random.randrange(max(path.stat().st_size, 1))
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1 << random.randrange(8)]) if byte else b"x")


def swap(path: Path, random: Random) -> None:
    others = [other for other in path.parent.glob("*.o") if other.is_file() and not other.is_symlink()]
    data = random.choice(others).read_bytes()
    path.with_suffix(".copy").write_bytes(data)
    os.replace(path.with_suffix(".copy"), path)


def pipe(path: Path, random: Random) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path, random: Random) -> None:
    path.unlink()
    path.symlink_to(random.choice(("/dev/zero", "/etc/passwd", "nowhere", path.name)))


def folder(path: Path, random: Random) -> None:
    path.unlink()
    path.mkdir()


def remove(path: Path, random: Random) -> None:
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def everything(path: Path, random: Random) -> None:
    if random.random() < 0.2:
        shutil.rmtree(path.parent, ignore_errors=True)


def open_to_all(path: Path, random: Random) -> None:
    path.chmod(0o666)


DAMAGES: tuple[Callable[[Path, Random], None], ...] = (
    truncate, flip, swap, pipe, link, folder, remove, remove, everything, open_to_all,
)  # fmt: skip


def damage(store: Path, end: float, random: Random) -> None:
    while time.monotonic() < end:
        time.sleep(random.uniform(0, 0.05))
        files = list(store.glob("*.o"))
        if files:
            path = random.choice(files)
            try:
                if path.is_fifo() or path.is_dir() or path.is_symlink():
                    remove(path, random)
                else:
                    random.choice(DAMAGES)(path, random)
            except (OSError, shutil.Error, IndexError):
                pass  # a worker was faster


if __name__ == "__main__":
    {"work": work, "damage": damage, "network": network}[sys.argv[1]](
        Path(sys.argv[2]), time.monotonic() + float(sys.argv[3]), Random(sys.argv[4])
    )
