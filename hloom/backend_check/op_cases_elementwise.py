"""Op cases of the elementwise family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from ..hlo import ElementType, Opcode
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection, ComparisonType
from .op_case import (
    ALL,
    BINARY_SIZE,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    OTHER_SIZES,
    SIGNED,
    SUBNORMAL,
    UNARY_SIZE,
    Array,
    E,
    O,
    OpCase,
    make_case,
    shape_of,
    sizes_of,
)
from .op_values import Values, any_value, near_integer, positive, shift_distance, small_integer, subnormal

_EXACT_UNARY: dict[Opcode, tuple[ElementType, ...]] = {
    O.CEIL: FLOATS,
    O.COUNT_LEADING_ZEROS: INTEGERS,
    O.FLOOR: FLOATS,
    O.IMAG: (*FLOATS, *COMPLEX),
    O.IS_FINITE: FLOATS,
    O.NEGATE: NUMBERS,
    O.NOT: (E.PRED, *INTEGERS),
    O.POPULATION_COUNT: INTEGERS,
    O.REAL: (*FLOATS, *COMPLEX),
    O.ROUND_NEAREST_AFZ: FLOATS,
    O.ROUND_NEAREST_EVEN: FLOATS,
}
_FUNCTIONS: dict[Opcode, float] = {
    O.ACOS: 4,
    O.ACOSH: 4,
    O.ASIN: 4,
    O.ASINH: 4,
    O.ATANH: 4,
    O.COS: 4,
    O.COSH: 16,
    O.EXP: 4,
    O.EXPM1: 4,
    O.LOG: 4,
    O.LOG1P: 4,
    O.LOGISTIC: 4,
    O.RSQRT: 4,
    O.SIN: 4,
    O.SINH: 16,
    O.SQRT: 1,
    O.TAN: 4,
    O.TANH: 6,
}
"""Functions of floats and complex numbers, and how many ulps two implementations may differ by for floats."""
_COMPLEX_ULPS: dict[Opcode, float] = {O.LOG: 2**8, O.LOG1P: 2**11, O.SIN: 2**11, O.SINH: 2**11}
"""The same for complex numbers where it is not 32: XLA's formulas cancel near the zeros of these functions."""


def _result_of_unary(opcode: Opcode, element_type: ElementType) -> ElementType:
    if opcode is O.IS_FINITE:
        return E.PRED
    return element_type.real if opcode in (O.ABS, O.REAL, O.IMAG) else element_type


def _unary() -> Iterator[OpCase]:
    def cases(opcode: Opcode, types: Sequence[ElementType], ulps: float, complex_ulps: float) -> Iterator[OpCase]:
        for t in types:
            for dims in sizes_of(t, types, UNARY_SIZE):
                result = shape_of(_result_of_unary(opcode, t), dims)
                yield make_case(opcode, [Array(t, dims)], result, ulps=complex_ulps if t.is_complex else ulps)

    for opcode, types in _EXACT_UNARY.items():
        yield from cases(opcode, types, 0, 0)
    for opcode, ulps in _FUNCTIONS.items():
        yield from cases(opcode, (*FLOATS, *COMPLEX), ulps, _COMPLEX_ULPS.get(opcode, 32))
    for opcode in (O.CBRT, O.ERF):
        yield from cases(opcode, FLOATS, 4, 0)
    for opcode in (O.ABS, O.SIGN):
        yield from cases(opcode, (*SIGNED, *FLOATS, *COMPLEX), 0, 4)


_EXACT_BINARY: dict[Opcode, tuple[ElementType, ...]] = {
    O.ADD: ALL,
    O.AND: (E.PRED, *INTEGERS),
    O.MAXIMUM: ALL,
    O.MINIMUM: ALL,
    O.MULHI: INTEGERS,
    O.OR: (E.PRED, *INTEGERS),
    O.REMAINDER: (*INTEGERS, *FLOATS),
    O.SUBTRACT: NUMBERS,
    O.XOR: (E.PRED, *INTEGERS),
}


def _binary() -> Iterator[OpCase]:
    def cases(
        opcode: Opcode,
        types: Sequence[ElementType],
        ulps: float = 0,
        complex_ulps: float = 0,
        second: Values = any_value,
    ) -> Iterator[OpCase]:
        for t in types:
            for dims in sizes_of(t, types, BINARY_SIZE):
                operands = [Array(t, dims), Array(t, dims, second)]
                result = shape_of({E.F32: E.C64, E.F64: E.C128}[t] if opcode is O.COMPLEX else t, dims)
                allowed = complex_ulps if t.is_complex else ulps if t.is_floating else 0
                yield make_case(opcode, operands, result, ulps=allowed)

    for opcode, types in _EXACT_BINARY.items():
        yield from cases(opcode, types)
    yield from cases(O.MULTIPLY, ALL, complex_ulps=4)
    yield from cases(O.DIVIDE, NUMBERS, complex_ulps=8)
    yield from cases(O.ATAN2, (*FLOATS, *COMPLEX), 4, 2**15)
    yield from cases(O.COMPLEX, (E.F32, E.F64))
    yield from cases(O.POWER, (*FLOATS, *COMPLEX), 4, 2**10)
    yield from cases(O.POWER, INTEGERS, second=small_integer)
    for opcode in (O.SHIFT_LEFT, O.SHIFT_RIGHT_ARITHMETIC, O.SHIFT_RIGHT_LOGICAL):
        yield from cases(opcode, INTEGERS, second=shift_distance)


