"""Transposed operands with long rows and columns: tiles in a local array, and what is left over of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
from hloom import numpy as jnp

_DTYPES = [np.float32, np.float64, np.int8, np.bool_, np.float16, ml_dtypes.bfloat16, np.complex64, np.uint16]
_SHAPES = ((64, 64), (65, 130), (200, 71), (127, 300), (1, 100), (64, 63), (130, 0))


@pytest.mark.parametrize("dtype", _DTYPES)
def test_transposes(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    turned = hloom.jit(jnp.transpose)
    for shape in _SHAPES:
        x = rng.integers(0, 100, shape).astype(dtype)
        np.testing.assert_array_equal(np.asarray(turned(x)), x.T)


_FUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda m, x, y: x.T + y,
    "two operands": lambda m, x, y: x.T * 2 + (x + 1).T - y,
    "two results": lambda m, x, y: (x.T + y, x.T - y),
    "a column": lambda m, x, y: x.T + y[:, :1] * y[:1],
    "another type": lambda m, x, y: x.T.astype(m.int8) + 1,
    "padded": lambda m, x, y: m.pad(x.T, 2),
}


@pytest.mark.parametrize("name", _FUSED)
def test_fusions(name: str) -> None:
    rng = np.random.default_rng(9)
    function = _FUSED[name]
    program = hloom.jit(lambda x, y: function(jnp, x, y))
    for shape in ((64, 64), (100, 150), (193, 67)):
        x = rng.integers(-9, 9, shape).astype(np.float32)
        y = rng.integers(-9, 9, shape[::-1]).astype(np.float32)
        found, expected = program(x, y), function(np, x, y)
        several = isinstance(expected, tuple)
        for a, b in zip(found if several else (found,), expected if several else (expected,), strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (2, 0, 1), (1, 2, 0), (1, 0, 2)])
def test_three_dimensions(order: tuple[int, ...]) -> None:
    x = np.arange(70 * 5 * 90, dtype=np.int32)
    for shape in ((70, 5, 90), (70, 90, 5), (5, 70, 90)):
        found = hloom.jit(lambda x: jnp.transpose(x, order))(x.reshape(shape))
        np.testing.assert_array_equal(np.asarray(found), x.reshape(shape).transpose(order))


def test_in_a_loop() -> None:
    """The square of a matrix of integers, turned in each step of a native loop."""
    x = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
    found = hloom.jit(lambda x: hloom.lax.fori_loop(0, 3, lambda i, y: y.T + x, x))(x)
    expected = x
    for _ in range(3):
        expected = expected.T + x
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_the_kernel_is_the_same_for_all_long_sizes() -> None:
    texts = set()
    for shape in ((64, 256), (1000, 300), (513, 4096)):
        compiled = hloom.jit(jnp.transpose).lower(np.zeros(shape, np.float32)).compile()
        (kernel,) = str(compiled.kernels()).split("# ")[1:]
        texts.add(kernel.split("\n", 1)[1])
    assert len(texts) == 1
    assert "turned0" in texts.pop()
