"""Generators that encrypt counters: each is a block cipher of words of 32 bits, all the rest is the same for all.

Element i of an array uses the counter i, so that its bits do not depend on how the array is cut into pieces.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), for the ciphers; jax.random
for how keys and counters are derived from seeds and indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from .. import lax
from ..tracer.core import Value
from ..tracer.ops import convert, scalar_like
from .implementations import PRNGImpl, register_implementation
from .threefry import UINT32, counters, rotate_left, seed_words, words_of

Words: TypeAlias = Sequence[Value]
Cipher: TypeAlias = Callable[[Words, Words], list[Value]]
"""cipher(key, counter) -> a block; the counter's words have one shape, the key's are scalars."""

_ROUNDS_OF_PHILOX = 10
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MULTIPLIER_2X32 = 0xD256D193
_MULTIPLIERS_4X32 = (0xD2511F53, 0xCD9E8D57)
_ROTATIONS_4X32 = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = 0x1BD11BDA


# ---- ciphers


def _product(x: Value, factor: int) -> tuple[Value, Value]:
    """The high and the low word of a product."""
    wide: Any = convert(x, np.dtype(np.uint64), False)
    wide = lax.mul(wide, scalar_like(wide, factor))
    return convert(lax.shift_right_logical(wide, scalar_like(wide, 32)), UINT32, False), convert(wide, UINT32, False)


def _xor(*words: Value) -> Value:
    return reduce(lax.bitwise_xor, words)


def _bumped(key: Value, turn: int, which: int) -> Value:
    return lax.add(key, scalar_like(key, turn * _WEYL[which] % 2**32))


def philox_2x32(key: Words, counter: Words) -> list[Value]:
    """Ten rounds, with a key of one word."""
    x, y = counter
    for turn in range(_ROUNDS_OF_PHILOX):
        high, low = _product(x, _MULTIPLIER_2X32)
        x, y = _xor(high, y, _bumped(key[0], turn, 0)), low
    return [x, y]


def philox_4x32(key: Words, counter: Words) -> list[Value]:
    """Ten rounds, with a key of two words."""
    x = list(counter)
    for turn in range(_ROUNDS_OF_PHILOX):
        (high0, low0), (high1, low1) = (_product(w, m) for w, m in zip((x[0], x[2]), _MULTIPLIERS_4X32, strict=True))
        x = [
            _xor(high1, x[1], _bumped(key[0], turn, 0)), low1,
            _xor(high0, x[3], _bumped(key[1], turn, 1)), low0,
        ]  # fmt: skip
    return x


def threefry_4x32(key: Words, counter: Words) -> list[Value]:
    """Twenty rounds, with a key of four words."""
    schedule = [*key, lax.bitwise_xor(_xor(*key), scalar_like(key[0], _PARITY))]
    x = [lax.add(w, k) for w, k in zip(counter, key, strict=True)]
    for turn in range(20):
        for (a, b), rotation in zip(_PAIRS[turn % 2], _ROTATIONS_4X32[turn % 8], strict=True):
            x[a] = lax.add(x[a], x[b])
            x[b] = lax.bitwise_xor(x[a], rotate_left(x[b], rotation))
        if turn % 4 == 3:
            group = turn // 4 + 1
            x = [lax.add(w, schedule[(group + k) % 5]) for k, w in enumerate(x)]
            x[3] = lax.add(x[3], scalar_like(x[3], group))
    return x


_PAIRS = (((0, 1), (2, 3)), ((0, 3), (2, 1)))
"""Which words even and odd rounds mix."""


# ---- the generator of a cipher


def _generator(name: str, tag: str, cipher: Cipher, key_size: int, seeded: Callable[[Value, Value], Words]) -> PRNGImpl:
    """The generator of a cipher.

    Args:
      key_size: the words of a key.
      seeded: the key of the high and the low word of a seed; its first words.
    """
    size = 2 if cipher is philox_2x32 else 4

    def stacked(words: Words) -> Value:
        rank = words[0].aval.ndim
        return lax.concatenate([lax.expand_dims(w, [rank]) for w in words[:key_size]], rank)

    def blocks(key: Value, leading: Words, last: Words) -> list[Value]:
        zeros = [lax.full_like((*leading, *last)[0], 0)] * (size - 2)
        return cipher(words_of(key), [*leading, *zeros, *last])

    def seed(seed: Value) -> Value:
        return stacked(seeded(*words_of(seed_words(seed))))

    def split(key: Value, shape: tuple[int, ...]) -> Value:
        return stacked(blocks(key, (), counters(shape)))

    def fold_in(key: Value, data: Value) -> Value:
        return stacked(blocks(key, (), (lax.full_like(data, 0), data)))

    def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
        block = blocks(key, counters(shape), ())
        if bit_width != 64:
            return convert(_xor(*block), np.dtype(f"uint{bit_width}"), False)
        halves = (block[0], block[1])
        if cipher is threefry_4x32:
            halves = _xor(block[0], block[2]), _xor(block[1], block[3])
        high, low = (convert(w, np.dtype(np.uint64), False) for w in halves)
        return lax.bitwise_or(lax.shift_left(high, scalar_like(high, 32)), low)

    return register_implementation(PRNGImpl(name, tag, (key_size,), seed, split, random_bits, fold_in, by_index=True))


def _zero(like: Value) -> Value:
    return scalar_like(like, 0)


PHILOX_2X32 = _generator("philox2x32", "phx2", philox_2x32, 1, lambda high, low: philox_2x32([_zero(low)], [high, low]))
PHILOX_4X32 = _generator(
    "philox4x32", "phx4", philox_4x32, 2,
    lambda high, low: philox_4x32([_zero(low)] * 2, [high, low, _zero(low), _zero(low)]),
)  # fmt: skip
THREEFRY_4X32 = _generator(
    "threefry4x32", "fry4", threefry_4x32, 4,
    lambda high, low: threefry_4x32([high, low, _zero(low), _zero(low)], [_zero(low)] * 4),
)  # fmt: skip
