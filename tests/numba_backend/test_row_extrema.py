"""The largest and the smallest of each row, with integer accumulators (`numba_backend/emit/reduce.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
from hloom import lax
from hloom import numpy as jnp


def _rows(length: int, dtype: Any) -> Any:
    x = np.random.default_rng(length).normal(size=(12, length)).astype(dtype)
    last = length - 1
    x[1, last] = np.nan
    x[2, 0] = np.copysign(dtype(np.nan), -1)
    x[3] = -0.0
    x[4, :] = -0.0
    x[4, last] = 0.0
    x[5] = -np.inf
    x[6, length // 2] = np.inf
    x[7] = np.finfo(dtype).smallest_subnormal
    x[8] = -x[7]
    x[9] = np.finfo(dtype).max
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values(dtype: Any) -> None:
    largest, smallest = hloom.jit(lambda x: jnp.max(x, 1)), hloom.jit(lambda x: jnp.min(x, 1))
    for length in (2, 16, 17, 40, 64, 100, 1000):
        x = _rows(length, dtype)
        for array, sign in ((x, 1), (-x, -1)):
            with hloom.enable_x64(True):
                high, low = np.asarray(largest(array)), np.asarray(smallest(array))
            assert high.dtype == dtype
            np.testing.assert_array_equal(high, array.max(1))
            np.testing.assert_array_equal(low, array.min(1))
            assert list(np.signbit(high[3:5])) == ([True, False] if sign > 0 else [False, False])
            assert list(np.signbit(low[3:5])) == ([True, True] if sign > 0 else [False, True])


@pytest.mark.parametrize("start", [np.nan, np.inf, -np.inf, 0.0, -0.0])
def test_starts(start: float) -> None:
    x = np.array([[-1, -2, -3.0], [1, 2, 3], [-0.0, -0.0, -0.0]], np.float32)
    for f, expected in ((lax.max, np.maximum(x.max(1), start)), (lax.min, np.minimum(x.min(1), start))):
        found = np.asarray(hloom.jit(lambda x, f=f: lax.reduce(x, np.float32(start), f, (1,)))(x))
        np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_in_a_loop_and_beside_other_reductions() -> None:
    def step(m: Any, x: Any) -> Any:
        high = x.max(1, keepdims=True)
        return (x - high) / (1 + (x - high) ** 2).sum(1, keepdims=True) + x.min()

    x = np.random.default_rng(4).normal(size=(9, 33))
    found = hloom.jit(lambda x: lax.fori_loop(0, 4, lambda i, x: step(jnp, x), x))(x)
    expected = x
    for _ in range(4):
        expected = step(np, expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5 if found.dtype == np.float32 else 1e-12)
