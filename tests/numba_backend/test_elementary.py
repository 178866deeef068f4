"""Elementary functions outside of jit, with kernels from the package: in a new process, on each processor."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hloom.hlo.element_type import ElementType
from hloom.hlo.opcode import Opcode
from hloom.hlo.shape import Shape
from hloom.hlo.targets import target_named
from hloom.numba_backend import elementary
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.machine import code_level
from hloom.numba_backend.runtime import native_code
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.loader import LINKS, Code, link, load_images
from hloom.numba_backend.runtime.store import KernelStore
from test_eager_functions import bits, values

import hloom
import hloom.numpy as jnp
from support.runtime_kernels import python
from support.tool_modules import tool_module

needs_images = pytest.mark.skipif(not LINKS, reason="images are for Linux on x86-64")
needs_code = pytest.mark.skipif(not LINKS or not code_level(), reason="no machine code for this processor")
TEXT = native_code.data(elementary.PATH)
FUNCTIONS = [f for key in elementary.keys(TEXT) for f in [elementary.find(TEXT, key)] if f is not None]


@pytest.fixture(autouse=True)
def usual_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the suite's settings, which run and verify all passes."""
    for name in [name for name in os.environ if name.startswith("HLOOM_") and name != "HLOOM_CACHE_DIR"]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def tool(root: Path) -> ModuleType:
    return tool_module(root, "native_code")


@needs_code
@pytest.mark.parametrize("folder", ["off", "store"])
def test_a_first_function_compiles_nothing(folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither LLVM nor a pass nor an emitter is imported, and nothing is stored."""
    store = folder if folder == "off" else str(tmp_path / folder)
    monkeypatch.setenv("HLOOM_CACHE_DIR", store)
    printed = python(
        "import sys, numpy as np, hloom.numpy as jnp\n"
        "x = np.ones(1000, np.float32)\n"
        "jnp.exp(x), jnp.sin(2.0), jnp.arctan2(x, x), jnp.power(x, 2.7), jnp.tanh(x.astype(np.complex64))\n"
        "from hloom.numba_backend.runtime.store import default_store\n"
        "parts = 'pipeline', 'emit', 'stored_programs'\n"
        "names = ['llvmlite', *('hloom.numba_backend.' + part for part in parts)]\n"
        "print(default_store().statistics.compiled, [name for name in names if name in sys.modules])\n"
    )
    assert printed == "0 []\n"
    assert not (tmp_path / folder).exists()


def test_every_function_has_a_kernel(tool: ModuleType) -> None:
    """All ops that the tracer asks for (`tracer/functions.py`), of all types, on arrays and scalars."""
    known = {f.key for f in FUNCTIONS}
    for opcode, element, form in tool.signatures():
        try:
            module = tool.module_of(opcode, tool.shapes_of(element, form))
        except hloom.hlo.errors.HloError:
            continue
        (op,) = module.entry.root.operands
        assert elementary.key_of(opcode, [p.shape for p in module.entry.parameters], op.shape) in known


@pytest.mark.one_in(2)
@pytest.mark.parametrize("element", ["f32", "f16", "c64"])
@pytest.mark.parametrize("opcode", [Opcode.EXP, Opcode.POWER])
def test_all_sizes_share_a_kernel(opcode: Opcode, element: str, tool: ModuleType) -> None:
    """The kernel of an op depends on the number of its elements alone, not on its dimensions."""
    scalar = Shape.array(ElementType(element), ())
    for dimensions in ((), (1,), (1, 1), (2,), (7, 1), (3, 5), (64,), (5, 10_000), (2, 3, 4, 5), (1 << 36,)):
        shape = Shape.array(ElementType(element), dimensions)
        forms = [[shape]] if opcode is Opcode.EXP else [[shape, shape], [shape, scalar], [scalar, shape]]
        for operands in forms:
            made = tool.made(tool.module_of(opcode, operands))
            found = elementary.find(TEXT, made.key)
            assert found is not None and found.kernel == made.kernel and found[2:] == pytest.approx(made[2:])


@pytest.mark.parametrize("name", ["HLOOM_VERIFY_PASSES", "HLOOM_DISABLE_PASSES"])
def test_settings_of_passes_are_obeyed(name: str, tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tool.module_of(Opcode.EXP, [Shape.parse("f32[8]")])
    assert elementary.program_of(module) is not None
    monkeypatch.setenv(name, "1")
    assert elementary.program_of(module) is None


def test_what_it_is_made_of(tool: ModuleType) -> None:
    """The stages run on request, and give the same."""
    module = tool.module_of(Opcode.EXP, [Shape.parse("f32[1000]")])
    executable = NumbaCompiler().compile_function(module, target=target_named("cpu"))
    (text,) = executable.kernels().values()
    found = elementary.find(TEXT, "exponential f32[n] -> f32")
    assert found is not None and text.endswith(found.kernel.source)
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    np.testing.assert_array_equal(executable.execute([x])[0], jnp.exp(x))
    assert executable.passes() and "exponential" in executable.as_text()


def arguments_of(function: elementary.Function, count: int) -> list[Any]:
    _, given, _, _ = function.key.split(" ")
    found = []
    for seed, operand in enumerate(given.split(",")):
        numbers = values(ElementType(operand.partition("[")[0]).dtype.name, 1001, seed)
        found.append(numbers[:count] if operand.endswith("[n]") else np.array(numbers[3 + seed]))
    return found


def run(code: Code, function: elementary.Function, arrays: list[Any], count: int) -> Any:
    """The result of a kernel's machine code."""
    result = np.empty(count, ElementType(function.key.split(" ")[-1]).dtype)
    table = np.array([array.ctypes.data for array in (*arrays, result)], np.int64)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address)
    kernel(0, count, table.ctypes.data)
    return result


