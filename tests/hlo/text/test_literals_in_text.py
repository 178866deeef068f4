"""Constants in text: bit by bit, for every element type."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hloom.hlo import ElementType, HloParseError, Literal, Shape
from hloom.hlo.text.literals import literal_text, read_literal
from hloom.hlo.text.scanner import Scanner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def read(text: str, shape: str) -> Literal:
    scanner = Scanner(text + ")")
    literal = read_literal(scanner, Shape.parse(shape))
    assert scanner.peek(")"), "the literal was not read to its end"
    return literal


def survives(array: np.ndarray[Any, Any]) -> bool:
    literal = Literal(array)
    return read(literal_text(literal), literal.shape.to_text()) == literal


@pytest.mark.parametrize(
    ("shape", "text", "printed"),
    [
        ("f32[]", "1", "1"),
        ("f32[]", "-1.5e-3", "-0.0015"),
        ("f32[]", "0.1", "0.1"),
        ("f32[]", "100000000", "100000000"),
        ("f32[]", "-0", "-0.0"),
        ("f32[]", "3.4028235e38", "3.4028235e+38"),
        ("f32[]", "-inf", "-inf"),
        ("f32[]", "nan", "nan"),
        ("f32[]", "-nan", "-nan"),
        ("f32[]", "nan(0x400000)", "nan"),
        ("f32[]", "nan(0x1)", "nan(0x1)"),
        ("f64[]", "-nan(0x8000000000001)", "-nan(0x8000000000001)"),
        ("f64[]", "0.30000000000000004", "0.30000000000000004"),
        ("bf16[3]", "{0.1, 3.39e38, 9.2e-41}", "{0.1001, 3.39e+38, 9.184e-41}"),
        ("f16[2]", "{0.1, 65504}", "{0.1, 65504}"),
        ("pred[]", "true", "true"),
        ("pred[]", "0", "false"),
        ("pred[4]", "{true, false, 1, 0}", "{1, 0, 1, 0}"),
        ("s8[2]", "{-128,127}", "{-128, 127}"),
        ("u64[]", "18446744073709551615", "18446744073709551615"),
        ("s64[1]", "{-9223372036854775808}", "{-9223372036854775808}"),
        ("c64[]", "(1, -0)", "(1, -0.0)"),
        ("c64[2]", "{(1,nan(0x2)), ( -inf , 2e3 )}", "{(1, nan(0x2)), (-inf, 2000)}"),
        ("c128[0]", "{}", "{}"),
        ("f32[2,3]", "{ { 1, 2, 3 }, { 4, 5, 6 } }", "{{1, 2, 3}, {4, 5, 6}}"),
        (
            "s32[2,1,1,2]",
            "{ { /*i0=0*/ { /*i1=0*/ { 1, 2 } } }, { /*i0=1*/ { /*i1=0*/ { 4, /*b*/ 5 } } } }",
            "{{{{1, 2}}}, {{{4, 5}}}}",
        ),
        ("f32[2,2]{0,1}", "{{1,2},{3,inf}}", "{{1, 2}, {3, inf}}"),
        ("f32[2,0]", "{ {}, { } }", "{{}, {}}"),
        ("f32[0,2]", "{  }", "{}"),
        ("f32[2,0,3]", "{{},{}}", "{{}, {}}"),
    ],
)
def test_read_and_print(shape: str, text: str, printed: str) -> None:
    literal = read(text, shape)
    assert literal_text(literal) == printed
    assert read(printed, shape) == literal


def _all_pairs(parts: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The complex numbers with these real and imaginary parts; arithmetic would spoil infinities and signs."""
    pairs = np.array([(re, im) for re in parts for im in parts], parts.dtype)
    return pairs.view(dtype)[:, 0]


@pytest.mark.parametrize("element_type", list(ElementType), ids=lambda t: t.value)
def test_special_values_of_every_type(element_type: ElementType) -> None:
    dtype = element_type.dtype
    if element_type.is_inexact:
        parts = np.array(
            [0.0, -0.0, 1, -1, 0.1, np.inf, -np.inf, np.nan, 1e-45, -65504, 2.0**15], element_type.real.dtype
        )
        values = parts if element_type.is_floating else _all_pairs(parts, dtype)
    elif element_type is ElementType.PRED:
        values = np.array([True, False])
    else:
        values = np.array([*element_type.limits, 0, 1], object).astype(dtype)
    assert survives(values)
    for value in values:
        assert survives(np.asarray(value))


