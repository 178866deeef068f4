"""Loops over lanes: what they may contain, and that their vectors do what the loops do."""

from __future__ import annotations

import ctypes
import itertools
import re

import numpy as np
import pytest
from hloom.numba_backend.loops.lanes import NotLanes, in_lanes
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import NotALoopProgram, read
from hloom.numba_backend.loops.statements import For, walk
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm, type_of
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import emit_object
from hloom.numba_backend.runtime.loader import load_objects
from hloom.numba_backend.runtime.one_pass import Refused

PARAMETERS = (
    Parameter("pointer", "f32"), Parameter("pointer", "f32"), Parameter("pointer", "f64"), Parameter("pointer", "u8"),
    Parameter("size", "s64"),
)  # fmt: skip
HEAD = """def k(lo, hi, x, out, d, p, n):
    row = local_array(16, float32)
    wide = local_array(64, float32)
    deep = local_array(8, float64)
    for j in lanes(16):
        row[j] = x[lo + j]
    for j in lanes(64):
        wide[j] = x[j]
    acc = x[2]
    for i in range(lo, hi):
"""
TAIL = """
        for t in lanes(16):
            out[64 * i + t] = out[64 * i + t] + acc * row[t]
"""

VECTORS = {
    "multiply and add": ("for j in lanes(16):", "    row[j] = row[j] + x[i] * wide[i + j + 2]"),
    "two registers": ("for j in lanes(32):", "    out[64 * i + j] = wide[j] - wide[32 + j] / x[n]"),
    "a number": ("for j in lanes(32):", "    wide[j] = float32(2.5)"),
    "zero, and minus zero": (
        "for j in lanes(16):", "    row[j] = float32(0)", "for j in lanes(16):", "    row[j] = -row[j]",
        "acc = row[i]",
    ),
    "a copy": ("for j in lanes(4):", "    out[64 * i + 7 + j] = x[3 + j + i]"),
    "doubles": (
        "for j in lanes(8):", "    deep[j] = d[8 * i + j]", "for j in lanes(8):", "    deep[j] = deep[j] * d[j + i]",
        "for j in lanes(8):", "    d[40 + 8 * i + j] = deep[j]",
    ),
    "bytes": ("for j in lanes(64):", "    p[64 * i + j] = uint8(7 + i)"),
    "integers": (
        "for j in lanes(50):", "    p[64 * i + j] = subtract(multiply(p[64 * i + j], p[64 * i + j]), uint8(i))",
    ),
    "integers of two widths": (
        "words = local_array(32, int16)", "for j in lanes(32):",
        "    words[j] = add(multiply(int16(p[64 * i + j]), int16(i - 3)), int16(7))",
        "p[64 * i] = uint8(words[5])", "p[64 * i + 1] = uint8(words[31])",
    ),
    "integers with a sign": (
        "words = local_array(16, int32)", "for j in lanes(16):",
        "    words[j] = multiply(int32(int8(p[64 * i + j])), int32(i))",
        "p[64 * i] = uint8(shr_logical(words[5], int32(6)))", "p[64 * i + 1] = uint8(words[15])",
    ),
    "fewer bits of numbers in memory": (
        "words = local_array(32, int16)", "for j in lanes(32):", "    words[j] = int16(p[64 * i + j])",
        "for j in lanes(16):", "    p[64 * i + j] = uint8(words[16 + j])",
    ),
    "as doubles": (
        "for j in lanes(8):", "    d[8 * i + j] = d[8 * i + j] + float64(row[j])", "for j in lanes(8):",
        "    deep[j] = float64(row[j])", "d[40 + i] = deep[5]",
    ),
    "several stores": ("for j in lanes(16):", "    row[j] = x[j + n]", "    wide[j + i] = row[j]"),
    "a sum": ("for j in lanes(16):", "    acc = reduce_add(acc, row[j] * wide[i + j])"),
    "a sum of four registers": ("for j in lanes(64):", "    acc = reduce_add(acc, wide[j])"),
    "a choice": ("for j in lanes(16):", "    row[j] = select(wide[i + j] > row[j], row[j], -wide[j])"),
    "conditions": (
        "for j in lanes(16):", "    row[j] = select(row[j] != x[i] and not wide[j] <= row[j], x[i], row[j])",
    ),
    "names": (
        "for j in lanes(16):", "    low = row[j] < x[i] or row[j] == wide[j]", "    size = sqrt(abs(row[j]))",
        "    row[j] = select(low, size, wide[j])", "    out[64 * i + 16 + j] = size * size",
    ),
    "names of doubles": (
        "for j in lanes(8):", "    v = d[j + i] / 3.0", "    v = v + v * v", "    deep[j] = v", "for j in lanes(8):",
        "    d[j] = deep[j]",
    ),
    "comparisons of integers": (
        "words = local_array(16, int32)", "more = local_array(16, uint32)", "for j in lanes(16):",
        "    words[j] = add(int32(int8(p[64 * i + j])), int32(i))", "for j in lanes(16):",
        "    more[j] = uint32(words[j])", "for j in lanes(16):",
        "    low = words[j] < int32(3) or words[j] != int32(lo)", "    size = words[j]",
        "    words[j] = select(low, add(int32(more[j] > uint32(77)), size), int32(8))",
        "p[64 * i] = uint8(words[5])", "p[64 * i + 1] = uint8(words[15])",
    ),
    "extrema": (
        "words = local_array(16, int32)", "for j in lanes(16):",
        "    words[j] = minimum(maximum(int32(int8(p[64 * i + j])), int32(i)), int32(90))",
        "p[64 * i] = uint8(words[5])", "for j in lanes(16):", "    p[64 * i + j] = maximum(p[64 * i + j], uint8(130))",
        "for j in lanes(16):", "    row[j] = minimum(row[j], maximum(wide[i + j], x[i]))",
    ),
    "left neighbours": (
        "words = local_array(16, int32)", "for j in lanes(16):", "    words[j] = int32(p[64 * i + j])",
        "more = local_array(16, int32)", "for j in lanes(16):",
        "    more[j] = select(j > 0, words[maximum(j - 1, 0)], int32(9))", "p[64 * i] = uint8(more[0])",
        "p[64 * i + 1] = uint8(more[1])", "p[64 * i + 2] = uint8(more[9])", "p[64 * i + 3] = uint8(more[15])",
        "for j in lanes(16):", "    row[j] = wide[maximum(j - 1, 0)] - row[j]",
        "for j in lanes(8):", "    deep[j] = d[maximum(j - 1, 0)]",
    ),
    "rows of one array": (
        "for j in lanes(16):", "    wide[i * 16 + j] = wide[(i - 1) * 16 + j] - wide[i * 16 + j]",
        "    wide[0 * 16 + j] = row[j]",
    ),
    "the variable afterwards": ("for j in lanes(16):", "    row[j] = row[j] * x[i]", "acc = x[j]"),
    "fifteen": ("for j in lanes(15):", "    row[j] = row[j] + wide[j]"),
    "fifty": ("for j in lanes(50):", "    v = wide[j]", "    wide[j] = v * v + x[i]"),
    "twelve bytes": ("for j in lanes(12):", "    p[i * 20 + j] = p[i * 20 + j]"),
    "a block that is transposed": (
        "for j in lanes(8):", "    for m in range(8):", "        wide[m * 8 + j] = x[j * 8 + m + i]",
    ),
}  # fmt: skip
REFUSED = {
    "neighbours": ("lanes(32)", "wide[j + 1] = wide[j] + x[i]", "an array that is written at one index"),
    "moved": ("lanes(32)", "wide[j + 1] = wide[j]", "an array that is written at one index"),
    "a place in turns": ("lanes(16)", "row[n] = row[n] + wide[j]", "an index that is j plus"),
    "its own neighbour": ("lanes(16)", "row[j] = row[maximum(j - 1, 0)]", "an index that is j plus"),
    "integers of two types compared": (
        "lanes(16)", "row[j] = select(p[j] < int32(i), row[j], x[i])", r"values of one type: int32\(i\) is int32",
    ),
    "an index twice": ("lanes(16)", "row[j] = wide[j + j]", "an index that is j plus"),
    "an index from memory": ("lanes(16)", "row[j] = wide[int64(p[j]) % 48 + j]", "an index that is j plus"),
    "what the loop writes": ("lanes(16)", "row[j] = wide[j] + row[3]", "no number for all iterations: row\\[3\\]"),
    "rows that overlap": ("lanes(16)", "wide[i * 16 + j] = wide[i * 8 + j] + row[j]", "is written at one index"),
    "backwards": ("lanes(16)", "row[j] = wide[20 - j]", "an index that is j plus"),
    "a name from before": ("lanes(16)", "acc = acc + row[j]\n            row[j] = acc", "has assigned before: acc"),
    "a largest": ("lanes(16)", "acc = maximum(acc, row[j])", "a store, and with names"),
    "a sum of itself": ("lanes(16)", "acc = reduce_add(acc, row[j] * acc)", "a sum of"),
    "a sum of twelve": ("lanes(12)", "acc = reduce_add(acc, row[j])", "a sum of 2, 4, 8"),
    "a function": ("lanes(16)", "row[j] = exp(wide[j])", r"no form in vectors for exp\(wide\[j\]\)"),
    "integers of two types": ("lanes(16)", "p[j] = uint8(p[j] + 1)", r"no form in vectors for uint8\(p\[j\] \+ 1\)"),
    "fewer bits": ("lanes(16)", "p[j] = uint8(int32(p[j]))", r"no form in vectors for uint8"),
    "bytes of floats": ("lanes(16)", "p[j] = uint8(row[j])", r"no form in vectors for uint8\(row\[j\]\)"),
    "a count that is no number": ("lanes(n)", "row[j] = wide[j]", "from 2 to 64 iterations"),
    "too many": ("lanes(128)", "out[j] = x[j]", "from 2 to 64 iterations"),
    "a lane": ("lanes(1)", "row[j] = wide[j]", "from 2 to 64 iterations"),
    "a stream that computes": ("streamed(16)", "out[j] = x[j] + x[j]", "what is streamed is copied"),
    "a stream of half a line": ("streamed(8)", "out[j] = x[j]", "whole lines"),
}  # fmt: skip


