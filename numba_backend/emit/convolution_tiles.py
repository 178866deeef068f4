"""Kernels of canonical convolutions of f32 and f64 whose sums stay in registers: neither patches nor a BLAS.

They work on a copy of the input with its padding (`convolution_copy.py`). A tile of results is a product of a few rows
and a few vector registers, which goes through all taps of all inputs. This file has what both forms share, and
channels first; `convolution_tiles_last.py` has channels last.

    channels first: rows are outputs, columns positions         channels last: rows are positions, columns outputs
    for i in range(inputs):                                      for t in range(taps):
        for t in range(taps):                                        for i in range(inputs):
            at = start + i * plane + offsets[t]                          at = offsets[t] + i
            row0[j] += w[(o * inputs + i) * taps + t] * x[at + j]        row0[j] += x[base0 + at] * w[to + j]
            row1[j] += ...                                               row1[j] += ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ..loops.expressions import ZERO, Expr, Name, Number, all_of, maximum, minimum, product, unary
from ..loops.overlapping import each_of
from ..loops.writer import Writer, cast
from ..machine import Machine
from .applied import KernelText
from .convolution import Sizes, times_zero
from .convolution_copy import Geometry, carry
from .kernel import HI, LO, EmittedKernel, memory_type
from .window_axes import row_major, take_apart

SUPPORTED = frozenset((ElementType.F32, ElementType.F64))
"""Element types whose products are vector instructions."""

MOST_OFFSETS = 1 << 16
"""A longer table of offsets would take more memory than it is worth."""

LEAST_COLUMNS = 16
"""LLVM unrolls loops over fewer elements before it makes vectors of them, and then may fail."""



@dataclass(frozen=True, slots=True)
class Tile:
    """The sums that are in registers at a time: `rows` rows of `columns` elements."""

    rows: int
    columns: int


def tile_of(machine: Machine, element_type: ElementType, rows: int) -> Tile:
    """The tile for a machine's registers. `rows`: how many there are to do. Few are shared out evenly; for one row
    alone the tile is longer, since each sum waits for the one before."""
    count, nbytes = machine.registers, machine.register_bytes
    lanes = nbytes // element_type.byte_width
    if rows == 1:
        return Tile(1, max(LEAST_COLUMNS, 8 * lanes))
    columns = max(LEAST_COLUMNS, (2 if count < 32 or nbytes >= 64 else 3) * lanes)
    most = min(6 if count < 32 else 8, (12 if count < 32 else 24) * lanes // columns)
    if rows < 2 * most:
        most = -(-rows // -(-rows // most))
    return Tile(most, columns)


class Sums:
    """The rows of a tile, as local arrays of which LLVM makes registers."""

    def __init__(self, writer: Writer, tile: Tile, element_type: ElementType) -> None:
        self.writer, self.columns = writer, Number(tile.columns)
        self.kind = memory_type(element_type)
        self.rows = [writer.local_array(f"row{r}", tile.columns, self.kind) for r in range(tile.rows)]
        self.totals = writer.local_array("totals", tile.rows * tile.columns, self.kind)

    @contextmanager
    def piece(self, is_first: Expr) -> Iterator[None]:
        """``row0[j] = 0`` before what adds a piece of all products; after it ``totals[j] = totals[j] + row0[j]``, or
        ``totals[j] = row0[j]`` for the first piece."""
        for row in self.rows:
            with self.writer.neighbours("j", self.columns) as j:
                self.writer.store(row, j, cast(self.kind, 0))
        yield
        with self.writer.if_(is_first):
            self._keep(lambda at, value: value)
        with self.writer.else_():
            self._keep(lambda at, value: self.totals[at] + value)

    def _keep(self, combined: Callable[[Expr, Expr], Expr]) -> None:
        for r, row in enumerate(self.rows):
            with self.writer.neighbours("j", self.columns) as j:
                at = j + self.columns * r
                self.writer.store(self.totals, at, combined(at, row[j]))

    def add(self, factors: list[Expr], vector: Callable[[Expr], Expr]) -> None:
        """``row0[j] = row0[j] + factor0 * vector(j)`` for each factor."""
        names = [self.writer.assign(f"factor{r}", factor) for r, factor in enumerate(factors)]
        for row, factor in zip(self.rows, names, strict=False):
            with self.writer.neighbours("j", self.columns) as j:
                self.writer.store(row, j, row[j] + factor * vector(j))

    def add_elements(self, x: Name, bases: list[Name], at: Expr, vector: Callable[[Expr], Expr]) -> None:
        """``row0[j] = row0[j] + x[base0 + at + j] * vector(j)`` for each base."""
        for r, (row, base) in enumerate(zip(self.rows, bases, strict=False)):
            start = self.writer.assign(f"start{r}", base + at)
            with self.writer.neighbours("j", self.columns) as j:
                self.writer.store(row, j, row[j] + x[start + j] * vector(j))


PIECE = 512
"""How many products are added up before the sum goes into the total: rounding errors grow with the length of a sum."""


class Pieces:
    """The loops over pieces of inputs and taps."""

    def __init__(
        self, text: KernelText, many_inputs: int, many_taps: int, inputs: Expr, taps: Expr, sums: Sums
    ) -> None:
        self.inputs, self.taps, self.sums = inputs, taps, sums
        some_taps = min(many_taps, PIECE)
        some_inputs = min(many_inputs, max(1, PIECE // many_taps))
        self.numbers = [
            text.argument("each_i", some_inputs), text.argument("each_t", some_taps),
            text.argument("pieces_i", -(-many_inputs // some_inputs)),
            text.argument("pieces_t", -(-many_taps // some_taps)),
        ]  # fmt: skip

    @contextmanager
    def open(self) -> Iterator[tuple[tuple[Expr, Expr], tuple[Expr, Expr]]]:
        """Opens the loops over pieces; gives the bounds of the inputs and the taps of a piece. ::

        for i0 in range(pieces_i):
            for t0 in range(pieces_t):
                ... the rows, cleared before and added to the totals after
        """
        writer, (each_i, each_t, many_i, many_t) = self.sums.writer, self.numbers
        with writer.loop("i0", many_i) as i0, writer.loop("t0", many_t) as t0, self.sums.piece((i0 + t0).eq(0)):
            first_i = writer.assign("first_i", product(i0, each_i))
            first_t = writer.assign("first_t", product(t0, each_t))
            end_i = writer.assign("end_i", minimum(first_i + each_i, self.inputs))
            end_t = writer.assign("end_t", minimum(first_t + each_t, self.taps))
            yield (first_i, end_i), (first_t, end_t)


def _met(text: KernelText, geometry: Geometry, before: Expr, first: Expr, tile: Tile) -> tuple[Name, Name]:
    """The taps, from and to, that meet the array and not its padding alone along the first axis, for the positions of
    the tile from `first` on, `before` lines after the image's first."""
    writer, cells, axis = text.writer, geometry.cells, geometry.cells[0].axis
    part, line = axis.part, math.prod(c.size for c in cells[1:])
    of_line = text.size("of_line", line)
    stride, dilation = text.argument("line_stride", part.stride), text.argument("line_dilation", part.window_dilation)
    low, size = text.argument("line_low", part.padding_low), text.argument("line_size", axis.size)
    window, rest = text.argument("window", part.size), text.argument("of_window", geometry.sizes.taps // part.size)
    last_line = text.argument("last_line", axis.count - 1)
    begin = product(before + first // of_line, stride) - low
    end = product(before + minimum((first + (tile.columns - 1)) // of_line, last_line), stride) - low
    from_element = writer.assign("from_element", maximum(0, (dilation - 1 - end) // dilation))
    to_element = writer.assign("to_element", minimum(window, (size - 1 - begin) // dilation + 1))
    return writer.assign("t_first", product(from_element, rest)), writer.assign("t_end", product(to_element, rest))


def emit_turned(sizes: Sizes) -> EmittedKernel:
    """The kernel of a derivative by the input, [input, output, taps], as [output, input, taps] from the last tap on.
    Operand 0: the kernel; output 0: the turned one. A few outputs at a time: what is read lies together."""
    text = KernelText("turned", guarded=True)
    writer = text.writer
    w = text.operand("w", sizes.element_type, 0).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    inputs, outputs, taps = (
        text.argument("inputs", sizes.inputs), text.argument("outputs", sizes.outputs),
        text.argument("taps", sizes.taps),
    )  # fmt: skip
    with writer.loop("block", LO, HI) as block:
        first = writer.assign("first", product(block, Number(_TURNED)))
        end = writer.assign("end", minimum(first + _TURNED, outputs))
        with writer.loop("i", inputs) as i, writer.loop("o", first, end) as o:
            last = writer.assign("last", product(product(i, outputs) + o + 1, taps) - 1)
            to = writer.assign("to", product(product(o, inputs) + i, taps))
            with writer.loop("t", taps) as t:
                writer.store(out, to + t, w[last - t])
    return text.finish(-(-sizes.outputs // _TURNED))


_TURNED = 8


def emit_tiles_first(geometry: Geometry, tile: Tile, images: int, block: int) -> EmittedKernel:
    """Channels first. Operand 0: the copy of some images; operand 1: the kernel; operand 2: the offsets of the taps;
    output 0: the results of these images. `block`: how many outputs one iteration makes.

    Taps of a tile that meet padding alone are left out, if zero times the weights is zero. These are looked at for the
    first such tile.

    The copy must be followed by as many elements, of any value, as a tile has columns.
    """
    sizes = geometry.sizes
    text = KernelText("convolution_tiles", guarded=True)
    writer = text.writer
    x = text.operand("x", sizes.element_type, 0).pointer
    w = text.operand("w", sizes.element_type, 1).pointer
    offsets = text.operand("offsets", ElementType.S64, 2).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    groups = text.size("groups", sizes.groups)
    inputs, outputs = text.argument("inputs", sizes.inputs), text.argument("outputs", sizes.outputs)
    taps, plane = text.argument("taps", sizes.taps), text.argument("plane", geometry.plane)
    counts = [text.argument(f"m{d}", count) for d, (_, count) in enumerate(geometry.lines)]
    widths = [text.argument(f"c{d}", size) for d, (size, _) in enumerate(geometry.lines)]
    tiles, blocks = -(-geometry.flat // tile.columns), -(-sizes.outputs // block)
    of_tiles, of_blocks = text.argument("tiles", tiles), text.argument("blocks", blocks)
    step = text.argument("block", block)
    positions = text.argument("positions", sizes.positions)
    sums = Sums(writer, tile, sizes.element_type)
    pieces = Pieces(text, sizes.inputs, sizes.taps, inputs, taps, sums).open
    depth = writer.assign("depth", product(inputs, taps))

    def some(o: Name) -> None:
        """The tile of outputs from o on. Those from `end` on are the last one again, and are not written."""
        rows = tile.rows
        before = writer.assign("before", product(group, outputs))
        bases = []
        for k in range(rows):
            index = minimum(o + k, end - 1) if k else o
            bases.append(writer.assign(f"base{k}", product(before + index, depth)))
        with pieces() as (i_bounds, t_bounds), writer.loop("i", *i_bounds) as i:
            of_input = writer.assign("of_input", start + product(i, plane))
            of_weight = writer.assign("of_weight", product(i, taps))
            with writer.loop("t", maximum(t_bounds[0], t_first), minimum(t_bounds[1], t_end)) as t:
                at = writer.assign("at", of_input + offsets[t])
                weight = writer.assign("weight", of_weight + t)
                sums.add([w[base + weight] for base in bases], lambda j: x[at + j])
        of_outputs = row_major([image, group, ZERO], [ZERO, groups, outputs]) + o
        to = writer.assign("to", product(of_outputs, positions) + product(strip, of_strip))
        left = writer.assign("left", 0)
        column = writer.assign("column", column0)
        lines = [writer.assign(f"line{d}", q) for d, q in enumerate(lines0)]
        with writer.while_(left < tile.columns):
            last = widths[-1]
            stop = writer.assign("stop", minimum(last - column, Number(tile.columns) - left))
            some_columns = writer.assign("length", minimum(counts[-1] - column, stop))
            if lines:
                inside = all_of([q < m for q, m in zip(lines, counts, strict=False)])
                with writer.if_(unary("not", inside)):
                    writer.assign(some_columns, 0)
                target = writer.assign("target", to + row_major([*lines, column], counts))
            else:
                target = writer.assign("target", to + column)
            with writer.loop("r", minimum(end - o, rows)) as r:
                place = writer.assign("place", target + product(r, positions))
                source = writer.assign("source", product(r, tile.columns) + left)
                each_of(writer, some_columns, lambda j: writer.store(out, place + j, sums.totals[source + j]))
            writer.augment(left, "+", stop)
            writer.assign(column, 0)
            for d in range(len(lines) - 1, -1, -1):
                if d == len(lines) - 1:
                    writer.augment(lines[d], "+", 1)
                if d:
                    with writer.if_(lines[d].eq(widths[d])):
                        writer.assign(lines[d], 0)
                        writer.augment(lines[d - 1], "+", 1)
            if not lines:
                writer.assign(left, tile.columns)

    strips, lines = text.argument("strips", geometry.strips), text.argument("lines", geometry.cells[0].axis.count)
    of_strip = text.argument("of_strip", sizes.positions // geometry.strips)
    bounds = [ZERO, strips, groups, of_blocks, of_tiles]
    item = take_apart(text, LO, ["image", "strip", "group", "part", "tile"], bounds)
    image, strip, group, part, number = item
    zero = cast(memory_type(sizes.element_type), 0)
    seen, nothing = writer.assign("seen", -1), writer.assign("nothing", zero)
    with writer.loop("item", LO, HI):
        first = writer.assign("first", product(number, tile.columns))
        of_copy = row_major([image, strip, group], [ZERO, strips, groups])
        start = writer.assign("start", product(of_copy, inputs, plane) + first)
        digits = take_apart(text, first, [*(f"first{d}" for d in range(len(widths) - 1)), "column0"], widths)
        *lines0, column0 = digits
        t_first, t_end = _met(text, geometry, product(strip, lines), first, tile)
        begin = writer.assign("begin", product(part, step))
        end = writer.assign("end", minimum(begin + step, outputs))
        with writer.if_(t_end - t_first < taps):
            weights = writer.assign("weights", product(group, of_blocks) + part)
            with writer.if_(weights.ne(seen)):
                first_weight = writer.assign("first_weight", product(product(group, outputs) + begin, depth))
                last_weight = writer.assign("last_weight", product(product(group, outputs) + end, depth))
                times_zero(text, zero, nothing, w, first_weight, last_weight)
                writer.assign(seen, weights)
            with writer.if_(nothing.ne(zero)):
                writer.assign(t_first, 0)
                writer.assign(t_end, taps)
        with writer.loop("o", begin, end, step=tile.rows) as o:
            some(o)
        carry(writer, item, bounds)
    return text.finish(images * geometry.strips * sizes.groups * blocks * tiles)
