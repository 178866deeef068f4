"""Kernels that apply dialect functions to arrays, many functions in one kernel, for the tests of the dialect."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np
from hloom.numba_backend.runtime import dialect, frontend, llvm_backend
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.store import default_store

STORAGE: dict[str, type] = {
    "pred": np.uint8, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.uint16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip

Apply = Callable[..., list[np.ndarray]]


def kernel_of(expressions: Sequence[str], inputs: Sequence[str], output: str) -> KernelSource:
    """One loop for each expression over ``x[i]`` (``y[i]``, ``z[i]``); results follow one another."""
    names = ["x", "y", "z"][: len(inputs)]
    lines = [f"def apply(lo, hi, {', '.join(names)}, out, n):"]
    for k, expression in enumerate(expressions):
        lines += ["    for i in range(lo, hi):", f"        out[{k} * n + i] = {expression}"]
    parameters = [Parameter("pointer", dtype) for dtype in (*inputs, output)]
    return KernelSource("apply", "\n".join(lines) + "\n", (*parameters, Parameter("size", "s64")))


def fold_of(function: str, dtype: str) -> KernelSource:
    """A loop that folds x[lo:hi] with a reduction function into out[0]."""
    lines = ["acc = x[lo]", "for i in range(lo + 1, hi):", f"    acc = {function}(acc, x[i])", "out[0] = acc"]
    source = "def fold(lo, hi, x, out):\n" + "".join(f"    {line}\n" for line in lines)
    return KernelSource("fold", source, (Parameter("pointer", dtype),) * 2)


def _entry(kernel: KernelSource) -> Callable[[int, int, int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(default_store().get(kernel))


def folded(function: str, dtype: str) -> Callable[[np.ndarray], np.generic]:
    """The reduction as a function of an array."""
    entry = _entry(fold_of(function, dtype))

    def fold(values: np.ndarray) -> np.generic:
        values, out = np.ascontiguousarray(values, STORAGE[dtype]), np.zeros(1, STORAGE[dtype])
        table = np.array([values.ctypes.data, out.ctypes.data], np.int64)
        entry(0, values.size, table.ctypes.data)
        return out[0]

    return fold


def compiled(expressions: Sequence[str], inputs: Sequence[str], output: str) -> Apply:
    """The kernel as a function from arrays to one array for each expression; `pieces` cuts the range into calls."""
    entry = _entry(kernel_of(expressions, inputs, output))

    def apply(*arrays: np.ndarray, pieces: int | None = None) -> list[np.ndarray]:
        arrays = tuple(np.ascontiguousarray(a, STORAGE[dtype]) for a, dtype in zip(arrays, inputs))
        n = arrays[0].size
        out = np.zeros((len(expressions), n), STORAGE[output])
        table = np.array([*(a.ctypes.data for a in arrays), out.ctypes.data, n], np.int64)
        step = pieces or n
        for lo in range(0, n, step):
            entry(lo, min(lo + step, n), table.ctypes.data)
        return list(out)

    return apply


def optimised_ir(kernel: KernelSource) -> str:
    """LLVM's IR after its pipeline: what the vectoriser made of the loops."""
    text = frontend.to_llvm(kernel, dialect.SCOPE)
    module = llvm.parse_assembly(text)
    module.verify()
    llvm_backend.optimise(module, llvm_backend.widens_straight_lines(text))
    return str(module)
