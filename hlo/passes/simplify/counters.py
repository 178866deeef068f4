"""Rules of the control flow simplifier for values that a loop carries twice: counters in step, and equal values.

A scan counts its iterations beside a counter of the user's, and each of two nested loops may carry the same outer
index.
An element of the state that follows from another one can be left out of the state. All this holds for integers, which
wrap around: t iterations from `start` with step c give start + t c modulo 2^n, for every t.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from ...analyses.intervals import limits
from ...analyses.trip_count import InductionVariable, body_results, constant_step, induction_variable, state_element
from ...builder import make_get_tuple_element, make_instruction, make_tuple
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...support.records import dataclass
from ..patterns import binary, make_splat, splat_value
from ..rewrite import rewrite_computation
from .loops import has_tuple_state, initial_element, unchanged_elements, with_state

Instruction = HloInstruction


@dataclass(frozen=True, slots=True)
class _Counter:
    """An integer of the state that each iteration adds a constant to."""

    index: int
    start: HloInstruction
    step: int

    @property
    def first(self) -> int | None:
        """Where it starts, if that is a constant."""
        value = splat_value(self.start)
        return None if value is None else int(value)


def _counters(loop: Instruction) -> list[_Counter]:
    found = []
    for k, result in enumerate(body_results(loop.attributes.body) or ()):
        step = constant_step(result, k)
        if step and not result.shape.dimensions and not result.shape.element.is_small:
            found.append(_Counter(k, initial_element(loop, k), step))
    return found


def counters_in_step(loop: Instruction) -> Instruction | None:
    """Of two counters of one type, one is enough if the step of one is a multiple of the other's, and if they start
    together or at constants: b = start_b + (a - start_a) * (step_b / step_a) modulo 2^n."""
    if not has_tuple_state(loop):
        return None
    counters = _counters(loop)
    if len(counters) < 2:
        return None
    condition = loop.attributes.condition
    counters.sort(key=lambda c: not _readers(condition, c.index))  # the counter that the condition reads stays
    replaced: _Replaced = {}
    for number, kept in enumerate(counters):
        for other in counters[number + 1 :]:
            derived = _derived(kept, other)
            if derived is not None and kept.index not in replaced:
                replaced.setdefault(other.index, (kept.index, derived))
    return _without(loop, replaced) if replaced else None


def _derived(kept: _Counter, other: _Counter) -> Callable[[Instruction], Instruction] | None:
    """How `other` follows from `kept`; None if it does not, or not simply."""
    element = kept.start.shape.element
    if other.start.shape.element is not element or other.step % kept.step:
        return None
    factor = other.step // kept.step
    if kept.start is other.start and factor == 1:
        return lambda x: x
    a, b = kept.first, other.first
    if a is None or b is None:
        return None
    offset = (b - a * factor) & ((1 << element.bit_width) - 1)
    if element.is_signed and offset >> (element.bit_width - 1):
        offset -= 1 << element.bit_width

    def compute(x: Instruction) -> Instruction:
        scaled = x if factor == 1 else binary(Opcode.MULTIPLY, x, make_splat(factor, x.shape))
        return scaled if not offset else binary(Opcode.ADD, scaled, make_splat(offset, x.shape))

    return compute


def count_with_another(loop: Instruction) -> Instruction | None:
    """A counter that only counts a known number of iterations gives way to another one that starts at a constant and
    does not wrap around: the condition compares that one with where it ends."""
    known = induction_variable(loop) if has_tuple_state(loop) else None
    if known is None or not _only_counts(loop, known):
        return None
    for other in _counters(loop):
        first, whole = other.first, limits(other.start.shape)
        if other.index == known.index or first is None or whole is None:
            continue
        last = first + known.trip_count * other.step
        if whole.low <= last <= whole.high:
            return _counted_by(loop, known, other, last)
    return None


def _only_counts(loop: Instruction, known: InductionVariable) -> bool:
    """True if the counter is read by the condition's comparison and for its own step, and by nothing else."""
    condition, body = loop.attributes.condition, loop.attributes.body
    result = body.root.operands[known.index]
    if condition.root.opcode is not Opcode.COMPARE or result.opcode not in (Opcode.ADD, Opcode.SUBTRACT):
        return False
    return (
        _readers(condition, known.index) == {condition.root}
        and _readers(body, known.index) == {result}
        and body.users[result] == (body.root,)
        and body.root.operands.count(result) == 1
    )


def _readers(computation: HloComputation, index: int) -> set[Instruction]:
    """The users of an element of the state; also the users of the whole state, which read it too."""
    found: set[Instruction] = set()
    for user in computation.users[computation.parameters[0]]:
        if state_element(user) is None:
            found.add(user)
        elif user.attributes.index == index:
            found.update(computation.users[user])
    return found


def _counted_by(loop: Instruction, known: InductionVariable, other: _Counter, last: int) -> Instruction:
    condition = loop.attributes.condition
    direction = ComparisonDirection.LT if other.step > 0 else ComparisonDirection.GT
    now = make_get_tuple_element(condition.parameters[0], other.index)
    end = make_splat(last, now.shape)
    root = make_instruction(Opcode.COMPARE, (now, end), CompareAttributes(direction))
    new = rewrite_computation(condition, lambda old, moved: root if old is condition.root else moved)
    changed = replace(loop, attributes=WhileAttributes(new, loop.attributes.body))
    after = known.start + known.trip_count * known.step
    shape = initial_element(loop, known.index).shape
    return _without(changed, {known.index: (other.index, lambda x: make_splat(after, shape))})


def equal_elements(loop: Instruction) -> Instruction | None:
    """Two elements of the state are equal if they start with the same value, and if an iteration keeps both or replaces
    both by one value: one is enough."""
    if not has_tuple_state(loop):
        return None
    results = body_results(loop.attributes.body) or ()
    unchanged = unchanged_elements(loop)
    first: dict[Hashable, int] = {}
    replaced: _Replaced = {}
    for k, result in enumerate(results):
        same = first.setdefault((initial_element(loop, k), None if k in unchanged else result), k)
        if same != k:
            replaced[k] = same, lambda x: x
    return _without(loop, replaced) if replaced else None


_Replaced = dict[int, tuple[int, Callable[[Instruction], Instruction]]]
"""By element of the state that is not needed: another one, which is, and how it follows from that one."""


def _without(loop: Instruction, replaced: _Replaced) -> Instruction:
    """The result of the loop that carries only the other elements; in the condition, in the body and after the loop,
    the elements in `replaced` are computed."""

    def rewritten(computation: HloComputation) -> HloComputation:
        parameter = computation.parameters[0]
        made: dict[int, Instruction] = {}

        def visit(old: Instruction, moved: Instruction) -> Instruction:
            k = state_element(old)
            if k is None or k not in replaced:
                return moved
            if k not in made:
                source, value = replaced[k]
                made[k] = value(make_get_tuple_element(parameter, source))
            return made[k]

        return rewrite_computation(computation, visit)

    condition, body = rewritten(loop.attributes.condition), rewritten(loop.attributes.body)
    count = len(loop.shape.elements)
    kept = [k for k in range(count) if k not in replaced]
    smaller = with_state(replace(loop, attributes=WhileAttributes(condition, body)), kept)
    after = {k: make_get_tuple_element(smaller, n) for n, k in enumerate(kept)}
    for k, (source, value) in replaced.items():
        after[k] = value(after[source])
    return make_tuple([after[k] for k in range(count)])
