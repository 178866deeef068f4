"""What is installed, and what importing it imports."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

HEAVY = (
    "numba",
    "llvmlite",
    "scipy",
    "opt_einsum",
    "tqdm",
    "matplotlib",
    "sklearn",
    "jax",
    "mpmath",
    "concurrent.futures.process",
)


def settings(root: Path) -> dict[str, object]:
    return tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]


def python(code: str, *arguments: str, cwd: Path) -> str:
    ran = subprocess.run([sys.executable, *arguments, "-c", code], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_every_package_is_listed(root: Path) -> None:
    """A folder that nobody listed works in an editable install and is missing from the wheel."""
    folders = settings(root)["package-dir"]
    assert isinstance(folders, dict)
    found = set()
    for package, folder in folders.items():
        for init in sorted((root / folder).rglob("__init__.py")):
            inner = init.parent.relative_to(root / folder).parts
            found.add(".".join([package, *inner]))
    assert found == set(settings(root)["packages"])  # type: ignore[call-overload]


def test_every_module_is_in_a_package(root: Path) -> None:
    for folder in ("hloom", "hlo", "tracer", "autodiff", "numba_backend"):
        for module in (root / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), f"{module}: its folder has no __init__.py"


@pytest.mark.parametrize("name", ["hloom", "hloom.hlo", "hloom.numpy", "hloom.numba_backend"])
def test_import_stays_light(name: str, tmp_path: Path) -> None:
    """Nothing that compiles is imported before something must be compiled."""
    loaded = python(f"import sys, {name}; print(*sys.modules)", cwd=tmp_path).split()
    assert name in loaded
    assert sorted(set(HEAVY) & set(loaded)) == []


@pytest.mark.slow
def test_the_wheel_holds_everything_and_works(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    folders = settings(root)["package-dir"]
    assert isinstance(folders, dict)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source)
    for folder in folders.values():
        shutil.copytree(root / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("hloom-*.whl")

    expected = {"hloom/py.typed"}
    for package, folder in folders.items():
        for module in (source / folder).rglob("*.py"):
            expected.add(f"{package.replace('.', '/')}/{module.relative_to(source / folder).as_posix()}")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        archive.extractall(tmp_path / "installed")
    assert held == expected

    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "installed")!r})
import hloom, hloom.numpy as jnp
assert hloom.__file__.startswith({str(tmp_path / "installed")!r}), hloom.__file__
print(hloom.jit(lambda x: jnp.sum(x * x))(jnp.arange(4.0)))
"""
    assert float(python(code, cwd=tmp_path)) == 14.0


@pytest.mark.parametrize("name", ["hloom.numpy.linalg", "hloom.nn.initializers"])
def test_modules_that_jax_programs_import(name: str, tmp_path: Path) -> None:
    parent, _, attribute = name.rpartition(".")
    code = f"import {name} as module, {parent}; from {parent} import {attribute}; assert {attribute} is module"
    python(code, cwd=tmp_path)
