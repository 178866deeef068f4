"""The kernel store's folder on a network file system: errors that only such systems give, machines that share it.

The errors are injected into the functions through which the store reaches the disk: a real server is not needed to say
ESTALE, and none says it when a test wants it.
"""

from __future__ import annotations

import builtins
import errno
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hloom.numba_backend import stored_programs
from hloom.numba_backend.runtime import store as store_module
from hloom.numba_backend.runtime import store_disk
from hloom.numba_backend.runtime.errors import KernelStoreWarning
from hloom.numba_backend.runtime.store import KernelStore

from support.runtime_kernels import numbered, object_file, run_numbered

KERNEL = numbered(1)
CODES = ("ESTALE", "ENOLCK", "ENOSYS", "EOPNOTSUPP", "EIO", "ENOENT", "EACCES", "EDQUOT", "EROFS", "ETIMEDOUT")
"""Among them all that a lock gives where the server has none: if one of these ended or held up a process, it would be a
lock."""


@pytest.fixture(autouse=True)
def cached() -> Iterator[None]:
    """What a process computes once, anew after each test."""
    yield
    store_module.environment_description.cache_clear()
    stored_programs.environment_key.cache_clear()


def failing(real: Callable[..., Any], code: str, times: float) -> Callable[..., Any]:
    """The function, which fails so often with an error of the system, and then works."""
    left = times

    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        if left > 0:
            left -= 1
            raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)))
        return real(*arguments, **options)

    return call


def closing(real: Callable[..., Any], code: str, times: float) -> Callable[..., Any]:
    """`open`, whose files fail when they are closed: there a network file system reports that it could not write."""
    fail = failing(lambda: None, code, times)

    class File:
        def __init__(self, *arguments: Any) -> None:
            self._file = real(*arguments)

        def __enter__(self) -> Any:
            return self._file

        def __exit__(self, *_: object) -> None:
            self._file.close()
            fail()

    return File


