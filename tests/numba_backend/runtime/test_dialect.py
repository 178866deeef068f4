"""The dialect without its mathematics: conversions, bit casts, integers, comparisons, extrema, reductions, errors.

Expected values come from Python's integers, NumPy and ml_dtypes; doubtful cases were recorded from XLA.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from fractions import Fraction

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from hloom.numba_backend.runtime.compile import compile_kernels
from hloom.numba_backend.runtime.errors import KernelCompilationError
from hloom.numba_backend.runtime.kernel import Parameter

from support.dialect_kernels import STORAGE, compiled, fold_of, folded, kernel_of, optimised_ir
from support.runtime_kernels import compiled_kernel, python

INF, NAN = np.inf, np.nan
SIGNED, UNSIGNED = ("s8", "s16", "s32", "s64"), ("u8", "u16", "u32", "u64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("f16", "bf16", "f32", "f64")
VALUES = {**STORAGE, "pred": np.bool_, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
"""NumPy types that hold the values, where STORAGE holds their bits."""


def integers(dtype: str) -> np.ndarray:
    """Edges and random numbers, an odd count of them."""
    info = np.iinfo(STORAGE[dtype])
    edges = [info.min, info.min + 1, -1, 0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, 100, info.max - 1, info.max]
    edges = [e for e in edges if info.min <= e]
    random = np.random.default_rng(7).integers(info.min, info.max, 24, STORAGE[dtype], endpoint=True)
    return np.concatenate([np.array(edges, STORAGE[dtype]), random])


def floats(dtype: str) -> np.ndarray:
    edges = [
        0, -0.0, 0.4, -0.4, 0.5, -0.5, 0.9, -0.9, 1, 1.5, 2.5, -2.5, 126.9, 127.5, 128, -128, -128.9, -129, 255, 255.9,
        256, 32767, 32768, -32769, 65504, 65520, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2.0**32, 2.0**63, -(2.0**63),
        2.0**64, 1e20, -1e20, 3e38, 1e-40, 1e-45, 6e-8, 1.0009766, 1.00048828125, 1.00390625, 1.01171875,
        INF, -INF, NAN,
    ]  # fmt: skip
    with np.errstate(over="ignore"):
        return np.array(edges).astype(VALUES[dtype])


def pairs_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def wrapped(number: int, dtype: str) -> int:
    info = np.iinfo(STORAGE[dtype])
    return (number - int(info.min)) % (1 << info.bits) + int(info.min)


def comparable(values: np.ndarray) -> np.ndarray:
    """NumPy's comparisons do not know bfloat16's NaN; in f64 they do."""
    if values.dtype == VALUES["bf16"]:
        with np.errstate(invalid="ignore"):
            return values.astype(np.float64)
    return values


# Conversions


def converted(values: np.ndarray, source: str, target: str) -> np.ndarray:
    """The result of HLO's convert, element by element."""
    if target == "pred":
        return values != 0
    if target in INTEGERS:
        info = np.iinfo(STORAGE[target])
        if source in FLOATS:
            clipped = [0 if np.isnan(v) else min(max(float(v), float(info.min)), float(info.max)) for v in values]
            return np.array([min(int(v), int(info.max)) for v in clipped], STORAGE[target])
        return np.array([wrapped(int(v), target) for v in values], STORAGE[target])
    with np.errstate(all="ignore"):
        if target in ("f16", "bf16") and source != "pred":
            values = values.astype(np.float32)
        return values.astype(VALUES[target])


