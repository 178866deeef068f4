"""The kernel of select-and-scatter, the gradient of max-pooling.

It first writes the init value to the result; then each position of the window finds its element and scatters, in
order. Small windows are unrolled without branches, because branches here would be unpredictable::

    keep = best >= value
    best = select(keep, best, value)
    found = select(keep, found, cell)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import ExitStack

from ...hlo.ir import HloInstruction
from ...hlo.window import dilated, is_plain
from ..loops.expressions import ZERO, Binary, Expr, Name, Number, all_of, call, unary
from .kernel import HI, LO, EmittedKernel
from .scalar_computations import Buffer, KernelText
from .window_axes import MANY_ROWS, UNROLLED, KernelAxis, axes_of, kernel_axes, row_major


def emit_select_and_scatter(instruction: HloInstruction) -> EmittedKernel:
    """The kernel of a select-and-scatter.

    Threads share the dimensions that the window does not change: the leading ones, or the trailing ones if the window
    moves along the first dimension. No two threads scatter to the same element. For each of its indices, in order::

        found = -1
        for k0 in range(2):
            ...
            if found < 0 or not (best >= x[cell]):
                best = x[cell]
                found = cell
        if found >= 0:
            out[found] = out[found] + source[first]
    """
    array, source = (o.shape for o in instruction.operands[:2])
    attributes = instruction.attributes
    axes = axes_of(array.dimensions, source.dimensions, attributes.window)
    text = KernelText("select_and_scatter", attributes.scatter, guarded=True)
    values = text.operand("x", array.element, 0)
    updates = text.operand("y", source.element, 1)
    start = text.operand("i", array.element, 2)
    output = text.output("out", array.element, 0)
    scatter = _SelectAndScatter(instruction, text, kernel_axes(text, axes), values, updates, output)
    init = text.writer.assign("init", start.load(ZERO))
    scatter.write(init)
    extent = 1 if scatter.sliced is None else axes[scatter.sliced].size
    return text.finish(extent)


class _SelectAndScatter:
    def __init__(
        self, instruction: HloInstruction, text: KernelText, axes: list[KernelAxis], values: Buffer, updates: Buffer,
        output: Buffer,
    ) -> None:  # fmt: skip
        self.text, self.writer = text, text.writer
        self.axes, self.moving = axes, [a for a in axes if a.moves]
        self.values, self.updates, self.output = values, updates, output
        self.select, self.scatter = instruction.attributes.select, instruction.attributes.scatter
        self.sliced = _shared_axis(axes)
        self.sizes, self.counts = [a.size for a in axes], [a.count for a in axes]

    def write(self, init: Expr) -> None:
        """Fill, then scatter, inside the loop that threads share if it is the outermost: the filled part is then still
        in the cache. Windows that neither overlap nor leave the array are written whole, which vectorises."""
        with ExitStack() as whole:
            shared = self._loops(whole, self.sizes[:1], []) if self.sliced == 0 else []
            with ExitStack() as stack:
                indices = self._loops(stack, self.sizes, shared)
                self.text.store(self.output, row_major(indices, self.sizes), init)
            with ExitStack() as stack:
                self._window(self._loops(stack, self.counts, shared), init)

    def _window(self, positions: Sequence[Name], init: Expr) -> None:
        """All that is done for one position of the window."""
        parts = [a.part for a in self.moving]
        disjoint = all(is_plain(p) and p.stride >= dilated(p.size, p.window_dilation) for p in parts)
        if disjoint and math.prod(p.size for p in parts) <= UNROLLED:
            self._write_window(positions, init)
            return
        found = self._select(positions, init)
        with self.writer.if_(found >= 0):
            old = self.writer.assign("old", self.output.load(found))
            update = self._update(positions)
            (new,) = self.text.apply(self.scatter, [old, update])
            self.text.store(self.output, found, new)

    def _update(self, positions: Sequence[Name]) -> Name:
        return self.writer.assign("update", self.updates.load(row_major(positions, self.counts)))

    def _select(self, positions: Sequence[Name], init: Expr) -> Name:
        """The offset of the selected element for one position of the window, or -1."""
        best, found = self.writer.variable("best", init.type), self.writer.variable("found")
        taps = math.prod(a.part.size for a in self.moving)
        if taps > UNROLLED or any(a.part.base_dilation != 1 for a in self.moving):
            self._select_in_loops(positions, init, best, found)
            return found
        begins, tests = [], []
        for position, axis in zip(positions, self.axes, strict=True):
            begins.append(axis.begin(position) if axis.moves else position)
            if axis.moves and not is_plain(axis.part):
                tests += axis.whole_window_tests(begins[-1], literal=True)
        if not tests:
            self._select_unrolled(begins, best, found)
            return found
        with self.writer.if_(all_of(tests)):
            self._select_unrolled(begins, best, found)
        with self.writer.else_():
            self._select_in_loops(positions, init, best, found)
        return found

    def _select_unrolled(self, begins: Sequence[Expr], best: Name, found: Name) -> None:
        """The same without branches, which would be unpredictable."""
        writer = self.writer
        for number, offset in enumerate(self._offsets(begins)):
            cell = writer.assign("cell", offset)
            value = writer.assign("value", self.values.load(cell))
            if not number:
                writer.assign(best, value)
                writer.assign(found, cell)
                continue
            keep = self._keep(best, value)
            writer.assign(best, call("select", keep, best, value))
            writer.assign(found, call("select", keep, found, cell))

    def _keep(self, best: Expr, value: Expr) -> Name:
        (keep,) = self.text.apply(self.select, [best, value])
        return self.writer.assign("keep", keep)

    def _offsets(self, begins: Sequence[Expr]) -> list[Expr]:
        """The offsets of a window's elements, in order. `begins`: the first cell of the window along each axis."""
        offsets = []
        for elements in itertools.product(*(range(a.part.size) for a in self.moving)):
            element = dict(zip((a.number for a in self.moving), elements, strict=True))
            indices = [
                Binary("+", at, axis.distance(Number(element[axis.number]))) if axis.moves else at
                for at, axis in zip(begins, self.axes, strict=True)
            ]
            offsets.append(row_major(indices, self.sizes))
        return offsets

    def _write_window(self, positions: Sequence[Name], init: Expr) -> None:
        """All elements of one window: the selected one is combined, the others keep the init value."""
        writer = self.writer
        begins = [a.begin(position) if a.moves else position for position, a in zip(positions, self.axes, strict=True)]
        offsets = self._offsets(begins)
        best = writer.assign("best", self.values.load(offsets[0]))
        which = writer.assign("which", call("int32", 0))
        for number, offset in enumerate(offsets[1:], start=1):
            value = writer.assign("value", self.values.load(offset))
            keep = self._keep(best, value)
            writer.assign(best, call("select", keep, best, value))
            writer.assign(which, call("select", keep, which, call("int32", number)))
        update = self._update(positions)
        (new,) = self.text.apply(self.scatter, [init, update])
        new = writer.assign("new", new)
        for number, offset in enumerate(offsets):
            self.text.store(self.output, offset, call("select", which.eq(call("int32", number)), new, init))

    def _select_in_loops(self, positions: Sequence[Name], init: Expr, best: Name, found: Name) -> None:
        writer = self.writer
        writer.assign(found, -1)
        writer.assign(best, init)
        with ExitStack() as stack:
            cell = writer.assign("cell", self._over_window(stack, positions))
            value = writer.assign("value", self.values.load(cell))
            again = writer.assign("again", found < 0)
            with writer.if_(unary("not", again)):
                (keep,) = self.text.apply(self.select, [best, value])
                writer.assign(again, unary("not", keep))
            with writer.if_(again):
                writer.assign(best, value)
                writer.assign(found, cell)

    def _loops(self, stack: ExitStack, bounds: Sequence[Expr], outer: Sequence[Name]) -> list[Name]:
        """Opens the loops for all axes that have no loop in `outer` yet; gives the variables of all axes."""
        variables = list(outer)
        for axis, bound in list(zip(self.axes, bounds, strict=False))[len(outer) :]:
            limits = (LO, HI) if axis.number == self.sliced else (bound,)
            variables.append(stack.enter_context(self.writer.loop(f"o{axis.number}", *limits)))
        return variables

    def _over_window(self, stack: ExitStack, positions: Sequence[Name]) -> Expr:
        """Opens the loops over the window, as far as it is inside the array; gives the offset of the element."""
        indices: list[Expr] = []
        for position, axis in zip(positions, self.axes, strict=True):
            if axis.moves:
                at = axis.begin(position)
                indices.append(axis.over_window(stack, at, *axis.elements(at))[1])
            else:
                indices.append(position)
        return row_major(indices, self.sizes)


def _shared_axis(axes: Sequence[KernelAxis]) -> int | None:
    """The axis to slice, of those that the window does not change: the first if long enough, else the largest."""
    still = [a.number for a in axes if not a.moves]
    if not still:
        return None
    return still[0] if axes[still[0]].axis.size >= MANY_ROWS else max(still, key=lambda d: axes[d].axis.size)
