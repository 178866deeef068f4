"""The backends in `examples/backends`, as an installed package brings them: by entry points."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hloom

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "backends"


def declared() -> dict[str, str]:
    """The entry points of the package, by name."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    points: dict[str, str] = project["entry-points"]["hloom.backends"]
    return points


def write_distribution(folder: Path) -> None:
    """Write the metadata of the installed package, for a folder on the import path."""
    metadata = folder / "hloom_example_backends-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hloom-example-backends\nVersion: 1.0\n")
    points = "".join(f"{name} = {where}\n" for name, where in declared().items())
    (metadata / "entry_points.txt").write_text(f"[hloom.backends]\n{points}")


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """The package, found on the import path as long as the block runs. `folder`: an empty one."""
    write_distribution(folder)
    added = [str(folder), str(FOLDER)]
    sys.path += added
    try:
        yield
    finally:
        for path in added:
            sys.path.remove(path)


@contextmanager
def selected(name: str) -> Iterator[None]:
    """A backend chosen as a user does."""
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", name)
    try:
        yield
    finally:
        hloom.config.update("hloom_backend", before)