PLACES: dict[str, Callable[[pytest.MonkeyPatch, str, float], None]] = {
    **{
        name: lambda patch, code, times, name=name: patch.setattr(  # type: ignore[misc]
            store_disk.os, name, failing(getattr(os, name), code, times)
        )
        for name in ("open", "replace", "fstat", "stat", "utime", "scandir", "unlink")
    },
    "close": lambda patch, code, times: patch.setattr(
        store_disk, "open", closing(builtins.open, code, times), raising=False
    ),
}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("place", PLACES)
def test_an_error_that_stays_costs_the_store_only(
    place: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel runs, at once, and all that is said is a KernelStoreWarning or two; nothing is left half written."""
    KernelStore(tmp_path).get(numbered(2))
    os.utime(object_file(KernelStore(tmp_path), numbered(2)), (1, 1))  # long ago: `utime` is called, too
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        PLACES[place](patch, code, float("inf"))
        began = time.monotonic()
        store = KernelStore(tmp_path, max_bytes=8)  # each write looks for entries to delete
        assert run_numbered(store.get(numbered(2))) == 2 and run_numbered(store.get(KERNEL)) == 1
        assert time.monotonic() - began < 60
    assert {w.category for w in told} <= {KernelStoreWarning} and len(told) <= 4, [str(w.message) for w in told]
    if place != "unlink":
        assert not list(tmp_path.glob("*.tmp"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = KernelStore(tmp_path)
        assert run_numbered(again.get(numbered(2))) == 2 and run_numbered(again.get(KERNEL)) == 1


@pytest.mark.parametrize(
    ("place", "code"),
    [("replace", "ESTALE"), ("replace", "ENOENT"), ("open", "ESTALE"), ("fstat", "ESTALE"), ("stat", "ESTALE"),
     ("close", "ESTALE")],
)  # fmt: skip
def test_what_passes_is_not_told(place: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine has just replaced a file or the folder: the second try finds the new one."""
    KernelStore(tmp_path).get(numbered(2))
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        PLACES[place](patch, code, 1)
        store = KernelStore(tmp_path)
        store.get_many([numbered(2), KERNEL])
        assert store.statistics.compiled == 1
    again = KernelStore(tmp_path)
    again.get(KERNEL)
    assert again.statistics.loaded_from_disk == 1 and not list(tmp_path.glob("*.tmp"))


def test_an_answer_that_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server renamed the file, and the client, which asked again, hears that there is none."""
    real, lost = os.replace, [True]

    def replace(source: Any, target: Any) -> None:
        real(source, target)
        if lost and lost.pop():
            raise FileNotFoundError(errno.ENOENT, "lost")

    monkeypatch.setattr(store_disk.os, "replace", replace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelStore(tmp_path).get(KERNEL)
    again = KernelStore(tmp_path)
    assert run_numbered(again.get(KERNEL)) == 1 and again.statistics.loaded_from_disk == 1


@pytest.mark.parametrize("days", [-400, -2, 2, 400])
def test_a_clock_that_is_wrong(days: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are found; a writer whose file another machine believes to be old and deletes writes it again."""
    KernelStore(tmp_path).get(numbered(2))
    now, real, deleted = time.time, os.replace, []

    def replace(source: Any, target: Any) -> None:
        if not deleted:
            deleted.append(source)
            os.unlink(source)
        real(source, target)

    monkeypatch.setattr(store_disk.time, "time", lambda: now() + days * 86400)
    monkeypatch.setattr(store_disk.os, "replace", replace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = KernelStore(tmp_path)
        store.get_many([numbered(2), KERNEL])
    assert (store.statistics.loaded_from_disk, store.statistics.compiled) == (1, 1) and deleted
    assert object_file(store, KERNEL).exists() and not list(tmp_path.glob("*.tmp"))


def test_files_of_the_network_file_system_stay(tmp_path: Path) -> None:
    """`.nfs...` is a deleted file that some process still has open."""
    hidden = tmp_path / ".nfs00000000012ab3f400000001"
    hidden.write_bytes(b"open elsewhere" * 1000)
    os.utime(hidden, (1, 1))
    store = KernelStore(tmp_path, max_bytes=8)
    assert run_numbered(store.get(KERNEL)) == 1 and hidden.exists()


KILLED = """
import os, sys
from hloom.numba_backend.runtime import store_disk
from hloom.numba_backend.runtime.store import KernelStore
from support.runtime_kernels import numbered
real = os.replace
def replace(source, target):
    if str(target).endswith(".o"):
        os.kill(os.getpid(), 9)
    real(source, target)
store_disk.os.replace = replace
KernelStore(sys.argv[1]).get(numbered(1))
"""


def test_a_process_that_is_killed_while_it_writes(root: Path, tmp_path: Path) -> None:
    given = {**os.environ, "PYTHONPATH": f"{root / 'tests'}{os.pathsep}{root}"}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], env=given, timeout=120, check=False)
    assert done.returncode in (-9, 9)  # on Windows a process ends with the number
    assert len(list(tmp_path.glob("*.o.*.tmp"))) == 1 and not list(tmp_path.glob("*.o"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = KernelStore(tmp_path)
        assert run_numbered(store.get(KERNEL)) == 1 and object_file(store, KERNEL).exists()


def test_machines_of_two_kinds_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has entries of its own, of kernels and of programs: no machine runs instructions that it lacks."""
    real = store_module.cpu_description()
    assert real is not None
    kinds = {"this": real, "older": real.replace(" avx2", ""), "other": f"{real}\nmodel: 1"}
    kinds = {name: text for name, text in kinds.items() if name == "this" or text != real}
    objects, programs = [], set()
    for text in kinds.values():
        store_module.environment_description.cache_clear()
        stored_programs.environment_key.cache_clear()
        monkeypatch.setattr(store_module, "cpu_description", lambda text=text: text)
        first, second = KernelStore(tmp_path), KernelStore(tmp_path)
        first.get(KERNEL)
        second.get(KERNEL)
        assert (first.statistics.compiled, second.statistics.loaded_from_disk) == (1, 1), text
        objects.append(object_file(first, KERNEL))
        programs.add(stored_programs.environment_key())
    assert len(kinds) >= 2 and len(set(objects)) == len(programs) == len(kinds)
    assert all(path.exists() for path in objects)


def test_the_store_takes_no_locks(root: Path) -> None:
    """Advisory locks fail, or hang, on many network file systems."""
    text = Path(store_disk.__file__).read_text()
    assert not any(word in text for word in ("flock", "lockf", "fcntl", "O_EXLOCK", "mmap"))


@pytest.mark.slow
def test_processes_share_a_folder_that_fails_now_and_then(root: Path, tmp_path: Path) -> None:
    """Four processes, each with such errors in one call of twenty, one of them killed in the middle."""
    seconds = 15
    command = [sys.executable, "-m", "support.soak_store", "network", str(tmp_path), str(seconds)]
    given = {**os.environ, "PYTHONPATH": str(root)}
    workers = [
        subprocess.Popen([*command, str(seed)], cwd=root / "tests", env=given, stdout=subprocess.PIPE, text=True)
        for seed in range(5)
    ]
    time.sleep(seconds / 2)
    workers[-1].kill()
    numbers = []
    for worker in workers:
        out, _ = worker.communicate(timeout=seconds + 90)
        if worker is not workers[-1]:
            assert worker.returncode == 0
            numbers.append([int(word) for word in out.split()])
    compiled, loaded, told = (sum(column) for column in zip(*numbers))
    assert compiled > 20 and loaded > 20 and told > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelStore(tmp_path).get_many([numbered(value) for value in range(5)])