REAL = ("pred", *INTEGERS, *FLOATS)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", REAL)
def test_conversions(source: str) -> None:
    values = np.array([False, True] * 9) if source == "pred" else (
        floats(source) if source in FLOATS else integers(source)
    )  # fmt: skip
    for target in REAL:
        if target == source:
            continue
        (result,) = compiled([f"convert_{source}_{target}(x[i])"], [source], target)(values.view(STORAGE[source]))
        want = converted(values, source, target)
        np.testing.assert_array_equal(comparable(result.view(VALUES[target])), comparable(want), err_msg=target)


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_every_half_survives_a_round_trip(half: str) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    for wide in ("f32", "f64"):
        (back,) = compiled([f"{wide}_to_{half}({half}_to_{wide}(x[i]))"], [half], half)(bits)
        nan = np.isnan(comparable(bits.view(VALUES[half])))
        np.testing.assert_array_equal(back[~nan], bits[~nan])
        assert np.isnan(comparable(back[nan].view(VALUES[half]))).all()


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_rounding_to_halves_is_to_nearest_even(half: str) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 32, 4001, np.uint32).view(np.float32)
    (result,) = compiled([f"f32_to_{half}(x[i])"], ["f32"], half)(values)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(comparable(result.view(VALUES[half])), comparable(values.astype(VALUES[half])))


def test_complex_conversions() -> None:
    z = np.array([1 + 2j, complex(INF, -0.0), complex(NAN, 1e300), 1e-50j] * 3)
    (narrow,) = compiled(["convert_c128_c64(x[i])"], ["c128"], "c64")(z)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrow, z.astype(np.complex64))
    (wide,) = compiled(["convert_c64_c128(x[i])"], ["c64"], "c128")(narrow)
    np.testing.assert_array_equal(wide, narrow.astype(np.complex128))
    (real,) = compiled(["convert_s32_c64(x[i])"], ["s32"], "c64")(np.arange(-5, 6))
    np.testing.assert_array_equal(real, np.arange(-5, 6).astype(np.complex64))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS])
def test_bit_casts(source: str) -> None:
    values = floats(source) if source in FLOATS else integers(source)
    width = values.dtype.itemsize
    for target in (*INTEGERS, *FLOATS):
        if target != source and np.dtype(VALUES[target]).itemsize == width:
            bits = values.view(STORAGE[source])
            (result,) = compiled([f"bitcast_{source}_{target}(x[i])"], [source], target)(bits)
            np.testing.assert_array_equal(result.view(np.uint8), values.view(np.uint8))


def test_casts_and_pred() -> None:
    (result,) = compiled(["pred(x[i])"], ["f32"], "pred")(np.array([0, -0.0, 1e-45, NAN, INF, 1] * 2))
    np.testing.assert_array_equal(result, [0, 0, 1, 1, 1, 1] * 2)
    (result,) = compiled(["int8(x[i])"], ["s32"], "s8")(np.array([127, 128, 255, 256, -129]))
    np.testing.assert_array_equal(result, [127, -128, -1, 0, 127])


# Integers


def truncated(a: int, b: int) -> int:
    return int(Fraction(a, b))


def divide(a: int, b: int, dtype: str) -> int:
    return -1 if b == 0 else truncated(a, b)


def remainder(a: int, b: int, dtype: str) -> int:
    return a if b == 0 else a - b * truncated(a, b)


def bits_of(dtype: str) -> int:
    return int(np.iinfo(STORAGE[dtype]).bits)


def count_of(b: int, dtype: str) -> int:
    return b % (1 << bits_of(dtype))


def unsigned(a: int, dtype: str) -> int:
    return a % (1 << bits_of(dtype))


def as_signed(a: int, dtype: str) -> int:
    return wrapped(a, "s" + dtype[1:])


def power(a: int, b: int, dtype: str) -> int:
    if b < 0:
        return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
    return pow(unsigned(a, dtype), b, 1 << bits_of(dtype))