@pytest.mark.parametrize("element_type", [ElementType.F16, ElementType.BF16], ids=lambda t: t.value)
def test_all_half_floats_survive(element_type: ElementType) -> None:
    """NaN payloads included."""
    assert survives(np.arange(2**16, dtype=np.uint16).view(element_type.dtype))


SMALL = [t for t in ElementType if t.is_small]


@pytest.mark.parametrize("element_type", SMALL, ids=lambda t: t.value)
def test_every_value_of_small_types_survives(element_type: ElementType) -> None:
    """NaN payloads included."""
    assert survives(np.arange(1 << element_type.bit_width, dtype=np.uint8).view(element_type.dtype))


@pytest.mark.parametrize(
    ("shape", "text", "code"),
    [
        ("f8e4m3fn[]", "inf", 0x7F),  # without infinity: NaN, as XLA reads it
        ("f8e4m3fn[]", "-nan", 0xFF),
        ("f8e4m3fn[]", "464", 0x7E),
        ("f8e5m2fnuz[]", "nan", 0x80),
        ("f8e5m2fnuz[]", "-inf", 0x80),
        ("f8e5m2[]", "nan(0x3)", 0x7F),
        ("f8e5m2[]", "1.1e-05", 0x01),
        ("f4e2m1fn[]", "nan", 0x8),
        ("f4e2m1fn[]", "-inf", 0xF),
        ("f8e8m0fnu[]", "5.877471754111438e-39", 0x00),
        ("s4[]", "-8", 0x8),
        ("u2[]", "3", 0x3),
    ],
)
def test_small_types_are_read_as_xla_reads_them(shape: str, text: str, code: int) -> None:
    assert int(read(text, shape).array.view(np.uint8)) == code


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("f8e4m3fn[]", "480"), ("f8e5m2[]", "1e9"), ("f8e8m0fnu[]", "0"), ("f8e8m0fnu[]", "-1"), ("s4[]", "8"),
        ("u2[]", "-1"), ("f4e2m1fn[]", "7"), ("f4e2m1fn[2]", "{1, -6.5}"), ("f8e4m3fn[2]", "{1, 1e6}"),
        ("f8e4m3fn[]", "nan(0x1)"),
    ],
)  # fmt: skip
def test_small_types_out_of_range(shape: str, text: str) -> None:
    with pytest.raises(HloParseError):
        read(text, shape)


@pytest.mark.parametrize("element_type", [ElementType.F32, ElementType.F64, ElementType.C64], ids=lambda t: t.value)
def test_random_bits_survive(element_type: ElementType) -> None:
    bits = np.random.default_rng(0).integers(0, 256, 40_000, dtype=np.uint8)
    assert survives(bits.view(element_type.dtype).reshape(-1, 4))


@given(
    st.sampled_from([t for t in ElementType if t not in SMALL]).flatmap(
        lambda t: hnp.arrays(
            _BITS[t.real.byte_width] if t is not ElementType.PRED else np.bool_,
            hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3).map(
                lambda s: (*s, 2) if t.is_complex else s
            ),
        ).map(lambda bits: np.ascontiguousarray(bits).view(t.dtype)[..., 0] if t.is_complex else bits.view(t.dtype))
    )
)
def test_any_array_survives(array: np.ndarray[Any, Any]) -> None:
    assert survives(array)


def test_large_constants_can_be_left_out_but_not_read_back() -> None:
    literal = Literal(np.zeros((4, 4), np.float32))
    assert literal_text(literal, elide_over=16) == literal_text(literal)
    assert literal_text(literal, elide_over=15) == "{...}"
    with pytest.raises(HloParseError, match="left out when this text was printed"):
        read("{...}", "f32[4,4]")


