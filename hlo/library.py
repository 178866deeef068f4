"""The parts of the package that layers below them use, each imported when it is first needed.

Imports go down only. Where a lower layer needs something that is above it, it asks for a part by its name here, and
`hloom/__init__.py`, which is above all, says which module that is.
"""

from __future__ import annotations

from types import ModuleType

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


def part_above(name: str) -> ModuleType:
    """The module of a part."""
    return load(PARTS[name], (__package__ or "").rpartition(".")[0])
