"""`//` and `%` of signed integers by constants: every value of s8, and the limits of the wider types."""

from __future__ import annotations

import numpy as np
import pytest

import hloom

DIVISORS = (1, 2, 3, 4, 10, 64, 127, -1, -2, -7, -128)


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
