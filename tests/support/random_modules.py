"""Random HLO modules for tests: small arrays, every op family, loops, branches and calls; all values stay tame.

`random_module(rng)` draws one from a `random.Random`; `random_arguments` makes inputs for any module. Floats are
kept away from overflow, so that NaN and infinities come only from the arguments.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
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
from hloom.hlo.ir import HloComputation, HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.ops.indexing import GatherAttributes, ScatterAttributes
from hloom.hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    DynamicSliceAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.ops.sort import SortAttributes, TopKAttributes
from hloom.hlo.shape import Shape

from hloom.backend_check.op_cases_sort import comparator

F32, S32, PRED = ElementType.F32, ElementType.S32, ElementType.PRED
SIZES = (1, 2, 3, 4)


def scalar_reducer(opcode: Opcode, element_type: ElementType) -> HloComputation:
    """A reducer that applies a binary op."""
    x, y = (make_parameter(i, Shape.array(element_type), n) for i, n in enumerate("xy"))
    return make_computation(opcode.value, make_instruction(opcode, [x, y]), [x, y])


class Drawer:
    """Grows one computation: `values` are the arrays so far, each step adds one or a few."""

    def __init__(self, rng: random.Random, depth: int) -> None:
        self.rng = rng
        self.depth = depth
        self.values: list[HloInstruction] = []

    # what to draw from
    def any(self, *types: ElementType) -> HloInstruction:
        found = [v for v in self.values if not types or v.shape.element_type in types]
        if not found:
            return self.add(self.constant(types[0], ()))
        recent = found[-6:]
        return self.rng.choice(recent if self.rng.random() < 0.7 else found)

    def like(self, shape: Shape) -> HloInstruction:
        found = [v for v in self.values if v.shape.compatible(shape)]
        if found and self.rng.random() < 0.85:
            return self.rng.choice(found)
        if self.rng.random() < 0.5:
            source = self.scalar(shape.element)
            return self.add(make_instruction(Opcode.BROADCAST, [source], BroadcastAttributes(()), shape))
        return self.add(self.constant(shape.element, shape.dimensions))

    def scalar(self, element_type: ElementType) -> HloInstruction:
        found = [v for v in self.values if v.shape.is_scalar and v.shape.element_type is element_type]
        return self.rng.choice(found) if found else self.add(self.constant(element_type, ()))

    def constant(self, element_type: ElementType, dimensions: tuple[int, ...]) -> HloInstruction:
        generator = np.random.default_rng(self.rng.randrange(1 << 30))
        special = self.rng.choice([0.0, 1.0, -0.0, 2.0, -1.0, 0.5])
        if self.rng.random() < 0.5:
            return make_constant(np.full(dimensions, special).astype(element_type.dtype))
        return make_constant(generator.integers(-3, 4, dimensions).astype(element_type.dtype))

    def add(self, instruction: HloInstruction) -> HloInstruction:
        self.values.append(instruction)
        return instruction

    # steps
    def step(self) -> None:
        choices = [
            (self.unary, 3), (self.binary, 6), (self.compare_select, 2), (self.broadcast, 2), (self.reduce, 2),
            (self.transpose, 2), (self.reshape, 2), (self.slice, 1), (self.concatenate, 1), (self.pad, 1),
            (self.dot, 2), (self.dynamic_slice, 1), (self.dynamic_update_slice, 2), (self.convert, 1),
            (self.iota, 1), (self.reverse, 1), (self.fresh_constant, 1), (self.through_tuple, 1), (self.clamp, 1),
            (self.gather, 2), (self.scatter, 2), (self.sort, 1), (self.topk, 1),
        ]  # fmt: skip
        if self.depth:
            choices += [(self.loop, 1), (self.conditional, 1), (self.call, 1)]
        functions, weights = zip(*choices, strict=True)
        self.rng.choices(functions, weights)[0]()

    def unary(self) -> None:
        x = self.any(F32, S32)
        opcodes = [Opcode.NEGATE, Opcode.ABS, Opcode.SIGN]
        if x.shape.element_type is F32:
            opcodes += [Opcode.TANH, Opcode.FLOOR, Opcode.LOGISTIC, Opcode.COS]
        self.add(make_instruction(self.rng.choice(opcodes), [x]))

    def binary(self) -> None:
        x = self.any()
        y = self.like(x.shape)
        match x.shape.element_type:
            case ElementType.PRED:
                opcodes = [Opcode.AND, Opcode.OR, Opcode.XOR]
            case ElementType.S32:
                opcodes = [Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.DIVIDE, Opcode.AND]
            case _:
                opcodes = [Opcode.ADD, Opcode.SUBTRACT, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.MULTIPLY]
        result = self.add(make_instruction(self.rng.choice(opcodes), self.rng.sample([x, y], 2)))
        if x.shape.element_type is F32 and result.opcode is Opcode.MULTIPLY:
            self.add(make_instruction(Opcode.TANH, [result]))  # repeated squares stay finite

    def compare_select(self) -> None:
        x = self.any(F32, S32)
        y = self.like(x.shape)
        direction = self.rng.choice(list(ComparisonDirection))
        pred = self.add(make_instruction(Opcode.COMPARE, [x, y], CompareAttributes(direction)))
        self.add(make_instruction(Opcode.SELECT, [pred, x, y]))

    def clamp(self) -> None:
        x = self.any(F32, S32)
        low, high = self.scalar(x.shape.element), self.scalar(x.shape.element)
        self.add(make_instruction(Opcode.CLAMP, [low, x, high]))

    def broadcast(self) -> None:
        x = self.any()
        rank = x.shape.rank + self.rng.randint(0, 1)
        if rank > 3:
            return
        kept = sorted(self.rng.sample(range(rank), x.shape.rank))
        dims = [self.rng.choice(SIZES) for _ in range(rank)]
        for size, d in zip(x.shape.dimensions, kept, strict=True):
            dims[d] = size
        shape = Shape.array(x.shape.element, dims)
        self.add(make_instruction(Opcode.BROADCAST, [x], BroadcastAttributes(tuple(kept)), shape))

    def reduce(self) -> None:
        x = self.any(F32, S32)
        dims = tuple(sorted(self.rng.sample(range(x.shape.rank), self.rng.randint(0, x.shape.rank))))
        element_type = x.shape.element
        opcode = self.rng.choice([Opcode.ADD, Opcode.MAXIMUM])
        # The larger of two zeros of different sign is either: a maximum is kept from being one.
        init = self.add(make_constant(element_type.dtype.type(0.25 if opcode is Opcode.MAXIMUM else 0)))
        reducer = scalar_reducer(opcode, element_type)
        result = make_instruction(Opcode.REDUCE, [x, init], ReduceAttributes(dims, reducer))
        self.add(make_instruction(Opcode.TANH, [result]) if element_type is F32 else result)

    def transpose(self) -> None:
        x = self.any()
        dims = tuple(self.rng.sample(range(x.shape.rank), x.shape.rank))
        self.add(make_instruction(Opcode.TRANSPOSE, [x], TransposeAttributes(dims)))

    def reshape(self) -> None:
        x = self.any()
        n = x.shape.num_elements
        factors = [d for d in range(1, n + 1) if n % d == 0]
        first = self.rng.choice(factors)
        dims = self.rng.choice([(n,), (first, n // first), (1, n), (first, 1, n // first)])
        self.add(make_instruction(Opcode.RESHAPE, [x], shape=Shape.array(x.shape.element, dims)))

    def slice(self) -> None:
        x = self.any()
        starts = tuple(self.rng.randrange(d) for d in x.shape.dimensions)
        limits = tuple(self.rng.randint(s + 1, d) for s, d in zip(starts, x.shape.dimensions, strict=True))
        strides = tuple(self.rng.choice([1, 1, 2]) for _ in starts)
        self.add(make_instruction(Opcode.SLICE, [x], SliceAttributes(starts, limits, strides)))

    def concatenate(self) -> None:
        x = self.any()
        if x.shape.rank:
            others = [self.like(x.shape) for _ in range(self.rng.randint(0, 2))]
            d = self.rng.randrange(x.shape.rank)
            result = make_instruction(Opcode.CONCATENATE, [x, *others], ConcatenateAttributes(d))
            if result.shape.num_elements <= 200:
                self.add(result)

    def pad(self) -> None:
        x = self.any()
        low, high = (tuple(self.rng.randint(0, 1) for _ in range(x.shape.rank)) for _ in range(2))
        value = self.scalar(x.shape.element)
        result = make_instruction(Opcode.PAD, [x, value], PadAttributes(low, high, (0,) * x.shape.rank))
        if result.shape.num_elements <= 200:
            self.add(result)

    def reverse(self) -> None:
        x = self.any()
        dims = tuple(sorted(self.rng.sample(range(x.shape.rank), self.rng.randint(0, x.shape.rank))))
        self.add(make_instruction(Opcode.REVERSE, [x], ReverseAttributes(dims)))

    def dot(self) -> None:
        x = self.any(F32, S32)
        if not x.shape.rank or x.shape.rank > 3:
            return
        c = self.rng.randrange(x.shape.rank)
        batches = [d for d in range(x.shape.rank) if d != c][: self.rng.randint(0, 1)]
        other = [*batches, c] + ([-1] if self.rng.random() < 0.7 else [])
        self.rng.shuffle(other)
        dims = [x.shape.dimensions[d] if d >= 0 else self.rng.choice(SIZES) for d in other]
        y = self.like(Shape.array(x.shape.element, dims))
        attributes = DotAttributes(tuple(batches), tuple(other.index(b) for b in batches), (c,), (other.index(c),))
        result = make_instruction(Opcode.DOT, [x, y], attributes)
        self.add(make_instruction(Opcode.TANH, [result]) if x.shape.element_type is F32 else result)

    def dynamic_slice(self) -> None:
        x = self.any()
        starts = [self.scalar(S32) for _ in range(x.shape.rank)]
        sizes = tuple(self.rng.randint(1, d) for d in x.shape.dimensions)
        self.add(make_instruction(Opcode.DYNAMIC_SLICE, [x, *starts], DynamicSliceAttributes(sizes)))

    def dynamic_update_slice(self) -> None:
        x = self.any()
        starts = [self.scalar(S32) for _ in range(x.shape.rank)]
        update = self.like(Shape.array(x.shape.element, [self.rng.randint(1, d) for d in x.shape.dimensions]))
        self.add(make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, [x, update, *starts]))

    def gather(self) -> None:
        """Slices at places along one dimension, with a piece of each of the others."""
        x, indices = self.any(), self.any(S32)
        rank, count = x.shape.rank, indices.shape.rank
        if not rank or rank + count > 5:
            return
        d = self.rng.randrange(rank)
        sizes = [self.rng.randint(1, n) for n in x.shape.dimensions]
        sizes[d] = 1
        offsets = tuple(sorted(self.rng.sample(range(rank - 1 + count), rank - 1)))
        result = make_instruction(
            Opcode.GATHER, [x, indices], GatherAttributes(offsets, (d,), (d,), count, tuple(sizes))
        )
        if result.shape.num_elements <= 200:
            self.add(result)

    def scatter(self) -> None:
        """Updates of whole slices at places along one dimension."""
        x, indices = self.any(F32, S32), self.any(S32)
        rank, count = x.shape.rank, indices.shape.rank
        if not rank or rank + count > 4:
            return
        d = self.rng.randrange(rank)
        others = [n for e, n in enumerate(x.shape.dimensions) if e != d]
        updates = self.like(Shape.array(x.shape.element, (*indices.shape.dimensions, *others)))
        combiner = scalar_reducer(self.rng.choice([Opcode.ADD, Opcode.MINIMUM, Opcode.SUBTRACT]), x.shape.element)
        if self.rng.random() < 0.3:
            combiner = make_computation("second", combiner.parameters[1], combiner.parameters)
        window = tuple(range(count, count + rank - 1))
        attributes = ScatterAttributes(window, (d,), (d,), count, combiner)
        result = make_instruction(Opcode.SCATTER, [x, indices, updates], attributes)
        self.add(make_instruction(Opcode.TANH, [result]) if x.shape.element_type is F32 else result)

    def sort(self) -> None:
        x = self.any()
        if not x.shape.rank:
            return
        operands = [x, *(self.like(x.shape) for _ in range(self.rng.randint(0, 1)))]
        by = comparator([o.shape.element for o in operands], self.rng.randint(1, len(operands)))
        result = make_instruction(Opcode.SORT, operands, SortAttributes(self.rng.randrange(x.shape.rank), by, True))
        if len(operands) == 1:
            self.add(result)
            return
        for k in range(len(operands)):
            self.add(make_get_tuple_element(result, k))

    def topk(self) -> None:
        x = self.any(S32, PRED)
        if x.shape.rank:
            k = self.rng.randint(0, x.shape.dimensions[-1])
            result = make_instruction(Opcode.TOPK, [x], TopKAttributes(max(k, 1), self.rng.random() < 0.5))
            for i in range(2):
                self.add(make_get_tuple_element(result, i))

    def convert(self) -> None:
        x = self.any()
        target = self.rng.choice([F32, S32])
        self.add(make_instruction(Opcode.CONVERT, [x], shape=x.shape.with_element_type(target)))

    def iota(self) -> None:
        dims = [self.rng.choice(SIZES) for _ in range(self.rng.randint(1, 2))]
        shape = Shape.array(self.rng.choice([F32, S32]), dims)
        self.add(make_instruction(Opcode.IOTA, (), IotaAttributes(self.rng.randrange(shape.rank)), shape))

    def fresh_constant(self) -> None:
        self.add(self.constant(self.rng.choice([F32, S32]), tuple(self.rng.sample(SIZES, self.rng.randint(0, 2)))))

    def through_tuple(self) -> None:
        whole = make_tuple([self.any() for _ in range(self.rng.randint(1, 3))])
        barrier = make_instruction(Opcode.OPT_BARRIER, [whole])
        self.add(make_get_tuple_element(self.rng.choice([whole, barrier]), self.rng.randrange(len(whole.operands))))

    # control flow
    def state(self) -> list[HloInstruction]:
        return [self.any() for _ in range(self.rng.randint(1, 4))]

    def inner(self, leaves: list[HloInstruction], steps: int) -> Drawer:
        drawer = Drawer(self.rng, self.depth - 1)
        drawer.values = list(leaves)
        for _ in range(steps):
            drawer.step()
        return drawer

    def loop(self) -> None:
        """while i < n: the state's leaves are swapped, updated, passed on."""
        start = make_constant(np.int32(self.rng.randint(-1, 1)))
        initial = make_tuple([start, *self.state()])
        p = make_parameter(0, initial.shape, "state")
        limit = make_constant(np.int32(self.rng.randint(0, 3)))
        below = CompareAttributes(ComparisonDirection.LT)
        condition = make_computation(
            "condition", make_instruction(Opcode.COMPARE, [make_get_tuple_element(p, 0), limit], below), [p]
        )
        q = make_parameter(0, initial.shape, "state")
        leaves = [make_get_tuple_element(q, i) for i in range(len(initial.operands))]
        drawer = self.inner(leaves, self.rng.randint(0, 5))
        next_i = make_instruction(Opcode.ADD, [leaves[0], make_constant(np.int32(1))])
        outs = [next_i, *(drawer.like(x.shape) for x in leaves[1:])]
        body = make_computation("body", make_tuple(outs), [q])
        result = make_instruction(Opcode.WHILE, [initial], WhileAttributes(condition, body))
        for i in range(len(initial.operands)):
            self.add(make_get_tuple_element(result, i))

    def conditional(self) -> None:
        index = self.scalar(self.rng.choice([PRED, S32]))
        count = 2 if index.shape.element_type is PRED else self.rng.randint(1, 3)
        wanted = [v.shape for v in self.state()]
        operands, branches = [], []
        for _ in range(count):
            operand = make_tuple(self.state())
            p = make_parameter(0, operand.shape, "operand")
            leaves = [make_get_tuple_element(p, i) for i in range(len(operand.operands))]
            drawer = self.inner(leaves, self.rng.randint(0, 4))
            branches.append(make_computation("branch", make_tuple([drawer.like(s) for s in wanted]), [p]))
            operands.append(operand)
        attributes = ConditionalAttributes(tuple(branches))
        result = make_instruction(Opcode.CONDITIONAL, [index, *operands], attributes)
        for i in range(len(wanted)):
            self.add(make_get_tuple_element(result, i))

    def call(self) -> None:
        operands = self.state()
        parameters = [make_parameter(i, x.shape, "p") for i, x in enumerate(operands)]
        drawer = self.inner(parameters, self.rng.randint(1, 5))
        result = self.add(make_call(make_computation("callee", drawer.any(), parameters), operands))
        if self.rng.random() < 0.3:
            others = [self.like(x.shape) for x in operands]
            self.add(make_call(result.attributes.to_apply, others))


