"""The results of the random bit generators: Threefry-2x32 and Philox-4x32 as in XLA; and the numbers that rng draws.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), for the block functions; the mapping
from counters to elements is from XLA's prng.cc. For rng only the distribution is defined.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from ..opcode import Opcode
from ..ops.random import (
    RandomAlgorithm,
    RandomDistribution,
    RngAttributes,
    RngBitGeneratorAttributes,
    RngGetAndUpdateStateAttributes,
)
from ..random_state import RANDOM_STATE
from ..shape import Shape
from .elementwise import converted
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
    """The state is (key, counter); each block takes the next counter and makes 64 bits, or 128 (Philox, which is the
    default). A state of three numbers has a counter of 128 bits; otherwise the key is its upper half."""
    bits = shape.elements[1]
    key, counter = int(state[0]), int(state[1])
    if attributes.algorithm is not RandomAlgorithm.THREEFRY:
        counter |= int(state[-1] if len(state) == 3 else state[0]) << 64
        blocks, values = _philox_bits(key, counter, bits.num_elements, bits.element.bit_width)
        after = counter + blocks
        halves = [key, after % 2**64, (after >> 64) % 2**64]
        new_state = np.array(halves[: len(state)], np.uint64)
        return new_state, converted(values, bits.element).reshape(bits.dimensions)
    if bits.element.bit_width == 64:
        blocks, values = bits.num_elements, _wide_bits(key, counter, bits.dimensions)
    else:
        blocks, values = _word_bits(key, counter, bits.dimensions)
    new_state = np.array([key, (counter + blocks) % 2**64], np.uint64)
    return new_state, converted(values, bits.element)


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
    """Elements of 32 bits or less: each block makes two neighbours along one dimension: the first dimension of even
    size, or the largest one if none is even (its last element then has no partner). Returns the number of blocks,
    too."""
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


def _philox_bits(key: int, counter: int, count: int, width: int) -> tuple[int, NDArray]:
    """(blocks, u32 or u64 values): the four words of one block after the other; pairs of words, low first, for 64."""
    per_block = 2 if width == 64 else 4
    blocks = -(-count // per_block)
    start = np.uint64(counter % 2**64)
    low = start + np.arange(blocks, dtype=np.uint64)
    high = np.uint64((counter >> 64) % 2**64) + (low < start).astype(np.uint64)
    words = [half >> shift & np.uint64(0xFFFFFFFF) for half in (low, high) for shift in (np.uint64(0), np.uint64(32))]
    flat = np.stack(_philox_4x32((key & 0xFFFFFFFF, key >> 32), words), axis=1).astype(np.uint32).reshape(-1)
    return blocks, flat.view(np.uint64 if width == 64 else np.uint32)[:count]


def _philox_4x32(key: tuple[int, int], x: list[NDArray]) -> list[NDArray]:
    """The block function of 10 rounds on counters of four words (as u64), the lowest first."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for turn in range(10):
        keys = [np.uint64(k + turn * weyl & 0xFFFFFFFF) for k, weyl in zip(key, (0x9E3779B9, 0xBB67AE85))]
        first, second = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [
            (second >> half) ^ x[1] ^ keys[0], second & low,
            (first >> half) ^ x[3] ^ keys[1], first & low,
        ]  # fmt: skip
    return x


@EVALUATE.register(Opcode.RNG_GET_AND_UPDATE_STATE)
def _state(shape: Shape, attributes: RngGetAndUpdateStateAttributes) -> NDArray:
    before = RANDOM_STATE.advance(attributes.delta)
    return np.array([before % 2**64, before >> 64], np.uint64)


@EVALUATE.register(Opcode.RNG)
def _rng(shape: Shape, attributes: RngAttributes, *parameters: NDArray) -> NDArray:
    """Draws from the process's state, which advances by the number of blocks used."""
    count, target = shape.num_elements, shape.element
    distribution = attributes.distribution
    given = element_type_of(parameters[0].dtype)
    width = 64 if given.bit_width == 64 else 32
    draws = 2 * count if distribution is RandomDistribution.NORMAL else count
    blocks = -(-draws // (2 if width == 64 else 4))
    _, bits = _philox_bits(0, RANDOM_STATE.advance(blocks), draws, width)
    float_type = ElementType.F64 if width == 64 else ElementType.F32
    if distribution is RandomDistribution.BERNOULLI:
        result: Any = _unit(bits) < converted(parameters[0], float_type)
    elif distribution is RandomDistribution.NORMAL:
        mean, deviation = (converted(p, float_type) for p in parameters)
        u, v = np.split(_unit(bits), 2)
        turn = v.dtype.type(2 * np.pi)
        result = mean + deviation * (np.sqrt(-2 * np.log1p(-u)) * np.cos(turn * v))  # Box and Muller
    elif target.is_floating:
        low, high = (converted(p, float_type) for p in parameters)
        value = converted(converted(low + _unit(bits) * (high - low), target), float_type)
        result = np.where(value < high, value, low)
    else:
        low, high = (converted(p, ElementType(f"u{width}")) for p in parameters)
        extent = high - low
        result = low + (bits if extent == 0 else bits % extent)
    return converted(np.asarray(result), target).reshape(shape.dimensions)


def _unit(bits: NDArray) -> NDArray:
    """Uniform in [0, 1), with as many bits as a float has."""
    if bits.dtype == np.uint64:
        return (bits >> np.uint64(12)).astype(np.float64) * 2.0**-52
    return (bits >> np.uint32(9)).astype(np.float32) * np.float32(2.0**-23)