def kernel_of(lines: tuple[str, ...]) -> KernelSource:
    return KernelSource("k", HEAD + "\n".join(f"        {line}" for line in lines) + TAIL, PARAMETERS)


def types_of(kernel: KernelSource) -> list[str]:
    return ["int64", "int64", *[type_of(parameter) for parameter in kernel.parameters]]


@pytest.mark.parametrize("name", VECTORS)
def test_lanes_are_printed_as_they_are_read(name: str) -> None:
    kernel = kernel_of(VECTORS[name])
    text = to_text(read(kernel.source, types_of(kernel)))
    assert text.count("in lanes(") == kernel.source.count("in lanes(") > 3


def test_the_width_of_vectors_is_read_and_printed() -> None:
    text = "@vectors(256)\ndef k(lo, hi):\n    pass\n"
    program = read(text, ["int64", "int64"])
    assert program.vector_bits == 256 and to_text(program) == text
    with pytest.raises(NotALoopProgram, match="decorator"):
        read("@njit\ndef k(lo, hi):\n    pass\n", ["int64", "int64"])


@pytest.mark.parametrize("name", REFUSED)
def test_what_lanes_may_not_contain(name: str) -> None:
    of, line, reason = REFUSED[name]
    kernel = kernel_of((f"for j in {of}:", f"    {line}"))
    with pytest.raises(NotLanes, match=reason):
        read(kernel.source, types_of(kernel))


