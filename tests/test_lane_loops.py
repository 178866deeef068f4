"""Which short loops are written as instructions of vectors, and that they do what the loops do."""

from __future__ import annotations

import ctypes
import itertools
import re

import numpy as np
import pytest
from hloom.numba_backend.loops.lanes import NotLanes
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm, type_of
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import emit_object
from hloom.numba_backend.runtime.loader import load_objects

PARAMETERS = (
    Parameter("pointer", "f32"), Parameter("pointer", "f32"), Parameter("pointer", "f64"), Parameter("pointer", "u8"),
    Parameter("size", "s64"),
)  # fmt: skip
HEAD = """def k(lo, hi, x, out, d, p, n):
    row = local_array(16, float32)
    wide = local_array(64, float32)
    deep = local_array(8, float64)
    for j in range(16):
        row[j] = x[lo + j]
    for j in range(64):
        wide[j] = x[j]
    acc = x[2]
    for i in range(lo, hi):
"""
TAIL = """
        for t in range(16):
            out[64 * i + t] = out[64 * i + t] + acc * row[t]
"""

VECTORS = {
    "multiply and add": ("for j in range(16):", "    row[j] = row[j] + x[i] * wide[i + j + 2]"),
    "two registers": ("for j in range(32):", "    out[64 * i + j] = wide[j] - wide[32 + j] / x[n]"),
    "a number": ("for j in range(32):", "    wide[j] = float32(2.5)"),
    "zero, and minus zero": (
        "for j in range(16):", "    row[j] = float32(0)", "for j in range(16):", "    row[j] = -row[j]",
        "acc = row[i]",
    ),
    "a copy": ("for j in range(4):", "    out[64 * i + 7 + j] = x[3 + j + i]"),
    "doubles": (
        "for j in range(8):", "    deep[j] = d[8 * i + j]", "for j in range(8):", "    deep[j] = deep[j] * d[j + i]",
        "for j in range(8):", "    d[40 + 8 * i + j] = deep[j]",
    ),
    "bytes": ("for j in range(64):", "    p[64 * i + j] = uint8(7 + i)"),
    "several stores": ("for j in range(16):", "    row[j] = x[j + n]", "    wide[j + i] = row[j]"),
    "a sum": ("for j in range(16):", "    acc = reduce_add(acc, row[j] * wide[i + j])"),
    "a sum of four registers": ("for j in range(64):", "    acc = reduce_add(acc, wide[j])"),
    "a choice": ("for j in range(16):", "    row[j] = select(wide[i + j] > row[j], row[j], -wide[j])"),
    "conditions": (
        "for j in range(16):", "    row[j] = select(row[j] != x[i] and not wide[j] <= row[j], x[i], row[j])",
    ),
    "names": (
        "for j in range(16):", "    low = row[j] < x[i] or row[j] == wide[j]", "    size = sqrt(abs(row[j]))",
        "    row[j] = select(low, size, wide[j])", "    out[64 * i + 16 + j] = size * size",
    ),
    "names of doubles": (
        "for j in range(8):", "    v = d[j + i] / 3.0", "    v = v + v * v", "    deep[j] = v", "for j in range(8):",
        "    d[j] = deep[j]",
    ),
    "rows of one array": (
        "for j in range(16):", "    wide[i * 16 + j] = wide[(i - 1) * 16 + j] - wide[i * 16 + j]",
        "    wide[0 * 16 + j] = row[j]",
    ),
    "the variable afterwards": ("for j in range(16):", "    row[j] = row[j] * x[i]", "acc = x[j]"),
}  # fmt: skip
LOOPS = {
    "neighbours": ("for j in range(32):", "    wide[j + 1] = wide[j] + x[i]"),
    "moved": ("for j in range(32):", "    wide[j + 1] = wide[j]"),
    "a place in turns": ("for j in range(16):", "    row[n] = row[n] + wide[j]"),
    "an index twice": ("for j in range(16):", "    row[j] = wide[j + j]"),
    "an index from memory": ("for j in range(16):", "    row[j] = wide[int64(p[j]) % 48 + j]"),
    "what the loop writes": ("for j in range(16):", "    row[j] = wide[j] + row[3]"),
    "written twice": ("for j in range(16):", "    wide[j] = x[j] + row[j]", "    wide[j + 1] = x[j] - row[j]"),
    "rows that overlap": ("for j in range(16):", "    wide[i * 16 + j] = wide[i * 8 + j] + row[j]"),
    "a name afterwards": ("for j in range(16):", "    v = row[j] * x[i]", "    row[j] = v", "acc = v"),
    "a name from before": ("v = x[i]", "for j in range(16):", "    row[j] = row[j] - v", "    v = row[j]"),
    "a name in an index": ("for j in range(16):", "    v = row[j] * x[i]", "    row[j] = wide[int64(abs(v)) % 48 + j]"),
    "backwards": ("for j in range(16):", "    row[j] = wide[20 - j]"),
    "fifteen": ("for j in range(15):", "    row[j] = row[j] + wide[j]"),
    "a largest": ("for j in range(16):", "    acc = maximum(acc, row[j])"),
    "a condition": ("for j in range(16):", "    if x[j] > x[i]:", "        row[j] = x[i]"),
    "a sum of itself": ("for j in range(16):", "    acc = reduce_add(acc, row[j] * acc)"),
    "two names": ("q = wide", "for j in range(16):", "    q[j + 1] = wide[j]"),
}


