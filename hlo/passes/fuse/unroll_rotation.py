"""unroll-rotating-state: a loop that permutes large arrays runs several steps at a time.

A body that returns (f(a, b), a) for the state (a, b) hands an array from one element of the state to another. Each
element has one buffer, so every step would copy the array. After two steps both are new: (g, f(a, b)) with
g = f(f(a, b), a), where each is written over an array that is not needed any more. In general the steps are as many as
an array takes to be replaced on its way, or to come back to its element.

How often the loop runs decides the form. Known: a loop over groups of steps, then the rest. Unknown: two steps in
a body, the second one in a conditional on the loop's own condition; the false branch runs at most once.
Source of the idea: XLA's double buffering of loops (while_loop_unroller, loop_double_buffer_transformer).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...analyses.trip_count import InductionVariable, body_results, induction_variable, state_element
from ...builder import (
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
)
from ...effects import effects_of, live_instructions
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.control_flow import ConditionalAttributes, WhileAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...support.records import dataclass
from ..rewrite import map_computations, rewrite_computation
from .temporaries import LARGE_STATE_BYTES

MOST_STEPS = 4
"""At most so many steps at a time: the code grows with them."""

MOST_INSTRUCTIONS = 1000
"""Larger bodies are left alone: their steps take longer than a copy, and longer to compile."""

State = Sequence[HloInstruction]


@dataclass(frozen=True, slots=True)
class UnrollRotation:
    """Unrolls the loops in which an array of `LARGE_STATE_BYTES` or more changes its element of the state."""

    name: str = "unroll-rotating-state"

    def __call__(self, module: HloModule) -> HloModule:
        return with_loops(module, _unrolled)


def with_loops(module: HloModule, change: Callable[[HloInstruction], HloInstruction]) -> HloModule:
    """The module with `change(loop)` in the place of each while loop; elements of a tuple there are its parts."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode is Opcode.GET_TUPLE_ELEMENT and moved.operands[0].opcode is Opcode.TUPLE:
            return make_get_tuple_element(moved.operands[0], moved.attributes.index)
        return change(moved) if moved.opcode is Opcode.WHILE else moved

    def changed(computation: HloComputation) -> HloComputation:
        if all(i.opcode is not Opcode.WHILE for i in computation.instructions):
            return computation
        return rewrite_computation(computation, visit)

    return map_computations(module, changed)


def _unrolled(loop: HloInstruction) -> HloInstruction:
    condition, body = loop.attributes.condition, loop.attributes.body
    steps = _steps(body)
    if steps == 1 or len(body.instructions) > MOST_INSTRUCTIONS or effects_of(body) or effects_of(condition):
        return loop
    if not (takes_elements(body) and takes_elements(condition)):
        return loop
    counter = induction_variable(loop)
    if counter is None:
        return _with_second_step(loop) if steps == 2 else loop
    groups, rest = divmod(counter.trip_count, steps)
    if not groups:
        return loop
    parameter = make_parameter(0, loop.shape)
    state: State = elements_of(parameter)
    for _ in range(steps):
        state = _step(body, state)
    new_body = make_computation(body.name, make_tuple(state), (parameter,))
    attributes = WhileAttributes(_until(loop, counter, groups * steps), new_body)
    grouped = make_instruction(Opcode.WHILE, loop.operands, attributes, metadata=loop.metadata)
    if not rest:
        return grouped
    state = elements_of(grouped)
    for _ in range(rest):
        state = _step(body, state)
    return make_tuple(state)


def _steps(body: HloComputation) -> int:
    """After how many steps no large array has only moved to another element of the state; 1 if none does in one step,
    or if that takes too many."""
    results = body_results(body)
    if results is None:
        return 1
    source = {k: state_element(result) for k, result in enumerate(results)}
    steps = 1
    for k, result in enumerate(results):
        if not result.shape.is_array or result.shape.byte_size < LARGE_STATE_BYTES:
            continue
        length, at = 1, source[k]
        while at is not None and at != k and length <= MOST_STEPS:
            length, at = length + 1, source[at]
        steps = math.lcm(steps, length) if at == k else max(steps, length)
    return steps if steps <= MOST_STEPS else 1


def takes_elements(computation: HloComputation) -> bool:
    """True if the computation uses its parameter only through its elements."""
    parameter = computation.parameters[0]
    return parameter.shape.is_tuple and all(i.opcode is Opcode.GET_TUPLE_ELEMENT for i in computation.users[parameter])


def elements_of(value: HloInstruction) -> list[HloInstruction]:
    """All elements of a tuple."""
    return [make_get_tuple_element(value, k) for k in range(len(value.shape.elements))]


def on_state(
    computation: HloComputation, state: State, written: Mapping[HloInstruction, HloInstruction] | None = None
) -> HloInstruction:
    """The root of a copy of `computation` that reads `state` instead of the elements of its parameter. Each update that
    is a key of `written` writes over the array there."""
    live = live_instructions(computation)
    copies: dict[HloInstruction, HloInstruction] = {}
    for i in computation.instructions:
        index = state_element(i)
        if index is not None:
            copies[i] = state[index]
        elif i in live and i.opcode is not Opcode.PARAMETER:
            operands = [copies[o] for o in i.operands]
            if written is not None and i in written:
                operands[0] = written[i]
            copies[i] = replace(i, operands=tuple(operands))
    return copies[computation.root]


def _step(body: HloComputation, state: State) -> State:
    return on_state(body, state).operands


def _until(loop: HloInstruction, counter: InductionVariable, steps: int) -> HloComputation:
    """The condition of a loop that ends after so many steps."""
    condition = loop.attributes.condition
    parameter = make_parameter(0, loop.shape)
    value = make_get_tuple_element(parameter, counter.index)
    end = make_constant(np.asarray(counter.start + steps * counter.step, value.shape.element.dtype))
    direction = ComparisonDirection.LT if counter.step > 0 else ComparisonDirection.GT
    metadata = condition.root.metadata
    root = make_instruction(Opcode.COMPARE, (value, end), CompareAttributes(direction), metadata=metadata)
    return make_computation(condition.name, root, (parameter,))


def _with_second_step(loop: HloInstruction) -> HloInstruction:
    """The loop with a second step in its body, if its condition holds after the first one."""
    condition, body = loop.attributes.condition, loop.attributes.body
    parameter = make_parameter(0, loop.shape)
    before = elements_of(parameter)
    after = _step(body, before)
    again = on_state(condition, after)
    operand = make_tuple(after)
    taken, passed = make_parameter(0, loop.shape), make_parameter(0, loop.shape)
    branches = (
        make_computation(f"{body.name}_again", make_tuple(_step(body, elements_of(taken))), (taken,)),
        make_computation(f"{body.name}_ends", make_tuple(elements_of(passed)), (passed,)),
    )
    second = make_instruction(
        Opcode.CONDITIONAL, (again, operand, operand), ConditionalAttributes(branches), metadata=loop.metadata
    )
    # this shows which elements never change
    results = [x if x is y else make_get_tuple_element(second, k) for k, (x, y) in enumerate(zip(before, after))]
    new_body = make_computation(body.name, make_tuple(results), (parameter,))
    return replace(loop, attributes=WhileAttributes(condition, new_body))
