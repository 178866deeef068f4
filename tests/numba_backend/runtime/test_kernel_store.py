"""The kernel store: memory, disk, and every failure of a disk."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import socket
import stat
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hloom.hlo.system import posix, system
from hloom.numba_backend.runtime import loader, store_disk
from hloom.numba_backend.runtime.errors import KernelCompilationError, KernelStoreWarning
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.loader import link
from hloom.numba_backend.runtime.store import DIGEST, PROGRAM, SPEED, TUNING, KernelStore, default_folder

from support import spawned
from support.runtime_kernels import ADD, numbered, object_file, python, run_numbered

needs_modes = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have neither owners nor modes")

LOAD = """
import sys
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.loader import link
from hloom.numba_backend.runtime.store import KernelStore
store = KernelStore(sys.argv[1])
parameters = (("pointer", "f32"),) * 3
store.get(KernelSource("add", sys.argv[2], parameters))
imported = (name in sys.modules for name in ("numba", "llvmlite"))
print(store.statistics.compiled, store.statistics.loaded_from_disk, *imported)
"""


def test_memory_then_disk(tmp_path: Path) -> None:
    store = KernelStore(tmp_path / "store")
    address = store.get(ADD)
    assert store.get(ADD) == address
    assert (store.statistics.compiled, store.statistics.found_in_memory) == (1, 1)
    again = KernelStore(tmp_path / "store")
    assert again.get(ADD)
    assert (again.statistics.compiled, again.statistics.loaded_from_disk) == (0, 1)


def test_a_stored_kernel_needs_no_compiler(tmp_path: Path) -> None:
    assert python(LOAD, str(tmp_path), ADD.source).split() == ["1", "0", "False", "True"]
    with_llvm = str(link("x", b"") is None and not loader.LINKS)
    assert python(LOAD, str(tmp_path), ADD.source).split() == ["0", "1", "False", with_llvm]


def test_entries_without_an_image_are_loaded_by_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "LINKS", False)
    assert KernelStore(tmp_path).get_many([ADD, numbered(30)])
    again = KernelStore(tmp_path)
    assert again.get_many([ADD, numbered(30)]) and again.statistics.loaded_from_disk == 2


def test_the_folder_is_private_and_its_sources_are_readable(tmp_path: Path) -> None:
    store = KernelStore(tmp_path / "a" / "store")
    store.get(ADD)
    assert store.folder is not None
    assert system.name == "windows" or store.folder.stat().st_mode & 0o777 == 0o700
    text = (store.folder / f"{store.key(ADD)}.py").read_text()
    assert text.startswith("# kernel add(pointer f32, pointer f32, pointer f32)\n# llvmlite ") and ADD.source in text
    assert object_file(store, ADD).read_bytes()[:4] == b"\x7fELF"
    assert sorted(path.suffix for path in store.folder.iterdir()) == [".digest", ".o", ".py"]


def truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    return data[:700] + bytes([data[700] ^ 1]) + data[701:]


CORRUPTIONS = {
    "truncated": truncate, "one bit flipped": flip, "empty": lambda data: b"", "text": lambda data: b"hello\n" * 100,
    "too long": lambda data: data + b"\0", "seal cut": lambda data: data[:-1],
}  # fmt: skip


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_a_damaged_entry_is_compiled_again_and_told_once(corruption: str, tmp_path: Path) -> None:
    KernelStore(tmp_path).get(ADD)
    path = object_file(KernelStore(tmp_path), ADD)
    good = path.read_bytes()
    path.write_bytes(CORRUPTIONS[corruption](good))
    store = KernelStore(tmp_path)
    with pytest.warns(KernelStoreWarning, match="damaged") as told:
        assert store.get(ADD)
    assert len(told) == 1 and store.statistics.compiled == 1
    assert path.read_bytes() == good
    repaired = KernelStore(tmp_path)
    repaired.get(ADD)
    assert repaired.statistics.loaded_from_disk == 1


def test_an_entry_under_a_foreign_key_is_not_loaded(tmp_path: Path) -> None:
    store = KernelStore(tmp_path)
    store.get(ADD)
    object_file(store, numbered(1)).write_bytes(object_file(store, ADD).read_bytes())
    with pytest.warns(KernelStoreWarning, match="damaged"):
        KernelStore(tmp_path).get(numbered(1))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def socket_of(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(path.name)
    finally:
        os.chdir(here)


def link_to_it(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def writable(path: Path) -> None:
    link_to_it(path)
    path.unlink()
    path.with_suffix(".real").rename(path)
    path.chmod(0o606)


IMPOSTORS = {pipe: "plain file", socket_of: "could not be read", link_to_it: "could not be read",
             endless: "could not be read", device: "plain file", huge: "more than any kernel",
             writable: "writable by others"}  # fmt: skip


@pytest.mark.parametrize("impostor", IMPOSTORS if hasattr(os, "geteuid") else [huge])
def test_what_is_no_entry_is_neither_waited_for_nor_read(impostor: Callable[[Path], None], tmp_path: Path) -> None:
    KernelStore(tmp_path).get(ADD)
    path = object_file(KernelStore(tmp_path), ADD)
    if impostor not in (link_to_it, writable):
        path.unlink()
    impostor(path)
    store = KernelStore(tmp_path)
    started = time.monotonic()
    with pytest.warns(KernelStoreWarning, match=IMPOSTORS[impostor]) as told:
        assert store.get(ADD)
    assert len(told) == 1 and store.statistics.compiled == 1 and time.monotonic() - started < 20
    again = KernelStore(tmp_path)
    again.get(ADD)
    assert again.statistics.loaded_from_disk == 1


@needs_modes
@pytest.mark.parametrize(("mode", "refused"), [(0o755, False), (0o757, True), (0o1777, False), (0o775, True)])
def test_a_folder_above_that_others_can_write_to(
    mode: int, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posix, "is_own_group", lambda number: False)
    (tmp_path / "above").mkdir()
    (tmp_path / "above").chmod(mode)
    store = KernelStore(tmp_path / "above" / "between" / "store")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        store.get(ADD)
        store.get(numbered(40))
    assert len(told) == refused and (not refused or "put another folder" in str(told[0].message))
    assert len(list((tmp_path / "above").rglob("*.o"))) == (0 if refused else 2)
    if refused:
        (tmp_path / "above" / "between").chmod(0o777)
        link = tmp_path / "link"  # the real folders count
        link.symlink_to(tmp_path / "above" / "between" / "store")
        with pytest.warns(KernelStoreWarning, match="put another folder"):
            KernelStore(link).get(ADD)


@needs_modes
def test_the_group_of_one_user_counts_as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    user = pwd.struct_passwd(("ann", "x", 1001, 1001, "", "/home/ann", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda number: user)
    for name, number, members, own in (
        ("ann", 1001, [], True), ("ann", 1001, ["ann"], True), ("ann", 1001, ["bob"], False),
        ("staff", 1001, [], False), ("ann", 50, [], False),
    ):  # fmt: skip
        found = grp.struct_group((name, "x", number, members))
        monkeypatch.setattr(grp, "getgrgid", lambda _, found=found: found)
        assert posix.is_own_group(number) is own, (name, number, members)


@needs_modes
def test_new_folders_are_private_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        KernelStore(tmp_path / "a" / "b" / "c").get(ADD)
    finally:
        os.umask(before)
    for path in (tmp_path / "a").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_folder_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    store = KernelStore(tmp_path / "store")
    store.get(ADD)
    shutil.rmtree(tmp_path / "store")
    store.get(numbered(41))
    assert object_file(store, numbered(41)).exists()


def test_what_a_killed_writer_left_is_deleted(tmp_path: Path) -> None:
    store = KernelStore(tmp_path, max_bytes=80_000)
    store.get(ADD)
    old, new = (tmp_path / f"{64 * name}.o.{16 * name}.tmp" for name in "ab")
    for path in (old, new):
        path.write_bytes(b"part")
    os.utime(old, (1, 1))
    for value in range(42, 50):
        store.get(numbered(value))
    assert not old.exists() and new.exists()


def test_an_interrupt_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store_disk.os, "replace", interrupt)
    store = KernelStore(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        store.get(ADD)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    assert store.get(ADD) and store.get(ADD)


@pytest.mark.parametrize("says", [IsADirectoryError, PermissionError], ids=["POSIX", "Windows"])
def test_a_folder_in_place_of_an_entry(tmp_path: Path, says: type[OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def replace_files(source: Path, target: Path) -> None:
        if target.is_dir():
            raise says
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_files)
    store = KernelStore(tmp_path)
    object_file(store, ADD).mkdir()
    with pytest.warns(KernelStoreWarning) as told:
        assert store.get(ADD)
    assert len(told) == 2  # it can neither be read nor replaced
    store.get_many([numbered(2), ADD])
    assert object_file(store, numbered(2)).is_file()


@needs_modes
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_can_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    KernelStore(tmp_path / "s").get(ADD)
    (tmp_path / "s").chmod(mode)
    store = KernelStore(tmp_path / "s")
    with pytest.warns(KernelStoreWarning, match="writable by others") as told:
        store.get(ADD)
        store.get(numbered(3))
    assert len(told) == 1 and store.statistics.compiled == 2
    assert len(list((tmp_path / "s").glob("*.o"))) == 1


@needs_modes
def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_disk.os, "geteuid", lambda: os.getuid() + 1)
    store = KernelStore(tmp_path)
    with pytest.warns(KernelStoreWarning, match="another user"):
        store.get(ADD)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "store"):
        store = KernelStore(folder)
        with pytest.warns(KernelStoreWarning) as told:
            assert store.get_many([ADD, numbered(4)])
            store.get(numbered(5))
        assert len(told) == 1


@pytest.mark.parametrize(("code", "says"), [(28, "is full"), (30, "cannot be written")])
def test_a_full_or_read_only_folder(code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(store_disk.os, "replace", refuse)
    store = KernelStore(tmp_path)
    with pytest.warns(KernelStoreWarning, match=says) as told:
        store.get(ADD)
        store.get(numbered(6))
    assert len(told) == 1 and store.statistics.compiled == 2
    assert not list(tmp_path.iterdir())


def test_a_spawned_process_uses_the_store(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert [pool.apply(spawned.compiled_in, (str(tmp_path),)) for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("tries", [0, 1, 3, 100])
def test_an_entry_that_another_process_has_open(tries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows it cannot be replaced as long. It stays, and the store goes on to write others."""
    monkeypatch.setattr(type(system), "locks_open_files", True)
    monkeypatch.setattr(store_disk, "_PAUSES", (0.0, 0.0, 0.0))
    replace, refused = os.replace, []

    def replace_unless_open(source: Path, target: Path) -> None:
        if target.exists() and target.suffix == ".o" and len(refused) < tries:
            refused.append(target)
            raise PermissionError(13, "Access is denied", str(target))
        replace(source, target)

    monkeypatch.setattr(store_disk.os, "replace", replace_unless_open)
    first, second = KernelStore(tmp_path), KernelStore(tmp_path)
    first.get(ADD)
    object_file(first, ADD).write_bytes(b"damaged")
    with pytest.warns(KernelStoreWarning, match="damaged") as told:
        assert second.get(ADD)
    assert len(told) == 1 and len(refused) == min(tries, 4)
    assert (object_file(first, ADD).read_bytes() == b"damaged") == (tries > 3)
    assert second.get(numbered(7)) and object_file(second, numbered(7)).is_file()
    assert not list(tmp_path.glob("*.tmp"))


