"""Threefry-2x32: the random bits that JAX gives by default, computed by integer operations that fuse into one kernel.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), with 20 rounds; and how
jax.random derives keys and counters (`jax_threefry_partitionable`, on by default since 0.5): element i of an array uses
the counter i, so that its bits do not depend on how the array is cut into pieces.
"""

from __future__ import annotations

import math

import numpy as np

from .. import lax
from ..tracer.core import Value
from ..tracer.ops import convert, scalar_like
from ..tracer.settings.config import enable_x64
from .implementations import PRNGImpl, register_implementation

UINT32 = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry_2x32(key: tuple[Value, Value], high: Value, low: Value) -> tuple[Value, Value]:
    """The block cipher: two uint32 key words (scalars or of the counters' shape) and counter words of one shape."""
    k0, k1 = key
    schedule = (k0, k1, lax.bitwise_xor(lax.bitwise_xor(k0, k1), scalar_like(k0, _PARITY)))
    x, y = lax.add(high, k0), lax.add(low, k1)
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = lax.add(x, y)
            y = lax.bitwise_xor(x, rotate_left(y, rotation))
        x = lax.add(x, schedule[(group + 1) % 3])
        injected = schedule[(group + 2) % 3]
        y = lax.add(y, lax.add(injected, scalar_like(injected, group + 1)))
    return x, y


def rotate_left(x: Value, bits: int) -> Value:
    left = lax.shift_left(x, scalar_like(x, bits))
    return lax.bitwise_or(left, lax.shift_right_logical(x, scalar_like(x, 32 - bits)))


def counters(shape: tuple[int, ...]) -> tuple[Value, Value]:
    """The high and low words of each element's index in row-major order."""
    size = math.prod(shape)
    if size > 2**32:
        return wide_counters(shape)
    zero = lax.full((), 0, UINT32)
    low = lax.reshape(lax.iota(UINT32, size), shape) if shape else zero
    return lax.broadcast(zero, shape), low


def wide_counters(shape: tuple[int, ...]) -> tuple[Value, Value]:
    """The same for more elements than a word can count."""
    with enable_x64(True):
        index = lax.reshape(lax.iota(np.uint64, math.prod(shape)), shape)
        high = convert(lax.shift_right_logical(index, scalar_like(index, 32)), UINT32, False)
        return high, convert(lax.bitwise_and(index, scalar_like(index, 0xFFFFFFFF)), UINT32, False)


def seed_words(seed: Value) -> Value:
    """uint32[2], the key of an integer seed: its high and low 32 bits (the high ones 0 for narrower integers)."""
    if seed.aval.dtype.itemsize == 8:
        shifted = lax.shift_right_logical(seed, scalar_like(seed, 32))
        mask = scalar_like(seed, 0xFFFFFFFF)
        high, low = convert(shifted, UINT32, False), convert(lax.bitwise_and(seed, mask), UINT32, False)
    else:
        low = convert(seed, UINT32, False)
        high = scalar_like(low, 0)
    return lax.concatenate([lax.reshape(w, (1,)) for w in (high, low)], 0)


def words_of(key: Value) -> tuple[Value, ...]:
    """The words of a key uint32[n]."""
    return tuple([lax.reshape(lax.slice_in_dim(key, k, k + 1), ()) for k in range(key.aval.shape[0])])


def key_words(key: Value) -> tuple[Value, Value]:
    """The two words of a key uint32[2]."""
    high, low = words_of(key)
    return high, low


def split_key(key: Value, shape: tuple[int, ...]) -> Value:
    """New keys uint32[*shape, 2] from a key uint32[2]."""
    words = threefry_2x32(key_words(key), *counters(shape))
    return lax.concatenate([lax.expand_dims(w, [len(shape)]) for w in words], len(shape))


def fold_in_key(key: Value, data: Value) -> Value:
    """A new key uint32[2] from a key and a uint32 number."""
    high, low = key_words(seed_words(data))
    words = threefry_2x32(key_words(key), high, low)
    return lax.concatenate([lax.reshape(w, (1,)) for w in words], 0)


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Random unsigned integers of 8, 16, 32 or 64 bits."""
    high, low = threefry_2x32(key_words(key), *counters(shape))
    if bit_width == 64:
        wide = [convert(w, np.dtype(np.uint64), False) for w in (high, low)]
        return lax.bitwise_or(lax.shift_left(wide[0], scalar_like(wide[0], 32)), wide[1])
    return convert(lax.bitwise_xor(high, low), np.dtype(f"uint{bit_width}"), False)


THREEFRY = register_implementation(
    PRNGImpl("threefry2x32", "fry", (2,), seed_words, split_key, random_bits, fold_in_key, by_index=True)
)
