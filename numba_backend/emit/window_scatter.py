"""The kernel of select-and-scatter, the gradient of max-pooling.

It first writes the init value to the result; then each position of the window finds its element and scatters, in
order. Small windows are unrolled without branches, because branches here would be unpredictable::

    keep = best >= value
    best = select(keep, best, value)
    found = select(keep, found, cell)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from ...hlo.ir import HloInstruction
from ...hlo.window import dilated, is_plain
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ZERO, Expr, Name, Unary, call
from ..schedule.steps import Slice
from .reduce import reducer_word
from .scalar_computations import KernelText
from .window_axes import MANY_ROWS, UNROLLED, KernelAxis, Windows, axes_of, row_major


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
    scatter = _SelectAndScatter(instruction)
    scatter.write(scatter.writer.assign("init", scatter.start.load(ZERO)))
    algorithm = f"out[selected(k)] = {reducer_word(scatter.scatter)} over positions"
    if scatter.sliced is None:
        return scatter.text.finish(1, notes=(algorithm,))
    extent = scatter.axes[scatter.sliced].axis.size
    return scatter.text.finish(extent, notes=(algorithm, Slice(f"o{scatter.sliced}")))


class _SelectAndScatter(Windows):
    def __init__(self, instruction: HloInstruction) -> None:
        array, source, _ = (o.shape for o in instruction.operands)
        attributes = instruction.attributes
        self.select, self.scatter = attributes.select, attributes.scatter
        text = KernelText("select_and_scatter", self.scatter, guarded=True)
        self.values = text.operand("x", array.element, 0)
        self.updates = text.operand("y", source.element, 1)
        self.start = text.operand("i", array.element, 2)
        self.output = text.output("out", array.element, 0)
        super().__init__(text, axes_of(array.dimensions, source.dimensions, attributes.window))
        self.sliced = _shared_axis(self.axes)

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
        parts = [a.part for a in self.axes if a.moves]
        disjoint = all(is_plain(p) and p.stride >= dilated(p.size, p.window_dilation) for p in parts)
        if disjoint and self.elements <= UNROLLED:
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
        begins = self.begins(positions)
        in_loops = partial(self._select_in_loops, begins, init, best, found)
        if self.unrolls:
            self.if_whole(begins, partial(self._select_unrolled, begins, best, found), in_loops)
        else:
            in_loops()
        return found

    def _select_unrolled(self, begins: Sequence[Expr], best: Name, found: Name) -> None:
        """The same without branches, which would be unpredictable."""
        for number, offset in enumerate(self.offsets(begins)):
            cell = self.writer.assign("cell", offset)
            value = self.writer.assign("value", self.values.load(cell))
            if number:
                self._keep(best, value, found, cell)
            else:
                self.writer.assign(best, value)
                self.writer.assign(found, cell)

    def _keep(self, best: Name, value: Expr, found: Name, place: Expr) -> None:
        """The selected one of two elements, and its place."""
        (keep,) = self.text.apply(self.select, [best, value])
        keep = self.writer.assign("keep", keep)
        self.writer.assign(best, call("select", keep, best, value))
        self.writer.assign(found, call("select", keep, found, place))

    def _write_window(self, positions: Sequence[Name], init: Expr) -> None:
        """All elements of one window: the selected one is combined, the others keep the init value."""
        writer = self.writer
        offsets = self.offsets(self.begins(positions))
        best = writer.assign("best", self.values.load(offsets[0]))
        which = writer.assign("which", call("int32", 0))
        for number, offset in enumerate(offsets[1:], start=1):
            value = writer.assign("value", self.values.load(offset))
            self._keep(best, value, which, call("int32", number))
        update = self._update(positions)
        (new,) = self.text.apply(self.scatter, [init, update])
        new = writer.assign("new", new)
        for number, offset in enumerate(offsets):
            self.text.store(self.output, offset, call("select", which.eq(call("int32", number)), new, init))

    def _select_in_loops(self, begins: Sequence[Expr], init: Expr, best: Name, found: Name) -> None:
        writer = self.writer
        writer.assign(found, -1)
        writer.assign(best, init)
        with ExitStack() as stack:
            cell = writer.assign("cell", self.over_elements(stack, begins))
            value = writer.assign("value", self.values.load(cell))
            again = writer.assign("again", found < 0)
            with writer.if_(Unary("not", again)):
                (keep,) = self.text.apply(self.select, [best, value])
                writer.assign(again, Unary("not", keep))
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


def _shared_axis(axes: Sequence[KernelAxis]) -> int | None:
    """The axis to slice, of those that the window does not change: the first if long enough, else the largest."""
    still = [a.number for a in axes if not a.moves]
    if not still:
        return None
    return still[0] if axes[still[0]].axis.size >= MANY_ROWS else max(still, key=lambda d: axes[d].axis.size)
