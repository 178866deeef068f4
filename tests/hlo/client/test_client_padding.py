"""SAME and VALID padding for any sizes, as XLA's first documentation (2017) defines it, and as in JAX."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hloom.hlo import Padding, PaddingConfig, PaddingConfigDimension
from hloom.hlo.client import make_padding
from hypothesis import given

DIMENSION = st.tuples(st.integers(0, 20), st.integers(1, 9), st.integers(1, 6))


@given(DIMENSION)
def test_same_gives_one_window_for_each_stride(dimension: tuple[int, int, int]) -> None:
    """ "SAME padding pads the input so that the output has the same shape as the input when not taking striding into
    account": ceil(size / stride) windows, no more padding than that needs, the odd element at the end."""
    size, window, stride = dimension
    ((low, high),) = make_padding([size], [window], [stride], Padding.SAME)
    assert 0 <= low <= high <= low + 1
    padded = size + low + high
    windows = (padded - window) // stride + 1 if padded >= window else 0
    assert windows == -(-size // stride)
    if low + high and size:
        assert (padded - 1 - window) // stride + 1 < windows or padded - 1 < window


@given(DIMENSION)
def test_valid_is_none(dimension: tuple[int, int, int]) -> None:
    size, window, stride = dimension
    assert make_padding([size], [window], [stride], Padding.VALID) == ((0, 0),)


@given(st.lists(DIMENSION, min_size=1, max_size=3), st.sampled_from(Padding))
def test_as_jax(dimensions: list[tuple[int, int, int]], padding: Padding) -> None:
    lax = pytest.importorskip("jax.lax")
    sizes, windows, strides = (list(column) for column in zip(*dimensions, strict=True))
    expected = lax.padtype_to_pads(sizes, windows, strides, padding.name)
    assert make_padding(sizes, windows, strides, padding) == tuple((int(a), int(b)) for a, b in expected)


def test_padding_config() -> None:
    config = PaddingConfig.of((1, 2), (3, 4, 5))
    assert config.dimensions == (PaddingConfigDimension(1, 2, 0), PaddingConfigDimension(3, 4, 5))
