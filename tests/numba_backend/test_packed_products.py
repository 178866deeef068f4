"""Products of small numbers that are packed into words: all types, orders and edges."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import parse
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops.expressions import Name
from hloom.numba_backend.machine import ANY_TARGET, compiling_for
from hloom.numba_backend.runtime import threads
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import emit_object, host_features
from hloom.numba_backend.runtime.loader import load_objects
from hloom.numba_backend.schedule.copies import SIGNS, SMALLEST, small_numbers
from test_product_kernels import program

import hloom

DTYPES = {
    "s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32, "u32": np.uint32, "s64": np.int64,
    "u64": np.uint64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32,
}  # fmt: skip
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-24}
FORMS = [dict(zip(("ta", "tb"), transposed)) for transposed in itertools.product((False, True), repeat=2)]


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    yield
    threads.set_num_threads(None)


def numbers(kind: str, *shape: int) -> np.ndarray:
    """Among them the largest and the least."""
    rng = np.random.default_rng([*shape, len(kind)])
    dtype = np.dtype(DTYPES[kind])
    if dtype.kind not in "iu":
        return rng.standard_normal(shape).astype(dtype)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    values.flat[::3] = limits.min
    values.flat[1::5] = limits.max
    return values


def names_of(text: str) -> list[str]:
    executable = NumbaCompiler().compile(parse(text))
    return [use.source.split("(")[0].removeprefix("def ") for use in executable._details._lowered.kernels]


def check(types: tuple[str, str, str], m: int, k: int, n: int, batch: tuple[int, ...] = (), **form: bool) -> None:
    text = program(types, m, k, n, batch=batch, **form)
    assert "packed_product" in names_of(text), text
    x = numbers(types[0], *batch, *((k, m) if form.get("ta") else (m, k)))
    y = numbers(types[1], *batch, *((n, k) if form.get("tb") else (k, n)))
    actual = np.asarray(hloom.run_hlo(text, x, y)[0])
    left, right = x.swapaxes(-1, -2) if form.get("ta") else x, y.swapaxes(-1, -2) if form.get("tb") else y
    assert_product(actual, left, right, types[2], text)


def assert_product(actual: np.ndarray, left: np.ndarray, right: np.ndarray, kind: str, text: str) -> None:
    """Integers are exact. Sums of floats are sums in f32, rounded once more."""
    if kind not in ROUNDING:
        expected = (left.astype(np.int64) @ right.astype(np.int64)).astype(DTYPES[kind])
        np.testing.assert_array_equal(actual, expected, err_msg=text)
        return
    left, right = left.astype(np.float64), right.astype(np.float64)
    exact, size = left @ right, abs(left) @ abs(right)
    bound = 2e-7 * left.shape[-1] ** 0.5 * size + ROUNDING[kind] * abs(exact) + np.finfo(np.float32).tiny
    assert (abs(actual.astype(np.float64) - exact) <= bound).all(), text


TYPES = [
    ("s8", "s8", "s32"), ("u8", "u8", "s32"), ("u8", "s8", "s32"), ("s16", "s16", "s32"), ("s8", "s8", "s8"),
    ("s8", "s8", "s64"), ("u8", "u8", "u64"), ("s8", "u8", "u32"), ("s16", "u8", "s16"), ("bf16", "bf16", "bf16"),
    ("s8", "s16", "u32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("bf16", "f16", "f32"),
]  # fmt: skip


ALL_ORDERS = [("s8", "s8", "s32"), ("s16", "s16", "s32"), ("bf16", "bf16", "bf16"), ("f16", "f16", "f16")]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_all_types_and_orders(types: tuple[str, str, str]) -> None:
    """Rows and columns that are no multiple of a tile's, and a depth of two parts that fills no word."""
    for form in FORMS if types in ALL_ORDERS else FORMS[1:2]:
        check(types, 61, 1151, 77, **form)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sizes", [(9, 2051, 16), (300, 97, 130), (600, 65, 9), (9, 33, 1100), (264, 3, 401)], ids=str)
def test_sizes(sizes: tuple[int, int, int]) -> None:
    """Several blocks and strips, tiles larger than the result, and few products in a sum."""
    for types in (("s8", "s8", "s32"), ("bf16", "bf16", "f32")):
        check(types, *sizes)
        check(types, *sizes, ta=True, tb=True)


