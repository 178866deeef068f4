#!/usr/bin/env python3
"""hloom/jax_programs/sources.txt: the names in JAX's internal modules, and under which name JAX publishes them.

    PYTHONPATH=. PYTHON_WITH_JAX tools/jax_sources.py            # says where the file differs from what JAX has
    PYTHONPATH=. PYTHON_WITH_JAX tools/jax_sources.py --write    # writes it

Run it with the version of JAX that `hloom/namespaces/jax_names.py` names. Two names are one if JAX has one object for
both. Of several public names that of a namespace that hloom has comes first.

The file has a block for each module of `jax._src`. A line says where names of the module are: in a public namespace
(`jax: jit`, `lax: add`), in another module of `jax._src` (`@util: safe_map`), or nowhere else (`-: _convert`).
`a=b` has the name `b` there. `~: T` are type variables. `*: core xc=jaxlib.xla_client` are modules that it imports, of
`jax._src` and others.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import pkgutil
import sys
import textwrap
import warnings
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from hloom.namespaces.jax_names import NAMESPACES, VERSION, lacking  # noqa: E402

FILE = ROOT / "hloom" / "jax_programs" / "sources.txt"
RECORDED = json.loads((ROOT / "tests" / "data" / "jax_names.json").read_text())["names"]
_ACCELERATORS = ("pallas", "tpu", "internal_test_util", "mosaic")
"""Modules whose private names are left out."""
_HOMES = ("typing", "util", "dtypes", "core")
"""Modules whose names others have, too; the objects do not say so."""
_OF_PYTHON = {"TYPE_CHECKING", "annotations", "Callable", "Hashable", "_"}
_NOT_IMPORTED = ("jax.tools", "jax.collect_profile")


def modules() -> dict[str, ModuleType]:
    """All modules of JAX that can be imported here."""
    import jax

    found = {"jax": jax}
    for each in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda _: None):
        if each.name.startswith(_NOT_IMPORTED) or each.name.endswith("_test"):
            continue
        try:
            found[each.name] = importlib.import_module(each.name)
        except ImportError:
            print(f"{each.name} cannot be imported, and is left out", file=sys.stderr)
    return found


def _is_plain(found: Any) -> bool:
    """Whether two modules may have the same object by chance, such as `typing.Any`: then names must agree, too."""
    if found is None or isinstance(found, (bool, int, float, complex, str, bytes, tuple, frozenset)):
        return True
    home = getattr(found, "__module__", None)
    return isinstance(home, str) and home.partition(".")[0] not in ("jax", "jaxlib")


def _key(name: str, found: Any) -> Any:
    return (name, repr(found)) if _is_plain(found) else id(found)


def published(found: dict[str, ModuleType]) -> dict[Any, list[tuple[str, str]]]:
    """The public names of objects: namespace and name."""
    names: dict[Any, list[tuple[str, str]]] = defaultdict(list)
    for space, of_space in RECORDED.items():
        contents = vars(found[f"jax.{space}".rstrip(".")])
        for name in of_space.split():
            if name in contents and not isinstance(contents[name], ModuleType):
                names[_key(name, contents[name])].append((space, name))
    return names


def _place(module: str, name: str, found: Any, public: dict[Any, list[tuple[str, str]]]) -> tuple[str, str] | None:
    """Where a name of an internal module is, and its name there; None: in a package that is not JAX."""
    if isinstance(found, ModuleType):
        target = found.__name__.removeprefix("jax._src.")
        is_jax = found.__name__.partition(".")[0] in ("jax", "jaxlib")
        return ("*", target) if is_jax and target != f"{module}.{name}" else None
    names = public.get(_key(name, found))
    if names:

        def order(place: tuple[str, str]) -> Any:
            space, other = place
            is_here = space in NAMESPACES and other not in lacking(space)
            return not is_here, other != name, space.count("."), len(space), space

        return min(names, key=order)
    home = getattr(found, "__module__", None)
    own = home if isinstance(home, str) else ""
    if own in sys.modules and getattr(sys.modules[own], name, None) is found:
        if own.startswith("jax._src.") and own != f"jax._src.{module}":
            return f"@{own.removeprefix('jax._src.')}", name
        if own.partition(".")[0] not in ("jax", "jaxlib"):
            return None
    if type(found) is TypeVar:
        return "~", found.__name__
    homes = () if own == f"jax._src.{module}" else _HOMES[: _HOMES.index(module)] if module in _HOMES else _HOMES
    for home in homes if found is not None and not isinstance(found, (bool, int, float, str)) else ():
        for other, each in vars(sys.modules[f"jax._src.{home}"]).items():
            is_pythons = not own.startswith("jax") and getattr(sys.modules.get(own), other, None) is found
            if each is found and other[0] != "_" and not is_pythons:
                return f"@{home}", other
    return "-", name


def text() -> str:
    """The file."""
    found = modules()
    public = published(found)
    lines = [f"JAX {VERSION}"]
    for module in sorted(found):
        if not module.startswith("jax._src."):
            continue
        inner = module.removeprefix("jax._src.")
        places: dict[str, list[str]] = defaultdict(list)
        for name, each in sorted(vars(found[module]).items()):
            left_out = "_" if inner.startswith(_ACCELERATORS) else "__"
            if name.startswith(left_out) or name in _OF_PYTHON:
                continue
            place = _place(inner, name, each, public)
            if place is not None:
                where, other = place
                places[where].append(name if other == name else f"{name}={other}")
        lines.append(inner)
        for where, names in sorted(places.items()):
            lines += textwrap.wrap(
                f"{where or 'jax'}: {' '.join(names)}", 118, initial_indent=" ", subsequent_indent="  ",
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import jax

    if jax.__version__ != VERSION:
        parser.error(f"this is JAX {jax.__version__}, and the names follow {VERSION}")
    new = text()
    if options.write:
        FILE.write_text(new)
        return 0
    old = FILE.read_text()
    difference = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "as written", "as made", lineterm=""))
    print("\n".join(difference))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