def test_numbers_in_registers_keep_their_bits() -> None:
    kernel = kernel_of(("words = local_array(16, int16)", "for j in lanes(16):", "    p[j] = uint8(words[j])"))
    with pytest.raises(NotLanes, match="no form in vectors for uint8"):
        read(kernel.source, types_of(kernel))


@pytest.mark.parametrize(("count", "value", "kind"), [
    (16, "row[j] * wide[j]", "lanes"), (8, "row[j] * wide[j]", "range"), (4, "x[j]", "lanes"), (3, "x[j]", "range"),
    (16, "exp(row[j])", "range"), (12, "x[j]", "range"), ("n", "x[j]", "range"), (8, "float32(0)", "lanes"),
])  # fmt: skip
def test_loops_that_are_over_lanes_if_that_pays(count: int | str, value: str, kind: str) -> None:
    kernel = kernel_of((f"for j in range({count}):", f"    out[j] = {value}"))
    program = read(kernel.source, types_of(kernel))
    loop = next(s for s in walk(program.body) if isinstance(s, For) and s.kind == "range" and s.variable.name == "j")
    assert in_lanes(loop).kind == kind


@pytest.mark.parametrize(("store", "kind"), [
    ("out[4 * i + j] = acc", "range"), ("out[4 * i + j] = x[i + j]", "lanes"), ("row[j] = acc", "lanes"),
    ("d[4 * i + j] = float64(acc)", "lanes"), ("p[4 * i + j] = uint8(i)", "lanes"),
])  # fmt: skip
def test_parts_of_registers_that_are_filled_in_memory_are_left_to_llvm(store: str, kind: str) -> None:
    kernel = kernel_of(("for j in range(4):", f"    {store}"))
    program = read(kernel.source, types_of(kernel))
    loop = next(s for s in walk(program.body) if isinstance(s, For) and s.kind == "range" and s.variable.name == "j")
    assert in_lanes(loop, ["row"]).kind == kind


