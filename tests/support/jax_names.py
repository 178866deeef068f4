"""The public names of JAX's namespaces, which `hloom/jax_names.py` records: messages and tests know them without JAX.

    python tests/support/jax_names.py      # writes the names there anew, with the JAX that is installed
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import textwrap
import warnings
from pathlib import Path
from types import ModuleType

from hloom import jax_names

PATH = Path(jax_names.__file__)
VERSION = jax_names.VERSION
NAMESPACES = tuple(jax_names.NAMES)
"""Below `jax`, and below `hloom`."""


def recorded() -> dict[str, list[str]]:
    """The names of each namespace."""
    return {name: sorted(jax_names.names(name)) for name in NAMESPACES}


def namespace(package: str, name: str) -> ModuleType:
    """``namespace("jax", "numpy.linalg")``; the name "" is the package itself."""
    return importlib.import_module(f"{package}.{name}".rstrip("."))


def of_jax() -> dict[str, list[str]]:
    """As `recorded`, of the JAX that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX warns of names that will go
        return {
            name: sorted(n for n in _offered(module, name) if not n.startswith("_"))
            for name in NAMESPACES
            for module in [namespace("jax", name)]
        }


def _offered(module: ModuleType, name: str) -> set[str]:
    found = {n for n in dir(module) if hasattr(module, n)}
    if name in ("experimental", "extend"):  # their modules are bound when they are imported: all count
        found |= {each.name for each in pkgutil.iter_modules(module.__path__)}
    if name == "":  # a public module that is bound when it is imported
        found.add("flatten_util")
    return found


def as_source(names: dict[str, list[str]], version: str) -> str:
    """The part of `hloom/jax_names.py` that holds the names."""
    lines = [f'VERSION = "{version}"', '"""The JAX whose names these are."""', "NAMES = {"]
    for name, found in names.items():
        lines += [f'    "{name}": """', *textwrap.wrap(" ".join(found), 120), '""",']
    return "\n".join([*lines, "}\n"])


if __name__ == "__main__":
    import jax

    text = PATH.read_text()
    new = as_source(of_jax(), jax.__version__)
    PATH.write_text(re.sub(r"VERSION = .*?\n}\n", lambda _: new, text, count=1, flags=re.DOTALL))
