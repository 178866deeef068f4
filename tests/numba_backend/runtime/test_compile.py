"""Kernel text to object code: texts that compile, texts that are refused and the message, LLVM's code."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.errors import KernelCompilationError
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.loader import load_objects

from support.runtime_kernels import ADD, F32, compiled_kernel, python

TYPES = {
    "pred": np.uint8, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.uint16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def call(kernel: KernelSource, lo: int, hi: int, *arguments: np.ndarray | int) -> None:
    """Compile the kernel and call its entry point with pointers to arrays, and words."""
    (code,) = load_objects([(kernel.symbol, compile_kernels([kernel])[0])])
    words = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    table = (ctypes.c_int64 * len(words))(*words)
    entry = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address)
    entry(lo, hi, ctypes.addressof(table))


@pytest.mark.parametrize("dtype", TYPES)
def test_pointers_and_scalars_of_every_type(dtype: str) -> None:
    scalar = dtype != "c128"
    name = f"copy_{dtype}"
    source = f"def {name}(lo, hi, x, out{', s' if scalar else ''}):\n    for i in range(lo, hi):\n"
    source += "        out[i] = x[i]\n" + ("    out[0] = s\n" if scalar else "")
    parameters = [Parameter("pointer", dtype)] * 2 + ([Parameter("scalar", dtype)] if scalar else [])
    values = np.arange(1, 12).astype(TYPES[dtype])
    out = np.zeros_like(values)
    arguments: list[np.ndarray | int] = [values, out]
    if scalar:
        arguments.append(int.from_bytes(values[7:8].tobytes().ljust(8, b"\0"), "little"))
    call(KernelSource(name, source, tuple(parameters)), 1, 9, *arguments)
    expected = np.zeros_like(values)
    expected[1:9] = values[1:9]
    if scalar:
        expected[0] = values[7]
    np.testing.assert_array_equal(out, expected)


def test_forty_parameters() -> None:
    names = [f"x{i}" for i in range(38)]
    source = f"def many(lo, hi, {', '.join(names)}, out, n):\n    for i in range(lo, hi):\n"
    source += f"        out[i] = {' + '.join(f'{name}[i]' for name in names)} + n\n"
    kernel = KernelSource("many", source, (*[F32] * 38, Parameter("pointer", "f64"), Parameter("size", "s64")))
    arrays = [np.full(5, 2.0**i, np.float32) for i in range(38)]
    out = np.zeros(5)
    call(kernel, 0, 5, *arrays, out, 7)
    np.testing.assert_allclose(out, np.full(5, 2.0**38 - 1 + 7), rtol=1e-6)


def test_division_follows_numpy_and_does_not_raise() -> None:
    source = "def quotient(lo, hi, x, y, out):\n    for i in range(lo, hi):\n        out[i] = x[i] / y[i]\n"
    x, y = np.array([1, -1, 0, 6], np.float32), np.array([0, 0, 0, 4], np.float32)
    out = np.zeros(4, np.float32)
    call(KernelSource("quotient", source, (F32,) * 3), 0, 4, x, y, out)
    np.testing.assert_array_equal(out, [np.inf, -np.inf, np.nan, 1.5])


@pytest.mark.parametrize(("op", "rule"), [("//", operator.floordiv), ("%", operator.mod)])
def test_indices_are_divided_without_a_branch(op: str, rule: Callable[[int, int], int]) -> None:
    """A kernel has a dozen divisions. By zero the result is 0."""
    source = f"def k(lo, hi, out, n):\n    for i in range(lo, hi):\n        out[i - lo] = float32(i {op} n)\n"
    kernel = KernelSource("k", source, (F32, Parameter("size", "s64")))
    assert to_llvm(kernel, SCOPE).count("br i1") == 1  # of the loop
    for n in range(-4, 5):
        out = np.zeros(19, np.float32)
        call(kernel, -9, 10, out, n)
        assert out.tolist() == [rule(i, n) if n else 0 for i in range(-9, 10)]


def test_sums_keep_their_order() -> None:
    source = (
        "def total(lo, hi, x, out):\n    s = x[0]\n    for i in range(lo, hi):\n        s += x[i]\n    out[0] = s\n"
    )
    x = np.array([1e8, 1, -1e8, 1] * 8, np.float32)
    out = np.zeros(1, np.float32)
    call(KernelSource("total", source, (F32, F32)), 1, 32, x, out)
    expected = x[0]
    for value in x[1:]:
        expected += value
    assert out[0] == expected


def test_loops_vectorise_without_checks_for_overlap() -> None:
    code = """
