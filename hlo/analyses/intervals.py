"""Interval arithmetic: between which two numbers an integer lies, op by op.

A `Range` holds for every element of an array. Numbers here are Python's: they do not overflow. A result that could
overflow its type is unknown (the type's limits), unless the whole range wraps around. `ranges.py` goes through programs
with these rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..element_type import ElementType
from ..instruction import HloInstruction
from ..opcode import Opcode
from ..ops.elementwise import ComparisonDirection
from ..shape import Shape


class Range(NamedTuple):
    """The whole numbers from `low` to `high`, both included; `low` <= `high`. False is 0 and true is 1."""

    low: int
    high: int

    @property
    def is_single(self) -> bool:
        return self.low == self.high

    def contains(self, other: Range) -> bool:
        return self.low <= other.low and other.high <= self.high

    def joined(self, other: Range) -> Range:
        """The smallest range with both."""
        return Range(min(self.low, other.low), max(self.high, other.high))

    def met(self, other: Range) -> Range | None:
        """The intersection of both; None: nothing."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high) if low <= high else None


BOOLEAN = Range(0, 1)
_LIMITS: dict[ElementType, Range] = {
    e: BOOLEAN if e is ElementType.PRED else Range(*e.limits) for e in ElementType if not e.is_inexact
}


def limits(shape: Shape) -> Range | None:
    """The numbers that an element of an array of integers or booleans can have; None for all other shapes."""
    return None if shape.element_type is None else _LIMITS.get(shape.element_type)


def wrapped(low: int, high: int, element: ElementType) -> Range:
    """The values of the type, which wraps around, for the exact results from `low` to `high`."""
    whole = _LIMITS[element]
    if whole.low <= low and high <= whole.high:
        return Range(low, high)
    wrapped = (low - whole.low) // (whole.high - whole.low + 1) * (whole.high - whole.low + 1)
    return Range(low - wrapped, high - wrapped) if high - wrapped <= whole.high else whole


Transfer = Callable[[HloInstruction, Sequence[Range]], Range | None]
"""transfer(instruction, ranges of its operands) -> the range of its result; None: unknown."""

TRANSFER: dict[Opcode, Transfer] = {}
"""By opcode. All operands of the instruction are arrays of integers or booleans."""


