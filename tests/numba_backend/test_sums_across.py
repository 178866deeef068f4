"""Reductions along a dimension that arrays share while each lacks another one, such as distances between all pairs of
points: batched results (`numba_backend/emit/nest_across.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
from hloom import numpy as jnp


def _squares(m: Any, x: Any, y: Any) -> Any:
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)


_PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "squares": _squares,
    "absolute": lambda m, x, y: abs(x[:, None, :] - y[None, :, :]).sum(axis=2),
    "max plus": lambda m, x, y: (x[:, None, :] + y[None, :, :]).max(axis=2),
    "least": lambda m, x, y: m.minimum(x[:, None, :], y[None, :, :]).min(axis=2),
    "product": lambda m, x, y: (1 + x[:, None, :] * y[None, :, :] % 2).prod(axis=2),
    "equal": lambda m, x, y: (x[:, None, :] == y[None, :, :]).all(axis=2),
    "any": lambda m, x, y: (x[:, None, :] > y[None, :, :]).any(axis=2),
    "count": lambda m, x, y: (x[:, None, :] > y[None, :, :]).sum(axis=2),
    "one array": lambda m, x, y: ((y[:, None, :] - y[None, :, :]) ** 2).sum(axis=2),
    "before and after": lambda m, x, y: 3 + x[:, :1] + y[:, 0] - 2 * _squares(m, x * 2, y + 1),
    "two sums": lambda m, x, y: (_squares(m, x, y), (x[:, None, :] + y[None, :, :]).max(axis=2)),
    "two stages": lambda m, x, y: m.abs(
        x[:, None, :] + y[None, :, :] - (x[:, None, :] + y[None, :, :]).max(axis=2, keepdims=True)
    ).sum(axis=2),
    "another order": lambda m, x, y: (x[None, :, :] - y[:, None, :]).max(axis=2).T,
    "transposed": lambda m, x, y: m.abs(x[:, None, :] - (y * 1).T[None].transpose(0, 2, 1)).sum(axis=2),
}
_SHAPES = ((2, 100, 3), (7, 31, 17), (200, 33, 17), (97, 18, 129), (40, 4, 3), (19, 50, 300))
"""Rows of x, rows of y, columns of both."""


def _check(found: Any, expected: Any) -> None:
    several = isinstance(expected, tuple)
    for a, b in zip(found if several else (found,), expected if several else (expected,), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b).astype(a.dtype))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", _PROGRAMS)
def test_programs(name: str) -> None:
    rng = np.random.default_rng(7)
    function = _PROGRAMS[name]
    program = hloom.jit(lambda x, y: function(jnp, x, y))
    for n, m, k in _SHAPES:
        x, y = (rng.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (n, m))
        if name == "product" and k > 17:
            x[:, 17:] = 0
        _check(program(x, y), function(np, x, y))


def test_no_elements() -> None:
    program = hloom.jit(lambda x, y: _squares(jnp, x, y))
    for n, m, k in ((20, 20, 0), (0, 20, 3), (20, 0, 3)):
        found = np.asarray(program(np.zeros((n, k), np.float32), np.zeros((m, k), np.float32)))
        np.testing.assert_array_equal(found, np.zeros((n, m), np.float32))


_DTYPES = [
    np.float64, np.int8, np.uint16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16, np.complex64, np.bool_,
    ml_dtypes.float8_e4m3fn, ml_dtypes.int4,
]  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", _DTYPES)
def test_types(dtype: Any) -> None:
    """Integers in a small range, so that sums are exact in every type."""
    rng = np.random.default_rng(8)
    program = hloom.jit(lambda x, y: (x[:, None, :] * y[None, :, :]).sum(axis=2))
    for n, m, k in ((7, 31, 5), (13, 40, 5)):
        x, y = (rng.integers(0, 2, (rows, k)).astype(dtype) for rows in (n, m))
        with hloom.enable_x64(True):
            found = np.asarray(program(x, y))
        x, y = x.real.astype(np.int32), y.real.astype(np.int32)
        expected = (x[:, None, :] * y[None, :, :]).sum(axis=2)
        np.testing.assert_array_equal(found.astype(np.complex64), expected.astype(found.dtype).astype(np.complex64))


def test_batches() -> None:
    rng = np.random.default_rng(9)
    program = hloom.jit(lambda x, y: ((x[:, :, :, None, :] - y[:, None, None, :, :]) ** 2).sum(axis=-1))
    for b, c, n, m, k in ((3, 2, 5, 20, 3), (2, 1, 8, 17, 20), (1, 3, 100, 64, 3), (0, 2, 5, 20, 3)):
        x = rng.integers(-4, 5, (b, c, n, k)).astype(np.float32)
        y = rng.integers(-4, 5, (b, m, k)).astype(np.float32)
        expected = ((x[:, :, :, None, :] - y[:, None, None, :, :]) ** 2).sum(axis=-1)
        np.testing.assert_array_equal(np.asarray(program(x, y)), expected)


def test_in_a_loop() -> None:
    """In a native loop, a matrix of all pairs from the one before."""
    x = np.random.default_rng(10).integers(-3, 4, (20, 20)).astype(np.float32)

    def step(m: Any, x: Any) -> Any:
        return m.minimum((x[:, None, :] + x.T[None, :, :]).min(axis=2), x)

    found = hloom.jit(lambda x: hloom.lax.fori_loop(0, 3, lambda i, x: step(jnp, x), x))(x)
    for _ in range(3):
        x = step(np, x)
    np.testing.assert_array_equal(np.asarray(found), x)


def test_special_values() -> None:
    """NaN, infinities and signs of zeros, in sums that are made in parts too."""
    add = hloom.jit(lambda x, y: hloom.lax.reduce(x[:, None, :] * y[None, :, :], np.float32(-0.0), hloom.lax.add, (2,)))
    largest = hloom.jit(lambda x, y: (x[:, None, :] + y[None, :, :]).max(axis=2))
    for k in (3, 200):
        x, y = np.full((8, k), -0.0, np.float32), np.ones((18, k), np.float32)
        assert np.signbit(np.asarray(add(x, y))).all()
        x[2, 1], x[5, 2], y[17, 0] = np.nan, np.inf, -np.inf
        with np.errstate(invalid="ignore"):
            for program, expected in (
                (add, (x[:, None, :] * y[None, :, :]).sum(axis=2)),
                (largest, (x[:, None, :] + y[None, :, :]).max(axis=2)),
            ):
                np.testing.assert_array_equal(np.asarray(program(x, y)), expected)


def test_long_sums_are_accurate() -> None:
    x, y = np.random.default_rng(11).random((2, 20, 50_000), np.float32)
    found = hloom.jit(lambda x, y: _squares(jnp, x, y))(x, y)
    expected = _squares(np, x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=4e-6, atol=1e-6)


def test_the_kernel_is_the_same_for_all_sizes() -> None:
    texts = set()
    program = hloom.jit(lambda x, y: _squares(jnp, x, y))
    for n, m, k in ((2, 17, 20), (40, 300, 50), (1000, 100, 400)):
        compiled = program.lower(np.zeros((n, k), np.float32), np.zeros((m, k), np.float32)).compile()
        (kernel,) = compiled.kernels().values()
        texts.add(kernel[kernel.index("def ") :])
    assert len(texts) == 1
    assert "panel0" in texts.pop()
