"""The source tree as a user gets it, and virtual environments with the package in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

FOLDERS = ("hlo", "tracer", "autodiff", "numba_backend")
"""At the top level, and linked from `hloom/`."""
SOURCE_FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


def copy_of_the_package(root: Path, to: Path, links: bool = True) -> Path:
    """What an installation needs of the repository; without `links`, as git and zip leave it where there are none."""
    to.mkdir()
    for name in SOURCE_FILES:
        shutil.copy(root / name, to)
    for name in ("hloom", *FOLDERS):
        shutil.copytree(root / name, to / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    if not links:
        for name in FOLDERS:
            link = to / "hloom" / name
            text = os.readlink(link)
            link.unlink()
            link.write_text(text)
    return to


def modules(root: Path) -> set[str]:
    """The modules of the library, as files of the package: `hloom/hlo/ir.py`."""
    found = {f.relative_to(root) for folder in ("hloom", *FOLDERS) for f in (root / folder).rglob("*.py")}
    return {(Path("hloom", f) if f.parts[0] in FOLDERS else f).as_posix() for f in found}


def environment(folder: Path) -> Path:
    """The interpreter of a new virtual environment that also sees the packages of this one, but no editable install."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "lib" / version / "site-packages" / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def pip(*arguments: str, python: Path | None = None) -> None:
    """Run pip, for another environment's interpreter if one is given."""
    where = [] if python is None else ["--python", str(python)]
    command = [sys.executable, "-m", "pip", *where, *arguments, "--quiet", "--disable-pip-version-check"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def run(python: Path | str, code: str, cwd: Path, *arguments: str) -> str:
    """What a program prints."""
    ran = subprocess.run([str(python), *arguments, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
