"""The package's code is up to date with the stages and LLVM: the runtime's own functions, and elementary ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import llvmlite
import pytest
from hloom.numba_backend.runtime import native_code
from hloom.numba_backend.runtime.call import CALLER
from hloom.numba_backend.runtime.executor import EXECUTOR, native_function
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.loader import LINKS
from hloom.numba_backend.runtime.store import KernelStore
from hloom.numba_backend.runtime.threads import POOL_FUNCTIONS

from support.runtime_kernels import ADD, python
from support.tool_modules import tool_module

needs_images = pytest.mark.skipif(not LINKS, reason="images are for Linux on x86-64 and ARM")


@pytest.fixture(scope="module")
def tool(root: Path) -> ModuleType:
    return tool_module(root, "native_code")


def _check(root: Path, *options: str) -> None:
    """In a process of its own: LLVM's choice among equals depends on where objects lie, and so on what a process did
    before."""
    command = [sys.executable, str(root / "tools" / "native_code.py"), *options]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert ran.returncode == 0, ran.stdout + ran.stderr + "run python tools/native_code.py --write"


@needs_images
def test_the_files_are_up_to_date(root: Path) -> None:
    """Each function is there, with its text; of elementary ones with the LLVM IR that the text becomes. The runtime's
    own, with the same version of LLVM, byte by byte."""
    _check(root, "--quick")


@needs_images
@pytest.mark.slow
def test_the_code_of_elementary_functions_is_up_to_date(root: Path) -> None:
    _check(root)


@needs_images
def test_what_is_out_of_date_is_told(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(native_code.PATHS["x86_64"]).read_text()
    changed = tmp_path / "code.txt"
    changed.write_text(text.replace(EXECUTOR.identity, "0" * 64))
    told = tool._differences(changed, tool.FUNCTIONS, "x86_64")
    assert told[:2] == ["execute: the text has changed", "execute: no function has this text"]
    if native_code.made_by(text) == f"llvmlite {llvmlite.__version__}":
        images = {f.identity: image for f in tool.FUNCTIONS for image in [native_code.find(text, f.identity)]}
        other = replace(images[EXECUTOR.identity], code=b"\x90" * 40)
        functions = [(f, other if f is EXECUTOR else images[f.identity]) for f in tool.FUNCTIONS]
        changed.write_text(native_code.write(native_code.made_by(text), functions))
        # others may differ, too: the choice of LLVM among equals depends on addresses
        assert "execute: other machine code" in tool._differences(changed, tool.FUNCTIONS, "x86_64")


def test_the_text_of_the_file_is_read_back() -> None:
    images = [(CALLER, native_code.Image(bytes(range(256)), 16, 32, ("memset", "memmove")))]
    images.append((EXECUTOR, native_code.Image(b"\x90", 0, 0, ())))
    text = native_code.write("llvmlite 1", images)
    assert native_code.read(text) == [(f.name, f.identity, image) for f, image in images]
    assert native_code.made_by(text) == "llvmlite 1"
    assert native_code.find(text, "0" * 64) is None


@needs_images
def test_functions_of_the_runtime_are_not_compiled() -> None:
    store = KernelStore(None)
    assert all(store.get_many([EXECUTOR, CALLER, *POOL_FUNCTIONS]))
    assert (store.statistics.delivered, store.statistics.compiled) == (2 + len(POOL_FUNCTIONS), 0)


def test_what_is_not_in_the_file_is_compiled() -> None:
    changed = native_function("execute", EXECUTOR.source + "# changed\n", 3)
    assert native_code.delivered(changed) is None
    assert native_code.delivered(KernelSource(EXECUTOR.name, EXECUTOR.source, EXECUTOR.parameters)) is None
    store = KernelStore(None)
    assert store.get(changed) and store.get(ADD)
    assert (store.statistics.delivered, store.statistics.compiled) == (0, 2)


@needs_images
def test_a_first_program_compiles_its_kernels_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLOOM_CACHE_DIR", str(tmp_path / "store"))
    printed = python(
        "import sys, numpy as np, hloom, hloom.numpy as jnp\n"
        "f = hloom.jit(lambda x: jnp.dot(x, x) + jnp.sin(x).sum())\n"
        "f(np.ones((300, 300), np.float32))\n"
        "from hloom.numba_backend.runtime.store import default_store\n"
        "print(default_store().statistics.compiled, 'llvmlite' in sys.modules, 'numba' in sys.modules)\n"
    )
    compiled, llvm, numba = printed.split()
    assert 0 < int(compiled) <= 3 and (llvm, numba) == ("True", "False")
    stored = [path.read_text() for path in (tmp_path / "store").glob("*.py")]
    assert len(stored) == int(compiled) and not any("# native" in text for text in stored)