BINARY: dict[str, Callable[[int, int, str], int]] = {
    "add": lambda a, b, t: a + b,
    "subtract": lambda a, b, t: a - b,
    "multiply": lambda a, b, t: a * b,
    "divide": divide,
    "idiv": divide,
    "remainder": remainder,
    "irem": remainder,
    "maximum": lambda a, b, t: max(a, b),
    "minimum": lambda a, b, t: min(a, b),
    "bit_and": lambda a, b, t: a & b,
    "bit_or": lambda a, b, t: a | b,
    "bit_xor": lambda a, b, t: a ^ b,
    "shl": lambda a, b, t: a << count_of(b, t) if count_of(b, t) < bits_of(t) else 0,
    "shr_logical": lambda a, b, t: unsigned(a, t) >> count_of(b, t) if count_of(b, t) < bits_of(t) else 0,
    "shr_arithmetic": lambda a, b, t: as_signed(a, t) >> min(count_of(b, t), bits_of(t) - 1),
    "pow": power,
}
UNARY: dict[str, Callable[[int, str], int]] = {
    "negate": lambda a, t: -a,
    "abs": lambda a, t: abs(a),
    "sign": lambda a, t: (a > 0) - (a < 0),
    "bit_not": lambda a, t: ~a,
    "popcnt": lambda a, t: unsigned(a, t).bit_count(),
    "clz": lambda a, t: bits_of(t) - unsigned(a, t).bit_length(),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operations(dtype: str) -> None:
    x, y = pairs_of(integers(dtype))
    results = compiled([f"{name}(x[i], y[i])" for name in BINARY], [dtype, dtype], dtype)(x, y)
    for (name, rule), result in zip(BINARY.items(), results):
        expected = [wrapped(rule(int(a), int(b), dtype), dtype) for a, b in zip(x, y)]
        np.testing.assert_array_equal(result, np.array(expected, STORAGE[dtype]), err_msg=name)
    values = integers(dtype)
    results = compiled([f"{name}(x[i])" for name in UNARY], [dtype], dtype)(values)
    for (name, one), result in zip(UNARY.items(), results):
        expected = [wrapped(one(int(a), dtype), dtype) for a in values]
        np.testing.assert_array_equal(result, np.array(expected, STORAGE[dtype]), err_msg=name)


@pytest.mark.parametrize("dtype", ["s32", "u32", "s8", "u16"])
def test_division_of_many_numbers(dtype: str) -> None:
    """Floats divide these integers: where a quotient is next to a whole number they must not round up to it."""
    generator = np.random.default_rng(8)
    info = np.iinfo(STORAGE[dtype])
    y = generator.integers(1, int(info.max) // 2, 5001) >> generator.integers(0, info.bits - 2, 5001)
    y = np.maximum(y, 1).astype(STORAGE[dtype])
    x = ((info.max // y.astype(np.int64)) * y - generator.integers(0, 2, 5001)).astype(STORAGE[dtype])
    quotient, rest = compiled(["idiv(x[i], y[i])", "irem(x[i], y[i])"], [dtype, dtype], dtype)(x, y)
    np.testing.assert_array_equal(quotient, x // y)
    np.testing.assert_array_equal(rest, x % y)


# Comparisons, select, extrema

COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [*INTEGERS, "f32", "f64"])
def test_comparisons(dtype: str) -> None:
    x, y = pairs_of(floats(dtype) if dtype in FLOATS else integers(dtype))
    results = compiled([f"{name}(x[i], y[i])" for name in COMPARISONS], [dtype, dtype], "pred")(x, y)
    for (name, compare), result in zip(COMPARISONS.items(), results):
        np.testing.assert_array_equal(result, compare(x, y), err_msg=name)


def test_complex_equality() -> None:
    x, y = pairs_of(np.array([0, complex(-0.0, 0), 1, 1j, complex(NAN, 0), complex(1, NAN)]))
    equal, differs = compiled(["eq(x[i], y[i])", "ne(x[i], y[i])"], ["c128", "c128"], "pred")(x, y)
    np.testing.assert_array_equal(equal, x == y)
    np.testing.assert_array_equal(differs, x != y)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_extrema_propagate_nan_and_order_zeros(dtype: str) -> None:
    x, y = pairs_of(np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-45], STORAGE[dtype]))
    high, low = compiled(["maximum(x[i], y[i])", "minimum(x[i], y[i])"], [dtype, dtype], dtype)(x, y)
    np.testing.assert_array_equal(high, np.maximum(x, y))
    np.testing.assert_array_equal(low, np.minimum(x, y))
    zeros = (x == 0) & (y == 0)
    np.testing.assert_array_equal(np.signbit(high[zeros]), np.signbit(x[zeros]) & np.signbit(y[zeros]))
    np.testing.assert_array_equal(np.signbit(low[zeros]), np.signbit(x[zeros]) | np.signbit(y[zeros]))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_total_order(dtype: str) -> None:
    order = np.array([-NAN, -INF, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, INF, NAN], STORAGE[dtype])
    order[0], order[-1] = np.copysign(order[0], -1), np.copysign(order[-1], 1)
    (keys,) = compiled(["total_order_key(x[i])"], [dtype], dtype.replace("f", "s"))(order)
    assert (np.diff(keys.astype(object)) > 0).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_keys_of_extrema(dtype: str) -> None:
    """The maximum has the largest key, with either sign of a NaN, and numbers come back from their keys."""
    values = np.array([-NAN, -INF, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, INF, NAN], STORAGE[dtype])
    values[0], values[-1] = np.copysign(values[0], -1), np.copysign(values[-1], 1)
    signed = dtype.replace("f", "s")
    for name, of_nan in (("maximum_key", 1), ("minimum_key", -1)):
        (keys,) = compiled([f"{name}(x[i])"], [dtype], signed)(values)
        assert (np.diff(keys[1:-1].astype(object)) > 0).all()
        assert keys[0] == keys[-1]
        assert (of_nan * keys[0].astype(object) > of_nan * keys[1:-1].astype(object)).all()
        (back,) = compiled(["from_key(x[i])"], [signed], dtype)(keys)
        np.testing.assert_array_equal(back, values)
        np.testing.assert_array_equal(np.signbit(back[1:-1]), np.signbit(values[1:-1]))


@pytest.mark.parametrize("dtype", ["f32", "s8", "u64", "c64"])
def test_select(dtype: str) -> None:
    p = np.arange(23) % 3 == 0
    a, b = np.arange(23).astype(STORAGE[dtype]), np.arange(100, 123).astype(STORAGE[dtype])
    by_pred, by_boolean = compiled(
        ["select(x[i], y[i], z[i])", "select(x[i] == 0, y[i], z[i])"], ["pred", dtype, dtype], dtype
    )(p, a, b)
    np.testing.assert_array_equal(by_pred, np.where(p, a, b))
    np.testing.assert_array_equal(by_boolean, np.where(p, b, a))


# Plain floating-point functions


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_rounding_and_signs(dtype: str) -> None:
    x = np.concatenate([floats(dtype), np.nextafter(np.array([0.5, -0.5], STORAGE[dtype]), STORAGE[dtype](0))])
    x = np.concatenate([x, np.array([2**23 + 1, 2**52 + 1, -(2**23) - 0.5], STORAGE[dtype])])
    away = np.array([np.copysign(int(abs(Fraction(float(v))) + Fraction(1, 2)), v) if np.isfinite(v) else v for v in x])
    expected = {
        "floor": np.floor(x), "ceil": np.ceil(x), "round_even": np.rint(x), "round_away": away.astype(x.dtype),
        "abs": np.abs(x), "negate": -x, "sign": np.where(x == 0, x, np.sign(x)),
    }  # fmt: skip
    for (name, want), got in zip(expected.items(), compiled([f"{n}(x[i])" for n in expected], [dtype], dtype)(x)):
        np.testing.assert_array_equal(got, want, err_msg=name)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]), err_msg=name)
    (finite,) = compiled(["is_finite(x[i])"], [dtype], "pred")(x)
    np.testing.assert_array_equal(finite, np.isfinite(x))


