"""The two ways from a kernel's text to LLVM IR agree: the single pass and Numba."""

from __future__ import annotations

import ctypes
import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.expressions import Name
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import Assign, LoopProgram
from hloom.numba_backend.loops.writer import Writer
from hloom.numba_backend.runtime import frontend, machine
from hloom.numba_backend.runtime.blas import GEMM_ITEMS, GEMV_ITEMS, RUN_GEMM
from hloom.numba_backend.runtime.call import CALLER
from hloom.numba_backend.runtime.callbacks import CALL_PYTHON, LOOK
from hloom.numba_backend.runtime.dialect_define import Cast, DialectError, DialectFunction, Kind, Resolved
from hloom.numba_backend.runtime.executor import EXECUTOR
from hloom.numba_backend.runtime.frontend import Way, to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.lapack import LAPACK_FUNCTIONS
from hloom.numba_backend.runtime.llvm_backend import emit_object
from hloom.numba_backend.runtime.loader import load_objects
from hloom.numba_backend.runtime.long_kernels import LONG_PIECE, RUN_LONG
from hloom.numba_backend.runtime.numba_dialect import numba_type
from hloom.numba_backend.runtime.one_pass import _BINARY, _UNARY, Refused
from hloom.numba_backend.runtime.operators import operation
from hloom.numba_backend.runtime.recorder import RECORDER_FUNCTIONS
from hloom.numba_backend.runtime.threads import POOL_FUNCTIONS
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

NUMPY = {
    "pred": np.uint8, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def _twice(*given: Kind) -> Resolved:
    if given not in (("float32",), ("float64",)):
        raise DialectError("twice takes a float")
    return Resolved(given, str(given[0]), lambda builder, raw: builder.fadd(raw[0], raw[0]))


CASTS = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip
SCOPE: dict[str, object] = {
    **{name: Cast(name) for name in CASTS}, "twice": DialectFunction("twice", 1, _twice), "seven": 7
}  # fmt: skip


def body(*lines: str) -> str:
    """A kernel of f32 pointers x, y, out and sizes m, n around the lines."""
    return "def k(lo, hi, x, y, out, m, n):\n" + "".join(f"    {line}\n" for line in lines)


PARAMETERS = tuple(Parameter(*p) for p in [("pointer", "f32")] * 3 + [("size", "s64")] * 2)

TEXTS = {
    "elementwise": body("for i in range(lo, hi):", "    out[i] = x[i] * y[i] + float32(1)"),
    "row sums": body(
        "for i in range(lo, hi):", "    s = float32(0)", "    for j in range(m):", "        s += x[i] * y[j]",
        "    out[i] = s",
    ),
    "double sums": body("s = 0.0", "for i in range(lo, hi):", "    s = s + x[i]", "out[0] = s"),
    "steps": body(
        "for i in range(hi - 1, lo - 1, -2):", "    out[i] = x[i]", "for i in range(0, n, 3):", "    out[i] = y[i]"
    ),
    "while": body(
        "i = lo", "while i < hi:", "    v, w = x[i], y[i]", "    if w > v:", "        v, w = w, v", "    out[i] = v",
        "    i += 1",
        "    if i == n - 2:", "        continue", "    if i >= n - 1:", "        break",
    ),
    "for with break": body(
        "for i in range(lo, hi):", "    if x[i] > float32(2):", "        break", "    elif x[i] > float32(1):",
        "        continue", "    else:", "        pass", "    out[i] = -x[i]",
    ),
    "loop variable": body("for i in range(lo, hi):", "    i = i // 2 * 2", "    out[i] += x[i]"),
    "after the loop": body("i = 0", "for i in range(lo, hi):", "    pass", "out[i] = 5.0", "out[7] = 9.0"),
    "early return": body("if m > n:", "    return", "out[0] = twice(x[0])", "return", "out[1] = 1.0"),
    "boundaries": body(
        "for i in range(lo, hi):", "    a = i - 2", "    if 0 <= a and a < n:", "        out[i] = x[a]", "    else:",
        "        out[i] = float32(-1)", "    if 0 <= a and a < n or i == 1 or not (i == 3):", "        out[i] += y[i]",
    ),
    "integers": body(
        "for i in range(lo, hi):", "    a = (i * 7 + 3) % 5 - i // 3", "    b = (a << 2 | 1) & 15 ^ a >> 1",
        "    out[i] = float32(-b + ~a)",
    ),
    "divisions": body(
        "for i in range(lo, hi):", "    out[i] = x[i] / (y[i] - y[i]) + float32(i / n)",
        "    out[i] = float32(int32(out[i] > float32(3))) + float32(1 // (i + 1))",
    ),
    "nested conditions": body(
        "for i in range(lo, hi):", "    if x[i] > y[i]:", "        if x[i] > float32(1):", "            v = x[i]",
        "        else:", "            v = y[i]", "    else:", "        v = float32(3)", "    out[i] = v",
    ),
    "both return": body("if m > n:", "    out[0] = 1.0", "    return", "else:", "    out[0] = 2.0", "    return"),
    "truth of numbers": body(
        "for i in range(lo, hi):", "    if i & 1:", "        out[i] = 1.0", "    if x[i]:", "        out[i] += 1.0"
    ),
    "pointers in an order": body("p = x", "for i in range(lo, hi):", "    out[i] = p[i]"),
}  # fmt: skip


_numbers = itertools.count()


def compiled(kernel: KernelSource, way: Way) -> Callable[..., None]:
    """Lower one way, compile, load under a symbol of its own; a function of lo, hi, arrays and integers."""
    symbol = f"{kernel.symbol}_{next(_numbers)}"
    text = to_llvm(kernel, SCOPE, way).replace(kernel.symbol, symbol)
    (code,) = load_objects([(symbol, emit_object(text))])
    entry = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(code.address)

    def run(lo: int, hi: int, *arguments: Any, code: object = code) -> None:
        words = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
        table = (ctypes.c_int64 * len(words))(*words)
        entry(lo, hi, ctypes.addressof(table))

    return run


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TEXTS)
def test_texts_agree_with_numba_and_with_python(name: str) -> None:
    kernel = KernelSource("k", TEXTS[name], PARAMETERS)
    ways: tuple[Way, ...] = ("one pass", "numba")
    kernels = [compiled(kernel, way) for way in ways]
    for count in (0, 1, 7, 37):
        check(name, kernels, count)


