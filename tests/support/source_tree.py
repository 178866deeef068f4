"""The source tree as a user gets it, and virtual environments with the package in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDERS = ("hlo", "tracer", "autodiff", "numba_backend")
"""At the top level, and linked from `hloom/`; in an unpacked source distribution only there, as folders."""
SOURCE_FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
OTHER_FILES = (".gitignore", ".ignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Makefile")
OTHER_FOLDERS = (".ci", "benchmarks", "docs", "examples", "recipe", "tests", "tools")
"""The folders besides the package."""
_CACHES = shutil.ignore_patterns("__pycache__", ".*_cache")


def is_distribution(root: Path) -> bool:
    """Whether this is an unpacked source distribution."""
    return (root / "PKG-INFO").is_file()


def copy_of_the_package(root: Path, to: Path, links: bool = True) -> Path:
    """Copy the files for an installation; without `links`, as git and zip write them on systems without links."""
    to.mkdir()
    for name in SOURCE_FILES:
        shutil.copy(root / name, to)
    for name in ("hloom", *(FOLDERS if not is_distribution(root) else ())):
        shutil.copytree(root / name, to / name, symlinks=True, ignore=_CACHES)
    if not links:
        for name in FOLDERS:
            link = to / "hloom" / name
            text = os.readlink(link)
            link.unlink()
            link.write_text(text)
    return to


def copy_of_the_rest(root: Path, to: Path) -> set[str]:
    """Copy tests, documents and tools too; the names of these files."""
    for name in OTHER_FILES:
        shutil.copy(root / name, to)
    for name in OTHER_FOLDERS:
        shutil.copytree(root / name, to / name, ignore=_CACHES)
    folders = {f.relative_to(to).as_posix() for name in OTHER_FOLDERS for f in (to / name).rglob("*") if f.is_file()}
    return {*OTHER_FILES} | folders


def modules(root: Path) -> set[str]:
    """The modules of the library, as files of the package: `hloom/hlo/ir.py`."""
    package = root / "hloom"
    folders = [package, *(package / folder for folder in FOLDERS)]  # of these, links are followed
    return {f.relative_to(root).as_posix() for folder in folders for f in folder.rglob("*.py")}


def environment(folder: Path) -> Path:
    """The interpreter of a new virtual environment that also sees the packages of this one, but no editable install."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    others = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (folder / "lib" / version / "site-packages" / "others.pth").write_text("".join(f"{path}\n" for path in others))
    return python


def pip(*arguments: str, python: Path | None = None) -> None:
    """Run pip, for another environment's interpreter if one is given."""
    where = [] if python is None else ["--python", str(python)]
    command = [sys.executable, "-m", "pip", *where, *arguments, "--quiet", "--disable-pip-version-check"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def run(python: Path | str, code: str, cwd: Path, *arguments: str) -> str:
    """The output of a program."""
    ran = subprocess.run([str(python), *arguments, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
