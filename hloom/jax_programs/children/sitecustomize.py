"""Python runs this file when it starts in a process of a program that called `as_jax()`: `__init__.py` says how.

A worker of the program gets a finder that calls `as_jax()` at the first `import jax`: by then the worker has its
`sys.path`, and one that needs no JAX imports none of the library. In any other process nothing is changed, and its own
children are not asked. The `sitecustomize` that would have been found without this folder is run as always.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))
VARIABLE = "HLOOM_AS_JAX"
"""The environment variable that says which processes are asked, and of which installation of Python."""
_WORKERS = (
    "--multiprocessing-fork",  # multiprocessing, and what is made like it: method spawn
    ".forkserver import main",  # method forkserver
    "loky.backend.popen_loky",  # joblib
    "exec(eval(sys.stdin.readline()))",  # execnet: pytest-xdist
    "ipykernel",  # notebooks
    "ipyparallel.engine",
    "mpi4py.futures",
)
"""A worker's command line contains one of these."""


def asked() -> str | None:
    """Which processes the environment names, "all" or "workers"; None: none of this installation of Python."""
    which, _, prefix = os.environ.get(VARIABLE, "").partition(":")
    return which if which and prefix == sys.prefix else None


def _begin() -> None:
    sys.path[:] = [folder for folder in sys.path if folder != FOLDER]
    which = asked()
    if which == "all" or (which and any(mark in word for mark in _WORKERS for word in sys.orig_argv)):
        sys.meta_path.insert(0, _Waiting())
    else:
        os.environ.pop(VARIABLE, None)
        rest = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder != FOLDER]
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
        if not any(rest):
            del os.environ["PYTHONPATH"]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        other = ModuleType("sitecustomize")
        other.__spec__, other.__file__, other.__loader__ = spec, spec.origin, spec.loader
        sys.modules["sitecustomize"] = other
        spec.loader.exec_module(other)


class _Waiting:
    """Calls `as_jax()` when JAX is first looked for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Those of hloom's finder, which then is the first."""
        return self._finder().find_spec(name, path, target) if name.partition(".")[0] in ("jax", "jaxlib") else None

    def find_distributions(self, context: Any = None) -> Any:
        """As `find_spec`; a search without a name is for all distributions, JAX's among them."""
        name = getattr(context, "name", None)
        asked = name is None or name.lower() in ("jax", "jaxlib")
        return self._finder().find_distributions(context) if asked else ()

    def _finder(self) -> Any:
        from hloom.jax_programs import as_jax  # the library, which this process may never need

        if self in sys.meta_path:
            sys.meta_path.remove(self)
            as_jax()
        return sys.meta_path[0]


if __name__ == "sitecustomize":
    _begin()
