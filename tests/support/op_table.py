"""THE table of op cases: every opcode with every element type that it admits, at several sizes.

It feeds the evaluator against real XLA, code generation against the evaluator, gradients, batching and layouts. A case
says what goes in, what comes out, and how close two implementations must be. Types are written out here, by hand, and
not taken from the ops' own declarations.

    for case in CASES: module = build_module(case); inputs = make_inputs(case, seed=0)
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from hloom.hlo import ElementType, HloInstruction, HloModule, Literal, Opcode, Shape
from hloom.hlo import attributes as a
from hloom.hlo.builder import (
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from hloom.hlo.ir import NO_ATTRIBUTES, Attributes, HloComputation

from .op_values import (
    NDArray,
    Values,
    any_value,
    errors_in_ulps,
    finite,
    near_integer,
    positive,
    shift_distance,
    small_floats,
    small_integer,
    subnormal,
)

E = ElementType
O = Opcode  # noqa: E741
SIGNED = (E.S8, E.S16, E.S32, E.S64)
UNSIGNED = (E.U8, E.U16, E.U32, E.U64)
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = (E.F16, E.BF16, E.F32, E.F64)
COMPLEX = (E.C64, E.C128)
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)
ALL = (E.PRED, *NUMBERS)


SUBNORMAL = "subnormal"


@dataclass(frozen=True)
class Array:
    """An operand: its type and the kind of values to put in."""

    element_type: ElementType
    dimensions: tuple[int, ...] = ()
    values: Values = any_value

    @property
    def shape(self) -> Shape:
        return Shape.array(self.element_type, self.dimensions)


Operand: TypeAlias = "Array | tuple[Operand, ...]"
"""An array, or a tuple of operands: the module then has a parameter for each array and makes the tuple itself."""


@dataclass(frozen=True)
class OpCase:
    """One op on operands of given types."""

    id: str
    opcode: Opcode
    operands: tuple[Operand, ...]
    attributes: Attributes
    result: Shape
    ulps: float = 0
    """The largest difference between two correct implementations; 0: bit by bit, NaN aside."""
    signed_zeros: bool = True
    """Whether 0.0 and -0.0 differ in the result."""

    @property
    def is_subnormal(self) -> bool:
        """Whether the case is about subnormal numbers, which XLA's CPU runtime flushes to zero."""
        return self.id.endswith(SUBNORMAL)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays in the operands, depth first: the module's parameters."""
        return tuple(_leaves(self.operands))


def _leaves(operand: Operand) -> Iterator[Array]:
    if isinstance(operand, Array):
        yield operand
    else:
        for element in operand:
            yield from _leaves(element)


def build_module(case: OpCase) -> HloModule:
    """A module whose entry is the op on its parameters."""
    parameters = [make_parameter(i, array.shape, f"p{i}") for i, array in enumerate(case.arrays)]
    source = iter(parameters)

    def instruction(operand: Operand) -> HloInstruction:
        return next(source) if isinstance(operand, Array) else make_tuple([instruction(o) for o in operand])

    operands = [instruction(o) for o in case.operands]
    if case.opcode is O.PARAMETER:
        root = operands[0]
    else:
        root = make_instruction(case.opcode, operands, case.attributes, case.result)
    return make_module("case", make_computation("main", root, parameters))


def make_inputs(case: OpCase, seed: int = 0) -> list[NDArray]:
    """An array for each parameter of `build_module(case)`: the same for the same case and seed."""
    rng = np.random.default_rng([seed, zlib.crc32(case.id.encode())])
    values = (array.values(array.element_type, array.dimensions, i, rng) for i, array in enumerate(case.arrays))
    return [np.asarray(v) for v in values]


def check_results(case: OpCase, actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """AssertionError unless the results have the case's types and differ by no more than it allows."""
    leaves = list(case.result.leaves())
    assert len(actual) == len(expected) == len(leaves), f"{case.id}: {len(actual)} results, not {len(leaves)}"
    for position, (got, wanted, leaf) in enumerate(zip(actual, expected, leaves, strict=True)):
        got, wanted = np.asarray(got), np.asarray(wanted)
        where = f"{case.id}, result {position}"
        assert got.dtype == wanted.dtype == leaf.element.dtype, f"{where}: {got.dtype}, not {leaf.element.dtype}"
        assert got.shape == wanted.shape == leaf.dimensions, f"{where}: {got.shape}, not {leaf.dimensions}"
        errors = errors_in_ulps(got, wanted, signed_zeros=case.signed_zeros)
        if errors.size and not errors.max() <= case.ulps:
            worst = np.unravel_index(np.argmax(errors), errors.shape)
            raise AssertionError(
                f"{where}: element {list(map(int, worst))} is {got[worst]!r}, not {wanted[worst]!r}: "
                f"{errors[worst]:.3g} ulps, {case.ulps:g} allowed ({np.sum(errors > case.ulps)} elements differ)"
            )


# --- making cases

Builder = Callable[[], Iterator[OpCase]]
_UNARY_SIZE, _BINARY_SIZE = (5, 7, 3), (23, 25)
_OTHER_SIZES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (3, 0, 2), (1, 37))


