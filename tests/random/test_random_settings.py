"""Settings about raw and typed random keys."""

from __future__ import annotations

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
