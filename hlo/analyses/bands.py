"""Which elements of a matrix matter, where a mask made of positions says so: a causal mask, a window that slides.

    mask = compare(broadcast(iota), broadcast(iota)), direction=GE         i >= j
    select(mask, scores, -inf)                                             scores[i, j] matter where i >= j

A *band* of an array has, of each of its matrices (the two most minor dimensions), the elements [i, j] with
`i + low <= j <= i + high`. Two questions are answered with a band:

* `looked_at`: outside of it, no operation uses an array's elements: all that reads them is a select that takes the
  other operand there. So they are not computed.
* `repeated_outside`: outside of it a row's elements all have one value, perhaps another one in each row and each run. A
  softmax has 0 there, or NaN if its row has one; code that relies on the 0 checks one element.

Masks are comparisons of sums of iotas and constants, combined with `and`, `or` and `not`. Fusions that make operands of
a fusion are looked into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..element_type import ElementType
from ..ir import HloInstruction
from ..opcode import Opcode
from ..ops import Trait, has_trait
from ..ops.elementwise import ComparisonDirection as Direction


class Band(NamedTuple):
    """The elements [i, j] with `i + low <= j <= i + high`."""

    low: float
    high: float
    """Integers or infinities."""

    def hull(self, other: Band) -> Band:
        """The smallest band that has both."""
        return Band(min(self.low, other.low), max(self.high, other.high))

    def both(self, other: Band) -> Band:
        """The intersection."""
        return Band(max(self.low, other.low), min(self.high, other.high))

    def size(self) -> tuple[int, float]:
        """Less for a smaller band."""
        return (self.low == -math.inf) + (self.high == math.inf), self.high - self.low

    def transposed(self) -> Band:
        """The band of the transposed matrix."""
        return Band(-self.high, -self.low)


EVERYTHING = Band(-math.inf, math.inf)
NOTHING = Band(math.inf, -math.inf)


class _Value(NamedTuple):
    """An instruction, and which of its dimensions are the rows and the columns of the matrix in question."""

    instruction: HloInstruction
    rows: int
    columns: int
    fusions: tuple[HloInstruction, ...] = ()
    """Where it is, outermost first: its parameters are their operands."""

    def operand(self, number: int) -> _Value:
        """An operand of the same dimensions."""
        return self._replace(instruction=self.instruction.operands[number])


_DEPTH = 64
"""Longer ways through a program are not followed."""


def looked_at(value: HloInstruction, users: Sequence[HloInstruction]) -> Band:
    """The band of an array that matters to `users`: all instructions of its computation that read it."""
    rank = value.shape.rank
    if rank < 2 or not users:
        return EVERYTHING
    found = NOTHING
    for user in users:
        if user.opcode is not Opcode.FUSION:
            return EVERYTHING
        for number, operand in enumerate(user.operands):
            if operand is value:
                parameter = user.attributes.calls.parameters[number]
                found = found.hull(_looked_at(_Value(parameter, rank - 2, rank - 1, (user,)), {}))
    return found


def _looked_at(value: _Value, known: dict[HloInstruction, Band]) -> Band:
    """Of a value in the body of a fusion. `known`: of other values of this body."""
    instruction = value.instruction
    if (done := known.get(instruction)) is not None:
        return done
    body = value.fusions[-1].attributes.calls
    found = NOTHING
    if instruction is body.root or len(known) > _DEPTH:
        found = EVERYTHING
    for user in body.users[instruction]:
        if found == EVERYTHING:
            break
        if not has_trait(user.opcode, Trait.ELEMENTWISE) or user.shape.dimensions != instruction.shape.dimensions:
            found = EVERYTHING
            break
        wanted = _looked_at(value._replace(instruction=user), known)
        if user.opcode is Opcode.SELECT and user.operands[0] is not instruction:
            predicate = value._replace(instruction=user.operands[0])
            for number, answer in ((1, True), (2, False)):
                if user.operands[number] is instruction:
                    found = found.hull(wanted.both(_where(predicate, answer)))
        else:
            found = found.hull(wanted)
    known[instruction] = found
    return found


def mask_of(select: HloInstruction) -> tuple[Band, HloInstruction] | None:
    """A band, and the operand of a select that is its result outside of the band; None if no band is known."""
    predicate, chosen, other = select.operands
    rank = select.shape.rank
    if rank < 2 or predicate.shape.dimensions != select.shape.dimensions:
        return None
    value = _Value(predicate, rank - 2, rank - 1)
    band, outside = min(((_where(value, True), other), (_where(value, False), chosen)), key=lambda way: way[0].size())
    return None if band == EVERYTHING else (band, outside)


def repeated_outside(value: HloInstruction, fusions: tuple[HloInstruction, ...] = ()) -> Band:
    """Outside of this band, the elements of each row of an array are equal within a run. `fusions`: where it is,
    outermost first."""
    rank = value.shape.rank
    return _repeated(_Value(value, rank - 2, rank - 1, fusions), {}) if rank >= 2 else EVERYTHING


def _repeated(value: _Value, known: dict[tuple[HloInstruction, ...], Band]) -> Band:
    instruction = value.instruction
    key = (*value.fusions, instruction)
    if (done := known.get(key)) is not None:
        return done
    known[key] = EVERYTHING if len(known) > _DEPTH else _repeated_in(value, known)
    return known[key]


def _repeated_in(value: _Value, known: dict[tuple[HloInstruction, ...], Band]) -> Band:
    instruction = value.instruction
    match instruction.opcode:
        case Opcode.IOTA:
            return EVERYTHING if instruction.attributes.iota_dimension == value.columns else NOTHING
        case Opcode.BROADCAST:
            dimensions = instruction.attributes.dimensions
            if value.columns not in dimensions:
                return NOTHING
            inner = _before_broadcast(value)
            return EVERYTHING if inner is None else _repeated(inner, known)
        case Opcode.SELECT:
            predicate, *arms = (value.operand(k) for k in range(3))
            if predicate.instruction.shape.dimensions == instruction.shape.dimensions:
                bands = [_repeated(arm, known) for arm in arms]
                found = [_where(predicate, True).hull(bands[1]), _where(predicate, False).hull(bands[0])]
                found.append(bands[0].hull(bands[1]).hull(_repeated(predicate, known)))
                return min(found, key=Band.size)
    if has_trait(instruction.opcode, Trait.ELEMENTWISE) and instruction.operands:
        band = NOTHING
        for number, operand in enumerate(instruction.operands):
            same = operand.shape.is_array and operand.shape.dimensions == instruction.shape.dimensions
            band = band.hull(_repeated(value.operand(number), known) if same else EVERYTHING)
        return band
    inner = _definition(value)
    return EVERYTHING if inner is None else _repeated(inner, known)


def _before_broadcast(value: _Value) -> _Value | None:
    """The operand of a broadcast, if it has both dimensions of the matrix."""
    instruction = value.instruction
    dimensions = tuple(instruction.attributes.dimensions)
    operand = instruction.operands[0]
    for mine, theirs in enumerate(dimensions):
        if operand.shape.dimensions[mine] != instruction.shape.dimensions[theirs]:
            return None
    if value.rows not in dimensions or value.columns not in dimensions:
        return None
    return value._replace(
        instruction=operand, rows=dimensions.index(value.rows), columns=dimensions.index(value.columns)
    )


def _definition(value: _Value) -> _Value | None:
    """The instruction that defines a fusion's result or a parameter of its body; None for an opaque value."""
    instruction, index = value.instruction, None
    if instruction.opcode is Opcode.PARAMETER and value.fusions:
        *outer, fusion = value.fusions
        operand = fusion.operands[instruction.attributes.number]
        return value._replace(instruction=operand, fusions=tuple(outer))
    if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
        index = instruction.attributes.index
        instruction = instruction.operands[0]
    if instruction.opcode is not Opcode.FUSION:
        return None
    root = instruction.attributes.calls.root
    if index is not None:
        if root.opcode is not Opcode.TUPLE:
            return None
        root = root.operands[index]
    return value._replace(instruction=root, fusions=(*value.fusions, instruction))


