"""The kernel of topk for a small k: one pass over the row; the result holds the best elements so far, in order.

    for i in <rows>:
        base, top, count, worst = i * n0, i * n1, 0, 0
        for t in range(n0):
            key0 = <the element as an unsigned integer>
            if count < n1 or key0 > worst:
                ...                                     those that it is better than move up; it takes its place
                worst = <the key of the last one, once there are n1>

If the keys of two elements are equal, the earlier element comes first.
"""

from __future__ import annotations

import math

from ...hlo.builder import make_computation, make_parameter
from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.shape import Shape
from ..cost import INSERTED, LOOKED_AT
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Binary, Expr, call
from ..loops.writer import boolean, cast
from .scalar_computations import Buffer
from .sort import RowSorter
from .sort_keys import SortKey, integer_key


def emit_topk(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a topk of elements that have integer keys (all but the small types), k at least 1."""
    return _TopK(instruction).emit()


class _TopK(RowSorter):
    def __init__(self, instruction: HloInstruction) -> None:
        shape, attributes = instruction.operands[0].shape, instruction.attributes
        element = make_parameter(0, Shape.array(shape.element), "x")
        computation = make_computation("key", element, [element])
        super().__init__("top_k", computation, [shape.element], shape.dimensions, shape.rank - 1, [])
        self.key = SortKey(element, descending=not attributes.largest, total=True)
        self.k = attributes.k
        self.n1 = self.text.argument("n1", self.k)
        (self.best,) = self.outputs
        self.where = self.text.output("out1", ElementType.S32, 1)

    def number(self, buffer: Buffer, offset: Expr) -> Expr:
        """The key of an element in memory: the larger, the better."""
        return integer_key(self.key, self.writer.let("v", self.element(buffer, offset)))

    def emit(self) -> EmittedKernel:
        writer, n1, x = self.writer, self.n1, self.inputs[0]
        with self.row() as (_, i):
            top = writer.assign("top", i * n1)
            count = writer.assign("count", cast("int64", 0))
            worst = writer.assign("worst", cast("uint64" if self.key.bits == 64 else "uint32", 0))
            with writer.loop("t", self.n0) as t:
                number = writer.assign("number", self.number(x, self.offset(t)))
                with writer.if_(Binary("or", count < n1, number > worst), guarded=True):
                    p = writer.assign("p", call("minimum", count, n1 - 1))
                    moving = writer.assign("moving", p > 0)
                    with writer.while_(moving):
                        with writer.if_(self.number(self.best, top + p - 1) < number, guarded=True):
                            for out in (self.best, self.where):
                                writer.store(out.pointer, top + p, out.pointer[top + p - 1])
                            writer.augment(p, "-", 1)
                            writer.assign(moving, p > 0)
                        with writer.else_(guarded=True):
                            writer.assign(moving, boolean(False))
                    writer.store(self.best.pointer, top + p, x.pointer[self.offset(t)])
                    writer.store(self.where.pointer, top + p, cast("int32", t))
                    writer.assign(count, call("minimum", count + 1, n1))
                    with writer.if_(count.eq(n1), guarded=True):
                        writer.assign(worst, self.number(self.best, top + n1 - 1))
        kept = self.k * max(1.0, math.log(max(self.size / self.k, 1.0)))
        return self.finish(LOOKED_AT * self.size + kept * (INSERTED + LOOKED_AT * self.k))
