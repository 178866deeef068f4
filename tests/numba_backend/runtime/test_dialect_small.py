"""The dialect's small types: every code read, and every f32 near a boundary written, as ml_dtypes does it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import ElementType
from hloom.numba_backend.runtime.dialect_small import SMALL_FLOATS, SMALL_INTEGERS

from tests.support.dialect_kernels import compiled, kernel_of, optimised_ir

FLOATS = (*SMALL_FLOATS, "f8e8m0fnu")


def _dtype(name: str) -> np.dtype:
    return ElementType(name).dtype


def _boundaries() -> np.ndarray:
    """f32 of every sign, exponent and 7 bits of mantissa, with lower bits at and around where rounding changes."""
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    return np.concatenate([high | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)


def _same(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    nan = np.isnan(actual) & np.isnan(expected)
    return nan | (actual == expected) & (np.signbit(actual) == np.signbit(expected))


@pytest.mark.parametrize("name", FLOATS)
def test_every_code_is_read(name: str) -> None:
    codes = np.arange(1 << _dtype(name).itemsize * 8 if name != "f4e2m1fn" else 16).astype(np.uint8)
    (actual,) = compiled([f"{name}_to_f32(x[i])"], ["u8"], "f32")(codes)
    assert _same(actual, codes.view(_dtype(name)).astype(np.float32)).all()


@pytest.mark.parametrize("name", FLOATS)
def test_rounding_is_to_nearest_even(name: str) -> None:
    values = _boundaries()
    (codes,) = compiled([f"f32_to_{name}(x[i])"], ["f32"], "u8")(values)
    with np.errstate(all="ignore"):
        expected = values.astype(_dtype(name))
    if name == "f4e2m1fn":
        expected = np.where(np.isnan(values), np.float32(-0.0).astype(expected.dtype), expected)
    wrong = ~_same(codes.view(_dtype(name)).astype(np.float32), expected.astype(np.float32))
    assert not wrong.any(), [(values[i], codes[i], expected[i]) for i in np.flatnonzero(wrong)[:5]]
    if name == "f4e2m1fn":
        assert codes.max() < 16


@pytest.mark.parametrize("name", SMALL_INTEGERS)
def test_integers_wrap_in_a_byte(name: str) -> None:
    bits, signed = SMALL_INTEGERS[name]
    held = "s8" if signed else "u8"
    codes = np.arange(256).astype(np.uint8)
    (read,) = compiled([f"{name}_to_{held}(x[i])"], ["u8"], held)(codes)
    info = ml_dtypes.iinfo(_dtype(name))
    low, high = int(info.min), int(info.max)
    np.testing.assert_array_equal(read, [(c - low) % (high - low + 1) + low for c in range(256)])
    (written,) = compiled([f"{held}_to_{name}(x[i])"], [held], "u8")(codes.view(np.int8 if signed else np.uint8))
    np.testing.assert_array_equal(written, codes % (1 << bits))
    np.testing.assert_array_equal(written.view(_dtype(name)).astype(int), read)


@pytest.mark.parametrize("expression", ["f8e5m2_to_f32(x[i])", "f8e4m3fnuz_to_f32(x[i])", "f8e8m0fnu_to_f32(x[i])"])
def test_reading_vectorises(expression: str) -> None:
    assert " x float>" in optimised_ir(kernel_of([expression], ["u8"], "f32"))


@pytest.mark.parametrize("expression", ["f32_to_f8e4m3fn(x[i])", "f32_to_f8e5m2fnuz(x[i])"])
def test_writing_vectorises(expression: str) -> None:
    assert " x i8>" in optimised_ir(kernel_of([expression], ["f32"], "u8"))
