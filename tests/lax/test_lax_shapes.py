"""Shapes of results without the results; products of scaled blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

CALLS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "conv same": (lambda lax: lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), "SAME"), (2, 4, 8, 4)),
    "conv pads": (lambda lax: lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (1, 2), [(0, 0), (1, 1)]), (2, 4, 6, 4)),
    "conv batch groups": (lambda lax: lax.conv_shape_tuple((4, 3, 8), (4, 3, 3), (1,), [(0, 0)], 2), (2, 4, 6)),
    "conv general": (
        lambda lax: lax.conv_general_shape_tuple(
            (2, 8, 9, 3), (3, 3, 3, 4), (1, 2), "VALID", ("NHWC", "HWIO", "NHWC")
        ),
        (2, 6, 4, 4),
    ),
    "conv transposed": (
        lambda lax: lax.conv_transpose_shape_tuple(
            (2, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC")
        ),
        (2, 16, 16, 4),
    ),
    "window": (lambda lax: lax.reduce_window_shape_tuple((8, 8), (2, 2), (2, 2), ((0, 0), (0, 0))), (4, 4)),
    "dilated window": (
        lambda lax: lax.reduce_window_shape_tuple((8, 8), (2, 2), (1, 2), ((0, 1), (2, 0)), (2, 1), (1, 3)),
        (15, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_shapes_of_results(name: str) -> None:
    call, shape = CALLS[name]
    assert call(lax) == shape


@pytest.mark.parametrize("name", CALLS)
def test_shapes_are_those_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    call, shape = CALLS[name]
    assert tuple(map(int, call(jax.lax))) == shape


@pytest.mark.parametrize(("rank", "shape"), [(1, (2, 3)), (2, (2, 3)), (4, (1, 1, 2, 3))])
def test_broadcast_to_rank(rank: int, shape: tuple[int, ...]) -> None:
    assert lax.broadcast_to_rank(jnp.ones((2, 3)), rank).shape == shape


def test_a_shape_as_a_value() -> None:
    np.testing.assert_array_equal(lax.shape_as_value((2, 0, 3)), [2, 0, 3])
    assert lax.shape_as_value(()).shape == (0,) and lax.shape_as_value((1,)).dtype == np.int32


@pytest.mark.parametrize("batch", [(), (3,)])
def test_scaled_dot(batch: tuple[int, ...]) -> None:
    """Each scale is for 32 neighbours; sums are exact here."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-2, 3, (*batch, 4, 64)), rng.integers(-2, 3, (*batch, 64, 5))
    s, t = 2.0 ** rng.integers(-2, 3, (*batch, 4, 2)), 2.0 ** rng.integers(-2, 3, (*batch, 2, 5))
    expected = (x * np.repeat(s, 32, -1)) @ (y * np.repeat(t, 32, -2))
    few = [jnp.asarray(a, "float8_e4m3fn") for a in (x, y)]
    scales = {"lhs_scale": jnp.asarray(s, "float8_e8m0fnu"), "rhs_scale": jnp.asarray(t, "float8_e8m0fnu")}
    for function in (lax.scaled_dot, hloom.jit(lax.scaled_dot, static_argnames="preferred_element_type")):
        np.testing.assert_array_equal(function(*few, **scales, preferred_element_type=np.float32), expected)
    assert lax.scaled_dot(*few, **scales).dtype == jnp.bfloat16
    np.testing.assert_array_equal(lax.scaled_dot(*few, preferred_element_type=np.float32), (x @ y).astype(np.float32))


def test_scaled_dot_of_wrong_sizes() -> None:
    with pytest.raises(ValueError, match="no multiples of those of its scale"):
        lax.scaled_dot(jnp.ones((4, 6)), jnp.ones((6, 4)), lhs_scale=jnp.ones((4, 4)))
    with pytest.raises(ValueError, match="needs dimension_numbers"):
        lax.scaled_dot(jnp.ones(4), jnp.ones(4))