def loops_in(text: str) -> int:
    return len(re.findall("!llvm.loop", text))


_numbers = itertools.count()


def _drawn(rng: np.random.Generator, count: int, factor: int = 1) -> np.ndarray:
    """Squares of small integers, of either sign. Their products, and roots, are exact: so it does not matter which
    products LLVM contracts with a sum, which depends on the width of vectors and on what it moves out of loops."""
    return rng.integers(1, 4, count) ** 2.0 * rng.choice([-1.0, 1.0], count) * factor


def results(kernel: KernelSource, register: int) -> list[np.ndarray]:
    """The kernel's results on drawn buffers, with vectors of so many bytes; 0: with loops."""
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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_do_what_the_loops_do(name: str) -> None:
    kernel = kernel_of(VECTORS[name])
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


def test_a_name_of_lanes_is_none_of_the_kernel() -> None:
    lines = ("v = x[i]", "for j in lanes(16):", "    v = row[j] * x[i]", "    row[j] = v", "acc = v")
    with pytest.raises(Refused, match="v before its first assignment"):
        to_llvm(kernel_of(lines), SCOPE, "one pass", register=32)


def test_pointers_with_two_names_are_those_of_loops() -> None:
    lines = ("q = wide", "for j in lanes(16):", "    q[j] = wide[j] * wide[j]")
    assert loops_in(to_llvm(kernel_of(lines), SCOPE, "one pass", register=64)) == 3


def test_the_runtimes_own_functions_keep_their_loops() -> None:
    """Their pointers may alias; here, numbers."""
    lines = ("row = local_array(16, float64)", "for j in lanes(16):", "    row[j] = float64(0)", "return a")
    text = "def k(a):\n" + "".join(f"    {line}\n" for line in lines)
    kernel = KernelSource("k", text, (Parameter("size", "s64"),), "native")
    assert loops_in(to_llvm(kernel, SCOPE, "one pass", register=64)) == 1
