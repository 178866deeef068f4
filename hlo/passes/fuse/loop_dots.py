"""loop-dots: products of two vectors in the bodies of loops become sums, which fuse.

    dot(f32[n] x, f32[n] y)  ->  reduce(multiply(x, y), 0), to_apply=add

A product is an instruction of its own, so its operands must be in memory: a row of a matrix, which the body slices,
would be copied first. A sum reads it where it is. Outside of loops products are left to the library.
"""

from __future__ import annotations

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
class LoopDots:
    """Expands dots of two vectors of at most `most` elements."""

    most: int
    name: str = "loop-dots"

    def __call__(self, module: HloModule) -> HloModule:
        inside = set(_in_loops(module))
        if not inside:
            return module

        def rewrite(old: HloComputation, current: HloComputation) -> HloComputation:
            return rewrite_computation(current, self._visit) if old in inside else current

        return map_each_computation(module, rewrite)

    def _visit(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode is not Opcode.DOT or old.shape.rank or old.shape.element not in _TYPES:
            return moved
        x, y = moved.operands
        same = x.shape.element is y.shape.element is moved.shape.element and x.shape.rank == y.shape.rank == 1
        if not same or x.shape.num_elements > self.most:
            return moved
        product = make_instruction(Opcode.MULTIPLY, (x, y))
        zero = make_constant(0, moved.shape.element.dtype)
        add = ReduceAttributes((0,), _addition(moved.shape.element))
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
