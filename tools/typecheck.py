#!/usr/bin/env python3
"""mypy over the library, as `pyproject.toml` configures it; messages name files where they are.

mypy finds the package as Python does: `hloom/hlo` is a link to `hlo`. So each file is checked once, as a module of
`hloom`, and a message about `hloom/hlo/ir.py` is printed as one about `hlo/ir.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    links = "|".join(path.name for path in (ROOT / "hloom").iterdir() if path.is_symlink())
    command = [sys.executable, "-m", "mypy", "-p", "hloom", *sys.argv[1:]]
    found = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    print(re.sub(rf"^hloom/({links})/", r"\1/", found.stdout + found.stderr, flags=re.MULTILINE), end="")
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())
