"""The distributions `jax` and `jaxlib`, as `importlib.metadata` finds them: programs read their versions there.

They are found before those on `sys.path`, whether JAX itself is installed or not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder, PackagePath

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