@pytest.mark.parametrize(
    ("shape", "text", "column", "message"),
    [
        ("f32[3]", "{1, 2}", 2, "expected 3 elements in this row of the constant, found 2"),
        ("s32[2]", "{1,2,3}", 2, "expected 2 elements in this row of the constant, found 3"),
        ("f32[3]", "{1,2,}", 6, "expected a value of type f32, found ''"),
        ("f32[3]", "{1,2 3,4}", 4, "expected a value of type f32, found '2 3'"),
        ("f32[2,2]", "{{1,2},{3}}", 9, "expected 2 elements in this row of the constant, found 1"),
        ("f32[2,2]", "{{1,2}}", 7, "expected ',' after element 1 of 2 in dimension 0, found '}'"),
        ("f32[2,2]", "{{1,2},{3,4},{5,6}}", 13, "expected '}' after 2 elements of dimension 0, found ','"),
        ("f32[2,2]", "{1,2,3,4}", 2, "expected '{' to open dimension 1 of the constant"),
        ("f32[2]", "{1,2", 2, "expected '}' at the end of this row of the constant"),
        ("f32[2,0]", "{}", 2, "expected '{' to open dimension 1"),
        ("f32[0,2]", "{{1,2}}", 2, "expected '}' after 0 elements of dimension 0"),
        ("f32[2]", "1", 1, "expected '{' to open dimension 0 of the constant"),
        ("f32[]", "{1}", 1, "expected a value of type f32, found '{'"),
        ("f32[]", "0x1p3", 1, "expected a value of type f32, found '0x1p3'"),
        ("f32[]", "1_0", 1, "expected a value of type f32"),
        ("f32[]", "infinity", 1, "expected a value of type f32"),
        ("f32[]", "1e39", 1, "out of range for f32"),
        ("f16[2]", "{1, 65520}", 1, "out of range for f16"),
        ("f64[]", "-1e999", 1, "out of range for f64"),
        ("f16[]", "nan(0x400)", 1, "0x400 is no NaN payload of f16"),
        ("f32[]", "nan(0x0)", 1, "0x0 is no NaN payload of f32"),
        ("s32[]", "1.0", 1, "expected a value of type s32 (an integer from -2147483648 to 2147483647), found '1.0'"),
        ("s8[2]", "{1, 128}", 5, "an integer from -128 to 127"),
        ("u8[]", "-1", 1, "an integer from 0 to 255"),
        ("s32[]", "9" * 5000, 1, "an integer from"),
        ("pred[2]", "{1, 2}", 5, "expected a value of type pred, found '2'"),
        ("pred[]", "True", 1, "expected a value of type pred, found 'True'"),
        ("c64[]", "1", 1, "expected a value of type c64"),
        ("c64[2]", "{(1,2) (3,4)}", 2, "expected a value of type c64 (two numbers in parentheses)"),
        ("c64[1]", "{(1,2}", 2, "expected a value of type c64 (two numbers in parentheses)"),
        ("f32[0,9999999999,999999999]", "{}", 1, "does not fit in 64-bit memory [shape_c2]"),
    ],
)
def test_errors(shape: str, text: str, column: int, message: str) -> None:
    with pytest.raises(HloParseError) as caught:
        read(text, shape)
    assert message in caught.value.message
    assert caught.value.column == column


@pytest.mark.parametrize("shape", [(100_000,), (50_000, 2), (100_000, 1)])
def test_time_is_linear(shape: tuple[int, ...]) -> None:
    """At a microsecond or two an element, 100,000 take a fraction of a second; a quadratic reader needs hours."""
    literal = Literal(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    start = time.process_time()
    assert survives(literal.array)
    assert time.process_time() - start < 5


# One number for an array


@pytest.mark.parametrize("shape", ["f32[9]", "bf16[2,2]", "s32[3]", "f32[0,2]"])
def test_a_zero_stands_for_an_array_of_zeros(shape: str) -> None:
    """XLA's own files write `f32[9] constant(0)`."""
    literal = read("0", shape)
    assert literal.shape == Shape.parse(shape) and not literal.array.any()


@pytest.mark.parametrize(("shape", "text"), [("f32[2]", "7"), ("f32[2]", "nan"), ("f32[1000000000000]", "0")])
def test_other_numbers_are_no_arrays(shape: str, text: str) -> None:
    with pytest.raises(HloParseError, match="one number stands for an array only if it is 0"):
        read(text, shape)
