"""The copy of the input of a convolution, with the zeros of its padding around it, for the tiles that multiply it.

On the copy nothing needs to be tested: each element of the window (a *tap*) is a fixed distance away from the
position's first cell. These distances come in a table.

Channels first, positions are counted along the rows of the copy, so that the positions of a tile are neighbours in it;
positions between the end of a row of results and the end of the copy's row are computed, and not written. A window with
a stride of 2 covers every second cell: the copy has the even cells in one plane and the odd ones in another (its
*phases*).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from ...hlo.support.records import dataclass
from ...hlo.window import WindowDimension
from ..emitted_kernel import HI, LO, EmittedKernel, memory_type
from ..loops.expressions import ZERO, Expr, Name, Number, Unary, all_of, is_number, maximum, minimum, product
from ..loops.overlapping import each_of
from ..loops.typing import pointee
from ..loops.writer import Writer, cast
from ..remembered import remembered_by_form
from .convolution import Sizes
from .scalar_computations import KernelText
from .window_axes import Axis, row_major, take_apart


@dataclass(frozen=True, slots=True)
class Cells:
    """The copy of the input along one axis."""

    axis: Axis
    phases: int
    """How many phases of a stride the window covers; channels last there is one."""
    size: int
    """Cells of one phase."""
    spread: bool = False
    """True if each element of the window has a phase: its cells at all positions, and no others."""

    def tap(self, element: int) -> tuple[int, int]:
        """The phase of an element of the window, and its distance within the phase."""
        if self.spread:
            return element, 0
        part = self.axis.part
        distance = element * part.window_dilation
        return (distance % part.stride, distance // part.stride) if self.phases else (0, distance)


def cells_first(axis: Axis) -> Cells:
    """Channels first: each phase has the cells that the window covers."""
    part = axis.part
    reach = (part.size - 1) * part.window_dilation
    return Cells(axis, min(part.stride, reach + 1), reach // part.stride + axis.count)


def cells_spread(axis: Axis) -> Cells:
    """Channels first: a row of each phase has one cell for each position."""
    return Cells(axis, axis.part.size, axis.count, spread=True)


def cells_last(axis: Axis) -> Cells:
    """Channels last: all cells from the window's first one to its last one."""
    part = axis.part
    return Cells(axis, 0, (axis.count - 1) * part.stride + (part.size - 1) * part.window_dilation + 1)


@dataclass(frozen=True, slots=True)
class Geometry:
    """How a convolution walks through the copy of its input."""

    sizes: Sizes
    cells: tuple[Cells, ...]
    strips: int = 1
    """Channels first: into how many images, with as many lines of positions along the first axis, an image is cut.
    `cells` describes one of these strips."""
    walks: int = 1
    """Channels first: into how many parts, with as many lines of positions along the first axis, the walk through an
    image is cut. Cells between the last position of a part and the first one of the next are left out. An image in
    strips has one walk through each."""

    @property
    def lines_of_walk(self) -> int:
        """Channels first: lines of positions along the first axis in a part of the walk."""
        return self.cells[0].axis.count // self.walks

    @property
    def plane(self) -> int:
        """Elements of the copy for one image and feature."""
        return math.prod(max(c.phases, 1) * c.size for c in self.cells)

    @property
    def image(self) -> int:
        """Elements of the copy for one image, or one strip of it."""
        return self.plane * self.sizes.features

    @property
    def flat(self) -> int:
        """Channels first: cells from the first to the last position of a part of the walk, along the copy's rows."""
        last = self.lines_of_walk - 1
        for c in self.cells[1:]:
            last = last * c.size + c.axis.count - 1
        return last + 1

    @property
    def lines(self) -> tuple[tuple[int, int], ...]:
        """Channels first: how results lie along the rows of the copy, major to minor: of so many cells the first so
        many are results. Rows without other cells are one long row."""
        pairs = [(c.size, c.axis.count) for c in self.cells]
        pairs[0] = self.cells[0].size, self.lines_of_walk
        if self.cells[-1].spread and len(pairs) > 1:
            (size, count), (width, _) = pairs[-2:]
            pairs[-2:] = [(1, 1), (size * width, count * width)]
        return tuple(pairs)

    def position_offsets(self) -> np.ndarray:
        """Channels last: how far the first cell of each position is from the first cell of position 0, row-major."""
        cells = np.zeros((1,), np.int64)
        for c in self.cells:
            steps = np.arange(c.axis.count, dtype=np.int64) * c.axis.part.stride
            cells = (cells[:, None] * c.size + steps[None, :]).reshape(-1)
        return cells * self.sizes.features

    def tap_offsets(self) -> np.ndarray:
        """The distance of each tap from a position's first cell, row-major, in elements of the copy."""
        phases = np.zeros((1,), np.int64)
        cells = np.zeros((1,), np.int64)
        for c in self.cells:
            taps = np.array([c.tap(k) for k in range(c.axis.part.size)], np.int64)
            phases = (phases[:, None] * max(c.phases, 1) + taps[None, :, 0]).reshape(-1)
            cells = (cells[:, None] * c.size + taps[None, :, 1]).reshape(-1)
        if self.sizes.channels_last:
            return cells * self.sizes.features
        return phases * math.prod(c.size for c in self.cells) + cells


