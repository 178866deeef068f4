#!/usr/bin/env python3
"""The stubs that list the public names, and docs/namespaces.md: each name of JAX's namespaces, and whether it is here.

A namespace such as `hloom/numpy` lists its names in a stub beside its file, `hloom/numpy/__init__.pyi`:

    from .unary_ufuncs import cos as cos, sin as sin

`hloom/namespaces` reads it when the namespace is imported, and type checkers and editors take it for an export. To
add a function, add its name to the import of its file, in any form, and run this tool with `--write`. It sorts the
names, wraps the lines, and writes the page. `tests/data/jax_names.json` records JAX's names; the tool writes those that
are missing here to `hloom/namespaces/jax_names.py`, which says why.

    python tools/namespaces.py            # says where the files differ from what they should be
    python tools/namespaces.py --write    # writes them
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import re
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WIDTH = 118
DOCUMENT = ROOT / "docs" / "namespaces.md"
LISTS = ROOT / "hloom" / "namespaces" / "jax_names.py"
RECORDED = json.loads((ROOT / "tests" / "data" / "jax_names.json").read_text())
HEAD = """\
# The names of JAX's namespaces

Each public name of JAX {version}'s namespaces: what is here under the same name, and why the others are not. Names that
JAX has for GPUs and TPUs, and for the inside of its compiler, are left out here or say so. `tools/namespaces.py` writes
this page from the names that are there.

"""

NEWER = """
# The names that JAX {version} has more

A program that claims this version finds them in the same namespaces: `HLOOM_JAX_VERSION` in
[jax_programs.md](jax_programs.md).
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


# ---- the lists of names that are missing, and the page


def module_of(space: str) -> ModuleType | None:
    """The namespace of hloom; None: there is none."""
    try:
        return import_module(f"hloom.{space}".rstrip("."))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("hloom."):
            return None
        raise


def here_and_not(space: str, record: str = "names") -> tuple[list[str], list[str]]:
    """The names of a namespace that hloom has, and those that it lacks; of those that `record` has: "names", or "newer"
    for the names that only the newer version of JAX has."""
    names = (RECORDED["names"] if record == "names" else RECORDED["newer"]["names"]).get(space, "")
    module = module_of(space)
    here, missing = [], []
    for name in sorted(names.split(), key=lambda name: (name.lower(), name)):
        is_here = module is not None and hasattr(module, name)
        is_here = is_here or module_of(f"{space}.{name}".lstrip(".")) is not None  # bound when it is imported
        (here if is_here else missing).append(name)
    return here, missing


def lists() -> str:
    """The file with the names that are missing."""
    lines = [
        f'VERSION = "{RECORDED["version"]}"',
        '"""The version of JAX that these names follow."""',
        '_NAMED = """',
        *textwrap.wrap(" ".join(RECORDED["names"]).strip(), 120),
        '"""',
        'NAMESPACES = ("", *_NAMED.split())',
        '"""JAX\'s namespaces below `jax`; "" is `jax` itself."""',
        "LACKING = {",
    ]
    for space in RECORDED["names"]:
        missing = sorted({*here_and_not(space)[1], *here_and_not(space, "newer")[1]})
        names = textwrap.wrap(" ".join(missing), 100)
        if len(names) == 1 and len(space) + len(names[0]) < 108:
            lines.append(f'    "{space}": "{names[0]}",')
        elif names:
            lines += [f'    "{space}": """', *names, '""",']
    new = "\n".join([*lines, "}\n"])
    return re.sub(r"VERSION = .*?\n}\n", lambda _: new, LISTS.read_text(), count=1, flags=re.DOTALL)


def reason(space: str, name: str) -> str | None:
    """Imported late: `lists` may have written the file."""
    return import_module("hloom.namespaces.jax_names").reason(space, name)  # type: ignore[no-any-return]


def unexplained() -> list[str]:
    """Names that are missing without a reason."""
    records = ("names", "newer")
    missing = [(space, name) for space in RECORDED["names"] for r in records for name in here_and_not(space, r)[1]]
    return [f"{space}.{name}".lstrip(".") for space, name in missing if reason(space, name) is None]


def document() -> str:
    """The page."""
    rows, parts = ["| namespace | names | here |", "|---|---:|---:|"], []
    for space in RECORDED["names"]:
        here, missing = here_and_not(space)
        title = f"jax.{space}".rstrip(".")
        rows.append(f"| [`{title}`](#{title.replace('.', '').lower()}) | {len(here) + len(missing)} | {len(here)} |")
        parts.append(_part(space, title, here, missing))
    newer = [
        _part(space, f"jax.{space}".rstrip(".") + ", newer", *here_and_not(space, "newer"))
        for space in RECORDED["newer"]["names"]
    ]
    text = HEAD.format(version=RECORDED["version"]) + "\n".join(rows) + "\n" + "".join(parts)
    return text + NEWER.format(version=RECORDED["newer"]["version"]) + "".join(newer)


def _part(space: str, title: str, here: list[str], missing: list[str]) -> str:
    text = f"\n## {title}\n"
    if here:
        text += "\n" + ", ".join(f"`{name}`" for name in here) + "\n"
    reasons: dict[str, list[str]] = {}
    for name in missing:
        reasons.setdefault(reason(space, name) or "not there yet", []).append(name)
    if reasons:
        text += "\n| not here | why |\n|---|---|\n"
        for why, names in reasons.items():
            text += f"| {', '.join(f'`{name}`' for name in names)} | {why} |\n"
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
    for path in (*stubs(), LISTS, DOCUMENT):  # the last two import the namespaces
        old = path.read_text() if path.exists() else ""
        new = document() if path is DOCUMENT else lists() if path is LISTS else formatted(old)
        differ |= old != new
        if options.write:
            path.write_text(new)
        else:
            name = path.relative_to(ROOT).as_posix()
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name, n=0))
    return int(differ and not options.write)


if __name__ == "__main__":
    sys.exit(main())
