"""Random programs on integers, with loops, branches and index arithmetic, and what their instructions really compute.

They are drawn to be hard on an analysis of ranges: all integer types, values next to their limits, counters that wrap
around, loops that never run, that run once, that depend on outer counters, or that never end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hloom.hlo.builder import (
    make_call,
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from hloom.hlo.element_type import ElementType
from hloom.hlo.evaluator import evaluate, table
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
)
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.shape import Shape

from .random_modules import scalar_reducer

TYPES = tuple(ElementType[n] for n in ("S8", "S16", "S32", "S64", "U8", "U16", "U32", "U64"))
PRED = ElementType.PRED
BINARY = (
    Opcode.ADD, Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.DIVIDE, Opcode.REMAINDER, Opcode.REMAINDER,
    Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.AND, Opcode.OR, Opcode.XOR, Opcode.SHIFT_LEFT,
    Opcode.SHIFT_RIGHT_ARITHMETIC, Opcode.SHIFT_RIGHT_LOGICAL,
)  # fmt: skip
UNARY = (
    Opcode.NEGATE, Opcode.ABS, Opcode.SIGN, Opcode.NOT, Opcode.POPULATION_COUNT, Opcode.COUNT_LEADING_ZEROS,
)  # fmt: skip
DIRECTIONS = tuple(ComparisonDirection)
SIZE = 5
"""Of the arrays."""


def integer_program(rng: random.Random) -> HloModule:
    """A module of three integer parameters of one type, and an array of it."""
    element = rng.choice(TYPES)
    scalar = Shape.array(element)
    shapes = [scalar, scalar, scalar, Shape.array(element, (SIZE,))]
    parameters = [make_parameter(k, s) for k, s in enumerate(shapes)]
    drawer = _Drawer(rng, element, list(parameters), 3)
    drawer.steps(4)
    drawer.loop()
    drawer.steps(3)
    root = make_tuple(drawer.values[-6:])
    return make_module("integers", make_computation("main", root, parameters))


def integer_arguments(module: HloModule, rng: random.Random) -> list[np.ndarray[Any, Any]]:
    """Small numbers, and numbers next to the limits of the type."""
    arrays = []
    for p in module.entry.parameters:
        values = [_number(rng, p.shape.element) for _ in range(p.shape.num_elements)]
        arrays.append(np.array(values, p.shape.element.dtype).reshape(p.shape.dimensions))
    return arrays


def _number(rng: random.Random, element: ElementType) -> int:
    lowest, highest = element.limits
    near = rng.choice((0, 0, 0, 0, lowest, highest))
    return min(max(near + rng.randint(-9, 9), lowest), highest)


class _Drawer:
    """Grows one computation of integers and booleans."""

    def __init__(self, rng: random.Random, element: ElementType, values: list[HloInstruction], depth: int) -> None:
        self.rng, self.element, self.values, self.depth = rng, element, values, depth

    def add(self, opcode: Opcode, *operands: HloInstruction, **more: Any) -> HloInstruction:
        new = make_instruction(opcode, operands, **more)
        self.values.append(new)
        return new

    def constant(self, value: int | None = None) -> HloInstruction:
        value = _number(self.rng, self.element) if value is None else value
        return make_constant(np.array(value).astype(self.element.dtype))

    def scalar(self) -> HloInstruction:
        found = [v for v in self.values if v.shape.element_type is self.element and not v.shape.rank]
        if not found or self.rng.random() < 0.25:
            return self.constant()
        return self.rng.choice(found[-5:] if self.rng.random() < 0.7 else found)

    def like(self, shape: Shape) -> HloInstruction:
        found = [v for v in self.values if v.shape.compatible(shape)]
        if shape.rank and (not found or self.rng.random() < 0.3):
            return self.add(Opcode.BROADCAST, self.scalar(), attributes=BroadcastAttributes(()), shape=shape)
        return self.scalar() if not shape.rank else self.rng.choice(found)

    def shape(self) -> Shape:
        return Shape.array(self.element, (SIZE,) if self.rng.random() < 0.25 else ())

    def compare(self, a: HloInstruction, b: HloInstruction) -> HloInstruction:
        direction = self.rng.choice(DIRECTIONS)
        return self.add(Opcode.COMPARE, a, b, attributes=CompareAttributes(direction))

    def steps(self, count: int) -> None:
        kinds: tuple[tuple[Callable[[], object], int], ...] = (
            (self.binary, 8), (self.unary, 2), (self.wrapped_index, 4), (self.chosen, 4), (self.bounded, 3),
            (self.floored, 1),
            (self.converted, 2), (self.array, 3), (self.sliced, 3), (self.branch, 1), (self.loop, 1), (self.call, 1),
        )  # fmt: skip
        for _ in range(count):
            self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()

    def binary(self) -> None:
        shape = self.shape()
        a = self.like(shape)
        self.add(self.rng.choice(BINARY), a, a if self.rng.random() < 0.1 else self.like(shape))

    def unary(self) -> None:
        opcode = self.rng.choice(UNARY)
        if self.element.is_signed or opcode not in (Opcode.NEGATE, Opcode.ABS, Opcode.SIGN):
            self.add(opcode, self.like(self.shape()))

    def wrapped_index(self) -> None:
        """select(i < 0, i + n, i), as NumPy's negative indices need."""
        i = self.scalar()
        n = self.constant(SIZE) if self.rng.random() < 0.7 else self.constant()
        zero = self.constant(0) if self.rng.random() < 0.8 else self.constant()
        below = self.add(Opcode.COMPARE, i, zero, attributes=CompareAttributes(ComparisonDirection.LT))
        self.add(Opcode.SELECT, below, self.add(Opcode.ADD, i, n), i)

    def floored(self) -> None:
        """A division that rounds down: one less where the signs differ and there is a remainder."""
        if not self.element.is_signed:
            return
        x = self.scalar()
        d = self.constant(self.rng.randint(-3, 9)) if self.rng.random() < 0.8 else self.scalar()
        differ = CompareAttributes(ComparisonDirection.NE)
        signs = self.add(Opcode.COMPARE, self.add(Opcode.SIGN, x), self.add(Opcode.SIGN, d), attributes=differ)
        rest = self.add(Opcode.COMPARE, self.add(Opcode.REMAINDER, x, d), self.constant(0), attributes=differ)
        quotient = self.add(Opcode.DIVIDE, x, d)
        less = self.add(Opcode.SUBTRACT, quotient, self.constant(1))
        self.add(Opcode.SELECT, self.add(Opcode.AND, signs, rest), less, quotient)

    def predicate(self, shape: Shape) -> HloInstruction:
        p = self.compare(self.like(shape), self.like(shape))
        while self.rng.random() < 0.4:
            other = self.compare(self.like(shape), self.like(shape))
            p = self.add(self.rng.choice((Opcode.AND, Opcode.OR, Opcode.XOR)), p, other)
        return self.add(Opcode.NOT, p) if self.rng.random() < 0.2 else p

    def chosen(self) -> None:
        shape = self.shape()
        a = self.like(shape)
        p = self.predicate(shape) if self.rng.random() < 0.4 else self.compare(a, self.like(shape))
        arms = [a, self.add(self.rng.choice(BINARY), a, self.like(shape))]
        self.rng.shuffle(arms)
        self.add(Opcode.SELECT, p, *arms)

    def bounded(self) -> None:
        shape = self.shape()
        self.add(Opcode.CLAMP, self.scalar(), self.like(shape), self.scalar())

    def converted(self) -> None:
        there = self.rng.choice((*TYPES, PRED))
        x = self.like(self.shape())
        middle = make_instruction(Opcode.CONVERT, (x,), shape=x.shape.with_element_type(there))
        self.values.append(middle)
        self.add(Opcode.CONVERT, middle, shape=x.shape)

    def array(self) -> None:
        kind = self.rng.randrange(5)
        shape = Shape.array(self.element, (SIZE,))
        x = self.like(shape)
        if kind == 0:
            self.add(Opcode.IOTA, attributes=IotaAttributes(0), shape=shape)
        elif kind == 1:
            both = make_instruction(Opcode.CONCATENATE, (x, self.like(shape)), ConcatenateAttributes(0))
            start = self.rng.randint(0, SIZE)
            self.add(Opcode.SLICE, both, attributes=SliceAttributes((start,), (start + SIZE,), (1,)))
        elif kind == 2:
            opcode = self.rng.choice((Opcode.ADD, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.MULTIPLY))
            reducer = scalar_reducer(opcode, self.element)
            self.add(Opcode.REDUCE, x, self.scalar(), attributes=ReduceAttributes((0,), reducer))
        elif kind == 3:
            cut = make_instruction(Opcode.SLICE, (x,), SliceAttributes((1,), (SIZE,), (1,)))
            self.add(Opcode.PAD, cut, self.scalar(), attributes=PadAttributes((1,), (0,), (0,)))
        else:
            self.add(Opcode.REVERSE, x, attributes=ReverseAttributes((0,)))

    def sliced(self) -> None:
        x, i = self.like(Shape.array(self.element, (SIZE,))), self.scalar()
        size = self.rng.choice((1, 1, 2, SIZE))
        taken = self.add(Opcode.DYNAMIC_SLICE, x, i, attributes=DynamicSliceAttributes((size,)))
        if size == 1:
            self.add(Opcode.RESHAPE, taken, shape=Shape.array(self.element))
        self.add(Opcode.DYNAMIC_UPDATE_SLICE, x, taken, self.scalar())

    def inner(self, shapes: list[Shape], name: str, body: Callable[[_Drawer], HloInstruction]) -> Any:
        """A computation of one tuple."""
        parameter = make_parameter(0, Shape.tuple(shapes))
        parts = [make_get_tuple_element(parameter, k) for k in range(len(shapes))]
        return make_computation(name, body(_Drawer(self.rng, self.element, parts, self.depth - 1)), [parameter])

    def state(self) -> list[HloInstruction]:
        state = [self.scalar() for _ in range(self.rng.randint(2, 4))]
        if self.rng.random() < 0.4:
            state.append(self.like(Shape.array(self.element, (SIZE,))))
        return state

    def branch(self) -> None:
        if self.depth <= 0:
            return
        state = self.state()
        shapes = [s.shape for s in state]
        index = self.compare(state[0], self.rng.choice((self.scalar(), state[1])))
        count = 2
        if self.rng.random() < 0.4:
            index = make_instruction(Opcode.CONVERT, (self.scalar(),), shape=Shape.array(ElementType.S32))
            count = self.rng.randint(1, 3)

        def arm(inside: _Drawer) -> HloInstruction:
            inside.steps(2)
            return make_tuple([inside.like(s) for s in shapes])

        branches = tuple(self.inner(shapes, f"branch{k}", arm) for k in range(count))
        given = make_tuple(state)
        found = make_instruction(Opcode.CONDITIONAL, (index, *[given] * count), ConditionalAttributes(branches))
        self.values += [make_get_tuple_element(found, k) for k in range(len(shapes))]

    def call(self) -> None:
        a, b = self.scalar(), self.scalar()
        x, y = make_parameter(0, a.shape), make_parameter(1, b.shape)
        inside = _Drawer(self.rng, self.element, [x, y], 0)
        inside.steps(2)
        called = make_computation("called", inside.scalar_of_own(), [x, y])
        for operands in ((a, b), (b, a)) if self.rng.random() < 0.5 else ((a, b),):
            self.values.append(make_call(called, operands))

    def scalar_of_own(self) -> HloInstruction:
        return [v for v in self.values if v.shape.element_type is self.element and not v.shape.rank][-1]

    def term(self) -> HloInstruction:
        """An increment of a counter: a constant, or a small value."""
        if self.rng.random() < 0.4:
            return self.constant()
        return self.add(Opcode.REMAINDER, self.scalar(), self.constant(self.rng.randint(1, 4)))

    def loop(self) -> None:
        """Element 0 is compared with a constant, with another element, or with something computed from it."""
        if self.depth <= 0:
            return
        state = self.state()
        plain = self.rng.random() < 0.5  # a loop as people write it
        if plain or self.rng.random() < 0.3:
            state[0] = self.constant(max(self.element.limits[0], self.rng.randint(-2, 3)))
        shapes = [s.shape for s in state]

        def condition(inside: _Drawer) -> HloInstruction:
            limit = self.rng.choice((inside.constant(self.rng.randint(0, 9)), inside.constant(), inside.values[1]))
            first, second = inside.values[0], limit
            if plain:
                below = CompareAttributes(ComparisonDirection.LT)
                return inside.add(Opcode.COMPARE, first, inside.constant(self.rng.randint(0, 9)), attributes=below)
            if self.rng.random() < 0.2:
                first, second = second, first
            p = inside.compare(first, second)
            if self.rng.random() < 0.3:
                p = inside.add(Opcode.AND, p, inside.compare(inside.values[1], inside.scalar()))
            return p

        def body(inside: _Drawer) -> HloInstruction:
            own = list(inside.values)
            inside.steps(self.rng.randint(1, 5))
            step = inside.constant(self.rng.choice((1, 1, 1, 2, 3)))
            kind = 0.0 if plain else self.rng.random()
            opcode = Opcode.ADD if kind < 0.7 else Opcode.SUBTRACT
            results = [inside.add(opcode, own[0], step if kind < 0.85 else inside.scalar())]
            for x in own[1:]:
                kind = self.rng.random()
                if kind < 0.35 or x.shape.rank:
                    results.append(x if kind < 0.6 else inside.like(x.shape))
                elif kind < 0.6:
                    results.append(inside.add(Opcode.ADD, x, inside.term()))
                else:
                    results.append(inside.scalar())
            return make_tuple(results)

        attributes = WhileAttributes(self.inner(shapes, "condition", condition), self.inner(shapes, "body", body))
        found = make_instruction(Opcode.WHILE, (make_tuple(state),), attributes)
        self.values += [make_get_tuple_element(found, k) for k in range(len(shapes))]


class _EnoughSeen(Exception):
    """The program has run for long enough: it may be endless."""


Observer = Callable[[HloInstruction, Any], None]


@contextmanager
def _observing(observer: Observer, most: int) -> Iterator[None]:
    compute, left = table._value, most

    def value(instruction: HloInstruction, operands: list[Any]) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _EnoughSeen
        found = compute(instruction, operands)
        observer(instruction, found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_value", value)
        yield


def observe(module: HloModule, arguments: list[Any], observer: Observer, most: int = 4000) -> bool:
    """Evaluate a module; `observer` gets each instruction with each of its values. False: it was stopped before its
    end, after `most` instructions."""
    with _observing(observer, most):
        try:
            evaluate(module, *arguments)
        except _EnoughSeen:
            return False
    return True
