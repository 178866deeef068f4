"""Transposed operands with long rows and columns: tiles in a local array, and their remainders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.numba_backend.emit import nest
from hloom.numba_backend.runtime import block_moves

import hloom
from hloom import numpy as jnp

_DTYPES = [np.float32, np.float64, np.int8, np.bool_, np.float16, ml_dtypes.bfloat16, np.complex64, np.uint16]
_SHAPES = ((64, 64), (65, 130), (200, 71), (127, 300), (16, 300), (300, 17), (31, 160), (1, 100), (64, 63), (130, 0))
_SHAPES += ((3, 500), (500, 3), (8, 9), (9, 8), (2, 2), (0, 3))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", _DTYPES)
def test_transposes(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    transposed = hloom.jit(jnp.transpose)
    for shape in _SHAPES:
        x = rng.integers(0, 100, shape).astype(dtype)
        np.testing.assert_array_equal(np.asarray(transposed(x)), x.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.bool_, np.float16, np.complex64, np.complex128])
def test_results_that_go_past_the_caches(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As all do here: rows that begin with a line, and rows that begin anywhere."""
    monkeypatch.setattr(nest, "is_streamed", lambda nbytes: True)
    rng = np.random.default_rng(8)
    transposed = hloom.jit(lambda x: (jnp.transpose(x), x.T[::-1] == x.T))
    moved = hloom.jit(jnp.transpose)
    for shape in ((80, 64), (66, 129), (201, 70), (81, 101), (301, 17), (131, 147), (161, 257)):  # no other test has
        x = rng.integers(0, 2, shape).astype(dtype)
        np.testing.assert_array_equal(np.asarray(moved(x)), x.T)
        found, same = transposed(x)
        np.testing.assert_array_equal(np.asarray(found), x.T)
        np.testing.assert_array_equal(np.asarray(same), x.T[::-1] == x.T)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("register", [16, 32, 64])
def test_the_shuffles_turn_a_block(width: int, register: int) -> None:
    side, units = min(16, register // width), max(width // 8, 1)

    class Builder:
        @staticmethod
        def shuffle_vector(a: Any, b: Any, mask: Any) -> Any:
            return np.concatenate([a, b])[[number.constant for number in mask.constant]]

    block = np.arange(side * side * units).reshape(side, side, units)
    rows = [row.reshape(-1) for row in block]
    found = block_moves._transposed(Builder, rows, width, units)
    np.testing.assert_array_equal(np.stack(found), block.transpose(1, 0, 2).reshape(side, -1))


_FUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda m, x, y: x.T + y,
    "two operands": lambda m, x, y: x.T * 2 + (x + 1).T - y,
    "two results": lambda m, x, y: (x.T + y, x.T - y),
    "a column": lambda m, x, y: x.T + y[:, :1] * y[:1],
    "another type": lambda m, x, y: x.T.astype(m.int8) + 1,
    "padded": lambda m, x, y: m.pad(x.T, 2),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", _FUSED)
def test_fusions(name: str) -> None:
    rng = np.random.default_rng(9)
    function = _FUSED[name]
    program = hloom.jit(lambda x, y: function(jnp, x, y))
    for shape in ((64, 64), (100, 150), (193, 67), (20, 49)):
        x = rng.integers(-9, 9, shape).astype(np.float32)
        y = rng.integers(-9, 9, shape[::-1]).astype(np.float32)
        found, expected = program(x, y), function(np, x, y)
        several = isinstance(expected, tuple)
        for a, b in zip(found if several else (found,), expected if several else (expected,), strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (2, 0, 1), (1, 2, 0), (1, 0, 2)])
def test_three_dimensions(order: tuple[int, ...]) -> None:
    x = np.arange(70 * 5 * 90, dtype=np.int32)
    transposed = hloom.jit(lambda x: jnp.transpose(x, order))
    for shape in ((70, 5, 90), (70, 90, 5), (5, 70, 90), (3, 70, 150), (70, 150, 3), (1125, 4, 7), (492, 8, 8)):
        some = x[: np.prod(shape)].reshape(shape)
        np.testing.assert_array_equal(np.asarray(transposed(some)), some.transpose(order))


def test_in_a_loop() -> None:
    """The square of a matrix of integers, transposed in each step of a native loop."""
    x = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
    found = hloom.jit(lambda x: hloom.lax.fori_loop(0, 3, lambda i, y: y.T + x, x))(x)
    expected = x
    for _ in range(3):
        expected = expected.T + x
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(
    ("shapes", "is_direct"),
    [
        (((70, 256), (1000, 300), (513, 4096)), False),
        (((208, 256), (240, 300), (1008, 350)), True),  # rows of the result are whole lines, and stay in the caches
    ],
)
def test_the_kernel_is_the_same_for_all_long_sizes(shapes: Sequence[tuple[int, int]], is_direct: bool) -> None:
    texts = set()
    for shape in shapes:
        compiled = hloom.jit(jnp.transpose).lower(np.zeros(shape, np.float32)).compile()
        (kernel,) = str(compiled.kernels()).split("# ")[1:]
        texts.add(kernel.split("\n", 1)[1])
    (text,) = texts
    assert ("direct" in text) == is_direct
    assert "transposed0" in text


@pytest.mark.parametrize("count", [(1 << 18) + 3, (1 << 21) + 1, 3_000_001])
def test_large_copies(count: int) -> None:
    """Bytes that do not fill the last piece, in a plain kernel and in a streamed one."""
    x = np.arange(count, dtype=np.float32)
    copied = hloom.jit(lambda x: (hloom.lax.dynamic_update_slice(x, x[:2] + 1, (5,)), x))
    found, same = copied(x)
    expected = x.copy()
    expected[5:7] = x[:2] + 1
    np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(same), x)
    assert "out[k + m] = x[k + m]" in str(copied.lower(x).compile().kernels())
