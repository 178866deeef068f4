"""The iteration in which a long loop goes wrong, found with compiled code.

The loop runs compiled, with a test of each value of an iteration, in its calls, branches and inner loops too:

    while condition(state) and count < limit and not bad:
        state, bad = body(state)
        count += 1

A second run, with the limit one below, gives the state before the iteration that made the first bad value. The loop
must have no side effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

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
from ...hlo.effects import live_instructions
from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from ...hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ...hlo.ops.reduce import ReduceAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ...hlo.support.value_tree import leaves_of
from .execution import Value

Mask: TypeAlias = Callable[[HloInstruction], "HloInstruction | None"]
"""Of an array: the mask of its bad elements, or None for a type that has none."""


@dataclass(frozen=True, slots=True)
class Test:
    """What is looked for: bad values with no bad operand, or, with `wanted`, a bad value of the one instruction that it
    gives of a computation, if any."""

    mask: Mask
    wanted: Callable[[HloComputation], HloInstruction | None] | None = None


MOST = np.iinfo(np.int64).max
_PRED = Shape.parse("pred[]")
_COUNT = Shape.parse("s64[]")
_MOVING = frozenset({
    Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.RESHAPE, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.SLICE,
    Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.CONCATENATE, Opcode.REVERSE, Opcode.COPY, Opcode.PAD,
    Opcode.OPT_BARRIER, Opcode.GET_TUPLE_ELEMENT,
})  # fmt: skip
"""Instructions with no elements but those of their operands: a value is not made there."""


class WatchedLoop:
    """A WHILE with a tuple as its state, compiled with tests."""

    def __init__(self, loop: HloInstruction, tests: Sequence[Test]) -> None:
        self._count = len(loop.shape.elements)
        self._executable = get_compiler().compile(_module(loop, tests))

    def run(self, state: Value, most: int) -> tuple[Value, int, bool]:
        """The state after at most so many iterations, how many there were, and whether the last one made a bad
        value."""
        given = [np.asarray(leaf) for leaf in leaves_of(state)]
        *leaves, count, bad = self._executable.execute([*given, np.array(most, np.int64)])
        return tuple(leaves), int(count), bool(bad)

    def before_the_first(self, state: Value) -> tuple[int, Value]:
        """How many iterations pass before the first one that makes a bad value, and the state after them. If none does:
        all of them, so that the loop is over."""
        after, count, bad = self.run(state, MOST)
        if not bad:
            return count, after
        return count - 1, self.run(state, count - 1)[0] if count > 1 else state


def can_be_watched(loop: HloInstruction) -> bool:
    """Whether the state is a tuple of arrays, as that of each loop that is traced."""
    return loop.shape.is_tuple and not any(s.is_tuple or s.is_token for s in loop.shape.elements)


def _module(loop: HloInstruction, tests: Sequence[Test]) -> HloModule:
    """The module: the state's elements and a limit in; the state's elements, the count and the flag out."""
    elements = [make_parameter(k, s, f"state_{k}") for k, s in enumerate(loop.shape.elements)]
    most = make_parameter(len(elements), _COUNT, "most")
    made = _loop(loop, elements, tests, most)
    kept = [*range(len(elements) + 1), len(elements) + 2]
    root = make_tuple([make_get_tuple_element(made, k) for k in kept])
    return make_module("watched_loop", make_computation("main", root, [*elements, most]))


def _loop(
    loop: HloInstruction, elements: Sequence[HloInstruction], tests: Sequence[Test], most: HloInstruction | None = None
) -> HloInstruction:
    """The loop. Its state: the elements, the count and its limit if there is one, and whether a value was bad."""
    old = len(elements)
    counting = [] if most is None else [make_constant(np.array(0, np.int64)), most]
    flag = old + len(counting)
    start = make_tuple([*elements, *counting, make_constant(np.array(False))])

    def parts() -> tuple[HloInstruction, list[HloInstruction]]:
        parameter = make_parameter(0, start.shape, "state")
        return parameter, [make_get_tuple_element(parameter, k) for k in range(flag + 1)]

    parameter, values = parts()
    goes_on = make_call(loop.attributes.condition, (make_tuple(values[:old]),))
    if most is not None:
        below = CompareAttributes(ComparisonDirection.LT)
        more = make_instruction(Opcode.COMPARE, values[old : old + 2], below)
        fine = make_instruction(Opcode.NOT, (values[flag],))
        goes_on = reduce(_and, (goes_on, more, fine))
    condition = make_computation("goes_on", goes_on, [parameter])

    parameter, values = parts()
    state = make_tuple(values[:old])
    _, asked = _watched(loop.attributes.condition, [state], tests)
    new, made = _watched(loop.attributes.body, [state], tests)
    following = [make_get_tuple_element(new, k) for k in range(old)]
    if most is not None:
        one = make_constant(np.array(1, np.int64))
        following += [make_instruction(Opcode.ADD, (values[old], one)), values[old + 1]]
    root = make_tuple([*following, reduce(_or, (values[flag], asked, made))])
    body = make_computation("iteration", root, [parameter])
    return make_instruction(Opcode.WHILE, (start,), WhileAttributes(condition, body))


def _watched(
    computation: HloComputation, arguments: Sequence[HloInstruction], tests: Sequence[Test]
) -> tuple[HloInstruction, HloInstruction]:
    """The result of a computation on `arguments`, inlined, and whether it makes a bad value."""
    copies: dict[HloInstruction, HloInstruction] = dict(zip(computation.parameters, arguments, strict=True))
    live, flags = live_instructions(computation), _Flags(tests)
    bad = [make_constant(np.array(False))]
    for i in computation.instructions:
        if i in copies or i not in live:
            continue
        operands = tuple([copies[o] for o in i.operands])
        if i.opcode is Opcode.GET_TUPLE_ELEMENT:
            copies[i] = make_get_tuple_element(operands[0], i.attributes.index)
            bad += flags.made_by(i, copies, computation)
        elif i.opcode is Opcode.CALL:
            copies[i], inner = _watched(i.attributes.to_apply, operands, tests)
            bad.append(inner)
        elif i.opcode is Opcode.WHILE and can_be_watched(i):
            count = len(i.shape.elements)
            loop = _loop(i, [make_get_tuple_element(operands[0], k) for k in range(count)], tests)
            copies[i] = make_tuple([make_get_tuple_element(loop, k) for k in range(count)])
            bad.append(make_get_tuple_element(loop, count))
        elif i.opcode is Opcode.CONDITIONAL:
            branches = tuple([_branch(c, tests) for c in i.attributes.branch_computations])
            both = make_instruction(Opcode.CONDITIONAL, operands, ConditionalAttributes(branches))
            copies[i] = make_get_tuple_element(both, 0)
            bad.append(make_get_tuple_element(both, 1))
        else:
            copies[i] = i.with_operands(operands)
            bad += flags.made_by(i, copies, computation)
    return copies[computation.root], reduce(_or, bad)


def _branch(computation: HloComputation, tests: Sequence[Test]) -> HloComputation:
    parameters = [make_parameter(k, p.shape, p.name) for k, p in enumerate(computation.parameters)]
    return make_computation(computation.name, make_tuple(_watched(computation, parameters, tests)), parameters)


class _Flags:
    """Whether values of a computation have bad elements. Those of an operand are computed once."""

    def __init__(self, tests: Sequence[Test]) -> None:
        self._tests = tests
        self._known: dict[tuple[int, HloInstruction], list[HloInstruction]] = {}

    def made_by(
        self, i: HloInstruction, copies: Mapping[HloInstruction, HloInstruction], computation: HloComputation
    ) -> list[HloInstruction]:
        """For each test: whether it finds the value of the instruction."""
        found = []
        for number, test in enumerate(self._tests):
            if test.wanted is not None:
                found += self._of(number, copies[i]) if test.wanted(computation) is i else []
            elif i.opcode not in _MOVING:
                before = [flag for o in dict.fromkeys(i.operands) for flag in self._of(number, copies[o])]
                fine = [make_instruction(Opcode.NOT, (flag,)) for flag in before]
                found += [reduce(_and, fine, flag) for flag in self._of(number, copies[i])]
        return found

    def _of(self, number: int, value: HloInstruction) -> list[HloInstruction]:
        key = number, value
        if key not in self._known:
            parts = [value]
            if value.shape.is_tuple:
                parts = [make_get_tuple_element(value, k) for k in range(len(value.shape.elements))]
            arrays = [p for p in parts if not p.shape.is_tuple and not p.shape.is_token]
            masks = [mask for p in arrays if (mask := self._tests[number].mask(p)) is not None]
            self._known[key] = [reduce(_or, map(_any, masks))] if masks else []
        return self._known[key]


def _any(mask: HloInstruction) -> HloInstruction:
    if not mask.shape.dimensions:
        return mask
    two = [make_parameter(k, _PRED) for k in range(2)]
    attributes = ReduceAttributes(tuple(range(len(mask.shape.dimensions))), make_computation("either", _or(*two), two))
    return make_instruction(Opcode.REDUCE, (mask, make_constant(np.array(False))), attributes)


def _or(a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(Opcode.OR, (a, b))


def _and(a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(Opcode.AND, (a, b))


def compare(a: Any, b: Any, direction: ComparisonDirection) -> HloInstruction:
    """The mask of a comparison."""
    return make_instruction(Opcode.COMPARE, (a, b), CompareAttributes(direction))
