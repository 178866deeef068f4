"""split-progress: a loop that reports each iteration runs chunks of iterations, and reports each chunk.

    while c(s): s = b(s); report(1)

becomes, for the state with a further element, the size n of the next chunk::

    while c(s):
        k = 0
        while c(s) and k < n: s = b(s); k = k + 1
        n = report(k)

or, where s has a counter i that goes up by 1 to a constant e, without a second counter::

    while i < e:
        start = i; end = i + min(n, e - i)
        while i < end: s = b(s)
        n = report(i - start)

The inner loop acts no more on anything but its state, so it can be one kernel (`outline-loops`). The iterations and
their order are the same, so results are the same bit for bit; the condition, which has no effects, is asked once more
for each chunk. A loop with other effects in its body or condition stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ...analyses.trip_count import body_results, induction_variable, known_trip_count
from ...builder import make_computation, make_constant, make_instruction, make_parameter, make_tuple
from ...effects import effects_of
from ...element_type import ElementType
from ...ir import HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.control_flow import WhileAttributes
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...shape import Shape
from ...support.loop_progress import MOST, TARGET
from ...support.records import dataclass
from .unroll_rotation import elements_of, on_state, takes_elements, with_loops

S32 = Shape.array(ElementType.S32, ())
Chunk = Callable[[list[HloInstruction], HloInstruction], tuple[list[HloInstruction], HloInstruction]]
"""chunk(state, size) -> (the state after at most `size` iterations, how many there were)."""
FIRST = 10_000
"""The first chunk is this part of the loop: the chunks grow from there."""


@dataclass(frozen=True, slots=True)
class SplitProgress:
    """Cuts loops that report to a progress bar into chunks."""

    name: str = "split-progress"

    def __call__(self, module: HloModule) -> HloModule:
        return with_loops(module, _split)


def _split(loop: HloInstruction) -> HloInstruction:
    condition, body = loop.attributes.condition, loop.attributes.body
    acting = effects_of(body)
    if len(acting) != 1 or not _reports(acting[0]) or effects_of(condition) or body.users[acting[0]]:
        return loop
    if body_results(body) is None or not (takes_elements(body) and takes_elements(condition)):
        return loop
    chunk = _by_end(loop) or _by_count(loop)
    count = len(loop.shape.elements)
    outer = Shape.tuple([*loop.shape.elements, S32])
    asked, run = make_parameter(0, outer), make_parameter(0, outer)
    state = elements_of(run)
    ended, done = chunk(state[:count], state[count])
    report = replace(acting[0], operands=(done,))
    attributes = WhileAttributes(
        make_computation(condition.name, on_state(condition, elements_of(asked)), (asked,)),
        make_computation(body.name, make_tuple([*ended, report]), (run,)),
    )
    first = make_constant(_first(acting[0], loop), ElementType.S32)
    start = make_tuple([*elements_of(loop.operands[0]), first])
    whole = make_instruction(Opcode.WHILE, (start,), attributes, metadata=loop.metadata)
    return make_tuple(elements_of(whole)[:count])


def _by_count(loop: HloInstruction) -> Chunk:
    """Chunks of any loop, which count their iterations."""
    condition, body, count = loop.attributes.condition, loop.attributes.body, len(loop.shape.elements)
    inner = Shape.tuple([*loop.shape.elements, S32, S32])
    tested = make_parameter(0, inner)
    state = elements_of(tested)
    goes_on = make_instruction(Opcode.AND, (on_state(condition, state), _less(state[count], state[count + 1])))
    stepped = make_parameter(0, inner)
    state = elements_of(stepped)
    done = make_instruction(Opcode.ADD, (state[count], make_constant(1, ElementType.S32)))
    new = make_tuple([*on_state(body, state).operands, done, state[-1]])
    attributes = WhileAttributes(
        make_computation(f"{condition.name}_chunk", goes_on, (tested,)),
        make_computation(f"{body.name}_chunk", new, (stepped,)),
    )

    def chunk(state: list[HloInstruction], size: HloInstruction) -> tuple[list[HloInstruction], HloInstruction]:
        start = make_tuple([*state, make_constant(0, ElementType.S32), size])
        ended = elements_of(make_instruction(Opcode.WHILE, (start,), attributes, metadata=loop.metadata))
        return ended[:count], ended[count]

    return chunk


def _by_end(loop: HloInstruction) -> Chunk | None:
    """Chunks of a loop with a counter that goes up by 1: the chunk has another end, and its iterations are those of the
    loop. None for other loops."""
    condition, body, count = loop.attributes.condition, loop.attributes.body, len(loop.shape.elements)
    counter = induction_variable(loop)
    if counter is None or counter.step != 1 or loop.shape.elements[counter.index] != S32:
        return None
    inner = Shape.tuple([*loop.shape.elements, S32])
    tested, stepped = make_parameter(0, inner), make_parameter(0, inner)
    state = elements_of(tested)
    goes_on = _less(state[counter.index], state[count])
    state = elements_of(stepped)
    new = make_tuple([*on_state(body, state).operands, state[-1]])
    attributes = WhileAttributes(
        make_computation(f"{condition.name}_chunk", goes_on, (tested,)),
        make_computation(f"{body.name}_chunk", new, (stepped,)),
    )

    def chunk(state: list[HloInstruction], size: HloInstruction) -> tuple[list[HloInstruction], HloInstruction]:
        before = state[counter.index]
        left = make_instruction(Opcode.SUBTRACT, (make_constant(counter.limit, ElementType.S32), before))
        end = make_instruction(Opcode.ADD, (before, make_instruction(Opcode.MINIMUM, (size, left))))
        start = make_tuple([*state, end])
        ended = elements_of(make_instruction(Opcode.WHILE, (start,), attributes, metadata=loop.metadata))
        return ended[:count], make_instruction(Opcode.SUBTRACT, (ended[counter.index], before))

    return chunk


def _less(x: HloInstruction, y: HloInstruction) -> HloInstruction:
    return make_instruction(Opcode.COMPARE, (x, y), CompareAttributes(ComparisonDirection.LT))


def _reports(instruction: HloInstruction) -> bool:
    return instruction.opcode is Opcode.CUSTOM_CALL and instruction.attributes.custom_call_target == TARGET


def _first(report: HloInstruction, loop: HloInstruction) -> int:
    """The iterations of the first chunk: a small part of the loop, and a multiple of the user's `every`."""
    said = re.search(r"every = (\d+)", report.attributes.backend_config)
    every = max(1, int(said[1])) if said is not None else 1
    return min(MOST, max(1, (known_trip_count(loop) or 1) // FIRST // every) * every)
