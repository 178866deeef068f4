"""Steps of random loop programs that read and write places of arrays, and small products and factorisations.

Indices come from counters, from data and from constants; many are out of range: slices and their updates are moved
inside, gathers too, and updates by scatter are dropped.
"""

from __future__ import annotations

import numpy as np
from hloom.hlo.builder import make_computation, make_constant, make_instruction
from hloom.hlo.element_type import ElementType
from hloom.hlo.ir import HloInstruction
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.dot import DotAttributes
from hloom.hlo.ops.elementwise import ComparisonDirection
from hloom.hlo.ops.indexing import GatherAttributes, ScatterAttributes
from hloom.hlo.ops.linalg import CholeskyAttributes, TransposeKind, TriangularSolveAttributes
from hloom.hlo.ops.movement import ConcatenateAttributes, DynamicSliceAttributes, IotaAttributes, ReverseAttributes
from hloom.hlo.shape import Shape

from .random_modules import scalar_reducer
from .random_steps import BOUND, FEW, Dimensions, Step, StepDrawer, compare, filled

E = ElementType
O = Opcode  # noqa: E741
D = ComparisonDirection

INDEX_TYPES = (E.S32, E.S32, E.S32, E.S64, E.U32, E.U8, E.S8)
OUTSIDE = (-1, -3, 7, 100)