@pytest.mark.parametrize(
    ("exponent_bits", "mantissa_bits", "expected"),
    [
        # Recorded from XLA (with inputs that its flushing of denormals leaves alone)
        (5, 10, [NAN, INF, -0.0, 1.0, 65504.0, INF, INF, 0.0, 1.0, 1.0009765625]),
        (8, 7, [NAN, INF, -0.0, 1.0, 65536.0, 65536.0, INF, 6.103515625e-05, 1.0, 1.0]),
        (5, 2, [NAN, INF, -0.0, 1.0, INF, INF, INF, 6.103515625e-05, 1.0, 1.0]),
        (8, 23, [NAN, INF, -0.0, 1.0000001, 65519.99, 65520.0, 3.4e38, 6.1e-5, 1.00048828125, 1.0013769865]),
    ],
)
def test_reduce_precision(exponent_bits: int, mantissa_bits: int, expected: list[float]) -> None:
    x = np.array([NAN, INF, -0.0, 1.0000001, 65519.99, 65520, 3.4e38, 6.1e-5, 1.00048828125, 1.0013769865], np.float32)
    (result,) = compiled([f"reduce_precision(x[i], {exponent_bits}, {mantissa_bits})"], ["f32"], "f32")(x)
    np.testing.assert_array_equal(result, np.array(expected, np.float32))


