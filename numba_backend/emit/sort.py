"""Sorting with any comparator: a merge sort of each row, with the comparator written out in the kernel.

    def sort(lo, hi, x0, w0, out0, n0, n1, n2):
        for group in range(lo, hi):
            for i in range(group * m0, minimum(group * m0 + m0, m1)):
                base = i // n1 * n2 + i % n1           the row's first element; the others follow n1 apart
                source = group * 2 * n0                scratch: two rows for each group, used in turn
                target = source + n0
                ...                                    the row is copied to w0[source], runs of 8 in order
                while width < n0:
                    ...                                runs are merged in pairs, from source to target
                    source, target = target, source
                for t in range(n0):
                    out0[base + t * n1] = w0[source + t]
It is stable. Bounds come from the loops, never from the comparator, so a comparator that is no strict weak order leaves
the row in some order and does no harm. Elements are moved as they are stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ...hlo.element_type import ElementType
from ...hlo.ir import HloComputation, HloInstruction
from ..cost import MERGED
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ZERO, Expr, Name, all_of, call
from ..loops.writer import boolean, cast
from .element import loaded
from .scalar_computations import Buffer, KernelText

RUN = 8
"""The number of elements that are sorted by insertion."""

MAX_GROUPS = 64
"""The largest number of groups of rows. Threads share the groups; each group has its own scratch memory."""



class RowSorter:
    """The base of all kernels that sort rows: the rows along one dimension of the arrays, and scratch memory.

    The operands of the kernel are the arrays, then one block of scratch memory for each entry of `scratch`.
    """

    def __init__(
        self, name: str, computation: HloComputation, types: list[ElementType], dimensions: tuple[int, ...],
        axis: int, scratch: list[ElementType], together: int = 1,
    ) -> None:  # fmt: skip
        """`together`: how many rows are a step of the loop in a group."""
        self.text: KernelText = KernelText(name, computation)
        self.writer = self.text.writer
        self.count: int = len(types)
        self.types = types
        self.size: int = dimensions[axis]
        self.stride: int = math.prod(dimensions[axis + 1 :])
        self.rows: int = math.prod(dimensions[:axis]) * self.stride
        steps = -(-self.rows // together)
        group = -(-steps // MAX_GROUPS)
        self.groups: int = -(-steps // group)
        self.steps = steps
        text = self.text
        self.m0, self.m1 = text.argument("m0", group), text.argument("m1", steps)
        self.n0: Name = text.argument("n0", self.size)
        if self.stride != 1:
            self.n1, self.n2 = text.argument("n1", self.stride), text.argument("n2", self.stride * self.size)
        self.inputs: list[Buffer] = [text.operand(f"x{k}", t, k) for k, t in enumerate(types)]
        self.work: list[Buffer] = [text.operand(f"w{k}", t, self.count + k) for k, t in enumerate(scratch)]
        self.outputs: list[Buffer] = [text.output(f"out{k}", t, k) for k, t in enumerate(types)]

    @contextmanager
    def row(self) -> Iterator[tuple[Name, Name]]:
        """Opens the loops over groups and their rows, and defines `base`; gives the numbers of group and row."""
        writer, m0, m1 = self.writer, self.m0, self.m1
        with (
            writer.loop("group", LO, HI) as group,
            writer.loop("i", group * m0, call("minimum", group * m0 + m0, m1)) as i,
        ):
            self.base: Name = writer.assign("base", self.first_of(i))
            yield group, i

    def first_of(self, row: Expr) -> Expr:
        """The offset in the arrays of the first element of a row."""
        return row * self.n0 if self.stride == 1 else row // self.n1 * self.n2 + row % self.n1

    def offset(self, position: Expr) -> Expr:
        """The offset in the arrays of the element at a position of the row."""
        return self.base + (position if self.stride == 1 else position * self.n1)

    def element(self, buffer: Buffer, offset: Expr) -> Expr:
        """An element, in the type in which it is held. It may change, so that it is read here and not before."""
        return buffer.load(offset).at(self.writer.depth)

    def swap(self, source: Name, target: Name) -> None:
        """The two rows of scratch memory change their roles."""
        other = self.writer.assign("other", source)
        self.writer.assign(source, target)
        self.writer.assign(target, other)

    def finish(self, cost: float | None = None) -> EmittedKernel:
        """`cost`: nanoseconds of one row, or of the rows of one step, where the program does not tell."""
        return self.text.finish(self.groups, None if cost is None else cost * self.steps / self.groups)


def merge_sort_of(instruction: HloInstruction) -> MergeSort:
    """The kernel of a sort with any comparator."""
    shapes = [o.shape for o in instruction.operands]
    types = [s.element for s in shapes]
    attributes = instruction.attributes
    return MergeSort(attributes.to_apply, types, shapes[0].dimensions, attributes.dimension)


class MergeSort(RowSorter):
    """The kernel that sorts rows by a comparator."""

    def __init__(
        self, comparator: HloComputation, types: list[ElementType], dimensions: tuple[int, ...], axis: int
    ) -> None:
        super().__init__("sort", comparator, types, dimensions, axis, types)
        self.comparator = comparator

    def scratch(self) -> list[tuple[ElementType, int]]:
        """Types and numbers of elements: for each group, two rows of each operand."""
        return [(t, 2 * self.groups * self.size) for t in self.types]

    def emit(self) -> EmittedKernel:
        writer, n0 = self.writer, self.n0
        with self.row() as (group, _):
            source = writer.assign("source", group * 2 * n0)
            target = writer.assign("target", source + n0)
            with writer.loop("t", n0) as t:
                for x, w in zip(self.inputs, self.work, strict=True):
                    writer.store(w.pointer, source + t, x.pointer[self.offset(t)])
            self._insert(source)
            if self.size > RUN:
                self._merge(source, target)
            with writer.loop("t", n0) as t:
                for out, w in zip(self.outputs, self.work, strict=True):
                    writer.store(out.pointer, self.offset(t), w.pointer[source + t])
        levels = max(1.0, math.log2(max(self.size / RUN, 2)))
        return self.finish(self.size * (levels + 2) * MERGED * self.count)

    def before(self, first: list[Expr], second: list[Expr]) -> Expr:
        """The test whether the comparator puts `first` before `second`."""
        arguments = [e for pair in zip(first, second, strict=True) for e in pair]
        (result,) = self.text.apply(self.comparator, arguments)
        return result

    def _insert(self, source: Name) -> None:
        """Sort each run of a few elements by insertion."""
        writer, n0 = self.writer, self.n0
        with (
            writer.loop("start", 0, n0, step=RUN) as start,
            writer.loop("t", start + 1, call("minimum", start + RUN, n0)) as t,
        ):
            kept = [writer.let("kept", w.pointer[source + t]) for w in self.work]
            p = writer.assign("p", t)
            moving = writer.assign("moving", boolean(True))
            with writer.while_(moving):
                values = [loaded(w.element_type, k).at(writer.depth) for w, k in zip(self.work, kept, strict=True)]
                others = [self.element(w, source + p - 1) for w in self.work]
                with writer.if_(self.before(values, others), guarded=True):
                    for w in self.work:
                        writer.store(w.pointer, source + p, w.pointer[source + p - 1])
                    writer.augment(p, "-", 1)
                    writer.assign(moving, p > start)
                with writer.else_(guarded=True):
                    writer.assign(moving, boolean(False))
            for w, k in zip(self.work, kept, strict=True):
                writer.store(w.pointer, source + p, k)

    def _merge(self, source: Name, target: Name) -> None:
        """Merge runs in pairs until there is one. The side that an element comes from is computed, without a branch."""
        writer, n0 = self.writer, self.n0
        width = writer.assign("width", RUN)
        with writer.while_(width < n0):
            with writer.loop("pair", (n0 + width * 2 - 1) // (width * 2)) as pair:
                start = writer.assign("start", pair * width * 2)
                middle = writer.assign("middle", source + call("minimum", start + width, n0))
                end = writer.assign("end", source + call("minimum", start + width * 2, n0))
                p = writer.assign("p", source + start)
                q = writer.assign("q", middle)
                to = writer.assign("place", target + start)
                with writer.while_(all_of([p < middle, q < end])):
                    right = [self.element(w, q) for w in self.work]
                    left = [self.element(w, p) for w in self.work]
                    take = writer.assign("take", self.before(right, left))
                    taken = writer.assign("taken", call("select", take, q, p))
                    for w in self.work:
                        writer.store(w.pointer, to, w.pointer[taken])
                    step = writer.assign("step", cast("int64", take))
                    writer.augment(q, "+", step)
                    writer.augment(p, "+", 1 - step)
                    writer.augment(to, "+", 1)
                for rest, limit in ((p, middle), (q, end)):
                    with writer.loop("t", rest, limit) as t:
                        for w in self.work:
                            writer.store(w.pointer, to + t - rest, w.pointer[t])
                    if rest is p:
                        writer.augment(to, "+", call("maximum", middle - p, ZERO))
            writer.augment(width, "*", 2)
            self.swap(source, target)