def _where(predicate: _Value, answer: bool) -> Band:
    """A band that has all elements at which a predicate is `answer`."""
    instruction = predicate.instruction
    match instruction.opcode:
        case Opcode.NOT:
            return _where(predicate.operand(0), not answer)
        case Opcode.AND | Opcode.OR:
            first, second = (_where(predicate.operand(k), answer) for k in range(2))
            return first.both(second) if answer is (instruction.opcode is Opcode.AND) else first.hull(second)
        case Opcode.COMPARE:
            return _where_compared(predicate, answer)
        case Opcode.BROADCAST:
            inner = _before_broadcast(predicate)
        case _:
            inner = _definition(predicate)
    return EVERYTHING if inner is None else _where(inner, answer)


_OPPOSITE = {
    Direction.GE: Direction.LT, Direction.LT: Direction.GE, Direction.GT: Direction.LE, Direction.LE: Direction.GT,
    Direction.EQ: Direction.NE, Direction.NE: Direction.EQ,
}  # fmt: skip


def _where_compared(predicate: _Value, answer: bool) -> Band:
    direction = predicate.instruction.attributes.direction
    left, right = (_sum(predicate.operand(k)) for k in range(2))
    if left is None or right is None:
        return EVERYTHING
    difference = left.minus(right)
    match direction if answer else _OPPOSITE[direction]:
        case Direction.GE:
            return difference.not_negative()
        case Direction.GT:
            return difference.plus(-1).not_negative()
        case Direction.LE:
            return difference.negated().not_negative()
        case Direction.LT:
            return difference.negated().plus(-1).not_negative()
        case Direction.EQ:
            return difference.not_negative().both(difference.negated().not_negative())
    return EVERYTHING