def kernel_of(lines: tuple[str, ...]) -> KernelSource:
    return KernelSource("k", HEAD + "\n".join(f"        {line}" for line in lines) + TAIL, PARAMETERS)


REFUSED = {
    "neighbours": "an array that is written at one index", "moved": "an array that is written at one index",
    "a place in turns": "an index that is j plus", "an index twice": "an index that is j plus",
    "an index from memory": "an index that is j plus", "what the loop writes": "no number for all iterations",
    "written twice": "an array that is written at one index", "rows that overlap": "an array that is written at one",
    "a name in an index": "an index that is j plus", "backwards": "an index that is j plus",
    "a largest": "a store, and with names", "a condition": "a store, and with names", "a sum of itself": "a sum of",
}  # fmt: skip


def in_lanes(lines: tuple[str, ...]) -> KernelSource:
    return kernel_of(tuple(line.replace("in range(", "in lanes(") for line in lines))


@pytest.mark.parametrize("name", [*VECTORS, *REFUSED])
def test_what_lanes_may_contain(name: str) -> None:
    kernel = in_lanes((VECTORS | LOOPS)[name])
    types = [type_of(parameter) for parameter in kernel.parameters]
    if name in REFUSED:
        with pytest.raises(NotLanes, match=REFUSED[name]):
            read(kernel.source, ["int64", "int64", *types])
    else:
        assert "in lanes(" in to_text(read(kernel.source, ["int64", "int64", *types]))


def loops_in(text: str) -> int:
    return len(re.findall("!llvm.loop", text))


_numbers = itertools.count()


def _drawn(rng: np.random.Generator, count: int, factor: int = 1) -> np.ndarray:
    """Squares of small integers, of either sign. Their products, and roots, are exact: so it does not matter which
    products LLVM contracts with a sum, which depends on the width of vectors and on what it moves out of loops."""
    return rng.integers(1, 4, count) ** 2.0 * rng.choice([-1.0, 1.0], count) * factor


def results(kernel: KernelSource, register: int) -> list[np.ndarray]:
    """What the kernel makes of drawn buffers, with vectors of so many bytes; 0: with loops."""
    symbol = f"{kernel.symbol}_{next(_numbers)}"
    text = to_llvm(kernel, SCOPE, "one pass", register=register).replace(kernel.symbol, symbol)
    (code,) = load_objects([(symbol, emit_object(text))])
    rng = np.random.default_rng(5)
    arrays = [_drawn(rng, 300).astype(np.float32), _drawn(rng, 400).astype(np.float32)]
    arrays += [_drawn(rng, 300, factor=3), rng.integers(0, 255, 300).astype(np.uint8)]
    words = [array.ctypes.data for array in arrays] + [5]
    table = (ctypes.c_int64 * len(words))(*words)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address)(1, 4, ctypes.addressof(table))
    return arrays


@pytest.mark.parametrize("name", [*VECTORS, *LOOPS])
def test_vectors_do_what_the_loops_do(name: str) -> None:
    kernel = kernel_of((VECTORS | LOOPS)[name])
    expected = results(kernel, 0)
    for register in (16, 32, 64):
        for made, wanted in zip(results(kernel, register), expected, strict=True):
            if "sum" in name:  # in another order
                np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=2e-5)
            else:
                assert made.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", VECTORS)
def test_no_loop_is_left(name: str) -> None:
    text = to_llvm(kernel_of(VECTORS[name]), SCOPE, "one pass", register=32)
    assert loops_in(text) == 1 and " x float>" in text
    assert not re.search(r"<(1[6-9]|[2-9]\d) x float>", text)


@pytest.mark.parametrize("name", LOOPS)
def test_other_loops_stay(name: str) -> None:
    """The last loop of the text is none any more, except after another name was given to a pointer."""
    assert loops_in(to_llvm(kernel_of(LOOPS[name]), SCOPE, "one pass", register=64)) == 2 + (name == "two names")


def test_the_runtimes_own_functions_keep_their_loops() -> None:
    """Their pointers may alias; here, numbers."""
    lines = ("row = local_array(16, float64)", "for j in range(16):", "    row[j] = float64(0)", "return a")
    text = "def k(a):\n" + "".join(f"    {line}\n" for line in lines)
    kernel = KernelSource("k", text, (Parameter("size", "s64"),), "native")
    assert loops_in(to_llvm(kernel, SCOPE, "one pass", register=64)) == 1
