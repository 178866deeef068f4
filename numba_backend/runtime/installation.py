"""Identify this installation of the library: its part of the keys of stored programs and kernels.

A program depends on every file of `hlo` and `numba_backend`. `installation()` names their state without reading them:
their folder, and for each file the size and the times of its last modification and its last change. A copy, a package
manager or an archive may set the modification time as it likes (`cp -p`, SOURCE_DATE_EPOCH). The system sets the change
time whenever a file is written, replaced or renamed. If the change time is a whole second, the content counts instead,
since a file system without such times (a read-only image) shows another time there.

A kernel depends on its text and on the compiler, so that an edit of a pass compiles no kernel anew. `compiler_digest()`
is a hash of the files that the store imports, directly or not, as their own import statements say. It is computed once
for each state of the installation, and kept in the store.

A process may outlive the files that it began with, if the library is upgraded meanwhile. As soon as it imports a file
that has changed, parts of it are of the old version and parts of the new one, and it stores nothing and takes nothing
from the store.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ...hlo.support.loading import BEGAN
from .kernel import digest

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
"""The folder with `hlo` and `numba_backend`: the package, or the top level of a checkout."""
_SECOND = 1_000_000_000


@functools.cache
def installation() -> str | None:
    """The state of the library's files. None where they cannot be seen, as in a zip archive, and where one of them has
    changed since this process began to import them."""
    _imported.update(sys.modules)
    return _state(_found)


def is_unchanged() -> bool:
    """True if each module of the library is of the files as `installation()` found them. Ask before anything is stored,
    after all imports that it took; a second call looks only at files that were imported since."""
    global _looked
    loaded = len(sys.modules)
    if loaded != _looked.modules:
        same = _looked.same and installation() is not None and all(map(_is_as_found, _imported_since()))
        _looked = _Looked(loaded, same)
    return _looked.same


class _Looked(NamedTuple):
    modules: int
    same: bool


_looked = _Looked(0, True)
_found: dict[str, str] = {}
"""The state of each file that `installation()` found, by its path."""
_imported: set[str] = set()
"""The modules that were imported before that, or that were looked at since."""
_ROOT = __name__.removesuffix("numba_backend.runtime.installation")
_OWN = (f"{_ROOT}hlo.", f"{_ROOT}numba_backend.")
"""The beginnings of the names of modules in these folders."""


def _imported_since() -> list[str]:
    found = [name for name in [*sys.modules] if name not in _imported and name.startswith(_OWN)]
    _imported.update(found)
    return found


def _is_as_found(module: str) -> bool:
    """True if the file of a module is the one that `installation()` found. One that was imported before may change."""
    if getattr(sys.modules.get(module), "__file__", None) is None:
        return True  # it has none
    top, *parts = module.removeprefix(_ROOT).split(".")
    stem = os.sep.join([_folder(top), *parts])
    for path in (f"{stem}.py", f"{stem}{os.sep}__init__.py"):
        if path in _found:
            try:
                return _file_state(path, os.stat(path)) == _found[path]
            except OSError:
                return False
    return False


@functools.cache
def _folder(name: str) -> str:
    return os.path.realpath(os.path.join(_PACKAGE, name))


def _state(files: dict[str, str] | None = None) -> str | None:
    found: list[str] = []
    try:
        for name in ("hlo", "numba_backend"):
            folder = os.path.realpath(os.path.join(_PACKAGE, name))
            found.append(folder)
            if _look(folder, found, files) > BEGAN:
                return None
    except OSError:
        return None
    return digest(found)


def _look(folder: str, found: list[str], files: dict[str, str] | None = None) -> int:
    """Add the state of the files in a folder to `found`, and by their paths to `files`; returns the latest change time,
    in nanoseconds."""
    latest = 0
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = entry.name
            if name.endswith(".py"):
                status = entry.stat()
                latest = max(latest, status.st_ctime_ns)
                state = _file_state(entry.path, status)
                found.append(f"{name} {state}")
                if files is not None:
                    files[entry.path] = state
            elif "." not in name and name != "__pycache__" and entry.is_dir():
                found.append(name)
                latest = max(latest, _look(entry.path, found, files))
                found.append("..")
    return latest


def _file_state(path: str, status: os.stat_result) -> str:
    changed = status.st_ctime_ns
    state = f"{status.st_size} {status.st_mtime_ns} {changed}"
    return state if changed % _SECOND else f"{state}\n{_text(path)}"


_STATEMENT = re.compile(r"from (\.[\w.]*) import (\([^)]*\)|.*)")
_CALL = re.compile(r"import_module\(([^()]*)\)")
_NAMED = re.compile(r'"(\.[\w.]+)"')


def compiler_digest() -> str:
    """A hash of the files that decide a kernel's machine code, given its text."""
    found = _closure(os.path.join(_PACKAGE, "numba_backend", "runtime", "store.py"))
    return digest([part for path in sorted(found) for part in (os.path.relpath(path, _PACKAGE), found[path])])


def _closure(start: str) -> dict[str, str]:
    """A file of this library and those that it imports, directly or not, when it is imported or later, with their
    texts. The `__init__.py` of the folders on the way count only where something is imported from them."""
    found: dict[str, str] = {}
    left = [start]
    while left:
        path = left.pop()
        if path not in found:
            found[path] = _text(path)
            left += _imports(path, found[path])
    return found


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _imports(path: str, text: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    for module, names in _STATEMENT.findall(text):
        yield from _files(folder, module, names)
    for called in _CALL.findall(text):
        for module in _NAMED.findall(called):
            yield from _files(folder, module, "")


def _files(folder: str, module: str, names: str) -> Iterator[str]:
    """The files of a module that is named relative to a folder, and of its parts of these names."""
    steps = module.lstrip(".")
    up = len(module) - len(steps) - 1
    base = os.path.normpath(os.path.join(folder, *[".."] * up, *steps.split(".")))
    if os.path.isfile(f"{base}.py"):
        yield f"{base}.py"
        return
    for part in ("", *re.findall(r"\w+", names)):
        place = os.path.join(base, part)
        yield from filter(os.path.isfile, (f"{place}.py", os.path.join(place, "__init__.py")))