def test_a_folder_that_refuses_is_told_where_files_are_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Access is denied")

    monkeypatch.setattr(type(system), "locks_open_files", True)
    monkeypatch.setattr(store_disk.os, "replace", refuse)
    with pytest.warns(KernelStoreWarning, match="cannot be written"):
        assert KernelStore(tmp_path).get(ADD)
    assert not list(tmp_path.iterdir())


def test_warnings_as_errors_leave_the_kernel_usable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = KernelStore(tmp_path / "file")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KernelStoreWarning, match=r"the kernel store .* cannot be used"):
            store.get(ADD)
        assert store.get(ADD)
    assert store.statistics.compiled == 1


def test_no_disk() -> None:
    store = KernelStore(None)
    assert store.get_many([ADD, ADD, numbered(7)])[0] == store.get(ADD)
    assert store.folder is None and store.statistics.compiled == 2


only_linux = pytest.mark.skipif(sys.platform != "linux", reason="the folder that Linux has for caches")


@only_linux
@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HLOOM_CACHE_DIR": ""}, None),
        ({"HLOOM_CACHE_DIR": "off"}, None),
        ({"HLOOM_CACHE_DIR": "/x/y"}, Path("/x/y")),
        ({"XDG_CACHE_HOME": "/c"}, Path("/c/hloom")),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, Path("/h/.cache/hloom")),
        ({"HOME": "/h"}, Path("/h/.cache/hloom")),
        ({"HLOOM_CACHE_DIR": "~/k", "HOME": "/h"}, Path("/h/k")),
        ({"HLOOM_CACHE_DIR": "here"}, Path.cwd() / "here"),
    ],
)
def test_default_folder(environment: dict[str, str], folder: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HLOOM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_folder() == (None if folder is None else str(folder))


@only_linux
def test_a_user_without_a_home_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HLOOM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does for a user without an entry
    assert default_folder() is None


def test_threads_compile_a_kernel_once(tmp_path: Path) -> None:
    store = KernelStore(tmp_path)
    start = threading.Barrier(4)

    def get(_: int) -> list[int]:
        start.wait()
        return store.get_many([numbered(8), ADD, numbered(9)])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(get, range(4)))
    assert results == results[:1] * 4
    assert store.statistics.compiled == 3


