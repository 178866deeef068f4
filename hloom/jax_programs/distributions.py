"""The distributions `jax` and `jaxlib`, as `importlib.metadata` and `pkg_resources` find them: programs read their
versions there.

They are found before those on `sys.path`, whether JAX itself is installed or not. `pkg_resources` looks at the folders
of `sys.path` when it is imported, and asks no finder, so its working set gets them afterwards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, PackagePath
from types import ModuleType
from typing import Any

from .versions import version

_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_NAMES = ("jax", "jaxlib")


class _InPlace(Distribution):
    """hloom in the place of a distribution."""

    def __init__(self, name: str) -> None:
        self._called = name

    def read_text(self, filename: str) -> str | None:
        """The text of a file of metadata; None: there is no such file."""
        if filename == "METADATA":
            summary = f"{__name__.partition('.')[0]} in place of {self._called}"
            return f"Metadata-Version: 2.1\nName: {self._called}\nVersion: {version()}\nSummary: {summary}\n"
        return f"{self._called}\n" if filename == "top_level.txt" else None

    def locate_file(self, path: str | os.PathLike[str]) -> PackagePath:
        """Where a file of the distribution would be."""
        return PackagePath(_FOLDER, path)


def found(context: DistributionFinder.Context) -> Iterator[Distribution]:
    """The distributions that a search asks for: one by its name, or all."""
    wanted = context.name and re.sub(r"[-_.]+", "-", context.name).lower()
    return (_InPlace(name) for name in _NAMES if wanted in (None, name))


def join_working_set(pkg_resources: Any) -> None:
    """Add the distributions to the working set of `pkg_resources`."""

    class InPlace(pkg_resources.Distribution):  # type: ignore[misc]
        @property
        def version(self) -> str:
            return version()

    working_set = pkg_resources.working_set
    entry = next(iter(working_set.entries), _FOLDER)
    for name in _NAMES:
        working_set.add(InPlace(_FOLDER, project_name=name), entry, insert=False, replace=True)


def spec_of_pkg_resources() -> ModuleSpec | None:
    """How to import `pkg_resources`, so that it has the distributions at once; None if it is not installed."""
    spec = PathFinder.find_spec("pkg_resources")
    if spec is not None and spec.loader is not None:
        spec.loader = _Joining(spec.loader)
    return spec


class _Joining(Loader):
    """Another loader, and `join_working_set` after it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None, "a module that is imported has a spec"
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        join_working_set(module)
