"""The kernel store's folder. A file appears whole or not at all, and is used only if its content is unchanged.

`<key>.o` is a kernel's object file. After the object's own bytes, which linkers and disassemblers ignore there, come
the object's linked image (loader.py) and a checksum over everything and the key. `<key>.py` is the kernel's source, for
people. Others have such a checksum too: `<key>.program`, a whole program (stored_programs.py); `<key>.digest`, the hash
of the compiler's files for one state of the installation (installation.py); `<key>.tuning` (autotuning.py) and
`<key>.speed` (machine_speed.py), short texts. Files with other names are not the store's, and stay.

The code in the folder runs with this user's rights, and the checksum is no signature. So only this user and root are
trusted. The folder must belong to this user and be writable by no other. Every folder above it must belong to this user
or to root, and be writable by no other unless it is sticky (as /tmp is): a user who can write to it can replace our
folder by another one. A group may write to these folders if this user is its only member. An entry must be a plain file
of this user that no other can write to. Anything else with its name (a link, a pipe, a device, a folder) is neither
waited for nor read, and is replaced.

The folder may be on a network file system that several machines share. There are no locks, which such systems lack or
lose: a file is written under a random name that must be new, closed, and renamed, and the last writer of an entry wins.
Keys name the CPU, so that machines of another kind make entries of their own. If another machine replaces a file or the
folder at the same time, the system says ESTALE, or that the file is missing; then it is tried once more (NFS: RFC 8881,
sections 2.10.6 and 4.2). Times only say how long an entry was not used: a clock that is wrong costs entries at most.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from ...hlo.support.sha256 import sha256
from ...hlo.system import system
from .errors import KernelStoreWarning
from .kernel import KernelSource
from .loader import Entry

T = TypeVar("T")

_MAGIC = b"hloom-1\n"
_SEAL_BYTES = sha256().digest_size + len(_MAGIC)
_DAY = 86400.0
_PAUSES = (0.001, 0.01, 0.05)
"""Seconds between tries to replace a file that another process reads: it does so for a moment."""
_MOST_BYTES = 1 << 28
"""A larger file is no entry: the largest objects have a few MiB."""
_OWN_NAME = re.compile(r"[0-9a-f]{64}\.(o|py|program|digest|tuning|speed)(\.[0-9a-f]{16}\.tmp)?")
"""The names that the store gives to files. All other files in the folder belong to the user."""


class Disk:
    """The folder. No error of the disk is raised here; problems are collected, and `warn` reports them."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._state = "unknown"  # then "usable", "readable" or "refused"
        self._untold: list[str] = []
        self._written_bytes = 0

    def read(self, key: str) -> Entry | None:
        """The entry under `key`; None when there is none, or none that can be trusted."""
        data = self.read_data(key, ".o")
        return None if data is None else Entry.from_bytes(data)

    def read_data(self, key: str, suffix: str) -> bytes | None:
        """The bytes that `write_data` stored under `key`; None if there are none that can be trusted."""
        if not self._usable():
            return None
        path = self.folder / f"{key}{suffix}"
        try:
            status, data = _twice(lambda: _content(path), errno.ESTALE)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(f"{path} of the kernel store could not be read ({error}); it is made again")
            return None
        if data[-_SEAL_BYTES:] != _seal(key, data[:-_SEAL_BYTES]):
            self._problem(f"{path} of the kernel store is damaged; it is made again")
            return None
        self._used(path, status)
        return data[:-_SEAL_BYTES]

    def write_data(self, key: str, suffix: str, data: bytes) -> None:
        """Store some bytes: whole or not at all, also when other processes use the folder."""
        if self._usable() and self._state != "readable":
            self._write({f"{key}{suffix}": _sealed(key, data)})
            self.evict()

    def _used(self, path: Path, status: os.stat_result) -> None:
        """A file's time says when it was used last, to the day."""
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)

    def _write(self, files: dict[str, bytes]) -> None:
        try:
            for name, data in files.items():
                _twice(partial(self._replace, name, data), errno.ESTALE, errno.ENOENT)
        except (IsADirectoryError, NotADirectoryError, FileExistsError) as error:
            self._problem(f"{name} could not be stored in {self.folder} ({error}); it is kept in memory only")
        except OSError as error:
            self._state = "readable"
            full = "is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"cannot be written to ({error})"
            self._problem(f"the kernel store {self.folder} {full}; new kernels are kept in memory only")

    def write(self, key: str, kernel: KernelSource, entry: Entry) -> None:
        """Store an entry: whole or not at all, also when other processes use the folder."""
        if not self._usable() or self._state == "readable":
            return
        target = import_module(".llvm_backend", __package__).target_description()
        header = f"# {kernel.convention} {kernel.name}({kernel.signature})\n# {target}\n"
        text = (header + kernel.source).encode()
        self._write({f"{key}.py": text, f"{key}.o": _sealed(key, entry.to_bytes())})

    def evict(self) -> None:
        """Once enough has been written, delete the entries unused for longest, down to three quarters of the limit, and
        what writers left behind that did not end well."""
        if self._written_bytes < self._max_bytes // 8:
            return
        self._written_bytes = 0
        try:
            entries = []
            with os.scandir(self.folder) as there:
                for entry in there:
                    if _OWN_NAME.fullmatch(entry.name):
                        status = entry.stat(follow_symlinks=False)
                        entries.append((status.st_mtime, status.st_size, entry.path))
        except OSError:
            return
        long_ago = time.time() - _DAY
        for left in [left for left in entries if left[2].endswith(".tmp") and left[0] < long_ago]:
            entries.remove(left)
            with contextlib.suppress(OSError):
                os.unlink(left[2])
        total = sum(size for _, size, _ in entries)
        if total <= self._max_bytes:
            return
        for _, size, path in sorted(entries):
            if total <= self._max_bytes * 3 // 4:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size

    def warn(self) -> None:
        """Warn of the problems since the last call."""
        while self._untold:
            warnings.warn(self._untold.pop(0), KernelStoreWarning, stacklevel=4)

    def _problem(self, message: str) -> None:
        self._untold.append(message)

    def _usable(self) -> bool:
        if self._state == "unknown":
            self._state = self._examine()
        return self._state != "refused"

    def _examine(self) -> str:
        try:
            status, doubtful = _twice(self._look, errno.ESTALE)
        except OSError as error:
            self._problem(f"the kernel store {self.folder} cannot be used ({error}); kernels are kept in memory only")
            return "refused"
        if not stat.S_ISDIR(status.st_mode):
            self._problem(f"the kernel store {self.folder} is not a folder; kernels are kept in memory only")
            return "refused"
        if not system.is_private(self.folder, status):
            self._problem(
                f"the kernel store {self.folder} belongs to another user or is writable by others, so code from it is "
                "not trusted; kernels are kept in memory only. Make it yours with mode 0700, or set HLOOM_CACHE_DIR"
            )
            return "refused"
        if doubtful is not None:
            self._problem(
                f"the kernel store {self.folder} is not trusted: {doubtful} belongs to another user or is writable by "
                "others, who could put another folder in its place; kernels are kept in memory only. Change its owner "
                "or mode, or set HLOOM_CACHE_DIR"
            )
            return "refused"
        return "usable"

    def _look(self) -> tuple[os.stat_result, str | None]:
        """The folder, which is made if it is missing, and the first one above it that is not to be trusted."""
        _make_private(self.folder)
        return os.stat(self.folder), system.exposed_parent(self.folder)

    def _replace(self, name: str, data: bytes) -> None:
        # A process in another container may have the same number: hence the random name, which must be new.
        temporary = self.folder / f"{name}.{os.urandom(8).hex()}.tmp"
        assert _OWN_NAME.fullmatch(temporary.name), name  # or it would never be evicted
        try:
            try:
                descriptor = os.open(temporary, system.write_flags, 0o600)
            except FileNotFoundError:  # the cache was emptied, and the folder removed
                _make_private(self.folder)
                descriptor = os.open(temporary, system.write_flags, 0o600)
            with open(descriptor, "wb") as file:
                file.write(data)
            if not _moved(temporary, self.folder / name):
                os.unlink(temporary)
                return
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._written_bytes += len(data)