def random_module(rng: random.Random, steps: int = 12, depth: int = 2) -> HloModule:
    """A module with 1 to 4 parameters and up to 5 results, about `steps` steps long."""
    drawer = Drawer(rng, depth)
    parameters = []
    for number in range(rng.randint(1, 4)):
        dims = [rng.choice(SIZES) for _ in range(rng.randint(0, 2))]
        shape = Shape.array(rng.choice([F32, F32, F32, S32, PRED]), dims)
        parameters.append(make_parameter(number, shape, f"argument.{number}"))
    drawer.values = list(parameters)
    for _ in range(steps):
        drawer.step()
    results = drawer.values[-2:] + rng.choices(drawer.values, k=rng.randint(0, 3))
    root = make_tuple(results) if rng.random() < 0.9 else results[0]
    return make_module("random", make_computation("main", root, parameters))


def random_arguments(module: HloModule, seed: int, special: bool = True) -> list[np.ndarray[Any, Any]]:
    """An array for each parameter leaf; `special`: some NaN, infinities and -0.0 among the floats."""
    generator = np.random.default_rng(seed)
    arrays = []
    for parameter in module.entry.parameters:
        for leaf in parameter.shape.leaves():
            kind = leaf.element
            if kind is PRED:
                array = generator.integers(0, 2, leaf.dimensions).astype(bool)
            elif kind.is_integral:
                low = -5 if kind.is_signed else 0
                array = generator.integers(low, 6, leaf.dimensions).astype(kind.dtype)
            else:
                values = generator.normal(size=leaf.dimensions)
                if kind.is_complex:
                    values = values + 1j * generator.normal(size=leaf.dimensions)
                elif special:
                    odd = generator.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0], leaf.dimensions)
                    values = np.where(generator.random(leaf.dimensions) < 0.1, odd, values)
                array = np.asarray(values).astype(kind.dtype)
            arrays.append(array)
    return arrays
