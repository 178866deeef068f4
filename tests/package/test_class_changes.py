"""No code of the library changes a class of another module, or the class of an object, while a program runs.

A reader finds in a class's own text how its objects behave. What has to change at run time is data: the layers of the
bottom trace (`tracer/bottom.py`), lists that are tested (`SEVERAL`, `RECORDERS`), slots.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import source_tree

NAMES = {"__doc__", "__module__", "__name__", "__qualname__"}
"""The texts that a class has: a module may set those of its own classes."""


def _is_class_name(name: str) -> bool:
    bare = name.lstrip("_")
    return bare[:1].isupper() and not bare.isupper()


def _is_foreign_class(node: ast.expr, imported: set[str]) -> bool:
    """An imported class, a class that is an attribute of a module, or the type of an object."""
    if isinstance(node, ast.Name):
        return node.id in imported and _is_class_name(node.id)
    if isinstance(node, ast.Attribute):
        return _is_class_name(node.attr) or node.attr == "__class__"
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def changes(text: str) -> Iterator[int]:
    """The lines that change the class of an object, a class of another module, or a special method of any class."""
    tree = ast.parse(text)
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            is_special = node.attr[:2] == "__" and isinstance(node.value, ast.Name) and _is_class_name(node.value.id)
            is_special = is_special and node.attr not in NAMES
            if node.attr == "__class__" or is_special or _is_foreign_class(node.value, imported):
                yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
            name = node.args[1]
            is_special = isinstance(name, ast.Constant) and name.value in ("__class__", "__call__")
            if is_special or _is_foreign_class(node.args[0], imported):
                yield node.lineno


@pytest.mark.parametrize(
    "line",
    [
        "EVAL.__class__ = Other",
        "self.__class__ = Array",
        "PjitFunction.__call__ = other",
        "PjitFunction.name = other",
        "jit.PjitFunction.name = other",
        "del PjitFunction.name",
        "type(x).recorder = None",
        "x.__class__.recorder = None",
        "setattr(PjitFunction, name, other)",
        "setattr(kind, '__call__', other)",
        "Own.__call__ = other",
    ],
)
def test_changes_are_found(line: str) -> None:
    assert list(changes(f"from .jit import PjitFunction\nclass Own: ...\n{line}\n")) == [3]


@pytest.mark.parametrize(
    "line", ["Own.table = {}", "LIBRARY.load = f", "self.kind = x", "Own.__doc__ = text", "setattr(self, name, x)"]
)
def test_other_assignments_are_not(line: str) -> None:
    assert list(changes(f"from .jit import LIBRARY\nclass Own: ...\n{line}\n")) == []


def test_no_class_is_changed_from_outside(root: Path) -> None:
    found = [f"{file}:{line}" for file in source_tree.modules(root) for line in changes((root / file).read_text())]
    assert found == []
