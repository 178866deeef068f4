"""The keys of the store: every file of the library that takes part in making an entry changes its key."""

from __future__ import annotations

import ast
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hloom.numba_backend.runtime import installation

from support.runtime_kernels import ADD, python

FOLDERS = ("hlo", "numba_backend")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A copy of the files that make programs."""
    copy = tmp_path_factory.mktemp("package")
    for name in FOLDERS:
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def own(package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The copy, in the place of the library."""
    monkeypatch.setattr(installation, "_PACKAGE", package)
    monkeypatch.setattr(installation, "BEGAN", time.time_ns() + 10**12)
    return package


def files(package: Path) -> Iterator[Path]:
    for name in FOLDERS:
        yield from sorted((package / name).rglob("*.py"))


@contextmanager
def changed(file: Path) -> Iterator[None]:
    """Other content of the same size, and the same time of modification."""
    status, data = file.stat(), file.read_bytes()
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:] if data else b"")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    yield
    file.write_bytes(data)


def test_every_file_is_in_the_key_of_programs(own: Path) -> None:
    states = [installation._state()]
    for file in files(own):
        with changed(file):
            states.append(installation._state())
    assert None not in states
    assert len(set(states)) == len(states) > 500


def test_every_file_that_the_compiler_imports_is_in_the_key_of_kernels(own: Path) -> None:
    before = installation.compiler_digest()
    imported = imports_of(own, own / "numba_backend" / "runtime" / "store.py")
    own_files = [file for file in files(own) if file.stat().st_size > 0]
    for file in own_files:
        if file in imported:
            with changed(file):
                assert installation.compiler_digest() != before, file
    with ExitStack() as all_others:
        for file in own_files:
            if file not in imported:
                all_others.enter_context(changed(file))
        assert installation.compiler_digest() == before
    assert installation.compiler_digest() == before
    names = {path.stem for path in imported}
    assert names > {"block_moves", "one_pass", "compile", "vectorized_calls", "numba_frontend", "dialect", "machine"}


def imports_of(package: Path, start: Path) -> set[Path]:
    """The result of `_closure`, from the syntax trees."""
    found: set[Path] = set()
    left = [start]
    while left:
        path = left.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            named: list[tuple[str, list[str]]] = []
            if isinstance(node, ast.ImportFrom) and node.level:
                named = [("." * node.level + (node.module or ""), [alias.name for alias in node.names])]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                strings = [c.value for c in ast.walk(node.args[0]) if isinstance(c, ast.Constant)]
                named = [(name, []) for name in strings if isinstance(name, str)]
            for name, parts in named:
                folder, steps = path.parent, name.lstrip(".")
                for _ in range(len(name) - len(steps) - 1):
                    folder = folder.parent
                base = folder.joinpath(*filter(None, steps.split(".")))
                places = [base, *(base / part for part in parts)]
                left += [p for place in places for p in (place.with_suffix(".py"), place / "__init__.py") if p.exists()]
    return found


COMPILING = """
import sys
from pathlib import Path
from hloom.numba_backend.runtime import installation
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.store import KernelStore
store = KernelStore(sys.argv[1])
store.get(KernelSource("add", sys.argv[2], (("pointer", "f32"),) * 3))
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.dialect import SCOPE
to_llvm(KernelSource("add", sys.argv[2], (("pointer", "f32"),) * 3), SCOPE, "numba")
start = Path(installation.__file__).with_name("store.py")
known = set(installation._closure(str(start)))
for name, module in list(sys.modules.items()):
    if name.startswith("hloom.") and not module.__file__.endswith("__init__.py") and module.__file__ not in known:
        print(name)
"""


def test_a_process_that_compiles_imports_nothing_else(tmp_path: Path) -> None:
    # The package itself, or the code that asks, imports these before. A system gives folders, locks and memory;
    # its numbers and texts are parts of a kernel's own text.
    known = {"hloom.hlo.library", "hloom.hlo.support.loading", "hloom.version"}
    known |= {f"hloom.hlo.system.{name}" for name in ("linux", "posix", "darwin")}
    assert set(python(COMPILING, str(tmp_path), ADD.source).split()) <= known


def test_a_file_without_a_change_time_counts_by_its_content(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image that keeps one time for each file, in seconds."""
    folder, file = own / "numba_backend" / "emit", own / "numba_backend" / "emit" / "sort.py"

    def seen() -> list[str]:
        found: list[str] = []
        installation._look(str(folder), found)
        return found

    def has_text() -> bool:
        return any(line.endswith(f"\n{file.read_text()}") for line in seen())

    assert not has_text()
    monkeypatch.setattr(installation, "_SECOND", 1)
    assert has_text()


def test_another_place_is_another_library(own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Package managers that give each version its folder give all files one time."""
    before = installation._state()
    for name in FOLDERS:
        (own / name).rename(tmp_path / name)
    monkeypatch.setattr(installation, "_PACKAGE", tmp_path)
    assert installation._state() not in (None, before)
    for name in FOLDERS:
        (tmp_path / name).rename(own / name)


def test_files_that_cannot_be_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installation, "_PACKAGE", tmp_path / "library.zip")
    assert installation._state() is None


UPGRADED = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import hloom, numpy as np
import hloom.numpy as jnp
assert hloom.__file__.startswith(sys.argv[1])
def call():
    hloom.jit(lambda x: jnp.cumsum(x) * 3)(np.float32([1, 5]))
    os.makedirs(sys.argv[2], exist_ok=True)
    return len([name for name in os.listdir(sys.argv[2]) if name.endswith((".program", ".o"))])
when = sys.argv[3]
def upgrade(*parts):
    time.sleep(0.02)
    file = os.path.join(sys.argv[1], "hloom", "numba_backend", *parts)
    assert os.path.exists(file)
    os.utime(file)
def is_imported(name):
    return f"hloom.numba_backend.{name}" in sys.modules
if when == "early":
    upgrade("emit", "sort.py")
from hloom.numba_backend import compiling
from hloom.numba_backend.runtime import installation
assert is_imported("lowering") and not is_imported("runtime.frontend")
if when != "early":
    installation.installation()
if when == "late":
    upgrade("runtime", "frontend.py")
if when == "loaded":
    upgrade("lowering.py")
print(call())
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("when", ["never", "late", "early", "loaded"])
def test_a_process_of_two_versions_stores_nothing(tmp_path: Path, root: Path, when: str) -> None:
    for name in ("hloom", *FOLDERS, "tracer", "autodiff"):
        shutil.copytree(root / name, tmp_path / "p" / name, symlinks=True)  # with what Python made of them
    store = tmp_path / "store"
    environment = {"HLOOM_CACHE_DIR": str(store), "HLOOM_VERIFY_PASSES": "0"}
    found = int(python(UPGRADED, str(tmp_path / "p"), str(store), when, environment=environment))
    assert (found > 0) is (when in ("never", "loaded"))  # a file that is loaded already is of the old version
