"""How often a loop runs, if its text shows it: a counter from a constant, by a constant step, to a constant.

Source: XLA's while_loop_analysis.cc (ComputeWhileLoopTripCount).
"""

from __future__ import annotations

from ..ir import HloComputation, HloInstruction
from ..opcode import Opcode
from ..ops.elementwise import ComparisonDirection
from ..support.records import dataclass

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


def induction_variable(loop: HloInstruction) -> InductionVariable | None:
    """The counter of a WHILE; None if the text does not show it, if it would leave its type's range, or if the loop has
    more iterations than an s64 can count: such a loop may be in a program, but is not meant to run.

    The limit may be a constant in the condition, or an element of the state that starts constant and never changes.
    The comparison and the step may each be in a fusion.
    """
    root, compared = _looked_into(loop.attributes.condition.root)
    results = body_results(loop.attributes.body)
    if root.opcode is not Opcode.COMPARE or results is None:
        return None
    direction = root.attributes.direction
    counter, limit = compared
    if _limit_of(limit, loop, results) is None:
        counter, limit, direction = limit, counter, _MIRRORED[direction]
    index, end = state_element(counter), _limit_of(limit, loop, results)
    if index is None or end is None:
        return None
    start = _integer(initial_value(loop, index))
    step = constant_step(results[index], index)
    if start is None or step is None:
        return None
    if direction is ComparisonDirection.LE:
        end += 1
    elif direction is ComparisonDirection.GE:
        end -= 1
    upwards = direction in (ComparisonDirection.LT, ComparisonDirection.LE)
    downwards = direction in (ComparisonDirection.GT, ComparisonDirection.GE)
    if not ((upwards and step > 0) or (downwards and step < 0)):
        return None
    found = InductionVariable(index, start, step, end)
    last = start + found.trip_count * step
    lowest, highest = counter.shape.element.limits
    return found if lowest <= last <= highest and found.trip_count < 1 << 63 else None


def _limit_of(limit: HloInstruction, loop: HloInstruction, results: tuple[HloInstruction, ...]) -> int | None:
    index = state_element(limit)
    if index is None:
        return _integer(limit)
    unchanged = state_element(results[index]) == index
    return _integer(initial_value(loop, index)) if unchanged else None


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
