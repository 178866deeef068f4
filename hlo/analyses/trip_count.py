"""The counter of a loop, if its text shows one; and how often the loop runs, if the counter goes from a constant, by a
constant step, to a constant.

Source: XLA's while_loop_analysis.cc (ComputeWhileLoopTripCount).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..element_type import ElementType
from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops.elementwise import ComparisonDirection
from ..support.records import dataclass
from .intervals import Range, transfer

_MIRRORED = {
    ComparisonDirection.LT: ComparisonDirection.GT,
    ComparisonDirection.GT: ComparisonDirection.LT,
    ComparisonDirection.LE: ComparisonDirection.GE,
    ComparisonDirection.GE: ComparisonDirection.LE,
    ComparisonDirection.NE: ComparisonDirection.NE,
    ComparisonDirection.EQ: ComparisonDirection.EQ,
}


@dataclass(frozen=True, slots=True)
class InductionVariable:
    """The counter of a loop: element `index` of its state, from `start` in steps of `step` while below (LT) or, for
    negative steps, above (GT) `limit`."""

    index: int
    start: int
    step: int
    limit: int

    @property
    def trip_count(self) -> int:
        """How often the body runs."""
        return max(0, -((self.start - self.limit) // self.step))


def state_element(instruction: HloInstruction) -> int | None:
    """The element of the only parameter, a tuple, that `instruction` reads, or None."""
    if instruction.opcode is Opcode.GET_TUPLE_ELEMENT and instruction.operands[0].opcode is Opcode.PARAMETER:
        index: int = instruction.attributes.index
        return index
    return None


def body_results(body: HloComputation) -> tuple[HloInstruction, ...] | None:
    """The elements that a loop's body returns, if its root is a tuple; otherwise None."""
    return body.root.operands if body.root.opcode is Opcode.TUPLE else None


def initial_value(loop: HloInstruction, index: int) -> HloInstruction | None:
    """The initial value of element `index` of the state, if the operand is a tuple; otherwise None."""
    state = loop.operands[0]
    return state.operands[index] if state.opcode is Opcode.TUPLE else None


@dataclass(frozen=True, slots=True)
class Counter:
    """The counter of a loop whose ends are values: element `index` of its state goes by `step` while it is below (or,
    for a negative step, above) `limit`, or equal to it if `reaches`."""

    index: int
    step: int
    limit: HloInstruction
    """A constant of the condition, or the initial value of an element of the state that never changes."""
    limit_index: int | None
    """The number of that element."""
    reaches: bool
    element: ElementType


def counter_of(loop: HloInstruction) -> Counter | None:
    """The counter of a WHILE, if the comparison in its condition and the step in its body show one: from any value to
    any value that does not change in the loop.

    The comparison and the step may each be in a fusion.
    """
    root, compared = _looked_into(loop.attributes.condition.root)
    results = body_results(loop.attributes.body)
    if root.opcode is not Opcode.COMPARE or results is None:
        return None
    direction = root.attributes.direction
    for (counter, limit), towards in ((compared, direction), (compared[::-1], _MIRRORED[direction])):
        index, end = state_element(counter), _unchanging(limit, loop, results)
        step = None if index is None or end is None else constant_step(results[index], index)
        if index is None or end is None or not step:
            continue
        if towards in (_UPWARDS if step > 0 else _DOWNWARDS):
            return Counter(index, step, end, state_element(limit), towards in _REACHING, counter.shape.element)
    return None


_UPWARDS = (ComparisonDirection.LT, ComparisonDirection.LE)
_DOWNWARDS = (ComparisonDirection.GT, ComparisonDirection.GE)
_REACHING = (ComparisonDirection.LE, ComparisonDirection.GE)


def induction_variable(loop: HloInstruction) -> InductionVariable | None:
    """The counter of a WHILE from a constant to a constant; None if the text does not show it, if it would leave its
    type's range, or if the loop has more iterations than an s64 can count: such a loop may be in a program, but is not
    meant to run.

    The limit may be a constant in the condition, or an element of the state that starts constant and never changes.
    """
    counter = counter_of(loop)
    if counter is None:
        return None
    start, end = _integer(initial_value(loop, counter.index)), _integer(counter.limit)
    if start is None or end is None:
        return None
    if counter.reaches:
        end += 1 if counter.step > 0 else -1
    found = InductionVariable(counter.index, start, counter.step, end)
    last = start + found.trip_count * counter.step
    lowest, highest = counter.element.limits
    return found if lowest <= last <= highest and found.trip_count < 1 << 63 else None


def _unchanging(
    value: HloInstruction, loop: HloInstruction, results: tuple[HloInstruction, ...]
) -> HloInstruction | None:
    """A value of the condition that is the same in all iterations: a constant, or the initial value of an element of
    the state that the body passes on."""
    index = state_element(value)
    if index is None:
        return value if value.opcode is Opcode.CONSTANT and value.shape.element.is_integral else None
    return initial_value(loop, index) if state_element(results[index]) == index else None


