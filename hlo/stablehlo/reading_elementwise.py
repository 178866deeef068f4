"""Reading elementwise operations whose meaning in StableHLO differs from HLO's for some types.

The larger of two complex numbers is by their real parts, then by their imaginary parts. A complex number is true if its
real part is. Bits are reinterpreted between all types, also as truth values and as complex numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..builder import make_constant
from ..element_type import ElementType, element_type_named
from ..instruction import HloInstruction
from ..mlir.tree import Operation
from ..opcode import Opcode
from ..ops.elementwise import ComparisonDirection
from ..ops.movement import BroadcastAttributes, ConcatenateAttributes, IotaAttributes, SliceAttributes
from ..ops.reduce import ReduceAttributes
from ..shape import Shape
from .instruction_builders import combination, compare, convert, reshape, splat
from .ops import OP_NAMED
from .scope import Rule, Scope, declared
from .table_rules import by_table, read_by_table

Results = Sequence[HloInstruction]
E = ElementType


def _extremum(direction: ComparisonDirection) -> Rule:
    def rule(scope: Scope, operation: Operation) -> Results:
        if not _is_complex(scope, operation):
            return read_by_table(scope, operation)
        a, b = scope.operands(operation)
        parts = [[scope.op(opcode, (x,)) for x in (a, b)] for opcode in (Opcode.REAL, Opcode.IMAG)]
        first = compare(scope, direction, *parts[0])
        equal = compare(scope, ComparisonDirection.EQ, *parts[0])
        second = scope.op(Opcode.AND, (equal, compare(scope, direction, *parts[1])))
        return [scope.op(Opcode.SELECT, (scope.op(Opcode.OR, (first, second)), a, b))]

    return rule


def _is_complex(scope: Scope, operation: Operation) -> bool:
    return scope.values[operation.operands[0]].shape.element.is_complex


def _cbrt(scope: Scope, operation: Operation) -> Results:
    """Of a complex number the power, as in XLA."""
    if not _is_complex(scope, operation):
        return read_by_table(scope, operation)
    (operand,) = scope.operands(operation)
    return [scope.op(Opcode.POWER, (operand, splat(scope, 1 / 3, operand.shape)))]


def _convert(scope: Scope, operation: Operation) -> Results:
    shape = declared(operation)
    operands = scope.operands(operation)
    if shape is not None and shape.element is E.PRED and operands[0].shape.element.is_complex:
        operands = [scope.op(Opcode.REAL, operands)]
    return by_table(scope, operation, OP_NAMED["stablehlo.convert"], operands)


def _bitcast_convert(scope: Scope, operation: Operation) -> Results:
    shape = declared(operation)
    (operand,) = scope.operands(operation)
    if shape is None or shape.element is operand.shape.element:
        return read_by_table(scope, operation)
    special = [s.element is E.PRED or s.element.is_complex for s in (operand.shape, shape)]
    if not any(special):
        return read_by_table(scope, operation)
    bits = _bits_of(scope, operand)
    return [_of_bits(scope, bits, shape)]


def _bits_of(scope: Scope, x: HloInstruction) -> HloInstruction:
    """Truth values, with a last dimension of the bits of each element, the lowest first."""
    element, sizes = x.shape.element, x.shape.dimensions
    if element is E.PRED:
        return reshape(scope, x, (*sizes, 1))
    if element.is_complex:
        halves = [_bits_of(scope, scope.op(opcode, (x,))) for opcode in (Opcode.REAL, Opcode.IMAG)]
        return scope.op(Opcode.CONCATENATE, halves, ConcatenateAttributes(len(sizes)))
    word = _unsigned(element)
    x = x if element is word else scope.op(Opcode.BITCAST_CONVERT, (x,), shape=Shape.array(word, sizes))
    full = Shape.array(word, (*sizes, word.bit_width))
    spread = scope.op(Opcode.BROADCAST, (x,), BroadcastAttributes(tuple(range(len(sizes)))), full)
    places = scope.op(Opcode.IOTA, (), IotaAttributes(len(sizes)), full)
    shifted = scope.op(Opcode.SHIFT_RIGHT_LOGICAL, (spread, places))
    lowest = scope.op(Opcode.AND, (shifted, splat(scope, 1, full)))
    return compare(scope, ComparisonDirection.EQ, lowest, splat(scope, 1, full))


def _of_bits(scope: Scope, bits: HloInstruction, shape: Shape) -> HloInstruction:
    """The array of elements with these bits."""
    element, sizes = shape.element, shape.dimensions
    if element is E.PRED:
        return reshape(scope, bits, sizes)
    bits = reshape(scope, bits, (*sizes, element.bit_width))
    if element.is_complex:
        half = element.bit_width // 2
        parts = []
        for start in (0, half):
            starts, limits = (*(0 for _ in sizes), start), (*sizes, start + half)
            cut = scope.op(Opcode.SLICE, (bits,), SliceAttributes(starts, limits, (1,) * len(starts)))
            parts.append(_of_bits(scope, cut, Shape.array(element.real, sizes)))
        return scope.op(Opcode.COMPLEX, parts)
    word = _unsigned(element)
    numbers = convert(scope, bits, word)
    places = scope.op(Opcode.IOTA, (), IotaAttributes(len(sizes)), numbers.shape)
    moved = scope.op(Opcode.SHIFT_LEFT, (numbers, places))
    zero = scope.add(make_constant(np.zeros((), word.dtype)))
    whole = scope.op(Opcode.REDUCE, (moved, zero), ReduceAttributes((len(sizes),), combination(Opcode.OR, word)))
    return whole if element is word else scope.op(Opcode.BITCAST_CONVERT, (whole,), shape=shape)


def _unsigned(element: ElementType) -> ElementType:
    """The unsigned integers of the width of a type."""
    found = element_type_named(f"u{element.bit_width}")
    assert found is not None
    return found


RULES: dict[str, Rule] = {
    "stablehlo.maximum": _extremum(ComparisonDirection.GT),
    "stablehlo.minimum": _extremum(ComparisonDirection.LT),
    "stablehlo.cbrt": _cbrt,
    "stablehlo.convert": _convert,
    "stablehlo.bitcast_convert": _bitcast_convert,
}
