"""Op cases of small element types: floats of a byte or less, integers of less than a byte.

Conversions between all pairs with a small type; every elementwise op on some of the types; ops that move elements on
all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from ..hlo import ElementType
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ..hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    TransposeAttributes,
)
from ..hlo.ops.reduce import ReduceAttributes
from .computations import binary_computation
from .op_case import ALL, Array, E, O, OpCase, make_case, shape_of
from .op_values import NDArray, any_value, near_integer, small_integer

SMALL_FLOATS = (
    E.F4E2M1FN, E.F8E3M4, E.F8E4M3, E.F8E4M3B11FNUZ, E.F8E4M3FN, E.F8E4M3FNUZ, E.F8E5M2, E.F8E5M2FNUZ, E.F8E8M0FNU,
)  # fmt: skip
SMALL_INTEGERS = (E.S2, E.S4, E.U2, E.U4)
SMALL = (*SMALL_FLOATS, *SMALL_INTEGERS)

_UNARY = (
    O.ABS, O.ACOS, O.ACOSH, O.ASIN, O.ASINH, O.ATANH, O.CBRT, O.CEIL, O.COS, O.COSH, O.ERF, O.EXP, O.EXPM1, O.FLOOR,
    O.IMAG, O.LOG, O.LOG1P, O.LOGISTIC, O.NEGATE, O.REAL, O.ROUND_NEAREST_AFZ, O.ROUND_NEAREST_EVEN, O.RSQRT, O.SIGN,
    O.SIN, O.SINH, O.SQRT, O.TAN, O.TANH,
)  # fmt: skip
_BINARY = (O.ADD, O.ATAN2, O.DIVIDE, O.MAXIMUM, O.MINIMUM, O.MULTIPLY, O.POWER, O.REMAINDER, O.SUBTRACT)
_INTEGER_UNARY = (O.COUNT_LEADING_ZEROS, O.NEGATE, O.NOT, O.POPULATION_COUNT)
_INTEGER_BINARY = (
    O.ADD, O.AND, O.DIVIDE, O.MAXIMUM, O.MINIMUM, O.MULHI, O.MULTIPLY, O.OR, O.POWER, O.REMAINDER, O.SHIFT_LEFT,
    O.SHIFT_RIGHT_ARITHMETIC, O.SHIFT_RIGHT_LOGICAL, O.SUBTRACT, O.XOR,
)  # fmt: skip
_EXPANDED = frozenset((O.ACOS, O.ACOSH, O.ASIN, O.ASINH, O.ATANH))
"""JAX writes these with several ops for XLA, each rounded: too coarse in four bits to compare with."""
_EXACT = frozenset((
    O.ABS, O.CEIL, O.FLOOR, O.IMAG, O.NEGATE, O.REAL, O.ROUND_NEAREST_AFZ, O.ROUND_NEAREST_EVEN, O.SIGN,
    O.ADD, O.MAXIMUM, O.MINIMUM, O.MULTIPLY, O.SUBTRACT, O.DIVIDE, O.REMAINDER,
))  # fmt: skip


def every_value(element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: object) -> NDArray:
    """All values of the type; the second operand's vary more slowly; of f8e8m0fnu, those that are not subnormal in
    f32."""
    count = int(np.prod(dimensions))
    codes = np.arange(1 << element_type.bit_width)
    if element_type is E.F8E8M0FNU:
        codes = codes[4:]
    picked = codes[np.arange(count) // len(codes) ** position % len(codes)].astype(np.uint8)
    values: NDArray = picked.view(element_type.dtype).reshape(dimensions)
    return values


def _convert() -> Iterator[OpCase]:
    for small, other in product(SMALL, (*ALL, *SMALL)):
        for source, target in dict.fromkeys(((small, other), (other, small))):
            if source is target:
                continue
            if source.is_small:
                operand = Array(source, (16, 17), every_value)
            else:
                operand = Array(source, (16, 17), near_integer if source.is_floating else any_value)
            case = make_case(O.CONVERT, [operand], shape_of(target, (16, 17)), note=target.value)
            if not other.is_small or source is small:
                yield case


def _elementwise() -> Iterator[OpCase]:
    for t in (E.F8E5M2, E.F8E4M3FN, E.F8E3M4, E.F8E4M3FNUZ, E.F4E2M1FN):
        dims = (1 << t.bit_width,)
        for opcode in _UNARY:
            if t is E.F4E2M1FN and opcode in _EXPANDED:
                continue
            ulps = 0 if opcode in _EXACT else 1
            yield make_case(opcode, [Array(t, dims, every_value)], shape_of(t, dims), ulps=ulps)
        yield make_case(O.IS_FINITE, [Array(t, dims, every_value)], shape_of(E.PRED, dims))
        for opcode in _BINARY:
            ulps = 0 if opcode in _EXACT else 1
            yield make_case(opcode, [Array(t, (24, 25)), Array(t, (24, 25))], shape_of(t, (24, 25)), ulps=ulps)
    for t in (E.F8E8M0FNU,):
        for opcode in (O.ABS, O.CEIL, O.FLOOR, O.SQRT):
            yield make_case(opcode, [Array(t, (251,), every_value)], shape_of(t, (251,)))
        for opcode in (O.MAXIMUM, O.MINIMUM):
            operands = [Array(t, (3, 84), every_value), Array(t, (3, 84), small_power)]
            yield make_case(opcode, operands, shape_of(t, (3, 84)))
    for t in SMALL_INTEGERS:
        count = 1 << t.bit_width
        square = (count, count)
        for opcode in (*_INTEGER_UNARY, *((O.ABS, O.SIGN) if t.is_signed else ())):
            yield make_case(opcode, [Array(t, (count,), every_value)], shape_of(t, (count,)))
        for opcode in _INTEGER_BINARY:
            operands = [Array(t, square, every_value), Array(t, square, every_value)]
            yield make_case(opcode, operands, shape_of(t, square))


def small_power(element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: object) -> NDArray:
    """Powers of two near 1."""
    count = int(np.prod(dimensions))
    powers: NDArray = np.exp2(np.arange(count) % 9 - 4.0).astype(element_type.dtype).reshape(dimensions)
    return powers


def _others() -> Iterator[OpCase]:
    for t in SMALL:
        dims = (24, 25)
        values = every_value if t is E.F8E8M0FNU else any_value
        pair = [Array(t, dims, values), Array(t, dims, values)]
        for direction in (ComparisonDirection.EQ, ComparisonDirection.LT, ComparisonDirection.GE):
            attributes = CompareAttributes(direction)
            yield make_case(O.COMPARE, pair, shape_of(E.PRED, dims), attributes, note=direction.value)
        yield make_case(O.SELECT, [Array(E.PRED, dims), *pair], shape_of(t, dims), note=t.value)
        yield make_case(O.CLAMP, [Array(t, dims, values)] * 3, shape_of(t, dims), signed_zeros=False)
        yield make_case(O.IOTA, [], shape_of(t, (3, 40)), IotaAttributes(1), note=t.value)
        yield make_case(O.TRANSPOSE, [Array(t, dims)], shape_of(t, (25, 24)), TransposeAttributes((1, 0)))
        yield make_case(O.BROADCAST, [Array(t, (5,))], shape_of(t, (5, 7)), BroadcastAttributes((0,)))
        yield make_case(
            O.PAD, [Array(t, (5, 7)), Array(t)], shape_of(t, (8, 12)), PadAttributes((1, -1), (2, 0), (0, 1))
        )
        parts = [Array(t, (2, 5)), Array(t, (3, 5))]
        yield make_case(O.CONCATENATE, parts, shape_of(t, (5, 5)), ConcatenateAttributes(0))
        start = [Array(E.S32, (), small_integer)]
        yield make_case(O.DYNAMIC_SLICE, [Array(t, (9,)), *start], shape_of(t, (4,)), DynamicSliceAttributes((4,)))
        yield make_case(O.DYNAMIC_UPDATE_SLICE, [Array(t, (9,)), Array(t, (4,)), *start], shape_of(t, (9,)))
    for t in (E.F8E5M2, E.F8E4M3FN, E.F8E4M3B11FNUZ, E.S4, E.U4):
        for opcode in (O.ADD, O.MAXIMUM):
            operands = [Array(t, (4, 6), small_sum), Array(t, (), small_sum)]
            for dimensions, result in (((1,), (4,)), ((0,), (6,))):
                sums = ReduceAttributes(dimensions, binary_computation(opcode, t))
                note = f"{opcode.value}-{dimensions[0]}"
                yield make_case(O.REDUCE, operands, shape_of(t, result), sums, note=note)


def small_sum(element_type: ElementType, dimensions: tuple[int, ...], position: int, rng: object) -> NDArray:
    """Ones, zeros and minus ones, so that short sums are exact in every type."""
    values = np.resize([1, 0, 1, -1 if element_type.is_signed else 2, 1], dimensions)
    return np.asarray(values).astype(element_type.dtype)


def _bitcast_convert() -> Iterator[OpCase]:
    for small, other in product(SMALL, (E.U8, E.S8, E.S16, E.F32, E.U2, E.S4, E.F4E2M1FN, E.F8E5M2)):
        before, after = small.bit_width, other.bit_width
        if small is other:
            continue
        ratio = max(before, after) // min(before, after)
        wide, narrow = (7,), (7, ratio) if ratio > 1 else (7,)
        dims, result = (narrow, wide) if before < after else (wide, narrow)
        operand = Array(small, dims, every_value)
        yield make_case(O.BITCAST_CONVERT, [operand], shape_of(other, result), note=other.value)
        if not other.is_small:
            back = Array(other, result, any_value)
            yield make_case(O.BITCAST_CONVERT, [back], shape_of(small, dims), note=small.value)


def cases() -> Iterator[OpCase]:
    """The cases of small types."""
    for family in (_convert, _elementwise, _others, _bitcast_convert):
        yield from family()
