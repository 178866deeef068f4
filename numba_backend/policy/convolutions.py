"""Choose the schedules of convolutions for a machine.

A tile of results is a few rows and a few registers of columns. Its sums are in registers while it goes through all taps
and inputs. Channels last, columns are outputs, and the weights of a tile's columns are neighbours: in panels, or since
there is one. Channels first, columns are positions along the rows of the copy, and rows are outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from ...hlo.element_type import ElementType
from ...hlo.support.records import dataclass
from ..emit.convolution import Sizes
from ..emit.convolution_copy import Geometry, geometry_of
from ..emit.convolution_rows import Rows, copied, planes_of
from ..emit.convolution_sums import Form, Matrices, emit_sums
from ..emit.product import type_of_sums
from ..emitted_kernel import EmittedKernel
from ..loops.expressions import Name
from ..loops.lanes import MOST, WIDTHS
from ..machine import Machine, target_machine
from ..schedule.steps import (
    Accumulate,
    Collect,
    Lanes,
    Order,
    Padded,
    Padding,
    Parallel,
    Part,
    Schedule,
    Split,
    Step,
    Unroll,
)
from . import FEW_IMAGES

LEAST_COLUMNS = 16
"""LLVM unrolls loops over fewer elements before it makes vectors of them, and then may fail."""
PIECE = 512
"""How many products are added up before the sum goes into the total: rounding errors grow with the length of a sum."""
MOST_OUTPUTS = 64
"""Channels first: so many outputs are multiplied by a piece of the inputs while that is in a first-level cache."""
ELEMENTS, LONG_PIECE = 4, 2048
"""Derivatives by the kernel, channels first: elements of the window in a tile; positions that are added up in f32."""
FEWEST_BLOCKS, TILES = 8, 8
"""Channels last: the fewest blocks of rows that threads share, if there are as many tiles; the most tiles of one."""

MANY_POSITIONS = 256
"""Channels last: the fewest rows of a block at which the product runs at full speed."""

MANY_ITEMS = 64
"""With at least so many pieces of work, threads finish at about the same time."""
COPIED, COPIED_ROW, SEGMENT = 5.0, 300.0, 100.0
"""Copying an element, and a row besides, and writing a run of results to where they belong, in multiplications."""
LESS_WORK = 0.95
"""A larger copy has to save more than the estimate may be wrong."""
LESS_CELLS = 0.97
"""Channels first: the most work of a walk in parts, of that of one in a piece."""
FEW_STRIPS, MORE_WORK = 16, 1.03
"""The fewest strips, for the threads, and how much more work they may take."""
ROWS, MOST_TAPS = 4, 64
"""Rows of results of one input: so many neighbouring ones read a row of the input together; the kernel has a
multiplication for each of them and each element of the window."""
FEW_TAPS, FEW_WEIGHTS = 16, 200
"""Results of one input are done by rows if a window has so few elements, or all windows of an input together. Images
of 28 x 28 take 0.4 to 0.6 of the time of tiles for 1 to 8 outputs with 3 x 3, 0.85 for 64; 0.5 to 0.8 for 2 to 8 with
5 x 5, 1.0 for 32; 0.7 for 2 with 7 x 7, 1.25 for 8."""
MOST_ROWS = 1.1
"""Channels last: the rows of an image's tiles may be so many times the rows of the image."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The sums that are in registers at a time: `rows` rows of `columns` elements."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Panels:
    """Channels last: where the weights of a panel of columns are, in elements."""

    step: int
    """The distance of two elements along the depth."""
    panel: int
    group: int