@pytest.mark.parametrize("types", [("s8", "s8", "s32"), ("bf16", "bf16", "bf16"), ("f16", "f16", "f16")], ids="-".join)
def test_sums_over_several_dimensions_in_another_order(types: tuple[str, str, str]) -> None:
    """No operand is a matrix as it is stored, and one has to be transposed first."""
    a, b, c = types
    text = f"""HloModule products
ENTRY e {{
  x = {a}[20,13,80] parameter(0)
  y = {b}[80,24,13] parameter(1)
  ROOT d = {c}[20,24] dot(x, y), lhs_contracting_dims={{1,2}}, rhs_contracting_dims={{2,0}}
}}"""
    assert "packed_product" in names_of(text)
    x, y = numbers(a, 20, 13, 80), numbers(b, 80, 24, 13)
    actual = np.asarray(hloom.run_hlo(text, x, y)[0])
    assert_product(actual, x.reshape(20, -1), y.transpose(2, 0, 1).reshape(-1, 24), c, text)


def test_batches() -> None:
    for types in (("s8", "s8", "s32"), ("bf16", "bf16", "bf16"), ("f16", "f16", "f32")):
        check(types, 20, 70, 31, batch=(2, 5), tb=True)


def test_long_sums_of_unsigned_bytes() -> None:
    """They have all 32 bits: the largest is no negative number."""
    x, y = np.full((64, 50_000), 255, np.uint8), np.full((50_000, 9), 255, np.uint8)
    (actual,) = hloom.run_hlo(program(("u8", "u8", "u64"), 64, 50_000, 9), x, y)
    np.testing.assert_array_equal(np.asarray(actual), 50_000 * 255**2)


def test_small_products_are_sums() -> None:
    """And so are those with a vector; the operands are converted where they are read."""
    assert names_of(program(("s8", "s8", "s32"), 20, 20, 20)) != ["packed_product"]
    assert names_of(program(("bf16", "bf16", "bf16"), 1000, 1000, 1)) != ["packed_product"]


