"""Settings about random keys and bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import random

RAW = jnp.array([0, 42], jnp.uint32)


def test_typed_keys_from_everything() -> None:
    with hloom.enable_custom_prng():
        key = random.PRNGKey(42)
        assert key.dtype == random.key(42).dtype and hloom.jit(random.PRNGKey)(42).dtype == key.dtype
        assert random.split(key).dtype == key.dtype
        with pytest.warns(FutureWarning, match="Raw arrays as random keys to jax.random functions are deprecated"):
            made = random.split(RAW)
        assert made.dtype == key.dtype and (made == random.split(key)).all()
    assert random.PRNGKey(42).dtype == random.split(RAW).dtype == jnp.uint32


def test_raw_keys_are_reported() -> None:
    message = "Legacy uint32 key array passed as key to jax.random function"
    with hloom.legacy_prng_key("warn"):
        random.uniform(random.key(0))
        with pytest.warns(UserWarning, match=message) as caught:
            random.uniform(RAW)
        assert [w.filename for w in caught] == [__file__]
    with hloom.legacy_prng_key("error"):
        for draw in (random.uniform, hloom.jit(random.uniform), random.split):
            with pytest.raises(ValueError, match=message):
                draw(RAW)
        with pytest.raises(TypeError, match="the data of threefry2x32 keys is"):
            random.uniform(jnp.zeros(1))
    assert random.uniform(RAW) == random.uniform(random.key(42))


OF_JAX: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "8 bits": (lambda key: random.bits(key, (7,), "uint8"), [191, 40, 160, 11, 191, 86, 32]),
    "16 bits": (lambda key: random.bits(key, (3,), "uint16"), [10431, 2976, 22207]),
    "32 bits": (
        lambda key: random.bits(key, (5,), "uint32"),
        [276534068, 861967409, 2793701230, 1641862660, 2900896126],
    ),
    "a scalar": (lambda key: random.bits(key, (), "uint32"), 3625411723),
    "none": (lambda key: random.bits(key, (0, 2), "uint16"), np.zeros((0, 2))),
    "64 bits": (
        lambda key: random.bits(key, (3,), "uint64"),
        [1187704779931702788, 3702121834773752190, 8185182656453653932],
    ),
    "two dimensions": (
        lambda key: random.bits(key, (1, 2), "uint64"),
        [[4150233810675416579, 4248967428519241419]],
    ),
    "split": (
        lambda key: random.key_data(random.split(key, 3)),
        [[276534068, 861967409], [1905761346, 1641862660], [2900896126, 1402713516]],
    ),
    "halves of rbg": (
        lambda key: random.key_data(random.split(random.key(7, impl="rbg"), 1)),
        [[195045567, 4062205631, 195045567, 4062205631]],
    ),
    "batch": (
        lambda key: hloom.vmap(lambda k: random.bits(k, (3,), "uint16"))(random.split(key)),
        [[52559, 52909, 48416], [50755, 33735, 65523]],
    ),
    "permutation": (lambda key: random.permutation(key, 7), [5, 0, 2, 3, 4, 1, 6]),
}
"""What JAX draws with its key(7), jax_threefry_partitionable=False and jax_enable_x64."""


@pytest.mark.parametrize("name", OF_JAX)
def test_bits_that_depend_on_the_shape(name: str) -> None:
    draw, expected = OF_JAX[name]
    with hloom.enable_x64():
        key = random.key(7)
        jitted = hloom.jit(draw)
        usual = np.asarray(jitted(key))
        with hloom.threefry_partitionable(False):
            np.testing.assert_array_equal(draw(key), expected)
            np.testing.assert_array_equal(jitted(key), expected)
        np.testing.assert_array_equal(jitted(key), usual)
    assert not usual.size or (usual != expected).any()


def test_a_draw_that_is_too_large_for_its_counters() -> None:
    with hloom.threefry_partitionable(False), pytest.raises(ValueError, match="needs jax_threefry_partitionable=True"):
        hloom.eval_shape(lambda: random.bits(random.key(0), (2**31, 2)))
