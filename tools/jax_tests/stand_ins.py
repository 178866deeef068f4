"""Stand-ins for the internal modules of JAX that its tests import.

`jax._src.lax.lax.foo` is `jax.lax.foo` where that exists: a name that JAX publishes under another path is the same
thing. A name that JAX keeps to itself can be imported; a test that uses it fails with `PrivateName`, so that it counts
as a failure with a reason of its own.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from hloom.hlo.errors import UnsupportedError

import hloom
from hloom.jax_programs import sources

from . import settings
from .checkout import HELPERS, MODULES, PUBLIC_HELPERS
from .internals import METHODS, PRIVATE, PUBLIC
from .private import Private

NAMES = json.loads((Path(__file__).resolve().parents[2] / "tests" / "data" / "jax_names.json").read_text())["names"]


def _spaces_near(path: str) -> list[str]:
    """Namespaces of JAX, those first that share most parts with the path of an internal module."""
    parts = path.split(".")
    return sorted(NAMES, key=lambda space: (-_shared(space.split("."), parts), len(space)))


def _shared(space: Sequence[str], parts: Sequence[str]) -> int:
    return sum(part in parts for part in space)


def find(path: str, name: str) -> Any:
    """hloom's object for `jax._src.PATH.NAME`."""
    if (path, name) in PRIVATE:
        return PRIVATE[path, name]
    published = [f"hloom.{space}".rstrip(".") for space in _spaces_near(path) if name in NAMES[space].split()]
    own = [f"hloom.{path}"] if path in NAMES else []
    found = sources.find(path, name)
    if not isinstance(found, sources.NotHere):
        return found
    for place in [*published, *own]:
        try:
            module = importlib.import_module(place)
        except (ImportError, UnsupportedError):
            continue
        if _has(module, name):
            return getattr(module, name)
    return Private(f"jax._src.{path}.{name}")


def _has(module: ModuleType, name: str) -> bool:
    if name in vars(module):
        return True
    if name not in getattr(module, "__all__", ()):
        return False
    try:
        getattr(module, name)
    except (AttributeError, ImportError, UnsupportedError):
        return False
    return True


class _StandIn(ModuleType):
    """An internal module of JAX."""

    def __init__(self, name: str, modules: frozenset[str]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" in self._modules:
            found = importlib.import_module(f"{self.__name__}.{name}")
        else:
            found = find(self.__name__.removeprefix("jax._src").lstrip("."), name)
        self.__dict__[name] = found
        return found


class _Loader(Loader):
    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        pass


class Finder(MetaPathFinder):
    """Finds the tests' helpers in `place`, stand-ins for other modules of `jax._src`, and `Private` for public modules
    that hloom lacks."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._modules = frozenset((place / MODULES).read_text().split())
        self._asking = False

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        first, *inner = name.split(".")
        if self._asking or first not in ("jax", "jaxlib", "hloom") or (inner[-1:] and inner[-1].startswith("__")):
            return None
        if name == "jax._src" or name.startswith("jax._src."):
            return self._internal(name, inner[1:])
        if name.startswith("hloom.jax_programs"):
            return None
        helper = "/".join(["jax", *inner]) + ".py"
        if helper in PUBLIC_HELPERS and (self._place / helper).is_file():
            return importlib.util.spec_from_file_location(name, self._place / helper)
        self._asking = True
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            found = None
        finally:
            self._asking = False
        return found or ModuleSpec(name, _Loader(Private(name)), is_package=True)

    def _internal(self, name: str, inner: list[str]) -> ModuleSpec | None:
        helper = self._place.joinpath("jax", "_src", *inner).with_suffix(".py")
        if str(helper.relative_to(self._place)) in PUBLIC_HELPERS and helper.is_file():
            return importlib.util.spec_from_file_location(name, helper)
        if inner and inner[0] in HELPERS:
            file = self._place.joinpath("jax", "_src", *inner)
            package = file.is_dir()
            source = file / "__init__.py" if package else file.with_suffix(".py")
            if not source.is_file():
                return None
            return importlib.util.spec_from_file_location(
                name, source, submodule_search_locations=[str(file)] if package else None
            )
        module = settings.module(find) if inner == ["config"] else _StandIn(name, self._modules)
        return ModuleSpec(name, _Loader(module), is_package=True)


def install(place: Path) -> None:
    """From now on, `import jax` finds hloom, and `jax._src` the stand-ins."""
    hloom.as_jax()
    sys.meta_path.insert(0, Finder(place))
    Private.known = PUBLIC
    for (module, name), value in PUBLIC.items():
        package = importlib.import_module(f"hloom.{module.rpartition('.')[0]}")
        vars(package).setdefault("__path__", [])  # there JAX has modules where hloom has none
        found = importlib.import_module(f"hloom.{module}")
        if not isinstance(found, Private):
            vars(found)[name] = value
    for owner, name, method in METHODS:
        setattr(owner, name, method)