def constant_step(result: HloInstruction, index: int) -> int | None:
    """The constant that the body adds to element `index`; `result` is that element's next value."""
    result, operands = _looked_into(result)
    if result.opcode not in (Opcode.ADD, Opcode.SUBTRACT):
        return None
    a, b = operands
    if state_element(a) == index:
        step = _integer(b)
        return step if step is None or result.opcode is Opcode.ADD else -step
    if state_element(b) == index and result.opcode is Opcode.ADD:
        return _integer(a)
    return None


def _looked_into(instruction: HloInstruction) -> tuple[HloInstruction, tuple[HloInstruction, ...]]:
    """The instruction that computes a value, and its operands; for a fusion, the one inside, with the fusion's operands
    instead of its parameters."""
    fusion, inside = instruction, None
    if instruction.opcode is Opcode.FUSION:
        inside = instruction.attributes.calls.root
    elif instruction.opcode is Opcode.GET_TUPLE_ELEMENT and instruction.operands[0].opcode is Opcode.FUSION:
        fusion = instruction.operands[0]
        root = fusion.attributes.calls.root
        inside = root.operands[instruction.attributes.index] if root.opcode is Opcode.TUPLE else None
    if inside is None:
        return instruction, instruction.operands
    operands = [fusion.operands[o.attributes.number] if o.opcode is Opcode.PARAMETER else o for o in inside.operands]
    return inside, tuple(operands)


def _integer(instruction: HloInstruction | None) -> int | None:
    """The value of a constant integer scalar."""
    if instruction is None or instruction.opcode is not Opcode.CONSTANT:
        return None
    if instruction.shape.dimensions or not instruction.shape.element.is_integral:
        return None
    return int(instruction.attributes.literal.array)


def known_trip_count(loop: HloInstruction) -> int | None:
    """How often the body of a WHILE runs, if that is known."""
    found = induction_variable(loop)
    return None if found is None else found.trip_count


@dataclass(frozen=True, slots=True)
class OpenLoop:
    """A loop around others, with a counter that has all values that its own may have; None: not known."""

    loop: HloInstruction
    counter: InductionVariable | None


def most_values(
    loop: HloInstruction, counter: Counter, around: Mapping[HloInstruction, OpenLoop]
) -> InductionVariable | None:
    """A counter that has all values that `counter` may have, if its ends follow from constants and from counters of
    loops around it, also where loops hand them on; an estimate, as the range of a counter that wraps around is not.
    `around`: those loops by the parameters of their bodies."""
    values = _Values(around)
    start, end = (values.of(value) for value in (initial_value(loop, counter.index), counter.limit))
    if start is None or end is None:
        return None
    if counter.step > 0:
        return InductionVariable(counter.index, start.low, 1, end.high + counter.reaches)
    return InductionVariable(counter.index, start.high, -1, end.low - counter.reaches)


_MOST_DEEP = 64
"""Instructions between the end of a loop and the counters that it follows from."""


class _Values:
    """The values that integers in loops may have: `around`, by the parameters of their bodies."""

    def __init__(self, around: Mapping[HloInstruction, OpenLoop], depth: int = 0) -> None:
        self._around = around
        self._known: dict[HloInstruction, Range | None] = {}
        self._depth = depth

    def of(self, value: HloInstruction | None) -> Range | None:
        """The least and the largest value of an integer scalar; None if it is not known."""
        if value is None or value.shape.element_type is None or value.shape.rank or not value.shape.element.is_integral:
            return None
        if value not in self._known:
            self._depth += 1
            self._known[value] = self._computed(value) if self._depth <= _MOST_DEEP else None
            self._depth -= 1
        return self._known[value]

    def _computed(self, value: HloInstruction) -> Range | None:
        if value.opcode is Opcode.FUSION:
            return self._inside(value, value.attributes.calls.root)
        if value.opcode is not Opcode.GET_TUPLE_ELEMENT:
            operands = [self.of(operand) for operand in value.operands]
            known = [operand for operand in operands if operand is not None]
            return transfer(value, known) if len(known) == len(operands) else None
        source, index = value.operands[0], value.attributes.index
        if source.opcode is Opcode.PARAMETER:
            return self._of_state(source, index)
        if source.opcode is Opcode.FUSION and source.attributes.calls.root.opcode is Opcode.TUPLE:
            return self._inside(source, source.attributes.calls.root.operands[index])
        return None

    def _of_state(self, state: HloInstruction, index: int) -> Range | None:
        """The values of an element of a loop's state."""
        outer = self._around.get(state)
        if outer is None:
            return None
        known = outer.counter
        if known is None or known.index != index:
            results = body_results(outer.loop.attributes.body)
            is_handed_on = results is not None and state_element(results[index]) == index
            return self.of(initial_value(outer.loop, index)) if is_handed_on else None
        last = known.start + max(known.trip_count - 1, 0) * known.step
        return Range(min(known.start, last), max(known.start, last))

    def _inside(self, fusion: HloInstruction, result: HloInstruction) -> Range | None:
        """The values of a result of a fusion, whose computation other fusions may share."""
        inside = _Values({}, self._depth)
        for parameter in fusion.attributes.calls.parameters:
            inside._known[parameter] = self.of(fusion.operands[parameter.attributes.number])
        return inside.of(result)
