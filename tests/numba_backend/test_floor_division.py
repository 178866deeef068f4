"""`//` and `%` of signed integers by constants: every value of s8, and the limits of the wider types."""

from __future__ import annotations

import numpy as np
import pytest

import hloom
from hloom import lax

DIVISORS = (1, 2, 3, 4, 10, 64, 127, -1, -2, -7, -128)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_and_remainders(dtype: type, divisor: int) -> None:
    limits = np.iinfo(dtype)
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max]
    x = np.concatenate([np.arange(-128, 128), ends]).astype(dtype)
    c = dtype(divisor)
    f = hloom.jit(lambda x: (x // c, x % c, x % c == 0, x % c != 0))
    with np.errstate(over="ignore"):
        expected = (x // c, x % c, x % c == 0, x % c != 0)
    for got, wanted in zip(f(x), expected):
        np.testing.assert_array_equal(got, wanted)


def test_powers_of_two_divide_nothing() -> None:
    text = hloom.jit(lambda x: (x // 8, x % 8, x % 3 == 0)).lower(np.arange(5, dtype=np.int32)).compile().as_text()
    assert "divide(" not in text and "shift-right-arithmetic(" in text and " and(" in text
    assert text.count(" remainder(") == 1 and " sign(" not in text


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("divisor", [3, 7, 100, 127, -1, -3, -127])
def test_by_literals_in_a_native_loop(dtype: type, divisor: int) -> None:
    if np.iinfo(dtype).min == 0 and divisor < 0:
        divisor += 256
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 0, 1, 5, 99, 100, 101], dtype)
    c = dtype(divisor)
    f = hloom.jit(lambda x: lax.fori_loop(0, 3, lambda i, s: (lax.div(s[0], c), lax.rem(s[1], c) + s[0]), (x, x)))
    compiled = f.lower(x).compile()
    assert any("native_loop" in text and str(divisor) in text for text in compiled.kernels().values())
    quotient, rest = x, x
    for _ in range(3):
        with np.errstate(over="ignore"):
            kept = np.where((quotient == limits.min) & (c == np.int64(-1)), 0, np.fmod(rest, c))
            quotient, rest = (quotient.astype(np.int64) / np.int64(c)).astype(np.int64).astype(dtype), kept + quotient
            rest = rest.astype(dtype)
    got = f(x)
    np.testing.assert_array_equal(got[0], quotient)
    np.testing.assert_array_equal(got[1], rest)