def _describe(operand: Operand) -> str:
    if isinstance(operand, Array):
        return operand.element_type.value + "x".join(["", *map(str, operand.dimensions)])
    return "(" + ",".join(map(_describe, operand)) + ")"


def _case(
    opcode: Opcode,
    operands: Sequence[Operand],
    result: Shape,
    attributes: Attributes = NO_ATTRIBUTES,
    *,
    ulps: float = 0,
    signed_zeros: bool = True,
    note: str = "",
) -> OpCase:
    name = "-".join(filter(None, [opcode.value, *map(_describe, operands[:2]), note]))
    return OpCase(name, opcode, tuple(operands), attributes, result, ulps, signed_zeros)


def _sizes(element_type: ElementType, types: Sequence[ElementType], main: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The main size, and for one common type all others."""
    yield main
    common = next((t for t in (E.F32, E.S32, E.PRED, E.C64) if t in types), types[0])
    if element_type is common:
        yield from _OTHER_SIZES


def _array(element_type: ElementType, dimensions: Sequence[int] = ()) -> Shape:
    return Shape.array(element_type, tuple(dimensions))


# --- elementwise

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
            for dims in _sizes(t, types, _UNARY_SIZE):
                result = _array(_result_of_unary(opcode, t), dims)
                yield _case(opcode, [Array(t, dims)], result, ulps=complex_ulps if t.is_complex else ulps)

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
    O.MAXIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.MINIMUM: (E.PRED, *INTEGERS, *FLOATS),
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
        signed_zeros = opcode not in (O.MAXIMUM, O.MINIMUM)
        for t in types:
            for dims in _sizes(t, types, _BINARY_SIZE):
                operands = [Array(t, dims), Array(t, dims, second)]
                result = _array({E.F32: E.C64, E.F64: E.C128}[t] if opcode is O.COMPLEX else t, dims)
                allowed = complex_ulps if t.is_complex else ulps if t.is_floating else 0
                yield _case(opcode, operands, result, ulps=allowed, signed_zeros=signed_zeros)

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
    for t, direction in product(ALL, a.ComparisonDirection):
        if t.is_complex and direction not in (a.ComparisonDirection.EQ, a.ComparisonDirection.NE):
            continue
        for dims in _sizes(t, ALL, _BINARY_SIZE) if direction is a.ComparisonDirection.EQ else [_BINARY_SIZE]:
            operands = [Array(t, dims), Array(t, dims)]
            yield _case(O.COMPARE, operands, _array(E.PRED, dims), a.CompareAttributes(direction), note=direction.value)
    for t, direction in product(FLOATS, a.ComparisonDirection):
        operands = [Array(t, _BINARY_SIZE), Array(t, _BINARY_SIZE)]
        attributes = a.CompareAttributes(direction, a.ComparisonType.TOTALORDER)
        note = f"total-{direction.value}"
        yield _case(O.COMPARE, operands, _array(E.PRED, _BINARY_SIZE), attributes, note=note)


def _select_and_clamp() -> Iterator[OpCase]:
    for t in ALL:
        for dims in _sizes(t, ALL, _UNARY_SIZE):
            branches = [Array(t, dims), Array(t, dims)]
            yield _case(O.SELECT, [Array(E.PRED, dims), *branches], _array(t, dims))
            if dims:
                yield _case(O.SELECT, [Array(E.PRED, ()), *branches], _array(t, dims))
    types = (*INTEGERS, *FLOATS)
    for t in types:
        for dims in _sizes(t, types, _BINARY_SIZE):
            result = _array(t, dims)
            yield _case(O.CLAMP, [Array(t, dims)] * 3, result, signed_zeros=False)
            if dims:
                bounds = [Array(t, (), positive), Array(t, (), positive)]
                yield _case(O.CLAMP, [bounds[0], Array(t, dims), bounds[1]], result, signed_zeros=False)


def _convert() -> Iterator[OpCase]:
    for source, target in product(ALL, ALL):
        values = near_integer if source.is_floating and target.is_integral else any_value
        dims = (11, 17)
        yield _case(O.CONVERT, [Array(source, dims, values)], _array(target, dims), note=target.value)
    for dims in _OTHER_SIZES:
        yield _case(O.CONVERT, [Array(E.F32, dims)], _array(E.S32, dims), note="s32")


def _bitcast_convert() -> Iterator[OpCase]:
    for source, target in product(ALL, ALL):
        if source is not target and {source, target} & {E.PRED, *COMPLEX}:
            continue
        before, after = source.byte_width, target.byte_width
        dims, result = (3, 5), (3, 5)
        if before > after:
            result = (3, 5, before // after)
        elif before < after:
            dims, result = (3, after // before), (3,)
        yield _case(O.BITCAST_CONVERT, [Array(source, dims)], _array(target, result), note=target.value)
    for dims in _OTHER_SIZES:
        yield _case(O.BITCAST_CONVERT, [Array(E.F32, dims)], _array(E.U32, dims), note="u32")
    yield _case(O.BITCAST_CONVERT, [Array(E.U8, (4,))], _array(E.F32), note="f32")


def _subnormal() -> Iterator[OpCase]:
    """Arithmetic is IEEE's: nothing is flushed to zero."""
    one = (O.ABS, O.NEGATE, O.SIGN, O.SQRT, O.RSQRT, O.CBRT, O.LOG, O.LOG1P, O.EXPM1, O.SIN, O.TANH, O.CEIL, O.ERF)
    two = (O.ADD, O.SUBTRACT, O.MULTIPLY, O.DIVIDE, O.MAXIMUM, O.MINIMUM, O.REMAINDER)
    for t in FLOATS:
        array, result = Array(t, (37,), subnormal), _array(t, (37,))
        for opcode in one:
            ulps = _FUNCTIONS.get(opcode, 0 if opcode in _EXACT_UNARY or opcode in (O.ABS, O.SIGN) else 4)
            yield _case(opcode, [array], result, ulps=ulps, note=SUBNORMAL)
        for opcode in two:
            yield _case(opcode, [array, array], result, note=SUBNORMAL)
        less = a.CompareAttributes(a.ComparisonDirection.LT)
        yield _case(O.COMPARE, [array, array], _array(E.PRED, (37,)), less, note=SUBNORMAL)
        for target in (E.PRED, E.S32, *FLOATS):
            note = f"{target.value}-{SUBNORMAL}"
            yield _case(O.CONVERT, [array], _array(target, (37,)), note=note)


# --- movement


def _movement() -> Iterator[OpCase]:
    for t in ALL:
        yield _case(O.COPY, [Array(t, (3, 5))], _array(t, (3, 5)))
        yield _case(O.BITCAST, [Array(t, (3, 4))], _array(t, (2, 6)))
        yield _case(O.BROADCAST, [Array(t, (3, 2))], _array(t, (3, 4, 2)), a.BroadcastAttributes((0, 2)))
        yield _case(O.CONCATENATE, [Array(t, (2, 3)), Array(t, (2, 4))], _array(t, (2, 7)), a.ConcatenateAttributes(1))
        yield _case(O.PAD, [Array(t, (2, 3)), Array(t)], _array(t, (5, 7)), a.PadAttributes((1, 0), (2, 0), (0, 2)))
        yield _case(O.RESHAPE, [Array(t, (3, 4))], _array(t, (2, 6)))
        yield _case(O.REVERSE, [Array(t, (3, 5, 2))], _array(t, (3, 5, 2)), a.ReverseAttributes((0, 2)))
        yield _case(O.SLICE, [Array(t, (7, 9))], _array(t, (2, 3)), a.SliceAttributes((1, 2), (5, 9), (3, 3)))
        yield _case(O.TRANSPOSE, [Array(t, (3, 5, 2))], _array(t, (5, 2, 3)), a.TransposeAttributes((1, 2, 0)))
        starts = [Array(E.S32, (), small_integer), Array(E.S32, (), small_integer)]
        sizes = a.DynamicSliceAttributes((3, 2))
        yield _case(O.DYNAMIC_SLICE, [Array(t, (5, 9)), *starts], _array(t, (3, 2)), sizes)
        operands = [Array(t, (5, 9)), Array(t, (3, 2)), *starts]
        yield _case(O.DYNAMIC_UPDATE_SLICE, operands, _array(t, (5, 9)))
        if t is not E.PRED:
            yield _case(O.IOTA, [], _array(t, (300,)), a.IotaAttributes(0), note=t.value)
    yield from _movement_sizes()


def _movement_sizes() -> Iterator[OpCase]:
    def f32(*dims: int) -> Array:
        return Array(E.F32, dims)

    for operand, result, dims in [
        ((), (), ()),
        ((), (3, 5), ()),
        ((1,), (1, 4), (0,)),
        ((0,), (2, 0), (1,)),
        ((3,), (0, 3), (1,)),
        ((5,), (5, 3), (0,)),
        ((2, 3), (3, 4, 2), (2, 0)),
    ]:
        attributes = a.BroadcastAttributes(dims)
        note = f"to-{'x'.join(map(str, result))}-at-{'.'.join(map(str, dims))}"
        yield _case(O.BROADCAST, [f32(*operand)], _array(E.F32, result), attributes, note=note)
    for parts, d in [([(3,)], 0), ([(0, 2), (3, 2), (1, 2), (0, 2)], 0), ([(2, 0), (2, 0)], 1), ([(2, 1, 3)] * 5, 1)]:
        joined = list(parts[0])
        joined[d] = sum(p[d] for p in parts)
        operands = [f32(*p) for p in parts]
        note = f"{len(parts)}-along-{d}"
        yield _case(O.CONCATENATE, operands, _array(E.F32, joined), a.ConcatenateAttributes(d), note=note)
    for dims, low, high, interior in [
        ((), (), (), ()),
        ((0,), (2,), (1,), (3,)),
        ((4,), (-1,), (-2,), (0,)),
        ((4,), (-2,), (3,), (2,)),
        ((4,), (-3,), (-3,), (1,)),
        ((2,), (-3,), (4,), (0,)),
        ((2,), (5,), (-4,), (0,)),
        ((3, 1), (0, 2), (0, 2), (0, 5)),
        ((5,), (-20,), (30,), (1,)),
    ]:
        result = [n + lo + hi + max(n - 1, 0) * i for n, lo, hi, i in zip(dims, low, high, interior, strict=True)]
        note = "_".join(f"{lo}.{hi}.{i}" for lo, hi, i in zip(low, high, interior, strict=True))
        attributes = a.PadAttributes(low, high, interior)
        yield _case(O.PAD, [f32(*dims), f32()], _array(E.F32, result), attributes, note=note)
    for dims, result in [((), (1, 1)), ((0, 3), (7, 0)), ((1,), ()), ((2, 3, 4), (24,)), ((6,), (2, 1, 3))]:
        yield _case(O.RESHAPE, [f32(*dims)], _array(E.F32, result), note=f"to-{'x'.join(map(str, result))}")
    for dims, reversed_dims in [((), ()), ((0, 3), (0, 1)), ((1, 4), (1,)), ((3, 4), ())]:
        attributes = a.ReverseAttributes(reversed_dims)
        yield _case(O.REVERSE, [f32(*dims)], _array(E.F32, dims), attributes, note=str(list(reversed_dims)))
    for dims, start, limit, stride in [
        ((), (), (), ()),
        ((5,), (2,), (2,), (1,)),
        ((5,), (0,), (5,), (9,)),
        ((0, 4), (0, 1), (0, 4), (1, 2)),
        ((6, 1, 4), (2, 0, 1), (6, 1, 3), (1, 1, 1)),
    ]:
        result = [-(-(hi - lo) // step) for lo, hi, step in zip(start, limit, stride, strict=True)]
        attributes = a.SliceAttributes(start, limit, stride)
        yield _case(O.SLICE, [f32(*dims)], _array(E.F32, result), attributes, note=str(list(start)))
    for dims, order in [((), ()), ((4,), (0,)), ((0, 3), (1, 0)), ((1, 7), (1, 0)), ((33, 65), (1, 0))]:
        result = [dims[d] for d in order]
        yield _case(O.TRANSPOSE, [f32(*dims)], _array(E.F32, result), a.TransposeAttributes(order))
    yield _case(O.TRANSPOSE, [f32(2, 3, 4, 5)], _array(E.F32, (5, 3, 2, 4)), a.TransposeAttributes((3, 1, 0, 2)))
    for index, (dims, sizes) in product(INTEGERS, [((7,), (3,)), ((4, 6), (4, 1))]):
        starts = [Array(index, (), small_integer) for _ in dims]
        note = index.value
        slice_sizes = a.DynamicSliceAttributes(sizes)
        yield _case(O.DYNAMIC_SLICE, [f32(*dims), *starts], _array(E.F32, sizes), slice_sizes, note=note)
        operands = [f32(*dims), f32(*sizes), *starts]
        yield _case(O.DYNAMIC_UPDATE_SLICE, operands, _array(E.F32, dims), note=note)
    for index in (E.S32, E.U32, E.S64, E.U64):
        extreme = Array(index, ())
        yield _case(
            O.DYNAMIC_SLICE, [f32(7), extreme], _array(E.F32, (3,)), a.DynamicSliceAttributes((3,)), note="edge"
        )
    for dims, sizes in [((), ()), ((0,), (0,)), ((3,), (0,)), ((1, 1), (1, 1))]:
        starts = [Array(E.S32, (), small_integer) for _ in dims]
        slice_sizes = a.DynamicSliceAttributes(sizes)
        yield _case(O.DYNAMIC_SLICE, [f32(*dims), *starts], _array(E.F32, sizes), slice_sizes, note="size")
        operands = [f32(*dims), f32(*sizes), *starts]
        yield _case(O.DYNAMIC_UPDATE_SLICE, operands, _array(E.F32, dims), note="size")
    for dims, d in [((0,), 0), ((1,), 0), ((3, 5), 0), ((3, 5), 1), ((2, 0, 3), 2), ((2, 3, 4), 1)]:
        note = f"f32x{'x'.join(map(str, dims))}-along-{d}"
        yield _case(O.IOTA, [], _array(E.F32, dims), a.IotaAttributes(d), note=note)


# --- reduce


def binary_computation(opcode: Opcode, element_type: ElementType, *, swapped: bool = False) -> HloComputation:
    """The reducer that is one op on its two scalar parameters."""
    shape = _array(element_type)
    x, y = make_parameter(0, shape, "x"), make_parameter(1, shape, "y")
    operands = [y, x] if swapped else [x, y]
    return make_computation(opcode.value, make_instruction(opcode, operands), [x, y])


def argmax_computation(values: ElementType, indices: ElementType) -> HloComputation:
    """The reducer on (value, index) that keeps the larger value, and of equal ones the smaller index."""
    shapes = [_array(values), _array(indices)]
    x, i, y, j = (make_parameter(n, shapes[n % 2], name) for n, name in enumerate("xiyj"))

    def compare(direction: a.ComparisonDirection, p: HloInstruction, q: HloInstruction) -> HloInstruction:
        return make_instruction(O.COMPARE, [p, q], a.CompareAttributes(direction))

    same = compare(a.ComparisonDirection.EQ, x, y)
    first = make_instruction(O.AND, [same, compare(a.ComparisonDirection.LT, i, j)])
    keep = make_instruction(O.OR, [compare(a.ComparisonDirection.GT, x, y), first])
    chosen = [make_instruction(O.SELECT, [keep, p, q]) for p, q in ((x, y), (i, j))]
    return make_computation("argmax", make_tuple(chosen), [x, i, y, j])


def log_add_exp_computation(element_type: ElementType) -> HloComputation:
    """The reducer x, y -> max(x, y) + log1p(exp(-|x - y|))."""
    x, y = (make_parameter(n, _array(element_type), name) for n, name in enumerate("xy"))
    difference = make_instruction(O.NEGATE, [make_instruction(O.ABS, [make_instruction(O.SUBTRACT, [x, y])])])
    rest = make_instruction(O.LOG1P, [make_instruction(O.EXP, [difference])])
    return make_computation("logaddexp", make_instruction(O.ADD, [make_instruction(O.MAXIMUM, [x, y]), rest]), [x, y])


_REDUCERS: dict[Opcode, tuple[ElementType, ...]] = {
    O.ADD: ALL,
    O.MULTIPLY: ALL,
    O.MAXIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.MINIMUM: (E.PRED, *INTEGERS, *FLOATS),
    O.AND: (E.PRED, *INTEGERS),
    O.OR: (E.PRED, *INTEGERS),
    O.XOR: (E.PRED, *INTEGERS),
}


def _identity(opcode: Opcode) -> Values:
    """The value that `opcode` leaves alone: XLA may use a reduction's init value never, once or several times."""

    def values(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
        if opcode in (O.MAXIMUM, O.MINIMUM) and t is not E.PRED:
            low, high = (-np.inf, np.inf) if t.is_floating else (np.iinfo(t.dtype).min, np.iinfo(t.dtype).max)
            return np.full(dims, low if opcode is O.MAXIMUM else high, t.dtype)
        if opcode is O.AND:
            return np.invert(np.zeros(dims, t.dtype))
        return np.full(dims, opcode in (O.MULTIPLY, O.MINIMUM), t.dtype)

    return values


_REDUCE_SIZES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((), ()),
    ((3, 4), ()),
    ((0,), (0,)),
    ((0, 3), (0,)),
    ((3, 0), (0,)),
    ((1,), (0,)),
    ((1, 5, 1), (0, 2)),
    ((37,), (0,)),
    ((5, 7), (0,)),
    ((5, 7), (0, 1)),
    ((2, 3, 4, 5), (1, 3)),
    ((2, 3, 4, 5), (0, 2)),
    ((2, 3, 4, 5), (2, 1)),
    ((1000, 3), (0,)),
    ((3, 1000), (1,)),
)


def _without(dims: Sequence[int], removed: Sequence[int]) -> list[int]:
    return [n for d, n in enumerate(dims) if d not in removed]


def _reduce() -> Iterator[OpCase]:
    for opcode, types in _REDUCERS.items():
        for t in types:
            values = any_value if opcode in (O.MAXIMUM, O.MINIMUM) else positive
            ulps = 8 if opcode in (O.ADD, O.MULTIPLY) and t.is_inexact else 0
            reducer = binary_computation(opcode, t, swapped=t in (E.S16, E.F64))
            operands = [Array(t, (3, 5, 7), values), Array(t, (), _identity(opcode))]
            attributes = a.ReduceAttributes((1,), reducer)
            result = _array(t, (3, 7))
            yield _case(O.REDUCE, operands, result, attributes, ulps=ulps, signed_zeros=False, note=opcode.value)
    for (dims, reduced), opcode in product(_REDUCE_SIZES, (O.ADD, O.MAXIMUM)):
        operands = [Array(E.F32, dims, positive), Array(E.F32, (), _identity(opcode))]
        attributes = a.ReduceAttributes(reduced, binary_computation(opcode, E.F32))
        result = _array(E.F32, _without(dims, reduced))
        ulps = 64 if opcode is O.ADD else 0
        note = f"{opcode.value}-over-{'.'.join(map(str, reduced))}"
        yield _case(O.REDUCE, operands, result, attributes, ulps=ulps, signed_zeros=False, note=note)
    for dims, reduced in _REDUCE_SIZES:
        results = [_array(E.F32, _without(dims, reduced)), _array(E.S32, _without(dims, reduced))]
        lowest = _identity(O.MAXIMUM)
        inits = [Array(E.F32, (), lowest), Array(E.S32, (), _identity(O.MINIMUM))]
        arrays = [Array(E.F32, dims, small_floats), Array(E.S32, dims, finite), *inits]
        attributes = a.ReduceAttributes(reduced, argmax_computation(E.F32, E.S32))
        note = f"argmax-over-{'.'.join(map(str, reduced))}"
        yield _case(O.REDUCE, arrays, Shape.tuple(results), attributes, note=note)
        log_add_exp = a.ReduceAttributes(reduced, log_add_exp_computation(E.F32))
        note = f"logaddexp-over-{'.'.join(map(str, reduced))}"
        operands = [Array(E.F32, dims, positive), Array(E.F32, (), lowest)]
        yield _case(O.REDUCE, operands, results[0], log_add_exp, ulps=64, note=note)


# --- dot


def _dot_case(
    types: tuple[ElementType, ElementType, ElementType],
    lhs: tuple[int, ...],
    rhs: tuple[int, ...],
    contracting: tuple[tuple[int, ...], tuple[int, ...]],
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
) -> OpCase:
    result = [lhs[d] for d in batch[0]]
    result += _without(lhs, (*batch[0], *contracting[0])) + _without(rhs, (*batch[1], *contracting[1]))
    values = finite if types[0].is_integral or types[0] is E.PRED else positive
    operands = [Array(types[0], lhs, values), Array(types[1], rhs, values)]
    terms = math.prod(lhs[d] for d in contracting[0])
    ulps = 4 + terms if types[2].is_inexact else 0
    attributes = a.DotAttributes(*batch, *contracting)
    note = f"{types[2].value}-{contracting}-{batch}".replace(" ", "")
    return _case(O.DOT, operands, _array(types[2], result), attributes, ulps=ulps, note=note)


def _dot() -> Iterator[OpCase]:
    for t in ALL:
        yield _dot_case((t, t, t), (3, 5), (5, 4), ((1,), (0,)))
    for t, wider in [
        (E.F16, E.F32),
        (E.BF16, E.F32),
        (E.F32, E.F64),
        (E.S8, E.S32),
        (E.U8, E.U32),
        (E.S32, E.S64),
        (E.C64, E.C128),
        (E.PRED, E.S32),
        (E.S8, E.F32),
        (E.S32, E.S8),
        (E.F32, E.BF16),
    ]:
        yield _dot_case((t, t, wider), (3, 5), (5, 4), ((1,), (0,)))
    for lhs_type, rhs_type, wider in [(E.S8, E.U8, E.S32), (E.BF16, E.F32, E.F32), (E.F32, E.C64, E.C64)]:
        yield _dot_case((lhs_type, rhs_type, wider), (3, 5), (5, 4), ((1,), (0,)))
    f32 = (E.F32, E.F32, E.F32)
    for lhs, rhs, contracting, batch in [
        ((), (), ((), ()), ((), ())),
        ((7,), (7,), ((0,), (0,)), ((), ())),
        ((3,), (4,), ((), ()), ((), ())),
        ((3, 7), (7,), ((1,), (0,)), ((), ())),
        ((7,), (7, 4), ((0,), (0,)), ((), ())),
        ((7, 3), (7, 4), ((0,), (0,)), ((), ())),
        ((3, 7), (4, 7), ((1,), (1,)), ((), ())),
        ((7, 3), (4, 7), ((0,), (1,)), ((), ())),
        ((2, 3, 7), (2, 7, 4), ((2,), (1,)), ((0,), (0,))),
        ((3, 2, 7), (4, 7, 2), ((2,), (1,)), ((1,), (2,))),
        ((2, 3, 4, 5), (5, 4, 2, 6), ((2, 3), (1, 0)), ((0,), (2,))),
        ((2, 3, 5), (3, 2), ((), ()), ((1, 0), (0, 1))),
        ((0, 5), (5, 4), ((1,), (0,)), ((), ())),
        ((3, 0), (0, 4), ((1,), (0,)), ((), ())),
        ((1, 1), (1, 1), ((1,), (0,)), ((), ())),
        ((0, 3, 5), (0, 5, 4), ((2,), (1,)), ((0,), (0,))),
        ((33, 65), (65, 17), ((1,), (0,)), ((), ())),
    ]:
        yield _dot_case(f32, lhs, rhs, contracting, batch)


# --- random, control flow, structure


def _random() -> Iterator[OpCase]:
    attributes = a.RngBitGeneratorAttributes(a.RandomAlgorithm.THREEFRY)
    sizes = ((), (0,), (1,), (2,), (5,), (3, 5), (3, 4), (5, 3, 7), (3, 0), (2, 3))
    for t in UNSIGNED:
        for dims in sizes:
            result = Shape.tuple([_array(E.U64, (2,)), _array(t, dims)])
            note = t.value + "x".join(["", *map(str, dims)])
            yield _case(O.RNG_BIT_GENERATOR, [Array(E.U64, (2,), finite)], result, attributes, note=note)


def _count_down_computations() -> tuple[HloComputation, HloComputation]:
    """While n > 0: n, x = n - 1, x * 1.5 + n."""
    state = Shape.tuple([_array(E.S32), _array(E.F32, (3,))])
    parameter = make_parameter(0, state, "state")
    counter = make_get_tuple_element(parameter, 0)
    more = make_instruction(O.COMPARE, [counter, make_constant(np.int32(0))], a.CompareAttributes(_GT))
    condition = make_computation("condition", more, [parameter])
    parameter = make_parameter(0, state, "state")
    counter, vector = (make_get_tuple_element(parameter, i) for i in range(2))

    def vector_of(scalar: HloInstruction) -> HloInstruction:
        return make_instruction(O.BROADCAST, [scalar], a.BroadcastAttributes(()), _array(E.F32, (3,)))

    addend = vector_of(make_instruction(O.CONVERT, [counter], shape=_array(E.F32)))
    scaled = make_instruction(O.MULTIPLY, [vector, vector_of(make_constant(np.float32(1.5)))])
    less = make_instruction(O.SUBTRACT, [counter, make_constant(np.int32(1))])
    root = make_tuple([less, make_instruction(O.ADD, [scaled, addend])])
    return condition, make_computation("body", root, [parameter])


_GT = a.ComparisonDirection.GT


def _tuple_branch(opcode: Opcode, shape: Shape) -> HloComputation:
    """A computation on a tuple of two arrays that returns the tuple of one op on them."""
    parameter = make_parameter(0, Shape.tuple([shape, shape]), "pair")
    x, y = (make_get_tuple_element(parameter, i) for i in range(2))
    return make_computation(opcode.value, make_tuple([make_instruction(opcode, [x, y])]), [parameter])


def _two_parameters(shape: Shape) -> HloComputation:
    """x, y -> x * y + y."""
    x, y = make_parameter(0, shape, "x"), make_parameter(1, shape, "y")
    root = make_instruction(O.ADD, [make_instruction(O.MULTIPLY, [x, y]), y])
    return make_computation("multiply_add", root, [x, y])


def _control_flow() -> Iterator[OpCase]:
    shape = _array(E.F32, (3, 5))
    pair = [Array(E.F32, (3, 5), positive), Array(E.F32, (3, 5), positive)]
    yield _case(O.CALL, pair, shape, a.CallAttributes(_two_parameters(shape)), ulps=2)
    fusion = a.FusionAttributes(a.FusionKind.LOOP, _two_parameters(shape))
    yield _case(O.FUSION, pair, shape, fusion, ulps=2)
    condition, body = _count_down_computations()
    state = (Array(E.S32, (), small_integer), Array(E.F32, (3,), positive))
    result = Shape.tuple([_array(E.S32), _array(E.F32, (3,))])
    yield _case(O.WHILE, [state], result, a.WhileAttributes(condition, body), ulps=16)
    operand: Operand = (pair[0], pair[1])
    branches = tuple(_tuple_branch(o, shape) for o in (O.ADD, O.SUBTRACT, O.MAXIMUM))
    for index in range(-1, 4):
        kind = Array(E.S32, (), _constant_value(index))
        attributes = a.ConditionalAttributes(branches)
        yield _case(O.CONDITIONAL, [kind, *[operand] * 3], Shape.tuple([shape]), attributes, note=str(index))
    for taken in (True, False):
        kind = Array(E.PRED, (), _constant_value(taken))
        attributes = a.ConditionalAttributes(branches[:2])
        yield _case(O.CONDITIONAL, [kind, *[operand] * 2], Shape.tuple([shape]), attributes, note=str(taken))


def _constant_value(value: int) -> Values:
    def values(t: ElementType, dims: tuple[int, ...], position: int, rng: np.random.Generator) -> NDArray:
        return np.full(dims, value, t.dtype)

    return values


def _structure() -> Iterator[OpCase]:
    for t in ALL:
        rng = np.random.default_rng(0)
        for dims in _sizes(t, ALL, (23,)):
            literal = Literal(any_value(t, dims, 0, rng))
            note = t.value + "x".join(["", *map(str, dims)])
            yield _case(O.CONSTANT, [], _array(t, dims), a.ConstantAttributes(literal), note=note)
        array = Array(t, (3, 5))
        yield _case(O.PARAMETER, [array], array.shape)
        yield _case(O.TUPLE, [array, Array(E.S32)], Shape.tuple([array.shape, _array(E.S32)]))
        yield _case(O.OPT_BARRIER, [array], array.shape)
        element = a.GetTupleElementAttributes(1)
        yield _case(O.GET_TUPLE_ELEMENT, [(Array(E.S32), array)], array.shape, element)
    yield _case(O.TUPLE, [], Shape.tuple([]))
    yield _case(
        O.TUPLE, [(Array(E.F32, (2,)), Array(E.S32))], Shape.tuple([Shape.tuple([_array(E.F32, (2,)), _array(E.S32)])])
    )
    pair: Operand = (Array(E.F32, (2,)), Array(E.S32, (0,)))
    shapes = Shape.tuple([_array(E.F32, (2,)), _array(E.S32, (0,))])
    yield _case(O.OPT_BARRIER, [pair], shapes)
    yield _case(O.GET_TUPLE_ELEMENT, [(pair, Array(E.PRED))], shapes, a.GetTupleElementAttributes(0))


_FAMILIES: tuple[Builder, ...] = (
    *(_unary, _binary, _compare, _select_and_clamp, _convert, _bitcast_convert, _subnormal),
    *(_movement, _reduce, _dot, _random, _control_flow, _structure),
)


CASES: tuple[OpCase, ...] = tuple(case for family in _FAMILIES for case in family())
"""All cases, in the order of the opcodes' families; the ids are unique."""
assert len({case.id for case in CASES}) == len(CASES), "two cases of one id"