class _Sum(NamedTuple):
    """rows * i + columns * j + constant"""

    rows: int
    columns: int
    constant: int

    def minus(self, other: _Sum) -> _Sum:
        return _Sum(*(a - b for a, b in zip(self, other, strict=True)))

    def plus(self, constant: int) -> _Sum:
        return self._replace(constant=self.constant + constant)

    def negated(self) -> _Sum:
        return _Sum(-self.rows, -self.columns, -self.constant)

    def not_negative(self) -> Band:
        """The band where it is 0 or more."""
        if self.rows == -self.columns and self.rows > 0:  # i - j >= -c / m
            return Band(-math.inf, self.constant // self.rows)
        if self.rows == -self.columns and self.rows < 0:
            return Band(-(self.constant // self.columns), math.inf)
        return EVERYTHING


_LIMIT = {ElementType.S32: 1 << 31, ElementType.S64: 1 << 63}


def _sum(value: _Value) -> _Sum | None:
    """An integer that is a sum of the position's parts; None for others, and where it may wrap around."""
    found = _unlimited(value)
    if found is None or value.instruction.shape.element not in _LIMIT:
        return None
    sizes = value.instruction.shape.dimensions
    most = abs(found.constant)
    for factor, dimension in ((found.rows, value.rows), (found.columns, value.columns)):
        most += abs(factor) * (sizes[dimension] if dimension < len(sizes) else 1)
    return found if most < _LIMIT[value.instruction.shape.element] else None


def _unlimited(value: _Value) -> _Sum | None:
    instruction = value.instruction
    match instruction.opcode:
        case Opcode.CONSTANT if instruction.shape.rank == 0 and instruction.shape.element in _LIMIT:
            return _Sum(0, 0, int(instruction.attributes.literal.array[()]))
        case Opcode.IOTA:
            along = instruction.attributes.iota_dimension
            if along not in (value.rows, value.columns):
                return None
            return _Sum(int(along == value.rows), int(along == value.columns), 0)
        case Opcode.BROADCAST:
            dimensions = tuple(instruction.attributes.dimensions)
            operand = instruction.operands[0]
            absent = operand.shape.rank  # a dimension that the operand does not have
            rows, columns = (dimensions.index(d) if d in dimensions else absent for d in (value.rows, value.columns))
            if any(operand.shape.dimensions[m] != instruction.shape.dimensions[d] for m, d in enumerate(dimensions)):
                return None
            return _sum(value._replace(instruction=operand, rows=rows, columns=columns))
        case Opcode.CONVERT if instruction.operands[0].shape.element in _LIMIT:
            return _sum(value.operand(0))
        case Opcode.NEGATE:
            negated = _sum(value.operand(0))
            return negated and negated.negated()
        case Opcode.ADD | Opcode.SUBTRACT:
            first, second = _sum(value.operand(0)), _sum(value.operand(1))
            if first is None or second is None:
                return None
            return first.minus(second if instruction.opcode is Opcode.SUBTRACT else second.negated())
        case Opcode.MULTIPLY:
            first, second = _sum(value.operand(0)), _sum(value.operand(1))
            if first is None or second is None:
                return None
            factor, term = (first, second) if first[:2] == (0, 0) else (second, first)
            return _Sum(*(factor.constant * part for part in term)) if factor[:2] == (0, 0) else None
    inner = _definition(value)
    return None if inner is None else _sum(inner)
