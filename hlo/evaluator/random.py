"""What the random bit generator gives: Threefry-2x32 as XLA arranges it.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), for the block function; XLA's prng.cc
for which counter makes which element.
"""

from __future__ import annotations

import math

import numpy as np

from ..attributes import RandomAlgorithm, RngBitGeneratorAttributes
from ..errors import UnsupportedError
from ..opcode import Opcode
from ..shape import Shape
from .table import EVALUATE, NDArray

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry_2x32(key: tuple[int, int], x0: NDArray, x1: NDArray) -> tuple[NDArray, NDArray]:
    """The block function of 20 rounds on u32 counters `x0`, `x1`, all at once."""
    keys = [np.uint32(k) for k in (*key, key[0] ^ key[1] ^ 0x1BD11BDA)]
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for step in range(5):
        for rotation in _ROTATIONS[step % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + keys[(step + 1) % 3]
        x1 = x1 + keys[(step + 2) % 3] + np.uint32(step + 1)
    return x0, x1


@EVALUATE.register(Opcode.RNG_BIT_GENERATOR)
def _rng_bit_generator(shape: Shape, attributes: RngBitGeneratorAttributes, state: NDArray) -> tuple[NDArray, NDArray]:
    """The state is (key, counter); each block takes the next counter and makes 64 bits."""
    if attributes.algorithm is not RandomAlgorithm.THREEFRY:
        raise UnsupportedError(
            f"rng-bit-generator with algorithm {attributes.algorithm.value}: only rng_three_fry is defined here"
        )
    bits = shape.elements[1]
    key, counter = int(state[0]), int(state[1])
    if bits.element.byte_width == 8:
        blocks, values = bits.num_elements, _wide_bits(key, counter, bits.dimensions)
    else:
        blocks, values = _word_bits(key, counter, bits.dimensions)
    new_state = np.array([key, (counter + blocks) % 2**64], np.uint64)
    return new_state, values.astype(bits.element.dtype)


def _blocks(key: int, counter: int, count: int) -> tuple[NDArray, NDArray]:
    """The two words of blocks counter, counter + 1, ..."""
    counters = np.uint64(counter) + np.arange(count, dtype=np.uint64)
    low, high = counters.astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)
    return threefry_2x32((key & 0xFFFFFFFF, key >> 32), low, high)


def _wide_bits(key: int, counter: int, dimensions: tuple[int, ...]) -> NDArray:
    """64-bit elements: one block each, its first word the low half."""
    low, high = _blocks(key, counter, math.prod(dimensions))
    return (low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)).reshape(dimensions)


def _word_bits(key: int, counter: int, dimensions: tuple[int, ...]) -> tuple[int, NDArray]:
    """Elements of 32 bits or less: each block makes two neighbours along one dimension, the first even one, or the
    largest if none is even (whose last element then has no partner). Returns the number of blocks, too."""
    if not dimensions:
        return 1, _blocks(key, counter, 1)[0].reshape(())
    even = [d for d, size in enumerate(dimensions) if size % 2 == 0]
    split = even[0] if even else max(range(len(dimensions)), key=lambda d: (dimensions[d], -d))
    halves = [*dimensions[:split], -(-dimensions[split] // 2), *dimensions[split + 1 :]]
    count = math.prod(halves)
    first, second = (word.reshape(halves) for word in _blocks(key, counter, count))
    pairs = np.stack([first, second], axis=split + 1)
    merged = pairs.reshape([*halves[:split], 2 * halves[split], *halves[split + 1 :]])
    return count, merged.take(range(dimensions[split]), axis=split)


EVALUATE.unsupported([Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE], "not written yet")
