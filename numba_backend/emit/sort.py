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
from .element import ElementEmitter, loaded
from .reduce import applied
from .sizes import Sizes
from .source import EmittedKernel, Expr, KernelParameter, PointerParameter, SizeParameter, Writer

RUN = 8
"""The number of elements that are sorted by insertion."""

MAX_GROUPS = 64
"""The largest number of groups of rows. Threads share the groups; each group has its own scratch memory."""

_NANOSECONDS = 3.0
"""Nanoseconds of one element in one merge."""


class RowSorter:
    """What all kernels that sort rows share: the rows along one dimension of the arrays, scratch memory, and the text.

    The operands of the kernel are the arrays, then one block of scratch memory for each entry of `scratch`.
    """

    def __init__(
        self, computation: HloComputation, types: list[ElementType], dimensions: tuple[int, ...], axis: int,
        scratch: list[ElementType],
    ) -> None:  # fmt: skip
        self.writer = Writer()
        self.elements = ElementEmitter(computation, self.writer, Sizes(computation))
        self.count = len(types)
        self.types = types
        self.size = dimensions[axis]
        self.stride = math.prod(dimensions[axis + 1 :])
        self.rows = math.prod(dimensions[:axis]) * self.stride
        group = -(-self.rows // MAX_GROUPS)
        self.groups = -(-self.rows // group)
        self.sizes = [SizeParameter("m0", group), SizeParameter("m1", self.rows), SizeParameter("n0", self.size)]
        if self.stride != 1:
            self.sizes += [SizeParameter("n1", self.stride), SizeParameter("n2", self.stride * self.size)]
        self.inputs = [PointerParameter(f"x{k}", t, k, None) for k, t in enumerate(types)]
        self.work = [PointerParameter(f"w{k}", t, self.count + k, None) for k, t in enumerate(scratch)]
        self.outputs: list[PointerParameter] = []

    def line(self, *texts: str) -> None:
        for text in texts:
            self.writer.line(text)

    @contextmanager
    def row(self) -> Iterator[None]:
        """Opens the loops over groups and their rows, and defines `base`."""
        block = self.writer.block
        rows = "for i in range(group * m0, minimum(group * m0 + m0, m1)):"
        with block("for group in range(lo, hi):"), block(rows):
            self.line("base = i * n0" if self.stride == 1 else "base = i // n1 * n2 + i % n1")
            yield

    def at(self, position: str) -> str:
        """The position in the arrays of the element at a position of the row."""
        return f"base + {position}" if self.stride == 1 else f"base + {position} * n1"

    def element(self, pointer: PointerParameter, place: str) -> Expr:
        """An element, in the type in which it is held."""
        return loaded(pointer.element_type, Expr(f"{pointer.name}[{place}]", self.writer.depth))

    def finish(self, name: str, cost: float) -> EmittedKernel:
        """`cost`: nanoseconds of one row."""
        parameters: tuple[KernelParameter, ...] = (
            *self.inputs, *self.work, *self.outputs, *self.sizes, *self.elements.scalars,
        )  # fmt: skip
        header = f"def {name}({', '.join(['lo', 'hi', *(p.name for p in parameters)])}):"
        source = "\n".join([header, *("    " + line for line in self.writer.text())]) + "\n"
        return EmittedKernel(source, parameters, self.groups, cost * self.rows / self.groups)


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
        super().__init__(comparator, types, dimensions, axis, types)
        self.comparator = comparator
        self.outputs = [PointerParameter(f"out{k}", t, None, k) for k, t in enumerate(types)]

    def scratch_bytes(self) -> list[int]:
        """For each group, two rows of each operand."""
        return [2 * self.groups * self.size * t.byte_width for t in self.types]

    def emit(self) -> EmittedKernel:
        with self.row():
            self.line("source = group * 2 * n0", "target = source + n0")
            with self.writer.block("for t in range(n0):"):
                for x, w in zip(self.inputs, self.work, strict=True):
                    self.line(f"{w.name}[source + t] = {x.name}[{self.at('t')}]")
            self._insert()
            if self.size > RUN:
                self._merge()
            with self.writer.block("for t in range(n0):"):
                for out, w in zip(self.outputs, self.work, strict=True):
                    self.line(f"{out.name}[{self.at('t')}] = {w.name}[source + t]")
        levels = max(1.0, math.log2(max(self.size / RUN, 2)))
        return self.finish("sort", self.size * (levels + 2) * _NANOSECONDS * self.count)

    def before(self, first: list[Expr], second: list[Expr]) -> str:
        """The test whether the comparator puts `first` before `second`."""
        arguments = [e for pair in zip(first, second, strict=True) for e in pair]
        (result,) = applied(self.elements, self.comparator, arguments)
        return result.text

    def _insert(self) -> None:
        """Sort each run of a few elements by insertion."""
        writer = self.writer
        starts, run = f"for start in range(0, n0, {RUN}):", f"for t in range(start + 1, minimum(start + {RUN}, n0)):"
        with writer.block(starts), writer.block(run):
            kept = [writer.let("kept", Expr(f"{w.name}[source + t]", writer.depth)) for w in self.work]
            self.line("p = t", "moving = True")
            with writer.block("while moving:"):
                values = [loaded(w.element_type, k) for w, k in zip(self.work, kept, strict=True)]
                values = [Expr(v.text, writer.depth, v.precedence) for v in values]
                others = [self.element(w, "source + p - 1") for w in self.work]
                test = self.before(values, others)
                with writer.block(f"if {test}:", guarded=True):
                    for w in self.work:
                        self.line(f"{w.name}[source + p] = {w.name}[source + p - 1]")
                    self.line("p -= 1", "moving = p > start")
                with writer.block("else:", guarded=True):
                    self.line("moving = False")
            for w, k in zip(self.work, kept, strict=True):
                self.line(f"{w.name}[source + p] = {k}")

    def _merge(self) -> None:
        """Merge runs in pairs until there is one. The side that an element comes from is computed, without a branch."""
        writer = self.writer
        self.line(f"width = {RUN}")
        with writer.block("while width < n0:"):
            with writer.block("for pair in range((n0 + width * 2 - 1) // (width * 2)):"):
                self.line("start = pair * width * 2", "middle = source + minimum(start + width, n0)")
                self.line("end = source + minimum(start + width * 2, n0)", "p = source + start", "q = middle")
                self.line("place = target + start")
                with writer.block("while p < middle and q < end:"):
                    right = [self.element(w, "q") for w in self.work]
                    left = [self.element(w, "p") for w in self.work]
                    test = self.before(right, left)
                    self.line(f"take = {test}", "taken = select(take, q, p)")
                    for w in self.work:
                        self.line(f"{w.name}[place] = {w.name}[taken]")
                    self.line("step = int64(take)", "q += step", "p += 1 - step", "place += 1")
                for rest, limit in (("p", "middle"), ("q", "end")):
                    with writer.block(f"for t in range({rest}, {limit}):"):
                        for w in self.work:
                            self.line(f"{w.name}[place + t - {rest}] = {w.name}[t]")
                    if rest == "p":
                        self.line("place += maximum(middle - p, 0)")
            self.line("width *= 2", "other = source", "source = target", "target = other")
