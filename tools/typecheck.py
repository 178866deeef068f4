#!/usr/bin/env python3
"""mypy over the library, as `pyproject.toml` configures it, or over some files of it.

    python tools/typecheck.py                # all of it
    python tools/typecheck.py tracer/jit.py  # one file, by this path or as hloom/tracer/jit.py

mypy finds the package as Python does: `hloom/hlo` is a link to `hlo`. It takes a file for a module of `hloom` by the
second path only. Messages name files by the first one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINKS = sorted(path.name for path in (ROOT / "hloom").iterdir() if path.is_symlink())


def by_link(argument: str) -> str:
    """A file of a folder that is linked, by its link; any other argument as it is."""
    path = os.path.relpath(argument, ROOT) if os.path.exists(argument) else argument
    return os.path.join("hloom", path) if path.partition(os.sep)[0] in LINKS else path


def main() -> int:
    arguments = [by_link(argument) for argument in sys.argv[1:]]
    has_files = any(not argument.startswith("-") for argument in arguments)
    command = [sys.executable, "-m", "mypy", *([] if has_files else ["-p", "hloom"]), *arguments]
    found = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    print(re.sub(rf"^hloom/({'|'.join(LINKS)})/", r"\1/", found.stdout + found.stderr, flags=re.MULTILINE), end="")
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
