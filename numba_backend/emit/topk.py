"""The kernel of topk for a small k: one pass over the row; the result holds the best elements so far, in order.

    for i in <rows>:
        base, top, count, worst = i * n0, i * n1, 0, 0
        for t in range(n0):
            key0 = <the element as an unsigned integer>
            if count < n1 or key0 > worst:
                ...                                     those that it is better than move up; it takes its place
                worst = <the key of the last one, once there are n1>

An element whose key equals that of an earlier one comes after it.
"""

from __future__ import annotations

import math

from ...hlo.builder import make_computation, make_parameter
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.shape import Shape
from .sort import RowSorter
from .sort_keys import SortKey, integer_key
from .source import EmittedKernel, Expr, PointerParameter, SizeParameter


def emit_topk(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a topk of elements that have integer keys (all but the small types), k at least 1."""
    return _TopK(instruction).emit()


class _TopK(RowSorter):
    def __init__(self, instruction: HloInstruction) -> None:
        shape, attributes = instruction.operands[0].shape, instruction.attributes
        element = make_parameter(0, Shape.array(shape.element), "x")
        computation = make_computation("key", element, [element])
        super().__init__(computation, [shape.element], shape.dimensions, shape.rank - 1, [])
        self.key = SortKey(element, descending=not attributes.largest, total=True)
        self.k = attributes.k
        self.sizes.append(SizeParameter("n1", self.k))
        self.outputs = [
            PointerParameter("out0", shape.element, None, 0), PointerParameter("out1", ElementType.S32, None, 1),
        ]  # fmt: skip

    def number(self, pointer: PointerParameter, place: str) -> Expr:
        """The key of an element in memory: the larger, the better."""
        return integer_key(self.key, self.writer.let("v", self.element(pointer, place)))

    def emit(self) -> EmittedKernel:
        writer, (x, out) = self.writer, (self.inputs[0], self.outputs[0])
        cast = "uint64" if self.key.bits == 64 else "uint32"
        with self.row():
            self.line("top = i * n1", "count = int64(0)", f"worst = {cast}(0)")
            with writer.block("for t in range(n0):"):
                self.line(f"number = {self.number(x, self.at('t'))}")
                with writer.block("if count < n1 or number > worst:", guarded=True):
                    self.line("p = minimum(count, n1 - 1)", "moving = p > 0")
                    with writer.block("while moving:"):
                        other = self.number(out, "top + p - 1")
                        with writer.block(f"if {other} < number:", guarded=True):
                            for name in ("out0", "out1"):
                                self.line(f"{name}[top + p] = {name}[top + p - 1]")
                            self.line("p -= 1", "moving = p > 0")
                        with writer.block("else:", guarded=True):
                            self.line("moving = False")
                    self.line(f"out0[top + p] = x0[{self.at('t')}]", "out1[top + p] = int32(t)")
                    self.line("count = minimum(count + 1, n1)")
                    with writer.block("if count == n1:", guarded=True):
                        self.line(f"worst = {self.number(out, 'top + n1 - 1')}")
        kept = self.k * max(1.0, math.log(max(self.size / self.k, 1.0)))
        return self.finish("top_k", 0.6 * self.size + kept * (10 + self.k / 2))
