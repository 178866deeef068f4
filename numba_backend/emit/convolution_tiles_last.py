"""Kernels of convolutions, channels last, whose sums stay in registers; see `convolution_tiles.py`.

A tile has a few rows, which are positions, and a few registers of columns, which are outputs. The same kernel makes the
derivative by the kernel, whose rows are taps and inputs and whose sums go along images and positions, and depthwise
convolutions, where each column has its own input. The weights of a panel of columns are copied next to each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ..loops.expressions import ZERO, Expr, Name, Number, minimum, product
from ..loops.writer import cast
from .applied import KernelText
from .convolution import Sizes
from .convolution_copy import Geometry, carry, each_of
from .convolution_tiles import Pieces, Sums, Tile
from .kernel import HI, LO, EmittedKernel, memory_type
from .window_axes import take_apart


def emit_panels(sizes: Sizes, groups: int, depth: int, tile: Tile) -> EmittedKernel:
    """Channels last: the weights in panels, [group, panel, depth, column], with zeros in the columns that are missing.
    Operand 0: the kernel; output 0: the panels."""
    text = KernelText("panels", guarded=True)
    writer, zero = text.writer, cast(memory_type(sizes.element_type), 0)
    w = text.operand("w", sizes.element_type, 0).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    outputs, made = text.argument("outputs", sizes.made // groups), text.argument("made", sizes.made)
    panels = -(-sizes.made // groups // tile.columns)
    with writer.loop("row", LO, HI) as row:
        names = ["group", "panel", "d"]
        of_panels, of_depth = text.argument("panels", panels), text.argument("depth", depth)
        group, panel, d = take_apart(text, row, names, [ZERO, of_panels, of_depth])
        first = writer.assign("first", product(panel, tile.columns))
        base = writer.assign("base", product(d, made) + product(group, outputs) + first)
        at = writer.assign("at", product(row, tile.columns))
        columns = writer.assign("columns", minimum(outputs - first, Number(tile.columns)))
        with writer.if_(columns.eq(tile.columns)), writer.neighbours("j", tile.columns) as j:
            writer.store(out, at + j, w[base + j])
        with writer.else_():
            with writer.loop("j", columns) as j:
                writer.store(out, at + j, w[base + j])
            with writer.loop("j", columns, Number(tile.columns)) as j:
                writer.store(out, at + j, zero)
    return text.finish(groups * panels * depth)


@dataclass(frozen=True, slots=True)
class Panels:
    """Where the weights of a panel of columns are, in elements."""

    step: int
    """From one element of the depth to the next."""
    panel: int
    group: int


@dataclass(frozen=True, slots=True)
class Walk:
    """What is multiplied for a row of results, channels last: all pairs of a tap and an input.

    A row's number has `digits`: (count, distance in the copy) each, major to minor, the first one without end.
    """

    digits: tuple[tuple[int, int], ...]
    rows: int
    """Of one share."""
    taps: int
    inputs: int
    input_step: int
    """The distance of two inputs in the copy."""
    of_tap: int
    """How many rows of weights a tap is away from the next one."""
    of_input: int
    shares: int = 1
    """Rows come in so many shares, which the kernel's range goes through one after another."""

    @property
    def depth(self) -> int:
        return self.taps * self.inputs


def _steps(geometry: Geometry) -> list[int]:
    """The distance of neighbouring cells along each axis, channels last."""
    steps = [geometry.sizes.features]
    for c in geometry.cells[:0:-1]:
        steps.insert(0, steps[0] * c.size)
    return steps


def forward_walk(geometry: Geometry, images: int, *, by_images: bool = False) -> Walk:
    """Rows are positions of the window. `by_images`: those of an image are a share."""
    sizes = geometry.sizes
    digits = [(0, geometry.image)]
    for c, step in zip(geometry.cells, _steps(geometry), strict=True):
        digits.append((c.axis.count, c.axis.part.stride * step))
    shares = images if by_images else 1
    rows = images * sizes.positions // shares
    return Walk(tuple(digits), rows, sizes.taps, sizes.inputs, 1, sizes.inputs, 1, shares)


def gradient_walk(geometry: Geometry, images: int) -> Walk:
    """The derivative by the kernel: rows are its elements and inputs; positions and images are what is added up."""
    sizes = geometry.sizes
    digits = []
    for c, step in zip(geometry.cells, _steps(geometry), strict=True):
        digits.append((c.axis.part.size, c.axis.part.window_dilation * step))
    digits.append((sizes.inputs, 1))
    rows = sizes.taps * sizes.inputs
    return Walk(tuple(digits), rows, sizes.positions, images, geometry.image, 1, sizes.positions)