def test_processes_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda _: python(LOAD, str(tmp_path), ADD.source).split(), range(3)))
    assert all(int(compiled) + int(loaded) == 1 for compiled, loaded, *_ in said)
    assert python(LOAD, str(tmp_path), ADD.source).split()[:2] == ["0", "1"]
    assert not list(tmp_path.glob("*.tmp"))


def test_one_bad_kernel_does_not_spoil_the_store(tmp_path: Path) -> None:
    store = KernelStore(tmp_path)
    with pytest.raises(KernelCompilationError, match="the source uses nonsense"):
        store.get_many([ADD, KernelSource("bad", "def bad(lo, hi):\n    nonsense()\n", ())])
    assert store.get_many([ADD, numbered(10)])


def test_the_folder_is_bounded(tmp_path: Path) -> None:
    store = KernelStore(tmp_path, max_bytes=6000)
    for value in range(20, 30):
        store.get(numbered(value))
        os.utime(object_file(store, numbered(value)), (value, value))
    used = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert used <= 6000 + 3000
    assert object_file(store, numbered(29)).exists() and not object_file(store, numbered(20)).exists()


KEY, SUFFIX = "0a" * 32, "0123456789abcdef"
OWN = [f"{KEY}{end}" for end in (".o", ".py", PROGRAM, DIGEST, TUNING, SPEED)]
OF_USERS = [
    "my_source.py", "library.o", "results.tmp", "model.program", "notes.tuning", "1.speed", "state.digest",
    f"{KEY}", f"{KEY[1:]}.o", f"{KEY}.o.tmp", f"{KEY}.o.txt", f"{KEY.upper()}.o", f"x{KEY}.o", f"{KEY}.o\n",
    f"{KEY}-2.program", f"{KEY}-.tuning", f"{KEY}.o.{SUFFIX}", f"{SUFFIX}.tmp", f"{KEY}.json",
]  # fmt: skip


