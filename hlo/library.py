"""The parts of the package that layers below them use, each imported when it is first needed.

Imports go down only. Where a lower layer needs something that is above it, it asks for a part by its name here, and
`hloom/__init__.py`, which is above all, says which module that is.

`set_module` gives a class of a lower layer its public module: the namespace in which users find it, and which
tracebacks print. That namespace may not be loaded yet. cloudpickle, which Dask and Ray use, pickles a class by value if
its module is not loaded: the receiver makes another class of it, and no `isinstance` and no `except` knows its objects.
So the pickling of an object loads the module first.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .support.loading import load

PARTS: dict[str, str] = {
    "backends": ".namespaces.backends",  # registers the backends of this package, for `hlo/backend.py`
    "functions": ".numpy",  # gives arrays their operators and methods (`use_functions`)
    "jaxprs": ".jaxpr.view",  # shows programs as jaxprs, for `tracer/stages.py`, and binds primitives by JAX's names
    "notebooks": ".notebooks.views",  # shows objects in notebooks, for `hlo/notebooks.py`
    "namespaces": ".namespaces",  # the functions of `hloom.hlo`, which names are public, messages
    "sizes": ".tracer.symbolic.values",  # symbolic sizes as values of the traced program
    "special": ".lax.special_in_hlo",  # functions that CHLO has and HLO has not
}
"""The modules below the package, by the names of the parts."""

_PACKAGE = (__package__ or "").rpartition(".")[0]


def part_above(name: str) -> ModuleType:
    """The module of a part."""
    return load(PARTS[name], _PACKAGE)


def set_module(namespace: str, *classes: Any) -> None:
    """Make a namespace of the package the public module of classes."""
    module = f"{_PACKAGE}.{namespace}"
    for cls in classes:
        cls.__module__ = module
        cls.__reduce_ex__ = _loading(module, cls.__reduce_ex__)


def _loading(module: str, reduce_ex: Any) -> Any:
    """A method `__reduce_ex__` that loads `module` first."""

    def loading(self: Any, protocol: Any) -> Any:
        load(module)
        return reduce_ex(self, protocol)

    return loading


def exceptions_of(names: dict[str, Any]) -> list[Any]:
    """The public classes of exceptions that a module with these global names defines."""
    own = [c for c in names.values() if isinstance(c, type) and c.__module__ == names["__name__"]]
    return [c for c in own if issubclass(c, Exception) and c.__name__[0] != "_"]
