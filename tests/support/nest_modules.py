"""Random modules for the code generator: few different sizes, so that values often fuse into nests of every kind.

`nest_module(rng)` draws one; `random_modules.random_arguments` makes inputs. Beyond `random_modules` it has all element
types, reductions that share a domain (also of several operands), softmax-like chains, updates in place, negative and
interior padding, wide and odd sizes, empty arrays.

Most floats are small whole numbers, on which arithmetic is exact in any order. Values that are not exact are
*rough*: nothing that jumps (comparisons, floor, conversions to integers) is done with them, so that results can be
compared with a tolerance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

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
from hloom.hlo.shape import Shape

from .random_modules import scalar_reducer

E = ElementType
O = Opcode  # noqa: E741
FLOATS = (E.F32, E.F64, E.F16, E.BF16)
INTEGERS = (E.S8, E.S16, E.S32, E.S64, E.U8, E.U16, E.U32, E.U64)
SIZES = (0, 1, 2, 3, 5, 7, 16, 17, 23, 31, 33, 64)
WIDE = (1024, 1025, 2053)
LARGEST = 20_000
"""Elements of an array."""

Dimensions = tuple[int, ...]


def argmax_reducer(values: ElementType, indices: ElementType) -> HloComputation:
    """(value, index) pairs: the larger value, NaN above all; of equal ones the smaller index."""
    types = (values, indices)
    x, i, y, j = (make_parameter(n, Shape.array(types[n % 2]), name) for n, name in enumerate("xiyj"))

    def compare(direction: ComparisonDirection, p: HloInstruction, q: HloInstruction) -> HloInstruction:
        return make_instruction(O.COMPARE, [p, q], CompareAttributes(direction))

    is_nan, other_is_nan = (compare(ComparisonDirection.NE, v, v) for v in (x, y))
    larger = make_instruction(O.OR, [compare(ComparisonDirection.GT, x, y), is_nan])
    larger = make_instruction(O.AND, [larger, make_instruction(O.NOT, [other_is_nan])])
    both_nan = make_instruction(O.AND, [is_nan, other_is_nan])
    same = make_instruction(O.OR, [compare(ComparisonDirection.EQ, x, y), both_nan])
    first = make_instruction(O.AND, [same, compare(ComparisonDirection.LT, i, j)])
    keep = make_instruction(O.OR, [larger, first])
    chosen = [make_instruction(O.SELECT, [keep, p, q]) for p, q in ((x, y), (i, j))]
    return make_computation("argmax", make_tuple(chosen), [x, i, y, j])


def capped_reducer(element_type: ElementType) -> HloComputation:
    """max(max(x, y), 3): one with a constant in it."""
    x, y = (make_parameter(n, Shape.array(element_type), name) for n, name in enumerate("xy"))
    three = make_constant(np.asarray(3, element_type.dtype))
    largest = make_instruction(O.MAXIMUM, [make_instruction(O.MAXIMUM, [x, y]), three])
    return make_computation("capped", largest, [x, y])


class NestDrawer:
    """Grows one computation. `values` are the arrays so far; `rough` those that are not exact."""

    def __init__(self, rng: random.Random, depth: int, sizes: Sequence[int], poor: bool) -> None:
        """`poor`: mostly arithmetic on arrays of one shape, so that much fuses."""
        self.rng = rng
        self.depth = depth
        self.sizes = sizes
        self.poor = poor
        self.values: list[HloInstruction] = []
        self.rough: set[HloInstruction] = set()
        self._axes: Dimensions = ()

    # what to draw from
    def any(self, *types: ElementType, exact: bool = False, ranked: bool = False) -> HloInstruction:
        found = [v for v in self.values if not types or v.shape.element in types]
        found = [v for v in found if not (exact and v in self.rough) and (v.shape.rank or not ranked)]
        if not found:
            return self.add(self.constant(types[0] if types else E.F32, self.dimensions() if ranked else ()))
        return self.rng.choice(found[-8:] if self.rng.random() < 0.7 else found)

    def dimensions(self, rank: int | None = None) -> Dimensions:
        rank = self.rng.choice((1, 2, 2, 2, 3, 3, 4)) if rank is None else rank
        same = [v.shape.dimensions for v in self.values if v.shape.rank == rank]
        if same and self.rng.random() < 0.5:
            return self.rng.choice(same)
        found: list[int] = []
        for _ in range(rank):
            size = self.rng.choice(self.sizes)
            found.append(size if size * int(np.prod(found, dtype=int)) <= LARGEST else self.rng.choice((1, 2, 3)))
        return tuple(found)

    def like(self, shape: Shape, exact: bool = False) -> HloInstruction:
        found = [v for v in self.values if v.shape.compatible(shape) and not (exact and v in self.rough)]
        if found and self.rng.random() < 0.8:
            return self.rng.choice(found)
        for d in range(shape.rank):
            fewer = shape.dimensions[:d] + shape.dimensions[d + 1 :]
            rows = [v for v in self.values if v.shape.compatible(Shape.array(shape.element, fewer))]
            rows = [v for v in rows if not (exact and v in self.rough)]
            if rows and self.rng.random() < 0.6:
                kept = tuple(e for e in range(shape.rank) if e != d)
                source = self.rng.choice(rows)
                return self.derived(make_instruction(O.BROADCAST, [source], BroadcastAttributes(kept), shape), source)
        if self.rng.random() < 0.5 or shape.num_elements > 100:
            scalar = self.scalar(shape.element, exact)
            return self.derived(make_instruction(O.BROADCAST, [scalar], BroadcastAttributes(()), shape), scalar)
        return self.add(self.constant(shape.element, shape.dimensions))

    def scalar(self, element_type: ElementType, exact: bool = True) -> HloInstruction:
        found = [v for v in self.values if v.shape.is_scalar and v.shape.element is element_type]
        found = [v for v in found if not (exact and v in self.rough)]
        if found and self.rng.random() < 0.5:
            return self.rng.choice(found)
        return self.add(self.constant(element_type, ()))

    def constant(self, element_type: ElementType, dimensions: Dimensions) -> HloInstruction:
        generator = np.random.default_rng(self.rng.randrange(1 << 30))
        low = 0 if element_type in (E.PRED, E.U8, E.U16, E.U32, E.U64) else -3
        return make_constant(np.asarray(generator.integers(low, 4, dimensions)).astype(element_type.dtype))

    def add(self, instruction: HloInstruction, rough: bool = False) -> HloInstruction:
        self.values.append(instruction)
        if rough and not (instruction.shape.element.is_integral or instruction.shape.element is E.PRED):
            self.rough.add(instruction)
        return instruction

    def derived(self, instruction: HloInstruction, *sources: HloInstruction) -> HloInstruction:
        return self.add(instruction, any(s in self.rough for s in sources))

    def tamed(self, instruction: HloInstruction, rough: bool) -> HloInstruction:
        """Clamped, so that repeated sums and products stay small and exact."""
        element = instruction.shape.element
        if not element.is_floating:
            return self.add(instruction, rough or element.is_complex)
        low, high = (make_constant(np.asarray(v, element.dtype)) for v in (-8, 8))
        if self.rng.random() < 0.2:
            self.add(instruction, rough)
        return self.add(make_instruction(O.CLAMP, [low, instruction, high]), rough)

    # steps
    def step(self) -> None:
        if self.poor and self.rng.random() < 0.6:
            self.rng.choice([self.unary, self.binary, self.binary, self.binary])()
            return
        choices = [
            (self.unary, 3), (self.binary, 7), (self.compare_select, 2), (self.clamp, 1), (self.convert, 2),
            (self.broadcast, 2), (self.reduce, 5), (self.reductions, 2), (self.argmax, 1), (self.normalise, 2),
            (self.transpose, 2), (self.reshape, 2), (self.slice, 2), (self.concatenate, 2), (self.pad, 2),
            (self.reverse, 1), (self.dot, 1), (self.dynamic_slice, 1), (self.dynamic_update_slice, 2),
            (self.in_place, 1),
            (self.iota, 1), (self.fresh, 1),
        ]  # fmt: skip
        if self.depth:
            choices += [(self.loop, 1), (self.conditional, 1), (self.call, 1)]
        functions, weights = zip(*choices, strict=True)
        self.rng.choices(functions, weights)[0]()

    def unary(self) -> None:
        x = self.any(*FLOATS, E.S32, E.S8)
        rough = x in self.rough
        if x.shape.element.is_integral:
            opcode = self.rng.choice([O.NEGATE, O.ABS, O.SIGN, O.NOT, O.POPULATION_COUNT])
        elif self.rng.random() < 0.3:
            opcode, rough = self.rng.choice([O.TANH, O.LOGISTIC, O.COS, O.ERF]), True
        else:
            opcode = self.rng.choice([O.NEGATE, O.ABS] if rough else [O.NEGATE, O.ABS, O.SIGN, O.FLOOR])
        self.add(make_instruction(opcode, [x]), rough)

    def binary(self) -> None:
        x = self.any()
        y = self.like(x.shape)
        element = x.shape.element
        if element is E.PRED:
            opcodes = [O.AND, O.OR, O.XOR, O.ADD, O.MULTIPLY, O.MAXIMUM]
        elif element.is_integral:
            opcodes = [O.ADD, O.SUBTRACT, O.MULTIPLY, O.MAXIMUM, O.MINIMUM, O.DIVIDE, O.REMAINDER, O.AND, O.XOR]
            opcodes += [O.SHIFT_LEFT, O.SHIFT_RIGHT_LOGICAL, O.SHIFT_RIGHT_ARITHMETIC]
        elif element.is_complex:
            opcodes = [O.ADD, O.SUBTRACT]
        else:
            opcodes = [O.ADD, O.SUBTRACT, O.MAXIMUM, O.MINIMUM, O.MULTIPLY]
        opcode = self.rng.choice(opcodes)
        result = make_instruction(opcode, self.rng.sample([x, y], 2))
        rough = x in self.rough or y in self.rough
        if opcode is O.MULTIPLY:
            self.tamed(result, rough)
        else:
            self.add(result, rough)

    def compare_select(self) -> None:
        x = self.any(*FLOATS, *INTEGERS, E.PRED, exact=True)
        y = self.like(x.shape, exact=True)
        direction = self.rng.choice(list(ComparisonDirection))
        pred = self.add(make_instruction(O.COMPARE, [x, y], CompareAttributes(direction)))
        if self.rng.random() < 0.2:
            pred = self.scalar(E.PRED)
        on_true, on_false = self.rng.sample([x, y], 2)
        self.add(make_instruction(O.SELECT, [pred, on_true, on_false]))

    def clamp(self) -> None:
        x = self.any(*FLOATS, *INTEGERS)
        if self.rng.random() < 0.5:
            low, high = self.scalar(x.shape.element), self.scalar(x.shape.element)
        else:
            low, high = self.like(x.shape), self.like(x.shape)
        self.derived(make_instruction(O.CLAMP, [low, x, high]), low, x, high)

    def convert(self) -> None:
        target = self.rng.choice([E.PRED, *INTEGERS, *FLOATS, *FLOATS, E.C64])
        x = self.any(exact=target is E.PRED or target.is_integral)
        rough = x in self.rough or target in (E.F16, E.BF16)
        self.add(make_instruction(O.CONVERT, [x], shape=x.shape.with_element_type(target)), rough)

    def broadcast(self) -> None:
        x = self.any()
        rank = x.shape.rank + self.rng.randint(0, 2)
        if rank > 4:
            return
        kept = self.rng.sample(range(rank), x.shape.rank)
        if self.rng.random() < 0.9:
            kept.sort()
        dims = list(self.dimensions(rank))
        for size, d in zip(x.shape.dimensions, kept, strict=True):
            dims[d] = size
        if int(np.prod(dims, dtype=int)) <= LARGEST:
            shape = Shape.array(x.shape.element, dims)
            self.derived(make_instruction(O.BROADCAST, [x], BroadcastAttributes(tuple(kept)), shape), x)

    def reducer(self, element: ElementType) -> tuple[HloComputation, HloInstruction]:
        """A reducer and an init value that it leaves alone (or nearly)."""
        if element is E.PRED:
            opcode = self.rng.choice([O.AND, O.OR, O.XOR])
        elif element.is_integral:
            opcode = self.rng.choice([O.ADD, O.MAXIMUM, O.MINIMUM, O.AND, O.OR, O.XOR, O.MULTIPLY])
        elif element.is_complex:
            opcode = O.ADD
        else:
            opcode = self.rng.choice([O.ADD, O.ADD, O.MAXIMUM, O.MINIMUM])
        if element is not E.PRED and not element.is_complex and self.rng.random() < 0.1:
            return capped_reducer(element), make_constant(np.asarray(0, element.dtype))
        neutral = {O.ADD: 0, O.MAXIMUM: 0, O.MINIMUM: 1, O.AND: 1, O.OR: 0, O.XOR: 0, O.MULTIPLY: 1}[opcode]
        init = make_constant(np.asarray(neutral, element.dtype))
        if opcode in (O.ADD, O.MAXIMUM) and self.rng.random() < 0.2:
            init = self.scalar(element)
        return scalar_reducer(opcode, element), init

    def axes(self, x: HloInstruction) -> Dimensions:
        """Dimensions to reduce: often the last reduction's, or rows, columns, or the middle dimensions."""
        rank = x.shape.rank
        kind = self.rng.random()
        if kind < 0.4 and all(d < rank for d in self._axes):
            return self._axes
        if kind < 0.6:
            self._axes = (rank - 1,)
        elif kind < 0.75 and rank > 1:
            self._axes = tuple(range(self.rng.randint(1, rank - 1)))
        elif kind < 0.85 and rank > 2:
            self._axes = tuple(range(1, rank - 1))
        else:
            self._axes = tuple(sorted(self.rng.sample(range(rank), self.rng.randint(0, rank))))
        return self._axes

    def reduced(self, x: HloInstruction, axes: Dimensions) -> HloInstruction:
        computation, init = self.reducer(x.shape.element)
        result = make_instruction(O.REDUCE, [x, init], ReduceAttributes(axes, computation))
        rough = x in self.rough or init in self.rough or x.shape.element in (E.F16, E.BF16)
        return self.tamed(result, rough)

    def reduce(self) -> None:
        x = self.any(ranked=True)
        self.reduced(x, self.axes(x))

    def reductions(self) -> None:
        """Several over the same dimensions of arrays of one shape; perhaps used at all elements again."""
        x = self.any(ranked=True)
        axes = self.axes(x)
        kept = tuple(d for d in range(x.shape.rank) if d not in axes)
        for _ in range(self.rng.randint(2, 3)):
            y = self.reduced(self.rng.choice([x, self.like(x.shape)]), axes)
            if self.rng.random() < 0.5:
                shape = x.shape.with_element_type(y.shape.element)
                spread = self.derived(make_instruction(O.BROADCAST, [y], BroadcastAttributes(kept), shape), y)
                x = self.derived(make_instruction(O.MAXIMUM, [x, spread]), x, spread) if (
                    not x.shape.element.is_complex) else x

    def argmax(self) -> None:
        x = self.any(*FLOATS, *INTEGERS, exact=True, ranked=True)
        axes = self.axes(x)
        index = self.rng.choice([E.S32, E.U8, E.S64])
        d = self.rng.choice(axes) if axes else 0
        iota = make_instruction(O.IOTA, (), IotaAttributes(d), x.shape.with_element_type(index))
        indices = self.rng.choice([iota, self.like(iota.shape)])
        low = make_constant(np.asarray(0, x.shape.element.dtype))
        high = make_constant(np.asarray(100, index.dtype))
        attributes = ReduceAttributes(axes, argmax_reducer(x.shape.element, index))
        result = make_instruction(O.REDUCE, [x, indices, low, high], attributes)
        chosen = self.rng.choice([(0, 1), (1,), (0,)])
        for k in chosen:
            self.add(make_get_tuple_element(result, k))

    def normalise(self) -> None:
        """A chain of reductions over one array, as in softmax and layer norm."""
        x = self.any(E.F32, E.F64, ranked=True)
        axes = self.axes(x)
        kept = tuple(d for d in range(x.shape.rank) if d not in axes)
        element = x.shape.element

        def reduced(value: HloInstruction, opcode: Opcode) -> HloInstruction:
            operands = [value, make_constant(np.asarray(0, element.dtype))]
            result = make_instruction(O.REDUCE, operands, ReduceAttributes(axes, scalar_reducer(opcode, element)))
            return make_instruction(O.BROADCAST, [result], BroadcastAttributes(kept), x.shape)

        shifted = make_instruction(O.SUBTRACT, [x, reduced(x, O.MAXIMUM)])
        value = make_instruction(self.rng.choice([O.EXP, O.TANH]), [shifted])
        one = make_constant(np.ones((), element.dtype))
        ones = make_instruction(O.BROADCAST, [one], BroadcastAttributes(()), x.shape)
        total = make_instruction(O.ADD, [make_instruction(O.ABS, [reduced(value, O.ADD)]), ones])
        if self.rng.random() < 0.4:
            self.add(value, True)
        if self.rng.random() < 0.3:
            self.add(shifted, x in self.rough)
        self.add(make_instruction(O.DIVIDE, [value, total]), True)

    def transpose(self) -> None:
        x = self.any(ranked=True)
        dims = tuple(self.rng.sample(range(x.shape.rank), x.shape.rank))
        self.derived(make_instruction(O.TRANSPOSE, [x], TransposeAttributes(dims)), x)

    def reshape(self) -> None:
        x = self.any()
        n = x.shape.num_elements
        if self.rng.random() < 0.5:  # ones come and go
            dims = [d for d in x.shape.dimensions if d != 1 or self.rng.random() < 0.3]
            if len(dims) < 4:
                dims.insert(self.rng.randint(0, len(dims)), 1)
        else:
            first = self.rng.choice([d for d in range(1, n + 1) if n % d == 0] or [0])
            rest = n // first if first else self.rng.choice((1, 3))
            dims = list(self.rng.choice([(n,), (first, rest), (1, n), (first, 1, rest)]))
        self.derived(make_instruction(O.RESHAPE, [x], shape=Shape.array(x.shape.element, dims)), x)

    def slice(self) -> None:
        x = self.any(ranked=True)
        starts, limits, strides = [], [], []
        for size in x.shape.dimensions:
            whole = self.rng.random() < 0.4
            starts.append(0 if whole else self.rng.randint(0, size))
            limits.append(size if whole else self.rng.randint(starts[-1], size))
            strides.append(1 if whole else self.rng.choice([1, 1, 2, 5]))
        attributes = SliceAttributes(tuple(starts), tuple(limits), tuple(strides))
        self.derived(make_instruction(O.SLICE, [x], attributes), x)

    def concatenate(self) -> None:
        x = self.any(ranked=True)
        d = self.rng.randrange(x.shape.rank)
        parts = [x]
        for _ in range(self.rng.randint(0, 3)):
            dims = list(x.shape.dimensions)
            if self.rng.random() < 0.5:
                dims[d] = self.rng.choice((0, 1, 2, 5))
            parts.append(self.like(Shape.array(x.shape.element, dims)))
        self.rng.shuffle(parts)
        result = make_instruction(O.CONCATENATE, parts, ConcatenateAttributes(d))
        if result.shape.num_elements <= LARGEST:
            self.derived(result, *parts)

    def pad(self) -> None:
        x = self.any(ranked=True)
        low, high, interior = [], [], []
        for size in x.shape.dimensions:
            step = self.rng.choice((0, 0, 0, 1, 2))
            spread = size + max(size - 1, 0) * step
            touched = self.rng.random() < 0.7
            low.append(self.rng.choice((0, 1, 2, 7, -1, -2)) if touched else 0)
            high.append(self.rng.choice((0, 1, 2, 7, -1, -2)) if touched else 0)
            interior.append(step if touched else 0)
            if spread + low[-1] + high[-1] < 0:
                low[-1] = high[-1] = 1
        value = self.scalar(x.shape.element)
        attributes = PadAttributes(tuple(low), tuple(high), tuple(interior))
        result = make_instruction(O.PAD, [x, value], attributes)
        if result.shape.num_elements <= LARGEST:
            self.derived(result, x, value)

    def reverse(self) -> None:
        x = self.any(ranked=True)
        dims = tuple(sorted(self.rng.sample(range(x.shape.rank), self.rng.randint(0, x.shape.rank))))
        self.derived(make_instruction(O.REVERSE, [x], ReverseAttributes(dims)), x)

    def dot(self) -> None:
        x = self.any(E.F32, E.F64, E.S32, E.F16, E.PRED, E.C64, ranked=True)
        rank = x.shape.rank
        groups = [self.rng.choice("bcf") for _ in range(rank)]
        shared = [d for d in range(rank) if groups[d] != "f"]
        if sum(x.shape.dimensions[d] for d in shared) > 200:
            return
        order = [*shared, *([-1] * self.rng.randint(0, 2))]
        self.rng.shuffle(order)
        dims = [x.shape.dimensions[d] if d >= 0 else self.rng.choice((1, 2, 3, 17)) for d in order]
        y = self.like(Shape.array(x.shape.element, dims))
        batch = tuple(d for d in shared if groups[d] == "b")
        contracting = tuple(d for d in shared if groups[d] == "c")
        attributes = DotAttributes(
            batch, tuple(order.index(d) for d in batch), contracting, tuple(order.index(d) for d in contracting)
        )
        result = make_instruction(O.DOT, [x, y], attributes)
        if result.shape.num_elements <= LARGEST:
            rough = x in self.rough or y in self.rough or x.shape.element is E.F16
            if result.shape.element.is_complex:
                return
            self.tamed(result, rough)

    def starts(self, rank: int) -> list[HloInstruction]:
        index = self.rng.choice([E.S32, E.S32, E.U32, E.S64, E.U8])
        starts: list[HloInstruction] = []
        scalars = [v for v in self.values if v.shape.is_scalar and v.shape.element is E.S32]
        known = [v for v in scalars if v.opcode is not O.CONSTANT]
        index = E.S32 if known and self.rng.random() < 0.7 else index
        for _ in range(rank):
            x = self.rng.choice(known) if known and index is E.S32 and self.rng.random() < 0.7 else self.scalar(index)
            if self.rng.random() < 0.3:
                x = make_constant(np.asarray(self.rng.choice((0, 1, 2, 5, 20, 100)), index.dtype))
            starts.append(x)
        return starts

    def dynamic_slice(self) -> None:
        x = self.any(ranked=True)
        sizes = tuple(self.rng.choice([d, self.rng.randint(0, d), min(d, 1)]) for d in x.shape.dimensions)
        operands = [x, *self.starts(x.shape.rank)]
        self.derived(make_instruction(O.DYNAMIC_SLICE, operands, DynamicSliceAttributes(sizes)), x)

    def dynamic_update_slice(self) -> None:
        x = self.any(ranked=True)
        for _ in range(self.rng.choice((1, 1, 2))):
            starts = self.starts(x.shape.rank)
            sizes = tuple(self.rng.choice([d, self.rng.randint(0, d), min(d, 1)]) for d in x.shape.dimensions)
            if self.rng.random() < 0.4:
                there = starts if self.rng.random() < 0.7 else self.starts(x.shape.rank)
                update = make_instruction(O.DYNAMIC_SLICE, [x, *there], DynamicSliceAttributes(sizes))
                if x.shape.element in (*FLOATS, E.S8, E.S16, E.S32, E.S64):
                    update = make_instruction(self.rng.choice([O.NEGATE, O.ABS]), [update])
                    if self.rng.random() < 0.4:
                        update = make_instruction(O.MAXIMUM, [update, self.like(update.shape)])
            else:
                update = self.like(Shape.array(x.shape.element, sizes))
            rough = any(v in self.rough for v in (x, update, *update.operands))
            x = self.add(make_instruction(O.DYNAMIC_UPDATE_SLICE, [x, update, *starts]), rough or x in self.rough)

    def in_place(self) -> None:
        """Updates of one array, one after the other, with values that were read from it, perhaps at another place."""
        x = self.any(E.F32, E.S32, ranked=True)
        x = self.add(make_instruction(O.NEGATE, [x]), x in self.rough)
        for _ in range(self.rng.randint(1, 3)):
            sizes = tuple(self.rng.choice([d, (d + 1) // 2, min(d, 1)]) for d in x.shape.dimensions)
            starts = self.starts(x.shape.rank)
            there = self.rng.choice([starts, self.starts(x.shape.rank)])
            update = make_instruction(O.DYNAMIC_SLICE, [x, *there], DynamicSliceAttributes(sizes))
            match self.rng.randrange(5):
                case 0:
                    update = make_instruction(O.ABS, [update])
                case 1:
                    update = make_instruction(O.REVERSE, [update], ReverseAttributes((0,)))
                case 2:
                    update = make_instruction(O.MAXIMUM, [update, self.like(update.shape, exact=x not in self.rough)])
                case 3:
                    other = self.any(x.shape.element, exact=x not in self.rough)
                    if other.shape.rank:
                        limits = tuple(min(n, k) for n, k in zip(sizes, other.shape.dimensions, strict=False))
                        if limits == sizes and other.shape.rank == len(sizes):
                            whole = (0,) * len(sizes), limits, (1,) * len(sizes)
                            update = make_instruction(O.SLICE, [other], SliceAttributes(*whole))
            x = make_instruction(O.DYNAMIC_UPDATE_SLICE, [x, update, *starts])
        self.add(x, True)

    def iota(self) -> None:
        dims = self.dimensions()
        shape = Shape.array(self.rng.choice([E.F32, E.S32, E.U8, E.BF16]), dims)
        rough = shape.element is E.BF16
        self.add(make_instruction(O.IOTA, (), IotaAttributes(self.rng.randrange(shape.rank)), shape), rough)

    def fresh(self) -> None:
        element = self.rng.choice([E.F32, E.S32, E.PRED])
        self.add(self.constant(element, self.dimensions(self.rng.randint(0, 2))))

    # control flow
    def inner(self, leaves: list[HloInstruction], steps: int) -> NestDrawer:
        """Floats that come in may be rough in some iteration, so they all are."""
        drawer = NestDrawer(self.rng, self.depth - 1, self.sizes, self.poor)
        for leaf in leaves:
            drawer.add(leaf, rough=True)
        for _ in range(steps):
            drawer.step()
        return drawer

    def loop(self) -> None:
        """while i < n: leaves of the state are swapped, updated in place, passed on."""
        state = [self.any() for _ in range(self.rng.randint(1, 4))]
        if self.rng.random() < 0.3:
            state.append(state[-1])
        initial = make_tuple([make_constant(np.int32(self.rng.randint(-1, 1))), *state])
        p = make_parameter(0, initial.shape, "state")
        limit = make_constant(np.int32(self.rng.randint(0, 3)))
        below = CompareAttributes(ComparisonDirection.LT)
        test = make_instruction(O.COMPARE, [make_get_tuple_element(p, 0), limit], below)
        condition = make_computation("condition", test, [p])
        q = make_parameter(0, initial.shape, "state")
        leaves = [make_get_tuple_element(q, i) for i in range(len(initial.operands))]
        drawer = self.inner(leaves, self.rng.randint(0, 6))
        following = make_instruction(O.ADD, [leaves[0], make_constant(np.int32(1))])
        if self.rng.random() < 0.4:
            for leaf in leaves[1:]:
                if leaf.shape.rank and 0 not in leaf.shape.dimensions:  # a row goes in at the counter
                    sizes = (1, *leaf.shape.dimensions[1:])
                    zero = make_constant(np.int32(0))
                    starts = [leaves[0], *[zero] * (leaf.shape.rank - 1)]
                    update = drawer.like(Shape.array(leaf.shape.element, sizes))
                    drawer.add(make_instruction(O.DYNAMIC_UPDATE_SLICE, [leaf, update, *starts]), True)
        outs = [following, *(drawer.like(x.shape) for x in leaves[1:])]
        body = make_computation("body", make_tuple(outs), [q])
        result = make_instruction(O.WHILE, [initial], WhileAttributes(condition, body))
        for i in range(len(initial.operands)):
            self.add(make_get_tuple_element(result, i), True)

    def conditional(self) -> None:
        index = self.scalar(self.rng.choice([E.PRED, E.S32]))
        count = 2 if index.shape.element is E.PRED else self.rng.randint(1, 3)
        wanted = [self.any().shape for _ in range(self.rng.randint(1, 3))]
        operands, branches = [], []
        for _ in range(count):
            operand = make_tuple([self.any() for _ in range(self.rng.randint(1, 3))])
            p = make_parameter(0, operand.shape, "operand")
            drawer = self.inner([make_get_tuple_element(p, i) for i in range(len(operand.operands))],
                                self.rng.randint(0, 4))
            branches.append(make_computation("branch", make_tuple([drawer.like(s) for s in wanted]), [p]))
            operands.append(operand)
        attributes = ConditionalAttributes(tuple(branches))
        result = make_instruction(O.CONDITIONAL, [index, *operands], attributes)
        for i in range(len(wanted)):
            self.add(make_get_tuple_element(result, i), True)

    def call(self) -> None:
        operands = [self.any() for _ in range(self.rng.randint(1, 4))]
        parameters = [make_parameter(i, x.shape, "p") for i, x in enumerate(operands)]
        drawer = self.inner(parameters, self.rng.randint(1, 5))
        self.add(make_call(make_computation("callee", drawer.any(), parameters), operands), True)


def nest_module(rng: random.Random, steps: int = 14, depth: int = 1) -> HloModule:
    """A module with 1 to 6 parameters and up to 10 results, about `steps` steps long."""
    sizes = rng.sample(SIZES, rng.randint(1, 3))
    if rng.random() < 0.25:
        sizes.append(rng.choice(WIDE))
    if rng.random() < 0.7:
        sizes = [s for s in sizes if s] or [5]
    poor = rng.random() < 0.5
    drawer = NestDrawer(rng, depth, sizes, poor)
    count = rng.randint(0, 2)
    parameters = [make_parameter(number, Shape.array(E.S32), f"index.{number}") for number in range(count)]
    for number in range(len(parameters), len(parameters) + rng.randint(1, 4)):
        element = rng.choice([E.F32] * (12 if poor else 4) + [E.F64, E.S32, E.PRED, E.BF16, E.S8, E.U64])
        shape = Shape.array(element, drawer.dimensions(rng.choice((None, None, None, 0))))
        parameters.append(make_parameter(number, shape, f"argument.{number}"))
        drawer.values = list(parameters)
    for _ in range(steps):
        drawer.step()
    results = drawer.values[-2:] + rng.choices(drawer.values, k=rng.choice((0, 1, 2, 4, 8)))
    root = make_tuple(results) if rng.random() < 0.9 else results[0]
    return make_module("nests", make_computation("main", root, parameters))


def whole_arguments(module: HloModule, seed: int) -> list[np.ndarray]:
    """Arrays of small whole numbers for a module's parameters."""
    generator = np.random.default_rng(seed)
    arrays = []
    for parameter in module.entry.parameters:
        element = parameter.shape.element
        low, high = (0, 2) if element is E.PRED else (0, 6) if element in (E.U8, E.U16, E.U32, E.U64) else (-4, 5)
        values = np.asarray(generator.integers(low, high, parameter.shape.dimensions))
        arrays.append(values.astype(element.dtype))
    return arrays


def assert_close(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Integers equal, floats close: rough ones may differ by rounding, half ones more."""
    for got, want in zip(actual, expected, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
            continue
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        half = want.dtype.itemsize == 2
        tolerance = {"rtol": 4e-2, "atol": 0.3} if half else {"rtol": 2e-3, "atol": 2e-3}
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), **tolerance)
