"""The kernel store's folder. A file appears whole or not at all, and is used only if its content is what was written.

`<key>.o` is a kernel's object file. After the object's own bytes, which linkers and disassemblers ignore there, come
the object's linked image (loader.py) and a checksum over everything and the key. `<key>.py` is the kernel's source, for
people.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import struct
import threading
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from .errors import KernelStoreWarning
from .kernel import KernelSource
from .loader import Image

_MAGIC = b"hloom-1\n"
_SEAL_BYTES = hashlib.sha256().digest_size + len(_MAGIC)
_LENGTHS = struct.Struct("<QQ")
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled kernel: its object file, and its image, if there is one."""

    object_code: bytes
    image: Image | None

    def to_bytes(self) -> bytes:
        """Object, image, and their lengths."""
        image = b"" if self.image is None else self.image.to_bytes()
        return self.object_code + image + _LENGTHS.pack(len(self.object_code), len(image))

    @staticmethod
    def from_bytes(data: bytes) -> Entry:
        """The entry from the bytes of `to_bytes`."""
        code, image = _LENGTHS.unpack_from(data, len(data) - _LENGTHS.size)
        return Entry(data[:code], Image.from_bytes(data[code : code + image]) if image else None)


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
        if not self._usable():
            return None
        path = self.folder / f"{key}.o"
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._problem(f"the stored kernel {path} could not be read ({error}); compiled it again")
            return None
        if data[-_SEAL_BYTES:] != _seal(key, data[:-_SEAL_BYTES]):
            self._problem(f"the stored kernel {path} is damaged; compiled it again")
            return None
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):
                os.utime(path)
        return Entry.from_bytes(data[:-_SEAL_BYTES])

    def write(self, key: str, kernel: KernelSource, entry: Entry) -> None:
        """Store an entry: whole or not at all, also when other processes use the folder."""
        if not self._usable() or self._state == "readable":
            return
        target = import_module(".llvm_backend", __package__).target_description()
        header = f"# {kernel.convention} {kernel.name}({kernel.signature})\n# {target}\n"
        try:
            self._replace(f"{key}.py", (header + kernel.source).encode())
            data = entry.to_bytes()
            self._replace(f"{key}.o", data + _seal(key, data))
        except OSError as error:
            self._state = "readable"
            what = "is full" if error.errno == errno.ENOSPC else f"cannot be written to ({error})"
            self._problem(f"the kernel store {self.folder} {what}; new kernels are kept in memory only")

    def evict(self) -> None:
        """Once enough has been written, delete the entries unused for longest, down to three quarters of the limit."""
        if self._written_bytes < self._max_bytes // 8:
            return
        self._written_bytes = 0
        try:
            entries = []
            for entry in os.scandir(self.folder):
                if entry.name.endswith((".o", ".py", ".tmp")):
                    status = entry.stat(follow_symlinks=False)
                    entries.append((status.st_mtime, status.st_size, entry.path))
        except OSError:
            return
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
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.stat(self.folder)
        except OSError as error:
            self._problem(f"the kernel store {self.folder} cannot be used ({error}); kernels are kept in memory only")
            return "refused"
        if not stat.S_ISDIR(status.st_mode):
            self._problem(f"the kernel store {self.folder} is not a folder; kernels are kept in memory only")
            return "refused"
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self._problem(
                f"the kernel store {self.folder} belongs to another user or is writable by others, so code from it is "
                "not trusted; kernels are kept in memory only. Make it yours with mode 0700, or set HLOOM_CACHE_DIR"
            )
            return "refused"
        return "usable"

    def _replace(self, name: str, data: bytes) -> None:
        temporary = self.folder / f"{name}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, self.folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._written_bytes += len(data)


def _seal(key: str, data: bytes) -> bytes:
    """The end of an entry's file: a checksum that these bytes were stored, whole, under this key."""
    return hashlib.sha256(key.encode() + data).digest() + _MAGIC
