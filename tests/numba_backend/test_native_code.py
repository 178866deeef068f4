"""The package's code is up to date with the stages and LLVM: the runtime's own functions, and elementary ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import numpy as np
import pytest
from hloom.hlo.opcode import Opcode
from hloom.numba_backend.lowering import source_of
from hloom.numba_backend.machine import code_level, compiling_for
from hloom.numba_backend.policy.products import tiles
from hloom.numba_backend.runtime import native_code
from hloom.numba_backend.runtime.call import CALLER
from hloom.numba_backend.runtime.executor import EXECUTOR, native_function
from hloom.numba_backend.runtime.kernel import KernelSource, StoredKernel
from hloom.numba_backend.runtime.loader import LINKS
from hloom.numba_backend.runtime.store import KernelStore
from hloom.numba_backend.runtime.threads import POOL_FUNCTIONS

import hloom
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


@needs_images
def test_a_quick_run_compiles_the_elementary_functions_that_changed(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = Path(tool.elementary.PATH).read_text()
    same, other = (tool.elementary.find(stored, key) for key in tool.elementary.keys(stored)[:2])
    monkeypatch.setattr(tool, "elementary_functions", lambda: (same, other._replace(ir="0" * 16)))
    monkeypatch.setattr(tool.elementary, "PATH", str(tmp_path / "elementary.txt"))
    Path(tool.elementary.PATH).write_text(stored)
    before = {name: Path(path).read_text() for name, path in tool.LEVELS.items()}
    monkeypatch.setattr(tool, "LEVELS", {name: str(tmp_path / f"{name}.txt") for name in before})
    for name, path in tool.LEVELS.items():
        Path(path).write_text(before[name].replace(native_code.made_by(before[name]), tool.compiler()))
    monkeypatch.setattr(tool, "PATHS", {})
    monkeypatch.setattr(tool, "KERNELS", {})
    made = native_code.Image(b"new", 0, 0, ())
    monkeypatch.setattr(tool, "image_of", lambda function, name: made)
    monkeypatch.setattr(sys, "argv", ["native_code.py", "--quick", "--write"])
    assert tool.main() == 0
    assert "6 functions, written; --quick did not compile 3 of them" in capsys.readouterr().out
    for name, path in tool.LEVELS.items():
        kept = native_code.find(before[name], same.kernel.identity)
        assert [image for *_, image in native_code.read(Path(path).read_text())] == [kept, made]
    assert tool.elementary.find(Path(tool.elementary.PATH).read_text(), other.key).ir == "0" * 16
    assert tool.known_code(tool.LEVELS["x86_64_v3"]).keys() == {same.kernel.identity, other.kernel.identity}


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
@pytest.mark.skipif(code_level() not in native_code.KERNELS, reason="kernels are for AVX2, AVX-512 and NEON")
@pytest.mark.parametrize("sides", [(1000, 64, 100), (20, 20, 20), (3, 20, 5)])
@pytest.mark.parametrize("batch", [(), (3,), (3, 2)])
def test_products_are_not_compiled(tool: ModuleType, batch: tuple[int, ...], sides: tuple[int, int, int]) -> None:
    """They have code for all sizes; stored programs know them by their names."""
    m, k, n = sides
    x, y = np.ones((*batch, m, k), np.float32), np.ones((*batch, k, n), np.float32)
    (dot,) = (i for i in hloom.make_hlo(lambda x, y: x @ y)(x, y).entry.instructions if i.opcode is Opcode.DOT)
    with compiling_for(tool.machine_of(code_level())):
        kernel = source_of(tiles(dot))
    assert native_code.delivered(kernel)
    assert native_code.delivered(StoredKernel(kernel.identity, kernel.name, kernel.convention))
    assert native_code.delivered(KernelSource(kernel.name, kernel.source + "# changed\n", kernel.parameters)) is None


@needs_images
@pytest.mark.skipif(code_level() not in native_code.KERNELS, reason="kernels are for AVX2, AVX-512 and NEON")
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions_are_not_compiled(tool: ModuleType, layout: str) -> None:
    """Of other sizes than those in the tool. Numbers of features that 8 does not divide may have their own kernels."""
    sizes = {"N": 5, "C": 16, "H": 20, "W": 24, "O": 32, "I": 16}
    windows = "OIHW" if layout == "NCHW" else "HWIO"
    x = np.ones([sizes[d] for d in layout], np.float32)
    w = np.ones([sizes.get(d, 3) if d in "OI" else 3 for d in windows], np.float32)

    def gradients(x: Any, w: Any) -> Any:
        dimensions = (layout, windows, layout)
        y, backward = hloom.vjp(
            lambda x, w: hloom.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dimensions), x, w
        )
        return y, backward(y)

    with compiling_for(tool.machine_of(code_level())):
        found = [kernel for kernel, *_ in tool.lowered(hloom.make_hlo(gradients)(x, w)).calls]
    found = [kernel for kernel in found if kernel.name in native_code.KERNEL_NAMES]
    assert len({kernel.name for kernel in found}) > 1 and all(map(native_code.delivered, found))


@needs_images
@pytest.mark.skipif(code_level() not in native_code.KERNELS, reason="kernels are for AVX2, AVX-512 and NEON")
@pytest.mark.parametrize(
    ("sizes", "order"),
    [
        ((300, 70), (1, 0)), ((16, 300), (1, 0)), ((5, 30, 40), (0, 2, 1)), ((20, 16, 16), (0, 2, 1)),
        ((32, 8, 300), (0, 2, 1)), ((32, 300, 11), (0, 2, 1)), ((40, 24, 3, 3), (2, 3, 1, 0)),
        ((3, 3, 16, 16), (3, 2, 0, 1)), ((8, 16, 16, 32), (0, 3, 1, 2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("element", ["float32", "float64"])
def test_transposes_are_not_compiled(tool: ModuleType, sizes: tuple[int, ...], order: Any, element: str) -> None:
    """Of other sizes than those in the tool, whatever the caches are."""
    with hloom.enable_x64():
        module = hloom.make_hlo(lambda x: x.transpose(order))(hloom.ShapeDtypeStruct(sizes, element))
    assert str(module.entry.root.operands[0].shape).startswith(f"f{element[-2:]}[")
    with compiling_for(replace(tool.machine_of(code_level()), first_cache=48 << 10)):
        ((kernel, *_),) = tool.lowered(module).calls
    assert kernel.name == "fused_transpose" and native_code.delivered(kernel)


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
    assert 0 < int(compiled) <= 4 and (llvm, numba) == ("True", "False")
    stored = [path.read_text() for path in (tmp_path / "store").glob("*.py")]
    assert len(stored) == int(compiled) and not any("# native" in text for text in stored)