def geometry_of(sizes: Sizes, *, spread: bool = False, strips: int = 1) -> Geometry:
    """The walk of a canonical convolution. `spread`: channels first, the last axis has a
    phase for each element of the window, so that neighbouring results are neighbours in the rows of the copy too."""
    axes = list(sizes.axes)
    if strips > 1:
        assert len(axes) > 1 and axes[0].count % strips == 0, "strips of different sizes"
        axes[0] = replace(axes[0], count=axes[0].count // strips)
    cells = [(cells_last if sizes.channels_last else cells_first)(axis) for axis in axes]
    if spread:
        cells[-1] = cells_spread(axes[-1])
    return Geometry(sizes, tuple(cells), strips)


def geometry_of_gradient(sizes: Sizes) -> Geometry:
    """The walk of a derivative by the kernel, channels first: each element of the window, along all axes but the first,
    has a phase, so that its positions are neighbours in the copy."""
    return Geometry(sizes, (cells_first(sizes.axes[0]), *map(cells_spread, sizes.axes[1:])))


def lies_as_copied(geometry: Geometry) -> bool:
    """True if the input itself is a copy as the tiles need it: channels last, no padding at the beginning, and the
    window reaches no further than the array."""
    return geometry.sizes.channels_last and all(
        c.axis.part.padding_low == 0 and c.size == c.axis.size for c in geometry.cells
    )


def carry(writer: Writer, digits: Sequence[Expr], bounds: Sequence[Expr]) -> None:
    """Go to the next number: add one to the last digit of `take_apart`, and carry. The first bound is not used."""
    variables = [(digit, bound) for digit, bound in zip(digits, bounds, strict=True) if isinstance(digit, Name)]
    writer.augment(variables[-1][0], "+", 1)
    for (above, _), (digit, bound) in reversed(list(itertools.pairwise(variables))):
        with writer.if_(digit.eq(bound)):
            writer.assign(digit, 0)
            writer.augment(above, "+", 1)


def _features_as_cells(geometry: Geometry) -> Geometry:
    """Channels last as channels first, with one feature: the features of a cell are neighbours along the last axis."""
    sizes, cells = geometry.sizes, []
    for number, c in enumerate(geometry.cells, 1):
        by = sizes.features if number == len(geometry.cells) else 1
        axis = Axis(c.axis.size * by, c.axis.count, WindowDimension(padding_low=c.axis.part.padding_low * by))
        cells.append(Cells(axis, 1, c.size * by))
    return Geometry(replace(sizes, groups=1, inputs=1), tuple(cells))


@remembered_by_form
def emit_copy(geometry: Geometry, first_image: int, images: int) -> EmittedKernel:
    """The copy of some images: [image, strip, feature, phases..., cells...], or channels last [image, cells...,
    feature]. Operand 0: the input; output 0: it. ::

    for row in range(lo, hi):   # image, strip, f, h0, h1, q0
        ...
        inside = cell0 >= 0 and cell0 < n0
        for j in range(c1):
            out[at + j] = x[base + j * s1] or 0
    """
    if geometry.sizes.channels_last:
        geometry = _features_as_cells(geometry)
    sizes, cells = geometry.sizes, geometry.cells
    text = KernelText("padded", guarded=True)
    writer = text.writer
    x = text.operand("x", sizes.element_type, 0).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    features = text.argument("features", sizes.features)
    before = text.argument("first_image", first_image)
    n = [text.size(f"n{d}", c.axis.size) for d, c in enumerate(cells)]
    steps = [text.size(f"s{d}", c.axis.part.stride, literal=True) for d, c in enumerate(cells)]
    lows = [text.argument(f"p{d}", c.axis.part.padding_low) for d, c in enumerate(cells)]
    phases = [text.size(f"h{d}", c.phases, literal=True) for d, c in enumerate(cells)]
    counts = [text.size(f"c{d}", c.size) for d, c in enumerate(cells)]
    rank, last = len(cells), cells[-1]
    joined = last.phases if 1 < last.phases <= JOINED and not last.spread else 1
    apart: list[Expr] = [Number(1)] * rank
    for d, c in enumerate(cells):
        if c.spread or (c is last and c.axis.part.stride == 1):  # one text for both ways to copy
            phases[d] = text.argument(f"h{d}", c.phases)
            apart[d] = text.argument(f"apart{d}", c.axis.part.window_dilation)
    outer = rank - 1 if joined > 1 else rank  # axes with phases that are rows of their own
    of_strip = text.argument("of_strip", cells[0].axis.count * cells[0].axis.part.stride)
    names = ["image", "strip", "f", *(f"phase{d}" for d in range(outer)), *(f"q{d}" for d in range(rank - 1))]
    bounds: list[Expr] = [ZERO, text.argument("strips", geometry.strips), features, *phases[:outer], *counts[:-1]]
    image, strip, f, *digits = all_digits = take_apart(text, LO, names, bounds)
    of_phase, of_row = digits[:outer], digits[outer:]
    with writer.loop("row", LO, HI) as row:
        indices: list[Expr] = [image + before, f]
        tests: list[Expr] = []
        for d in range(rank - 1):
            cell = writer.assign(f"cell{d}", of_row[d] * steps[d] + product(of_phase[d], apart[d]) - lows[d])
            if not d:
                writer.augment(cell, "+", product(strip, of_strip))
            indices.append(cell)
            tests += [cell >= 0, cell < n[d]]
        if joined > 1:
            origin = row_major([*indices, ZERO], [ZERO, features, *n]) - lows[-1]
            lines = text.size("lines", math.prod(c.size for c in cells[:-1]))
            plane = text.size("cells", math.prod(c.size for c in cells))
            block = writer.assign("block", row // lines)
            at = product(block, plane) * joined + product(row - block * lines, counts[-1])
            _write_phases(writer, x, out, tests, origin, at, (lows[-1], steps[-1], n[-1], counts[-1], plane), joined)
        else:
            shift = writer.assign("shift", product(of_phase[-1], apart[-1]) - lows[-1])
            base = writer.assign("base", row_major([*indices, ZERO], [ZERO, features, *n]) + shift)
            at = writer.assign("at", product(row, counts[-1]))
            left, right = inside_of(writer, [], shift, steps[-1], n[-1], counts[-1])
            with writer.if_(all_of(tests)) if tests else nullcontext():
                _write_ends(writer, out, at, left, right, counts[-1])
                count = writer.assign("count", right - left)
                to, origin = writer.assign("to", at + left), writer.assign("origin", base + left * steps[-1])
                each_of(writer, count, lambda j: writer.store(out, to + j, x[origin + j * steps[-1]]))
            if tests:
                with writer.else_():
                    whole = writer.assign("count", counts[-1])
                    each_of(writer, whole, lambda j: writer.store(out, at + j, cast(str(pointee(out.type)), 0)))
        carry(writer, all_digits, bounds)
    rows = images * geometry.strips * geometry.image // (cells[-1].size * joined)
    return text.finish(rows)


END = 16
"""Cells at the ends of a row that are written together: most of them have elements, which are written over."""
JOINED = 4
"""Phases along the last axis that are copied together: the elements of one are between the elements of the others."""


def inside_of(
    writer: Writer, tests: list[Expr], shift: Expr, step: Expr, size: Expr, count: Expr, number: str = ""
) -> tuple[Name, Name]:
    """Which of `count` cells have an element of the array, from and to, if all of `tests` hold; if not, none has."""
    first, end = -shift, size - shift
    if not is_number(step, 1):
        first, end = (step - 1 - shift) // step, (size - 1 - shift) // step + 1
    left = writer.assign(f"left{number}", minimum(maximum(0, first), count))
    right = writer.assign(f"right{number}", maximum(minimum(count, end), left))
    if tests:
        with writer.if_(Unary("not", all_of(tests))):
            writer.assign(left, count)
            writer.assign(right, count)
    return left, right


def _write_sides(writer: Writer, out: Name, at: Expr, left: Expr, right: Expr, count: Expr) -> None:
    """The zeros of a row, up to its cell `left` and from `right` on: one text for both."""
    with writer.loop("side", Number(2)) as side:
        to = writer.assign("to", at + side * right)
        zeros = writer.assign("zeros", left + side * (count - right - left))
        each_of(writer, zeros, lambda j: writer.store(out, to + j, cast(str(pointee(out.type)), 0)), (4,))


def _write_ends(writer: Writer, out: Name, at: Expr, left: Expr, right: Expr, count: Expr) -> None:
    """The same for a row whose other cells are written next: its first and its last vector, if they have all zeros."""
    with writer.if_(all_of([count >= END, left <= END, count - right <= END])):
        for start in (at, at + count - END):
            with writer.neighbours("lane", END, always=True) as lane:
                writer.store(out, start + lane, cast(str(pointee(out.type)), 0))
    with writer.else_():
        _write_sides(writer, out, at, left, right, count)


def _write_phases(
    writer: Writer, x: Name, out: Name, tests: list[Expr], origin: Expr, at: Expr,
    axis: tuple[Expr, Expr, Expr, Expr, Expr], phases: int,
) -> None:  # fmt: skip
    """A row of each phase along the last axis: where all of them have elements, these are neighbours. `axis`: the
    padding, the stride, the elements, the cells, and the distance of two phases in the copy. ::

        for j in range(count):
            out[to0 + j] = x[base + j * 2]
            out[to1 + j] = x[base + j * 2 + 1]
    """
    low, step, size, count, plane = axis
    base = writer.assign("base", origin)
    starts = [writer.assign(f"to{p}", at + plane * p if p else at) for p in range(phases)]
    bounds = [inside_of(writer, tests, p - low, step, size, count, str(p)) for p in range(phases)]
    lefts, rights = zip(*bounds, strict=True)
    first = writer.assign("first", functools.reduce(maximum, lefts))
    end = writer.assign("end", maximum(functools.reduce(minimum, rights), first))

    def all_phases(j: Expr) -> None:
        for p, start in enumerate(starts):
            writer.store(out, start + first + j, x[base + first * step + j * step + p])

    each_of(writer, end - first, all_phases)
    for p, (start, (left, right)) in enumerate(zip(starts, bounds, strict=True)):
        _write_sides(writer, out, start, left, right, count)
        for begin, stop in ((left, minimum(first, right)), (maximum(end, left), right)):
            with writer.if_(begin < stop), writer.loop("j", begin, stop) as j:
                writer.store(out, start + j, x[base + j * step + p])


@remembered_by_form
def emit_panels(sizes: Sizes, groups: int, depth: int, columns: int) -> EmittedKernel:
    """Channels last: the weights in panels, [group, panel, depth, column], with zeros in the columns that are missing.
    Operand 0: the kernel; output 0: the panels."""
    text = KernelText("panels", guarded=True)
    writer, zero = text.writer, cast(memory_type(sizes.element_type), 0)
    w = text.operand("w", sizes.element_type, 0).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    outputs, made = text.argument("outputs", sizes.made // groups), text.argument("made", sizes.made)
    panels = -(-sizes.made // groups // columns)
    with writer.loop("row", LO, HI) as row:
        names = ["group", "panel", "d"]
        of_panels, of_depth = text.argument("panels", panels), text.argument("depth", depth)
        group, panel, d = take_apart(text, row, names, [ZERO, of_panels, of_depth])
        first = writer.assign("first", product(panel, columns))
        base = writer.assign("base", product(d, made) + product(group, outputs) + first)
        at = writer.assign("at", product(row, columns))
        wide = writer.assign("wide", minimum(outputs - first, Number(columns)))
        with writer.if_(wide.eq(columns)), writer.neighbours("j", columns) as j:
            writer.store(out, at + j, w[base + j])
        with writer.else_():
            with writer.loop("j", wide) as j:
                writer.store(out, at + j, w[base + j])
            with writer.loop("j", wide, Number(columns)) as j:
                writer.store(out, at + j, zero)
    return text.finish(groups * panels * depth)
