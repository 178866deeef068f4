"""The generators "rbg" and "unsafe_rbg", which draw bits by HLO's operation RngBitGenerator (Philox on this CPU).

"rbg" derives keys by Threefry; "unsafe_rbg" derives them by RngBitGenerator, too, without a proof that this is safe.

How keys are derived follow jax.random.
"""

from __future__ import annotations

import math

import numpy as np

from .. import lax
from ..tracer.core import Value
from .implementations import PRNGImpl, register_implementation
from .threefry import fold_in_key, seed_words, split_key

_TURNS = 10
"""Of so many rows of bits "unsafe_rbg" takes one as a key."""


def _seed(seed: Value) -> Value:
    words = seed_words(seed)
    return lax.concatenate([words, words], 0)


def _halves(key: Value) -> list[Value]:
    """The two Threefry keys of a key uint32[4]."""
    return [lax.slice_in_dim(key, start, start + 2) for start in (0, 2)]


def _split(key: Value, shape: tuple[int, ...]) -> Value:
    return lax.concatenate([split_key(half, shape) for half in _halves(key)], len(shape))


def _fold_in(key: Value, data: Value) -> Value:
    return lax.concatenate([fold_in_key(half, data) for half in _halves(key)], 0)


def _random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    return lax.rng_bit_generator(key, shape, np.dtype(f"uint{bit_width}"))[1]


def _unsafe_split(key: Value, shape: tuple[int, ...]) -> Value:
    _, rows = lax.rng_bit_generator(key, (_TURNS * math.prod(shape), 4), np.uint32)
    return lax.reshape(lax.slice_in_dim(rows, 0, None, _TURNS), (*shape, 4))


def _unsafe_fold_in(key: Value, data: Value) -> Value:
    _, rows = lax.rng_bit_generator(_seed(data), (_TURNS, 4), np.uint32)
    return lax.bitwise_xor(key, lax.reshape(lax.slice_in_dim(rows, _TURNS - 1, _TURNS), (4,)))


RBG = register_implementation(PRNGImpl("rbg", "rbg", (4,), _seed, _split, _random_bits, _fold_in))
UNSAFE_RBG = register_implementation(
    PRNGImpl("unsafe_rbg", "urbg", (4,), _seed, _unsafe_split, _random_bits, _unsafe_fold_in)
)
