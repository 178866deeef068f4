"""One process: imports modules, and writes for each a line of JSON with the outcome and the names that were missing.

    python -m tools.library_imports.child jax|hloom|go-on FOLDER_OF_LIBRARIES < MODULES
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import warnings
from types import ModuleType
from typing import Any, ClassVar

SECONDS = 120
"""A module that takes longer fails."""


class StandIn(ModuleType):
    """In place of a name that is missing: a module, class, function, whatever the library makes of it."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = StandIn(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not keywords else self

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)

    def __getitem__(self, item: Any) -> Any:
        return self

    __or__ = __ror__ = __getitem__

    def __setitem__(self, item: Any, value: Any) -> None:
        pass

    def __iter__(self) -> Any:
        return iter(())

    def __instancecheck__(self, other: Any) -> bool:
        return False

    def __hash__(self) -> int:
        return id(self)


def excuse_names() -> None:
    """Names that are there and cannot be used become stand-ins."""
    from hloom.jax_programs.internal import Internal

    def behave(method: str) -> Any:
        return lambda self, *args, **keywords: getattr(type(stand_in), method)(stand_in, *args, **keywords)

    stand_in = StandIn("jax._src")
    for method in ("__call__", "__iter__", "__instancecheck__", "__setitem__", "__getattr__"):
        setattr(Internal, method, behave(method))
    Internal.__new__ = lambda meta, name, bases, contents: type(name, (), contents)  # type: ignore[method-assign]


def put_stand_in(name: str) -> bool:
    """A stand-in for a name of JAX, jax.some.module.name; False: there is one already, or JAX has no such name."""
    from hloom.jax_programs.sources import names
    from hloom.namespaces.jax_names import NAMESPACES, lacking

    space, _, last = name.rpartition(".")
    public = space.removeprefix("jax").lstrip(".")
    if space.startswith("jax._src"):
        if last not in names(public.removeprefix("_src").lstrip(".")):
            return False
    elif public in NAMESPACES and last not in lacking(public) and f"{public}.{last}".lstrip(".") not in NAMESPACES:
        return False
    missing = []
    while True:
        try:
            home = importlib.import_module(space)
            break
        except ImportError:
            missing.append(last)
            space, _, last = space.rpartition(".")
    if isinstance(vars(home).get(last), StandIn) or isinstance(home, StandIn):
        return False
    stand_in: Any = StandIn(f"{space}.{last}")
    setattr(home, last, stand_in)
    sys.modules[f"{space}.{last}"] = sys.modules[f"{home.__name__}.{last}"] = stand_in
    for part in reversed(missing):
        stand_in = getattr(stand_in, part)
        sys.modules[stand_in.__name__] = stand_in
    return True


def _import(module: str) -> str:
    """Import it; what went wrong, or nothing."""
    signal.alarm(SECONDS)
    try:
        importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:300]
    finally:
        signal.alarm(0)
    return ""


def _too_long(*_: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def _asked(misses: Any, root: str) -> dict[str, dict[str, int]]:
    """The names that were missing since the last call: how often each package asked."""
    found: dict[str, dict[str, int]] = {}
    for name, places in misses.places().items():
        for place, count in places.items():
            who = os.path.relpath(place.rpartition(":")[0], root).split(os.sep)[0].removesuffix(".py")
            by_package = found.setdefault(name, {})
            by_package[who] = by_package.get(who, 0) + count
    misses.clear()
    return found


def main() -> None:
    mode, root = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the libraries' own prints
    os.dup2(1, 2)
    modules = sys.stdin.read().split()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_long)
    misses = None
    if mode != "jax":
        import hloom

        hloom.as_jax()
        from hloom.jax_programs.misses import MISSES as misses

        if mode == "go-on":
            excuse_names()
    failed: list[str] = []
    for module in modules:
        parent = next((each for each in failed if module.startswith(f"{each}.")), None)
        print(json.dumps({"begins": module}), file=out)
        error = f"as {parent}" if parent is not None else _import(module)
        asked: dict[str, dict[str, int]] = {}
        while misses is not None:
            new = _asked(misses, root)
            for name, who in new.items():
                asked[name] = {w: max(n, asked.get(name, {}).get(w, 0)) for w, n in who.items()}
            if not (error and mode == "go-on" and parent is None):
                break
            put = [put_stand_in(name) for name in new]
            if not any(put):
                break
            misses.clear()
            error = _import(module)
        if error and parent is None:
            failed.append(module)
        print(json.dumps({"module": module, "error": error, "asked": asked}), file=out)


if __name__ == "__main__":
    main()
