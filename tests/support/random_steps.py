"""Steps of random loop programs: every step adds to a computation a value that stays small when a loop repeats it.

With `exact`, all arithmetic is exact, so that results do not depend on its order or on contraction: integers wrap, and
floats are whole numbers that are brought back below a bound after each sum or product. Without it, floats also go
through tanh and the like, and nothing jumps on them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hloom.hlo.builder import (
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
)
from hloom.hlo.element_type import ElementType
from hloom.hlo.ir import HloInstruction
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.ops.movement import (
    BroadcastAttributes,
    ConcatenateAttributes,
    IotaAttributes,
    PadAttributes,
    ReverseAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from hloom.hlo.ops.random import RandomAlgorithm, RngBitGeneratorAttributes
from hloom.hlo.ops.reduce import ReduceAttributes
from hloom.hlo.ops.sort import SortAttributes
from hloom.hlo.shape import Shape

from hloom.backend_check.op_cases_sort import comparator

from .nest_modules import argmax_reducer
from .random_modules import scalar_reducer

E = ElementType
O = Opcode  # noqa: E741
D = ComparisonDirection

Dimensions = tuple[int, ...]
Step = Callable[[], None]

BOUND = {E.F16: 8, E.BF16: 4, E.F32: 64, E.F64: 64, E.C64: 8}
"""Exact floats are whole numbers of at most this size: the product of two plus a third has no rounding error."""
FEW = 16
"""Terms of a sum of the half floats that cannot have a rounding error."""
LARGEST = 4_200
"""Elements of an array."""
ROUNDING = (O.TANH, O.SIN, O.COS, O.LOGISTIC, O.EXP)


def filled(value: float, shape: Shape) -> HloInstruction:
    """An array of one number."""
    scalar = make_constant(np.asarray(value).astype(shape.element.dtype))
    return make_instruction(O.BROADCAST, [scalar], BroadcastAttributes(()), shape) if shape.rank else scalar


def compare(direction: D, a: HloInstruction, b: HloInstruction) -> HloInstruction:
    return make_instruction(O.COMPARE, [a, b], CompareAttributes(direction))


def clamped(low: float, x: HloInstruction, high: float) -> HloInstruction:
    scalar = Shape.array(x.shape.element)
    return make_instruction(O.CLAMP, [filled(low, scalar), x, filled(high, scalar)])


def parts(x: HloInstruction) -> list[HloInstruction]:
    """The real and the imaginary part."""
    return [make_instruction(O.REAL, [x]), make_instruction(O.IMAG, [x])]


class StepDrawer:
    """Grows one computation: `values` are the arrays so far; each step adds one or a few.

    `sizes` are the dimensions, and `types` the element types, of fresh values: few, so that values meet.
    """

    def __init__(
        self, rng: random.Random, sizes: Sequence[Dimensions], types: Sequence[ElementType], exact: bool
    ) -> None:
        self.rng, self.sizes, self.types, self.exact = rng, sizes, types, exact
        self.values: list[HloInstruction] = []

    def steps(self) -> dict[Step, float]:
        """The kinds of steps, with their weights."""
        return {
            self.unary: 3, self.binary: 6, self.multiply_add: 2, self.choice: 3, self.convert: 1, self.broadcast: 1,
            self.reduce: 2, self.argmax: 0.7, self.transpose: 1, self.reshape: 1, self.slice: 2, self.concatenate: 1,
            self.pad: 1, self.reverse: 1, self.iota: 1, self.sort: 1, self.random_bits: 0.4, self.through: 0.7,
        }  # fmt: skip

    def step(self) -> None:
        steps = self.steps()
        self.rng.choices(list(steps), list(steps.values()))[0]()

    # what to draw from
    def add(self, value: HloInstruction) -> HloInstruction:
        self.values.append(value)
        return value

    def any(self, wanted: Callable[[HloInstruction], bool] = lambda v: True) -> HloInstruction:
        """A value that satisfies `wanted`, rather one of the last ones; a fresh one, of any kind, if there is none."""
        found = [v for v in self.values if wanted(v)]
        if not found:
            return self.add(self.fresh())
        return self.rng.choice(found[-5:] if self.rng.random() < 0.7 else found)

    def ranked(self) -> HloInstruction:
        """One with dimensions."""
        value = self.any(lambda v: v.shape.rank > 0)
        return value if value.shape.rank else self.add(self.shaped(value, (self.rng.choice((1, 2, 5)),)))

    def number(self) -> HloInstruction:
        """One that is no pred."""
        value = self.any(lambda v: v.shape.element is not E.PRED)
        return value if value.shape.element is not E.PRED else self.brought(value, value.shape.with_element_type(E.S32))

    def fresh(self) -> HloInstruction:
        return self.constant(Shape.array(self.rng.choice(self.types), self.rng.choice(self.sizes)))

    def constant(self, shape: Shape) -> HloInstruction:
        return make_constant(whole_numbers(self.rng.randrange(1 << 30), shape))

    def scalar(self, element: ElementType) -> HloInstruction:
        return self.like(Shape.array(element))

    def like(self, shape: Shape) -> HloInstruction:
        """A value of this type: one that there is, one made of another, or a constant."""
        found = [v for v in self.values if v.shape == shape]
        if found and self.rng.random() < 0.75:
            return self.rng.choice(found[-5:])
        if self.values and self.rng.random() < 0.7:
            return self.brought(self.any(), shape)
        return self.rng.choice([filled(self.rng.randint(0, 3), shape), self.constant(shape)])

    def jumps(self, x: HloInstruction) -> bool:
        """May something jump on this value? Not on one that is rounded."""
        return self.exact or not x.shape.element.is_inexact

    # conversions
    def brought(self, x: HloInstruction, shape: Shape) -> HloInstruction:
        """`x` in another type and other dimensions, so that much of it is kept."""
        if x.shape.element is not shape.element and not self.jumps(x) and not shape.element.is_inexact:
            return self.constant(shape)
        return self.shaped(self.converted(x, shape.element), shape.dimensions)

    def converted(self, x: HloInstruction, element: ElementType) -> HloInstruction:
        old = x.shape.element
        if old is element:
            return x
        if old.is_complex:
            return self.converted(self.rng.choice(parts(x)), element)
        if element.is_complex:
            real = self.converted(x, E.F32)
            return self.tamed(make_instruction(O.COMPLEX, [real, filled(1, real.shape)]))
        if element is E.PRED:
            return compare(D.NE, x, filled(0, x.shape))
        if element.is_inexact and old is not E.PRED and BOUND[element] < BOUND.get(old, 1 << 20):
            x = make_instruction(O.REMAINDER, [x, filled(BOUND[element] - 1, x.shape)])
        return make_instruction(O.CONVERT, [x], shape=x.shape.with_element_type(element))

    def shaped(self, x: HloInstruction, dims: Dimensions) -> HloInstruction:
        old, wanted = x.shape.dimensions, Shape.array(x.shape.element, dims)
        if old == dims:
            return x
        if not old:
            return make_instruction(O.BROADCAST, [x], BroadcastAttributes(()), wanted)
        if x.shape.num_elements == wanted.num_elements:
            return make_instruction(O.RESHAPE, [x], shape=wanted)
        if len(old) == len(dims) and all(a >= b for a, b in zip(old, dims, strict=True)):
            starts = tuple(self.rng.randint(0, a - b) for a, b in zip(old, dims, strict=True))
            limits = tuple(s + b for s, b in zip(starts, dims, strict=True))
            return make_instruction(O.SLICE, [x], SliceAttributes(starts, limits, (1,) * len(dims)))
        for d in range(len(dims)):
            if old == dims[:d] + dims[d + 1 :]:
                kept = tuple(k for k in range(len(dims)) if k != d)
                return make_instruction(O.BROADCAST, [x], BroadcastAttributes(kept), wanted)
        return self.shaped(self.reduced(x, tuple(range(len(old)))), dims)

    def tamed(self, x: HloInstruction) -> HloInstruction:
        """A sum or a product of floats, made small again."""
        element = x.shape.element
        if not element.is_inexact:
            return x
        if element.is_complex:
            return make_instruction(O.COMPLEX, [self.tamed(part) for part in parts(x)])
        bound = BOUND[element]
        if not self.exact:  # nothing that would make small errors large in a few steps
            if self.rng.random() < 0.6:
                return make_instruction(self.rng.choice((O.TANH, O.SIN)), [x])
            return clamped(-2, x, 2)
        if self.rng.random() < 0.4:
            return clamped(-bound, x, bound)
        return make_instruction(O.REMAINDER, [x, filled(bound - 1, x.shape)])

    # element-wise
    def changed(self, x: HloInstruction) -> HloInstruction:
        """One operation on a value."""
        element = x.shape.element
        if element is E.PRED:
            opcodes = [O.NOT]
        elif element.is_integral:
            opcodes = [O.NEGATE, O.NOT, O.POPULATION_COUNT, O.COUNT_LEADING_ZEROS]
            opcodes += [O.ABS, O.SIGN] if element.is_signed else []
        elif element.is_complex:
            opcodes = [O.NEGATE]
        else:
            opcodes = [O.NEGATE, O.ABS]
            opcodes += [O.SIGN, O.FLOOR] if self.exact else ROUNDING
        opcode = self.rng.choice(opcodes)
        if opcode is O.EXP:
            x = clamped(-8, x, 1)
        return make_instruction(opcode, [x])

    def combined(self, x: HloInstruction, y: HloInstruction) -> HloInstruction:
        """One operation on two values of a type."""
        element = x.shape.element
        if element is E.PRED:
            opcodes = [O.AND, O.OR, O.XOR]
        elif element.is_integral:
            opcodes = [O.ADD, O.SUBTRACT, O.MULTIPLY, O.MAXIMUM, O.MINIMUM, O.AND, O.OR, O.XOR, O.DIVIDE, O.REMAINDER]
            opcodes += [O.SHIFT_LEFT, O.SHIFT_RIGHT_ARITHMETIC, O.SHIFT_RIGHT_LOGICAL]
        elif element.is_complex:
            opcodes = [O.ADD, O.SUBTRACT, O.MULTIPLY]
        else:
            opcodes = [O.ADD, O.SUBTRACT, O.MULTIPLY, O.MAXIMUM, O.MINIMUM]
        opcode = self.rng.choice(opcodes)
        result = make_instruction(opcode, self.rng.sample([x, y], 2))
        return result if opcode in (O.MAXIMUM, O.MINIMUM) else self.tamed(result)

    def unary(self) -> None:
        self.add(self.changed(self.any()))

    def binary(self) -> None:
        x = self.any()
        self.add(self.combined(x, self.like(x.shape)))

    def multiply_add(self) -> None:
        """A product in a sum or a difference, which may be contracted."""
        x = self.number()
        product = make_instruction(O.MULTIPLY, [x, self.like(x.shape)])
        opcode = self.rng.choice((O.ADD, O.SUBTRACT))
        self.add(self.tamed(make_instruction(opcode, self.rng.sample([product, self.like(x.shape)], 2))))

    def predicate(self, dims: Dimensions) -> HloInstruction:
        """A pred that depends on values: a comparison, where nothing rounded is compared."""
        x = self.any(lambda v: self.jumps(v) and not v.shape.element.is_complex and v.shape.dimensions == dims)
        if not self.jumps(x) or x.shape.element.is_complex or x.shape.dimensions != dims:
            return self.like(Shape.array(E.PRED, dims))
        if x.shape.element is E.PRED:
            return x
        return compare(self.rng.choice(list(D)), x, self.like(x.shape))

    def choice(self) -> None:
        x = self.any()
        dims = x.shape.dimensions if self.rng.random() < 0.7 else ()
        self.add(make_instruction(O.SELECT, [self.predicate(dims), *self.rng.sample([x, self.like(x.shape)], 2)]))

    def convert(self) -> None:
        x = self.any()
        self.add(self.brought(x, x.shape.with_element_type(self.rng.choice(self.types))))

    # movement
    def broadcast(self) -> None:
        x = self.any()
        if x.shape.rank < 3:
            d = self.rng.randint(0, x.shape.rank)
            dims = list(x.shape.dimensions)
            dims.insert(d, self.rng.choice((1, 2, 3)))
            kept = tuple(k for k in range(len(dims)) if k != d)
            self.grown(
                make_instruction(O.BROADCAST, [x], BroadcastAttributes(kept), Shape.array(x.shape.element, dims))
            )

    def grown(self, x: HloInstruction) -> None:
        if x.shape.num_elements <= LARGEST:
            self.add(x)

    def transpose(self) -> None:
        x = self.ranked()
        dims = tuple(self.rng.sample(range(x.shape.rank), x.shape.rank))
        self.add(make_instruction(O.TRANSPOSE, [x], TransposeAttributes(dims)))

    def reshape(self) -> None:
        x = self.any()
        n = x.shape.num_elements
        first = self.rng.choice([d for d in range(1, min(n, 64) + 1) if n % d == 0] or [0])
        dims = self.rng.choice([(n,), (first, n // first if first else 3), (1, n)])
        self.add(make_instruction(O.RESHAPE, [x], shape=Shape.array(x.shape.element, dims)))

    def slice(self) -> None:
        x = self.ranked()
        starts, limits, strides = [], [], []
        for size in x.shape.dimensions:
            whole = self.rng.random() < 0.4
            starts.append(0 if whole else self.rng.randint(0, max(size - 1, 0)))
            limits.append(size if whole else self.rng.randint(min(starts[-1] + 1, size), size))
            strides.append(1 if whole else self.rng.choice((1, 1, 2)))
        self.add(make_instruction(O.SLICE, [x], SliceAttributes(tuple(starts), tuple(limits), tuple(strides))))

    def concatenate(self) -> None:
        """Often one that keeps the size: an element goes in, and another falls out."""
        x = self.ranked()
        d = self.rng.randrange(x.shape.rank)
        dims = list(x.shape.dimensions)
        n = dims[d]
        count = self.rng.randint(1, n) if n and self.rng.random() < 0.7 else 0
        dims[d] = count or self.rng.choice((0, 1, 2))
        other = self.like(Shape.array(x.shape.element, dims))
        starts, limits = [0] * len(dims), list(x.shape.dimensions)
        at_front = self.rng.random() < 0.5
        starts[d], limits[d] = (0, n - count) if at_front else (count, n)
        kept = make_instruction(O.SLICE, [x], SliceAttributes(tuple(starts), tuple(limits), (1,) * len(dims)))
        order = [other, kept] if at_front else [kept, other]
        self.grown(make_instruction(O.CONCATENATE, order, ConcatenateAttributes(d)))

    def pad(self) -> None:
        x = self.ranked()
        low, high, interior = [], [], []
        for size in x.shape.dimensions:
            shift = self.rng.choice((0, 0, 1, 2)) if size > 1 else 0
            low.append(self.rng.choice((shift, -shift)))
            high.append(-low[-1] if self.rng.random() < 0.7 else self.rng.choice((0, 1)))
            interior.append(self.rng.choice((0, 0, 0, 1)))
        value = self.scalar(x.shape.element)
        self.grown(make_instruction(O.PAD, [x, value], PadAttributes(tuple(low), tuple(high), tuple(interior))))

    def reverse(self) -> None:
        x = self.ranked()
        dims = tuple(sorted(self.rng.sample(range(x.shape.rank), self.rng.randint(1, x.shape.rank))))
        self.add(make_instruction(O.REVERSE, [x], ReverseAttributes(dims)))

    def iota(self) -> None:
        dims = self.rng.choice(self.sizes) or (3,)
        element = self.rng.choice([t for t in self.types if t is not E.PRED] or [E.S32])
        if max(dims) > BOUND.get(element, 100):
            element = E.S32
        shape = Shape.array(element, dims)
        self.add(make_instruction(O.IOTA, (), IotaAttributes(self.rng.randrange(len(dims))), shape))

    def through(self) -> None:
        """A copy, or a barrier around a tuple."""
        x = self.any()
        if self.rng.random() < 0.5:
            self.add(make_instruction(O.COPY, [x]))
            return
        barrier = make_instruction(O.OPT_BARRIER, [make_tuple([x, self.any()])])
        self.add(make_get_tuple_element(barrier, self.rng.randrange(2)))

    # reductions, sorts, random numbers
    def reduced(self, x: HloInstruction, dims: Dimensions) -> HloInstruction:
        """A reduction with the same result in any order."""
        element = x.shape.element
        count = int(np.prod([x.shape.dimensions[d] for d in dims]))
        if element is E.PRED:
            opcodes = [O.AND, O.OR, O.XOR]
        elif element.is_complex:
            opcodes = [O.ADD]
        elif element.is_integral:
            opcodes = [O.ADD, O.MAXIMUM, O.MINIMUM, O.MULTIPLY, O.AND, O.OR, O.XOR]
        elif element.bit_width == 16 and count > FEW:
            opcodes = [O.MAXIMUM, O.MINIMUM]
        else:
            opcodes = [O.ADD, O.MAXIMUM, O.MINIMUM]
        opcode = self.rng.choice(opcodes)
        init = 0 if opcode is O.ADD and element.is_inexact else self.rng.choice((0, 1))
        operands = [x, filled(init, Shape.array(element))]
        result = make_instruction(O.REDUCE, operands, ReduceAttributes(dims, scalar_reducer(opcode, element)))
        return self.tamed(result) if opcode is O.ADD else result

    def reduce(self) -> None:
        x = self.any()
        dims = tuple(sorted(self.rng.sample(range(x.shape.rank), self.rng.randint(0, x.shape.rank))))
        self.add(self.reduced(x, dims))

    def argmax(self) -> None:
        """A reduction with two results."""
        x = self.any(lambda v: v.shape.rank > 0 and self.jumps(v) and not v.shape.element.is_complex)
        element = x.shape.element
        if not x.shape.rank or not self.jumps(x) or element.is_complex or element is E.PRED:
            return
        d = self.rng.randrange(x.shape.rank)
        indices = make_instruction(O.IOTA, (), IotaAttributes(d), x.shape.with_element_type(E.S32))
        low = -np.inf if element.is_floating else element.limits[0]
        inits = [make_constant(np.asarray(low, element.dtype)), make_constant(np.int32(0))]
        attributes = ReduceAttributes((d,), argmax_reducer(element, E.S32))
        both = make_instruction(O.REDUCE, [x, indices, *inits], attributes)
        for k in self.rng.sample(range(2), self.rng.randint(1, 2)):
            self.add(make_get_tuple_element(both, k))

    def sort(self) -> None:
        x = self.any(lambda v: v.shape.rank > 0 and self.jumps(v))
        if not x.shape.rank or not self.jumps(x) or x.shape.num_elements > 300:
            return
        operands = [x, *(self.like(x.shape) for _ in range(self.rng.randint(0, 1)))]
        by = comparator([o.shape.element for o in operands], 1)
        result = make_instruction(O.SORT, operands, SortAttributes(self.rng.randrange(x.shape.rank), by, True))
        if len(operands) == 1:
            self.add(result)
            return
        for k in range(2):
            self.add(make_get_tuple_element(result, k))

    def random_bits(self) -> None:
        """Threefry; its state is a value like others, so that loops carry it on."""
        state = self.like(Shape.array(E.U64, (2,)))
        bits = Shape.array(self.rng.choice((E.U32, E.U64, E.U8)), self.rng.choice(self.sizes))
        result = Shape.tuple([state.shape, bits])
        attributes = RngBitGeneratorAttributes(RandomAlgorithm.THREEFRY)
        both = make_instruction(O.RNG_BIT_GENERATOR, [state], attributes, result)
        for k in range(2):
            self.add(make_get_tuple_element(both, k))


def whole_numbers(seed: int, shape: Shape) -> np.ndarray[Any, Any]:
    """Small whole numbers."""
    generator = np.random.default_rng(seed)
    element = shape.element
    low, high = (0, 2) if element is E.PRED else (-3, 4) if element.is_signed or element.is_inexact else (0, 7)
    values = np.asarray(generator.integers(low, high, shape.dimensions))
    if element.is_complex:
        values = values + 1j * generator.integers(low, high, shape.dimensions)
    return np.asarray(values).astype(element.dtype)


def parameter_leaves(shape: Shape, name: str) -> tuple[HloInstruction, list[HloInstruction]]:
    """A parameter, and the arrays in it."""
    parameter = make_parameter(0, shape, name)
    return parameter, leaves_of(parameter)


def leaves_of(value: HloInstruction) -> list[HloInstruction]:
    """The arrays in a value, from the left."""
    if not value.shape.is_tuple:
        return [value]
    return [x for k in range(len(value.shape.elements)) for x in leaves_of(make_get_tuple_element(value, k))]
