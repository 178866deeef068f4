"""The public names of JAX's namespaces, recorded in `hloom/namespaces/jax_names.py`: messages and tests know them
without JAX.

    python tests/support/jax_names.py      # writes the names there anew, with the JAX that is installed
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import textwrap
import warnings
from functools import partial
from pathlib import Path
from types import ModuleType

from hloom.namespaces import jax_names

PATH = Path(jax_names.__file__)
VERSION = jax_names.VERSION
RECORDED = tuple(jax_names.NAMES)
"""The namespaces below `jax`. One is added by an entry without names, and a run of this file."""


def _is_here(name: str) -> bool:
    """Is there such a module of hloom? It is not imported."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        if importlib.util.find_spec(".".join(["hloom", *parts[:count]]).rstrip(".")) is None:
            return False
    return True


NAMESPACES = tuple(name for name in RECORDED if _is_here(name))
"""Those that are below `hloom`, too."""


def recorded() -> dict[str, list[str]]:
    """The names of each namespace."""
    return {name: sorted(jax_names.names(name)) for name in RECORDED}


def namespace(package: str, name: str) -> ModuleType:
    """``namespace("jax", "numpy.linalg")``; the name "" is the package itself."""
    return importlib.import_module(f"{package}.{name}".rstrip("."))


def of_jax() -> dict[str, list[str]]:
    """As `recorded`, of the JAX that is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # JAX warns of names that will go
        return {
            name: sorted(n for n in _offered(module, name) if n.isidentifier() and not n.startswith("_"))
            for name in RECORDED
            for module in [namespace("jax", name)]
        }


_OPEN = (
    *("example_libraries.optimizers", "example_libraries.stax", "experimental.jet", "experimental.multihost_utils"),
    *("experimental.ode", "experimental.rnn", "experimental.serialize_executable", "experimental.sparse"),
    *("experimental.scheduling_groups", "experimental.sparse.linalg"),
)
"""Modules of JAX that show what they import for themselves."""


def _is_own(value: object, module: ModuleType) -> bool:
    """Was it made in the module? A module or something of another library was not."""
    if isinstance(value, (ModuleType, partial)):
        return isinstance(value, partial)
    return str(getattr(value, "__module__", module.__name__)).startswith(module.__name__)


def _offered(module: ModuleType, name: str) -> set[str]:
    found = {n for n in dir(module) if hasattr(module, n)}
    if name in _OPEN:
        found = {n for n in found if _is_own(vars(module)[n], module)}
    if name in ("experimental", "extend"):  # their modules are bound when they are imported: all count
        found |= {each.name for each in pkgutil.iter_modules(module.__path__)}
    if name == "":  # a public module that is bound when it is imported
        found.add("flatten_util")
    return found


def as_source(names: dict[str, list[str]], version: str) -> str:
    """The part of `hloom/namespaces/jax_names.py` that holds the names."""
    lines = [f'VERSION = "{version}"', '"""The JAX whose names these are."""', "NAMES = {"]
    for name, found in names.items():
        lines += [f'    "{name}": """', *textwrap.wrap(" ".join(found), 120), '""",']
    return "\n".join([*lines, "}\n"])


if __name__ == "__main__":
    import jax

    text = PATH.read_text()
    new = as_source(of_jax(), jax.__version__)
    PATH.write_text(re.sub(r"VERSION = .*?\n}\n", lambda _: new, text, count=1, flags=re.DOTALL))