from hloom.numba_backend.runtime import compile as c, llvm_backend as b, frontend as f
from hloom.numba_backend.runtime.kernel import KernelSource
import llvmlite.binding as llvm
source = "def add(lo, hi, x, y, out):\\n for i in range(lo, hi):\\n  out[i] = x[i] + y[i]\\n"
k = KernelSource("add", source, (("pointer", "f32"),) * 3)
module = llvm.parse_assembly(f.to_llvm(k, {}))
b.optimise(module, True)
text = str(module)
print("vector.body" in text, "memcheck" in text, "x float>" in text)
"""
    assert python(code).split() == ["True", "False", "True"]


def test_batch_gives_each_kernel_its_own_code() -> None:
    sources = [f"def k(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = {value}\n" for value in range(5)]
    kernels = [KernelSource("k", source, (F32,)) for source in sources]
    assert len({kernel.symbol for kernel in kernels}) == 5
    loaded = load_objects([(k.symbol, code) for k, code in zip(kernels, compile_kernels(kernels))])
    assert len({code.address for code in loaded}) == 5


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("unknown", "def unknown(lo, hi, x):\n    y = 1\n    x[0] = open(y)\n", "open"),
        ("types", "def types(lo, hi, x):\n    x[0] = 'a'\n", "   2 |     x[0] = 'a'"),
        ("syntax", "def syntax(lo, hi, x):\n    x[0] = = 1\n", "invalid syntax"),
        ("missing", "def other(lo, hi, x):\n    x[0] = 1\n", "missing"),
        ("arity", "def arity(lo, hi):\n    pass\n", "2 arguments"),
        ("result", "def result(lo, hi, x):\n    return lo\n", "returns"),
        ("array", "def array(lo, hi, x):\n    a = [1]\n    x[0] = a[0]\n", "array"),
    ],
)
def test_refusals_show_the_source_with_line_numbers(name: str, source: str, says: str) -> None:
    with pytest.raises(KernelCompilationError) as caught:
        compiled_kernel(source, name, [F32])
    text = str(caught.value)
    assert f"kernel {name!r} could not be compiled" in text and says in text
    for number, line in enumerate(source.splitlines(), 1):
        assert f"{number:4d} | {line}" in text


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("1x", []), ("a b", []), ("k", [("pointer", "f31")]), ("k", [("scalar", "c128")]), ("k", [("size", "f32")])],
)
def test_descriptions_that_make_no_sense(name: str, parameters: list[Parameter]) -> None:
    with pytest.raises(ValueError, match="kernel"):
        KernelSource(name, "", tuple(parameters))


def test_identity_depends_on_everything() -> None:
    variants = [
        ADD,
        KernelSource("add2", ADD.source, ADD.parameters),
        KernelSource("add", ADD.source + "\n", ADD.parameters),
        KernelSource("add", ADD.source, (F32, F32, Parameter("pointer", "f64"))),
        KernelSource("add", ADD.source, ADD.parameters, "native"),
    ]
    assert len({kernel.identity for kernel in variants}) == len(variants)
    assert KernelSource("add", ADD.source, ADD.parameters) == ADD


def test_nothing_of_a_source_is_executed() -> None:
    source = "raise SystemExit\ndef k(lo, hi, x):\n    x[0] = 1\n"
    assert compiled_kernel(source, "k", [F32])


@pytest.mark.parametrize("name", ["print", "len", "ctypes", "__import__", "__name__"])
def test_a_source_sees_nothing_but_its_scope(name: str) -> None:
    with pytest.raises(KernelCompilationError, match="could not be compiled: the source"):
        compiled_kernel(f"def k(lo, hi, x):\n    {name}(lo)\n", "k", [F32])
