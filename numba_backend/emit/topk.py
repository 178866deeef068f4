"""The kernel of topk for a small k: the result holds the best elements of a row so far, in order.

    for i in <rows>:
        base, top, count, worst = i * n0, i * n1, 0, 0
        high[c] = <the largest key of elements c, c + columns, c + 2 * columns, ...>
        least = <the largest number that at least n1 of them reach>
        for start in range(0, n0, 32):
            some = <the largest key of 32 elements>
            if some >= least and (count < n1 or some > worst):
                for t in range(start, stop):
                    number = <the key of the element: an unsigned integer>
                    if number >= least and (count < n1 or number > worst):
                        ...                         those that it is better than move up; it takes its place
                        worst = least = <the key of the last one, once there are n1>

The first pass, without branches, says which elements cannot be among the best: most of 1,024 numbers in any order. So
few of them are ever moved; each one that is costs two wrong guesses of the processor. Without that pass, elements in
rising order would all be moved. There are 32 columns for up to 16 elements, and 7 * 32 for 100. In rows too short for
that there is only the loop over `t`.

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
from ..loops.expressions import ZERO, Binary, Expr, Name, Number, call
from ..loops.writer import boolean, cast
from .scalar_computations import Buffer
from .sort import RowSorter
from .sort_keys import SortKey, integer_key

BLOCK = 32
"""Elements that are compared together. LLVM makes no vectors of loops over 16 elements; with 64 the time is 1.06 of
that with 32."""
LEAST_ROWS = 4
"""Elements of a column, in the shortest row that has columns. With fewer, many elements reach the least of the largest
ones. 10 of 1,024 in any order take 0.52 of the time of one loop, of 128 0.8; 8 of 1,000 in rising order 0.03; 64 of
1,000 in any order 0.6."""
MOST_INSERTED, MOST_KEPT, MANY_ROWS = 64, 256, 12
"""The most elements that are selected from a row of any length, and from one that has so many rows of columns: each
insertion takes k steps. 100 of 4,000 take 0.25 of the time of a sort, 256 of 9,000 0.45, of 4,400 0.9."""


def columns_of(k: int) -> int:
    """Columns of a row that have a largest element each, two or more for each of the `k` best.

    So some 1.4 k elements in any order reach the least of the best columns. They are an odd number of blocks: the rows
    of an image, if the array is one, then do not all begin in the same column."""
    return BLOCK * (-(-k // (BLOCK // 2)) | 1)


def is_selected(instruction: HloInstruction) -> bool:
    """True for a topk that `emit_topk` computes faster than a sort does."""
    shape, k = instruction.operands[0].shape, instruction.attributes.k
    if shape.element.is_small:
        return False
    return k <= MOST_INSERTED or (k <= MOST_KEPT and shape.dimensions[-1] >= MANY_ROWS * columns_of(k))


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
        writer, n1 = self.writer, self.n1
        columns = columns_of(self.k)
        has_columns = self.size >= LEAST_ROWS * columns
        high = writer.local_array("high", columns, self.unsigned) if has_columns else None
        with self.row() as (_, i):
            top = writer.assign("top", i * n1)
            count = writer.assign("count", cast("int64", 0))
            worst = writer.assign("worst", cast(self.unsigned, 0))
            if high is None:
                with writer.loop("t", self.n0) as t:
                    self._look_at(t, top, count, worst, None)
            else:
                least = self._least(high, columns)
                with writer.loop("start", ZERO, self.n0, step=BLOCK) as start:
                    stop = writer.assign("stop", call("minimum", start + BLOCK, self.n0))
                    some = writer.assign("some", cast(self.unsigned, 0))
                    with writer.if_((stop - start).eq(BLOCK), guarded=True), writer.loop("l", Number(BLOCK)) as lane:
                        number = self.number(self.inputs[0], self.offset(start + lane))
                        writer.assign(some, call("maximum", some, number))
                    found = Binary("and", some >= least, Binary("or", count < n1, some > worst))
                    found = Binary("or", found, stop - start < BLOCK)
                    with writer.if_(found, guarded=True), writer.loop("t", start, stop) as t:
                        self._look_at(t, top, count, worst, least)
        kept = 2 * self.k if has_columns else self.k * max(1.0, math.log(max(self.size / self.k, 1.0)))
        return self.finish(LOOKED_AT * self.size + kept * (INSERTED + LOOKED_AT * self.k))

    @property
    def unsigned(self) -> str:
        return "uint64" if self.key.bits == 64 else "uint32"

    def _least(self, high: Name, columns: int) -> Name:
        """A number that at least k elements of the row reach: as many of the largest of columns do."""
        writer, x = self.writer, self.inputs[0]
        with writer.loop("c", Number(columns)) as c:
            writer.store(high, c, cast(self.unsigned, 0))
        whole = self.n0 // columns * columns
        with writer.loop("start", ZERO, whole, step=columns) as start, writer.loop("c", Number(columns)) as c:
            writer.store(high, c, call("maximum", high[c], self.number(x, self.offset(start + c))))
        least = writer.assign("least", cast(self.unsigned, 0))
        with writer.loop("c", Number(columns)) as c:
            reached = writer.assign("reached", cast("int32", 0))
            with writer.loop("d", Number(columns)) as d:
                writer.assign(reached, call("add", reached, cast("int32", high[d] >= high[c])))
            chosen = call("select", cast("int64", reached) >= self.n1, high[c], cast(self.unsigned, 0))
            writer.assign(least, call("maximum", least, chosen))
        return least

    def _look_at(self, t: Expr, top: Expr, count: Name, worst: Name, least: Name | None) -> None:
        """Take in element `t`, if it is better than the worst one that is kept."""
        writer, n1, x = self.writer, self.n1, self.inputs[0]
        number = writer.assign("number", self.number(x, self.offset(t)))
        better = Binary("or", count < n1, number > worst)
        with writer.if_(better if least is None else Binary("and", number >= least, better), guarded=True):
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
                if least is not None:
                    writer.assign(least, worst)