def emit_tiles_last(
    geometry: Geometry, walk: Walk, tile: Tile, panels: Panels, *, depthwise: bool = False, adds: bool = False
) -> EmittedKernel:
    """Channels last. Operand 0: the copy of some images; operand 1: the weights; operand 2: the offsets of the taps;
    output 0: the results. An iteration makes some tiles of one panel of columns. `depthwise`: a column has its own
    input instead of all. `adds`: to what is there."""
    sizes = geometry.sizes
    text = KernelText("depthwise_tiles" if depthwise else "convolution_tiles_last", guarded=True)
    writer = text.writer
    x = text.operand("x", sizes.element_type, 0).pointer
    w = text.operand("w", sizes.element_type, 1).pointer
    offsets = text.operand("offsets", ElementType.S64, 2).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    groups, members, width = (1, 1, sizes.made) if depthwise else (sizes.groups, sizes.inputs, sizes.outputs)
    outputs, made = text.argument("outputs", width), text.argument("made", sizes.made)
    inputs, taps = text.argument("inputs", walk.inputs), text.argument("taps", walk.taps)
    adding = text.argument("adds", int(adds))
    counts = [ZERO, *(text.argument(f"m{d}", count) for d, (count, _) in enumerate(walk.digits) if d)]
    strides = [text.argument(f"s{d}", stride) for d, (_, stride) in enumerate(walk.digits)]
    along = walk.input_step == 1 and not depthwise
    input_step = Number(1) if along else text.argument("input_step", walk.input_step)
    of_tap, of_input = (
        text.argument("of_tap", walk.of_tap * panels.step), text.argument("of_input", walk.of_input * panels.step)
    )  # fmt: skip
    of_panel, of_group = text.argument("of_panel", panels.panel), text.argument("of_group", panels.group)
    columns = -(-width // tile.columns)
    block = tile.rows * min(max(1, walk.rows // tile.rows // 8), 8)
    blocks = -(-walk.rows // block)
    total, of_block, of_blocks = (
        text.argument("rows", walk.rows), text.argument("block", block), text.argument("blocks", blocks)
    )  # fmt: skip
    sums = Sums(writer, tile, sizes.element_type)
    pieces = Pieces(text, walk.inputs, walk.taps, inputs, taps, sums).open

    def some(p: Name) -> None:
        """The tile of rows from p on. Those from `stop` on are the last one again, and are not written."""
        rows = tile.rows
        bases = []
        for k in range(rows):
            origin: Expr = before
            for digit, stride in zip(lines, strides, strict=True):
                origin = origin + digit * stride
            bases.append(writer.assign(f"base{k}", origin))
            with writer.if_(p + k + 1 < stop):
                carry(writer, lines, counts)
        with pieces() as (of_inputs, of_taps):
            outer, inner = (("t", of_taps), ("i", of_inputs)) if along else (("i", of_inputs), ("t", of_taps))
            with writer.loop(outer[0], *outer[1]) as a, writer.loop(inner[0], *inner[1]) as b:
                t, i = (a, b) if along else (b, a)
                at = writer.assign("at", offsets[t] + i * input_step)
                weights = writer.assign("weights", of_columns + product(t, of_tap) + product(i, of_input))
                if depthwise:
                    sums.add_elements(x, bases, at, lambda j: w[weights + j])
                else:
                    sums.add([x[base + at] for base in bases], lambda j: w[weights + j])
        to = writer.assign("to", product(p, made) + group * outputs + first)
        with writer.loop("r", minimum(stop - p, rows)) as r:
            place = writer.assign("place", to + product(r, made))
            source = writer.assign("source", product(r, tile.columns))

            with writer.if_(adding.eq(1)), writer.loop("j", wide) as j:
                writer.store(out, place + j, out[place + j] + sums.totals[source + j])
            with writer.if_(adding.eq(0)):
                each_of(writer, wide, lambda j: writer.store(out, place + j, sums.totals[source + j]))

    with writer.loop("item", LO, HI) as item:
        names = ["share", "group", "panel", "part"]
        bounds = [ZERO, text.size("groups", groups), text.argument("panels", columns), of_blocks]
        share, group, panel, part = take_apart(text, item, names, bounds)
        first = writer.assign("first", product(panel, tile.columns))
        wide = writer.assign("wide", minimum(outputs - first, Number(tile.columns)))
        of_columns = writer.assign("of_columns", product(group, of_group) + product(panel, of_panel))
        before = writer.assign("before", first if depthwise else product(group, text.argument("members", members)))
        begin = writer.assign("begin", product(share, total) + product(part, of_block))
        stop = writer.assign("stop", minimum(begin + of_block, product(share + 1, total)))
        lines = take_apart(text, begin, [f"line{d}" for d in range(len(counts))], counts)
        with writer.loop("p", begin, stop, step=tile.rows) as p:
            some(p)
    return text.finish(walk.shares * groups * columns * blocks)
