"""as_jax(): from now on, `jax`, `jax.numpy`, ... are hloom's modules in this process and its workers.

Python calls the finders of `sys.meta_path` for each module that it has not imported yet. The first of them is now
`_Finder`: for `jax.numpy` it gives the module `hloom.numpy` itself. `jax` is a module of its own, since it has another
version than hloom; all its names are hloom's. `jaxlib` and `jax.lib` have that version; `jaxlib` has a few classes.
`importlib.metadata` asks the same finders for distributions; `pkg_resources` gets them when it is imported.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder, PathEntryFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

from ..hlo.support.loading import load
from ..namespaces import missing, on_missing
from ..namespaces.jax_names import NAMESPACES, VERSION, lacking
from . import children, distributions
from .misses import MISSES
from .versions import Versioned

_PACKAGE = __name__.partition(".")[0]
_OWN = {"hlo"}
"""Public modules that JAX does not have."""
_BINARY = f"{_PACKAGE}.jax_programs.jaxlib"
"""The package in place of `jaxlib`."""
_BINARY_MODULES = ("_jax", "xla_client")


class JaxImportedError(ImportError):
    """`jax` was to become hloom in a process that has imported JAX itself."""


def as_jax(*, subprocesses: bool = False) -> ModuleType:
    """Make `import jax` find hloom, for the rest of this process; the module `jax`.

    `jax.numpy`, `jax.lax`, ... are `hloom.numpy`, `hloom.lax`, ... themselves. `jax.__version__` is the version of JAX
    that these names follow, or that of the setting `hloom_jax_version`. Names that hloom lacks raise ImportError or
    AttributeError, and the message says whether JAX has the name and what to use. Call it before any module that
    imports JAX. A second call changes nothing here.

    Workers that the process starts from now on find hloom, too: those of `multiprocessing`, of `concurrent.futures`, of
    joblib and of pytest-xdist, and the kernels of notebooks. With `subprocesses` all processes of this Python do. They
    read it in their environment, in `PYTHONPATH` and `HLOOM_AS_JAX`.

    Raises:
      JaxImportedError: JAX itself is imported already.

    >>> jax = hloom.as_jax()  # doctest: +SKIP
    >>> import jax.numpy as jnp  # doctest: +SKIP
    """
    found = sys.modules.get("jax")
    if isinstance(found, _Jax):
        children.pass_on(subprocesses)
        return found
    real = next((n for n in sys.modules if n.partition(".")[0] in ("jax", "jaxlib")), None)
    if real is not None:
        place = getattr(sys.modules[real], "__file__", None)
        raise JaxImportedError(
            f"this process has imported JAX itself ({real}{f' from {place}' if place else ''}), so `jax` cannot become "
            f"{_PACKAGE}: arrays and types of both would mix. Call {_PACKAGE}.as_jax() before the first `import jax`, "
            f"in a new process (in a notebook: restart the kernel); or run `python -m {_PACKAGE} jax SCRIPT.py`.",
            name="jax",
        )
    children.pass_on(subprocesses)
    on_missing(MISSES.record)
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_LastFinder())
    if "pkg_resources" in sys.modules:
        distributions.join_working_set(sys.modules["pkg_resources"])
    return importlib.import_module("jax")


class _Jax(Versioned):
    """The module `jax`."""

    def __init__(self) -> None:
        package = importlib.import_module(_PACKAGE)
        super().__init__("jax", package.__doc__)
        self.__dict__.update(__file__=package.__file__, __path__=[_own_folder(package)])

    def __getattr__(self, name: str) -> Any:
        if name == "version" or name.startswith("__version"):
            return super().__getattr__(name)
        if name in ("lib", "_src"):
            return importlib.import_module(f"jax.{name}")
        if name in _OWN:
            raise AttributeError(_no_own(name))
        found = getattr(sys.modules[_PACKAGE], name)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted({"__version__", "__version_info__", *self.__dict__, *dir(sys.modules[_PACKAGE])} - _OWN)


def _own_folder(package: ModuleType) -> str:
    """The folder of the package in a spelling of its own, for which Python's search of files finds nothing. pytest
    searches `jax.__path__` for `test_util.py` before it asks other finders, and would run the file a second time."""
    folder = os.path.join(package.__path__[0], "")
    sys.path_importer_cache[folder] = _NoFiles()
    return folder


class _NoFiles(PathEntryFinder):
    """Finds no files."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return None


