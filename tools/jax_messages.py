#!/usr/bin/env python3
"""The errors that JAX raises for the programs of `tests/support/mistakes.py`, in `tests/data/jax_messages.json`.

    python tools/jax_messages.py              # prints the messages of hloom beside those of JAX that are recorded
    python tools/jax_messages.py dot reshape  # of the programs with these words in their names
    python tools/jax_messages.py --write      # asks the installed JAX, and writes the file
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.mistakes import FILE, MISTAKES, VERSION, error_of, with_namespaces  # noqa: E402


def record(names: list[str]) -> None:
    """Write JAX's errors of all programs."""
    jax = with_namespaces("jax")
    if jax.__version__ != VERSION:
        raise SystemExit(f"the messages are those of JAX {VERSION}, and JAX {jax.__version__} is installed")
    found = {}
    for name in MISTAKES:
        error = error_of(name, jax)
        message = str(error).partition("Traceback (most recent")[0].replace(f"{ROOT}/", "").strip()
        found[name] = None if error is None else {"classes": _classes(error), "message": message}
    FILE.write_text(json.dumps(found, indent=0) + "\n")


def _classes(error: BaseException) -> list[str]:
    """The names of the error's classes that Python has, too: a program catches it by these."""
    builtin = importlib.import_module("builtins")
    names = [c.__name__ for c in type(error).__mro__ if getattr(builtin, c.__name__, None) is c]
    return names[: names.index("Exception")]


def show(names: list[str]) -> None:
    """Print both messages of the chosen programs."""
    hloom: Any = with_namespaces("hloom")
    recorded = json.loads(FILE.read_text())
    for name in MISTAKES:
        if not names or any(word in name for word in names):
            error, other = error_of(name, hloom), recorded[name]
            print(f"== {name}\n{type(error).__name__}: {error}\n-- JAX {VERSION}")
            print("no error\n" if other is None else f"{'/'.join(other['classes'])}: {other['message']}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    (record if options.write else show)(options.names)
