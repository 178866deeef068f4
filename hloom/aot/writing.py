"""Files that are written together: all of them, or none."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files by name into a folder, which is made if it does not exist; their paths.

    They are written beside the folder's files first, and then take their names. If one cannot be written, the old files
    are restored, and new folders are removed. OSError says why.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".hloom") as temporary:
            for name, content in contents.items():
                if (folder / name).is_dir():
                    raise IsADirectoryError(errno.EISDIR, "is a folder", str(folder / name))
                (Path(temporary) / name).write_bytes(content)
            _exchange(Path(temporary), folder, list(contents))
    except BaseException:
        for place in made:
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()
        raise
    return [folder / name for name in contents]


def _exchange(source: Path, folder: Path, names: list[str]) -> None:
    """Replace the folder's files by those of `source`."""
    kept: list[str] = []
    moved: list[str] = []
    try:
        for name in names:
            if (folder / name).exists():
                os.replace(folder / name, source / f"{name}.kept")
                kept.append(name)
            os.replace(source / name, folder / name)
            moved.append(name)
    except BaseException:
        for name in moved:
            (folder / name).unlink(missing_ok=True)
        for name in kept:
            os.replace(source / f"{name}.kept", folder / name)
        raise