class _Finder(MetaPathFinder):
    """Finds `jax`, `jaxlib` and their submodules, and the distributions of these names."""

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        return distributions.found(context or DistributionFinder.Context())

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, inner = name.partition(".")
        if name == "pkg_resources" and target is None:
            return distributions.spec_of_pkg_resources()
        if package not in ("jax", "jaxlib"):
            return None
        module = _module(package, inner)
        if module is None:
            if _only_asked():
                return None
            raise _not_here(package, inner)
        spec = ModuleSpec(name, _Loader(module), origin=_PACKAGE)
        spec.submodule_search_locations = list(getattr(module, "__path__", ()))
        return spec


class _LastFinder(MetaPathFinder):
    """Asked last for modules of hloom. `from jax.numpy import x` looks for the module `hloom.numpy.x` where
    `hloom.numpy` has no `x`; the error of the import statement itself would give no advice."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, inner = name.partition(".")
        if package != _PACKAGE or _only_asked():
            return None
        if name.startswith(f"{_BINARY}."):
            raise _not_here("jaxlib", name.removeprefix(f"{_BINARY}."))
        raise _not_here("jax", inner)


class _Loader(Loader):
    """Gives a module that exists."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        if self._spec is not None:
            module.__spec__ = self._spec  # the import system has set one that says `jax`
        if not hasattr(module, "__path__"):
            module.__path__ = []  # `from jax.tree import x` now calls the finders for a module x: see _LastFinder


def _module(package: str, inner: str) -> ModuleType | None:
    """The module that `package.inner` is; None if there is none."""
    if package == "jaxlib" and inner in _BINARY_MODULES:
        return importlib.import_module(f"{_BINARY}.{inner}")
    if inner == "version" or (package, inner) in (("jax", "lib"), ("jaxlib", "")):
        return Versioned(f"{package}.{inner}".rstrip("."))
    if package == "jaxlib":
        return None
    if not inner:  # the import of `jax` may be the one in which a worker calls `as_jax`
        here = sys.modules.get("jax")
        return here if isinstance(here, _Jax) else _Jax()
    first, *rest = inner.split(".")
    if first == "_src":
        source: ModuleType | None = load(".sources", __package__).module(".".join(rest))
        return source
    if first in _OWN:
        return None
    if inner in NAMESPACES:  # some of these modules are there only after they were imported
        return importlib.import_module(f"{_PACKAGE}.{inner}")
    found: Any = sys.modules[_PACKAGE]
    for part in [first, *rest]:
        found = getattr(found, part, None) if part in getattr(found, "__all__", ()) else None
    return found if isinstance(found, ModuleType) else None


def _no_own(name: str) -> str:
    return f"JAX has no {name!r}; it is here after `import {_PACKAGE}` as {_PACKAGE}.{name}"


def _only_asked() -> bool:
    """Whether `importlib.util.find_spec` asks the finder that calls this, and not an import."""
    return sys._getframe(3).f_code.co_name == "find_spec"


class _NotHere(ModuleNotFoundError):
    """A module, or a name that an import statement wants, that is not here.

    It has no `name`: for an error with the name of the module that it looked for, `from package import x` raises
    another error, without the message.
    """


_NotHere.__module__, _NotHere.__name__, _NotHere.__qualname__ = "builtins", "ModuleNotFoundError", "ModuleNotFoundError"


def _not_here(package: str, inner: str) -> ModuleNotFoundError:
    """The error for a module or name, which is noted for the report."""
    space, _, name = inner.rpartition(".")
    if inner in _OWN:
        return _NotHere(_no_own(inner))
    if package == "jaxlib":
        MISSES.record("jaxlib", inner)
        few = f"{_PACKAGE} runs in place of jaxlib, and has only a few of its names; see docs/jax_programs.md"
        return _NotHere(f"no jaxlib.{inner}: {few}")
    if space.partition(".")[0] == "_src" or name == "_src":
        MISSES.record(f"jax.{space}".rstrip("."), name)
        return _NotHere(f"JAX has no jax.{inner}: {_PACKAGE} follows the names of JAX {VERSION}")
    home = f"{_PACKAGE}.{space}".rstrip(".")
    if not space or home in sys.modules or name in lacking(space):
        error = missing(home, name)
        return _NotHere(str(error))
    MISSES.record(home, name)
    return _NotHere(f"no module jax.{inner}: {_PACKAGE} has no {space}")
