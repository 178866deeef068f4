"""The public names of JAX's namespaces, recorded in `tests/data/jax_names.json`: tests know them without JAX.

    python tests/support/jax_names.py      # writes the names there anew, with the JAX that is installed
    python tests/support/jax_names.py --newer  # of a newer JAX, the names that the first has not
    python tools/namespaces.py --write     # and in the package those that hloom lacks
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
import sys
import warnings
from functools import partial
from pathlib import Path
from types import ModuleType

PATH = Path(__file__).resolve().parent.parent / "data" / "jax_names.json"
_RECORDED = json.loads(PATH.read_text())
VERSION: str = _RECORDED["version"]
RECORDED: tuple[str, ...] = tuple(_RECORDED["names"])
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
    return {name: found.split() for name, found in _RECORDED["names"].items()}


def newer() -> dict[str, set[str]]:
    """The names of each namespace that only the newer version of JAX has."""
    return {name: set(found.split()) for name, found in _RECORDED["newer"]["names"].items()}


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


if __name__ == "__main__":
    import jax

    if "--newer" in sys.argv:
        more = {name: " ".join(sorted({*names} - {*recorded()[name]})) for name, names in of_jax().items()}
        _RECORDED["newer"] = {"version": jax.__version__, "names": {k: v for k, v in more.items() if v}}
    else:
        _RECORDED["version"] = jax.__version__
        _RECORDED["names"] = {name: " ".join(names) for name, names in of_jax().items()}
    PATH.write_text(json.dumps(_RECORDED, indent=1) + "\n")
