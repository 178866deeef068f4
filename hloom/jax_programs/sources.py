"""The modules of `jax._src`, from one record: which of their names JAX publishes, and where (`sources.txt`).

A public module of JAX takes its names from `jax._src`; here it is the other way round. `jax._src.lax.lax.add_p` is
`hloom.lax.add_p`, because JAX has one object for both names. Names that JAX keeps to itself come from two places:

    declared.py     the same thing in hloom, under another name
    src/            functions that are not in hloom otherwise, a file for a module

All others are there by name alone: the object raises an error at its use (`internal.py`). A library that imports such a
name and does not need it works, as it would with JAX.

`tools/jax_sources.py` makes the record. It is read when `jax._src` is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar

from ..hlo.support.loading import load
from .declared import DECLARED
from .internal import Internal, explanation, internal
from .misses import MISSES

_PACKAGE = __name__.partition(".")[0]
_RECORD = Path(__file__).with_name("sources.txt")


class Unknown:
    """In place of a name that JAX does not have."""


_NOTHING = Unknown()
NotHere: tuple[type[Unknown], type[Internal]] = (Unknown, Internal)
"""The types of results of `find` that are no objects of JAX's meaning."""


class Source(ModuleType):
    """A module of JAX's inside. Its name without `jax._src.` is its path, "" for `jax._src`."""

    def __init__(self, path: str) -> None:
        super().__init__(f"jax._src.{path}".rstrip("."))
        self.__path__: list[str] = []

    @property
    def _hloom_path(self) -> str:
        return self.__name__.removeprefix("jax._src").lstrip(".")

    def __getattr__(self, name: str) -> Any:
        path = self._hloom_path
        if name == "__all__":
            return [each for each in names(path) if not each.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = find(path, name)
        if isinstance(found, Internal):  # asked for again, and counted again
            MISSES.record(self.__name__, name, in_name_only=True)
            return found
        if found is _NOTHING:
            MISSES.record(self.__name__, name)
            raise AttributeError(f"JAX has no {self.__name__}.{name}: {_PACKAGE} follows the names of {_record()[0]}")
        self.__dict__[name] = found
        return found

    def _hloom_says(self, name: str) -> str:
        """What the report says of a name that is not here."""
        where, _, other = names(self._hloom_path).get(name, "").partition(" ")
        if not where:
            return f"JAX has no {self.__name__}.{name}"
        return explanation(f"{self.__name__}.{name}", "" if where[0] in "*@-~" else _public(where, other))

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *names(self._hloom_path)})


def modules() -> list[str]:
    """The paths of all modules of `jax._src`."""
    return list(_record()[1])


def module(path: str) -> ModuleType | None:
    """The module `jax._src.PATH`; None: JAX has none."""
    if path and path not in _record()[1]:
        return None
    _own(path)  # what is there may depend on the import of the module
    return Source(path)


@cache
def find(path: str, name: str) -> Any:
    """The object that JAX has as `jax._src.PATH.NAME`: an `Internal` if there is none here."""
    for home in _own(path):
        if name in getattr(home, "__all__", ()):
            return getattr(home, name)
    declared = DECLARED.get(path, {}).get(name)
    if declared is not None:
        space, _, attribute = declared.partition(":")
        found: Any = load(f"{_PACKAGE}.{space}".rstrip("."))
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
        return found
    inner = f"{path}.{name}".lstrip(".")
    if inner in _record()[1]:
        return importlib.import_module(f"jax._src.{inner}")
    place = names(path).get(name)
    if place is None:
        return _NOTHING
    where, _, other = place.partition(" ")
    if where == "*":
        try:
            return importlib.import_module(other if other.startswith("jax") else f"jax._src.{other}")
        except ImportError:
            return internal(f"jax._src.{path}.{name}", "")
    if where == "~":
        return TypeVar(other)
    if where.startswith("@"):
        return find(where[1:], other)
    found = _published("" if where == "jax" else where, other) if where != "-" else _NOTHING
    return internal(f"jax._src.{path}.{name}", _public(where, other)) if found is _NOTHING else found


def _public(where: str, name: str) -> str:
    return "" if where == "-" else f"jax.{where}.{name}".replace("jax.jax.", "jax.")


def _published(space: str, name: str) -> Any:
    """The public object; nothing if hloom has no such name."""
    try:
        home = importlib.import_module(f"jax.{space}".rstrip("."))
    except ImportError:
        return _NOTHING
    if name not in getattr(home, "__all__", dir(home)):
        return _NOTHING
    return getattr(home, name)


def _own(path: str) -> list[ModuleType]:
    """The file in `src/` for a module."""
    name = f"{__package__}.src"
    found = load(name)
    for part in path.split("."):
        name = f"{name}.{part}"
        if not part or PathFinder.find_spec(name, found.__dict__.get("__path__", [])) is None:
            return []
        found = load(name)
    return [found]


@cache
def _record() -> tuple[str, dict[str, list[str]]]:
    """The version, and the lines of each module."""
    version, *lines = _RECORD.read_text(encoding="utf-8").splitlines()
    modules: dict[str, list[str]] = {}
    for line in lines:
        if line[0] != " ":
            current = modules[line] = []
        else:
            current.append(line)
    return version, modules


@cache
def names(path: str) -> Mapping[str, str]:
    """The names of a module, with where each is: a line's beginning in the record, and the name there."""
    found = {}
    where = ""
    for line in _record()[1].get(path, ()):
        words = line.split()
        if line[1] != " ":
            where = words.pop(0)[:-1]
        for word in words:
            name, _, other = word.partition("=")
            found[name] = f"{where} {other or name}"
    return MappingProxyType(found)
