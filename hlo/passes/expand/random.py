"""Expansions of random numbers: bit generators into integer arithmetic on counters, rng into such a generator.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), for the block functions; the mapping
from counters to elements is from XLA's prng.cc and RngBitGeneratorExpander. The numbers that rng draws differ from
XLA's: only their distribution is defined.
"""

from __future__ import annotations

import math

import numpy as np

from ...builder import make_constant, make_instruction, make_tuple
from ...element_type import ElementType
from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import BroadcastAttributes, ConcatenateAttributes, IotaAttributes, SliceAttributes
from ...ops.random import RandomAlgorithm, RandomDistribution, RngGetAndUpdateStateAttributes
from ...shape import Shape
from ..patterns import broadcast, convert, reshape

_O = Opcode
_THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY = 0x1BD11BDA
_PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_WEYL = (0x9E3779B9, 0xBB67AE85)
_PHILOX_ROUNDS = 10

State = tuple[HloInstruction, HloInstruction, HloInstruction]
"""Key, low and high half of the counter: three u64 scalars."""


def _op(opcode: Opcode, *operands: HloInstruction) -> HloInstruction:
    return make_instruction(opcode, operands)


def _splat(value: np.generic, like: HloInstruction) -> HloInstruction:
    """The constant, broadcast to the shape of `like`."""
    constant = make_constant(value)
    return broadcast(constant, like.shape.with_element_type(constant.shape.element), ())


def _spread(scalar: HloInstruction, dimensions: tuple[int, ...]) -> HloInstruction:
    if not dimensions:
        return scalar
    shape = Shape.array(scalar.shape.element, dimensions)
    return make_instruction(_O.BROADCAST, (scalar,), BroadcastAttributes(()), shape)


def _u32(value: int, like: HloInstruction) -> HloInstruction:
    return _splat(np.uint32(value & 0xFFFFFFFF), like)


def _rotated(x: HloInstruction, distance: int) -> HloInstruction:
    left = _op(_O.SHIFT_LEFT, x, _u32(distance, x))
    return _op(_O.OR, left, _op(_O.SHIFT_RIGHT_LOGICAL, x, _u32(32 - distance, x)))


def threefry_2x32(
    key: tuple[HloInstruction, HloInstruction], x0: HloInstruction, x1: HloInstruction
) -> tuple[HloInstruction, HloInstruction]:
    """Threefry-2x32 with 20 rounds; `key` is two u32 scalars."""
    parity = _op(_O.XOR, _op(_O.XOR, *key), make_constant(np.uint32(_THREEFRY_PARITY)))
    keys = [_spread(k, x0.shape.dimensions) for k in (*key, parity)]
    x0, x1 = _op(_O.ADD, x0, keys[0]), _op(_O.ADD, x1, keys[1])
    for step in range(5):
        for distance in _THREEFRY_ROTATIONS[step % 2]:
            x0 = _op(_O.ADD, x0, x1)
            x1 = _op(_O.XOR, _rotated(x1, distance), x0)
        x0 = _op(_O.ADD, x0, keys[(step + 1) % 3])
        x1 = _op(_O.ADD, _op(_O.ADD, x1, keys[(step + 2) % 3]), _u32(step + 1, x1))
    return x0, x1


