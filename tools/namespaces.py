#!/usr/bin/env python3
"""The imports of the public namespaces, such as `hloom/numpy/__init__.py`: a line for each name of its files.

A namespace is the sum of its files: `__all__ += binary.__all__` says so for each. A star import would do at run time,
but editors then offer all that a file imports for itself. So the names are written out, in the form that type checkers
take for an export, and this tool writes them: run it after a change of a file's `__all__`.

Files that most programs do not use are in the table `_LATER`, with their names, and are imported when one of these is
first used. The tool writes this table too, and the same imports below `if TYPE_CHECKING:`. To move a file there or
back, move its line.

    python tools/namespaces.py            # says where the files differ from what their `__all__` say
    python tools/namespaces.py --write    # writes them
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class NamespaceError(Exception):
    """A namespace or a file is written in a way that this tool does not read."""


def namespaces(root: Path = ROOT) -> list[Path]:
    """The files that are the sum of others."""
    return [path for path in sorted((root / "hloom").rglob("*.py")) if ".__all__\n" in path.read_text()]


def written_out(path: Path) -> str:
    """The text of a namespace with its imports as they must be."""
    text = path.read_text()
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    changes: list[tuple[ast.stmt, str]] = []
    for source in _files(path, tree):
        (node,) = _imports_from(path, tree, source)
        changes.append((node, _import(source, _names(path, source))))
    table = next((n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == _TABLE), None)
    if table is not None:
        later = {home: _names(path, "." + home.rpartition(".")[2]) for home in ast.literal_eval(table.value)}
        changes.append((table, _table(later)))
        for home, names in later.items():
            source = "." + home.rpartition(".")[2]
            (node,) = _imports_from(path, _for_checkers(path, tree), source)
            changes.append((node, textwrap.indent(_import(source, names), "    ")))
    for node, new in sorted(changes, key=lambda change: -change[0].lineno):
        lines[node.lineno - 1 : node.end_lineno] = [new]
    return "".join(lines)


_TABLE, _WIDTH = "_LATER", 116


def _for_checkers(path: Path, tree: ast.Module) -> ast.Module:
    """The statements below `if TYPE_CHECKING:`."""
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return ast.Module(node.body, [])
    raise NamespaceError(f"{path}: the imports of {_TABLE} stand below `if TYPE_CHECKING:`")


def _table(later: dict[str, list[str]]) -> str:
    """The table, as many names on a line as fit."""
    lines = [f"{_TABLE} = {{"]
    for home, names in later.items():
        quoted = ", ".join([f'"{name}"' for name in names]) + ("," if len(names) == 1 else "")
        lines += textwrap.wrap(f'"{home}": ({quoted}),', _WIDTH, initial_indent="    ", subsequent_indent=" " * 8)
    return "\n".join([*lines, "}  # fmt: skip\n"])


def _files(path: Path, tree: ast.Module) -> list[str]:
    """The files that `__all__` names, as relative imports write them, in the order of their imports."""
    modules = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}" if node.module else alias.name
                modules[alias.asname or alias.name] = "." * node.level + inner
    added = []
    for node in tree.body:
        match node:
            case ast.AugAssign(ast.Name("__all__"), ast.Add(), ast.Attribute(ast.Name(name), "__all__")):
                if name not in modules:
                    raise NamespaceError(f"{path}:{node.lineno}: {name} is not imported")
                added.append(modules[name])
    return sorted(added, key=lambda source: _imports_from(path, tree, source)[0].lineno)


def _imports_from(path: Path, tree: ast.Module, source: str) -> list[ast.ImportFrom]:
    """The import of a file's names: exactly one."""
    found = [n for n in tree.body if isinstance(n, ast.ImportFrom) and "." * n.level + (n.module or "") == source]
    if len(found) != 1:
        raise NamespaceError(f"{path}: `from {source} import *` is expected once; tools/namespaces.py writes its names")
    return found


def _names(path: Path, source: str) -> list[str]:
    """A file's `__all__`, which is a list of texts."""
    level = len(source) - len(source.lstrip("."))
    file = path.parents[level - 1].joinpath(*source[level:].split(".")).with_suffix(".py")
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.Assign([ast.Name("__all__")], ast.List(elements)):
                return [ast.literal_eval(element) for element in elements]
    raise NamespaceError(f"{file}: no `__all__ = [...]`")


def _import(source: str, names: list[str]) -> str:
    return f"from {source} import (\n" + "".join(f"    {name} as {name},\n" for name in names) + ")\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="write the files")
    options = parser.parse_args()
    differ = False
    for path in namespaces():
        old, new = path.read_text(), written_out(path)
        differ |= old != new
        if options.write:
            path.write_text(new)
        else:
            name = path.relative_to(ROOT).as_posix()
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), name, name, n=0))
    return int(differ and not options.write)


if __name__ == "__main__":
    sys.exit(main())
