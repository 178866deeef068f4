"""vector-dots: products of vectors become sums, which fuse, and which threads share.

    dot(f32[n] x, f32[n] y)  ->  reduce(multiply(x, y), 0), to_apply=add

A product is an instruction of its own, so its operands must be in memory: a row of a matrix, which the body of a loop
slices, would be copied first. A sum reads it where it is, and computes it there. The same holds for a batch of products
of vectors, which a library computes one after the other. Outside of loops short products stay calls of the library,
which needs no compilation; in loops long ones.

A long sum of f32 with few results, or of a vector and the columns of a matrix, becomes such a sum everywhere, too: the
library adds one product after the other, so that a million of them lose a percent. A kernel adds them in blocks.

    dot(f32[n,m] x, f32[n] y)  ->  reduce(multiply(x, broadcast(y)), 0), to_apply=add

The product of a vector and a matrix that is in no cache takes as long as the matrix is read. A nest of sums reads it
once for all of them: for ``x @ a`` and ``a @ y``, and for ``x = a @ w`` and ``f(x) @ a``, the gradient of a linear
model, since a row is in a cache when its sum is complete.

The product of two vectors under one mask is a masked sum, which a loop may restrict to where the mask holds. So is any
product, however long, of a vector that is masked but between two numbers (`analyses/short_sums.py`).

    dot(select(p, x, 0), select(p, y, 0))  ->  reduce(select(p, multiply(x, y), 0), 0), to_apply=add
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...analyses.short_sums import in_loops, is_between
from ...builder import make_computation, make_constant, make_instruction, make_parameter
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.movement import BroadcastAttributes, TransposeAttributes
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ...support.records import dataclass
from ..patterns import is_splat
from ..rewrite import map_each_computation, rewrite_computation

_TYPES = frozenset((ElementType.F32, ElementType.F64))
"""Others are computed in a wider type than they are stored in."""


@dataclass(frozen=True, slots=True)
class VectorDots:
    """Expands dots of two vectors: in loops, dots of at most `most` elements; outside of loops, dots of `least` or
    more, all products of a batch together. And those with sums of `long` products or more: of a vector and the columns
    of a matrix, or with at most `few` results. And those of a vector and a matrix of `uncached` bytes or more."""

    most: int
    least: int
    long: int
    few: int
    uncached: float = math.inf
    name: str = "vector-dots"

    def __call__(self, module: HloModule) -> HloModule:
        if not any(i.opcode is Opcode.DOT for i in module.instructions()):
            return module
        inside = set(in_loops(module))

        def rewrite(old: HloComputation, current: HloComputation) -> HloComputation:
            in_loop = old in inside

            def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
                is_sum = self._expands(moved, in_loop) or self._is_long(moved) or self._is_uncached(moved)
                return _sum(moved) if is_sum else moved

            return rewrite_computation(current, visit)

        return map_each_computation(module, rewrite)

    def _expands(self, dot: HloInstruction, in_loop: bool) -> bool:
        if dot.opcode is not Opcode.DOT or dot.shape.element not in _TYPES:
            return False
        x, y = dot.operands
        a = dot.attributes
        same = x.shape.element is y.shape.element is dot.shape.element and x.shape.dimensions == y.shape.dimensions
        if not same or a.lhs_contracting_dims != a.rhs_contracting_dims or a.lhs_batch_dims != a.rhs_batch_dims:
            return False
        batch = a.lhs_batch_dims
        if len(batch) + len(a.lhs_contracting_dims) != x.shape.rank or list(batch) != sorted(batch):
            return False
        count = math.prod(x.shape.dimensions)
        if in_loop:
            return x.shape.rank == 1 and (count <= self.most or any(map(is_between, dot.operands)))
        return count >= self.least

    def _is_long(self, dot: HloInstruction) -> bool:
        if dot.opcode is not Opcode.DOT or dot.attributes.algorithm:
            return False
        if any(i.shape.element is not ElementType.F32 for i in (dot, *dot.operands)):
            return False
        x, a = dot.operands[0].shape.dimensions, dot.attributes
        if math.prod([x[d] for d in a.lhs_contracting_dims]) < self.long or 0 in dot.shape.dimensions:
            return False
        rows, columns = _sizes_of_result(dot)
        if min(rows, columns) == 1:
            return not _is_along_rows(dot)  # else the library computes sums over the vector's elements
        return rows * columns <= self.few

    def _is_uncached(self, dot: HloInstruction) -> bool:
        if dot.opcode is not Opcode.DOT or dot.shape.element not in _TYPES or dot.attributes.algorithm:
            return False
        if any(o.shape.element is not dot.shape.element for o in dot.operands) or dot.attributes.lhs_batch_dims:
            return False
        largest = max(o.shape.num_elements for o in dot.operands) * dot.shape.element.byte_width
        return largest >= self.uncached and min(_sizes_of_result(dot)) == 1


def _sum(dot: HloInstruction) -> HloInstruction:
    """The sum of products in the order of the larger operand's dimensions; the free ones of the other come last, or
    first if that one's rows are summed."""
    labels, larger = _labels(dot), _larger(dot)
    others = [d for d in labels[1 - larger] if d not in labels[larger]]
    domain = [*others, *labels[larger]] if _is_along_rows(dot) else [*labels[larger], *others]
    sizes = {d: n for own, o in zip(labels, dot.operands) for d, n in zip(own, o.shape.dimensions)}
    full = [sizes[d] for d in domain]
    factors = [_spread(o, [domain.index(d) for d in own], full) for o, own in zip(dot.operands, labels)]
    product = _product(*factors)
    zero = make_constant(0, dot.shape.element.dtype)
    reduced = tuple([k for k, d in enumerate(domain) if d[0] == "contracted"])
    add = ReduceAttributes(reduced, _addition(dot.shape.element))
    total = make_instruction(Opcode.REDUCE, (product, zero), add)
    kept = [d for d in domain if d[0] != "contracted"]
    order = tuple(sorted(range(len(kept)), key=lambda k: kept[k]))
    if order == tuple(range(len(kept))):
        return total
    return make_instruction(Opcode.TRANSPOSE, (total,), TransposeAttributes(order))