def philox_4x32(
    key: tuple[HloInstruction, HloInstruction], counter: list[HloInstruction]
) -> list[HloInstruction]:
    """Philox-4x32 with 10 rounds; `key` is two u32 scalars, `counter` four arrays of u32, the lowest word first."""
    dimensions = counter[0].shape.dimensions
    x = [convert(word, ElementType.U64) for word in counter]  # products have 64 bits: words stay as wide in vectors
    low, high = _splat(np.uint64(0xFFFFFFFF), x[0]), _splat(np.uint64(32), x[0])
    for turn in range(_PHILOX_ROUNDS):
        sums = [
            _op(_O.ADD, k, make_constant(np.uint32(turn * weyl & 0xFFFFFFFF)))
            for k, weyl in zip(key, _PHILOX_WEYL, strict=True)
        ]
        keys = [_spread(convert(k, ElementType.U64), dimensions) for k in sums]
        first, second = (
            _op(_O.MULTIPLY, word, _splat(np.uint64(multiplier), word))
            for word, multiplier in zip((x[0], x[2]), _PHILOX_MULTIPLIERS, strict=True)
        )
        x = [
            _op(_O.XOR, _op(_O.XOR, _op(_O.SHIFT_RIGHT_LOGICAL, second, high), x[1]), keys[0]),
            _op(_O.AND, second, low),
            _op(_O.XOR, _op(_O.XOR, _op(_O.SHIFT_RIGHT_LOGICAL, first, high), x[3]), keys[1]),
            _op(_O.AND, first, low),
        ]
    return [_low(word) for word in x]


def rng_bit_generator(instruction: HloInstruction) -> HloInstruction | None:
    """The same bits as XLA (prng.cc); rng_default is Philox, as on XLA's CPU."""
    state, bits = instruction.operands[0], instruction.shape.elements[1]
    key, counter = _u64_at(state, 0), _u64_at(state, 1)
    if instruction.attributes.algorithm is RandomAlgorithm.THREEFRY:
        count, values = _threefry_bits(key, counter, bits)
        advanced = [_op(_O.ADD, counter, make_constant(np.uint64(count)))]
    else:
        has_high = state.shape.dimensions[0] == 3
        full: State = (key, counter, _u64_at(state, 2) if has_high else key)
        count = philox_blocks(bits.num_elements, bits.element)
        values = philox_bits(full, bits.dimensions, bits.element)
        advanced = list(_plus(full, make_constant(np.uint64(count))))[: 2 if has_high else 1]
    parts = [reshape(x, (1,)) for x in (key, *advanced)]
    new_state = make_instruction(_O.CONCATENATE, parts, ConcatenateAttributes(0))
    return make_tuple([new_state, convert(values, bits.element)])


def _u64_at(state: HloInstruction, position: int) -> HloInstruction:
    element = make_instruction(_O.SLICE, (state,), SliceAttributes((position,), (position + 1,), (1,)))
    return reshape(element, ())


def _low(x: HloInstruction) -> HloInstruction:
    return convert(x, ElementType.U32)


def _high(x: HloInstruction) -> HloInstruction:
    return _low(_op(_O.SHIFT_RIGHT_LOGICAL, x, _splat(np.uint64(32), x)))


def _joined(low: HloInstruction, high: HloInstruction) -> HloInstruction:
    """Two u32 as one u64."""
    wide = [convert(w, ElementType.U64) for w in (low, high)]
    return _op(_O.OR, wide[0], _op(_O.SHIFT_LEFT, wide[1], _splat(np.uint64(32), wide[1])))


def _plus(state: State, steps: HloInstruction) -> tuple[HloInstruction, HloInstruction]:
    """The counter of `state` plus a u64, or an array of them: its low and high halves."""
    dimensions = steps.shape.dimensions
    start, high = _spread(state[1], dimensions), _spread(state[2], dimensions)
    low = _op(_O.ADD, start, steps)
    carried = make_instruction(_O.COMPARE, (low, start), CompareAttributes(ComparisonDirection.LT))
    return low, _op(_O.ADD, high, convert(carried, ElementType.U64))


# Philox: consecutive blocks of four words