@pytest.mark.parametrize(("dtype", "part"), [("c64", "f32"), ("c128", "f64")])
def test_complex_parts(dtype: str, part: str) -> None:
    z = (np.arange(13) - 3j * np.arange(13)).astype(STORAGE[dtype])
    real, imag = compiled(["real(x[i])", "imag(x[i])"], [dtype], part)(z)
    np.testing.assert_array_equal(real, z.real)
    np.testing.assert_array_equal(imag, z.imag)
    again, conjugate, negative, total, difference = compiled(
        ["complex_from(real(x[i]), imag(x[i]))", "conj(x[i])", "negate(x[i])", "add(x[i], x[i])",
         "subtract(x[i], x[i])"], [dtype], dtype,
    )(z)  # fmt: skip
    np.testing.assert_array_equal(again, z)
    np.testing.assert_array_equal(conjugate, z.conj())
    np.testing.assert_array_equal(negative, -z)
    np.testing.assert_array_equal(total, z + z)
    np.testing.assert_array_equal(difference, z - z)


# Reductions

REDUCTIONS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "reduce_add": (np.sum, ("f32", "f64", "s32", "u64", "s8", "c64")),
    "reduce_mul": (np.prod, ("f32", "f64", "s32", "c128")),
    "reduce_max": (np.max, ("f32", "f64", "s32", "u8")),
    "reduce_min": (np.min, ("f32", "f64", "s16", "u64")),
    "reduce_largest": (np.max, ("f32", "f64")),
    "reduce_smallest": (np.min, ("f32", "f64")),
    "reduce_and": (np.bitwise_and.reduce, ("s32", "u8")),
    "reduce_or": (np.bitwise_or.reduce, ("s64", "u8")),
    "reduce_xor": (np.bitwise_xor.reduce, ("u16", "s32")),
}
REDUCTION_CASES = [(name, dtype) for name, (_, dtypes) in REDUCTIONS.items() for dtype in dtypes]


def summands(dtype: str, count: int) -> np.ndarray:
    generator = np.random.default_rng(9)
    if dtype in INTEGERS:
        info = np.iinfo(STORAGE[dtype])
        return generator.integers(info.min, info.max, count, STORAGE[dtype], endpoint=True)
    values = 1 + 0.01 * generator.standard_normal(count)
    return (values + (0.01j * generator.standard_normal(count) if dtype[0] == "c" else 0)).astype(STORAGE[dtype])


@pytest.mark.parametrize(("name", "dtype"), REDUCTION_CASES)
def test_reductions(name: str, dtype: str) -> None:
    reference = REDUCTIONS[name][0]
    for count in (1, 2, 203):
        values = summands(dtype, count)
        options = {"dtype": values.dtype} if name in ("reduce_add", "reduce_mul") else {}
        expected = reference(values, **options)
        tolerance = 0 if dtype in INTEGERS else 1e-5 if dtype in ("f32", "c64") else 1e-13
        np.testing.assert_allclose(folded(name, dtype)(values), expected, rtol=tolerance)


