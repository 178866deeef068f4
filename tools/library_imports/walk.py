"""The libraries that require JAX, and the modules of each, from files: nothing is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

_REQUIRES_JAX = re.compile(r"jax *(\[[^\]]*\])? *(\([^)]*\)|[<>=!~][^;]*)? *(;(?P<marker>.*))?$")
_NOT_OF_LIBRARIES = {"conftest", "docs", "tests", "test", "examples", "example", "scripts", "benchmarks", "__main__"}
_ALSO = {"keras", "pymc", "treescope"}
"""Libraries that use JAX, if it is there, and do not require it."""
_PARTS = {"tensorflow_probability": "tensorflow_probability.substrates.jax", "mujoco": "mujoco.mjx"}
"""The part of a package that is for JAX."""


def _requires_jax(requirement: str) -> bool:
    found = _REQUIRES_JAX.match(requirement)
    marker = (found["marker"] or "").replace("'", '"') if found else ""
    return found is not None and ("extra" not in marker or 'extra == "jax"' in marker)


def libraries() -> dict[str, list[str]]:
    """By distribution, with its version: the packages of those that require jax themselves, or as their extra "jax"."""
    found: dict[str, list[str]] = {}
    for each in importlib.metadata.distributions():
        name = each.metadata["Name"]
        requires = any(map(_requires_jax, each.requires or []))
        if name.lower() == "jax" or not (requires or name.lower() in _ALSO):
            continue
        packages = {path.parts[0] for path in each.files or [] if path.suffix == ".py" and len(path.parts) > 1}
        packages = {_PARTS.get(p, p) for p in packages if p.isidentifier() and p not in _NOT_OF_LIBRARIES}
        if packages and sorted(packages) not in found.values():
            found[f"{name} {each.version}"] = sorted(packages)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def modules(package: str) -> Iterator[str]:
    """A package's name and the names of its modules, each after the package that it is in; no tests and scripts."""
    yield package
    first, *inner = package.split(".")
    spec = importlib.util.find_spec(first)
    for path in (spec.submodule_search_locations or []) if spec is not None else []:
        yield from _inside(package, Path(path, *inner))


def _inside(package: str, folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        name, _, suffix = path.name.partition(".")
        if name in _NOT_OF_LIBRARIES or name.endswith("_test") or name.startswith("test_") or not name.isidentifier():
            continue
        if path.is_dir() and not suffix and any(path.rglob("*.py")):  # it may have no __init__.py
            yield f"{package}.{name}"
            yield from _inside(f"{package}.{name}", path)
        elif suffix == "py" and name != "__init__":
            yield f"{package}.{name}"


def file_of(module: str) -> Path | None:
    """The file of a module, without an import; None: it has none, as a folder without __init__.py."""
    first, *inner = module.split(".")
    spec = importlib.util.find_spec(first)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(folder, *inner)
        for file in (path / "__init__.py", path.with_suffix(".py") if inner else path / "__init__.py"):
            if file.is_file():
                return file
    return None