@pytest.mark.parametrize("types", [("s8", "s8", "s32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16")], ids="-".join)
def test_threads_do_not_change_results(types: tuple[str, str, str]) -> None:
    x, y = numbers(types[0], 300, 900), numbers(types[1], 900, 210)
    results = []
    for count in (1, 2):
        threads.set_num_threads(count)
        results.append(np.asarray(hloom.run_hlo(program(types, 300, 900, 210), x, y)[0]))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_subnormal_numbers_of_bf16(form: dict[str, bool]) -> None:
    """Processors' instructions for bf16 take them for zeros: operands, products, and sums of several parts."""
    m, k, n = 40, 1100, 40
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (m, k))
    cases = {
        "operands": (signs * 2.0**-130, np.full((k, n), 2.0**10)),
        "products": (signs * 2.0**-70, np.full((k, n), 2.0**-65)),
        "one small number, first": (np.where(np.arange(k) == 1, 2.0**-131, 0), np.ones((k, n))),
        "one small number, last": (np.where(np.arange(k) == k - 1, 2.0**-131, 0), np.ones((k, n))),
        "in the panel": (np.ones((m, k)), np.where(np.arange(k) == 3, 2.0**-131, 0)[:, None]),
        "differences": (np.where(np.arange(k) < 2, [[1.0], [-1.0]] * (m // 2), 0), np.full((k, n), 2.0**-127)),
    }
    for name, (left, right) in cases.items():
        x = np.broadcast_to(left, (m, k)).astype(ml_dtypes.bfloat16)
        y = np.broadcast_to(right, (k, n)).astype(ml_dtypes.bfloat16)
        expected = x.astype(np.float64) @ y.astype(np.float64)
        assert (abs(expected) < 2.0**-100).all() and expected.any(), name
        given = x.T.copy() if form["ta"] else x.copy(), y.T.copy() if form["tb"] else y.copy()
        (actual,) = hloom.run_hlo(program(("bf16", "bf16", "f32"), m, k, n, **form), *given)
        np.testing.assert_array_equal(np.asarray(actual), expected.astype(np.float32), err_msg=name)


@pytest.mark.parametrize("other", [0, 0x7FFF, SMALLEST, 0xFFFF])
def test_all_small_numbers_of_bf16_are_found(other: int) -> None:
    """In either half of a word, whatever the other half is."""
    numbers = np.arange(1 << 16, dtype=np.uint32)
    sizes = numbers & 0x7FFF
    expected = (sizes > 0) & (sizes < SMALLEST)
    scope = {"bit_and": np.bitwise_and, "bit_not": np.bitwise_not, "add": np.add, "uint32": np.uint32}
    test = str(small_numbers(Name("word", "uint32")))
    for words in (numbers << 16 | other, numbers | other << 16):
        found = eval(test, scope, {"word": words.astype(np.uint32)}) & SIGNS != 0
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_infinities_nans_and_overflow(kind: str) -> None:
    x, y = np.zeros((70, 300), DTYPES[kind]), -np.ones((300, 40), DTYPES[kind])
    x[0, 5], x[1, 7], y[9, 2], x[3, :], x[4, 299] = np.inf, np.nan, np.inf, 1000, -np.inf
    (actual,) = hloom.run_hlo(program((kind, kind, kind), 70, 300, 40), x, y)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = (x.astype(np.float32) @ y.astype(np.float32)).astype(DTYPES[kind])
    np.testing.assert_array_equal(np.asarray(actual).astype(np.float32), expected.astype(np.float32))
    assert not np.signbit(np.asarray(actual)[10:, :2].astype(np.float32)).any()


# ---- what other processors run

ROWS = """def rows(lo, hi, total, a, b, out):
    sums = local_array({count}, {kind})
    first = local_array({count}, {word})
    second = local_array({count}, {word})
    for i in range(lo, hi):
        for j in {of}({count}):
            sums[j] = total[i * {count} + j]
        for j in {of}({count}):
            first[j] = a[i * {count} + j]
        for j in {of}({count}):
            second[j] = b[i * {count} + j]
        for j in {of}({count}):
            sums[j] = {function}(sums[j], first[j], second[j])
        for j in {of}({count}):
            out[i * {count} + j] = sums[j]
"""


def words(function: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Totals, words, and the results."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 1 << 32, 480, np.uint32) for _ in range(2))
    a[:16], b[8:24] = 0x80808080, 0x80808080
    a[16:24], b[24:32], a[32:40], b[32:40] = 0xFFFFFFFF, 0x7F7F7F7F, 0x80008000, 0x80008000
    total = rng.integers(0, 1 << 32, 480, np.uint32)
    if function == "dot_bytes":
        products = a.view(np.uint8).astype(np.int64) * b.view(np.int8)
        return total, a, b, (total + products.reshape(-1, 4).sum(1)).astype(np.uint32)
    if function == "dot_shorts":
        products = a.view(np.int16).astype(np.int64) * b.view(np.int16)
        return total, a, b, (total + products.reshape(-1, 2).sum(1)).astype(np.uint32)
    few = (rng.integers(-9, 10, 960).astype(ml_dtypes.bfloat16) for _ in range(2))  # so that sums are exact
    a, b = (x.view(np.uint32) for x in few)
    sums = (a.view(ml_dtypes.bfloat16).astype(np.float32) * b.view(ml_dtypes.bfloat16).astype(np.float32))
    wide = rng.integers(-9, 10, 480).astype(np.float32)
    return wide, a, b, wide + sums.reshape(-1, 2).sum(1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("function", ["dot_bytes", "dot_shorts", "dot_bf16", "dot_bf16_normal"])
def test_words_with_and_without_instructions(function: str) -> None:
    """As vectors with this processor's instructions, as vectors of plain arithmetic, and one by one; by Numba too."""
    total, a, b, expected = words(function)
    kind, word = ("float32" if x.dtype == np.float32 else "uint32" for x in (total, a))
    short = {"float32": "f32", "uint32": "u32"}
    parameters = tuple(Parameter("pointer", short[k]) for k in (kind, word, word, kind))
    for count, features, way in (
        (16, host_features(), "one pass"), (16, frozenset(), "one pass"), (15, frozenset(), "one pass"),
        (16, None, "numba"),
    ):  # fmt: skip
        text = ROWS.format(of="lanes" if count == 16 else "range", count=count, kind=kind, word=word, function=function)
        kernel = KernelSource("rows", text, parameters)
        ir = to_llvm(kernel, SCOPE, way, features)
        feature = {"dot_bytes": "avx512vnni", "dot_bf16_normal": "avx512bf16"}.get(function)
        assert ("llvm.x86" in ir) == (count == 16 and way == "one pass" and feature in (features or ()))
        (code,) = load_objects([(kernel.symbol, emit_object(ir))])
        out = np.zeros_like(total)
        call(code.address, 480 // count, total, a, b, out)
        np.testing.assert_array_equal(out, expected, err_msg=f"{count} {way}")


def call(address: int, count: int, *arrays: np.ndarray) -> None:
    table = (ctypes.c_int64 * len(arrays))(*[x.ctypes.data for x in arrays])
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)(0, count, ctypes.addressof(table))


@pytest.mark.parametrize("registers", [(16, 32), (32, 32), (32, 16)], ids=str)
def test_other_tiles(registers: tuple[int, int]) -> None:
    """The kernels that processors with other registers have, and without instructions for bf16."""
    number, nbytes = registers
    other = replace(ANY_TARGET, registers=number, register_bytes=nbytes, multiplies_bf16=False)
    with compiling_for(other):
        for types in (("s8", "s8", "s32"), ("s16", "s16", "s32"), ("bf16", "bf16", "bf16")):
            text = program(types, 61, 515, 77, ta=True)
            x, y = numbers(types[0], 515, 61), numbers(types[1], 515, 77)
            (actual,) = NumbaCompiler().compile(parse(text)).execute([x, y])
            assert_product(np.asarray(actual), x.T, y, types[2], text)