def philox_blocks(count: int, element_type: ElementType) -> int:
    """How many blocks `count` elements need: a word for up to 32 bits, two words for 64."""
    return -(-count // (2 if element_type.bit_width == 64 else 4))


def philox_bits(state: State, dimensions: tuple[int, ...], element_type: ElementType) -> HloInstruction:
    """Random bits as u32, or as u64 for types of 64 bits."""
    count = math.prod(dimensions)
    blocks = philox_blocks(count, element_type)
    positions = make_instruction(_O.IOTA, (), IotaAttributes(0), Shape.array(ElementType.U64, (blocks,)))
    low, high = _plus(state, positions)
    words = philox_4x32((_low(state[0]), _high(state[0])), [_low(low), _high(low), _low(high), _high(high)])
    if element_type.bit_width == 64:
        words = [_joined(words[0], words[1]), _joined(words[2], words[3])]
    columns = [reshape(w, (blocks, 1)) for w in words]
    flat = reshape(make_instruction(_O.CONCATENATE, columns, ConcatenateAttributes(1)), (blocks * len(words),))
    if count != blocks * len(words):
        flat = make_instruction(_O.SLICE, (flat,), SliceAttributes((0,), (count,), (1,)))
    return reshape(flat, dimensions)


# Threefry: each block makes 64 bits


def _threefry_bits(key: HloInstruction, counter: HloInstruction, bits: Shape) -> tuple[int, HloInstruction]:
    """(blocks, bits as u32 or u64)."""
    words = (_low(key), _high(key))
    if bits.element.bit_width == 64:
        low, high = threefry_2x32(words, *_counters(counter, bits.dimensions))
        return bits.num_elements, _joined(low, high)
    return _word_bits(words, counter, bits.dimensions)


def _counters(counter: HloInstruction, dimensions: tuple[int, ...]) -> tuple[HloInstruction, HloInstruction]:
    """Low and high words of counter + row-major position."""
    shape = Shape.array(ElementType.U64, (math.prod(dimensions),))
    positions = make_instruction(_O.IOTA, (), IotaAttributes(0), shape)
    total = reshape(_op(_O.ADD, _spread(counter, shape.dimensions), positions), dimensions)
    return _low(total), _high(total)


def _word_bits(
    key: tuple[HloInstruction, HloInstruction], counter: HloInstruction, dimensions: tuple[int, ...]
) -> tuple[int, HloInstruction]:
    """(blocks, u32 values): each block makes two neighbours along the first even dimension, or else the largest."""
    if not dimensions:
        low = threefry_2x32(key, _low(counter), _high(counter))[0]
        return 1, low
    even = [d for d, size in enumerate(dimensions) if size % 2 == 0]
    split = even[0] if even else max(range(len(dimensions)), key=lambda d: (dimensions[d], -d))
    halves = (*dimensions[:split], -(-dimensions[split] // 2), *dimensions[split + 1 :])
    paired = (*halves[: split + 1], 1, *halves[split + 1 :])
    words = threefry_2x32(key, *_counters(counter, halves))
    parts = [reshape(w, paired) for w in words]
    pairs = make_instruction(_O.CONCATENATE, parts, ConcatenateAttributes(split + 1))
    values = reshape(pairs, (*halves[:split], 2 * halves[split], *halves[split + 1 :]))
    if values.shape.dimensions != dimensions:
        rank = len(dimensions)
        values = make_instruction(_O.SLICE, (values,), SliceAttributes((0,) * rank, dimensions, (1,) * rank))
    return math.prod(halves), values


# rng


def rng(instruction: HloInstruction) -> HloInstruction | None:
    """Philox bits from the process's counter, converted to the distribution. The counter advances by their blocks."""
    dimensions, result = instruction.shape.dimensions, instruction.shape.element
    distribution = instruction.attributes.distribution
    given = instruction.operands[0].shape.element
    is_wide = (given if distribution is RandomDistribution.BERNOULLI else result).bit_width == 64
    count = math.prod(dimensions) * (2 if distribution is RandomDistribution.NORMAL else 1)
    bits_type = ElementType.U64 if is_wide else ElementType.U32
    delta = philox_blocks(count, bits_type)
    before = make_instruction(
        _O.RNG_GET_AND_UPDATE_STATE, (), RngGetAndUpdateStateAttributes(delta), Shape.array(ElementType.U64, (2,))
    )
    state: State = (make_constant(np.uint64(0)), _u64_at(before, 0), _u64_at(before, 1))
    bits = philox_bits(state, (count,), bits_type)
    if distribution is RandomDistribution.NORMAL:
        return _normal(instruction, bits)
    bits = reshape(bits, dimensions)
    if distribution is RandomDistribution.BERNOULLI:
        float_type = ElementType.F64 if is_wide else ElementType.F32
        probability = _spread(convert(instruction.operands[0], float_type), dimensions)
        return convert(_less(_unit(bits, float_type), probability), result)
    return (_uniform_float if result.is_floating else _uniform_integer)(instruction, bits)


def _unit(bits: HloInstruction, element_type: ElementType) -> HloInstruction:
    """Uniform in [0, 1): the upper bits are the mantissa of a number in [1, 2)."""
    if element_type is ElementType.F64:
        one, shift = np.uint64(0x3FF << 52), np.uint64(12)
    else:
        one, shift = np.uint32(0x7F << 23), np.uint32(9)  # type: ignore[assignment]
    mantissa = _op(_O.SHIFT_RIGHT_LOGICAL, bits, _splat(shift, bits))
    shape = Shape.array(element_type, bits.shape.dimensions)
    number = make_instruction(_O.BITCAST_CONVERT, (_op(_O.OR, mantissa, _splat(one, bits)),), shape=shape)
    return _op(_O.SUBTRACT, number, _splat(element_type.dtype.type(1), number))


def _less(a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(_O.COMPARE, (a, b), CompareAttributes(ComparisonDirection.LT))


def _uniform_float(instruction: HloInstruction, bits: HloInstruction) -> HloInstruction:
    """low + u (high - low); low if that rounds to high."""
    result = instruction.shape.element
    computed = ElementType.F64 if result is ElementType.F64 else ElementType.F32
    low, high = (_spread(convert(o, computed), instruction.shape.dimensions) for o in instruction.operands)
    value = _op(_O.ADD, low, _op(_O.MULTIPLY, _unit(bits, computed), _op(_O.SUBTRACT, high, low)))
    rounded = convert(convert(value, result), computed)
    chosen = make_instruction(_O.SELECT, (_less(rounded, high), rounded, low))
    return convert(chosen, result)


def _uniform_integer(instruction: HloInstruction, bits: HloInstruction) -> HloInstruction:
    """low + bits modulo (high - low). The bias is less than (high - low) / 2**32, or 2**64 for types of 64 bits."""
    result, unsigned = instruction.shape.element, bits.shape.element
    low, high = (convert(o, unsigned) for o in instruction.operands)
    extent = _spread(_op(_O.SUBTRACT, high, low), instruction.shape.dimensions)
    offset = _op(_O.REMAINDER, bits, extent)
    return convert(_op(_O.ADD, _spread(low, instruction.shape.dimensions), offset), result)


def _normal(instruction: HloInstruction, bits: HloInstruction) -> HloInstruction:
    """Box and Muller: sqrt(-2 log(1 - u)) cos(2 pi v) is normal for uniform u and v."""
    result, dimensions = instruction.shape.element, instruction.shape.dimensions
    computed = ElementType.F64 if result is ElementType.F64 else ElementType.F32
    count = math.prod(dimensions)
    halves = [
        make_instruction(_O.SLICE, (bits,), SliceAttributes((k * count,), ((k + 1) * count,), (1,))) for k in range(2)
    ]
    u, v = (reshape(_unit(half, computed), dimensions) for half in halves)

    def scaled(x: HloInstruction, factor: float) -> HloInstruction:
        return _op(_O.MULTIPLY, x, _splat(computed.dtype.type(factor), x))

    radius = _op(_O.SQRT, scaled(_op(_O.LOG1P, _op(_O.NEGATE, u)), -2))
    deviate = _op(_O.MULTIPLY, radius, _op(_O.COS, scaled(v, 2 * math.pi)))
    mean, deviation = (_spread(convert(o, computed), dimensions) for o in instruction.operands)
    return convert(_op(_O.ADD, mean, _op(_O.MULTIPLY, deviation, deviate)), result)
