"""The public names of JAX's namespaces, recorded, so that tests know them without JAX.

    python tests/support/jax_names.py      # writes tests/data/jax_names.json anew, with the JAX that is installed
"""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path
from types import ModuleType

PATH = Path(__file__).resolve().parent.parent / "data" / "jax_names.json"
VERSION = "0.10.2"
"""The JAX whose names are recorded."""
NAMESPACES = (
    *("", "dtypes", "errors", "lax", "nn", "nn.initializers", "numpy", "numpy.linalg"),
    *("random", "tree", "tree_util"),
)
"""Below `jax`, and below `hloom`."""


def recorded() -> dict[str, list[str]]:
    """The names of each namespace."""
    found: dict[str, list[str]] = json.loads(PATH.read_text())
    return found


def namespace(package: str, name: str) -> ModuleType:
    """``namespace("jax", "numpy.linalg")``; the name "" is the package itself."""
    return importlib.import_module(f"{package}.{name}".rstrip("."))


def of_jax() -> dict[str, list[str]]:
    """As `recorded`, of the JAX that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX warns of names that will go
        return {
            name: sorted(n for n in dir(module) if not n.startswith("_") and hasattr(module, n))
            for name in NAMESPACES
            for module in [namespace("jax", name)]
        }


if __name__ == "__main__":
    PATH.write_text(json.dumps(of_jax(), indent=0) + "\n")
