"""Threefry-2x32: the random bits that JAX gives by default, computed by integer operations that fuse into one kernel.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), with 20 rounds; and how
jax.random derives keys and counters. With `jax_threefry_partitionable`, the default, element i of an array uses the
counter i, so that its bits do not depend on how the array is cut into pieces. Without it, the first half of as many
counters as the result has words is encrypted together with the second half, as JAX did before 0.5.
"""

from __future__ import annotations

import math

import numpy as np

from .. import lax
from ..hlo.sizes import exceeds
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert, scalar_like
from ..tracer.settings.config import enable_x64
from ..tracer.settings.context import current_context
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


def encrypted(key: tuple[Value, Value], words: Value) -> Value:
    """uint32[n] of uint32[n]: the first half and the second half are the two words of the plaintext. Zero stands at the
    end if n is odd."""
    size = words.aval.size
    half = (size + 1) // 2
    even = lax.pad(words, lax.full((), 0, UINT32), [(0, 2 * half - size, 0)])
    first, second = threefry_2x32(key, lax.slice_in_dim(even, 0, half), lax.slice_in_dim(even, half, 2 * half))
    return lax.slice_in_dim(lax.concatenate([first, second], 0), 0, size)


def rotate_left(x: Value, bits: int) -> Value:
    left = lax.shift_left(x, scalar_like(x, bits))
    return lax.bitwise_or(left, lax.shift_right_logical(x, scalar_like(x, 32 - bits)))


def counters(shape: tuple[int, ...]) -> tuple[Value, Value]:
    """The high and low words of each element's index in row-major order."""
    size = math.prod(shape)
    if exceeds(size, 2**32):
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
    if not current_context().threefry_partitionable:
        return lax.reshape(_words_of_size(key, 2 * math.prod(shape)), (*shape, 2))
    words = threefry_2x32(key_words(key), *counters(shape))
    return lax.concatenate([lax.expand_dims(w, [len(shape)]) for w in words], len(shape))


def fold_in_key(key: Value, data: Value) -> Value:
    """A new key uint32[2] from a key and a uint32 number."""
    high, low = key_words(seed_words(data))
    words = threefry_2x32(key_words(key), high, low)
    return lax.concatenate([lax.reshape(w, (1,)) for w in words], 0)


def random_bits(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """Random unsigned integers of 8, 16, 32 or 64 bits."""
    if not current_context().threefry_partitionable:
        return _bits_of_size(key, bit_width, shape)
    high, low = threefry_2x32(key_words(key), *counters(shape))
    if bit_width == 64:
        wide = [convert(w, np.dtype(np.uint64), False) for w in (high, low)]
        return lax.bitwise_or(lax.shift_left(wide[0], scalar_like(wide[0], 32)), wide[1])
    return convert(lax.bitwise_xor(high, low), np.dtype(f"uint{bit_width}"), False)


def _words_of_size(key: Value, size: int) -> Value:
    """uint32[size], where each element depends on the size."""
    if exceeds(size, 2**32 - 2):
        raise OperandError(f"a draw of {size} words needs jax_threefry_partitionable=True", "size")
    return encrypted(key_words(key), lax.iota(UINT32, size))


def _bits_of_size(key: Value, bit_width: int, shape: tuple[int, ...]) -> Value:
    """`random_bits` without `jax_threefry_partitionable`: an integer of 64 bits has a word of each half, and a word has
    several integers of fewer bits, the lowest first."""
    size = math.prod(shape)
    words = _words_of_size(key, -(-bit_width * size // 32))
    target = np.dtype(f"uint{bit_width}")
    if bit_width == 64:
        high, low = (convert(lax.slice_in_dim(words, n, n + size), target, False) for n in (0, size))
        bits = lax.bitwise_or(lax.shift_left(high, scalar_like(high, 32)), low)
    elif bit_width == 32:
        bits = words
    else:
        parts = [lax.shift_right_logical(words, scalar_like(words, n)) for n in range(0, 32, bit_width)]
        columns = [lax.expand_dims(convert(p, target, False), [1]) for p in parts]
        bits = lax.slice_in_dim(lax.reshape(lax.concatenate(columns, 1), (words.aval.size * len(parts),)), 0, size)
    return lax.reshape(bits, shape)


THREEFRY = register_implementation(
    PRNGImpl("threefry2x32", "fry", (2,), seed_words, split_key, random_bits, fold_in_key, by_index=True)
)