def _compare() -> Iterator[OpCase]:
    for t, direction in product(ALL, ComparisonDirection):
        if t.is_complex and direction not in (ComparisonDirection.EQ, ComparisonDirection.NE):
            continue
        for dims in sizes_of(t, ALL, BINARY_SIZE) if direction is ComparisonDirection.EQ else [BINARY_SIZE]:
            operands = [Array(t, dims), Array(t, dims)]
            attributes = CompareAttributes(direction)
            yield make_case(O.COMPARE, operands, shape_of(E.PRED, dims), attributes, note=direction.value)
    for t, direction in product(FLOATS, ComparisonDirection):
        operands = [Array(t, BINARY_SIZE), Array(t, BINARY_SIZE)]
        attributes = CompareAttributes(direction, ComparisonType.TOTALORDER)
        note = f"total-{direction.value}"
        yield make_case(O.COMPARE, operands, shape_of(E.PRED, BINARY_SIZE), attributes, note=note)


def _select_and_clamp() -> Iterator[OpCase]:
    for t in ALL:
        for dims in sizes_of(t, ALL, UNARY_SIZE):
            branches = [Array(t, dims), Array(t, dims)]
            yield make_case(O.SELECT, [Array(E.PRED, dims), *branches], shape_of(t, dims))
            if dims:
                yield make_case(O.SELECT, [Array(E.PRED, ()), *branches], shape_of(t, dims))
    types = (E.PRED, *INTEGERS, *FLOATS)
    for t in types:
        for dims in sizes_of(t, types, BINARY_SIZE):
            result = shape_of(t, dims)
            yield make_case(O.CLAMP, [Array(t, dims)] * 3, result)
            if dims:
                bounds = [Array(t, (), positive), Array(t, (), positive)]
                yield make_case(O.CLAMP, [bounds[0], Array(t, dims), bounds[1]], result)


def _convert() -> Iterator[OpCase]:
    for source, target in product(ALL, ALL):
        values = near_integer if source.is_floating and target.is_integral else any_value
        dims = (11, 17)
        yield make_case(O.CONVERT, [Array(source, dims, values)], shape_of(target, dims), note=target.value)
    for size in OTHER_SIZES:
        yield make_case(O.CONVERT, [Array(E.F32, size)], shape_of(E.S32, size), note="s32")


def _bitcast_convert() -> Iterator[OpCase]:
    for source, target in product(ALL, ALL):
        if source is not target and {source, target} & {E.PRED, *COMPLEX}:
            continue
        before, after = source.byte_width, target.byte_width
        dims: tuple[int, ...] = (3, 5)
        result = dims
        if before > after:
            result = (3, 5, before // after)
        elif before < after:
            dims, result = (3, after // before), (3,)
        yield make_case(O.BITCAST_CONVERT, [Array(source, dims)], shape_of(target, result), note=target.value)
    for size in OTHER_SIZES:
        yield make_case(O.BITCAST_CONVERT, [Array(E.F32, size)], shape_of(E.U32, size), note="u32")
    yield make_case(O.BITCAST_CONVERT, [Array(E.U8, (4,))], shape_of(E.F32), note="f32")


def _subnormal() -> Iterator[OpCase]:
    """Arithmetic is IEEE's: nothing is flushed to zero."""
    one = (O.ABS, O.NEGATE, O.SIGN, O.SQRT, O.RSQRT, O.CBRT, O.LOG, O.LOG1P, O.EXPM1, O.SIN, O.TANH, O.CEIL, O.ERF)
    two = (O.ADD, O.SUBTRACT, O.MULTIPLY, O.DIVIDE, O.MAXIMUM, O.MINIMUM, O.REMAINDER)
    for t in FLOATS:
        array, result = Array(t, (37,), subnormal), shape_of(t, (37,))
        for opcode in one:
            ulps = _FUNCTIONS.get(opcode, 0 if opcode in _EXACT_UNARY or opcode in (O.ABS, O.SIGN) else 4)
            yield make_case(opcode, [array], result, ulps=ulps, note=SUBNORMAL)
        for opcode in two:
            yield make_case(opcode, [array, array], result, note=SUBNORMAL)
        less = CompareAttributes(ComparisonDirection.LT)
        yield make_case(O.COMPARE, [array, array], shape_of(E.PRED, (37,)), less, note=SUBNORMAL)
        for target in (E.PRED, E.S32, *FLOATS):
            note = f"{target.value}-{SUBNORMAL}"
            yield make_case(O.CONVERT, [array], shape_of(target, (37,)), note=note)


def cases() -> Iterator[OpCase]:
    """The elementwise cases."""
    for family in (_unary, _binary, _compare, _select_and_clamp, _convert, _bitcast_convert, _subnormal):
        yield from family()
