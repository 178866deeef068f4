"""A small batch has the kernels of another one: its size is no literal, and a mean is a division for all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp


def _batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean((0, 2, 3), keepdims=True)
    deviation = hloom.lax.rsqrt((centred * centred).mean((0, 2, 3), keepdims=True) + 1e-5)
    return centred * deviation * scale[:, None, None] + shift[:, None, None]


def _loss(params: Any, x: Any) -> Any:
    """The mean is of 4 x 4 places, a loop of 16 iterations within the loop over the batch."""
    y = hloom.nn.relu(_batch_norm(x, *params))
    return (y * y).mean((0, 2, 3)).sum() + (y.mean((2, 3)) ** 2).mean()


def _texts(size: int, side: int) -> set[str]:
    x = np.random.default_rng(size).standard_normal((size, 20, side, side)).astype(np.float32)
    params = jnp.ones(20), jnp.zeros(20)
    step = hloom.jit(hloom.value_and_grad(_loss))
    compiled = step.lower(params, x).compile()
    value, (scale, shift) = compiled(params, x)
    with hloom.disable_jit():
        expected, gradients = hloom.value_and_grad(_loss)(params, x)
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    for got, wanted in zip((scale, shift), gradients, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)
    return {"\n".join(line for line in str(text).splitlines() if not line.startswith("#"))
            for text in compiled.kernels().values()}  # fmt: skip


@pytest.mark.parametrize("side", [4, 16])
def test_a_batch_of_six_has_the_kernels_of_eight(side: int) -> None:
    """8 and 4 x 4 places are powers of two, 6 is not."""
    assert _texts(6, side) == _texts(8, side)


def test_a_small_size_between_tiles_is_an_argument() -> None:
    """As in the update of a convolution's weights, whose gradient is in another order."""

    def text(channels: int) -> str:
        x = np.random.default_rng(0).standard_normal((9, channels, 20)).astype(np.float32)
        y = np.ones((20, channels, 9), np.float32)
        compiled = hloom.jit(lambda x, y: 2 * jnp.transpose(x) + y).lower(x, y).compile()
        np.testing.assert_array_equal(compiled(x, y), 2 * x.T + y)
        (kernel,) = compiled.kernels().values()
        return str(kernel).partition("\n")[2]

    assert "_tile" in text(16) and text(16) == text(8) == text(30)
