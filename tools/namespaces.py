#!/usr/bin/env python3
"""The stubs that list the public names, and docs/namespaces.md: each name of JAX's namespaces, and whether it is here.

A namespace such as `hloom/numpy` lists its names in a stub beside its file, `hloom/numpy/__init__.pyi`:

    from .unary_ufuncs import cos as cos, sin as sin

`hloom/namespaces` reads it when the namespace is imported, and type checkers and editors take it for an export. To
add a function, add its name to the import of its file, in any form, and run this tool with `--write`. It sorts the
names, wraps the lines, and writes the page. `hloom/namespaces/jax_names.py` records JAX's names, and why some are
missing here.

    python tools/namespaces.py            # says where the files differ from what they should be
    python tools/namespaces.py --write    # writes them
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WIDTH = 118
DOCUMENT = ROOT / "docs" / "namespaces.md"
HEAD = """\
# The names of JAX's namespaces

Each public name of JAX {version}'s namespaces: what is here under the same name, and why the others are not. Names that
JAX has for GPUs and TPUs, and for the inside of its compiler, are left out here or say so. `tools/namespaces.py` writes
this page from the names that are there.

"""


def stubs(root: Path = ROOT) -> list[Path]:
    """The stubs of all namespaces."""
    links = [folder for folder in (root / "hloom").iterdir() if folder.is_symlink()]
    return [path for path in sorted((root / "hloom").rglob("*.pyi")) if not any(f in path.parents for f in links)]


def formatted(text: str) -> str:
    """A stub with one import for each file, sorted and wrapped; the names that it gives to objects follow."""
    imports: dict[str, set[str]] = {}
    rest = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            names = imports.setdefault("." * node.level + (node.module or ""), set())
            names.update(f"{alias.name} as {alias.asname or alias.name}" for alias in node.names)
        else:
            rest.append(ast.unparse(node))
    lines = []
    for source in sorted(imports, key=lambda source: (source.strip(".") != "", not source.startswith(".."), source)):
        names = sorted(imports[source], key=lambda item: (item.lower(), item))
        line = f"from {source} import {', '.join(names)}"
        lines += [line] if len(line) <= WIDTH else [f"from {source} import (", *_wrapped(names), ")"]
    return "\n".join([*lines, *([""] if rest else []), *sorted(rest)]) + "\n"


def _wrapped(names: list[str]) -> list[str]:
    """As many names on a line as fit; a name and its alias stay together."""
    text = ", ".join(name.replace(" ", "\0") for name in names) + ","
    lines = textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False)
    return [line.replace("\0", " ") for line in lines]


# ---- the page


def _jax_names() -> ModuleType:
    """Imported late: a stub may have to be written before it."""
    return import_module("hloom.namespaces.jax_names")


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
    for name in sorted(_jax_names().names(space), key=lambda name: (name.lower(), name)):
        is_here = module is not None and hasattr(module, name)
        is_here = is_here or module_of(f"{space}.{name}".lstrip(".")) is not None  # bound when it is imported
        (here if is_here else missing).append(name)
    return here, missing


def unexplained() -> list[str]:
    """Names that are missing without a reason."""
    missing = [(space, name) for space in _jax_names().NAMES for name in here_and_not(space)[1]]
    return [f"{space}.{name}".lstrip(".") for space, name in missing if _jax_names().reason(space, name) is None]


def document() -> str:
    """The page."""
    rows, parts = ["| namespace | names | here |", "|---|---:|---:|"], []
    for space in _jax_names().NAMES:
        here, missing = here_and_not(space)
        title = f"jax.{space}".rstrip(".")
        rows.append(f"| [`{title}`](#{title.replace('.', '').lower()}) | {len(here) + len(missing)} | {len(here)} |")
        parts.append(_part(space, title, here, missing))
    return HEAD.format(version=_jax_names().VERSION) + "\n".join(rows) + "\n" + "".join(parts)


def _part(space: str, title: str, here: list[str], missing: list[str]) -> str:
    text = f"\n## {title}\n"
    if here:
        text += "\n" + ", ".join(f"`{name}`" for name in here) + "\n"
    reasons: dict[str, list[str]] = {}
    for name in missing:
        reasons.setdefault(_jax_names().reason(space, name) or "not there yet", []).append(name)
    if reasons:
        text += "\n| not here | why |\n|---|---|\n"
        for reason, names in reasons.items():
            text += f"| {', '.join(f'`{name}`' for name in names)} | {reason} |\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files")
    parser.add_argument("--unexplained", action="store_true", help="list names that are missing without a reason")
    options = parser.parse_args()
    if options.unexplained:
        print(*unexplained(), sep="\n")
        return 0
    differ = False
    for path in (*stubs(), DOCUMENT):  # the page last: it imports the namespaces
        old = path.read_text() if path.exists() else ""
        new = document() if path is DOCUMENT else formatted(old)
        differ |= old != new
        if options.write:
            path.write_text(new)
        else:
            name = path.relative_to(ROOT).as_posix()
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name, n=0))
    return int(differ and not options.write)


if __name__ == "__main__":
    sys.exit(main())
