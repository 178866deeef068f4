#!/usr/bin/env python3
"""docs/namespaces.md: each public name of JAX's namespaces, whether hloom has it, and why not.

`hloom/namespaces/jax_names.py` records the names and the reasons. The tool looks into a namespace as a user does.

    python tools/names_table.py            # says where the file differs from what is there
    python tools/names_table.py --write    # writes it
"""

from __future__ import annotations

import argparse
import difflib
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hloom.namespaces import jax_names  # noqa: E402

DOCUMENT = ROOT / "docs" / "namespaces.md"
HEAD = """\
# The names of JAX's namespaces

Each public name of JAX {version}'s namespaces: what is here under the same name, and why the others are not. Names that
JAX has for GPUs and TPUs, and for the inside of its compiler, are left out here or say so. `tools/names_table.py`
writes this page from the names that are there.

"""


def module_of(space: str) -> ModuleType | None:
    """The namespace of hloom; None: there is none."""
    try:
        return import_module(f"hloom.{space}".rstrip("."))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("hloom."):
            return None
        raise


def here_and_not(space: str) -> tuple[list[str], list[str]]:
    """The names of a namespace that hloom has, and those that it lacks."""
    module = module_of(space)
    here, missing = [], []
    for name in sorted(jax_names.names(space), key=lambda name: (name.lower(), name)):
        is_here = module is not None and hasattr(module, name)
        is_here = is_here or module_of(f"{space}.{name}".lstrip(".")) is not None  # bound when it is imported
        (here if is_here else missing).append(name)
    return here, missing


def unexplained() -> list[str]:
    """Names that are missing without a reason."""
    missing = [(space, name) for space in jax_names.NAMES for name in here_and_not(space)[1]]
    return [f"{space}.{name}".lstrip(".") for space, name in missing if jax_names.reason(space, name) is None]


def document() -> str:
    """The page."""
    rows, parts = ["| namespace | names | here |", "|---|---:|---:|"], []
    for space in jax_names.NAMES:
        here, missing = here_and_not(space)
        title = f"jax.{space}".rstrip(".")
        rows.append(f"| [`{title}`](#{title.replace('.', '').lower()}) | {len(here) + len(missing)} | {len(here)} |")
        parts.append(_part(space, title, here, missing))
    return HEAD.format(version=jax_names.VERSION) + "\n".join(rows) + "\n" + "".join(parts)


def _part(space: str, title: str, here: list[str], missing: list[str]) -> str:
    text = f"\n## {title}\n"
    if here:
        text += "\n" + ", ".join(f"`{name}`" for name in here) + "\n"
    reasons: dict[str, list[str]] = {}
    for name in missing:
        reasons.setdefault(jax_names.reason(space, name) or "not there yet", []).append(name)
    if reasons:
        text += "\n| not here | why |\n|---|---|\n"
        for reason, names in reasons.items():
            text += f"| {', '.join(f'`{name}`' for name in names)} | {reason} |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write the file")
    parser.add_argument("--unexplained", action="store_true", help="list names that are missing without a reason")
    options = parser.parse_args()
    if options.unexplained:
        print(*unexplained(), sep="\n")
        return 0
    old, new = DOCUMENT.read_text() if DOCUMENT.exists() else "", document()
    if options.write:
        DOCUMENT.write_text(new)
        return 0
    sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "docs", "names", n=0))
    return int(old != new)


if __name__ == "__main__":
    sys.exit(main())