@needs_code
@pytest.mark.parametrize(
    "element", ["f32", *(pytest.param(name, marks=pytest.mark.slow) for name in ("f64", "f16", "bf16", "c64", "c128"))]
)
def test_the_code_gives_what_is_compiled_here(element: str) -> None:
    """Bit for bit, for each level that this processor has."""
    levels = ["x86_64_v3", "x86_64_v4"] if code_level() == "x86_64_v4" else [code_level()]
    functions = [f for f in FUNCTIONS if f" {element}[" in f.key]
    compiled = compile_kernels([f.kernel for f in functions])
    for function, own in zip(functions, compiled, strict=True):
        kernel = function.kernel
        images = [native_code.find(native_code.data(native_code.LEVELS[k]), kernel.identity) for k in levels]
        images.append(link(kernel.symbol, own))
        codes = load_images([image for image in images if image is not None])
        assert len(codes) == len(levels) + 1, function.key
        count = 1001 if "[n]" in function.key else 1
        arrays = arguments_of(function, count)
        with np.errstate(all="ignore"):
            first, *others = [bits(run(code, function, arrays, count)) for code in codes]
        for other in others:
            np.testing.assert_array_equal(first, other, err_msg=function.key)


@needs_images
def test_code_calls_only_what_every_process_has() -> None:
    """Kernels call nothing of libm: its results differ between systems."""
    for path in native_code.LEVELS.values():
        for name, _, image in native_code.read(native_code.data(path)):
            assert set(image.externals) <= {"memcpy", "memmove", "memset"}, name


@needs_code
def test_a_changed_text_is_compiled() -> None:
    found = elementary.find(TEXT, "exponential f32[n] -> f32")
    assert found is not None
    store, kernel = KernelStore(None), found.kernel
    changed = KernelSource(kernel.name, kernel.source + "# changed\n", kernel.parameters, in_package=True)
    plain = KernelSource(kernel.name, kernel.source, kernel.parameters)
    assert native_code.delivered(kernel) is not None
    assert native_code.delivered(changed) is None and native_code.delivered(plain) is None
    assert store.get(changed) and (store.statistics.delivered, store.statistics.compiled) == (0, 1)