def _moved(temporary: Path, path: Path) -> bool:
    """Move a file to its name; False if a file with this name is there and stays open in another process. That file has
    the same content, or a later process makes it again."""
    for pause in (*_PAUSES, None) if system.locks_open_files else (None,):
        try:
            os.replace(temporary, path)
            return True
        except PermissionError as error:
            if path.is_dir():  # Windows says no more than that access is denied
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path)) from error
            if not system.locks_open_files or not path.is_file():
                raise
        if pause is not None:
            time.sleep(pause)
    return False


def _twice(action: Callable[[], T], *passing: int) -> T:
    """Do it, and once more if the system gives one of these error numbers."""
    try:
        return action()
    except OSError as error:
        if error.errno not in passing:
            raise
    return action()


def _content(path: Path) -> tuple[os.stat_result, bytes]:
    """The content of the file at `path`. OSError unless it is a plain file of this user, at once."""
    descriptor = os.open(path, system.read_flags)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a plain file")
        if not system.is_private(path, status):
            raise OSError("it belongs to another user or is writable by others")
        if status.st_size > _MOST_BYTES:
            raise OSError(f"it has {status.st_size} bytes, more than any kernel")
        return status, file.read(status.st_size)


def _make_private(folder: Path) -> None:
    """Make the folder and those above it that are missing, for this user only."""
    if folder != folder.parent and not folder.exists():
        _make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _sealed(key: str, data: bytes) -> bytes:
    return data + _seal(key, data)


def _seal(key: str, data: bytes) -> bytes:
    """The end of an entry's file: a checksum that these bytes were stored, whole, under this key."""
    return sha256(key.encode() + data).digest() + _MAGIC
