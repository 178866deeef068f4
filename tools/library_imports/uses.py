"""The names of JAX that a library's text uses, also in functions that no import runs, and which of them are here."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from .walk import file_of

ROOT = Path(__file__).resolve().parents[2]
HERE, IN_NAME_ONLY, NOT_HERE = "here", "in name only", "not here"


def names_in(text: str) -> set[str]:
    """`jax.numpy.sin`, `jax._src.core.Tracer`: what the imports and the attributes of a module name."""
    known: dict[str, str] = {}
    found: set[str] = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in ("jax", "jaxlib"):
                    found.add(alias.name)
                    known[alias.asname or "jax"] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ("jax", "jaxlib"):
            for alias in node.names if not node.level else ():
                if alias.name != "*":
                    found.add(f"{node.module}.{alias.name}")
                    known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        parts: list[str] = []
        at: ast.AST = node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if parts and isinstance(at, ast.Name) and at.id in known:
            found.add(".".join([known[at.id], *reversed(parts)]))
    return found


def of_library(modules: list[str]) -> set[str]:
    """The names in the files of modules."""
    found: set[str] = set()
    for module in modules:
        path = file_of(module)
        if path is not None:
            found |= names_in(path.read_text(errors="replace"))
    return found


def look_up(name: str) -> tuple[str, str]:
    """The part of a name up to the first object that is no module, and whether it is here."""
    first, *rest = name.split(".")
    home: Any = importlib.import_module(first)
    done = first
    for part in rest:
        done += f".{part}"
        try:
            home = getattr(home, part)
        except AttributeError:
            try:
                home = importlib.import_module(done)
            except Exception:  # a module of JAX may need another package
                return done, NOT_HERE
        if not isinstance(home, ModuleType):
            return done, IN_NAME_ONLY if type(home).__name__ in ("NotWritten", "Internal") else HERE
    return done, HERE


def look_up_all(names: list[str]) -> dict[str, tuple[str, str]]:
    """`look_up` of each, in this process."""
    warnings.simplefilter("ignore")
    return {name: look_up(name) for name in names}


def look_up_in_hloom(names: list[str]) -> dict[str, tuple[str, str]]:
    """`look_up` of each, in a process in which `jax` is hloom."""
    code = (
        "import json, sys, hloom; hloom.as_jax(); from tools.library_imports.uses import look_up_all; "
        "print(json.dumps(look_up_all(json.load(sys.stdin))))"
    )
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ran = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    if ran.returncode:
        raise SystemExit(ran.stderr)
    return {name: (part, where) for name, (part, where) in json.loads(ran.stdout.splitlines()[-1]).items()}
