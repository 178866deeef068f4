"""Reducers on (value, index) pairs that keep the largest or smallest value: argmax and argmin, in any spelling.

A reducer that consists of comparisons, logic and selections sees only how its values compare with each other, and its
indices. So there are few cases, and a table of all of them determines its result: it is no matter how it is written.
"""

from __future__ import annotations

from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..instruction import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops.elementwise import ComparisonDirection, ComparisonType

_LOGIC = {Opcode.AND: np.logical_and, Opcode.OR: np.logical_or, Opcode.XOR: np.logical_xor}
_RELATIONS = {
    ComparisonDirection.EQ: np.equal, ComparisonDirection.NE: np.not_equal, ComparisonDirection.LT: np.less,
    ComparisonDirection.LE: np.less_equal, ComparisonDirection.GT: np.greater, ComparisonDirection.GE: np.greater_equal,
}  # fmt: skip


_known: WeakKeyDictionary[HloComputation, Opcode | None] = WeakKeyDictionary()


def arg_reducer(reducer: HloComputation) -> Opcode | None:
    """MAXIMUM if, of two pairs in the order of their indices, the one with the larger value is the result, MINIMUM for
    the smaller value; of equal values the first, and NaN before all numbers. None for all other reducers. Which of two
    zeros is the value may depend on the order.

    >>> import hloom
    >>> from hloom import hlo, numpy as jnp
    >>> module = hloom.make_hlo(lambda x: jnp.argmin(x))(jnp.ones(3))
    >>> [arg_reducer(c).value for c in module.computations if len(c.parameters) == 4]
    ['minimum']
    """
    if reducer not in _known:
        _known[reducer] = _recognized(reducer)
    return _known[reducer]


def _recognized(reducer: HloComputation) -> Opcode | None:
    if len(reducer.parameters) != 4 or not _only_compares(reducer):
        return None
    values, indices = (p.shape.element for p in reducer.parameters[:2])
    if not indices.is_integral or indices.is_small or values.is_complex or (values.is_small and values.is_floating):
        return None
    numbers = [np.nan, -1.0, -0.0, 0.0, 1.0] if values.is_floating else [0, 1]
    cases = [(a, i, b, j) for a, b in product(numbers, numbers) for i, j in ((0, 1), (0, 0)) if i < j or _same(a, b)]
    columns = [np.array(column) for column in zip(*cases, strict=True)]
    value, index = _results(reducer, columns)
    for opcode in (Opcode.MAXIMUM, Opcode.MINIMUM):
        second = np.array([_second_is_better(opcode, a, b) for a, _, b, _ in cases])
        wanted = np.where(second, columns[2], columns[0])
        same_values = np.array_equal(value, wanted, equal_nan=values.is_floating)
        if same_values and np.array_equal(index, np.where(second, columns[3], columns[1])):
            return opcode
    return None


def _only_compares(reducer: HloComputation) -> bool:
    """True for comparisons of parameters of one kind, logic and selections, with a pair as the result."""
    for instruction in reducer.instructions:
        if instruction.opcode is Opcode.COMPARE:
            a, b = instruction.operands
            both = a.opcode is Opcode.PARAMETER and b.opcode is Opcode.PARAMETER
            if not both or a.attributes.number % 2 != b.attributes.number % 2:
                return False
            if instruction.attributes.type is ComparisonType.TOTALORDER and a.shape.element.is_floating:
                return False
        elif instruction.opcode in (*_LOGIC, Opcode.NOT):
            if any(o.opcode is Opcode.PARAMETER for o in instruction.operands):
                return False  # numbers
        elif instruction.opcode not in (Opcode.PARAMETER, Opcode.SELECT, Opcode.TUPLE):
            return False
    return reducer.root.opcode is Opcode.TUPLE


def _results(reducer: HloComputation, columns: list[Any]) -> list[Any]:
    """The reducer applied to each case."""
    known: dict[HloInstruction, Any] = {}
    for instruction in reducer.instructions:
        operands = [known[o] for o in instruction.operands]
        match instruction.opcode:
            case Opcode.PARAMETER:
                known[instruction] = columns[instruction.attributes.number]
            case Opcode.COMPARE:
                known[instruction] = _RELATIONS[instruction.attributes.direction](*operands)
            case Opcode.SELECT:
                known[instruction] = np.where(*operands)
            case Opcode.NOT:
                known[instruction] = np.logical_not(*operands)
            case Opcode.TUPLE:
                return operands
            case opcode:
                known[instruction] = _LOGIC[opcode](*operands)
    raise AssertionError("a reducer without a tuple at its end")


def _second_is_better(opcode: Opcode, a: float, b: float) -> bool:
    if np.isnan(a):
        return False
    return bool(np.isnan(b)) or (b > a if opcode is Opcode.MAXIMUM else b < a)


def _same(a: float, b: float) -> bool:
    """True for values that may meet with the same index: a pair and itself."""
    return bool(np.array_equal([a], [b], equal_nan=True) and np.signbit(a) == np.signbit(b))


def last_index(indices: HloInstruction, dimension: int) -> int | None:
    """The greatest number of an array of indices that grow along a dimension; None if they may not grow. These are
    ranges of numbers, and the results of splitting a range.

    >>> from hloom.hlo import ElementType, Opcode, Shape, make_instruction
    >>> from hloom.hlo.ops.movement import IotaAttributes
    >>> iota = make_instruction(Opcode.IOTA, (), IotaAttributes(1), Shape.array(ElementType.S32, (3, 5)))
    >>> last_index(iota, 1), last_index(iota, 0)
    (4, None)
    """
    if not indices.shape.element.is_integral:
        return None
    grows, greatest = _growth(indices, dimension)
    return greatest if grows and greatest <= np.iinfo(indices.shape.element.dtype).max else None


_UNKNOWN = False, 0


def _growth(x: HloInstruction, dimension: int | None) -> tuple[bool | None, int]:
    """Do the elements grow along a dimension (True), are they the same (None), or is it not known (False)? And the
    greatest, if they all are 0 or more."""
    match x.opcode:
        case Opcode.IOTA:
            along = x.attributes.iota_dimension
            return (True if along == dimension else None), x.shape.dimensions[along] - 1
        case Opcode.CONSTANT if not x.shape.rank and int(x.attributes.literal.array) > 0:
            return None, int(x.attributes.literal.array)
        case Opcode.BROADCAST:
            where = x.attributes.dimensions
            return _growth(x.operands[0], where.index(dimension) if dimension in where else None)
        case Opcode.RESHAPE if x.operands[0].opcode is Opcode.IOTA and x.operands[0].shape.rank == 1:
            return dimension is not None or None, x.shape.num_elements - 1
        case Opcode.ADD | Opcode.MULTIPLY:
            (first, a), (second, b) = (_growth(o, dimension) for o in x.operands)
            if False in (first, second):
                return _UNKNOWN
            return (True if first or second else None), a + b if x.opcode is Opcode.ADD else a * b
        case _:
            return _UNKNOWN