class IndexedDrawer(StepDrawer):
    """Grows one computation, with indexed reads and updates."""

    def steps(self) -> dict[Step, float]:
        return {
            **super().steps(), self.dynamic_slice: 3, self.update: 8, self.gather: 2, self.scatter: 2.5, self.dot: 2,
            self.cholesky: 0.3, self.solve: 0.3,
        }  # fmt: skip

    # indices
    def index(self, element: ElementType, size: int) -> HloInstruction:
        """A scalar: a counter or other data, perhaps moved, or a constant."""
        known = [
            v for v in self.values
            if v.shape.is_scalar and v.shape.element.is_integral and v.opcode is not O.CONSTANT
        ]  # fmt: skip
        kind = self.rng.random()
        if not known or kind < 0.25:
            place = self.rng.choice((0, max(size - 1, 0), size // 2, *self.rng.sample(OUTSIDE, 1)))
            low, high = element.limits
            return make_constant(np.asarray(min(max(place, low), high), element.dtype))
        x = self.converted(self.rng.choice(known[:3] if self.rng.random() < 0.6 else known), element)
        if kind < 0.7:
            return x
        moved = filled(self.rng.choice((1, 2, size % 100)), x.shape)
        return make_instruction(self.rng.choice((O.ADD, O.SUBTRACT, O.MULTIPLY)), [x, moved])

    def starts(self, dims: Dimensions, sizes: Dimensions) -> list[HloInstruction]:
        """Where a slice begins: at 0 where it is whole, as a rule."""
        element = self.rng.choice(INDEX_TYPES)
        zero = make_constant(np.asarray(0, element.dtype))
        return [
            zero if size == n and self.rng.random() < 0.8 else self.index(element, n)
            for n, size in zip(dims, sizes, strict=True)
        ]

    def block(self, dims: Dimensions) -> Dimensions:
        """The sizes of a piece: a row, a column, an element, or any other."""
        kind = self.rng.random()
        if kind < 0.45:
            one = self.rng.randrange(len(dims))
            return tuple(min(n, 1) if d == one else n for d, n in enumerate(dims))
        if kind < 0.75:
            return tuple(min(n, 1) for n in dims)
        return tuple(self.rng.choice((n, min(n, 1), self.rng.randint(0, n))) for n in dims)

    def index_vector(self, count: int, size: int, distinct: bool) -> HloInstruction:
        """s32[count]."""
        shape = Shape.array(E.S32, (count,))
        if not distinct:
            return self.like(shape)
        places = make_instruction(O.IOTA, (), IotaAttributes(0), shape)
        if self.rng.random() < 0.3:
            places = make_instruction(O.REVERSE, [places], ReverseAttributes((0,)))
        return make_instruction(O.ADD, [places, self.shaped(self.index(E.S32, size), (count,))])

    # slices and their updates
    def dynamic_slice(self) -> None:
        x = self.ranked()
        sizes = self.block(x.shape.dimensions)
        self.add(self.piece(x, self.starts(x.shape.dimensions, sizes), sizes))

    def piece(self, x: HloInstruction, starts: list[HloInstruction], sizes: Dimensions) -> HloInstruction:
        return make_instruction(O.DYNAMIC_SLICE, [x, *starts], DynamicSliceAttributes(sizes))

    def update(self) -> None:
        """One to three updates of an array: by its elements before, by those after an update, or by other values.
        The array before them may be needed afterwards."""
        source = self.ranked()
        x, dims = source, source.shape.dimensions
        sizes = self.block(dims)
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            starts = self.starts(dims, sizes)
            if self.rng.random() < 0.6:
                there = starts if self.rng.random() < 0.3 else self.starts(dims, sizes)
                update = self.piece(self.rng.choice((x, source)), there, sizes)
                update = (
                    self.changed(update) if self.rng.random() < 0.4 else self.combined(update, self.like(update.shape))
                )
            else:
                update = self.like(Shape.array(x.shape.element, sizes))
            x = make_instruction(O.DYNAMIC_UPDATE_SLICE, [x, update, *starts])
            if self.rng.random() < 0.3:
                sizes = self.block(dims)
        if self.rng.random() < 0.25:
            self.add(self.piece(self.rng.choice((x, source)), self.starts(dims, sizes), sizes))
        if self.rng.random() < 0.15:
            self.add(self.combined(x, source))
        self.add(x)

    # gather and scatter
    def gather(self) -> None:
        x = self.ranked()
        dims = x.shape.dimensions
        if 0 in dims:
            return
        if x.shape.rank == 2 and self.rng.random() < 0.4:
            count = self.rng.choice((1, 3))
            indices = self.pairs(count, dims, False)
            attributes = GatherAttributes((), (0, 1), (0, 1), 1, (1, 1))
            self.add(make_instruction(O.GATHER, [x, indices], attributes))
            return
        d = self.rng.randrange(x.shape.rank)
        indices, count = self.one_or_several(dims[d], False)
        sizes = tuple(1 if e == d else self.rng.choice((n, self.rng.randint(1, n))) for e, n in enumerate(dims))
        offsets = tuple(range(count, count + x.shape.rank - 1))
        self.grown(make_instruction(O.GATHER, [x, indices], GatherAttributes(offsets, (d,), (d,), count, sizes)))

    def one_or_several(self, size: int, distinct: bool) -> tuple[HloInstruction, int]:
        """A scalar index, or a vector; and its rank."""
        if self.rng.random() < 0.4:
            return self.index(E.S32, size), 0
        count = self.rng.choice((1, 2, 5, min(size, FEW)))
        return self.index_vector(count, size, distinct), 1

    def pairs(self, count: int, dims: Dimensions, distinct: bool) -> HloInstruction:
        """Indices of `count` elements of a matrix."""
        columns = [
            self.shaped(self.index_vector(count, n, distinct and k == 0), (count, 1)) for k, n in enumerate(dims)
        ]
        return make_instruction(O.CONCATENATE, columns, ConcatenateAttributes(1))

    def scatter(self) -> None:
        """A scatter with an operation that allows any order of updates; updates that replace have distinct places."""
        x = self.ranked()
        element, dims = x.shape.element, x.shape.dimensions
        if 0 in dims or x.shape.rank > 3:
            return
        distinct = not self.exact or self.rng.random() < 0.4
        x_rank = x.shape.rank
        if x_rank == 2 and self.rng.random() < 0.4:
            indices, count, inserted = self.pairs(3, dims, distinct), 1, (0, 1)
            updates = self.like(Shape.array(element, (3,)))
        else:
            d = self.rng.randrange(x_rank)
            indices, count = self.one_or_several(dims[d], distinct)
            inserted = (d,)
            others = [n for e, n in enumerate(dims) if e != d]
            updates = self.like(Shape.array(element, (*indices.shape.dimensions, *others)))
        if element is E.PRED:
            opcodes = [O.AND, O.OR, O.XOR]
        elif element.is_complex:
            opcodes = [O.ADD]
        else:
            opcodes = [O.ADD, O.MAXIMUM, O.MINIMUM]
        combiner = scalar_reducer(self.rng.choice(opcodes), element)
        if distinct and self.rng.random() < 0.6:
            combiner = make_computation("second", combiner.parameters[1], combiner.parameters)
        window = tuple(range(count, updates.shape.rank))
        unique = distinct and self.rng.random() < 0.5
        attributes = ScatterAttributes(window, inserted, inserted, count, combiner, unique_indices=unique)
        self.add(self.tamed(make_instruction(O.SCATTER, [x, indices, updates], attributes)))

    # products and factorisations
    def dot(self) -> None:
        x = self.any(lambda v: 0 < v.shape.rank <= 3 and v.shape.element is not E.PRED)
        element, rank = x.shape.element, x.shape.rank
        if not 0 < rank <= 3 or element is E.PRED:
            return
        c = self.rng.randrange(rank)
        if x.shape.dimensions[c] > (FEW if element.bit_width == 16 else 100):
            return
        batch = [d for d in range(rank) if d != c][: self.rng.choice((0, 0, 1))]
        order = [*batch, c, *([-1] if self.rng.random() < 0.6 else [])]
        self.rng.shuffle(order)
        dims = [x.shape.dimensions[d] if d >= 0 else self.rng.choice((1, 2, 3)) for d in order]
        y = self.like(Shape.array(element, dims))
        attributes = DotAttributes(tuple(batch), tuple(order.index(d) for d in batch), (c,), (order.index(c),))
        result = make_instruction(O.DOT, [x, y], attributes)
        if result.shape.num_elements <= 1000:
            self.add(self.tamed(result))

    def factor(self, n: int, element: ElementType) -> HloInstruction:
        """A lower triangular matrix with 1 or 2 on its diagonal: computations with it are exact."""
        x = self.like(Shape.array(element, (n, n)))
        x = make_instruction(O.REMAINDER, [x, filled(3, x.shape)])
        x = make_instruction(O.SELECT, [make_instruction(O.IS_FINITE, [x]), x, filled(0, x.shape)])
        row, column = (make_instruction(O.IOTA, (), IotaAttributes(d), Shape.array(E.S32, (n, n))) for d in (0, 1))
        x = make_instruction(O.SELECT, [compare(D.GT, row, column), x, filled(0, x.shape)])
        return make_instruction(O.SELECT, [compare(D.EQ, row, column), filled(self.rng.choice((1, 2)), x.shape), x])

    def cholesky(self) -> None:
        n, element = self.rng.choice((1, 2, 3, 5)), self.rng.choice((E.F32, E.F64))
        lower = self.factor(n, element)
        matrix = make_instruction(O.DOT, [lower, lower], DotAttributes((), (), (1,), (1,)))
        self.add(self.tamed(make_instruction(O.CHOLESKY, [matrix], CholeskyAttributes(self.rng.random() < 0.7))))

    def solve(self) -> None:
        n, element = self.rng.choice((1, 2, 3, 4)), self.rng.choice((E.F32, E.F64))
        lower = self.factor(n, element)
        left = self.rng.random() < 0.7
        right = self.like(Shape.array(element, (n, 2) if left else (2, n)))
        right = make_instruction(O.SELECT, [make_instruction(O.IS_FINITE, [right]), right, filled(0, right.shape)])
        transposed = self.rng.choice((TransposeKind.NO_TRANSPOSE, TransposeKind.TRANSPOSE))
        attributes = TriangularSolveAttributes(left, True, self.rng.random() < 0.5, transposed)
        solved = make_instruction(O.TRIANGULAR_SOLVE, [lower, right], attributes)
        bound = BOUND[element]
        self.add(make_instruction(O.REMAINDER, [make_instruction(O.FLOOR, [solved]), filled(bound - 1, solved.shape)]))
