"""The outcomes of imports: a JSON file for each library and way, `jax`, `hloom` or `go-on`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .walk import modules

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "out" / "library_imports"


def _path(library: str, way: str) -> Path:
    return FOLDER / f"{library.split()[0]}.{way}.json"


def read(library: str, way: str) -> dict[str, dict[str, Any]]:
    """By module: its error, empty if it was imported, and the names that were missing with those who asked."""
    path = _path(library, way)
    return json.loads(path.read_text()) if path.exists() else {}


def run(library: str, packages: list[str], way: str) -> dict[str, dict[str, Any]]:
    """Import all modules of a library, with hloom those that import with JAX; the outcomes, which are written, too.

    A process that ends within an import is followed by another one, for the modules after it.
    """
    found: dict[str, dict[str, Any]] = {}
    for package in packages:
        wanted = list(modules(package))
        if way != "jax":
            with_jax = read(library, "jax")
            wanted = [module for module in wanted if module in with_jax and not with_jax[module]["error"]]
        while wanted:
            done, current = _process(wanted, way)
            found.update(done)
            if current is None:
                break
            found[current] = {"error": "the process ended", "asked": {}}
            wanted = wanted[wanted.index(current) + 1 :]
    FOLDER.mkdir(parents=True, exist_ok=True)
    _path(library, way).write_text(json.dumps(found, indent=0, sort_keys=True))
    return found


def _process(wanted: list[str], way: str) -> tuple[dict[str, dict[str, Any]], str | None]:
    """The outcomes, and the module in whose import the process ended."""
    import sysconfig

    libraries = sysconfig.get_path("purelib")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": "jax",
        "MPLBACKEND": "Agg",
    }
    command = [sys.executable, "-m", "tools.library_imports.child", way, libraries]
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            command, input="\n".join(wanted), capture_output=True, text=True, cwd=folder, env=environment
        )
    done, current = {}, None
    for line in ran.stdout.splitlines():
        outcome = json.loads(line)
        if "begins" in outcome:
            current = outcome["begins"]
        else:
            done[outcome.pop("module")] = outcome
            current = None
    if not done and current is None:
        raise SystemExit(f"{' '.join(command)}: {ran.stderr}")
    return done, current
