"""Random HLO modules of loops: `loop_module(rng)` draws one, `loop_arguments` makes its inputs.

Loops count up, down and in steps, to a known or an unknown end, in several types; they end by data, by a pred that they
carry, by a comparison with NaN. Their state is swapped, rotated, repeated, constant, updated in place; they contain
loops, conditionals and calls. `random_steps` and `random_indexed_steps` have the operations of a step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hloom.hlo.builder import (
    make_call,
    make_computation,
    make_instruction,
    make_module,
    make_parameter,
    make_tuple,
)
from hloom.hlo.element_type import ElementType
from hloom.hlo.ir import HloInstruction, HloModule, InputOutputAlias, post_order
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from hloom.hlo.ops.elementwise import ComparisonDirection
from hloom.hlo.shape import Shape

from .random_indexed_steps import IndexedDrawer
from .random_steps import (
    BOUND,
    Dimensions,
    Step,
    StepDrawer,
    clamped,
    compare,
    filled,
    leaves_of,
    parameter_leaves,
    whole_numbers,
)

E = ElementType
O = Opcode  # noqa: E741
D = ComparisonDirection

TYPES = (E.F32,) * 4 + (E.S32,) * 3 + (
    E.F64, E.S64, E.U32, E.U8, E.S8, E.F16, E.BF16, E.C64, E.PRED, E.U64,
)  # fmt: skip
VECTORS = (1, 2, 3, 4, 5, 7, 8, 16, 33, 64)
MATRICES = ((1, 1), (1, 5), (2, 2), (3, 4), (4, 4), (5, 3), (8, 2), (7, 1), (2, 3, 4))
LARGE = ((1000,), (31, 33), (130, 7), (3, 300))
EMPTY = ((0,), (0, 3), (4, 0))
MOST_STEPS = (9, 4, 3, 2)
"""Steps of a loop at most, by how deep it is in others."""

Leaves = list[HloInstruction]


@dataclass(frozen=True, slots=True)
class Clock:
    """The end of a loop: its part of the state, the condition on that part, and how the part changes."""

    initial: Leaves
    test: Callable[[Leaves], HloInstruction]
    advance: Callable[[StepDrawer, Leaves], Leaves]


def one_like(x: HloInstruction) -> HloInstruction:
    return filled(1, x.shape)


def next_of(i: HloInstruction, by: int = 1, opcode: Opcode = O.ADD) -> HloInstruction:
    return make_instruction(opcode, [i, filled(by, i.shape)])


def counter(d: StepDrawer, most: int) -> Clock:
    """i < n, with n known: up or down, in steps, in several types."""
    rng = d.rng
    element = rng.choice((E.S32,) * 5 + (E.S64, E.U32, E.U8, E.S8, E.F32))
    trips, step = rng.choice((0, 1, 2, 3, most, most, rng.randint(1, most))), rng.choice((1, 1, 1, 2, 3))
    down = rng.random() < 0.25 and (element.is_signed or not element.is_integral)
    start = rng.choice((0, 0, 0, 1, 5))
    distance = trips * step
    exact = rng.random() < 0.2 or step == 1
    limit = start - distance if down else start + distance
    direction = (D.GT if down else D.LT) if not exact or rng.random() < 0.7 else D.NE
    if not exact and trips and rng.random() < 0.5:  # the last step goes beyond the end
        limit += rng.randint(0, step - 1) * (1 if down else -1)
    elif direction is not D.NE and trips and rng.random() < 0.3:
        direction, limit = (D.GE, limit + 1) if down else (D.LE, limit - 1)
    if limit < 0 and element in (E.U32, E.U8):
        limit = 0
    end = filled(limit, Shape.array(element))
    turned = rng.random() < 0.2

    def test(leaves: Leaves) -> HloInstruction:
        if turned:
            back = {D.LT: D.GT, D.LE: D.GE, D.GT: D.LT, D.GE: D.LE, D.NE: D.NE}
            return compare(back[direction], end, leaves[0])
        return compare(direction, leaves[0], end)

    opcode = O.SUBTRACT if down and rng.random() < 0.5 else O.ADD
    by = step if not down or opcode is O.SUBTRACT else -step
    return Clock([filled(start, Shape.array(element))], test, lambda d, leaves: [next_of(leaves[0], by, opcode)])


def unknown_end(d: StepDrawer, most: int) -> Clock:
    """i < n, with n from data; now and then the end moves."""
    n = clamped(-1, d.scalar(E.S32), most)
    moves = d.rng.random() < 0.25

    def advance(d: StepDrawer, leaves: Leaves) -> Leaves:
        end = leaves[1]
        if moves:
            end = make_instruction(O.MINIMUM, [end, next_of(d.scalar(E.S32), 1, O.MAXIMUM)])
        return [next_of(leaves[0]), end]

    return Clock([filled(d.rng.choice((0, 0, 1)), n.shape), n], lambda leaves: compare(D.LT, *leaves[:2]), advance)


def halving(d: StepDrawer, most: int) -> Clock:
    """x > 0.6, with x halved, from any start, NaN and infinity too. NaN ends it, also on the way."""
    element = d.rng.choice((E.F32, E.F32, E.F64, E.F16, E.BF16))
    element = element if d.exact else E.F32
    x = d.scalar(element) if d.exact else filled(d.rng.choice((0, 1, 3, 8, np.nan, np.inf)), Shape.array(element))
    x = clamped(-1, x, min(2 ** (most - 1), BOUND[element]))
    becomes_nan = d.rng.random() < 0.4

    def advance(d: StepDrawer, leaves: Leaves) -> Leaves:
        half = make_instruction(O.MULTIPLY, [leaves[0], filled(0.5, leaves[0].shape)])
        if becomes_nan:
            half = make_instruction(O.SELECT, [d.predicate(()), half, filled(np.nan, half.shape)])
        return [half]

    return Clock([x], lambda leaves: compare(D.GT, leaves[0], filled(0.6, leaves[0].shape)), advance)


def shifting(d: StepDrawer, most: int) -> Clock:
    """n != 0, with n shifted to the right."""
    element = d.rng.choice((E.U32, E.S32, E.U8))
    x = d.scalar(element)
    x = make_instruction(O.AND, [x, filled((1 << most) - 1, x.shape)])

    def advance(d: StepDrawer, leaves: Leaves) -> Leaves:
        return [make_instruction(O.SHIFT_RIGHT_LOGICAL, [leaves[0], one_like(leaves[0])])]

    return Clock([x], lambda leaves: compare(D.NE, leaves[0], filled(0, leaves[0].shape)), advance)


def euclid(d: StepDrawer, most: int) -> Clock:
    """b != 0, with a, b = b, a % b."""
    a, b = (make_instruction(O.AND, [x, filled(13, x.shape)]) for x in (d.scalar(E.S32), d.scalar(E.S32)))

    def advance(d: StepDrawer, leaves: Leaves) -> Leaves:
        return [leaves[1], make_instruction(O.REMAINDER, leaves[:2])]

    return Clock([a, b], lambda leaves: compare(D.NE, leaves[1], filled(0, leaves[1].shape)), advance)


def flag(d: StepDrawer, most: int) -> Clock:
    """A pred that is carried; data may end it."""
    limit = d.rng.randint(1, most)
    by_data = d.rng.random() < 0.5

    def advance(d: StepDrawer, leaves: Leaves) -> Leaves:
        following = next_of(leaves[1])
        go = compare(D.LT, following, filled(limit, following.shape))
        if by_data:
            go = make_instruction(d.rng.choice((O.AND, O.AND, O.MINIMUM)), [go, d.predicate(())])
        return [go, following]

    start = d.scalar(E.PRED) if d.rng.random() < 0.3 else filled(1, Shape.array(E.PRED))
    return Clock([start, filled(0, Shape.array(E.S32))], lambda leaves: leaves[0], advance)


def two_ends(d: StepDrawer, most: int) -> Clock:
    """i < j, with both moving."""
    j = clamped(0, d.scalar(E.S32), 2 * most - 1) if d.rng.random() < 0.6 else filled(most, Shape.array(E.S32))

    def advance(d: StepDrawer, leaves: Leaves) -> Leaves:
        return [next_of(leaves[0]), next_of(leaves[1], 1, O.SUBTRACT)]

    return Clock([filled(0, j.shape), j], lambda leaves: compare(D.LT, *leaves[:2]), advance)


CLOCKS = (counter,) * 6 + (unknown_end,) * 3 + (halving,) * 2 + (shifting, euclid, flag, flag, two_ends)


class LoopDrawer(IndexedDrawer):
    """Grows one computation with loops in it, `depth` deep at most."""

    def __init__(
        self, rng: random.Random, sizes: Sequence[Dimensions], types: Sequence[E], exact: bool, depth: int
    ) -> None:
        super().__init__(rng, sizes, types, exact)
        self.depth, self.level = depth, 0
        self.given: frozenset[HloInstruction] = frozenset()

    def steps(self) -> dict[Step, float]:
        steps = super().steps()
        if self.depth:
            steps |= {self.loop: 3, self.conditional: 4, self.call: 0.7}
        return steps

    def inner(self, leaves: Leaves, steps: int) -> LoopDrawer:
        drawer = LoopDrawer(self.rng, self.sizes, self.types, self.exact, self.depth - 1)
        drawer.values, drawer.given, drawer.level = list(leaves), frozenset(leaves), self.level + 1
        if drawer.depth and self.rng.random() < 0.5:
            steps -= 2
            self.rng.choice((drawer.loop, drawer.loop, drawer.conditional))()
        for _ in range(steps):
            drawer.step()
        return drawer

    def state(self) -> Leaves:
        """Values, some twice, and constants."""
        found = [self.any() for _ in range(self.rng.choice((0, 1, 2, 2, 3, 4, 6)))]
        if found and self.rng.random() < 0.3:
            found.append(found[0])
        if found and self.rng.random() < 0.25:
            found.append(self.rng.choice((self.constant(found[0].shape), filled(1, found[0].shape))))
        return found

    def loop(self) -> None:
        clock = self.rng.choice(CLOCKS)(self, MOST_STEPS[self.level])
        count = len(clock.initial)
        initial = [*clock.initial, *self.state()]
        order = self.rng.sample(range(len(initial)), len(initial))
        operand = self.packed(initial, order)

        def unpacked(name: str) -> tuple[HloInstruction, Leaves]:
            parameter, found = parameter_leaves(operand.shape, name)
            return parameter, [found[order.index(k)] for k in range(len(initial))]

        parameter, leaves = unpacked("state")
        condition = make_computation("condition", self.condition(clock, leaves), [parameter])
        parameter, leaves = unpacked("state")
        drawer = self.inner(leaves, self.rng.choice((1, 2, 3, 4, 4, 5, 6)))
        outs = [*clock.advance(drawer, leaves[:count]), *drawer.following(leaves[count:])]
        root = self.packed(outs, order, operand.shape)
        body = make_computation("body", root, [parameter])
        loop = make_instruction(O.WHILE, [operand], WhileAttributes(condition, body))
        for leaf in leaves_of(loop):
            self.add(leaf)

    def packed(self, values: Leaves, order: Sequence[int], like: Shape | None = None) -> HloInstruction:
        """The state as a tuple; now and then a nested one, and no tuple around one array."""
        values = [values[k] for k in order]
        if like is None:
            nested = len(values) > 2 and self.rng.random() < 0.1
            bare = len(values) == 1 and self.rng.random() < 0.5
        else:
            bare, nested = not like.is_tuple, like.is_tuple and any(s.is_tuple for s in like.elements)
        if bare:
            return values[0]
        return make_tuple([*values[:-2], make_tuple(values[-2:])] if nested else values)

    def condition(self, clock: Clock, leaves: Leaves) -> HloInstruction:
        test = clock.test(leaves)
        if self.rng.random() < 0.85:
            return test
        drawer = LoopDrawer(self.rng, self.sizes, self.types, self.exact, 0)
        drawer.values = list(leaves)
        return make_instruction(O.AND, self.rng.sample([test, drawer.predicate(())], 2))

    def following(self, leaves: Leaves) -> Leaves:
        """The state after a step: new values, rotated ones, the same, constants. Values without a user go into one
        of the new values, so that they stay in the program."""
        outs = []
        made = [v for v in self.values if v.opcode is not O.PARAMETER and v not in self.given]
        rotated = self.rng.random() < 0.2
        for k, leaf in enumerate(leaves):
            others = [x for x in leaves[k + 1 :] + leaves[:k] if x.shape == leaf.shape]
            fitting = [v for v in made if v.shape == leaf.shape]
            kind = self.rng.random()
            if (rotated or kind < 0.1) and others:
                outs.append(others[0])
            elif kind < 0.15:
                outs.append(leaf)
            elif fitting and kind < 0.85:
                outs.append(fitting[-1] if self.rng.random() < 0.6 else self.rng.choice(fitting))
            elif kind < 0.87:
                outs.append(self.constant(leaf.shape))
            else:
                outs.append(self.brought(made[-1] if made else self.any(), leaf.shape))
        if outs and self.rng.random() < 0.8:
            needed = {i for out in outs for i in post_order(out)}
            for value in reversed(made):
                if value not in needed:
                    k = self.rng.randrange(len(outs))
                    outs[k] = self.combined(outs[k], self.brought(value, outs[k].shape))
                    needed |= set(post_order(value))
        return outs

    def conditional(self) -> None:
        by_pred = self.rng.random() < 0.5
        index = self.predicate(()) if by_pred else self.index(E.S32, 2)
        wanted = [self.any().shape for _ in range(self.rng.randint(1, 3))]
        operands, branches = [], []
        for _ in range(2 if by_pred else self.rng.randint(1, 3)):
            operand = make_tuple([self.any() for _ in range(self.rng.randint(1, 3))])
            parameter, leaves = parameter_leaves(operand.shape, "operand")
            drawer = self.inner(leaves, self.rng.randint(0, 3))
            root = make_tuple([drawer.like(shape) for shape in wanted])
            branches.append(make_computation("branch", root, [parameter]))
            operands.append(operand)
        chosen = make_instruction(O.CONDITIONAL, [index, *operands], ConditionalAttributes(tuple(branches)))
        for leaf in leaves_of(chosen):
            self.add(leaf)

    def call(self) -> None:
        operands = [self.any() for _ in range(self.rng.randint(1, 3))]
        parameters = [make_parameter(k, x.shape, "p") for k, x in enumerate(operands)]
        drawer = self.inner(parameters, self.rng.randint(1, 3))
        self.add(make_call(make_computation("callee", drawer.any(), parameters), operands))


def loop_module(rng: random.Random) -> HloModule:
    """A module with at least one loop, 1 to 5 parameters and up to 8 results."""
    exact = rng.random() < 0.8
    types = [t for t in rng.sample(TYPES, rng.randint(1, 4)) if exact or t not in (E.F16, E.BF16, E.C64)] or [E.F32]
    vector, matrix = (rng.choice(VECTORS),), rng.choice(MATRICES)
    sizes: list[Dimensions] = [(), *rng.choice(((), (vector,), (vector,), (matrix,), (matrix,), (vector, matrix)))]
    if rng.random() < 0.1:
        sizes.append(rng.choice(LARGE))
    if rng.random() < 0.07:
        sizes.append(rng.choice(EMPTY))
    drawer = LoopDrawer(rng, sizes, types, exact, rng.choice((1, 2, 2, 3)))
    shapes = [Shape.array(E.S32) for _ in range(rng.randint(0, 2))]
    shapes += [Shape.array(rng.choice(types), rng.choice(sizes[-2:])) for _ in range(rng.randint(1, 3))]
    parameters = [make_parameter(k, shape, f"argument.{k}") for k, shape in enumerate(shapes)]
    drawer.values = list(parameters)
    for _ in range(rng.choice((0, 0, 1, 2))):
        drawer.step()
    before = len(drawer.values)
    drawer.loop()
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        drawer.step()
    made = drawer.values[before:]
    results = rng.sample(made, min(len(made), 7)) + rng.sample(parameters, rng.choice((0, 0, 0, 1)))
    root = make_tuple(results) if rng.random() < 0.95 else results[0]
    module = make_module("loops", make_computation("main", root, parameters))
    return donating(module, rng) if rng.random() < 0.25 else module


def donating(module: HloModule, rng: random.Random) -> HloModule:
    """The module, which may write results over parameters of their types."""
    aliases: list[InputOutputAlias] = []
    root = module.entry.root.shape
    free = list(enumerate(root.elements)) if root.is_tuple else []
    for number, parameter in enumerate(module.entry.parameters):
        fitting = [k for k, shape in free if shape == parameter.shape]
        if fitting and rng.random() < 0.8:
            free = [(k, shape) for k, shape in free if k != fitting[0]]
            aliases.append(InputOutputAlias((fitting[0],), number))
    return replace(module, input_output_aliases=tuple(aliases))


def loop_arguments(module: HloModule, seed: int) -> list[np.ndarray[Any, Any]]:
    """Small whole numbers for a module's parameters; in a quarter of the cases some NaN, infinities and -0.0."""
    generator = np.random.default_rng(seed)
    special = generator.random() < 0.25
    arrays = []
    for k, parameter in enumerate(module.entry.parameters):
        shape = parameter.shape
        array = whole_numbers(seed * 10 + k, shape)
        if shape.is_scalar and shape.element is E.S32:  # perhaps an end
            array = np.asarray(generator.integers(-1, 10), np.int32)
        if special and shape.element.is_floating:
            odd = generator.choice([np.nan, np.inf, -np.inf, -0.0, -0.0], shape.dimensions)
            array = np.where(generator.random(shape.dimensions) < 0.15, odd.astype(array.dtype), array)
        arrays.append(np.asarray(array))
    return arrays
