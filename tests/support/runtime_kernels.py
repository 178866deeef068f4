"""Kernels and helpers that the runtime's tests share."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import Program
from hloom.numba_backend.runtime.store import KernelStore

F32 = Parameter("pointer", "f32")
S64 = Parameter("pointer", "s64")
PRED = Parameter("pointer", "pred")

ADD = KernelSource(
    "add",
    """def add(lo, hi, x, y, out):
    for i in range(lo, hi):
        out[i] = x[i] + y[i]
""",
    (F32, F32, F32),
)

def numbered(value: int) -> KernelSource:
    """A kernel that writes a number."""
    return KernelSource("k", f"def k(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = {value}\n", (F32,))


def run_numbered(address: int) -> float:
    """The element that the kernel `numbered` writes."""
    out = np.zeros(1, np.float32)
    table = (ctypes.c_int64 * 1)(out.ctypes.data)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)(0, 1, ctypes.addressof(table))
    return float(out[0])


def object_file(store: KernelStore, kernel: KernelSource) -> Path:
    """Where the store has a kernel, or would have it."""
    assert store.folder is not None
    return store.folder / f"{store.key(kernel)}.o"


CANARY = 0xA5


def compiled_kernel(source: str, name: str, parameters: Sequence[Parameter]) -> bytes:
    """The object file of a kernel."""
    return compile_kernels([KernelSource(name, source, tuple(parameters))])[0]


class Guarded:
    """An array between canaries: `check` fails when a byte before or after it was written."""

    def __init__(self, values: np.ndarray, guard: int = 256) -> None:
        self._block = np.full(values.nbytes + 2 * guard, CANARY, np.uint8)
        self._guard = guard
        self.array = self._block[guard : guard + values.nbytes].view(values.dtype).reshape(values.shape)
        self.array[...] = values

    @property
    def address(self) -> int:
        return self.array.ctypes.data

    def check(self) -> None:
        assert (self._block[: self._guard] == CANARY).all(), "bytes before the buffer were written"
        assert (self._block[self._block.size - self._guard :] == CANARY).all(), "bytes after the buffer were written"


def run(program: Program, *arrays: np.ndarray) -> None:
    """Run with the arrays' memory as bases."""
    program.run([array.ctypes.data for array in arrays])


TESTS = Path(__file__).resolve().parent.parent


def python(code: str, *arguments: str, environment: dict[str, str] | None = None, timeout: float = 240) -> str:
    """Run code in a new interpreter with warnings as errors, which can import `support`; its standard output."""
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    given = {**os.environ, "PYTHONPATH": path, **(environment or {})}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=given)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