@pytest.mark.parametrize(("name", "dtype"), [case for case in REDUCTION_CASES if case != ("reduce_mul", "c128")])
def test_reductions_are_vectorised(name: str, dtype: str) -> None:
    assert "vector.body" in optimised_ir(fold_of(name, dtype))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_reduced_extrema_see_nan_and_signed_zeros_at_every_place(dtype: str) -> None:
    high, low = folded("reduce_max", dtype), folded("reduce_min", dtype)
    names = ("reduce_max", "reduce_min", "reduce_largest", "reduce_smallest")
    every = [folded(name, dtype) for name in names]
    for place in range(77):
        values = np.linspace(-1, 1, 77)
        values[place] = NAN
        assert all(np.isnan(extremum(values)) for extremum in every)
        zeros = np.full(77, -0.0)
        zeros[place] = 0.0
        assert not np.signbit(high(zeros))
        assert np.signbit(low(zeros)) and not np.signbit(low(-zeros * 0.0 + 0.0))


# The dialect's error messages


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("exp(5)", r"exp takes 1 argument\(s\) of one type \(complex, real\), not \(int64\)"),
        ("maximum(x[i], 0.5)", r"maximum takes 2 argument\(s\) of one type .*, not \(float32, float64\)"),
        ("convert_s32_f32(x[i])", r"convert_s32_f32 takes \(int32\), not \(float32\)"),
        ("select(x[i], x[i], x[i])", r"select takes \(pred, T, T\), not \(float32, float32, float32\)"),
        ("math.exp(x[i])", "math"),
    ],
)
def test_wrong_arguments_are_refused(expression: str, message: str) -> None:
    source = f"def wrong(lo, hi, x, out):\n    for i in range(lo, hi):\n        out[i] = {expression}\n"
    pointer = Parameter("pointer", "f32")
    with pytest.raises(KernelCompilationError, match=message):
        compiled_kernel(source, "wrong", [pointer, pointer])


def undefined_symbols(code: bytes) -> list[str]:
    """The undefined symbols of an ELF object file."""
    sections = {section.name(): section.data() for section in llvm.ObjectFileRef.from_data(code).sections()}
    layout = [("name", "<u4"), ("kind", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
    symbols = np.frombuffer(sections[b".symtab"], np.dtype(layout))
    names = sections[b".strtab"]
    return [names[s["name"] :].split(b"\0", 1)[0].decode() for s in symbols[1:] if s["section"] == 0]


@pytest.mark.one_in(2)
@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files")
@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128", "s64", "u32"])
def test_objects_stand_alone(dtype: str) -> None:
    """A stored kernel must load without libm and compiler run-time libraries."""
    functions = {
        "f": "exp log tanh sin tan pow atan2 remainder cbrt erf round_away maximum",
        "c": "exp log tanh sin pow divide asin atanh",
        "s": "divide remainder pow shl popcnt clz", "u": "divide remainder pow shl popcnt clz",
    }[dtype[0]].split()  # fmt: skip
    two = ("pow", "atan2", "remainder", "maximum", "divide", "shl")
    expressions = [f"{name}(x[i], y[i])" if name in two else f"{name}(x[i])" for name in functions]
    if dtype == "f64":
        expressions += [f"convert_{t}_f64(convert_f64_{t}(x[i]))" for t in ("f16", "bf16", "u64", "s8", "pred")]
    assert undefined_symbols(compile_kernels([kernel_of(expressions, [dtype, dtype], dtype)])[0]) == []


def test_importing_the_library_does_not_import_the_dialect() -> None:
    assert python("import sys, hloom.numba_backend; print('numba' in sys.modules)").strip() == "False"
