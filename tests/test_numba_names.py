"""The names of Numba that `numba_internals.py` uses without being documented: each exists, and each is in the table."""

from __future__ import annotations

import ast
import builtins
import inspect
from pathlib import Path
from typing import Any

import numba
import pytest
from hloom.numba_backend.runtime import numba_internals

ROWS = [(purpose, name) for purpose, names in numba_internals.NAMES.items() for name in names]


@pytest.mark.parametrize(("purpose", "name"), ROWS, ids=[name for _, name in ROWS])
def test_numba_has_the_name(purpose: str, name: str) -> None:
    assert numba_internals._exists(name), f"Numba {numba.__version__} has no {name}: {purpose}"


@pytest.mark.parametrize("name", ["numba.core.none", "numba.core.cpu.CPUContext.none", "numba.core.ir.FunctionIR.none"])
def test_a_name_that_is_missing_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_internals, "NAMES", {"nothing": (name, "numba.core.cpu.CPUContext")})
    assert numba_internals.missing_names() == [name]


DOCUMENTED = {"CPointer", "Function", "Number", "none", "__version__", "int64"}
"""Names of Numba that it documents, or that all its users use."""
OF_LLVMLITE = {"Module", "data_layout", "get_global", "triple"}
OF_RESULTS = {"data"}
"""Fields that Numba's models of values have: here of an array."""
OF_PYTHON = {"cache", "import_module", "ismodule", "isclass", "getsource", "search", "compile", "sub", "setdefault"}


def test_the_table_is_complete() -> None:
    """Each attribute that the module uses is one of the table's, or its own, or known otherwise."""
    tree = ast.parse(Path(inspect.getfile(numba_internals)).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    own: set[Any] = {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    own |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    own |= {n.target.id for n in ast.walk(tree) if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    listed = {part for _, name in ROWS for part in name.split(".")[1:]}
    of_python = OF_PYTHON.union(*(dir(t) for t in (str, dict, list, tuple, type, object, builtins)))
    assert used - listed - own - DOCUMENTED - OF_LLVMLITE - OF_RESULTS - of_python == set()


def test_the_table_has_what_is_imported() -> None:
    tree = ast.parse(Path(inspect.getfile(numba_internals)).read_text())
    parts = {tuple(name.split(".")[:n]) for _, name in ROWS for n in range(2, name.count(".") + 2)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba"):
            for alias in node.names:
                name = (*str(node.module).split("."), alias.name)
                assert name in parts or alias.name in {"errors", "types"}, ".".join(name)
