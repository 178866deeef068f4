"""vector-dots: products of vectors become sums, which fuse, and which threads share.

    dot(f32[n] x, f32[n] y)  ->  reduce(multiply(x, y), 0), to_apply=add

A product is an instruction of its own, so its operands must be in memory: a row of a matrix, which the body of a loop
slices, would be copied first. A sum reads it where it is, and computes it there. So it does for a batch of products of
vectors, of which a library makes one after the other. Outside of loops short products are left to the library, which
need not be compiled; in loops long ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...builder import make_computation, make_constant, make_instruction, make_parameter
from ...element_type import ElementType
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops.reduce import ReduceAttributes
from ...shape import Shape
from ..rewrite import map_each_computation, rewrite_computation

_TYPES = frozenset((ElementType.F32, ElementType.F64))
"""Others are computed in a wider type than they are stored in."""


@dataclass(frozen=True, slots=True)
class VectorDots:
    """Expands dots of two vectors: in loops those of at most `most` elements; elsewhere those of `least` or more, all
    products of a batch together."""

    most: int
    least: int
    name: str = "vector-dots"

    def __call__(self, module: HloModule) -> HloModule:
        if not any(i.opcode is Opcode.DOT for i in module.instructions()):
            return module
        inside = set(_in_loops(module))

        def rewrite(old: HloComputation, current: HloComputation) -> HloComputation:
            in_loop = old in inside

            def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
                return _sum(moved) if self._expands(moved, in_loop) else moved

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
        return x.shape.rank == 1 and count <= self.most if in_loop else count >= self.least


def _sum(dot: HloInstruction) -> HloInstruction:
    product = make_instruction(Opcode.MULTIPLY, dot.operands)
    zero = make_constant(0, dot.shape.element.dtype)
    dimensions = tuple(sorted(dot.attributes.lhs_contracting_dims))
    add = ReduceAttributes(dimensions, _addition(dot.shape.element))
    return make_instruction(Opcode.REDUCE, (product, zero), add)


def _in_loops(module: HloModule) -> Iterator[HloComputation]:
    """The bodies and conditions of loops, and what they call."""
    pending = [c for i in module.instructions() if i.opcode is Opcode.WHILE for c in i.called_computations()]
    seen = set()
    while pending:
        computation = pending.pop()
        if computation not in seen:
            seen.add(computation)
            yield computation
            pending += [c for i in computation.callers for c in i.called_computations()]


def _addition(element_type: ElementType) -> HloComputation:
    a, b = (make_parameter(number, Shape.array(element_type)) for number in range(2))
    return make_computation("add", make_instruction(Opcode.ADD, (a, b)), (a, b))
