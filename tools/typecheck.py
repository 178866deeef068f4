#!/usr/bin/env python3
"""mypy over the library, as `pyproject.toml` configures it.

The folders of the repository are not arranged like the package (`hlo/` installs as `hloom.hlo`), and a type checker
follows folders, not installers. So this makes links to the folders in a build folder, arranged like the package, checks
that, and gives the files their names in the repository in messages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINKED = ROOT / "build" / "typecheck"


def lay_links() -> dict[str, str]:
    """Makes the links that form the package; gives, for each path in it, the folder in the repository."""
    folders: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    package = LINKED / "hloom"
    package.mkdir(parents=True, exist_ok=True)
    for old in package.iterdir():
        old.unlink()
    real = {}
    for name, folder in folders.items():
        if name == "hloom":
            for item in (ROOT / folder).iterdir():
                if item.name != "__pycache__":
                    (package / item.name).symlink_to(item)
                    real[f"hloom/{item.name}"] = f"{folder}/{item.name}"
        else:
            link = LINKED / name.replace(".", "/")
            link.symlink_to(ROOT / folder)
            real[name.replace(".", "/")] = folder
    return real


def main() -> int:
    real = lay_links()
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    command += ["--cache-dir", str(ROOT / ".mypy_cache"), "-p", "hloom", *sys.argv[1:]]
    environment = {**os.environ, "MYPYPATH": str(LINKED)}
    found = subprocess.run(command, cwd=LINKED, env=environment, text=True, capture_output=True)
    for line in (found.stdout + found.stderr).splitlines():
        linked = next((path for path in sorted(real, key=len, reverse=True) if line.startswith(path)), None)
        print(real[linked] + line.removeprefix(linked) if linked else line)
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