@pytest.mark.parametrize("name", [*OWN, f"{KEY}.o.{SUFFIX}.tmp", f"{KEY}.speed.{SUFFIX}.tmp", *OF_USERS])
def test_only_names_of_the_store_are_deleted(tmp_path: Path, name: str) -> None:
    if os.name == "nt" and "\n" in name:
        pytest.skip("a name that files cannot have there")
    (tmp_path / name).write_bytes(b"x" * 1000)
    (tmp_path / f"{KEY}.folder").mkdir()
    os.utime(tmp_path / name, (1e9, 1e9))
    store = KernelStore(tmp_path, max_bytes=2000)
    for number in range(4):
        store.keep_program(f"{number:064}", bytes(700))
    assert (tmp_path / name).exists() is (name in OF_USERS)
    assert (tmp_path / f"{KEY}.folder").exists()


def test_the_store_gives_no_other_names(tmp_path: Path) -> None:
    for end in (PROGRAM, DIGEST, TUNING, SPEED):
        KernelStore(tmp_path).keep(KEY, end, b"text")
        assert KernelStore(tmp_path).data(KEY, end) == b"text"
    with pytest.raises(AssertionError, match="notes"):
        KernelStore(tmp_path).keep("notes", TUNING, b"text")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_forked_child_uses_the_store(tmp_path: Path) -> None:
    code = """
import os, sys, threading, time, warnings
from hloom.numba_backend.runtime import store as store_module
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.store import KernelStore
store, holding = KernelStore(sys.argv[1]), threading.Event()
def hold():
    with store_module._lock:
        holding.set()
        time.sleep(0.2)
threading.Thread(target=hold).start()
holding.wait()
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if not child:
    store.get(KernelSource("k", "def k(lo, hi, x):\\n    x[0] = 1\\n", (("pointer", "f32"),)))
    os._exit(store.statistics.compiled)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert python(code, str(tmp_path)).split() == ["1"]


def test_code_that_nobody_uses_is_given_back(tmp_path: Path) -> None:
    """Code that is kept for a while is not given back; a kernel requested again works, from disk or compiled."""
    for folder in (None, tmp_path):
        store = KernelStore(folder)
        kernels = [numbered(100 + k) for k in range(3)]
        codes = store.codes(kernels)
        references = [weakref.ref(code) for code in codes]
        assert store.codes(kernels) == codes
        del codes
        gc.collect()
        assert store.codes(kernels)[1] is references[1]()
        assert store.release_unused() > 0
        gc.collect()
        assert [reference() for reference in references] == [None] * 3
        (again,) = store.codes(kernels[:1])
        assert run_numbered(again.address) == 100
        assert store.statistics.compiled == (3 if folder else 4)


def test_code_in_use_stays() -> None:
    store = KernelStore(None)
    (code,) = store.codes([numbered(200)])
    (stays,) = store.get_many([numbered(201)])
    store.release_unused()
    gc.collect()
    assert (run_numbered(code.address), run_numbered(stays)) == (200, 201)
    assert store.get(numbered(201)) == stays


def test_unused_code_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    store = KernelStore(None)
    first = weakref.ref(*store.codes([numbered(300)]))
    monkeypatch.setattr("hloom.numba_backend.runtime.store.MAX_UNUSED_CODE", 1000)
    for k in range(301, 320):
        last = weakref.ref(*store.codes([numbered(k)]))
    gc.collect()
    assert first() is None
    assert last() is not None