def transfer(instruction: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """The range of `instruction` on operands of these ranges; None: unknown."""
    rule = TRANSFER.get(instruction.opcode)
    element = instruction.shape.element_type
    if rule is None or element is None or (element.is_small and instruction.opcode not in _MOVES):
        return None  # small types are computed in wider ones
    return rule(instruction, operands)


def _rule(*opcodes: Opcode) -> Callable[[Transfer], Transfer]:
    def decorate(function: Transfer) -> Transfer:
        for opcode in opcodes:
            TRANSFER[opcode] = function
        return function

    return decorate


@_rule(Opcode.CONSTANT)
def _constant(i: HloInstruction, _: Sequence[Range]) -> Range | None:
    array: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = i.attributes.literal.array
    if not 0 < array.size <= 1 << 12:
        return None
    if array.size == 1:
        value = int(array.reshape(())[()])
        return Range(value, value)
    if i.shape.element.is_small:
        return None  # NumPy has no minimum of them
    return Range(int(array.min()), int(array.max()))


@_rule(Opcode.IOTA)
def _iota(i: HloInstruction, _: Sequence[Range]) -> Range | None:
    last = i.shape.dimensions[i.attributes.iota_dimension] - 1
    return wrapped(0, max(last, 0), i.shape.element)


@_rule(Opcode.ADD)
def _add(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    if i.shape.element is ElementType.PRED:
        return Range(max(a.low, b.low), max(a.high, b.high))
    return wrapped(a.low + b.low, a.high + b.high, i.shape.element)


@_rule(Opcode.SUBTRACT)
def _subtract(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    if i.operands[0] is i.operands[1]:
        return Range(0, 0)
    return wrapped(a.low - b.high, a.high - b.low, i.shape.element)


@_rule(Opcode.MULTIPLY)
def _multiply(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    products = [x * y for x in a for y in b]
    if i.operands[0] is i.operands[1]:
        products = [0 if a.low < 0 < a.high else a.low * a.low, a.low * a.low, a.high * a.high]
    return wrapped(min(products), max(products), i.shape.element)


@_rule(Opcode.NEGATE)
def _negate(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    (a,) = operands
    return wrapped(-a.high, -a.low, i.shape.element)


@_rule(Opcode.ABS)
def _abs(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    (a,) = operands
    low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return wrapped(low, max(abs(a.low), abs(a.high)), i.shape.element)


@_rule(Opcode.SIGN)
def _sign(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    (a,) = operands
    return Range((a.low > 0) - (a.low < 0), (a.high > 0) - (a.high < 0))


def _quotient(a: int, b: int) -> int:
    """Division that rounds towards zero, of whole numbers of any size."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@_rule(Opcode.DIVIDE)
def _divide(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    if b.low <= 0 <= b.high:
        return None  # division by zero has a result of its own
    quotients = [_quotient(x, y) for x in a for y in b]
    return wrapped(min(quotients), max(quotients), i.shape.element)


@_rule(Opcode.REMAINDER)
def _remainder(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """It has the sign of the dividend and is closer to zero than both; of a division by zero it is the dividend."""
    a, b = operands
    largest = max(abs(b.low), abs(b.high)) - 1
    if b.low <= 0 <= b.high:
        return Range(min(a.low, 0), max(a.high, 0))
    if max(abs(a.low), abs(a.high)) < min(abs(b.low), abs(b.high)):
        return a
    return Range(max(min(a.low, 0), -largest), min(max(a.high, 0), largest))


@_rule(Opcode.MAXIMUM)
def _maximum(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    return Range(max(a.low, b.low), max(a.high, b.high))


@_rule(Opcode.MINIMUM)
def _minimum(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    return Range(min(a.low, b.low), min(a.high, b.high))


@_rule(Opcode.CLAMP)
def _clamp(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    lowest, a, highest = operands
    low, high = max(lowest.low, a.low), max(lowest.high, a.high)
    return Range(min(low, highest.low), min(high, highest.high))


@_rule(Opcode.SELECT)
def _select(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    chosen, a, b = operands
    return a.joined(b) if not chosen.is_single else a if chosen.low else b


@_rule(Opcode.AND)
def _and(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    if i.shape.element is ElementType.PRED:
        return _minimum(i, operands)
    tops = [x.high for x in operands if x.low >= 0]  # a bit that is not in one of the operands is not in the result
    return Range(0, min(tops)) if tops else None


@_rule(Opcode.OR, Opcode.XOR)
def _or(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, b = operands
    is_or = i.opcode is Opcode.OR
    if i.shape.element is ElementType.PRED and is_or:
        return _maximum(i, operands)
    if a.low < 0 or b.low < 0:
        return None
    return Range(max(a.low, b.low) if is_or else 0, (1 << max(a.high, b.high).bit_length()) - 1)


@_rule(Opcode.NOT)
def _not(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """Without a sign, the largest number minus the operand; with a sign, -1 minus the operand."""
    (a,) = operands
    top = _LIMITS[i.shape.element].high if not i.shape.element.is_signed else -1
    return Range(top - a.high, top - a.low)


@_rule(Opcode.SHIFT_LEFT)
def _shift_left(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    a, by = operands
    if not 0 <= by.low <= by.high < i.shape.element.bit_width:
        return None
    results = [x << n for x in a for n in by]
    return wrapped(min(results), max(results), i.shape.element)


@_rule(Opcode.SHIFT_RIGHT_ARITHMETIC, Opcode.SHIFT_RIGHT_LOGICAL)
def _shift_right(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """Of a number without its sign bit set both shifts are one, and by any number they make it smaller, or 0."""
    a, by = operands
    if a.low < 0 or a.high >= 1 << (i.shape.element.bit_width - 1):
        return None
    if not 0 <= by.low <= by.high < i.shape.element.bit_width:
        return Range(0, a.high)
    return Range(a.low >> by.high, a.high >> by.low)


@_rule(Opcode.POPULATION_COUNT, Opcode.COUNT_LEADING_ZEROS)
def _count(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    return Range(0, i.shape.element.bit_width)


@_rule(Opcode.CONVERT)
def _convert(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    (a,) = operands
    if i.shape.element is ElementType.PRED:
        return Range(int(not a.low <= 0 <= a.high), int(a != (0, 0)))
    return wrapped(a.low, a.high, i.shape.element)


_D = ComparisonDirection
MIRRORED = {_D.LT: _D.GT, _D.GT: _D.LT, _D.LE: _D.GE, _D.GE: _D.LE, _D.EQ: _D.EQ, _D.NE: _D.NE}
"""a DIRECTION b is b MIRRORED a."""
INVERSE = {_D.LT: _D.GE, _D.GE: _D.LT, _D.GT: _D.LE, _D.LE: _D.GT, _D.EQ: _D.NE, _D.NE: _D.EQ}
"""not (a DIRECTION b) is a INVERSE b."""


def compared(direction: ComparisonDirection, a: Range, b: Range) -> Range:
    """The value of a comparison: (1, 1) for always true, (0, 0) for never."""
    if direction in (_D.GT, _D.GE, _D.NE):
        found = compared(INVERSE[direction], a, b)
        return Range(1 - found.high, 1 - found.low)
    if direction is _D.EQ:
        always, never = a.is_single and a == b, a.met(b) is None
    elif direction is _D.LT:
        always, never = a.high < b.low, a.low >= b.high
    else:
        always, never = a.high <= b.low, a.low > b.high
    return Range(int(always), int(not never))


def narrowed(direction: ComparisonDirection, a: Range, b: Range) -> Range | None:
    """The part of `a` in which a DIRECTION b can be true; None: it never is."""
    match direction:
        case _D.LT:
            return a.met(Range(min(a.low, b.high - 1), b.high - 1))
        case _D.LE:
            return a.met(Range(min(a.low, b.high), b.high))
        case _D.GT:
            return a.met(Range(b.low + 1, max(a.high, b.low + 1)))
        case _D.GE:
            return a.met(Range(b.low, max(a.high, b.low)))
        case _D.EQ:
            return a.met(b)
        case _:
            if not b.is_single:
                return a
            low, high = a.low + (a.low == b.low), a.high - (a.high == b.low)
            return Range(low, high) if low <= high else None


@_rule(Opcode.COMPARE)
def _compare(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    direction = i.attributes.direction
    if i.operands[0] is i.operands[1]:
        return Range(1, 1) if direction in (_D.EQ, _D.LE, _D.GE) else Range(0, 0)
    return compared(direction, *operands)


@_rule(
    Opcode.BROADCAST, Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.REVERSE, Opcode.SLICE, Opcode.COPY,
    Opcode.DYNAMIC_SLICE, Opcode.OPT_BARRIER,
)  # fmt: skip
def _first(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """The result's elements are some of the first operand's."""
    return operands[0]


@_rule(Opcode.GATHER)
def _gather(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """Elements of the array, and zeros if a slice has none."""
    return operands[0].joined(Range(0, 0)) if 0 in i.attributes.slice_sizes else operands[0]


@_rule(Opcode.CONCATENATE)
def _all(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    found = operands[0]
    for each in operands[1:]:
        found = found.joined(each)
    return found


@_rule(Opcode.PAD, Opcode.DYNAMIC_UPDATE_SLICE)
def _two(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    return operands[0].joined(operands[1])


@_rule(Opcode.SORT)
def _sort(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    return operands[0] if len(operands) == 1 else None


@_rule(Opcode.REDUCE)
def _reduce(i: HloInstruction, operands: Sequence[Range]) -> Range | None:
    """Sums, extrema, and reducers of one logical op; `start` may be used more than once where that is harmless."""
    reducer = i.attributes.to_apply.root
    if len(operands) != 2 or reducer.opcode not in _REDUCERS or i.shape.element is ElementType.PRED:
        return None
    if {o.opcode for o in reducer.operands} != {Opcode.PARAMETER} or reducer.operands[0] is reducer.operands[1]:
        return None
    array, start = operands
    if reducer.opcode is not Opcode.ADD:
        return array.joined(start)
    count = math.prod(i.operands[0].shape.dimensions[d] for d in i.attributes.dimensions)
    return wrapped(start.low + count * array.low, start.high + count * array.high, i.shape.element)


_REDUCERS = frozenset({Opcode.ADD, Opcode.MAXIMUM, Opcode.MINIMUM})
_MOVES = frozenset(o for o, rule in TRANSFER.items() if rule in (_constant, _first, _gather, _all, _two, _sort))
"""These only move elements, of any type."""