def _sizes_of_result(dot: HloInstruction) -> tuple[int, int]:
    """The rows and the columns of one product of a batch."""
    a, sizes = dot.attributes, dot.shape.dimensions[len(dot.attributes.lhs_batch_dims) :]
    left = dot.operands[0].shape.rank - len(a.lhs_batch_dims) - len(a.lhs_contracting_dims)
    return math.prod(sizes[:left]), math.prod(sizes[left:])


def _product(x: HloInstruction, y: HloInstruction) -> HloInstruction:
    """x * y. If both are +0 outside of the same mask, the mask is applied to the product: +0 * +0 is +0."""
    if x.opcode is y.opcode is Opcode.SELECT and x.operands[0] is y.operands[0]:
        (mask, inside, zero), (_, other, also_zero) = x.operands, y.operands
        if is_splat(zero, 0.0) and is_splat(also_zero, 0.0):
            product = make_instruction(Opcode.MULTIPLY, (inside, other))
            return make_instruction(Opcode.SELECT, (mask, product, zero))
    return make_instruction(Opcode.MULTIPLY, (x, y))


def _larger(dot: HloInstruction) -> int:
    x, y = (operand.shape.num_elements for operand in dot.operands)
    return 0 if x >= y else 1


def _is_along_rows(dot: HloInstruction) -> bool:
    """True if the most minor dimension of the larger operand is summed."""
    return _labels(dot)[_larger(dot)][-1][0] == "contracted"


def _labels(dot: HloInstruction) -> list[list[tuple[str, int]]]:
    """A label for each dimension of the operands; those that are in the result sort as they are there."""
    a = dot.attributes
    found = []
    for name, operand, batch, contracted in (
        ("lhs", dot.operands[0], a.lhs_batch_dims, a.lhs_contracting_dims),
        ("rhs", dot.operands[1], a.rhs_batch_dims, a.rhs_contracting_dims),
    ):
        known = {d: ("batch", k) for k, d in enumerate(batch)}
        known |= {d: ("contracted", k) for k, d in enumerate(contracted)}
        found.append([known.get(d, (name, d)) for d in range(operand.shape.rank)])
    return found


def _spread(operand: HloInstruction, dimensions: Sequence[int], sizes: Sequence[int]) -> HloInstruction:
    if len(dimensions) == len(sizes) and list(dimensions) == list(range(len(sizes))):
        return operand
    shape = Shape.array(operand.shape.element, tuple(sizes))
    return make_instruction(Opcode.BROADCAST, (operand,), BroadcastAttributes(tuple(dimensions)), shape=shape)


def _addition(element_type: ElementType) -> HloComputation:
    a, b = (make_parameter(number, Shape.array(element_type)) for number in range(2))
    return make_computation("add", make_instruction(Opcode.ADD, (a, b)), (a, b))