def check(name: str, kernels: list[Callable[..., None]], count: int) -> None:
    rng = np.random.default_rng(count)
    x, y = (rng.uniform(0, 2.5, count + 9).astype(np.float32) for _ in range(2))
    results = []
    for run in kernels:
        out = np.zeros(count + 9, np.float32)
        run(0, count, x, y, out, count, count)
        results.append(out)
    np.testing.assert_array_equal(*results)
    out = np.zeros(count + 9, np.float32)
    namespace: dict[str, Any] = {name: getattr(np, name) for name in CASTS} | {"twice": lambda v: v + v, "seven": 7}
    exec(TEXTS[name], namespace)
    with np.errstate(all="ignore"):
        namespace["k"](0, count, x, y, out, count, count)
    np.testing.assert_allclose(results[0], out, rtol=1e-5, atol=1e-5)


OPERATORS = ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>"]


FAMILIES = ["s8", "s64", "u8", "u64", "f32", "f64", "c64"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("left", FAMILIES)
def test_every_operator_of_every_two_types(left: str) -> None:
    """One kernel for each type on the left: out_k = x op y_k for all types and operators that Numba has a rule for."""
    made = 0
    for right in FAMILIES:
        lines, outs = [], []
        for op in OPERATORS:
            complex_ = left[0] == "c" or right[0] == "c"
            floating = "f" in left + right
            if (complex_ and op in ("*", "/", "//", "%", "<", "<=", ">", ">=")) or (
                (complex_ or floating) and op in ("&", "|", "^", "<<", ">>", "//", "%")
            ):
                continue
            bools = op in ("<", "<=", ">", ">=", "==", "!=")
            outs.append("pred" if bools else "c128" if complex_ else "f64")
            lines.append(f"    o{len(outs) - 1}[lo] = x[lo] {op} y[lo]\n")
        names = ", ".join(f"o{number}" for number in range(len(outs)))
        text = f"def k(lo, hi, x, y, {names}):\n" + "".join(lines)
        kernel = KernelSource("k", text, tuple(Parameter("pointer", dtype) for dtype in (left, right, *outs)))
        x, y = np.array([5, 3, 0, 100], NUMPY[left]), np.array([2, 3, 1, 6], NUMPY[right])
        results = []
        ways: tuple[Way, ...] = ("one pass", "numba")
        for way in ways:
            arrays = [np.zeros(4, NUMPY[dtype]) for dtype in outs]
            run = compiled(kernel, way)
            for index in range(4):
                run(index, 4, x, y, *arrays)
            results.append(arrays)
        for one, all_ in zip(*results):
            np.testing.assert_array_equal(one, all_)
            made += 1
    assert made >= 4 * len(FAMILIES)


ALL = ["bool", *CASTS]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("function", [*_BINARY.values(), *_UNARY.values(), bool], ids=lambda f: f.__name__)
def test_operands_are_promoted_as_numba_promotes_them(function: Any) -> None:
    """The types that operands are cast to, and the type of the result, for all types of operands."""
    typing = cpu_target.typing_context
    typing.refresh()
    for given in itertools.product(ALL, repeat=2 if function in _BINARY.values() else 1):
        own = operation(function, given)
        try:
            theirs = typing.resolve_value_type(function).get_call_type(typing, tuple(map(numba_type, given)), {})
        except TypingError:
            assert own is None, given
            continue
        if own is None:  # Numba has a type for it, and no implementation that lowers in place
            complex_product = function is operator.mul and "complex" in str(theirs)
            complex_quotient = function is operator.truediv and "complex" in str(theirs)
            rounded_down = function in (operator.floordiv, operator.mod) and "float" in str(theirs.args)
            assert complex_product or complex_quotient or rounded_down, given
        else:
            assert (own.expected, own.result) == (tuple(map(str, theirs.args)), str(theirs.return_type)), given


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", CASTS)
def test_every_cast(source: str) -> None:
    dtype = next(name for name, kind in NUMPY.items() if np.dtype(kind).name == source)
    targets = [name for name in CASTS if not source.startswith("complex") or name.startswith("complex")]
    kinds = [next(key for key, kind in NUMPY.items() if np.dtype(kind).name == name) for name in targets]
    lines = [f"    o{number}[0] = {name}(x[0])\n" for number, name in enumerate(targets)]
    text = f"def k(lo, hi, x, {', '.join(f'o{number}' for number in range(len(targets)))}):\n" + "".join(lines)
    kernel = KernelSource("k", text, tuple(Parameter("pointer", kind) for kind in (dtype, *kinds)))
    for value in (0, 1, 77):
        results = []
        ways: tuple[Way, ...] = ("one pass", "numba")
        for way in ways:
            arrays = [np.zeros(1, NUMPY[kind]) for kind in kinds]
            compiled(kernel, way)(0, 1, np.array([value], source), *arrays)
            results.append(arrays)
            assert all(array[0] == value for array in arrays)
        np.testing.assert_array_equal(*([array.astype(complex) for array in arrays] for arrays in results))


@pytest.mark.parametrize(
    "lines",
    [
        ["a = 0", "a = 1.5", "out[0] = a"],
        ["for i in range(int32(3)):", "    out[i] = 1.0"],
        ["a, b = x", "out[0] = a + b"],
        ["a, b = 1, 2, 3", "out[0] = a + b"],
        ["a, out[1] = 1, 2.0"],
        ["a = n", "if 0 <= a < n:", "    out[0] = 1.0"],
        ["out[seven] = 1.0"],
        ["n += 1.5", "out[0] = n"],
        ["n[0] = 1.5"],
        ["for i in range():", "    out[i] = 1.0"],
        ["range = 3", "for i in range(range):", "    out[i] = 1.0"],
        ["for i in range(lo, hi, n):", "    out[i] = 1.0"],
        ["out[0] = x[0] ** 2"],
        ["i = 0", "while i < 3:", "    i += 1", "else:", "    out[0] = 1.0"],
        ["a = b = 1.0", "out[0] = a + b"],
        ["out[0] = abs(x[0])"],
        ["out[0] = 1 if m > n else 2.5"],
    ],
)
def test_the_single_pass_refuses_what_it_does_not_know(lines: list[str]) -> None:
    with pytest.raises((Refused, NotImplementedError)):
        to_llvm(KernelSource("k", body(*lines), PARAMETERS), {**SCOPE, "abs": abs}, "one pass")


def test_numba_compiles_what_the_single_pass_refuses() -> None:
    kernel = KernelSource("k", body("a = 0", "a = 1.5", "out[0] = a"), PARAMETERS)
    (code,) = load_objects([(kernel.symbol, emit_object(to_llvm(kernel, SCOPE)))])
    assert code.address


def test_equal_kernels_give_equal_text() -> None:
    """But for the names of scopes of aliases, where LLVM inlines: they have Numba's counter of functions."""
    kernel = KernelSource("k", TEXTS["row sums"], PARAMETERS)
    ways: tuple[Way, ...] = ("one pass", "numba")
    for way in ways:
        first, second = (re.sub(r'!"_ZN[^"]*"', "", to_llvm(kernel, SCOPE, way)) for _ in range(2))
        assert first == second


@pytest.mark.parametrize("name", TEXTS)
def test_a_program_need_not_be_read_again(name: str) -> None:
    """Its nodes give the same code as its text, and its text is the text that was read."""
    program = read(TEXTS[name], ["int64", "int64", *["float32*"] * 3, "int64", "int64"])
    source = to_text(program)
    written = KernelSource("k", source, PARAMETERS, program=program)
    assert written == KernelSource("k", source, PARAMETERS)
    assert to_llvm(written, SCOPE, "one pass") == to_llvm(KernelSource("k", source, PARAMETERS), SCOPE, "one pass")
    assert to_text(read(source, ["int64", "int64", *["float32*"] * 3, "int64", "int64"])) == source


def test_types_of_nodes_are_compared_with_numbas() -> None:
    writer = Writer()
    element = Name("x", "float32*")[0]
    writer.add(Assign((Name("a", "float64"),), (element,)))
    program = LoopProgram("k", ("lo", "hi", "x"), writer.body())
    kernel = KernelSource("k", to_text(program), (Parameter("pointer", "f32"),), program=program)
    with pytest.raises(Refused, match="a is float32 by Numba's rules and float64 by the program's"):
        to_llvm(kernel, SCOPE, "one pass")


NATIVE = [
    EXECUTOR, CALLER, CALL_PYTHON, LOOK, *POOL_FUNCTIONS, *RECORDER_FUNCTIONS, RUN_GEMM, GEMM_ITEMS, GEMV_ITEMS,
    *LAPACK_FUNCTIONS, RUN_LONG, LONG_PIECE,
]  # fmt: skip


@pytest.mark.parametrize("function", NATIVE, ids=lambda f: f.name)
def test_functions_of_the_runtime_are_loop_programs(function: KernelSource) -> None:
    assert function.symbol in to_llvm(function, machine.SCOPE, "one pass")


def test_only_reductions_are_interleaved() -> None:
    hints = [
        to_llvm(KernelSource("k", TEXTS[name], PARAMETERS), SCOPE).count("interleave.count")
        for name in ("elementwise", "double sums")
    ]
    assert hints == [1, 0]


def test_an_error_of_our_own_does_not_lead_to_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A TypeError without a fault in the text is raised: Numba would hide it, after a long time."""

    def broken(*_: object) -> None:
        return len(3)  # type: ignore[arg-type]

    monkeypatch.setattr(frontend, "_by_one_pass", broken)
    with pytest.raises(TypeError, match="has no len"):
        to_llvm(KernelSource("k", TEXTS["elementwise"], PARAMETERS), SCOPE)