def tile_of(machine: Machine, element_type: ElementType, rows: int, outputs: int | None = None) -> Tile:
    """The tile for a machine's registers. `rows`: how many there are to do. Few are shared out evenly; for fewer
    than four the tile is longer, since each sum waits for the one before: 0.9 of the time for two. `outputs`: how many
    columns have results, if they may be few. Columns without results are zeros that are multiplied too: for 8 outputs
    one register takes 0.5 of the time of two. Where columns are positions, there are many of them: of 16 registers,
    three for each of four rows read 7 vectors for 12 products, and few numbers of outputs leave rows over. They take
    0.92 of the time of two for each of six rows with 64 outputs, 0.87 with 16."""
    count, nbytes = machine.registers, machine.register_bytes
    lanes = nbytes // WIDTHS[type_of_sums(element_type)]
    wide = nbytes < 64 and (count >= 32 or outputs is None)
    columns = max(LEAST_COLUMNS, max(-(-8 // rows), 3 if wide else 2) * lanes)
    if outputs is not None:
        columns = min(columns, max(LEAST_COLUMNS, -(-outputs // lanes) * lanes))
    most = min(6 if count < 32 else 8, (12 if count < 32 else 24) * lanes // columns)
    if rows < 2 * most:
        most = -(-rows // -(-rows // most))
    return Tile(most, columns)


def tiles_last(
    sizes: Sizes, matrices: Matrices, panels: Panels, tile: Tile, *, gradient: bool = False, adds: bool = False
) -> EmittedKernel:
    """The kernel of a convolution, channels last, or of its derivative by the kernel, which may be added to the stored
    values."""
    is_depthwise = sizes.groups > 1 and sizes.inputs == sizes.outputs == 1
    groups, outputs = (1, sizes.made) if is_depthwise else (sizes.groups, sizes.outputs)
    form = Form("depthwise" if is_depthwise else "last", sizes.element_type, gradient)
    rows, taps = len(matrices.rows), len(matrices.taps)
    columns = -(-outputs // tile.columns)
    block = tile.rows * min(max(1, rows // tile.rows // FEWEST_BLOCKS), TILES)
    blocks = max(1, rows // block)
    pieces = _loops_of_pieces(sizes.element_type, taps, gradient)
    numbers = {
        "images": matrices.images, "groups": groups, "positions": rows, "outputs": outputs, "inputs": matrices.inputs,
        "taps": taps, "image": matrices.image, "members": sizes.inputs, "image_made": rows * sizes.made,
        "made": sizes.made, "of_group": panels.group, "of_tap": matrices.of_tap * panels.step,
        "of_input": matrices.of_input * panels.step, "of_column": panels.panel // tile.columns, "panel": tile.columns,
        "panels": columns, "block": block, "blocks": blocks, **_pieces(pieces, matrices.inputs, taps),
    }  # fmt: skip
    if is_depthwise or gradient:
        numbers["input_step"] = matrices.input_step
    if gradient:
        numbers["adding"] = int(adds)
    return emit_sums(form, numbers, _schedule_last(form, tile, pieces), matrices.images * groups * columns * blocks)


def _loops_of_pieces(element_type: ElementType, taps: int, is_gradient: bool = False) -> tuple[str, ...]:
    """The loops over pieces of sums. Integers have one piece: sums are exact, however long they are. Windows seldom
    have more elements than a piece; without a loop over their pieces, LLVM takes 0.8 of the time. In derivatives by
    the kernel, the elements are positions."""
    if element_type.is_integral:
        return ()
    return ("i0", "t0") if is_gradient or taps > PIECE else ("i0",)


def _pieces(loops: tuple[str, ...], inputs: int, taps: int, most: int = PIECE) -> dict[str, int]:
    """The parameters of these loops: pieces of about the same length. `most`: how many inputs a piece may have."""
    found: dict[str, int] = {}
    for loop, many, longest in zip(loops, (inputs, taps), (max(1, min(PIECE // taps, most)), PIECE)):
        count = max(1, -(-many // longest))
        found |= {f"each_{loop[0]}": max(1, -(-many // count)), f"{loop}s": count}
    return found


def _inputs_in_cache(geometry: Geometry, tile: Tile) -> int:
    """Channels first: the cells of so many inputs that a tile reads take two thirds of a first-level cache. 64 inputs
    with a window of 3 x 3 are then two pieces, in 0.87 of the time of one piece; so are 32 inputs with a stride of 2,
    since the cells of its phases are apart. With half of a cache, 16 inputs with a window of 3 x 3 x 3 would be two
    pieces, in 1.025 of the time."""
    *outer, last = geometry.cells
    taps = [last.tap(k) for k in range(last.axis.part.size)]
    phases, reach = len({phase for phase, _ in taps}), max(distance for _, distance in taps)
    row = (tile.columns + reach) * geometry.sizes.element_type.byte_width + target_machine().cache_line
    rows = math.prod(c.axis.part.size for c in outer) * phases
    return max(1, target_machine().first_cache * 2 // 3 // (rows * row))


def _splits(loops: tuple[str, ...]) -> tuple[Step, ...]:
    names = [(loop, loop[0]) for loop in loops]
    return tuple([Split(d, loop, Name(f"each_{d}"), "short", f"first_{d}", f"some_{d}") for loop, d in names])


@lru_cache(maxsize=64)
def _schedule_last(form: Form, tile: Tile, pieces: tuple[str, ...]) -> Schedule:
    is_depthwise = form.kind == "depthwise"
    terms = ("i", "t") if is_depthwise or form.is_gradient else ("t", "i")  # neighbours in the copy are innermost
    return (
        Part("o", "panel", ("number", "left", "right")),
        Part("p", "block", ("part", "begin", "stop")),
        Split("o", "column", tile.columns, "short", "first", "wide"),
        Split("p", "row", tile.rows, "short", "row", "some"),
        *_splits(pieces),
        Order("n", "g", "panel", "block", "column", "row", *pieces, *terms, "p", "o"),
        Unroll("p"),
        Lanes("o"),
        Padded("b", Name("of_column")),
        *([Padded("a")] if is_depthwise else []),
        Accumulate(("row", *pieces)[-1], adds=True),
        Collect("row", "totals", wide=form.is_gradient),
        Parallel(("n", "g", "panel", "block"), ("rest_n", "rest_g", "rest_panel", "rest_block")),
    )  # fmt: skip


def gradient_first(geometry: Geometry, images: int, *, adds: bool) -> EmittedKernel:
    """The kernel of the derivative by the kernel, channels first, for few outputs; it may be added to the stored
    values. Lanes go along the positions: `geometry` has those of an element of the window one after the other."""
    sizes, machine = geometry.sizes, target_machine()
    registers = max(1, LEAST_COLUMNS * sizes.element_type.byte_width // machine.register_bytes)
    most = max(1, (24 if machine.registers >= 32 else 12) // (ELEMENTS * registers))
    rows = -(-sizes.outputs // -(-sizes.outputs // most))
    block = ELEMENTS * max(1, sizes.depth // ELEMENTS // MANY_ITEMS)
    blocks = max(1, sizes.depth // block)
    positions, some_images = min(sizes.positions, LONG_PIECE), max(1, LONG_PIECE // sizes.positions)
    numbers = {
        "images": images, "groups": sizes.groups, "outputs": sizes.outputs, "elements": sizes.depth,
        "positions": sizes.positions, "image": geometry.image, "members": sizes.inputs * geometry.plane,
        "image_made": sizes.made * sizes.positions, "group_made": sizes.outputs * sizes.positions,
        "of_group": sizes.outputs * sizes.depth, "block": block, "blocks": blocks, "each_n": some_images,
        "n0s": -(-images // some_images), "each_q": positions, "q0s": -(-sizes.positions // positions),
        "adding": int(adds),
    }  # fmt: skip
    form = Form("gradient", sizes.element_type, True)
    return emit_sums(form, numbers, _schedule_gradient(rows), sizes.groups * blocks)


@lru_cache(maxsize=64)
def _schedule_gradient(rows: int) -> Schedule:
    return (
        Part("e", "block", ("part", "begin", "stop")),
        Split("e", "column", ELEMENTS, "short", "first", "wide"),
        Split("o", "row", rows, "short", "row", "some"),
        Split("n", "n0", Name("each_n"), "short", "first_n", "some_n"),
        Split("q", "q0", Name("each_q"), "short", "first_q", "some_q"),
        Split("q", "v", LEAST_COLUMNS, "rest", "v"),
        Order("g", "block", "column", "row", "n0", "q0", "n", "v", "e", "o", "q"),
        Unroll("e"),
        Unroll("o"),
        Lanes("q"),
        Accumulate("q0", adds=True),
        Collect("row", "totals", wide=True),
        Parallel(("g", "block"), ("rest_g", "rest_block")),
    )


def tiles_first(geometry: Geometry, tile: Tile, images: int, *, shares: int, transposed: bool = False) -> EmittedKernel:
    """The kernel of a convolution, channels first. The copy must be followed by as many elements, of any value, as a
    tile has columns. An image, or a strip of it, is cut into `shares` pieces, about. `transposed`: the kernel is that
    of the derivative by the input, [input, output, taps], read from its last tap on: it has a text of its own, since
    a distance of taps that is a parameter costs 5%.

    A share has all tiles of an image where images are pieces: numbers of items are taken apart by divisions, which
    cost a convolution of one input 8% if each tile is an item."""
    sizes, axis = geometry.sizes, geometry.cells[0].axis
    part, depth = axis.part, sizes.inputs * sizes.taps
    tiles, pieces = -(-geometry.flat // tile.columns), _loops_of_pieces(sizes.element_type, sizes.taps)
    most = MOST_OUTPUTS // tile.rows if pieces and sizes.outputs > tile.rows else 1
    block = sizes.outputs if most == 1 else min(sizes.outputs, most * tile.rows)
    of_line, lines, walks = math.prod(c.size for c in geometry.cells[1:]), geometry.lines_of_walk, geometry.walks
    strip, strips = (lines * of_line, walks) if walks > 1 else (geometry.image, geometry.strips)
    while tiles * -(-sizes.outputs // block) < shares and block >= 2 * tile.rows:
        block = -(-block // 2 // tile.rows) * tile.rows
    blocks = -(-sizes.outputs // block)
    some = max(1, tiles * blocks // shares)
    tiles = -(-tiles // some)
    of_output, of_input = (sizes.taps, sizes.outputs * sizes.taps) if transposed else (depth, sizes.taps)
    numbers = {
        "images": images, "strips": strips, "groups": sizes.groups, "outputs": sizes.outputs,
        "cells": geometry.flat, "inputs": sizes.inputs, "taps": sizes.taps, "image": geometry.strips * geometry.image,
        "strip": strip, "members": sizes.inputs * geometry.plane, "plane": geometry.plane,
        "image_made": sizes.made * sizes.positions, "strip_made": sizes.positions // strips,
        "group_made": sizes.outputs * sizes.positions, "positions": sizes.positions,
        "of_output": of_output, "of_input": of_input, "block": block, "blocks": blocks,
        "tile": some * tile.columns, "tiles": tiles,
        **_pieces(pieces, sizes.inputs, sizes.taps, _inputs_in_cache(geometry, tile)),
        "lines": lines, "last_line": lines - 1, "of_line": of_line,
        "line_stride": part.stride, "line_dilation": part.window_dilation, "line_low": part.padding_low,
        "line_size": axis.size, "window": part.size, "of_window": sizes.taps // part.size,
        "weights": sizes.made * depth,
    }  # fmt: skip
    for d, (size, count) in enumerate(geometry.lines):
        numbers |= {f"c{d}": size, f"m{d}": count}
    numbers |= {"last_tap": sizes.taps - 1} if transposed else {"of_group": sizes.outputs * depth}
    form = Form("first", sizes.element_type, is_transposed=transposed, lines=len(geometry.lines))
    extent = images * strips * sizes.groups * blocks * tiles
    return emit_sums(form, numbers, _schedule_first(tile, most, pieces), extent)


@lru_cache(maxsize=64)
def _schedule_first(tile: Tile, most: int, pieces: tuple[str, ...]) -> Schedule:
    """`most`: how many blocks of a tile's rows a part of the outputs has at most. All of them are multiplied by a piece
    of the inputs, which stays in a first-level cache, before the next piece."""
    inner = ("row", *pieces) if most == 1 else (*pieces[:1], "row", *pieces[1:])
    return (
        Part("o", "block", ("part", "begin", "end")),
        Part("q", "tile", ("number", "left", "right")),
        Split("q", "column", tile.columns, "short", "first", "wide"),
        Split("o", "row", tile.rows, "short", "row", "some"),
        *_splits(pieces),
        Order("n", "s", "g", "block", "tile", "column", *inner, "i", "t", "o", "q"),
        Unroll("o"),
        Lanes("q"),
        Padded("b"),
        Padding("t", "s", "a"),
        Accumulate(inner[-1], adds=True),
        Collect("row" if most == 1 else "column", "totals", most=most),
        Parallel(("n", "s", "g", "block", "tile"), ("rest_n", "rest_s", "rest_g", "rest_block", "rest_tile")),
    )


def rows_of(sizes: Sizes) -> Rows | None:
    """Channels first: how a convolution is done by rows, if each output has one input. None: by tiles."""
    machine, width = target_machine(), WIDTHS[type_of_sums(sizes.element_type)]
    if sizes.inputs > 1 or sizes.taps > (FEW_TAPS if sizes.outputs * sizes.taps > FEW_WEIGHTS else MOST_TAPS):
        return None
    *_, first, last = planes_of(sizes)
    room, lanes = machine.first_cache // 2 // width, machine.register_bytes // width
    rows = min(ROWS, first.count)
    columns = min(ROWS // rows * lanes, MOST, 1 << (last.count - 1).bit_length())

    def most(enough: int, count: int, of: Callable[[int], int]) -> int:
        """The largest of at most `count` equal parts that has room; `enough`, if none has."""
        parts = 1
        while -(-count // parts) > enough and of(-(-count // parts)) > room:
            parts += 1
        return max(-(-count // parts), min(enough, count))

    wide = most(columns, last.count, lambda some: copied(sizes, rows, some))
    high = most(rows, first.count, lambda some: copied(sizes, some, wide))
    return Rows(rows, columns, room, high, wide) if copied(sizes, high, wide) <= room else None


def block_bytes() -> int:
    """The copy of the images of one block: two second-level caches together."""
    return 2 * target_machine().second_cache


def image_bytes() -> int:
    """The copy of an image is in a second-level cache; larger ones are shared between threads."""
    return target_machine().second_cache


def large_bytes() -> int:
    """Copies of images that are larger, all together, are made strip by strip."""
    return target_machine().second_cache


def strip_bytes() -> int:
    """How large a strip may be."""
    return target_machine().second_cache // 2


def cheaper(geometry: Geometry, tile: Tile) -> Geometry:
    """The walk of a convolution, channels first, or the one with a phase for each element of the window along the last
    axis: it copies more, and tiles have no columns that are not results."""
    if geometry.cells[-1].axis.part.stride > 1:
        return geometry
    spread = geometry_of(geometry.sizes, spread=True)
    if spread.image * geometry.sizes.element_type.byte_width > image_bytes():
        return geometry
    return spread if _work(spread, tile) < LESS_WORK * _work(geometry, tile) else geometry


def in_parts(geometry: Geometry, tile: Tile) -> Geometry:
    """The walk through images in parts, if that leaves out many cells that are no positions, as those between planes:
    0.94 of the time for volumes of 24 x 24 x 24 and of 32 x 32 x 32 with a window of 3 x 3 x 3."""
    lines = geometry.cells[0].axis.count
    parts = [replace(geometry, walks=walks) for walks in range(2, lines + 1) if lines % walks == 0]
    best = min(parts, key=lambda walk: _work(walk, tile), default=geometry)
    return best if _work(best, tile) < LESS_CELLS * _work(geometry, tile) else geometry


def in_strips(geometry: Geometry, tile: Tile) -> Geometry:
    """The walk through large images by strips, so that the copy of one is in a second-level cache when it is
    multiplied, and is gone afterwards. Nothing follows a strip: its results are not contiguous."""
    sizes, spread = geometry.sizes, geometry.cells[-1].spread
    width, lines = sizes.element_type.byte_width, sizes.axes[0].count
    if len(sizes.axes) < 2 or sizes.batch * geometry.image * width <= large_bytes():
        return geometry
    for strips in range(2, lines + 1):
        if lines % strips or sizes.batch * strips < FEW_STRIPS:
            continue
        walk = geometry_of(sizes, spread=spread, strips=strips)
        if walk.image * width <= strip_bytes():
            return walk if strips * _work(walk, tile) <= MORE_WORK * _work(geometry, tile) else geometry
    return geometry


def _work(geometry: Geometry, tile: Tile) -> float:
    """The work for an image, in multiplications."""
    sizes = geometry.sizes
    columns = -(-geometry.flat // tile.columns) * tile.columns
    segments = -(-geometry.flat // geometry.lines[-1][0]) + columns // tile.columns
    made = sizes.made * geometry.walks * (columns * sizes.depth + segments * SEGMENT)
    return made + geometry.image * (COPIED + COPIED_ROW / geometry.cells[-1].size)


def is_by_images(geometry: Geometry) -> bool:
    """True if each image is a piece of work of its own: one thread copies and multiplies it, and runs the instructions
    that follow."""
    sizes = geometry.sizes
    per_image = geometry.image * sizes.element_type.byte_width
    return sizes.batch >= FEW_IMAGES and per_image <= image_bytes()


def has_images_for_threads(geometry: Geometry) -> bool:
    """True if each thread should copy and multiply as many images as the others, though they are few, and not in
    strips. Threads that share a copy read what the other one wrote: on two cores, two volumes of 16 x 24 x 24 x 24 with
    a window of 3 x 3 x 3 take 0.8 of that time. An image may be larger than a second-level cache."""
    sizes, cores = geometry.sizes, target_machine().cores
    per_image = geometry.image * sizes.element_type.byte_width
    return geometry.strips == 1 and cores > 1 and sizes.batch % cores == 0 and per_image <= block_bytes()


def shares_weights(sizes: Sizes, tile: Tile) -> bool:
    """Channels last: True if images should be multiplied together, since one has few rows, or too few for the time
    that it takes to read all weights."""
    rows = -(-sizes.positions // tile.rows) * tile.rows
    weights = sizes.made * sizes.depth * sizes.element_type.byte_width
    return rows > MOST_ROWS * sizes.positions or (weights > image_bytes() and sizes.positions < MANY_POSITIONS)
