"""The iteration in which a long loop goes wrong, found with compiled code.

The loop runs with a limit, in pieces that get longer, until its state is bad after a piece; bisection then finds the
iteration in that piece. Both together run at most about twice as many iterations as lead there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...hlo.backend import get_compiler
from ...hlo.builder import (
    make_call,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import WhileAttributes
from ...hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ...hlo.shape import Shape
from ...hlo.support.value_tree import leaves_of, value_of
from .execution import Value

_FIRST = 256
"""Iterations of the first piece."""


class LimitedLoop:
    """A WHILE that stops after a number of iterations, compiled."""

    def __init__(self, loop: HloInstruction) -> None:
        self._shape = loop.shape
        self._executable = get_compiler().compile(_limited(loop))

    def run(self, state: Value, most: int) -> tuple[Value, int]:
        """The state after at most so many iterations, and how many there were."""
        given = [np.asarray(leaf) for leaf in leaves_of(state)]
        *leaves, count = self._executable.execute([*given, np.array(most)])
        return value_of(self._shape, iter(leaves)), int(count)


def before_the_first(loop: HloInstruction, state: Value, is_bad: Callable[[Value], bool]) -> tuple[int, Value]:
    """How many iterations pass before the first one that makes the state bad, and the state after them. If none does:
    all of them, so that the loop is over."""
    limited = LimitedLoop(loop)
    done, piece = 0, _FIRST
    while True:
        after, count = limited.run(state, piece)
        if is_bad(after):
            break
        state, done = after, done + count
        if count < piece:
            return done, state
        piece *= 2
    good, bad = 0, count
    start = state
    while bad - good > 1:
        middle = (good + bad) // 2
        after, _ = limited.run(state, middle - good)
        if is_bad(after):
            bad = middle
        else:
            good, state = middle, after
    return done + good, state if good else start


def _limited(loop: HloInstruction) -> HloModule:
    """The module: the state's leaves and a limit in, the state's leaves and the number of iterations out."""
    counter = Shape.array(make_constant(np.array(0)).shape.element, ())
    whole = Shape.tuple((loop.shape, counter, counter))
    condition, body = loop.attributes.condition, loop.attributes.body

    def parts() -> tuple[HloInstruction, list[HloInstruction]]:
        parameter = make_parameter(0, whole, "state")
        return parameter, [make_get_tuple_element(parameter, k) for k in range(3)]

    parameter, (state, count, limit) = parts()
    below = make_instruction(Opcode.COMPARE, (count, limit), CompareAttributes(ComparisonDirection.LT))
    goes_on = make_instruction(Opcode.AND, (make_call(condition, (state,)), below))
    new_condition = make_computation("goes_on", goes_on, [parameter])

    parameter, (state, count, limit) = parts()
    more = make_instruction(Opcode.ADD, (count, make_constant(np.array(1))))
    new_body = make_computation("iteration", make_tuple([make_call(body, (state,)), more, limit]), [parameter])

    shapes: Sequence[Shape] = list(loop.shape.leaves())
    given = [make_parameter(k, shape, f"state_{k}") for k, shape in enumerate(shapes)]
    most = make_parameter(len(given), counter, "most")
    start = make_tuple([_assembled(loop.shape, iter(given)), make_constant(np.array(0)), most])
    run = make_instruction(Opcode.WHILE, (start,), WhileAttributes(new_condition, new_body))
    results = [*_taken_apart(make_get_tuple_element(run, 0)), make_get_tuple_element(run, 1)]
    entry: HloComputation = make_computation("limited_loop", make_tuple(results), [*given, most])
    return make_module("limited_loop", entry)


def _assembled(shape: Shape, leaves: Any) -> HloInstruction:
    if not shape.is_tuple:
        found: HloInstruction = next(leaves)
        return found
    return make_tuple([_assembled(element, leaves) for element in shape.elements])


def _taken_apart(value: HloInstruction) -> list[HloInstruction]:
    if not value.shape.is_tuple:
        return [value]
    return [leaf for k in range(len(value.shape.elements)) for leaf in _taken_apart(make_get_tuple_element(value, k))]
