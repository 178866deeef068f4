"""The signatures of JAX's public functions and array methods, recorded, so that tests know them without JAX.

    python tests/support/jax_signatures.py      # writes tests/data/jax_signatures.json, with the JAX that is installed

A signature is a list of words: ``x`` (by position or by name), ``/1`` (the first by position only, with any name),
``*args``, ``!axis`` (by name only), ``**kwargs``, each with ``=default``.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.jax_names import namespace

PATH = Path(__file__).resolve().parent.parent / "data" / "jax_signatures.json"
VERSION = "0.10.2"
"""The JAX version of the recorded signatures."""
NAMESPACES = (
    *("", "dtypes", "flatten_util", "lax", "lax.linalg", "nn", "nn.initializers", "numpy", "numpy.fft"),
    *("numpy.linalg", "random", "scipy.linalg", "tree", "tree_util"),
)
METHODS = "Array"
"""The key of the methods of arrays."""
ELSEWHERE = {
    *("out_sharding", "sharding", "in_shardings", "out_shardings", "accuracy", "compiler_options", "_dot_general"),
}
"""Parameters about devices that hloom does not have, and about XLA's code: they are not recorded."""


def signature_of(function: Any) -> str | None:
    """The words of a signature; None if Python cannot tell it."""
    try:
        found = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    words: list[str] = []
    for p in found:
        if p.name in ELSEWHERE:
            continue
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        position = sum(w.startswith("/") for w in words) + 1
        name = {
            p.POSITIONAL_ONLY: f"/{position}",
            p.POSITIONAL_OR_KEYWORD: p.name,
            p.VAR_POSITIONAL: "*args",
            p.KEYWORD_ONLY: f"!{p.name}",
            p.VAR_KEYWORD: "**kwargs",
        }[p.kind]
        words.append(name + default)
    return " ".join(words)


def _default(value: Any) -> str:
    """A default as it is written; ``...`` for objects, which have no value in common with another library's."""
    simple = isinstance(value, int | float | complex | str | type(None)) or (isinstance(value, tuple) and not value)
    return repr(value).replace(" ", "_") if simple else "..."


def functions_of(module: ModuleType, names: list[str]) -> dict[str, str]:
    """The signatures of the functions of a namespace."""
    found = {}
    for name in names:
        function = getattr(module, name)
        if callable(function) and not inspect.isclass(function):
            signature = signature_of(function)
            if signature is not None:
                found[name] = signature
    return found


def methods_of(array: Any) -> dict[str, str]:
    """The signatures of an array's methods, without self."""
    names = [n for n in dir(type(array)) if not n.startswith("_") and callable(getattr(type(array), n))]
    return {n: s for n in names if (s := signature_of(getattr(array, n))) is not None}


def recorded() -> dict[str, dict[str, str]]:
    """The signatures in each namespace, by name."""
    found: dict[str, dict[str, str]] = json.loads(PATH.read_text())
    return found


def of_jax() -> dict[str, dict[str, str]]:
    """As `recorded`, of the JAX that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX warns of names that will go
        found = {}
        for name in NAMESPACES:
            module = namespace("jax", name)
            public = sorted(n for n in dir(module) if not n.startswith("_") and hasattr(module, n))
            found[name] = functions_of(module, public)
        return {**found, METHODS: methods_of(namespace("jax", "numpy").ones(1))}


if __name__ == "__main__":
    PATH.write_text(json.dumps(of_jax(), indent=0) + "\n")
    print(f"{PATH}: {PATH.stat().st_size:,} bytes")
