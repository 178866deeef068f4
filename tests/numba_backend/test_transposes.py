"""Transposes in tiles of two runs: all orders of up to five dimensions, short and long, and how tiles are cut."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.numba_backend.emit import transposes

import hloom
from hloom import numpy as jnp

_SHAPES: tuple[tuple[int, ...], ...] = ((70, 5, 90), (9, 31, 8), (640, 3, 7), (3, 17, 8, 30), (129, 4, 8, 5))


def _check(shape: tuple[int, ...], order: tuple[int, ...], dtype: Any) -> None:
    x = (np.arange(math.prod(shape)) % 113).astype(dtype).reshape(shape)
    found = np.asarray(hloom.jit(lambda x: jnp.transpose(x, order))(x))
    np.testing.assert_array_equal(found, x.transpose(order), err_msg=f"{shape} {order} {np.dtype(dtype)}")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", _SHAPES)
def test_all_orders(shape: tuple[int, ...]) -> None:
    dtypes = itertools.cycle([np.float32, np.int8, np.float16, np.complex64])
    for order, dtype in zip(itertools.permutations(range(len(shape))), dtypes, strict=False):
        _check(shape, order, dtype)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.bool_, ml_dtypes.bfloat16, np.int32, np.complex64, np.complex128])
def test_element_types(dtype: Any) -> None:
    for shape in ((33, 8, 67), (67, 9, 33), (1, 40, 50), (41, 1, 4, 40), (5, 0, 7)):
        _check(shape, tuple(reversed(range(len(shape)))), dtype)


@pytest.mark.parametrize("order", [(4, 2, 0, 3, 1), (0, 2, 4, 1, 3), (4, 3, 2, 1, 0), (1, 4, 0, 3, 2)])
def test_five_dimensions(order: tuple[int, ...]) -> None:
    _check((33, 4, 7, 4, 8), order, np.float32)
    _check((10, 2, 20, 5, 6), order, np.uint8)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.complex64])
def test_results_that_go_past_the_caches(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transposes, "is_streamed", lambda nbytes: True)
    for shape in ((64, 12, 128), (65, 11, 127), (192, 8, 16)):
        _check(shape, (2, 1, 0), dtype)
        _check(shape, (1, 2, 0), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("rows", [16, 17, 60, 784])
def test_blocks_are_written_to_the_result(rows: int, dtype: Any) -> None:
    """Where they are whole lines, in several sets of the cache; the last ones overlap those before."""
    for shape, order, is_direct in (
        ((3, 64, rows), (0, 2, 1), True),
        ((3, 64, rows), (2, 0, 1), True),
        ((64, rows), (1, 0), True),
        ((2, 8, rows, 48), (2, 1, 0, 3), False),  # nothing to turn
        ((65, rows), (1, 0), False),  # no whole lines
        ((1024, 2, rows), (2, 1, 0), False),  # all in one set
    ):
        _check(shape, order, dtype)
        tiles = transposes.tiles_of([shape[d] for d in order], np.argsort(order).tolist(), np.dtype(dtype).itemsize)
        assert (tiles is not None and tiles.is_direct) is is_direct, f"{shape} {order}"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_which_matrices_go_to_the_result_in_blocks(dtype: Any) -> None:
    """Those of elements that are read as whole lines, and with rows of whole lines, up to the size that is streamed."""
    for shape, in_blocks in (((400, 96), True), ((400, 352), True), ((96, 401), True), ((401, 96), False)):
        x = hloom.ShapeDtypeStruct(shape, dtype)
        with hloom.enable_x64():
            (text,) = hloom.jit(jnp.transpose).lower(x).compile().kernels().values()
        assert ("direct = 1" in text) == (in_blocks and dtype is not np.float16), shape


def test_tiles_fit() -> None:
    """Into the local arrays, and they have a block at least, for all sizes."""
    rng = np.random.default_rng(3)
    kinds, cut = set(), 0
    for _ in range(4000):
        rank = int(rng.integers(2, 6))
        sizes = [int(rng.choice([2, 3, 5, 8, 9, 16, 33, 64, 65, 127, 200, 1000, 4099])) for _ in range(rank)]
        where, width = tuple(rng.permutation(rank).tolist()), int(rng.choice([1, 2, 4, 8, 16]))
        tiles = transposes.tiles_of(sizes, where, width)
        if tiles is None:
            continue
        cut += 1
        rows, columns, line = tiles.rows.elements, tiles.columns.elements, max(64 // width, 1)
        capacity = transposes._capacity(width)
        assert rows * transposes._pitch(columns, line) <= capacity
        assert columns * transposes._pitch(rows, line) <= capacity
        assert tiles.side <= min(rows, columns) <= max(rows, columns) <= 1024
        assert not set(tiles.rows.dimensions) & set(tiles.columns.dimensions)
        kinds.add((len(tiles.rows.dimensions), len(tiles.columns.dimensions)))
    assert cut > 1000
    assert {(1, 1), (1, 2), (2, 1), (2, 2)} <= kinds


def test_the_kernel_is_the_same_for_all_batches() -> None:
    texts = set()
    for shape in ((100, 24, 40), (1000, 24, 40), (37, 24, 40)):
        compiled = hloom.jit(lambda x: jnp.transpose(x, (0, 2, 1)) + 0).lower(np.zeros(shape, np.int32)).compile()
        texts.add(str(compiled.kernels()).split("\n", 4)[-1])
    assert len(texts) == 1
    assert "transposed0" in texts.pop()


def test_in_a_loop() -> None:
    """As one of the kernels of a native loop, with state of three short dimensions."""
    x = np.arange(12 * 20 * 12, dtype=np.int32).reshape(12, 20, 12)
    step = lambda y: jnp.transpose(y, (2, 1, 0)) * 3 + x  # noqa: E731
    found = hloom.jit(lambda x: hloom.lax.fori_loop(0, 3, lambda i, y: step(y), x))(x)
    expected = x
    for _ in range(3):
        expected = expected.transpose(2, 1, 0) * 3 + x
    np.testing.assert_array_equal(np.asarray(found), expected)
