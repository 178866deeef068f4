"""`hloom explain`: a section of `errors.md`, the page about the library's errors."""

from __future__ import annotations

import difflib
import re
from argparse import Namespace
from pathlib import Path

from .outcome import FINE, UsageError

PAGE = Path(__file__).resolve().parent.parent / "errors.md"


def sections() -> dict[str, str]:
    """The text of each error's section, by the error's name."""
    parts = re.split(r"^### (\w+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.partition("\n## ")[0].strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def execute(options: Namespace) -> int:
    """Print a section, or the names of all."""
    found = sections()
    if options.name is None:
        print("\n".join(found))
        return FINE
    name = options.name.rpartition(".")[2]
    if name not in found:
        near = difflib.get_close_matches(name, found, 1)
        raise UsageError(f"there is no error {name}{f': perhaps {near[0]}' if near else ''}")
    print(f"{name}\n\n{found[name]}")
    return FINE
