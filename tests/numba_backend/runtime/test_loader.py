"""Linked images against LLVM's loader: the same code, and it works at every address."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.executor import EXECUTOR
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.loader import LINKS, Image, link, load_images, load_objects

from support.runtime_kernels import ADD, F32, python

pytestmark = pytest.mark.skipif(not LINKS, reason="images are for Linux on x86-64 and ARM")

CONSTANTS = KernelSource(
    "constants",
    """def constants(lo, hi, x, out):
    for i in range(lo, hi):
        v = x[i]
        out[i] = ((v * float32(0.1) + float32(0.2)) * v + float32(0.3)) * v + exp(v) - sin(v) * tanh(v)
""",
    (F32, F32),
)
COPY = KernelSource(
    "copy", "def copy(lo, hi, x, out):\n    for i in range(lo, hi):\n        out[i] = x[i]\n", (F32, F32)
)
ZERO = KernelSource(
    "zero", "def zero(lo, hi, out, x):\n    for i in range(lo, hi):\n        out[i] = float32(0)\n", (F32, F32)
)
SWITCH = KernelSource(
    "switch",
    "def switch(lo, hi, x, out):\n    for i in range(lo, hi):\n        c = int32(x[i])\n"
    + "".join(f"        {'el' * (n > 0)}if c == {n}:\n            out[i] = float32({n * n % 7})\n" for n in range(12))
    + "        else:\n            out[i] = float32(-1)\n",
    (F32, F32),
)


def call(address: int, x: np.ndarray, out: np.ndarray) -> None:
    table = (ctypes.c_int64 * 2)(x.ctypes.data, out.ctypes.data)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)(0, x.size, ctypes.addressof(table))


@pytest.mark.parametrize("kernel", [CONSTANTS, COPY, ZERO, SWITCH], ids=lambda kernel: kernel.name)
def test_images_do_what_llvm_loads(kernel: KernelSource) -> None:
    (code,) = compile_kernels([kernel])
    image = link(kernel.symbol, code)
    assert image is not None
    image = Image.from_bytes(image.to_bytes())
    loaded = [*load_objects([(kernel.symbol, code)]), *load_images([image]), *load_images([image, image])]
    addresses = [found.address for found in loaded]
    assert len(set(addresses)) == 4
    x = np.linspace(-1, 14, 1001).astype(np.float32)
    results = []
    for address in addresses:
        out = np.full_like(x, 7)
        first, second = (out, x.copy()) if kernel is ZERO else (x, out)
        call(address, first, second)
        results.append(out)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    assert not np.array_equal(results[0], np.full_like(x, 7))


def test_the_executor_calls_the_c_library() -> None:
    kernel = EXECUTOR
    (code,) = compile_kernels([kernel])
    image = link(kernel.symbol, code)
    assert image is not None and set(image.externals) == {"memmove", "memset"}


def test_what_is_not_familiar_is_left_to_llvm() -> None:
    (code,) = compile_kernels([ADD])
    assert link(ADD.symbol, code) is not None
    for changed in (b"", b"hello", code[:4] + b"\x01" + code[5:], code[:18] + b"\x28" + code[19:]):
        assert link(ADD.symbol, changed) is None
    with pytest.raises(RuntimeError, match="does not define other"):
        link("other", code)


@pytest.mark.parametrize("images", ["yes", "no"])
def test_exit_while_a_daemon_thread_runs_a_program(images: str) -> None:
    """Python then ends the thread where it takes the GIL again, below our code, by unwinding the stack."""
    code = """
import sys, threading, time, numpy as np
from hloom.numba_backend.runtime import loader
loader.LINKS = sys.argv[1] == "yes"
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer
k = KernelSource("k", "def k(lo, hi, x):\\n for i in range(lo, hi):\\n  x[i] = x[i] + 1\\n", (("pointer", "f32"),))
builder = ProgramBuilder()
builder.kernel(k, [pointer(0)], 1 << 12)
builder.callback(lambda words: None, [])
program = builder.build()
x = np.zeros(1 << 12, np.float32)
def work():
    while True:
        program.run([x.ctypes.data])
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
print("exit")
"""
    for _ in range(3):
        assert python(code, images, environment={"HLOOM_CACHE_DIR": "off"} if images == "no" else {}).strip() == "exit"


def test_code_is_not_writable() -> None:
    kernel = KernelSource("k", "def k(lo, hi, x):\n    x[0] = 1\n", (Parameter("pointer", "f32"),))
    (code,) = compile_kernels([kernel])
    image = link(kernel.symbol, code)
    assert image is not None
    (loaded,) = load_images([image])
    address = loaded.address
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(end, 16) for end in line.split()[0].split("-"))
        if first <= address < last:
            assert line.split()[1].startswith("r-x")
            break
    else:
        pytest.fail("the code lies nowhere")
